//! Machines from Slurm: the nodes of the allocation that the run is in, or of allocations that the run
//! requests one after another.
//!
//! Slurm allocates nodes; this engine decides what runs on them. The agent of each node is a step of the
//! allocation (`srun`). The agent, not Slurm, tells whether a node is up, since Slurm takes minutes to
//! notice.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::params::{self, Param, ParamError, Values};
use slackline_task::base::clock::Stopwatch;
use slackline_task::process::limits::Capacity;

use crate::engine::backend::{Backend, EngineEntry};
use crate::engine::machines::{Common, MachinesEngine, OpenedFleet, PROGRAM, SHARED, Site, program};
use crate::engine::this_machine::{HASH, SPECULATE, SPLIT, TASK_MEMORY, TIMEOUT};
use crate::fleet::agents::{Agents, Machine, Orders, Supply, SupplyRequest, Terms};
use crate::fleet::link::LinkCommand;
use crate::fleet::slurm::allocation::{Allocation, Keeper};
use crate::fleet::speeds::Speeds;
use crate::fleet::{Availability, agent};
use crate::run::error::EngineError;
use crate::run::opening::StatusCallback;

/// The entry in the table of engines.
pub const ENTRY: EngineEntry =
    EngineEntry { name: "slurm", summary: "nodes of a Slurm allocation", params: PARAMS, make };

const NONE: &str = "none";

const NODES: Param = Param::new(
    "nodes",
    NONE,
    Values::Count(1, 100_000),
    "nodes to request from Slurm; none: use the current allocation",
)
.or_word(NONE);

const TIME: Param = Param::new(
    "time",
    NONE,
    Values::Text("TIME"),
    "time limit of the allocation in the format of salloc: 30, 2:00:00, 1-12; none: Slurm's default",
)
.or_word(NONE);

const SALLOC: Param = Param::new(
    "salloc",
    NONE,
    Values::Text("OPTIONS"),
    "more options for salloc, such as --partition=short --account=me",
)
.or_word(NONE);

const SLOTS: Param =
    Param::new("slots", "processors", Values::Count(1, 4096), "tasks at a time on each node")
        .or_word("processors");

const PARAMS: &[Param] =
    &[NODES, TIME, SALLOC, SLOTS, PROGRAM, SHARED, SPLIT, TASK_MEMORY, TIMEOUT, SPECULATE, HASH];

/// Variables of the environment that would change what comes over a step's standard output.
const UNSET: [&str; 4] = ["SLURM_LABELIO", "SLURM_STDINMODE", "SLURM_STDOUTMODE", "SLURM_STDERRMODE"];

/// How long after a refusal an allocation is requested again, where the run still waits for it.
const AGAIN: Duration = Duration::from_secs(600);

/// How long all nodes of a new allocation may take to answer.
const OPENING: Duration = Duration::from_secs(120);

fn make(settings: &params::Settings) -> Result<Box<dyn Backend>, EngineError> {
    let slots = settings.given(SLOTS.name).then(|| settings.count(SLOTS.name) as u32);
    let wish = if settings.given(NODES.name) { Some(wish(settings, slots)?) } else { None };
    let given = match (&wish, Allocation::of_environment().map_err(EngineError::other)?) {
        (Some(_), _) => None,
        (None, Some(allocation)) => Some(allocation),
        (None, None) => {
            let problem = "not in a Slurm allocation (SLURM_JOB_ID is not set): pass --engine slurm:nodes=N to request one";
            return Err(EngineError::other(problem));
        }
    };
    if wish.is_none() {
        let idle = [TIME, SALLOC].into_iter().find(|param| settings.given(param.name));
        if let Some(Param { name, .. }) = idle {
            let expected = "nodes=N with it, to request an allocation".to_owned();
            return Err(ParamError::Value { name, found: settings.text(name).to_owned(), expected }.into());
        }
    }
    let site = Slurm { given, wish, slots, speeds: Speeds::default(), program: program(settings)? };
    Ok(Box::new(MachinesEngine { site, common: Common::of(settings)? }))
}

