//! Tests a fleet whose agents play a script: delays, silence, repeated and late reports, wrong versions, and
//! invalid lines.

use std::io::{BufRead, BufReader, Lines, PipeReader, Write};
use std::sync::{Arc, Mutex};

use slackline_model::random::test_scale;
use slackline_task::base::clock;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::limits::Demand;
use slackline_task::process::report::Report;
use slackline_task::process::spec::{Args, Job, Outcome, Task};
use slackline_trace::PhaseCounts;

use super::*;
use crate::fleet::link::Line;
use crate::fleet::protocol::{FromAgent, PROGRAM, Proof, Ready, Refused, VERSION};
use crate::store::running_attempt::RunningAttempt;

/// Generous: how long something may take that has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent's side of a line.
struct Agent {
    input: Lines<BufReader<PipeReader>>,
    says: PipeWriter,
}

impl Agent {
    /// The next message, beats left out; none if there will be none.
    fn hear(&mut self) -> Option<ToAgent> {
        loop {
            let line = self.input.next()?.ok()?;
            match serde_json::from_str(&line).unwrap() {
                ToAgent::Beat {} => {}
                message => return Some(message),
            }
        }
    }

    fn say(&mut self, message: &FromAgent) {
        // The other side may have ended.
        let _ = self.says.write_all(&line(message));
    }

    fn say_text(&mut self, text: &str) {
        let _ = self.says.write_all(text.as_bytes());
    }

    fn greet(&mut self) -> Hello {
        let Some(ToAgent::Hello(hello)) = self.hear() else { panic!("it begins with hello") };
        self.say(&FromAgent::Ready(ready()));
        hello
    }

    fn end(&mut self, n: u64) {
        let counts = PhaseCounts { records_in: n, ..PhaseCounts::default() };
        let report = Some(Report::Done(Outcome { counts, output: None }));
        self.say(&FromAgent::Ended { n, report, broken: None });
    }

    /// Takes attempts and ends them at once, until its line ends.
    fn serve(&mut self) {
        while let Some(message) = self.hear() {
            match message {
                ToAgent::Start { n, .. } => self.end(n),
                ToAgent::Stop(_) | ToAgent::Hello(_) | ToAgent::Beat {} => {}
            }
        }
    }

    /// Sends nothing any more, until its connection ends.
    fn fall_silent(&mut self) {
        while self.hear().is_some() {}
    }
}

fn ready() -> Ready {
    Ready { v: VERSION, program: PROGRAM.to_owned(), processors: 2, memory: Some(1 << 30) }
}

/// The script of an agent, by the number of its earlier starts.
type Act = Arc<dyn Fn(usize, &mut Agent) + Send + Sync>;

/// A link to agents that play.
struct Script {
    act: Act,
    opened: usize,
}

impl Link for Script {
    fn open(&mut self, _: PathBuf) -> io::Result<Line> {
        let (input, stdin) = io::pipe()?;
        let (stdout, says) = io::pipe()?;
        let (act, nth) = (self.act.clone(), self.opened);
        self.opened += 1;
        thread::spawn(move || act(nth, &mut Agent { input: BufReader::new(input).lines(), says }));
        Ok(Line::of_pipes(stdin, stdout))
    }
}

fn machine(name: &str, act: impl Fn(usize, &mut Agent) + Send + Sync + 'static) -> Machine {
    let link = Box::new(Script { act: Arc::new(act), opened: 0 });
    Machine { name: name.to_owned(), slots: 2, speed: 1.0, link, left: None }
}

fn terms(pids: &std::path::Path) -> Terms {
    let proofs = vec![Proof::Holds { path: "/shared/seen-1".into(), holds: "1".into() }];
    let hello = Hello {
        v: VERSION,
        program: PROGRAM.to_owned(),
        owner: "7-1".to_owned(),
        machine: String::new(),
        directory: "/".into(),
        proofs,
        env: Vec::new(),
    };
    let pace = AgentTiming { again: Duration::from_millis(10), ..AgentTiming::default() };
    Terms { hello, pids: pids.to_owned(), pace }
}

fn open_at(pace: AgentTiming, machines: Vec<Machine>) -> io::Result<Agents> {
    let dir = tempfile::tempdir().unwrap();
    Agents::open(machines, Terms { pace, ..terms(dir.path()) }, None)
}

fn open(machines: Vec<Machine>) -> io::Result<Agents> {
    open_at(AgentTiming { again: Duration::from_millis(10), ..AgentTiming::default() }, machines)
}

