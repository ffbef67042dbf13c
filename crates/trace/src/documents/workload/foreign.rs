//! Checks inputs from jobs of other flows: `@flow/job`.
//!
//! A flow that has such an input arrives when the jobs that it names are done. That is a matter of the engine
//! that runs it: in the model flows are independent of each other. So flows may not wait for each other in a
//! cycle, even if their jobs could be put in an order.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::Draft;
use slackline_model::draft::FlowDraft;
use slackline_model::names::unknown;

/// The place of a fault in a document, and the fault.
type Fault = (String, String);

/// The faults of inputs from other flows: unknown flows and jobs, and cycles. O(jobs · log flows).
pub(super) fn faults(draft: &Draft) -> Vec<Fault> {
    if draft.flows.iter().all(|flow| flow.foreign_inputs().next().is_none()) {
        return Vec::new();
    }
    let flows: BTreeMap<&str, &FlowDraft> = draft.flows.iter().map(|flow| (flow.id.as_str(), flow)).collect();
    let mut faults = Vec::new();
    for (f, reader) in draft.flows.iter().enumerate() {
        for (k, job) in reader.jobs.iter().enumerate() {
            for (at, input) in job.run.iter().flat_map(|run| &run.inputs).enumerate() {
                let Some((flow, job)) = input.strip_prefix('@').and_then(|name| name.rsplit_once('/')) else {
                    continue;
                };
                let place = || format!("flows[{f}].jobs[{k}].run.inputs[{at}]");
                faults.extend(fault_of_input(&flows, reader, flow, job).map(|what| (place(), what)));
            }
        }
    }
    if faults.is_empty() {
        faults.extend(cycle(draft, &flows));
    }
    faults
}

/// The fault of an input of a flow that names a flow and a job of it.
fn fault_of_input(
    flows: &BTreeMap<&str, &FlowDraft>,
    reader: &FlowDraft,
    flow: &str,
    job: &str,
) -> Option<String> {
    if flow == reader.id {
        return Some(format!("found a job of the same flow, expected \"@{job}\""));
    }
    let Some(found) = flows.get(flow) else {
        let known: Vec<&str> = flows.keys().copied().collect();
        return Some(unknown("flow", flow, &known));
    };
    let Some(job) = found.jobs.iter().find(|known| known.id == job) else {
        let known: Vec<&str> = found.jobs.iter().map(|job| job.id.as_str()).collect();
        return Some(unknown(&format!("job of flow {flow:?}:"), job, &known));
    };
    if job.run.is_none() {
        return Some(format!(
            "found job {:?} of flow {flow:?}, which has no run section, so it has no output to read",
            job.id
        ));
    }
    let recurring = [*found, reader].into_iter().find(|flow| flow.repeat.is_some())?;
    Some(format!(
        "found flow {:?}, which recurs, expected flows that run once: an input cannot name one of several runs",
        recurring.id
    ))
}

/// The first cycle: a flow that waits for itself through others.
fn cycle(draft: &Draft, flows: &BTreeMap<&str, &FlowDraft>) -> Option<Fault> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for flow in &draft.flows {
        // The flows from the first to the current one, each with the flows it waits for that are not visited.
        let mut path: Vec<(&str, Vec<&str>)> = vec![(&flow.id, inputs_from(flow))];
        while let Some((at, left)) = path.last_mut() {
            let Some(next) = left.pop() else {
                done.insert(at);
                path.pop();
                continue;
            };
            if let Some(begin) = path.iter().position(|(known, _)| *known == next) {
                let mut names: Vec<&str> = path[begin..].iter().map(|(name, _)| *name).collect();
                names.push(next);
                let index = draft.flows.iter().position(|flow| flow.id == next)?;
                let what = format!("found flows that wait for each other: {}", names.join(" for "));
                return Some((format!("flows[{index}]"), what));
            }
            if !done.contains(next) {
                path.push((next, flows.get(next).copied().map_or_else(Vec::new, inputs_from)));
            }
        }
    }
    None
}

