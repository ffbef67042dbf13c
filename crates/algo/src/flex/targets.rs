//! Target-level search: which jobs with step costs end in which level.
//!
//! **Source**: docs/math/flex.md C6. The state is one deadline per job, the end of the level it is to reach;
//! the exact deadline test says whether all can. Levels are bought greedily, three times: by saving per work,
//! by saving, and by saving per work with early levels first; then pairs are swapped (one job relaxed,
//! another tightened) while the total falls. The best of the three is kept. For few jobs
//! [`slackline_relax::levels::exact`] goes through all choices instead.
//!
//! Jobs without steps take no part: their deadline stays infinite.

use slackline_relax::deadlines::DeadlineTest;
use slackline_relax::levels::{Level, levels};
use slackline_relax::malleable::horizon;

use super::instance::FlexInstance;
use crate::classic::budget::Budget;

/// The deadlines of the best choice found, infinite for none.
pub fn search(instance: &FlexInstance, budget: &mut Budget<'_>) -> Vec<f64> {
    let jobs = instance.jobs();
    let last = horizon(jobs, instance.slots());
    let lists: Vec<Vec<Level>> = jobs
        .iter()
        .map(|job| match job.cost.as_steps() {
            Some(_) => levels(job, last, 0),
            None => vec![Level { due: f64::INFINITY, cost: 0.0 }],
        })
        .collect();
    let mut best: Option<Choice<'_>> = None;
    for (pass, key) in [per_work as Key, saving, early].into_iter().enumerate() {
        let mut budget_of_pass = budget.share(3 - pass as u64);
        let mut choice = Choice::new(instance, &lists);
        choice.buy(key, &mut budget_of_pass);
        choice.swap(&mut budget_of_pass);
        budget.refund(&budget_of_pass);
        if best.as_ref().is_none_or(|b| choice.cost < b.cost) {
            best = Some(choice);
        }
    }
    best.map_or_else(Vec::new, |choice| choice.due)
}

/// How eagerly a level is bought: (saving, work, due), larger first.
type Key = fn(f64, f64, f64) -> f64;

fn per_work(saving: f64, work: f64, _due: f64) -> f64 {
    saving / work
}

fn saving(saving: f64, _work: f64, _due: f64) -> f64 {
    saving
}

fn early(saving: f64, work: f64, due: f64) -> f64 {
    saving * due / work
}

/// One level for each job.
struct Choice<'a> {
    instance: &'a FlexInstance,
    lists: &'a [Vec<Level>],
    level: Vec<usize>,
    due: Vec<f64>,
    cost: f64,
    test: DeadlineTest,
}

impl<'a> Choice<'a> {
    /// Everybody in the last level.
    fn new(instance: &'a FlexInstance, lists: &'a [Vec<Level>]) -> Self {
        let level = lists.iter().map(|list| list.len() - 1).collect();
        let mut choice = Self {
            instance,
            lists,
            level,
            due: vec![f64::INFINITY; lists.len()],
            cost: 0.0,
            test: DeadlineTest::new(instance.slots()),
        };
        choice.cost = choice.total();
        choice
    }

    fn total(&self) -> f64 {
        self.lists.iter().zip(&self.level).map(|(list, &k)| list[k].cost).sum()
    }

    fn set(&mut self, job: usize, level: usize) {
        self.level[job] = level;
        self.due[job] = self.lists[job][level].due;
    }

    fn feasible(&mut self, budget: &mut Budget<'_>) -> bool {
        budget.spend(self.due.len()) && self.test.feasible(self.instance.jobs(), self.due.iter().copied())
    }

    /// Moves a job to a level if the test allows it.
    fn try_set(&mut self, job: usize, level: usize, budget: &mut Budget<'_>) -> bool {
        let before = self.level[job];
        self.set(job, level);
        let fits = self.feasible(budget);
        if !fits {
            self.set(job, before);
        }
        fits
    }

    fn buy(&mut self, key: Key, budget: &mut Budget<'_>) {
        let mut offers: Vec<(f64, usize, usize)> = Vec::new();
        for (job, list) in self.lists.iter().enumerate() {
            let worst = list[list.len() - 1].cost;
            for (level, l) in list.iter().enumerate().take(list.len() - 1) {
                let work = self.instance.jobs()[job].work.max(f64::MIN_POSITIVE);
                offers.push((key(worst - l.cost, work, l.due), job, level));
            }
        }
        offers.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        for (_, job, level) in offers {
            if level < self.level[job] {
                self.try_set(job, level, budget);
            }
            if budget.was_cut() {
                break;
            }
        }
        self.cost = self.total();
    }

    /// Relaxes one job and tightens another, or tightens one, as long as that saves.
    fn swap(&mut self, budget: &mut Budget<'_>) {
        while !budget.was_cut() && (self.tighten_one(budget) || self.swap_one(budget)) {}
    }

    fn tighten_one(&mut self, budget: &mut Budget<'_>) -> bool {
        for job in 0..self.level.len() {
            for level in 0..self.level[job] {
                if self.try_set(job, level, budget) {
                    self.cost = self.total();
                    return true;
                }
                if budget.was_cut() {
                    return false;
                }
            }
        }
        false
    }

    fn swap_one(&mut self, budget: &mut Budget<'_>) -> bool {
        for out in 0..self.level.len() {
            for worse in self.level[out] + 1..self.lists[out].len() {
                let (before, price) = (self.level[out], self.lists[out][worse].cost);
                let loss = price - self.lists[out][before].cost;
                self.set(out, worse);
                for into in (0..self.level.len()).filter(|&j| j != out) {
                    for better in 0..self.level[into] {
                        let list = &self.lists[into];
                        let gain = list[self.level[into]].cost - list[better].cost;
                        if gain > loss && self.try_set(into, better, budget) {
                            self.cost = self.total();
                            return true;
                        }
                        if budget.was_cut() {
                            self.set(out, before);
                            return false;
                        }
                    }
                }
                self.set(out, before);
            }
        }
        false
    }
}
