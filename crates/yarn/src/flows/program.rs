//! A job that is a program which submits its applications itself: the state of its applications and tasks.
//!
//! A program may submit several applications, one after the other or in parallel. Their containers run the
//! planned tasks first; the counts of the AMs tell which containers finished a task.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use slackline_executor::spec::job_plan::JobPlan;
use slackline_model::{PhaseKind, Time};

use crate::cluster::am_polling::PollSchedule;
use crate::cluster::task_inference::{EndedContainer, Inference, KnownCounts, ReportedCounts, TaskCounter};
use crate::rest::id::{AppId, ContainerId};
use crate::rest::mapreduce::MapReduceJob;
use crate::submitter::{ProcessState, StartedProgram};

/// Lines of a failed program's output in the error message.
const LINES: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Program {
    /// Its process, once started.
    pub(super) process: Option<StartedProgram>,
    pub(super) ended: Option<ProcessState>,
    /// The names of its parts by number, once known.
    pub(super) parts: Vec<String>,
    /// Planned tasks whose end was reported to observers.
    pub(super) reported_done: BTreeSet<(PhaseKind, u32)>,
    apps: BTreeMap<AppId, ProgramApp>,
    works: BTreeMap<ContainerId, ContainerWork>,
    /// The container that runs or finished each planned task.
    by_task: BTreeMap<(PhaseKind, u32), ContainerId>,
    /// Planned tasks to run again, and the number of planned tasks of each phase that ever had a container.
    again: BTreeSet<(PhaseKind, u32)>,
    begun: [u32; 2],
}

#[derive(Debug)]
struct ProgramApp {
    counts: [TaskCounter; 2],
    /// Finished tasks by the counts.
    done: [u32; 2],
    asking: PollSchedule,
    over: Option<Result<(), String>>,
}

/// The work of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContainerWork {
    pub(super) kind: PhaseKind,
    /// The planned task; `None` for others of the program.
    pub(super) task: Option<u32>,
    pub(super) host: String,
    pub(super) since: Time,
    /// When it finished.
    pub(super) done: Option<Time>,
}

const fn at(kind: PhaseKind) -> usize {
    match kind {
        PhaseKind::Map => 0,
        PhaseKind::Reduce => 1,
    }
}

impl Program {
    /// Adds an observed application.
    pub(super) fn add(&mut self, app: AppId) {
        self.apps.entry(app).or_insert_with(|| ProgramApp {
            counts: Default::default(),
            done: [0; 2],
            asking: PollSchedule::new(),
            over: None,
        });
    }

