//! Priority orders: the metric-specific schemes that the paper leaves out.
//!
//! Each is a textbook rule ([`rules`]) that is exact on one fast machine (all M ≥ S, no minima) for some
//! metric. It uses two properties of a job's cost function: a *slope* (cost per second once it starts to
//! rise) and a *due* time (the latest that costs no more than completing at once). For linear costs the slope
//! is w, or w over the work for stretch. So Smith's rule serves response, weighted response and stretch
//! (docs/math/flex.md C6).

use slackline_relax::malleable::{Job, horizon};

use super::instance::FlexInstance;
use super::rap;
use crate::classic::rules::{self, sorted};

slackline_model::named_enum! {
    /// The origin of an order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rule {
        /// V over slope (Smith 1956): ΣwC.
        Smith = "smith",
        /// Due time (Jackson 1955): the largest lateness.
        DueDate = "edd",
        /// Moore-Hodgson: as many jobs as possible on time, the late ones behind.
        Moore = "moore",
        /// Most cost per work first as long as it can be on time, the rest behind: the weighted tardy count.
        Worth = "worth",
        /// Apparent tardiness cost, k = 1/2 (Vepsalainen, Morton 1987): ΣwT.
        Atc = "atc",
        /// V over maximum: jobs that are short alone.
        Shortest = "shortest",
        /// Completion order of the best constant allocation: the paper's generic order.
        Generic = "rap",
        Given = "given",
    }
}

impl Rule {
    /// The order of this rule, or `None` if it has nothing to say about the instance or would take more
    /// than `cells` operations beyond sorting.
    pub fn order(self, instance: &FlexInstance, profile: &CostProfile, cells: u64) -> Option<Vec<usize>> {
        let jobs = instance.jobs();
        let (n, speed) = (jobs.len(), f64::from(instance.slots()));
        match self {
            Self::Smith => Some(rules::smith(&profile.jobs)),
            Self::DueDate => profile.dated.then(|| rules::earliest_due(&profile.jobs)),
            Self::Moore => profile.dated.then(|| rules::moore(&profile.jobs, speed, |job| job.work)),
            Self::Worth => profile.dated.then(|| rules::worth(&profile.jobs, speed)),
            Self::Atc => (profile.dated && (n as u64).pow(2) <= cells)
                .then(|| rules::apparent_tardiness_cost(&profile.jobs, speed, 0.5)),
            Self::Shortest => Some(sorted(n, |j| jobs[j].alone())),
            Self::Generic => rap::solve(instance, cells).map(|slots| rap::order(instance, &slots)),
            Self::Given => Some((0..n).collect()),
        }
    }
}

/// Slopes and due times of an instance's jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct CostProfile {
    /// The jobs on one machine of all slots: the weight is what a second costs once the cost rises; due is
    /// the latest plan time that costs no more than completing at time 0, infinite for no cost at all.
    pub jobs: Vec<rules::Job>,
    /// Whether some job can be on time.
    pub dated: bool,
}

impl CostProfile {
    /// Reads the cost functions. O(J + breakpoints).
    pub fn new(instance: &FlexInstance) -> Self {
        let jobs = instance.jobs();
        let last = horizon(jobs, instance.slots());
        let linear = |job: &Job| job.cost.as_linear().is_some_and(|(slope, _)| slope > 0.0);
        let due = |job: &Job| if linear(job) { 0.0 } else { job.latest(job.cost_at(0.0)).unwrap_or(0.0) };
        let seen = |job: &Job| {
            let due = due(job);
            let slope = slope(job, due, last);
            // Jobs that cost nothing come last.
            let ratio = if slope > 0.0 { job.work / slope } else { f64::INFINITY };
            rules::Job { work: job.work, alone: job.alone(), due, ratio }
        };
        let jobs: Vec<rules::Job> = jobs.iter().map(seen).collect();
        let dated = jobs.iter().any(|job| job.due > 0.0 && job.due.is_finite());
        Self { jobs, dated }
    }
}

fn slope(job: &Job, due: f64, last: f64) -> f64 {
    if let Some((slope, _)) = job.cost.as_linear() {
        return slope;
    }
    if let Some(steps) = job.cost.as_steps() {
        return steps.last().map_or(0.0, |&(_, level)| level) / last.max(f64::MIN_POSITIVE);
    }
    if due.is_infinite() {
        return 0.0;
    }
    let far = 2.0 * (due + last) + 1.0;
    (job.cost_at(far) - job.cost_at(due)) / (far - due)
}

#[cfg(test)]
mod tests {
    use slackline_model::{Combine, CostFn};

    use super::*;

    fn order(rule: Rule, jobs: Vec<Job>) -> Vec<usize> {
        let instance = FlexInstance::new(2, Combine::Sum, jobs);
        rule.order(&instance, &CostProfile::new(&instance), 1000).unwrap()
    }

    fn linear(work: f64, weight: f64) -> Job {
        Job::new(work, 0..=2, CostFn::linear(weight, 0.0))
    }

    fn tardy(work: f64, weight: f64, due: f64) -> Job {
        Job::new(work, 0..=2, CostFn::steps(vec![(due, weight)]))
    }

    #[test]
    fn smith_is_work_over_weight_and_weightless_jobs_come_last() {
        assert_eq!(order(Rule::Smith, vec![linear(4.0, 1.0), linear(1.0, 0.0), linear(6.0, 2.0)]), [2, 0, 1]);
    }

    #[test]
    fn moore_gives_the_longest_up() {
        // On one machine of speed 2: 1 + 3 + 1 seconds, due 2, 4, 4.5; the second is late anyway.
        let jobs = vec![tardy(2.0, 1.0, 2.0), tardy(6.0, 1.0, 4.0), tardy(2.0, 1.0, 4.5)];
        assert_eq!(order(Rule::Moore, jobs.clone()), [0, 2, 1]);
        // Unless it is worth more than the others.
        let mut heavy = jobs;
        heavy[1].cost = CostFn::steps(vec![(4.0, 9.0)]);
        assert_eq!(order(Rule::Worth, heavy), [0, 1, 2]);
    }

    #[test]
    fn rules_for_due_times_say_nothing_without_any() {
        let instance = FlexInstance::new(2, Combine::Sum, vec![linear(1.0, 1.0)]);
        let profile = CostProfile::new(&instance);
        let given = Rule::ALL.map(|rule| rule.order(&instance, &profile, 1000).is_some());
        assert_eq!(given, [true, false, false, false, false, true, true, true]);
    }

    #[test]
    fn atc_is_smith_when_everything_is_late_and_urgent_first_before() {
        let late = |work, w| Job::new(work, 0..=2, CostFn::tardiness(w, 0.25));
        assert_eq!(order(Rule::Atc, vec![late(8.0, 1.0), late(2.0, 1.0)]), [1, 0]);
        let due = |work, due| Job::new(work, 0..=2, CostFn::tardiness(1.0, due));
        assert_eq!(order(Rule::Atc, vec![due(2.0, 90.0), due(8.0, 4.0)]), [1, 0]);
    }
}
