//! Documents of submissions that have not started, with the flows and deadlines of their files.

use slackline_model::WallTime;
use slackline_model::draft::{FlowDraft, JobDraft};

use crate::api::{Flow, FlowStatus, Job, Phase};
use crate::service::flow_file::flows;
use crate::state::PendingSubmission;
use crate::state::record::FlowChange;
use crate::timestamp;

impl PendingSubmission {
    /// The flows of the submission at a moment, without task counts, which need the inputs. Empty if the file
    /// cannot be read any more; the start of the submission reports that error.
    pub fn flows(&self, now: WallTime) -> Vec<Flow> {
        let draft = self.wanted.draft();
        draft.map(|draft| flows(&draft).map(|flow| self.flow(&flow, now)).collect()).unwrap_or_default()
    }

    fn flow(&self, flow: &FlowDraft, now: WallTime) -> Flow {
        let at = |seconds: f64| self.wanted.since.after_seconds(seconds);
        let FlowChange { deadline, weight, .. } = FlowChange::of(&self.changes, &flow.id);
        let deadline = deadline.or(flow.deadline.map(at));
        let is_held = self.held || self.held_flows.contains(&flow.id);
        Flow {
            flow: flow.id.clone(),
            state: if is_held { FlowStatus::Held } else { FlowStatus::Waiting },
            release: timestamp(at(flow.release)),
            deadline: deadline.map(timestamp),
            weight: weight.unwrap_or(flow.weight),
            late: deadline.filter(|&deadline| now > deadline).map(|_| true),
            jobs: flow.jobs.iter().map(job).collect(),
            ..Flow::default()
        }
    }
}

/// A job, with its explicit dependencies and the jobs whose output it reads.
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
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use crate::state::record::{Changes, SubmissionSpec};

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

    fn pending() -> PendingSubmission {
        let submit = Submit { document: FILE.to_owned(), ..Submit::default() };
        let since = WallTime(100 * SECOND);
        let wanted = Arc::new(SubmissionSpec::new(submit, "night".to_owned(), "anna".to_owned(), since));
        PendingSubmission { wanted, changes: Changes::new(), held: false, held_flows: BTreeSet::new() }
    }

    #[test]
    fn flows_and_jobs_of_a_file_are_shown_before_anything_is_known_of_their_tasks() {
        let flows = pending().flows(WallTime(200 * SECOND));
        let [load, ship] = flows.as_slice() else { panic!("{flows:#?}") };
        assert_eq!((load.flow.as_str(), load.weight, load.tasks), ("load", 2.0, 0));
        assert_eq!((load.state, load.late), (FlowStatus::Waiting, None));
        assert_eq!(load.deadline, Some(timestamp(WallTime(3_700 * SECOND))));
        assert_eq!((ship.release, ship.deadline), (timestamp(WallTime(700 * SECOND)), None));
        assert_eq!([&load.jobs[1].after, &ship.jobs[0].after], [&["a".to_owned()], &["load/b".to_owned()]]);
        assert_eq!(pending().flows(WallTime(3_701 * SECOND))[0].late, Some(true));
    }

    #[test]
    fn changes_and_holds_of_pending_flows_are_shown() {
        let deadline = Some(WallTime(5_000 * SECOND));
        let all = (None, FlowChange { deadline, ..FlowChange::default() });
        let own = (Some("ship".to_owned()), FlowChange { weight: Some(7.0), ..FlowChange::default() });
        let held_flows = BTreeSet::from(["load".to_owned()]);
        let shown =
            PendingSubmission { changes: [all, own].into(), held_flows, ..pending() }.flows(WallTime(0));
        assert_eq!(shown[0].deadline, deadline.map(timestamp));
        assert_eq!((shown[1].deadline, shown[1].weight), (deadline.map(timestamp), 7.0));
        assert_eq!([shown[0].state, shown[1].state], [FlowStatus::Held, FlowStatus::Waiting]);
        let mut broken = pending();
        Arc::make_mut(&mut broken.wanted).submit = Submit::default();
        assert_eq!(broken.flows(WallTime(0)), []);
    }
}
