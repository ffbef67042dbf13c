//! A run can be copied in its present state: if nothing else arrives, the copy ends as the run does.

use std::collections::BTreeMap;

use slackline::{PolicySpec, Registry};
use slackline_model::random::test_seeds;
use slackline_model::schedule::NewRow;
use slackline_model::{Instance, Seed, SlotRange, Span, Time};
use slackline_policy::engine::RowId;
use slackline_policy::{Config, Driver, FlowEnd, Heir, Sink};
use slackline_sim::{Options, Sim};
use slackline_testkit::harness;

use crate::arb;

/// The completion of each flow, by name, and the number of rows.
#[derive(Default, PartialEq, Debug)]
struct Ends {
    completions: BTreeMap<String, Option<Time>>,
    rows: usize,
}

impl Sink for Ends {
    fn row(&mut self, _: RowId, _: &NewRow, _: &[SlotRange], _: &Instance) {
        self.rows += 1;
    }

    fn flow(&mut self, end: &FlowEnd, live: &Instance) {
        self.completions.insert(live.flow(end.flow).id.clone(), end.completion);
    }
}

/// The end of a run, and the end of a copy that was made after a number of instants. The copy has a copy of
/// the policy or, if it cannot be copied, a new policy. `None` if the run had ended before.
fn both(
    instance: &Instance,
    spec: &PolicySpec,
    slowstart: f64,
    instants: usize,
) -> Option<(Ends, Ends, bool)> {
    let make = || spec.build(instance.cluster(), &instance.objective());
    let (mut policy, mut engine) = (make(), Sim::new(instance, Options::exact()));
    let (mut ends, mut ahead) = (Ends::default(), Ends::default());
    let config = Config { slowstart, ..Config::plain().audited() };
    let mut driver = Driver::new(instance.without_flows(), policy.as_mut(), &mut engine, &mut ends, config);
    for _ in 0..instants {
        if !driver.step() {
            return None;
        }
    }
    let now = driver.view().now;
    let rest = std::iter::empty();
    let mut engine = Sim::of_stream(instance.cluster(), rest, Options::exact()).at(now);
    let copy = driver.policy().copy();
    let is_copy = copy.is_some();
    let mut fresh = make();
    match copy {
        Some(mut copy) => finish(driver.fork(Heir::Copy(copy.as_mut()), &mut engine, &mut ahead)),
        None => finish(driver.fork(Heir::New(fresh.as_mut()), &mut engine, &mut ahead)),
    }
    finish(driver);
    Some((ends, ahead, is_copy))
}

fn finish(mut driver: Driver<'_, '_, Sim<'_>>) {
    while driver.step() {}
    driver.close();
}

#[test]
fn a_copy_of_a_run_ends_as_the_run_does() {
    let mut compared = 0;
    for seed in test_seeds(12) {
        let mut draft = arb::draft_of(Seed(7000 + seed));
        draft.flows.iter_mut().for_each(|flow| {
            flow.release = 0.0;
            flow.repeat = None;
        });
        let instance = Instance::new(&draft).unwrap().cut(Span(3_000_000));
        for spec in harness::registered(&Registry::standard()) {
            for (slowstart, instants) in [(1.0, 3), (0.4, 7)] {
                let Some((ends, ahead, is_copy)) = both(&instance, &spec, slowstart, instants) else {
                    continue;
                };
                let left = ahead.completions.keys().all(|flow| ends.completions.contains_key(flow));
                assert!(left && ahead.completions.values().all(Option::is_some), "{spec:?}, seed {seed}");
                for (flow, end) in ahead.completions.iter().filter(|_| is_copy) {
                    assert_eq!(Some(end), ends.completions.get(flow), "{spec:?}, seed {seed}, flow {flow}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "{compared} flows were compared");
}
