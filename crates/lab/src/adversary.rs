//! Searches small workloads on which a policy is worst, compared with another policy or with the optimum.
//!
//! **Source**: PISA (J. Coleman, B. Krishnamachari, arXiv 2403.07120) does this for list schedulers of task
//! graphs. Averages over random workloads hide where a policy fails, and simulated annealing over workloads
//! finds such cases.
//!
//! **Idea** 1. A workload is a few flows of a few jobs of a few tasks on a few slots (`mutate`), in whole
//! seconds, so that exhaustive search finds the optimum ([`slackline_testkit::brute`]). 2. Its ratio is the
//! cost of the policy over the cost of the reference. If costs may be 0, 1 is added to both. 3. From a random
//! workload, a random change is accepted if the ratio rises, and otherwise with a probability that falls with
//! the loss and with time. The worst workload so far is kept. 4. Parts that are not needed for the ratio are
//! removed, so that the workload shows the cause. A workload on which the policy costs no more than the
//! reference is dropped.
//!
//! [`CHAINS`] searches start at different workloads; the same seed gives the same workloads, on any number of
//! threads.

mod mutate;

use slackline::simulate::{Watch, simulate_figures};
use slackline::{Options, PolicySpec, parallel};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Combine, Draft, Instance, Metric, Objective, Seed};
use slackline_testkit::brute::brute;
use slackline_testkit::harness::at_most;
use slackline_trace::{Format, write_workload};

use crate::context::Artifact;
use crate::error::{PolicyFailure, ReproError};
use crate::values;
use crate::workload::Problem;

/// The number of searches, which start at different workloads.
pub const CHAINS: u32 = 4;
/// The loss that is accepted with probability 1/e at the start of a search; it falls to 0 with the square of
/// the remaining share.
const WARMTH: f64 = 0.3;

/// The reference for the cost of a policy.
#[derive(Clone, Debug)]
pub enum Opponent {
    /// Another policy on the same workload.
    Policy(PolicySpec),
    /// The best task schedule.
    Optimum,
}

#[derive(Clone, Debug)]
pub struct Adversary {
    /// The policy to be worst.
    pub policy: PolicySpec,
    pub objective: Objective,
    pub against: Opponent,
    /// The seed of all random numbers.
    pub seed: Seed,
    /// The number of evaluated workloads, over all chains.
    pub budget: u32,
}

/// A workload and the costs on it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstCase {
    pub draft: Draft,
    /// The cost of the policy.
    pub cost: f64,
    /// The cost of the other policy or the optimum.
    pub other: f64,
    /// The ratio of the two, with 1 added to both if costs may be 0.
    pub ratio: f64,
}

/// An objective as `response`, for its sum, or as `max slowdown`.
///
/// # Errors
/// Texts that are no objective, and lateness, which has no ratios.
pub fn objective(text: &str) -> Result<Objective, String> {
    let of_metric = Metric::ALL.iter().find(|metric| metric.name() == text);
    let objective = match of_metric {
        Some(&metric) => Objective::new(metric, Combine::Sum),
        None => values::objective(text)?,
    };
    if objective.metric == Metric::Lateness {
        return Err("lateness can be negative and has no ratios, expected another metric".to_owned());
    }
    Ok(objective)
}

