//! A stream whose flows arrive and are forgotten is judged as the whole is.

use slackline_judge::{NotByStream, OpenStream, Report, Violation, check};
use slackline_model::draft::FlowDraft;
use slackline_model::schedule::{NewRow, Schedule, TaskRow};
use slackline_model::{Draft, Instance};

use crate::build::*;

/// Judges rows in the order of their ends, and each flow after them.
fn streamed(instance: &Instance, schedule: &Schedule) -> Result<Report, Violation> {
    let mut stream = OpenStream::new(instance, schedule).unwrap();
    for flow in instance.flows().keys() {
        stream.arrive(instance.excerpt(flow)).unwrap();
    }
    let mut rows: Vec<&TaskRow> = schedule.tasks.rows().iter().collect();
    rows.sort_by_key(|row| row.end);
    for row in rows {
        stream.row(NewRow::from(row), schedule.tasks.places(row))?;
    }
    for row in &schedule.flows {
        stream.flow(row)?;
    }
    stream.finish(schedule)
}

fn honest() -> Vec<Run> {
    vec![
        run("b/b/map", 0, (0, 2), (0.0, 10.0)),
        run("a/a/map", 0, (2, 2), (0.0, 10.0)),
        run("b/b/reduce", 0, (0, 2), (10.0, 15.0)),
        run("a/a/map", 2, (2, 2), (10.0, 20.0)),
    ]
}

#[test]
fn figures_are_those_of_the_whole() {
    let instance = pair();
    let schedule = tasks(&instance, &honest());
    let (found, expected) = (streamed(&instance, &schedule).unwrap(), check(&instance, &schedule).unwrap());
    assert_eq!(found.metrics, expected.metrics);
    assert_eq!(
        (found.cost, found.failed, found.rows, found.tasks),
        (expected.cost, expected.failed, expected.rows, expected.tasks)
    );
}

#[test]
fn the_stream_refuses_all_that_the_whole_refuses() {
    let changes: [fn(&mut Run); 8] = [
        |run| run.start -= 1.0,
        |run| run.start += 1.0,
        |run| run.end += 3.0,
        |run| run.first += 1,
        |run| run.places = vec![(1, 2)],
        |run| run.places = vec![(3, 2)],
        |run| run.attempt = 1,
        |run| run.phase = "a/a/map",
    ];
    let instance = pair();
    let mut refused = 0;
    for row in 0..4 {
        for change in changes {
            let mut runs = honest();
            change(&mut runs[row]);
            if runs.iter().any(|run| run.start < 0.0) {
                continue;
            }
            let schedule = tasks(&instance, &runs);
            let (found, expected) = (streamed(&instance, &schedule), check(&instance, &schedule));
            assert_eq!(found.is_err(), expected.is_err(), "row {row}: {found:?}, {expected:?}");
            refused += usize::from(found.is_err());
        }
        let mut runs = honest();
        runs.remove(row);
        assert!(streamed(&instance, &tasks(&instance, &runs)).is_err(), "without row {row}");
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn claims_of_the_whole_are_held_to_the_flows() {
    let instance = pair();
    let honest = tasks(&instance, &honest());
    let kind = |change: fn(&mut Schedule)| {
        let mut schedule = honest.clone();
        change(&mut schedule);
        streamed(&instance, &schedule).unwrap_err().kind()
    };
    assert_eq!(kind(|schedule| schedule.cost = Some(49.0)), "cost");
    assert_eq!(kind(|schedule| schedule.metrics = vec![("makespan".into(), 21.0)]), "metric");
    assert_eq!(kind(|schedule| schedule.flows[1].completion = Some(14.0)), "completion");
    assert_eq!(kind(|schedule| schedule.flows.truncate(1)), "flow-missing");
    assert_eq!(kind(|schedule| schedule.flows.push(schedule.flows[0])), "flow-twice");
}

#[test]
fn minima_that_are_promised_need_the_whole() {
    let mut flow = flow("a", uniform(4, 10.0), None);
    flow.jobs[0].min_slots.map = Some(1);
    let instance = instance(two_by_two(), vec![FlowDraft { release: 0.0, ..flow }]);
    let mut head = tasks(&Instance::new(&Draft { machines: two_by_two(), ..Draft::default() }).unwrap(), &[]);
    let arrive = |head: &Schedule| {
        let mut stream = OpenStream::new(&instance, head).unwrap();
        stream.arrive(instance.excerpt(slackline_model::FlowId(0)))
    };
    assert!(arrive(&head).is_ok());
    head.minima = true;
    assert_eq!(arrive(&head), Err(NotByStream::Minima { flow: "a".into() }));
}