/// What Slurm is to be asked for.
fn wish(settings: &params::Settings, slots: Option<u32>) -> Result<AllocationOptions, ParamError> {
    let mut options = vec![
        format!("--nodes={}", settings.count(NODES.name)),
        "--job-name=slackline".to_owned(),
        "--no-bell".to_owned(),
        // It ends when the allocation is taken away.
        "--kill-command=TERM".to_owned(),
    ];
    match slots {
        None => options.push("--exclusive".to_owned()),
        Some(slots) => options.extend(["--ntasks-per-node=1".to_owned(), format!("--cpus-per-task={slots}")]),
    }
    let time = settings.given(TIME.name).then(|| settings.text(TIME.name).to_owned());
    options.extend(time.iter().map(|time| format!("--time={time}")));
    if settings.given(SALLOC.name) {
        let given = settings.text(SALLOC.name);
        options.extend(shlex::split(given).ok_or_else(|| ParamError::Value {
            name: SALLOC.name,
            found: given.to_owned(),
            expected: "options as a shell reads them".to_owned(),
        })?);
    }
    Ok(AllocationOptions { nodes: settings.count(NODES.name) as u32, options })
}

/// An allocation that is asked for.
#[derive(Clone, Debug)]
struct AllocationOptions {
    nodes: u32,
    /// What `salloc` is given.
    options: Vec<String>,
}

#[derive(Clone, Debug)]
struct Slurm {
    /// The allocation that the run is in, unless it asks for one.
    given: Option<Allocation>,
    wish: Option<AllocationOptions>,
    /// Tasks at a time on each node, if not as many as processors.
    slots: Option<u32>,
    /// The known speeds of nodes.
    speeds: Speeds,
    program: String,
}

impl Slurm {
    /// A node as a machine with an agent, until the end of its allocation.
    fn machine(&self, job: &str, node: &str, cpus: u32, left: Option<Duration>) -> Machine {
        let options = [
            format!("--jobid={job}"),
            format!("--nodelist={node}"),
            "--nodes=1".to_owned(),
            "--ntasks=1".to_owned(),
            format!("--cpus-per-task={cpus}"),
            // The allocation may have a step already, from which the run was started.
            "--overlap".to_owned(),
            "--unbuffered".to_owned(),
            "--quiet".to_owned(),
            "--mpi=none".to_owned(),
        ];
        let args = options.into_iter().chain([self.program.clone(), agent::ARGUMENT.to_owned()]).collect();
        let link = LinkCommand { program: PathBuf::from("srun"), args, unset: &UNSET };
        let slots = self.slots.unwrap_or(cpus);
        Machine { name: node.to_owned(), slots, speed: self.speed(node), link: Box::new(link), left }
    }

    /// All nodes of an allocation.
    fn machines(&self, allocation: &Allocation) -> Vec<Machine> {
        let left = allocation.left();
        let machine = |(node, cpus): &(String, u32)| self.machine(&allocation.job, node, *cpus, left);
        allocation.nodes.iter().map(machine).collect()
    }

    fn drafts(&self, allocation: &Allocation) -> Vec<MachineDraft> {
        let draft = |(node, cpus): &(String, u32)| MachineDraft {
            speed: self.speed(node),
            ..draft(node, self.slots.unwrap_or(*cpus), 1)
        };
        allocation.nodes.iter().map(draft).collect()
    }

    fn speed(&self, node: &str) -> f64 {
        self.speeds.of(node).unwrap_or(1.0)
    }
}

fn draft(name: &str, slots: u32, count: u32) -> MachineDraft {
    MachineDraft { name: name.to_owned(), count, speed: 1.0, slots: Slots::Generic(slots), rack: None }
}

impl Site for Slurm {
    fn options(&self) -> BTreeMap<String, String> {
        let how = match (&self.wish, &self.given) {
            (Some(wish), _) => ("nodes".to_owned(), wish.nodes.to_string()),
            (None, given) => {
                ("job".to_owned(), given.as_ref().map_or_else(String::new, |given| given.job.clone()))
            }
        };
        BTreeMap::from([("engine".to_owned(), "slurm".to_owned()), how])
    }

    fn expected(&self) -> Vec<MachineDraft> {
        match (&self.given, &self.wish) {
            (Some(given), _) => self.drafts(given),
            // Only Slurm knows their resources: they are assumed to be like this machine.
            (None, wish) => {
                let slots = self.slots.unwrap_or_else(|| Capacity::here().processors);
                vec![draft("node", slots, wish.as_ref().map_or(1, |wish| wish.nodes))]
            }
        }
    }

    fn learn(&mut self, speeds: Speeds) {
        self.speeds = speeds;
    }

