//! Submissions that have not begun, as they are shown: their flows and deadlines are read from their files when somebody looks, so
//! that those that wait take no room.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::draft::{FlowDraft, JobDraft};

use crate::api::{Flow, FlowState, Job, Phase};
use crate::flow_file::{draft, flows};
use crate::record::{Changed, Changes, Wanted};
use crate::{Moment, after, timestamp};

/// A submission that has not begun.
#[derive(Clone, Debug, PartialEq)]
pub struct Unopened {
    pub wanted: Wanted,
    /// What was changed of it since.
    pub changes: Changes,
    /// Whether it is held.
    pub held: bool,
    /// Flows that are held by themselves, of one that had begun before.
    pub held_flows: BTreeSet<String>,
}

impl Unopened {
    /// Its flows at a moment. How many tasks they have is known when their inputs are looked up; none if the file cannot be read any
    /// more, which is said when it begins.
    pub fn flows(&self, now: Moment) -> Vec<Flow> {
        let draft = draft(&self.wanted.submit, self.wanted.since);
        draft.map(|draft| flows(&draft).map(|flow| self.flow(&flow, now)).collect()).unwrap_or_default()
    }

    fn flow(&self, flow: &FlowDraft, now: Moment) -> Flow {
        let at = |seconds: f64| after(self.wanted.since, seconds);
        let Changed { deadline, weight, .. } = changed(&self.changes, &flow.id);
        let deadline = deadline.or(flow.deadline.map(at));
        let is_held = self.held || self.held_flows.contains(&flow.id);
        Flow {
            flow: flow.id.clone(),
            state: if is_held { FlowState::Held } else { FlowState::Waiting },
            release: timestamp(at(flow.release)),
            deadline: deadline.map(timestamp),
            weight: weight.unwrap_or(flow.weight),
            late: deadline.filter(|&deadline| now > deadline).map(|_| true),
            jobs: flow.jobs.iter().map(job).collect(),
            ..Flow::default()
        }
    }
}

/// What was changed of a flow.
pub(crate) fn changed(changes: &BTreeMap<Option<String>, Changed>, flow: &str) -> Changed {
    let [all, own] = [None, Some(flow.to_owned())].map(|key| changes.get(&key).copied().unwrap_or_default());
    Changed {
        deadline: own.deadline.or(all.deadline),
        weight: own.weight.or(all.weight),
        priority: own.priority.or(all.priority),
    }
}

/// A job, after those that it names and those that it reads from.
fn job(job: &JobDraft) -> Job {
    let inputs = job.run.iter().flat_map(|run| &run.inputs);
    let read = inputs.filter_map(|input| input.strip_prefix('@')).map(str::to_owned);
    let mut after = job.after.clone();
    for name in read {
        if !after.contains(&name) {
            after.push(name);
        }
    }
    Job { job: job.id.clone(), after, maps: Phase::default(), reduces: Phase::default(), failed_attempts: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND;
    use crate::api::Submit;

    const FILE: &str = r#"
slackline = 1
[[flows]]
id = "load"
deadline = "1h"
weight = 2.0
jobs = [
  { id = "a", run = { mapper = "cat", inputs = ["in/*.txt"], output = "out/a" } },
  { id = "b", run = { mapper = "cat", inputs = ["@a"], output = "out/b" } },
]
[[flows]]
id = "ship"
release = "10m"
jobs = [{ id = "c", run = { mapper = "cat", inputs = ["@load/b"], output = "out/c" } }]
"#;

    fn unopened() -> Unopened {
        let submit = Submit { document: FILE.to_owned(), ..Submit::default() };
        let (name, user) = ("night".to_owned(), "anna".to_owned());
        let wanted = Wanted { submit, name, user, since: 100 * SECOND, recurrence: None, due: None };
        Unopened { wanted, changes: Changes::new(), held: false, held_flows: BTreeSet::new() }
    }

    #[test]
    fn flows_and_jobs_of_a_file_are_shown_before_anything_is_known_of_their_tasks() {
        let flows = unopened().flows(200 * SECOND);
        let [load, ship] = flows.as_slice() else { panic!("{flows:#?}") };
        assert_eq!((load.flow.as_str(), load.weight, load.tasks), ("load", 2.0, 0));
        assert_eq!((load.state, load.late), (FlowState::Waiting, None));
        assert_eq!(load.deadline, Some(timestamp(3_700 * SECOND)));
        assert_eq!((ship.release, ship.deadline), (timestamp(700 * SECOND), None));
        assert_eq!([&load.jobs[1].after, &ship.jobs[0].after], [&["a".to_owned()], &["load/b".to_owned()]]);
        assert_eq!(unopened().flows(3_701 * SECOND)[0].late, Some(true));
    }

    #[test]
    fn what_was_changed_and_held_meanwhile_is_shown() {
        let deadline = Some(5_000 * SECOND);
        let all = (None, Changed { deadline, ..Changed::default() });
        let own = (Some("ship".to_owned()), Changed { weight: Some(7.0), ..Changed::default() });
        let held_flows = BTreeSet::from(["load".to_owned()]);
        let shown = Unopened { changes: [all, own].into(), held_flows, ..unopened() }.flows(0);
        assert_eq!(shown[0].deadline, deadline.map(timestamp));
        assert_eq!((shown[1].deadline, shown[1].weight), (deadline.map(timestamp), 7.0));
        assert_eq!([shown[0].state, shown[1].state], [FlowState::Held, FlowState::Waiting]);
        let broken =
            Unopened { wanted: Wanted { submit: Submit::default(), ..unopened().wanted }, ..unopened() };
        assert_eq!(broken.flows(0), []);
    }
}
