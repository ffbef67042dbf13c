//! Random list schedules pass, and a changed one is refused exactly if it breaks the definition.

use proptest::prelude::*;
use slackline_judge::check;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, MachineDraft, TasksDraft};
use slackline_model::schedule::{NewRow, Outcome, TaskRow, TaskRows};
use slackline_model::{Instance, Schedule, SlotRange, Span, Time};

use crate::build::*;

#[derive(Clone, Debug)]
struct Case {
    machines: Vec<(u32, f64)>,
    flows: Vec<(f64, Vec<u8>, Vec<u8>)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let machine = (1..4u32, prop::sample::select(vec![1.0, 2.0, 4.0]));
    let seconds = || prop::collection::vec(0..4u8, 0..4);
    let flow = ((0..3u8).prop_map(f64::from), prop::collection::vec(0..4u8, 1..4), seconds());
    (prop::collection::vec(machine, 1..3), prop::collection::vec(flow, 1..5))
        .prop_map(|(machines, flows)| Case { machines, flows })
}

fn build(case: &Case) -> Instance {
    let machines = case.machines.iter().enumerate().map(|(i, &(slots, speed))| MachineDraft {
        speed,
        ..machines(["m", "n"][i], 1, Slots::Generic(slots))
    });
    let each = |list: &Vec<u8>| {
        let seconds: Vec<f64> = list.iter().map(|&s| f64::from(s)).collect();
        (!list.is_empty()).then(|| TasksDraft::Each(seconds).into())
    };
    let flows = case.flows.iter().enumerate().map(|(i, (release, map, reduce))| FlowDraft {
        release: *release,
        ..flow(["a", "b", "c", "d"][i], each(map), each(reduce))
    });
    instance(machines.collect(), flows.collect())
}

/// Every task in order of ids on the slot that is free first.
fn list_schedule(instance: &Instance) -> Schedule {
    let slot_kind = instance.cluster().slot_kinds()[0];
    let mut free = vec![Time::ZERO; instance.cluster().slots(slot_kind) as usize];
    let mut rows = TaskRows::new();
    for job in instance.jobs().iter() {
        let mut ready = instance.flow(job.flow).release;
        for phase in job.phases() {
            let tasks = instance.phase(phase).tasks().unwrap();
            let mut last = ready;
            for first in 0..tasks.count() {
                let slot = (0..free.len()).min_by_key(|&s| (free[s], s)).unwrap();
                let speed = instance.cluster().speed_of(slot_kind, slot as u32).0;
                let start = free[slot].max(ready);
                let end = start + tasks.run_at(first).0.at_speed_nearest(speed);
                free[slot] = end;
                last = last.max(end);
                let row = NewRow {
                    phase,
                    first,
                    count: 1,
                    start,
                    end,
                    startup: Span::ZERO,
                    attempt: 0,
                    outcome: Outcome::Done,
                };
                rows.push(row, &[SlotRange { first: slot as u32, len: 1 }]);
            }
            ready = last;
        }
    }
    with_rows(instance, rows)
}

fn with_rows(instance: &Instance, rows: TaskRows) -> Schedule {
    Schedule { tasks: rows, ..tasks(instance, &[]) }
}

/// The same rows with fresh claims.
fn reclaimed(instance: &Instance, rows: &[(TaskRow, SlotRange)]) -> Schedule {
    let mut list = TaskRows::new();
    for (row, place) in rows {
        let new = NewRow {
            phase: row.phase,
            first: row.first,
            count: row.count,
            start: row.start,
            end: row.end,
            startup: Span::ZERO,
            attempt: row.attempt,
            outcome: row.outcome,
        };
        list.push(new, &[*place]);
    }
    let bare = with_rows(instance, list);
    claimed(instance, bare)
}

fn claimed(instance: &Instance, mut schedule: Schedule) -> Schedule {
    let done = slackline_judge::completions(instance, &schedule);
    for row in &mut schedule.flows {
        let of = |r: &&TaskRow| instance.flow_of(r.phase) == row.flow;
        row.start = schedule.tasks.rows().iter().filter(of).map(|r| r.start.seconds()).reduce(f64::min);
        row.completion = done[row.flow.index()];
        row.cost = row.completion.map(|c| instance.flow(row.flow).cost.eval(c));
    }
    schedule.cost = Some(schedule.flows.iter().filter_map(|row| row.cost).sum());
    schedule
}

/// Feasibility by definition: every pair of tasks, every instant.
fn feasible(instance: &Instance, rows: &[(TaskRow, SlotRange)]) -> bool {
    let slot_kind = instance.cluster().slot_kinds()[0];
    let overlap = |a: &(TaskRow, SlotRange), b: &(TaskRow, SlotRange)| {
        a.1 == b.1 && a.0.end.min(b.0.end) > a.0.start.max(b.0.start)
    };
    let pairs = rows.iter().enumerate().all(|(i, a)| rows[..i].iter().all(|b| !overlap(a, b)));
    pairs
        && rows.iter().all(|(row, place)| {
            let phase = instance.phase(row.phase);
            let job = instance.job(phase.job);
            let mut ready = instance.flow(job.flow).release;
            if let (Some(map), Some(reduce)) = (job.map, job.reduce)
                && row.phase == reduce
            {
                ready = rows.iter().filter(|r| r.0.phase == map).map(|r| r.0.end).fold(ready, Time::max);
            }
            let speed = instance.cluster().speed_of(slot_kind, place.first).0;
            let span = phase.tasks().unwrap().run_at(row.first).0.at_speed_nearest(speed);
            row.start >= ready && row.end == row.start + span
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn list_schedules_pass_and_changes_are_judged_by_the_definition(
        case in cases(),
        change in (any::<prop::sample::Index>(), 0..4u8, 0..6u32),
    ) {
        let instance = build(&case);
        let schedule = list_schedule(&instance);
        let places = |row: &TaskRow| schedule.tasks.places(row)[0];
        let mut rows: Vec<_> = schedule.tasks.rows().iter().map(|row| (*row, places(row))).collect();
        let honest = check(&instance, &reclaimed(&instance, &rows));
        prop_assert!(honest.is_ok(), "{}", honest.unwrap_err());

        // Whole seconds, far beyond any tolerance.
        let (row, place) = change.0.get(&rows).to_owned();
        let at = rows.iter().position(|r| *r == (row, place)).unwrap();
        let shift = Time(u64::from(change.2) * 1_000_000);
        match change.1 {
            0 => (rows[at].0.start, rows[at].0.end) = (shift, shift + row.end.since(row.start)),
            1 => rows[at].0.end = row.start.max(shift),
            2 => rows[at].1.first = change.2 % instance.cluster().slots(instance.cluster().slot_kinds()[0]),
            _ => rows.reverse(),
        }
        let verdict = check(&instance, &reclaimed(&instance, &rows));
        prop_assert_eq!(verdict.is_ok(), feasible(&instance, &rows), "{:?}", verdict);
    }
}