fn inputs_from(flow: &FlowDraft) -> Vec<&str> {
    flow.foreign_inputs().map(|(flow, _)| flow).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Format, ImportOptions, read_workload, write_workload};

    /// Flows of one job `j` each, with these ids, inputs and more keys of the flow.
    fn document(flows: &[(&str, &str, &str)]) -> String {
        let flow = |(id, inputs, more): &(&str, &str, &str)| {
            format!(
                "[[flows]]\nid = '{id}'\n{more}\njobs = [{{ id = 'j', run = {{ command = 'cat', inputs = [{inputs}], \
                 output = 'out/{id}' }} }}]\n"
            )
        };
        format!("slackline = 1\n{}", flows.iter().map(flow).collect::<String>())
    }

    fn error(flows: &[(&str, &str, &str)]) -> String {
        let read = read_workload("w.toml", document(flows).as_bytes(), None, &ImportOptions::default());
        read.unwrap_err().to_string()
    }

    #[test]
    fn the_output_of_a_job_of_another_flow_is_an_input() {
        let text = document(&[("late", "'@early/j', 'x'", ""), ("early", "'y'", "")]);
        let read = |name: &str, text: &str| {
            read_workload(name, text.as_bytes(), None, &ImportOptions::default()).unwrap().draft
        };
        let draft = read("w.toml", &text);
        assert_eq!(draft.flows[0].foreign_inputs().collect::<Vec<_>>(), [("early", "j")]);
        assert!(draft.flows[0].jobs[0].after.is_empty(), "it is no job of the flow");
        assert_eq!(read("w.json", &write_workload(&draft, Format::Json)), draft);
    }

    #[test]
    fn flows_and_jobs_that_there_are_not_are_refused_where_they_are_named() {
        let two = |inputs: &'static str| error(&[("late", inputs, ""), ("early", "'y'", "")]);
        let found = two("'x', '@erly/j'");
        assert!(
            found
                .contains("flows[0].jobs[0].run.inputs[1]: found flow \"erly\", expected one of early, late")
        );
        assert!(found.contains("did you mean \"early\"?"), "{found}");
        assert!(two("'@early/k'").contains("found job of flow \"early\": \"k\", expected j"));
        assert!(two("'@late/j'").contains("found a job of the same flow, expected \"@j\""));
        assert!(two("'@early/'").contains("found \"@early/\", expected a job of another flow as @flow/job"));
        assert!(two("'@/j'").contains("expected a job of another flow as @flow/job"));
        let recurs =
            error(&[("late", "'@early/j'", ""), ("early", "'y'", "repeat = { every = 9, times = 2 }")]);
        assert!(recurs.contains("flow \"early\", which recurs, expected flows that run once"), "{recurs}");
        let none = "slackline = 1\n[[flows]]\nid = 'b'\njobs = [{ id = 'j', map = { tasks = 1, seconds = 1 } }]\n\
                    [[flows]]\nid = 'a'\njobs = [{ id = 'j', run = { command = 'c', inputs = ['@b/j'], output = 'o' } }]\n";
        let none = read_workload("w.toml", none.as_bytes(), None, &ImportOptions::default()).unwrap_err();
        assert!(none.to_string().contains("which has no run section, so it has no output to read"), "{none}");
    }

    #[test]
    fn flows_that_wait_for_each_other_are_refused() {
        let found =
            error(&[("a", "'@b/j'", ""), ("b", "'@c/j', '@d/j'", ""), ("c", "'@a/j'", ""), ("d", "", "")]);
        assert!(found.contains("flows that wait for each other: a for b for c for a"), "{found}");
        let diamond = [("a", "'@b/j', '@c/j'", ""), ("b", "'@d/j'", ""), ("c", "'@d/j'", ""), ("d", "", "")];
        assert!(
            read_workload("w.toml", document(&diamond).as_bytes(), None, &ImportOptions::default()).is_ok()
        );
    }

    #[test]
    fn a_workload_in_lines_takes_no_input_from_another_flow() {
        let text = "{\"slackline\": 1}\n{\"id\": \"a\", \"jobs\": [{\"id\": \"j\", \"run\": \
                    {\"command\": \"c\", \"inputs\": [\"@b/j\"], \"output\": \"o\"}}]}\n";
        let found = read_workload("w.jsonl", text.as_bytes(), None, &ImportOptions::default()).unwrap_err();
        assert!(found.to_string().contains("which a workload in lines cannot have"), "{found}");
    }
}
