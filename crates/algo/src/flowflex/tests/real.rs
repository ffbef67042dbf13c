//! Tests plans of recorded workflows: the instances of WfCommons.

use std::path::Path;

use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, Draft, MachineDraft};
use slackline_trace::{ImportOptions, read_workload};

use super::*;

/// Jobs of an instance up to which all metrics are searched; larger ones are planned by the rules.
const JOBS_MANY: usize = 300;

/// All instances as one workload each, by name.
fn recorded(folder: &Path) -> Vec<(String, Draft)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "json"));
    files.sort();
    let draft = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(path).unwrap();
        (name.clone(), read_workload(&name, &bytes, None, &ImportOptions::default()).unwrap().draft)
    };
    files.iter().map(draft).collect()
}

/// The flow twice, the second later and due, on eight slots.
fn workload(mut draft: Draft) -> Draft {
    let mut second = draft.flows[0].clone();
    second.id.push_str(" again");
    second.release = 10.0;
    second.weight = 2.0;
    draft.flows.push(second);
    draft.machines = vec![MachineDraft {
        name: "node".into(),
        count: 4,
        speed: 1.0,
        slots: Slots::Generic(2),
        rack: None,
    }];
    let alone: Vec<f64> = {
        let instance = Instance::new(&draft).unwrap();
        slackline_relax::per_flow(&instance).iter().map(|bound| bound.earliest).collect()
    };
    for (flow, alone) in draft.flows.iter_mut().zip(alone) {
        flow.deadline = Some(1.2 * alone);
        flow.cost = None;
    }
    draft
}

#[test]
fn every_recorded_workflow_is_planned_for_every_metric() {
    let Some(folder) = crate::real_data::real("wfcommons") else { return };
    let recorded = recorded(&folder);
    assert!(recorded.len() >= 12);
    for (name, draft) in recorded {
        let draft = workload(draft);
        let jobs = draft.flows[0].jobs.len();
        let config =
            if jobs > JOBS_MANY { Config::quick() } else { Config { steps: 20_000, ..Config::thorough() } };
        for metric in Metric::ALL {
            for combine in [Combine::Sum, Combine::Max] {
                let mut draft = draft.clone();
                for flow in &mut draft.flows {
                    let due = flow.deadline.unwrap();
                    flow.cost = match metric {
                        Metric::Sla => Some(CostDraft::Steps(vec![(due, 1.0), (1.5 * due, 3.0)])),
                        Metric::Piecewise => Some(CostDraft::Piecewise {
                            points: vec![(due, 0.0), (2.0 * due, 4.0)],
                            slope: None,
                        }),
                        _ => None,
                    };
                }
                draft.objective = Objective::new(metric, combine);
                let instance = Instance::new(&draft).unwrap();
                let plan = checked(&instance, &config);
                assert!(plan.bound <= plan.cost + 1e-9 * plan.cost.abs(), "{name} {metric}");
            }
        }
    }
}