    /// Its active applications.
    pub(super) fn live(&self) -> impl Iterator<Item = AppId> + '_ {
        self.apps.iter().filter(|(_, app)| app.over.is_none()).map(|(&id, _)| id)
    }

    /// A container started. Gives the planned task that it runs, one of `tasks`, if one is left.
    pub(super) fn container_started(
        &mut self,
        container: ContainerId,
        kind: PhaseKind,
        tasks: u32,
        host: &str,
        since: Time,
    ) -> Option<u32> {
        let again = self.again.range((kind, 0)..=(kind, u32::MAX)).next().copied();
        let task = match again {
            Some(again) => self.again.take(&again).map(|(_, task)| task),
            None => Some(self.begun[at(kind)]).filter(|&next| next < tasks),
        };
        if let Some(task) = task {
            self.begun[at(kind)] += u32::from(again.is_none());
            self.by_task.insert((kind, task), container);
        }
        self.works.insert(container, ContainerWork { kind, task, host: host.to_owned(), since, done: None });
        self.mark_changed(container.attempt.app);
        task
    }

    /// A container ended. Gives whether it finished its task, if that is known already.
    pub(super) fn container_ended(&mut self, container: ContainerId, now: Time) -> Option<bool> {
        let work = self.works.get(&container)?;
        let app = self.apps.get_mut(&container.attempt.app)?;
        if let Some(over) = &app.over {
            return Some(over.is_ok());
        }
        let ended = EndedContainer { id: container, since: work.since, at: now };
        app.counts[at(work.kind)].container_ended(ended);
        app.asking.changed = true;
        None
    }

    /// An application has changed.
    pub(super) fn mark_changed(&mut self, app: AppId) {
        if let Some(app) = self.apps.get_mut(&app) {
            app.asking.changed = true;
        }
    }

    /// Whether to poll the AM of an application now.
    pub(super) fn is_due(&mut self, app: AppId) -> bool {
        let app = self.apps.get_mut(&app).filter(|app| app.over.is_none());
        app.is_some_and(|app| app.asking.is_due(app.counts.iter().any(TaskCounter::is_open)))
    }

    /// Applies a report of an AM, or a missing one; `live` has its containers for maps and for reduces. Gives
    /// the inference for each phase.
    pub(super) fn update(
        &mut self,
        app: AppId,
        job: Option<&MapReduceJob>,
        live: [u32; 2],
    ) -> [Inference; 2] {
        let Some(app) = self.apps.get_mut(&app) else { return Default::default() };
        app.asking.record_answer(job.is_some());
        let Some(job) = job else { return Default::default() };
        let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let reported = [(job.maps_completed, job.maps_running), (job.reduces_completed, job.reduces_running)];
        std::array::from_fn(|kind| {
            let (done, running) = reported[kind];
            let counts = ReportedCounts { done: number(done), running: number(running) };
            let known_counts = KnownCounts { done: app.done[kind], live: live[kind] };
            let inference = app.counts[kind].infer(counts, known_counts);
            app.done[kind] += inference.done.len() as u32 + inference.unseen;
            inference
        })
    }

    /// An application has ended, perhaps with an error. Gives its undecided containers.
    pub(super) fn app_ended(&mut self, app: AppId, over: Result<(), String>) -> Vec<EndedContainer> {
        let Some(app) = self.apps.get_mut(&app) else { return Vec::new() };
        app.over = Some(over);
        app.counts.iter_mut().flat_map(TaskCounter::close).collect()
    }

    pub(super) fn work(&self, container: ContainerId) -> Option<&ContainerWork> {
        self.works.get(&container)
    }

    /// A container has finished its task.
    pub(super) fn mark_finished(&mut self, container: &EndedContainer) {
        if let Some(work) = self.works.get_mut(&container.id) {
            work.done = Some(container.at);
        }
    }

    /// A container has failed; another runs its task.
    pub(super) fn mark_failed(&mut self, container: ContainerId) {
        let work = self.works.remove(&container);
        if let Some((kind, task)) = work.and_then(|work| Some((work.kind, work.task?))) {
            self.by_task.remove(&(kind, task));
            self.again.insert((kind, task));
        }
    }

    /// The work that finished a planned task.
    pub(super) fn finished_work(&self, kind: PhaseKind, task: u32) -> Option<&ContainerWork> {
        self.by_task.get(&(kind, task)).and_then(|by| self.works.get(by)).filter(|work| work.done.is_some())
    }

    /// Whether the program and all its applications have succeeded.
    ///
    /// # Errors
    /// One of them failed.
    pub(super) fn result(&self) -> Result<bool, String> {
        let Some(ended) = &self.ended else { return Ok(false) };
        let failed = self.apps.iter().find_map(|(id, app)| match &app.over {
            Some(Err(message)) => Some(format!("{id} {message}")),
            _ => None,
        });
        match (ended.exit, failed) {
            (Some(0), None) => Ok(self.live().next().is_none()),
            (Some(0), Some(failed)) => Err(format!("{failed}, although the program ended with exit code 0")),
            (code, failed) => {
                let how = code.map_or("was killed".to_owned(), |code| format!("ended with exit code {code}"));
                let failed = failed.map_or(String::new(), |failed| format!(" ({failed})"));
                let lines: Vec<&str> = ended.said.trim_end().lines().collect();
                let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
                let last = if last.is_empty() { last } else { format!(":\n{last}") };
                Err(format!("the program of the jar {how}{failed}{last}"))
            }
        }
    }
}

/// The inputs of a job for its program: those that the flow file names, and the output directories of other
/// jobs. `uri` gives their names.
pub(super) fn inputs(plan: &JobPlan, jobs: &[JobPlan], uri: impl Fn(&Path) -> String) -> Vec<String> {
    let made = |input: &str| {
        let name = input.strip_prefix('@')?;
        let (flow, job) = name.rsplit_once('/').unwrap_or((&plan.flow, name));
        jobs.iter().find(|plan| plan.flow == flow && plan.job == job)
    };
    plan.named.iter().map(|input| uri(made(input).map_or(Path::new(input), |made| &made.output))).collect()
}

/// Why a program cannot be given the name of an input: some characters have a meaning in Hadoop's lists and
/// patterns. `is_pattern`: the user meant a pattern.
pub(super) fn name_problem(input: &str, is_pattern: bool) -> Option<String> {
    let pattern: &[&str] = if is_pattern { &["**", "[!"] } else { &["*", "?", "["] };
    let found = [",", "{", "}", "\\"].iter().chain(pattern).find(|text| input.contains(**text))?;
    Some(format!(
        "found {input} for a jar, expected a name without {found}, which means something else in Hadoop's lists"
    ))
}

