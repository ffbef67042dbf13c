//! On every small instance: bound ≤ optimum ≤ cost of every policy, every schedule passes the judge,
//! and the judge's metrics are the oracle's.
#![expect(clippy::print_stdout, reason = "how much was enumerated is worth a line")]

use slackline::algo::dmrs::{self, lp::Form};
use slackline::{PolicySpec, Registry};
use slackline_model::Instance;
use slackline_model::draft::Draft;
use slackline_model::random::{test_scale, test_step};
use slackline_testkit::brute::brute;
use slackline_testkit::harness::{self, Setup, at_most, same};
use slackline_testkit::{instances, oracle};

#[derive(Default)]
struct Counts {
    instances: usize,
    schedules: usize,
    /// Instances whose exhaustive search was abandoned.
    out_of_reach: usize,
    /// Instances whose bound is the optimum.
    tight: usize,
    /// Schedules that are optimal.
    optimal: usize,
}

fn check_instance(draft: &Draft, policies: &[PolicySpec], counts: &mut Counts) -> Result<(), String> {
    let instance = Instance::new(draft).map_err(|e| e.to_string())?;
    let optimum = brute(&instance);
    if let Some(message) = optimum.and_then(|optimum| harness::broken_bound(&instance, optimum)) {
        return Err(message);
    }
    counts.instances += 1;
    counts.tight += usize::from(optimum.is_some_and(|best| same(best, slackline_relax::best(&instance))));
    counts.out_of_reach += usize::from(optimum.is_none());
    for policy in policies {
        let mut built = policy.build(instance.cluster(), &instance.objective());
        let (schedule, report) = harness::judged(&instance, built.as_mut(), &Setup::plain())?;
        counts.schedules += 1;
        for (name, value) in oracle::metrics(&instance, &schedule) {
            let entry = report.metrics.entries().into_iter().find(|(n, _)| *n == name);
            let judged = entry.ok_or_else(|| format!("the judge has no {name}"))?.1;
            if !same(value, judged) {
                return Err(format!("{policy:?}: {name} is {judged} to the judge, {value} to the oracle"));
            }
        }
        let completions: Option<Vec<f64>> = oracle::completions(&instance, &schedule).into_iter().collect();
        let completions = completions.ok_or("a flow was not finished")?;
        let cost = oracle::objective(draft, &instance, instance.objective(), &completions);
        if !same(cost, report.cost) {
            return Err(format!(
                "{policy:?}: the cost is {} to the judge, {cost} to the oracle",
                report.cost
            ));
        }
        if let Some(optimum) = optimum {
            if !at_most(optimum, cost) {
                return Err(format!("{policy:?}: found a cost of {cost}, below the optimum of {optimum}"));
            }
            counts.optimal += usize::from(same(optimum, cost));
        }
    }
    Ok(())
}

/// Checks every draft under `most` policies, which take turns if there are more of them.
fn check_all(name: &str, drafts: impl Iterator<Item = Draft>, most: usize) -> Counts {
    let policies = harness::registered(&Registry::standard());
    let mut counts = Counts::default();
    for (k, draft) in drafts.enumerate() {
        let turn = policies
            .iter()
            .cycle()
            .skip(k.wrapping_mul(most) % policies.len())
            .take(most.min(policies.len()));
        let turn: Vec<PolicySpec> = turn.cloned().collect();
        if let Err(message) = check_instance(&draft, &turn, &mut counts) {
            panic!("{message}\n{draft:#?}");
        }
    }
    println!(
        "{name}: {} instances, {} without optimum, {} with a tight bound, {} schedules, {} of them optimal",
        counts.instances, counts.out_of_reach, counts.tight, counts.schedules, counts.optimal
    );
    counts
}

/// Every ninth draft; more with a larger `SLACKLINE_SCALE`, as in `.ci/long`.
fn thinned(drafts: impl Iterator<Item = Draft>) -> impl Iterator<Item = Draft> {
    drafts.step_by(test_step(9.0))
}

fn sample(n: f64) -> u64 {
    (n * test_scale()).ceil() as u64
}

#[test]
fn one_job() {
    let counts = check_all("one job", thinned(instances::one_job()), usize::MAX);
    assert_eq!(counts.out_of_reach, 0);
    assert!(counts.optimal > counts.schedules / 2);
}

#[test]
fn two_jobs() {
    let most = (3.0 * test_scale()).ceil() as usize;
    let counts = check_all("two jobs", thinned(instances::two_jobs()), most);
    assert_eq!(counts.out_of_reach, 0);
    assert!(counts.optimal < counts.schedules, "some schedules should not be optimal");
}

#[test]
fn three_jobs_with_phases_without_length() {
    let counts = check_all("without length", crate::no_length::small(sample(6.0)), 5);
    assert_eq!(counts.out_of_reach, 0);
    assert!(counts.optimal > counts.schedules / 2);
}

#[test]
fn three_jobs() {
    let counts = check_all("three jobs", instances::sampled_jobs(3, sample(4.0)), usize::MAX);
    assert!(counts.out_of_reach * 20 < counts.instances);
}

/// The bound is at least that of LP-MapReduce with either floors and tails, and at most the optimum.
#[test]
fn on_mixed_speeds_the_bound_is_between_lp_mapreduce_and_the_optimum() {
    let policies = harness::registered(&Registry::standard());
    let (mut counts, mut programs) = (Counts::default(), 0);
    for (k, draft) in instances::mixed_speeds(2, sample(100.0)).enumerate() {
        let turn = [policies[k % policies.len()].clone()];
        if let Err(message) = check_instance(&draft, &turn, &mut counts) {
            panic!("{message}\n{draft:#?}");
        }
        let instance = Instance::new(&draft).unwrap();
        let bound = slackline_relax::best(&instance);
        for form in [Form::Strong, Form::Paper] {
            // The program applies to one-job flows whose costs are linear and summed.
            let plan = dmrs::plan(&instance, dmrs::Config { form, ..dmrs::Config::default() });
            let Some(lp) = plan.ok().and_then(|plan| plan.lower_bound) else { continue };
            assert!(harness::at_most(lp, bound), "{form:?}: {bound} is below {lp}\n{draft:#?}");
            programs += 1;
        }
    }
    println!("mixed speeds: {} instances, {} tight, {programs} programs", counts.instances, counts.tight);
    assert_eq!(counts.out_of_reach, 0);
    assert!(programs > 100);
}

#[test]
fn four_jobs() {
    let counts = check_all("four jobs", instances::sampled_jobs(4, sample(1.0)), sample(50.0) as usize);
    assert!(counts.out_of_reach * 20 < counts.instances);
}
