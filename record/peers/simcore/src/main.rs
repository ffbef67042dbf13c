//! FIFO over jobs on map and reduce slots, as a bare event loop on `simcore`: reads a workload document, simulates an
//! event for each task, and prints the sum of responses. What Slackline's simulator is compared with.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use serde_json::Value;
use simcore::{Event, EventHandler, Simulation, SimulationContext, cast};

#[derive(Clone, serde::Serialize)]
struct Arrival {
    job: usize,
}

#[derive(Clone, serde::Serialize)]
struct TaskEnd {
    job: usize,
    phase: usize,
}

/// A phase: seconds and number of each run of equal tasks that have not started, and the number of unfinished tasks.
struct Phase {
    waiting: VecDeque<(f64, u64)>,
    unfinished: u64,
}

struct Fifo {
    jobs: Vec<(f64, [Phase; 2])>,
    /// Free slots and jobs with waiting tasks, for maps and reduces.
    free: [u64; 2],
    queues: [VecDeque<usize>; 2],
    context: SimulationContext,
    response: f64,
}

impl Fifo {
    fn ready(&mut self, job: usize, phase: usize) {
        match self.jobs[job].1[phase].unfinished {
            0 if phase == 0 => self.ready(job, 1),
            0 => self.response += self.context.time() - self.jobs[job].0,
            _ => {
                // Reduces of earlier jobs come first.
                let place = self.queues[phase].partition_point(|&other| other < job);
                self.queues[phase].insert(place, job);
            }
        }
    }

    fn start(&mut self, phase: usize) {
        while self.free[phase] > 0
            && let Some(&job) = self.queues[phase].front()
        {
            let waiting = &mut self.jobs[job].1[phase].waiting;
            let Some((seconds, count)) = waiting.front_mut() else {
                self.queues[phase].pop_front();
                continue;
            };
            self.context.emit_self(TaskEnd { job, phase }, *seconds);
            self.free[phase] -= 1;
            *count -= 1;
            if *count == 0 {
                waiting.pop_front();
            }
        }
    }
}

impl EventHandler for Fifo {
    fn on(&mut self, event: Event) {
        cast!(match event.data {
            Arrival { job } => {
                self.ready(job, 0)
            }
            TaskEnd { job, phase } => {
                self.free[phase] += 1;
                let unfinished = &mut self.jobs[job].1[phase].unfinished;
                *unfinished -= 1;
                if *unfinished == 0 {
                    if phase == 0 {
                        self.ready(job, 1);
                    } else {
                        self.response += self.context.time() - self.jobs[job].0;
                    }
                }
            }
        });
        self.start(0);
        self.start(1);
    }
}

fn phase(value: &Value) -> Phase {
    let waiting: VecDeque<(f64, u64)> = match (&value["tasks"], &value["seconds"]) {
        (tasks, Value::Number(seconds)) => {
            [(seconds.as_f64().unwrap(), tasks.as_u64().unwrap())].into_iter().filter(|(_, tasks)| *tasks > 0).collect()
        }
        (_, Value::Array(seconds)) => seconds.iter().map(|seconds| (seconds.as_f64().unwrap(), 1)).collect(),
        _ => VecDeque::new(),
    };
    Phase { unfinished: waiting.iter().map(|(_, count)| count).sum(), waiting }
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: peer-simcore WORKLOAD.json");
    let workload: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let slots = |kind: &str| {
        let machines = workload["cluster"]["machines"].as_array().unwrap().iter();
        machines.map(|machine| machine["count"].as_u64().unwrap() * machine["slots"][kind].as_u64().unwrap()).sum()
    };
    let free = [slots("map"), slots("reduce")];
    let flows = workload["flows"].as_array().unwrap().iter();
    let jobs: Vec<(f64, [Phase; 2])> = flows
        .map(|flow| (flow["release"].as_f64().unwrap(), ["map", "reduce"].map(|name| phase(&flow["jobs"][0][name]))))
        .collect();
    let mut simulation = Simulation::new(1);
    let context = simulation.create_context("fifo");
    for (job, (release, _)) in jobs.iter().enumerate() {
        context.emit_self(Arrival { job }, *release);
    }
    let fifo = Fifo { jobs, free, queues: Default::default(), context, response: 0.0 };
    let fifo = Rc::new(RefCell::new(fifo));
    simulation.add_handler("fifo", fifo.clone());
    simulation.step_until_no_events();
    println!("{:.6}", fifo.borrow().response);
}