/// An argument with the names of inputs and output filled in.
pub(super) fn fill_argument(argument: &str, inputs: &str, output: &str) -> String {
    let pieces = argument.split("{output}").map(|piece| piece.replace("{inputs}", inputs));
    pieces.collect::<Vec<_>>().join(output)
}

/// The number of a part file and its ending, such as `.gz`: `part-r-00001` of reduces, `part-m-00001` of maps
/// without reduces, `part-00001` of either by programs with the old interface.
fn part(name: &str, reducers: u32) -> Option<(u32, &str)> {
    let rest = name.strip_prefix("part-")?;
    let rest = rest.strip_prefix(if reducers > 0 { "r-" } else { "m-" }).unwrap_or(rest);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, ending) = rest.split_at(digits);
    let is_ending = ending.is_empty() || ending.starts_with('.');
    number.parse().ok().filter(|_| digits >= 5 && is_ending).map(|number| (number, ending))
}

/// The part files among the `names` in an output, by number. With an `ending` all must have it.
///
/// # Errors
/// The number of parts is not `expected`, or there are other files.
pub(super) fn part_files(
    names: impl IntoIterator<Item = String>,
    expected: u32,
    reducers: u32,
    ending: Option<&str>,
) -> Result<Vec<String>, String> {
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    let first = if reducers > 0 { "part-r-00000" } else { "part-m-00000" };
    let is_hidden = |name: &String| name.starts_with(['_', '.']);
    for name in names.into_iter().filter(|name| !is_hidden(name)) {
        let number = match (part(&name, reducers), ending) {
            (None, _) => return Err(format!("found {name} in its output, expected only {first} and so on")),
            (Some((_, other)), Some(ending)) if other != ending => {
                return Err(format!("found {name} in its output, expected {first}{ending}: see `compress`"));
            }
            (Some((number, _)), _) => number,
        };
        if let Some(other) = found.insert(number, name.clone()) {
            return Err(format!("found {other} and {name} in its output, expected one part of each number"));
        }
    }
    if found.len() == expected as usize && found.keys().copied().eq(0..expected) {
        return Ok(found.into_values().collect());
    }
    let names: Vec<&str> = found.values().map(String::as_str).take(3).collect();
    let some = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let (found, s) = (found.len(), if expected == 1 { "" } else { "s" });
    let why = if reducers > 0 { "`reducers`" } else { "one for each map of the option split" };
    Err(format!("found {found} part files in its output{some}, expected {expected} part{s} from 0 on: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::id::AppAttemptId;

    const APP: AppId = AppId { cluster: 1, number: 1 };

    fn container(number: u64) -> ContainerId {
        ContainerId { attempt: AppAttemptId { app: APP, number: 1 }, epoch: 0, number }
    }

    fn job(text: &str) -> MapReduceJob {
        serde_json::from_str(&format!(r#"{{"id":"job_1_0001",{text}}}"#)).unwrap()
    }

    fn exit(code: i32, said: &str) -> ProcessState {
        ProcessState { running: false, exit: Some(code), said: said.to_owned() }
    }

    #[test]
    fn containers_do_the_tasks_that_were_planned_and_those_that_fail_leave_theirs_to_others() {
        let mut program = Program::default();
        program.add(APP);
        let began = |program: &mut Program, n| {
            program.container_started(container(n), PhaseKind::Map, 2, "a", Time(n))
        };
        let tasks = [2, 3, 4].map(|n| began(&mut program, n));
        assert_eq!(tasks, [Some(0), Some(1), None]);
        assert_eq!(program.container_ended(container(2), Time(9)), None);
        assert!(program.is_due(APP));
        let [maps, _] = program.update(APP, Some(&job(r#""mapsCompleted":1,"mapsRunning":2"#)), [2, 0]);
        assert_eq!(maps.done.iter().map(|ended| ended.id).collect::<Vec<_>>(), [container(2)]);
        program.mark_finished(&maps.done[0]);
        let made = program.finished_work(PhaseKind::Map, 0).unwrap();
        assert_eq!((made.since, made.done), (Time(2), Some(Time(9))));
        program.mark_failed(container(3));
        assert_eq!(began(&mut program, 5), Some(1));
        // What ends with its application has done its task if that has.
        program.container_ended(container(5), Time(12));
        assert_eq!(
            program.app_ended(APP, Ok(())).iter().map(|ended| ended.id).collect::<Vec<_>>(),
            [container(5)]
        );
        assert_eq!(program.container_ended(container(4), Time(12)), Some(true));
        assert!(!program.is_due(APP));
    }

    #[test]
    fn it_is_done_when_it_has_ended_well_and_all_its_applications_have() {
        let mut program = Program::default();
        program.add(APP);
        assert_eq!(program.result(), Ok(false));
        program.ended = Some(exit(0, ""));
        assert_eq!(program.result(), Ok(false), "its application runs");
        program.app_ended(APP, Ok(()));
        assert_eq!(program.result(), Ok(true));
        program.app_ended(APP, Err("failed: a task failed".to_owned()));
        let error = program.result().unwrap_err();
        assert_eq!(
            error,
            "application_1_0001 failed: a task failed, although the program ended with exit code 0"
        );
        let lines: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
        program.ended = Some(exit(3, &format!("{}\n", lines.join("\n"))));
        let error = program.result().unwrap_err();
        let expected = "the program of the jar ended with exit code 3 (application_1_0001 failed: a task failed):\nline 10\n";
        assert!(error.starts_with(expected) && error.ends_with("\nline 19"), "{error}");
    }

    #[test]
    fn arguments_name_what_is_read_and_written() {
        let filled = |argument| fill_argument(argument, "file:///a,file:///{output}", "file:///out");
        assert_eq!(filled("{inputs}"), "file:///a,file:///{output}");
        assert_eq!(filled("-o={output}/x:{output}"), "-o=file:///out/x:file:///out");
        assert_eq!(filled("{{x}} {input} ${output"), "{{x}} {input} ${output");
        for (input, is_pattern, is_fine) in [
            ("hdfs://n:9/a b#c", false, true),
            ("/in/*.g?", true, true),
            ("/in/a*", false, false),
            ("/in/[a]", false, false),
            ("/in/[ab]", true, true),
            ("/in/[!ab]", true, false),
            ("/in/**/a", true, false),
            ("/in/a,b", false, false),
            ("/in/{a}*", true, false),
        ] {
            assert_eq!(name_problem(input, is_pattern).is_none(), is_fine, "{input}");
        }
        assert!(
            name_problem("/a,b", false).unwrap().contains("found /a,b for a jar, expected a name without ,")
        );
    }

    #[test]
    fn parts_are_known_by_their_names() {
        let parts = |names: &[&str], reducers: u32, ending| {
            let expected = if reducers > 0 { reducers } else { 2 };
            super::part_files(names.iter().map(|name| (*name).to_owned()), expected, reducers, ending)
        };
        let ok = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            parts(&["part-r-00001", "_SUCCESS", ".part-r-00001.crc", "part-r-00000"], 2, None),
            ok(&["part-r-00000", "part-r-00001"])
        );
        assert_eq!(
            parts(&["part-m-00000.gz", "part-m-00001.gz"], 0, Some(".gz")),
            ok(&["part-m-00000.gz", "part-m-00001.gz"])
        );
        assert_eq!(parts(&["part-00000", "part-00001.bz2"], 0, None), ok(&["part-00000", "part-00001.bz2"]));
        for (names, reducers, ending, expected) in [
            (
                &["part-r-00000"][..],
                2,
                None,
                "found 1 part files in its output (part-r-00000), expected 2 parts",
            ),
            (&[], 1, None, "found 0 part files in its output, expected 1 part from 0 on: `reducers`"),
            (&["part-m-00000"], 0, None, "expected 2 parts from 0 on: one for each map of the option split"),
            (&["part-r-00001", "part-r-00002"], 2, None, "expected 2 parts from 0 on"),
            (&["part-m-00000"], 1, None, "found part-m-00000 in its output, expected only part-r-00000"),
            (&["side-r-00000"], 1, None, "found side-r-00000"),
            (
                &["part-r-00000/"],
                1,
                None,
                "found part-r-00000/ in its output, expected only part-r-00000 and so on",
            ),
            (&["part-r-0"], 1, None, "found part-r-0 in"),
            (&["part-r-00000-x"], 1, None, "found part-r-00000-x"),
            (
                &["part-r-00000"],
                1,
                Some(".gz"),
                "found part-r-00000 in its output, expected part-r-00000.gz: see",
            ),
            (&["part-r-00000", "part-00000"], 1, None, "expected one part of each number"),
        ] {
            let error = parts(names, reducers, ending).unwrap_err();
            assert!(error.contains(expected), "{names:?}: {error}");
        }
    }
}