fn start(agents: &mut Agents, machine: u32, number: u64) {
    let job = Job::Program { program: "wordcount".to_owned(), args: Args::new() };
    let task = Task::Reduce { partition: 0, maps: Vec::new() };
    let spec = Spec::new(job, task, format!("/attempts/{number}").into(), 1 << 20);
    let (slot, machine, demand) = (machine * 2, MachineId(machine), Demand::default());
    let attempt = RunningAttempt::on_slot(number, TaskId::map(0, 0), slot, 0);
    agents.start(Assignment { number, attempt, machine, slot, demand }, &spec).unwrap();
}

/// The next news; there must be some.
fn next(agents: &mut Agents) -> FleetEvent {
    agents.next(PATIENCE).expect("an event arrives")
}

/// The number of an attempt that ended well.
fn ended(event: &FleetEvent) -> u64 {
    match event {
        FleetEvent::Ended { attempt, report: Ok(Report::Done(outcome)) } => {
            assert_eq!(outcome.counts.records_in, *attempt, "its report is its own");
            *attempt
        }
        other => panic!("found {other:?}, expected the end of an attempt"),
    }
}

fn is_down(event: &FleetEvent, expected: &str) {
    match event {
        FleetEvent::Down { machine: MachineId(0), why } => assert!(why.contains(expected), "{why}"),
        other => panic!("found {other:?}, expected that machine 0 is gone"),
    }
}