impl Adversary {
    /// The worst workload of each chain, worst first, without duplicates. A chain is left out if the policy
    /// costs no more than its reference on all its workloads. `progress` receives the finished chains and the
    /// total.
    ///
    /// # Errors
    /// If a policy does not support such workloads or fails.
    pub fn search(
        &self,
        threads: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<WorstCase>, ReproError> {
        let done = std::sync::atomic::AtomicUsize::new(0);
        let chain = |k: usize| {
            let found = self.chain(k as u64);
            let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            progress(done, CHAINS as usize);
            found
        };
        let found: Result<Vec<_>, Problem> = parallel::map(CHAINS as usize, threads, chain);
        let problem = |problem| ReproError::Figure { figure: "adversary".to_owned(), problem };
        let mut found: Vec<WorstCase> = found.map_err(problem)?.into_iter().flatten().collect();
        found.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
        found.dedup();
        Ok(found)
    }

    /// Simulated annealing from one workload; `None` if the policy cost more on none of the workloads.
    fn chain(&self, k: u64) -> Result<Option<WorstCase>, Problem> {
        let mut rng = random::rng(self.seed, "adversary", k);
        let budget = (self.budget / CHAINS).max(1);
        let (mut present, mut worst): (Option<WorstCase>, Option<WorstCase>) = (None, None);
        for step in 0..budget {
            let mut draft = match &present {
                Some(present) => present.draft.clone(),
                None => mutate::drawn(self.objective, &mut rng),
            };
            if present.is_some() {
                mutate::change(&mut draft, &mut rng);
            }
            let Some(next) = self.look(draft)? else { continue };
            let left = 1.0 - f64::from(step) / f64::from(budget);
            if present.as_ref().is_none_or(|now| takes(next.ratio - now.ratio, left, &mut rng)) {
                if worst.as_ref().is_none_or(|worst| next.ratio > worst.ratio) {
                    worst = Some(next.clone());
                }
                present = Some(next);
            }
        }
        let worst = worst.filter(|worst| !at_most(worst.cost, worst.other));
        worst.map(|worst| self.smaller(worst)).transpose()
    }

    /// The costs on a workload; `None` if the draft is invalid or the optimum is out of reach.
    fn look(&self, draft: Draft) -> Result<Option<WorstCase>, Problem> {
        if mutate::tasks(&draft) > mutate::TASKS {
            return Ok(None);
        }
        let Ok(instance) = Instance::new(&draft) else { return Ok(None) };
        let other = match &self.against {
            Opponent::Policy(policy) => cost(&instance, policy)?,
            Opponent::Optimum => brute(&instance),
        };
        let Some((other, cost)) = other.zip(cost(&instance, &self.policy)?) else { return Ok(None) };
        let more = if may_be_nothing(self.objective.metric) { 1.0 } else { 0.0 };
        let ratio = (cost + more) / (other + more);
        Ok(ratio.is_finite().then_some(WorstCase { draft, cost, other, ratio }))
    }

    /// The workload without the parts that the ratio does not need.
    fn smaller(&self, mut found: WorstCase) -> Result<WorstCase, Problem> {
        loop {
            let mut less = None;
            for draft in mutate::parts(&found.draft) {
                less = self.look(draft)?.filter(|less| less.ratio >= found.ratio);
                if less.is_some() {
                    break;
                }
            }
            match less {
                Some(less) => found = less,
                None => return Ok(found),
            }
        }
    }

    /// The workloads as documents, worst first, and a summary of them.
    pub fn artifacts(&self, found: &[WorstCase]) -> Vec<Artifact> {
        let mut files = vec![Artifact { name: "summary.csv".to_owned(), text: self.summary(found) }];
        files.extend(
            found.iter().enumerate().map(|(k, found)| Artifact {
                name: file(k),
                text: write_workload(&found.draft, Format::Toml),
            }),
        );
        files
    }

    /// The message if nothing was found.
    pub fn nothing(&self) -> String {
        let against = match &self.against {
            Opponent::Policy(policy) => policy.spec(),
            Opponent::Optimum => "the optimum",
        };
        let Self { policy, budget, .. } = self;
        format!(
            "no workload found on which {} costs more than {against} in {budget} tries ({})",
            policy.spec(),
            self.measure()
        )
    }

    /// The name of the compared cost: `sum response`.
    fn measure(&self) -> String {
        let Objective { metric, combine } = self.objective;
        format!("{} {metric}", if combine == Combine::Sum { "sum" } else { "max" })
    }

    /// A table with one row per workload.
    fn summary(&self, found: &[WorstCase]) -> String {
        let against = match &self.against {
            Opponent::Policy(policy) => policy.spec(),
            Opponent::Optimum => "optimum",
        };
        let measure = self.measure();
        let mut text =
            String::from("file,policy,against,objective,cost,cost_against,ratio,flows,tasks,seed,budget\n");
        for (k, found) in found.iter().enumerate() {
            let WorstCase { draft, cost, other, ratio } = found;
            let (flows, tasks) = (draft.flows.len(), mutate::tasks(draft));
            let row = format!(
                "{},{},{against},{measure},{cost},{other},{ratio},{flows},{tasks},{},{}\n",
                file(k),
                self.policy.spec(),
                self.seed.0,
                self.budget
            );
            text.push_str(&row);
        }
        text
    }
}

fn file(k: usize) -> String {
    format!("worst-{}.toml", k + 1)
}

/// Whether a change of the ratio is accepted when the share `left` of the search remains.
fn takes(gain: f64, left: f64, rng: &mut ChaCha8Rng) -> bool {
    let heat = (WARMTH * left * left).max(f64::MIN_POSITIVE);
    gain >= 0.0 || random::chance(rng, libm::exp(gain / heat))
}

/// Whether a schedule may cost nothing.
fn may_be_nothing(metric: Metric) -> bool {
    !matches!(
        metric,
        Metric::Completion | Metric::Response | Metric::Makespan | Metric::Stretch | Metric::Slowdown
    )
}

/// The cost of a policy in the simulator, if it completes every flow.
fn cost(instance: &Instance, policy: &PolicySpec) -> Result<Option<f64>, Problem> {
    let done = simulate_figures(instance, policy, &Options::exact(), None, Watch::default());
    Ok(done.map_err(|error| PolicyFailure::of_simulation(policy, error))?.schedule.cost)
}

#[cfg(test)]
mod tests {
    use slackline::Registry;

