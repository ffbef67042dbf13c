//! Workloads for Hadoop's Scheduler Load Simulator (SLS) as `-tracetype SYNTH` takes them: kinds of jobs to be drawn.
//!
//! SYNTH has no jobs of its own: it draws as many as it is told from workloads by their weights. Here jobs of the same queue and
//! user, with as many tasks of the same lengths, are a workload of one class, whose weight is how many there are and which
//! are submitted in the seconds in which those were. So what is drawn has the trace's kinds, lengths and times, in the mean as
//! often as the trace; with one kind that is submitted at one time it is the trace.
//!
//! Lengths are the mean of a phase in milliseconds, with its standard deviation where tasks differ. Each container is SLS's
//! default, 1,024 MB and a core. How many slots a node has is said in `sls-runner.xml`, not in the trace.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, PhaseDraft, TasksDraft};

use super::Exported;

/// Memory and cores of a container: SLS's defaults.
const CONTAINER_MB: u32 = 1024;
const CONTAINER_CORES: u32 = 1;

/// What work without a number of tasks is cut into, seconds: as a simulation of ours does.
const GRAIN: f64 = 10.0;

/// Priorities of requests, as SLS has them for traces of MapReduce.
const MAP_PRIORITY: u32 = 20;
const REDUCE_PRIORITY: u32 = 10;

/// Queue and user of flows that have none.
const NONE: &str = "default";

#[derive(Serialize)]
struct Trace {
    description: &'static str,
    num_nodes: u64,
    nodes_per_rack: u64,
    num_jobs: u32,
    rand_seed: u32,
    workloads: Vec<Workload>,
}

#[derive(Serialize)]
struct Workload {
    #[serde(rename = "workload_name")]
    name: String,
    #[serde(rename = "workload_weight")]
    weight: f64,
    #[serde(rename = "queue_name")]
    queue: String,
    job_classes: [Class; 1],
    time_distribution: Vec<Moment>,
}

#[derive(Serialize)]
struct Class {
    #[serde(rename = "class_name")]
    name: String,
    #[serde(rename = "user_name")]
    user: String,
    #[serde(rename = "class_weight")]
    weight: f64,
    #[serde(rename = "type")]
    kind: &'static str,
    deadline_factor: Sample,
    duration: Sample,
    reservation: Sample,
    tasks: Vec<Tasks>,
}

#[derive(Serialize)]
struct Tasks {
    #[serde(rename = "type")]
    kind: &'static str,
    priority: u32,
    count: Sample,
    time: Sample,
    max_memory: Sample,
    max_vcores: Sample,
}

/// A value, and its standard deviation if it has one.
#[derive(Serialize)]
struct Sample {
    val: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    std: Option<f64>,
}

/// The seconds from here to the next, and how likely a job is submitted in them.
#[derive(Serialize)]
struct Moment {
    time: u64,
    weight: u64,
}

/// How many tasks a phase has, and their mean and standard deviation in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lengths {
    tasks: u64,
    mean: u64,
    deviation: u64,
}

/// What jobs of a kind have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    queue: String,
    user: String,
    map: Option<Lengths>,
    reduce: Option<Lengths>,
}

impl From<f64> for Sample {
    fn from(val: f64) -> Self {
        Self { val, std: None }
    }
}

/// Writes a workload as a trace of SYNTH. O(tasks + jobs log jobs).
///
/// # Errors
/// A workload without machines, without jobs, or with a job of which the phases are not known before it is run.
pub fn synth(draft: &Draft) -> Result<Exported, String> {
    let nodes: u64 = draft.machines.iter().map(|machine| u64::from(machine.count)).sum();
    if nodes == 0 {
        return Err(
            "found a workload without machines, expected some: SYNTH says how many nodes there are".into()
        );
    }
    let racks: BTreeSet<_> = draft.machines.iter().filter_map(|machine| machine.rack.as_deref()).collect();
    // Submissions by kind, by the second; the kinds in the order of the workload.
    let mut kinds: Vec<(Kind, BTreeMap<u64, u64>)> = Vec::new();
    let mut places = BTreeMap::new();
    let (mut jobs, mut told) = (0u32, Told::default());
    for flow in &draft.flows {
        told.flow(flow);
        for job in &flow.jobs {
            if job.run.is_some() && job.map.is_none() && job.reduce.is_none() {
                let what = "found a job of which the tasks follow from what is run, expected tasks";
                return Err(format!("flow {:?}, job {:?}: {what}", flow.id, job.id));
            }
            let kind = Kind {
                queue: flow.pool.clone().unwrap_or_else(|| NONE.to_owned()),
                user: flow.user.clone().unwrap_or_else(|| NONE.to_owned()),
                map: job.map.as_ref().and_then(lengths),
                reduce: job.reduce.as_ref().and_then(lengths),
            };
            let place = *places.entry(kind.clone()).or_insert_with(|| {
                kinds.push((kind, BTreeMap::new()));
                kinds.len() - 1
            });
            for release in releases(flow) {
                *kinds[place].1.entry(release as u64).or_insert(0) += 1;
                jobs = jobs
                    .checked_add(1)
                    .filter(|&jobs| i32::try_from(jobs).is_ok())
                    .ok_or("found too many jobs")?;
            }
        }
    }
    if jobs == 0 {
        return Err("found a workload without jobs, expected some".into());
    }
    let remarks = told.remarks(kinds.len(), jobs);
    let trace = Trace {
        description: "made of a workload of Slackline",
        num_nodes: nodes,
        nodes_per_rack: nodes.div_ceil((racks.len() as u64).max(1)),
        num_jobs: jobs,
        rand_seed: 1,
        workloads: (1..)
            .zip(kinds)
            .map(|(number, (kind, seconds))| workload(number, kind, &seconds))
            .collect(),
    };
    let text = serde_json::to_string_pretty(&trace).map_err(|error| error.to_string())? + "\n";
    Ok(Exported { text, remarks })
}