#[test]
fn every_machine_gets_its_name_and_runs_its_attempts() {
    let names = Arc::new(Mutex::new(Vec::new()));
    let play = |name: &str| {
        let names = names.clone();
        machine(name, move |_, agent| {
            let hello = agent.greet();
            assert_eq!((&*hello.owner, hello.proofs.len()), ("7-1", 1));
            names.lock().unwrap().push(hello.machine);
            agent.serve();
        })
    };
    let mut agents = open(vec![play("a"), play("b")]).unwrap();
    assert_eq!(agents.machines().len(), 2);
    assert_eq!(agents.machines()[1], Capacity { processors: 2, memory: Some(1 << 30) });
    for number in 0..100 {
        start(&mut agents, (number % 2) as u32, number);
    }
    let mut numbers: Vec<u64> = (0..100).map(|_| ended(&next(&mut agents))).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    drop(agents);
    let mut names = names.lock().unwrap().clone();
    names.sort();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_machine_that_cannot_be_one_of_the_runs_keeps_it_from_beginning() {
    let refused = |act: fn(usize, &mut Agent)| {
        let good = machine("good", |_, agent| {
            agent.greet();
            agent.serve();
        });
        open(vec![good, machine("bad", act)]).err().expect("it is refused").to_string()
    };
    let unseen = refused(|_, agent| {
        agent.hear();
        let why = "/shared/seen-1: found no such file".to_owned();
        agent.say(&FromAgent::Refused(Refused { v: VERSION, why }));
    });
    assert_eq!(unseen, "bad: /shared/seen-1: found no such file");
    let older = refused(|_, agent| {
        agent.hear();
        agent.say(&FromAgent::Ready(Ready { program: "0.0.9".to_owned(), ..ready() }));
        agent.serve();
    });
    assert!(older.starts_with("bad: found slackline 0.0.9, expected "), "{older}");
    let later = refused(|_, agent| {
        agent.hear();
        agent.say_text(
            "{\"refused\":{\"v\":2,\"why\":\"found version 1 of the protocol, expected 2\",\"more\":1}}\n",
        );
    });
    assert_eq!(later, "bad: found version 1 of the protocol, expected 2");
    let later = refused(|_, agent| {
        agent.hear();
        agent.say(&FromAgent::Ready(Ready { v: 2, ..ready() }));
        agent.serve();
    });
    assert_eq!(later, "bad: found version 2 of the protocol, expected 1");
}

#[test]
fn machines_that_do_not_answer_are_said_to_be_gone_and_come_when_they_do() {
    let late = machine("late", |nth, agent| {
        if nth > 1 {
            agent.greet();
            agent.serve();
        }
    });
    let there = machine("there", |_, agent| {
        agent.greet();
        agent.serve();
    });
    let mut agents = open(vec![late, there]).unwrap();
    is_down(&next(&mut agents), "its agent ended without an answer");
    // What starts there meanwhile belongs to no run.
    start(&mut agents, 1, 1);
    start(&mut agents, 0, 2);
    let mut event = [next(&mut agents), next(&mut agents)];
    event.sort_by_key(|event| matches!(event, FleetEvent::Up(_)));
    assert_eq!((ended(&event[0]), &event[1]), (1, &FleetEvent::Up(MachineId(0))));
    start(&mut agents, 0, 3);
    assert_eq!(ended(&next(&mut agents)), 3);
    drop(agents);
    let silent = |name: &str| machine(name, |_, _| {});
    let error = open(vec![silent("x"), silent("y")]).err().expect("no machine answers").to_string();
    assert!(error.starts_with("no machine responds") && error.contains("y: its agent ended"), "{error}");
}

#[test]
fn output_of_a_shell_before_the_agent_does_no_harm() {
    let mut agents = open(vec![machine("a", |_, agent| {
        agent.say_text("Welcome to a!\n\nlast login: never\n");
        agent.greet();
        agent.serve();
    })])
    .unwrap();
    start(&mut agents, 0, 1);
    assert_eq!(ended(&next(&mut agents)), 1);
    drop(agents);
    let error = open(vec![machine("a", |_, agent| agent.say_text("a: slackline: not found"))]).err();
    let error = error.expect("no machine answers").to_string();
    assert!(error.contains("its agent ended after the line \"a: slackline: not found\""), "{error}");
}

#[test]
fn a_machine_that_falls_silent_is_gone_and_what_it_says_later_does_not_count() {
    let pace = AgentTiming {
        silent: Duration::from_secs(1),
        again: Duration::from_millis(10),
        ..AgentTiming::default()
    };
    let agents = open_at(
        pace,
        vec![machine("a", |nth, agent| {
            agent.greet();
            if nth > 0 {
                return agent.serve();
            }
            // It has an attempt, and reports nothing until it was dropped.
            let Some(ToAgent::Start { n, .. }) = agent.hear() else { panic!("it is given an attempt") };
            agent.fall_silent();
            agent.end(n);
        })],
    );
    let mut agents = agents.unwrap();
    start(&mut agents, 0, 1);
    is_down(&next(&mut agents), "it sent nothing for 1 s");
    assert_eq!(next(&mut agents), FleetEvent::Up(MachineId(0)));
    start(&mut agents, 0, 2);
    assert_eq!(ended(&next(&mut agents)), 2, "and not of the first, however late its end comes");
}

#[test]
fn an_agent_that_dies_is_started_again() {
    let mut agents = open(vec![machine("a", |nth, agent| {
        agent.greet();
        match nth {
            0 => drop(agent.hear()),
            _ => agent.serve(),
        }
    })])
    .unwrap();
    start(&mut agents, 0, 1);
    is_down(&next(&mut agents), "its agent ended");
    // The engine does not know yet that it is back.
    assert_eq!(agents.machines().len(), 1);
    assert_eq!(next(&mut agents), FleetEvent::Up(MachineId(0)));
    start(&mut agents, 0, 2);
    assert_eq!(ended(&next(&mut agents)), 2);
}

#[test]
fn an_attempt_that_was_meant_for_an_earlier_agent_does_not_reach_a_later_one() {
    let (sender, started) = channel();
    let sender = Mutex::new(sender);
    let mut agents = open(vec![machine("a", move |nth, agent| {
        agent.greet();
        while let Some(message) = agent.hear() {
            if let ToAgent::Start { n, .. } = message {
                sender.lock().unwrap().send((nth, n)).unwrap();
                match nth {
                    0 => return,
                    _ => agent.end(n),
                }
            }
        }
    })])
    .unwrap();
    start(&mut agents, 0, 1);
    assert_eq!(started.recv_timeout(PATIENCE).unwrap(), (0, 1));
    // The hub soon learns that it died and is back; the engine only when it asks.
    clock::pause(Duration::from_millis(300));
    start(&mut agents, 0, 2);
    is_down(&next(&mut agents), "its agent ended");
    assert_eq!(next(&mut agents), FleetEvent::Up(MachineId(0)));
    start(&mut agents, 0, 3);
    assert_eq!(ended(&next(&mut agents)), 3);
    assert_eq!(started.recv_timeout(PATIENCE).unwrap(), (1, 3));
}

#[test]
fn repeated_reports_count_once_and_reports_of_no_attempt_not() {
    let mut agents = open(vec![machine("a", |_, agent| {
        agent.greet();
        agent.say(&FromAgent::Ready(ready()));
        while let Some(message) = agent.hear() {
            if let ToAgent::Start { n, .. } = message {
                agent.end(77);
                agent.end(n);
                agent.end(n);
                agent.say(&FromAgent::Beat {});
            }
        }
    })])
    .unwrap();
    for number in 1..=3 {
        start(&mut agents, 0, number);
        assert_eq!(ended(&next(&mut agents)), number);
    }
    assert_eq!(agents.next(Duration::from_millis(100)), None);
}

#[test]
fn lines_that_are_none_end_an_agent_that_was_understood_before() {
    for (text, expected) in [
        ("what?\n", "found the line \"what?\", expected a message"),
        ("{\"ended\":{\"n\":\"seven\"}}\n", "expected a message"),
        ("{\"refused\":{\"v\":1,\"why\":\"too much\"}}\n", "too much"),
    ] {
        let mut agents = open(vec![machine("a", move |nth, agent| {
            agent.greet();
            if nth == 0 {
                agent.say_text(text);
            }
            agent.serve();
        })])
        .unwrap();
        is_down(&next(&mut agents), expected);
        assert_eq!(next(&mut agents), FleetEvent::Up(MachineId(0)));
    }
    let mut agents = open(vec![machine("a", |nth, agent| {
        agent.greet();
        // No line is this long.
        if nth == 0 {
            for _ in 0..40 {
                agent.say_text(&"x".repeat(1 << 16));
            }
        }
        agent.serve();
    })])
    .unwrap();
    is_down(&next(&mut agents), "a line of more than 1048576 bytes");
}

#[test]
fn an_attempt_that_is_stopped_ends_when_its_agent_says_so() {
    let mut agents = open(vec![machine("a", |_, agent| {
        agent.greet();
        while let Some(message) = agent.hear() {
            if let ToAgent::Stop(n) = message {
                agent.say(&FromAgent::Ended { n, report: None, broken: Some("stopped".to_owned()) });
            }
        }
    })])
    .unwrap();
    start(&mut agents, 0, 1);
    agents.stop(9);
    agents.stop(1);
    assert_eq!(next(&mut agents), FleetEvent::Ended { attempt: 1, report: Err("stopped".to_owned()) });
    // A request to stop arrives at once.
    agents.waker()();
    assert_eq!(agents.next(PATIENCE), None);
}

#[test]
fn machines_join_for_as_long_as_they_are_there_and_are_known_when_they_come_again() {
    let play = |name: &str| {
        let machine = machine(name, |_, agent| {
            agent.greet();
            agent.serve();
        });
        Machine { left: Some(Duration::from_secs(3600)), ..machine }
    };
    let mut agents = open(vec![play("a")]).unwrap();
    let until = |event: FleetEvent| match event {
        FleetEvent::Until { machine, left } => {
            assert!(left > Duration::from_secs(3000) && left <= Duration::from_secs(3600));
            machine.0
        }
        other => panic!("found {other:?}, expected until when it is there"),
    };
    assert_eq!(until(next(&mut agents)), 0);
    agents.orders.add(play("b"));
    let FleetEvent::Joined(new) = next(&mut agents) else { panic!("it joins") };
    assert_eq!((&*new.name, new.number, new.slots), ("b", MachineId(1), 2));
    assert_eq!(until(next(&mut agents)), 1);
    start(&mut agents, 1, 1);
    assert_eq!(ended(&next(&mut agents)), 1);
    agents.orders.retire(vec!["b".to_owned()], "over".to_owned());
    assert_eq!(next(&mut agents), FleetEvent::Down { machine: MachineId(1), why: "over".to_owned() });
    // It is not looked for by itself.
    assert_eq!(agents.next(Duration::from_millis(200)), None);
    agents.orders.add(play("b"));
    assert_eq!(next(&mut agents), FleetEvent::Up(MachineId(1)));
    assert_eq!(until(next(&mut agents)), 1);
    start(&mut agents, 1, 2);
    assert_eq!(ended(&next(&mut agents)), 2);
}

/// `SLACKLINE_SCALE=k` has them take k times as many; what that took is reported.
#[test]
fn fifty_agents_take_attempts_as_fast_as_they_end_and_nothing_piles_up() {
    const AGENTS: u32 = 50;
    let scale = test_scale().ceil() as u64;
    let play = |k: u32| {
        machine(&format!("n{k}"), |_, agent| {
            agent.greet();
            agent.serve();
        })
    };
    let mut agents = open((0..AGENTS).map(play).collect()).unwrap();
    let (since, all) = (Stopwatch::start(), u64::from(AGENTS) * 100 * scale);
    let mut memory = Vec::new();
    // Each agent has two slots; one that is free is given the next attempt at once.
    let mut given = 0;
    let mut at: BTreeMap<u64, u32> = BTreeMap::new();
    for machine in (0..AGENTS).flat_map(|k| [k, k]) {
        start(&mut agents, machine, given);
        at.insert(given, machine);
        given += 1;
    }
    for done in 1..=all {
        let number = ended(&next(&mut agents));
        let machine = at.remove(&number).expect("it was running");
        if given < all {
            start(&mut agents, machine, given);
            at.insert(given, machine);
            given += 1;
        }
        if done % (all / 10) == 0 {
            memory.push(resident());
        }
    }
    assert!(at.is_empty() && agents.next(Duration::from_millis(100)).is_none());
    let rate = all as f64 / since.elapsed().as_secs_f64();
    println!("{all} attempts by {AGENTS} agents, {rate:.0} a second; resident kB by tenths: {memory:?}");
}

/// The resident memory of this process, kB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}