    use super::*;

    fn search(policy: &str, metric: &str, against: Option<&str>, budget: u32) -> (Adversary, Vec<WorstCase>) {
        let registry = Registry::standard();
        let of = |spec| registry.parse(spec).expect("a policy");
        let adversary = Adversary {
            policy: of(policy),
            objective: objective(metric).expect("an objective"),
            against: against.map_or(Opponent::Optimum, |spec| Opponent::Policy(of(spec))),
            seed: Seed(1),
            budget,
        };
        let found = adversary.search(2, &|_, _| {}).expect("policies that go on");
        (adversary, found)
    }

    /// FIFO makes a short flow wait for a long one: the search finds this again, at the stated cost.
    #[test]
    fn fifo_is_much_worse_than_the_optimum_for_responses() {
        let (adversary, found) = search("fifo", "response", None, 200);
        assert!(found[0].ratio > 1.5, "{found:?}");
        for found in &found {
            assert_eq!(adversary.look(found.draft.clone()).expect("it was evaluated"), Some(found.clone()));
            assert!(found.ratio >= 1.0 - 1e-9, "no policy is better than the optimum");
            let smaller = mutate::parts(&found.draft).into_iter();
            let ratios = smaller.filter_map(|part| adversary.look(part).expect("it is evaluated"));
            assert!({ ratios }.all(|part| part.ratio < found.ratio), "something could be left out");
        }
        let (_, again) = search("fifo", "response", None, 200);
        assert_eq!(found, again, "the same seed");
    }

    #[test]
    fn a_policy_is_no_worse_than_itself() {
        let (adversary, found) = search("edf", "tardiness", Some("edf"), 40);
        assert_eq!(found, []);
        let said = "no workload found on which edf costs more than edf in 40 tries (sum tardiness)";
        assert_eq!(adversary.nothing(), said);
        let files = adversary.artifacts(&found);
        let [summary] = files.as_slice() else { panic!("{} files", files.len()) };
        assert_eq!(summary.text.lines().count(), 1, "only what columns there are: {}", summary.text);
    }

    #[test]
    fn documents_are_read_again() {
        for metric in ["tardiness", "sla", "max piecewise"] {
            check_documents(metric);
        }
    }

    fn check_documents(metric: &str) {
        let (adversary, found) = search("fifo", metric, None, 100);
        assert!(
            !found.is_empty() && found.iter().all(|found| found.cost > found.other),
            "{metric}: {found:?}"
        );
        let files = adversary.artifacts(&found);
        assert_eq!(files.len(), found.len() + 1);
        for (file, found) in files[1..].iter().zip(&found) {
            let read = slackline_trace::read_workload(
                &file.name,
                file.text.as_bytes(),
                None,
                &slackline_trace::ImportOptions::default(),
            );
            assert_eq!(read.expect("a workload").draft, found.draft);
        }
        let objective = if metric.starts_with("max") { metric.to_owned() } else { format!("sum {metric}") };
        let first = format!("worst-1.toml,fifo,optimum,{objective},");
        assert!(files[0].text.contains(&first), "{}", files[0].text);
    }

    #[test]
    fn lateness_has_no_ratios() {
        assert!(
            objective("lateness").is_err() && objective("max slowdown").is_ok() && objective("late").is_err()
        );
    }
}