/// The jobs of a kind: how many there are, and when they are submitted.
fn workload(number: u32, kind: Kind, seconds: &BTreeMap<u64, u64>) -> Workload {
    let name = format!("kind-{number}");
    let mut tasks: Vec<Tasks> = Vec::new();
    tasks.extend(kind.map.map(|map| of_phase("map", MAP_PRIORITY, map)));
    tasks.extend(kind.reduce.map(|reduce| of_phase("reduce", REDUCE_PRIORITY, reduce)));
    let mut time_distribution = Vec::new();
    for (&time, &weight) in seconds {
        // A moment lasts until the next one, the last one for an instant.
        let ended = time_distribution.last().map(|last: &Moment| last.time + 1);
        time_distribution.extend(ended.filter(|&ended| ended < time).map(|time| Moment { time, weight: 0 }));
        time_distribution.push(Moment { time, weight });
    }
    let length = |phase: Option<Lengths>| phase.map_or(0, |phase| phase.mean) as f64 / 1e3;
    let class = Class {
        name: name.clone(),
        user: kind.user,
        weight: 1.0,
        kind: "mapreduce",
        deadline_factor: Sample::from(1.0),
        duration: Sample::from((length(kind.map) + length(kind.reduce)).ceil().max(1.0)),
        // Below 0: none is asked for.
        reservation: Sample::from(-1.0),
        tasks,
    };
    Workload {
        name,
        weight: seconds.values().sum::<u64>() as f64,
        queue: kind.queue,
        job_classes: [class],
        time_distribution,
    }
}

fn of_phase(kind: &'static str, priority: u32, phase: Lengths) -> Tasks {
    let std = (phase.deviation > 0).then_some(phase.deviation as f64);
    Tasks {
        kind,
        priority,
        count: Sample::from(phase.tasks as f64),
        time: Sample { val: phase.mean as f64, std },
        max_memory: Sample::from(f64::from(CONTAINER_MB)),
        max_vcores: Sample::from(f64::from(CONTAINER_CORES)),
    }
}

/// When a flow is released: every time, if it comes again.
fn releases(flow: &FlowDraft) -> impl Iterator<Item = f64> + '_ {
    let (every, times) = flow.repeat.map_or((0.0, 1), |repeat| (repeat.every, repeat.times));
    (0..times).map(move |k| flow.release + every * f64::from(k))
}

/// The lengths of the tasks of a phase; none of a phase without tasks.
fn lengths(phase: &PhaseDraft) -> Option<Lengths> {
    let groups: Vec<(u64, f64)> = match &phase.tasks {
        &TasksDraft::Uniform { tasks, seconds } => vec![(u64::from(tasks), seconds)],
        TasksDraft::Each(seconds) => seconds.iter().map(|&seconds| (1, seconds)).collect(),
        TasksDraft::Splits(splits) => {
            splits.iter().map(|split| (u64::from(split.count), split.seconds)).collect()
        }
        &TasksDraft::Work { work, tasks } => {
            let tasks = tasks.map_or_else(|| (work / GRAIN).ceil().max(1.0) as u64, u64::from);
            vec![(tasks, work / tasks.max(1) as f64)]
        }
    };
    let tasks: u64 = groups.iter().map(|&(n, _)| n).sum();
    if tasks == 0 {
        return None;
    }
    let over_all = |of: &dyn Fn(f64) -> f64| {
        groups.iter().map(|&(n, seconds)| n as f64 * of(seconds)).sum::<f64>() / tasks as f64
    };
    let mean = over_all(&|seconds| seconds);
    let deviation = over_all(&|seconds| (seconds - mean).powi(2)).sqrt();
    let millis = |seconds: f64| (seconds * 1e3).round() as u64;
    // SLS wants tasks to take some time.
    Some(Lengths { tasks, mean: millis(mean).max(1), deviation: millis(deviation) })
}

/// What SYNTH cannot say.
#[derive(Default)]
struct Told {
    of_several: u32,
    deadlines: u32,
    priorities: u32,
}

impl Told {
    fn flow(&mut self, flow: &FlowDraft) {
        self.of_several += u32::from(flow.jobs.len() > 1);
        self.deadlines += u32::from(flow.deadline.is_some());
        self.priorities += u32::from(flow.priority.is_some());
    }