    fn open(&self, terms: Terms, says: StatusCallback<'_>) -> Result<OpenedFleet, EngineError> {
        let (supply, allocation): (Box<dyn Supply>, Allocation) = match (&self.given, &self.wish) {
            (Some(given), _) => (Box::new(FixedAllocation), given.clone()),
            (None, wish) => {
                let options = wish.as_ref().map_or(&[][..], |wish| &wish.options);
                let asked = Keeper::ask(options, &mut |line| says(line));
                let (keeper, allocation) = asked.map_err(EngineError::other)?;
                (Box::new(AllocationSupply::new(self.clone(), keeper, allocation.clone())), allocation)
            }
        };
        let fleet =
            Agents::open(self.machines(&allocation), terms, Some(supply)).map_err(EngineError::other)?;
        Ok(OpenedFleet { fleet, machines: self.drafts(&allocation) })
    }
}

/// The run is inside an allocation, and cannot ask for another.
struct FixedAllocation;

impl Supply for FixedAllocation {
    fn more(&mut self, asked: SupplyRequest, _: &Orders) -> Availability {
        match (asked.up, asked.is_forsaken, asked.is_barred) {
            (0, false, _) => Availability::Coming,
            (0, true, _) => Availability::Over("no node of the allocation responds".to_owned()),
            (_, _, true) => Availability::Over(
                "the remaining tasks are estimated to end after the allocation; the same command resumes the \
                 run in another allocation"
                    .to_owned(),
            ),
            (_, _, false) => Availability::Same,
        }
    }
}

/// The run asks for one allocation after the other.
struct AllocationSupply {
    slurm: Slurm,
    state: Arc<Mutex<State>>,
}

/// How far the run is with an allocation.
enum State {
    /// It has one, since then.
    Held { keeper: Keeper, allocation: Allocation, since: Stopwatch },
    /// It waits for the next one.
    Waiting,
    /// There was none to be had, since then.
    Over(String, Stopwatch),
}

impl AllocationSupply {
    fn new(slurm: Slurm, keeper: Keeper, allocation: Allocation) -> Self {
        let held = State::Held { keeper, allocation, since: Stopwatch::start() };
        Self { slurm, state: Arc::new(Mutex::new(held)) }
    }

    /// Asks for the next allocation, on its own thread: it may take hours. One that there is is given back
    /// first.
    fn ask(&self, held: Option<(Keeper, Allocation)>, orders: &Orders) {
        if let Some((_, allocation)) = &held {
            let names = allocation.nodes.iter().map(|(node, _)| node.clone()).collect();
            orders.retire(names, "its allocation has ended".to_owned());
        }
        let (slurm, state, orders) = (self.slurm.clone(), Arc::downgrade(&self.state), orders.clone());
        let started = thread::Builder::new().spawn(move || {
            drop(held);
            let options = slurm.wish.as_ref().map_or(&[][..], |wish| &wish.options);
            let asked = Keeper::ask(options, &mut |line| orders.say(line.to_owned()));
            // If the run no longer waits, the allocation is released.
            let Some(state) = state.upgrade() else { return };
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            *state = match asked {
                Err(why) => State::Over(why, Stopwatch::start()),
                Ok((keeper, allocation)) => {
                    slurm.machines(&allocation).into_iter().for_each(|machine| orders.add(machine));
                    State::Held { keeper, allocation, since: Stopwatch::start() }
                }
            };
        });
        if let Err(error) = started {
            let why = format!("cannot wait for salloc: {error}");
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Over(why, Stopwatch::start());
        }
    }
}

impl Supply for AllocationSupply {
    fn more(&mut self, asked: SupplyRequest, orders: &Orders) -> Availability {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Waiting) {
            State::Waiting => Availability::Coming,
            State::Over(why, since) => {
                // A run has ended by then; a shared engine tries again.
                if since.elapsed() > AGAIN {
                    drop(state);
                    self.ask(None, orders);
                    return Availability::Coming;
                }
                *state = State::Over(why.clone(), since);
                Availability::Over(why)
            }
            State::Held { mut keeper, allocation, since } => {
                let is_held = !keeper.is_over();
                if is_held && asked.up < allocation.nodes.len() && since.elapsed() < OPENING {
                    *state = State::Held { keeper, allocation, since };
                    return Availability::Coming;
                }
                if is_held && asked.ended == 0 {
                    // Another one would do no better.
                    *state = State::Held { keeper, allocation, since };
                    return Availability::Over(
                        "no task finished in the last allocation: request a longer one with --engine slurm:time=…".to_owned(),
                    );
                }
                drop(state);
                self.ask(Some((keeper, allocation)), orders);
                Availability::Coming
            }
        }
    }
}