    fn remarks(self, kinds: usize, jobs: u32) -> Vec<String> {
        let flows = |n: u32, what: &str| {
            let s = if n == 1 { "" } else { "s" };
            (n > 0).then(|| format!("{n} flow{s} {what}, which SYNTH cannot say: left out"))
        };
        let mut remarks: Vec<String> = [
            flows(self.of_several, "of several jobs: what comes after what, all are submitted with the flow"),
            flows(self.deadlines, "with a deadline"),
            flows(self.priorities, "with a priority"),
        ]
        .into_iter()
        .flatten()
        .collect();
        remarks.push(format!(
            "{jobs} jobs of {kinds} kinds: SLS draws as many by their weights, not each of them once"
        ));
        remarks
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use slackline_model::Draft;

    use super::super::Exported;
    use super::synth;
    use crate::import::read_workload;
    use crate::options::ImportOptions;

    fn draft(text: &str) -> Draft {
        read_workload("w.toml", text.as_bytes(), None, &ImportOptions::default()).unwrap().draft
    }

    const CLUSTER: &str = "slackline = 1\n[[cluster.machines]]\nname = \"a\"\ncount = 5\nslots = 2\nrack = \"r1\"\n\
                           [[cluster.machines]]\nname = \"b\"\ncount = 2\nslots = 2\nrack = \"r2\"\n";

    #[test]
    fn jobs_of_a_kind_are_a_workload_that_is_submitted_when_they_were() {
        let flow = |id: &str, release: f64, rest: &str| {
            format!("[[flows]]\nid = \"{id}\"\nrelease = {release}\n{rest}\n")
        };
        let small =
            "user = \"ann\"\npool = \"etl\"\njobs = [{ id = \"j\", map = { tasks = 4, seconds = 2.5 } }]";
        let spread = "repeat = { every = 60.0, times = 2 }\njobs = [{ id = \"j\", map = { seconds = [1.0, 3.0] }, \
                      reduce = { work = 25.0 } }]";
        let text = format!(
            "{CLUSTER}[[pools]]\nid = \"etl\"\n{}{}{}{}",
            flow("a", 3.0, small),
            flow("b", 3.9, small),
            flow("c", 0.0, spread),
            flow("d", 4.0, small)
        );
        let Exported { text, remarks } = synth(&draft(&text)).unwrap();
        let trace: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&trace["num_nodes"], &trace["nodes_per_rack"], &trace["num_jobs"]),
            (&7.into(), &4.into(), &5.into())
        );
        let [first, second] = trace["workloads"].as_array().unwrap().as_slice() else { panic!("{trace}") };
        assert_eq!((&first["queue_name"], &first["workload_weight"]), (&"etl".into(), &3.0.into()));
        // Two in second 3, one in second 4, none later.
        assert_eq!(
            first["time_distribution"],
            serde_json::json!([{"time": 3, "weight": 2}, {"time": 4, "weight": 1}])
        );
        let class = &first["job_classes"][0];
        assert_eq!((&class["user_name"], &class["type"]), (&"ann".into(), &"mapreduce".into()));
        let map = &class["tasks"][0];
        assert_eq!((&map["count"]["val"], &map["time"]), (&4.0.into(), &serde_json::json!({"val": 2500.0})));
        assert_eq!(
            second["time_distribution"],
            serde_json::json!([{"time": 0, "weight": 1}, {"time": 1, "weight": 0}, {"time": 60, "weight": 1}])
        );
        let tasks = &second["job_classes"][0]["tasks"];
        assert_eq!(tasks[0]["time"], serde_json::json!({"val": 2000.0, "std": 1000.0}));
        assert_eq!((&tasks[1]["type"], &tasks[1]["count"]["val"]), (&"reduce".into(), &3.0.into()));
        assert_eq!(remarks, ["5 jobs of 2 kinds: SLS draws as many by their weights, not each of them once"]);
    }

    #[test]
    fn what_cannot_be_said_is_counted_or_refused() {
        let flow = "[[flows]]\nid = \"a\"\ndeadline = 9.0\npriority = 3\njobs = [{ id = \"j\", map = { tasks = 1, seconds = 1.0 } }, \
                    { id = \"k\", after = [\"j\"], map = { tasks = 1, seconds = 1.0 } }]\n";
        let Exported { remarks, .. } = synth(&draft(&format!("{CLUSTER}{flow}"))).unwrap();
        assert_eq!(remarks.len(), 4, "{remarks:?}");
        assert!(remarks[0].starts_with("1 flow of several jobs: "), "{remarks:?}");
        let error = |text: &str| synth(&draft(text)).unwrap_err();
        assert!(error(&format!("slackline = 1\n{flow}")).contains("without machines"));
        assert!(error(CLUSTER).contains("without jobs"));
        let run = "[[flows]]\nid = \"a\"\njobs = [{ id = \"j\", run = { mapper = \"cat\", inputs = [\"i\"], output = \"o\" } }]\n";
        assert!(error(&format!("{CLUSTER}{run}")).starts_with("flow \"a\", job \"j\": found a job"));
    }
}
