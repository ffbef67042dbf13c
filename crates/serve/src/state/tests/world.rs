//! A world around the state: it carries out effects on request of a test, or at once.

use std::collections::{BTreeMap, BTreeSet};

use slackline::resident::{FlowOrder, FlowOverrides};
use slackline::run::{RunEvent, RunningAttempt, TaskId};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{PhaseKind, Seed, WallTime};
use slackline_task::base::clock::{ClockReading, Elapsed};

use crate::api::{AlertKind, CatchUp, Change, Overlap, Schedule, State};
use crate::state::auth::{Principal, Role};
use crate::state::*;
use crate::{SECOND, timestamp};

/// Tuesday 24 November 2026, noon in UTC.
pub(super) const START: WallTime = WallTime(1_795_521_600 * SECOND);

pub(super) fn minutes(n: u64) -> u64 {
    n * 60 * SECOND
}

pub(super) fn submit(name: &str) -> api::Submit {
    api::Submit { document: format!("# {name}"), name: Some(name.to_owned()), ..api::Submit::default() }
}

/// The command that submits a file, which has a name.
pub(super) fn sent(submit: api::Submit, name: &str) -> Command {
    sent_with(submit, name, |_| ())
}

/// [`sent`] with changed facts of the file.
pub(super) fn sent_with(
    submit: api::Submit,
    name: &str,
    change: impl FnOnce(&mut SubmissionSpec),
) -> Command {
    let name = submit.name.clone().unwrap_or_else(|| name.to_owned());
    let mut wanted = SubmissionSpec::new(submit, name, String::new(), START);
    change(&mut wanted);
    Command::Submit { wanted: Box::new(wanted), passed: None }
}

fn late((number, flow): (u64, &str)) -> api::DelayedFlow {
    let at = timestamp(START);
    let flow = flow.to_owned();
    api::DelayedFlow { number, name: "x".into(), flow, deadline: at, without: at, with: at, late_by: 1.0 }
}

/// The name of a record.
pub(super) fn kind(record: &Record) -> &'static str {
    match record {
        Record::Began(_) => "began",
        Record::Submitted { .. } => "submitted",
        Record::Predicted { .. } => "predicted",
        Record::Ended { .. } => "ended",
        Record::Alert(_) => "alerted",
        _ => "other",
    }
}

/// The state, its records, and a simulated environment.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a test turns by itself")]
pub(super) struct World {
    pub(super) state: ServiceState,
    /// The elapsed time, which is also the wall clock while `shift` is 0.
    pub(super) now: WallTime,
    /// The error of the wall clock.
    pub(super) shift: i64,
    /// The records on disk.
    pub(super) records: Vec<Record>,
    limits: Limits,
    /// Submissions that wait to be opened.
    pub(super) opening: BTreeSet<u64>,
    pub(super) live: BTreeMap<u64, u32>,
    pub(super) standings: BTreeMap<(u64, String), FlowOverrides>,
    /// The estimated completion of flows, since the start.
    pub(super) expected: BTreeMap<(u64, String), u64>,
    /// Requested forecasts.
    pub(super) predicting: Vec<Option<u64>>,
    pub(super) hold_predictions: bool,
    /// Whether completions are unknown.
    pub(super) unknown: bool,
    /// Whether the samples cannot be simulated.
    pub(super) unspread: bool,
    /// Whether no forecast can be simulated.
    pub(super) forecast_error: bool,
    /// The flow that the next predicted submission makes late, and its submission number.
    pub(super) makes_late: Option<(u64, &'static str)>,
    /// The digest of the files that all submissions wait for; `None` if they are missing.
    pub(super) files: Option<u64>,
    /// The deadline in the files of schedules, since the start.
    pub(super) due: Option<u64>,
    /// Whether every submission finishes at once.
    pub(super) play: bool,
    pub(super) events: Vec<api::Event>,
    alerted: Vec<Alert>,
    pub(super) forgotten: Vec<String>,
}

fn facts(limits: &Limits) -> ServiceFacts {
    ServiceFacts {
        engine: "play".into(),
        policy: "fifo".into(),
        objective: "sum of response".into(),
        zone: TimeZone::UTC,
        limits: limits.clone(),
        tells_finished: false,
    }
}

impl World {
    pub(super) fn new(limits: Limits) -> Self {
        let start = ClockReading { wall: START, elapsed: Elapsed(START.0) };
        let (state, began) = ServiceState::new(facts(&limits), start);
        Self {
            state,
            now: START,
            shift: 0,
            records: vec![began],
            limits,
            opening: BTreeSet::new(),
            live: BTreeMap::new(),
            standings: BTreeMap::new(),
            expected: BTreeMap::new(),
            predicting: Vec::new(),
            hold_predictions: false,
            unknown: false,
            unspread: false,
            forecast_error: false,
            makes_late: None,
            files: None,
            due: None,
            play: false,
            events: Vec::new(),
            alerted: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    /// Replaces the process by one with the records on disk.
    pub(super) fn restart(&mut self) {
        self.opening.clear();
        self.live.clear();
        self.standings.clear();
        self.predicting.clear();
        let records = self.records.clone();
        let (state, out) = ServiceState::replayed(facts(&self.limits), self.clock(), records).unwrap();
        self.state = state;
        self.carry_out(out);
    }

    /// Rewrites the log with the shortest list of records.
    pub(super) fn compact(&mut self) {
        let before: Vec<api::Submission> = self.list();
        self.records = self.state.records();
        self.restart();
        let state = |one: &api::Submission| {
            let is_open = !one.state.is_over();
            (one.number, one.name.clone(), one.held, one.priority, (!is_open).then_some(one.state))
        };
        assert_eq!(
            before.iter().map(state).collect::<Vec<_>>(),
            self.list().iter().map(state).collect::<Vec<_>>()
        );
    }

    fn carry_out(&mut self, out: Transition) {
        self.records.extend(out.records);
        for effect in out.effects {
            match effect {
                Effect::Launch(WorkItem::Open(number, _)) => drop(self.opening.insert(number)),
                Effect::Admit { number, standings, .. } => {
                    let all = standings.into_iter().map(|(flow, overrides)| ((number, flow), overrides));
                    self.standings.extend(all);
                }
                Effect::Change { number, flow, change: FlowOrder::Override(overrides) } => {
                    self.standings.insert((number, flow), overrides);
                }
                Effect::Change { .. } | Effect::ClockJumped(_) | Effect::Launch(WorkItem::RemoveAside(_)) => {
                }
                Effect::Forget { key, .. } => self.forgotten.push(key.name),
                Effect::Predict { number } => self.predicting.push(number),
                Effect::Launch(WorkItem::Read(number, _)) => {
                    let due = self.due.map(|at| START + at);
                    self.apply_event(StateEvent::Read { number, due });
                }
                Effect::Launch(WorkItem::Look(number, _)) => {
                    let found = self.files.ok_or_else(|| "/in/a*".to_owned());
                    self.apply_event(StateEvent::Files { number, found });
                }
                Effect::Alert(alert) => self.alerted.push(alert),
                Effect::Event(event) => self.events.push(event),
            }
        }
        if !self.hold_predictions {
            self.predict();
        }
        if self.play {
            for number in self.opening.clone() {
                self.open(number, &[("f", 1, None)]);
                self.start(number, 0);
                self.finish(number, 0);
                self.back(number);
            }
        }
    }

    /// Answers the requested forecasts.
    pub(super) fn predict(&mut self) {
        while let Some(number) = self.predicting.pop() {
            let live = self.state.live_numbers().collect::<Vec<_>>();
            let mut flows = BTreeMap::new();
            for one in live {
                for flow in self.show(one).flows.iter().filter(|flow| !flow.state.is_over()) {
                    let key = (one, flow.flow.clone());
                    let completion = START + self.expected.get(&key).copied().unwrap_or(minutes(5));
                    let between = (!self.unknown && !self.unspread)
                        .then(|| [completion.earlier_by(minutes(2)), completion + minutes(2)]);
                    let completion = (!self.unknown).then_some(completion);
                    flows.insert(key, FlowEstimate { completion, between, chance: None });
                }
            }
            let makes_late: Vec<_> = self.makes_late.map(late).into_iter().collect();
            if self.forecast_error {
                flows.clear();
            }
            let problem = (self.unspread || self.forecast_error).then(|| "it is made so".to_owned());
            let of = number.map(|number| Impact { number, makes_late, remedies: Vec::new() });
            self.apply_event(StateEvent::Predicted(ForecastResult { took: 1_000, flows, of, problem }));
        }
    }

    pub(super) fn apply_event(&mut self, event: StateEvent) {
        let mut out = Transition::default();
        self.state.apply_event(self.clock(), event, &mut out);
        self.carry_out(out);
    }

    pub(super) fn execute(&mut self, principal: &Principal, mut command: Command) -> Result<Answer, Refusal> {
        if let Command::Submit { wanted, .. } = &mut command {
            wanted.since = self.wall();
        }
        let mut out = Transition::default();
        let answer = self.state.execute(self.clock(), principal, command, &mut out);
        self.carry_out(out);
        answer
    }

    pub(super) fn submit(&mut self, principal: &Principal, submit: api::Submit) -> u64 {
        let name = submit.name.clone().unwrap();
        let answer = self.execute(principal, sent(submit, &name));
        let Ok(Answer::Accepted(accepted)) = answer else { panic!("{answer:?}") };
        accepted.number.unwrap()
    }

    pub(super) fn submit_waiting(&mut self, principal: &Principal, submit: api::Submit) -> u64 {
        let submit = api::Submit { when: vec!["/in/a*".to_owned()], ..submit };
        let answer = self.execute(principal, sent(submit, "x"));
        let Ok(Answer::Accepted(accepted)) = answer else { panic!("{answer:?}") };
        accepted.number.unwrap()
    }

    /// Calls `tick` at the current time.
    pub(super) fn tick(&mut self) {
        let mut out = Transition::default();
        self.state.tick(self.clock(), &mut out);
        self.carry_out(out);
    }

    pub(super) fn clock(&self) -> ClockReading {
        ClockReading {
            wall: WallTime(self.now.0.saturating_add_signed(self.shift)),
            elapsed: Elapsed(self.now.0),
        }
    }

    /// The time of the wall clock.
    pub(super) fn wall(&self) -> WallTime {
        self.clock().wall
    }

    /// Lets time pass, and calls `tick` whenever it is due.
    pub(super) fn pass(&mut self, span: u64) {
        let until = self.now + span;
        loop {
            let due = self.now + self.state.due(self.clock());
            if due > until {
                break;
            }
            self.now = due;
            // A deadline is missed just after its time.
            self.now = self.now + 1;
            self.tick();
        }
        self.now = self.now.max(until);
    }

    /// Opens a run with flows: their map tasks, and their deadlines since the start.
    pub(super) fn open(&mut self, number: u64, flows: &[(&str, u64, Option<u64>)]) {
        self.open_as(number, flows, |_| ());
    }

    /// [`Self::open`] with changed flow facts.
    pub(super) fn open_as(
        &mut self,
        number: u64,
        flows: &[(&str, u64, Option<u64>)],
        change: impl Fn(&mut FlowProgress),
    ) {
        assert!(self.opening.remove(&number), "{number} is to be opened");
        let flow = |&(flow, tasks, deadline): &(&str, u64, Option<u64>)| FlowProgress {
            flow: flow.to_owned(),
            release: START,
            deadline: deadline.map(|at| START + at),
            weight: 1.0,
            jobs: vec![api::Job {
                job: "j".into(),
                after: Vec::new(),
                maps: api::Phase { tasks, ..api::Phase::default() },
                reduces: api::Phase::default(),
                failed_attempts: 0,
            }],
            ..FlowProgress::default()
        };
        let mut flows: Vec<FlowProgress> = flows.iter().map(flow).collect();
        flows.iter_mut().for_each(change);
        self.live.insert(number, 1);
        let run = RunningSubmission::new(START, flows);
        self.apply_event(StateEvent::Opened { number, run, unrunnable: Vec::new() });
    }

    pub(super) fn not_opened(&mut self, number: u64, problem: &str, is_final: bool) {
        assert!(self.opening.remove(&number), "{number} is to be opened");
        self.apply_event(StateEvent::NotOpened { number, problem: problem.to_owned(), is_final });
    }

    pub(super) fn start(&mut self, number: u64, job: u32) {
        self.apply_event(StateEvent::Run {
            number,
            event: RunEvent::AttemptStarted(RunningAttempt::unnumbered(map(job), 0)),
        });
    }

    pub(super) fn finish(&mut self, number: u64, job: u32) {
        self.apply_event(StateEvent::Run {
            number,
            event: RunEvent::TaskFinished { task: map(job), seconds: 1.0 },
        });
    }

    pub(super) fn fail(&mut self, number: u64, job: u32, is_final: bool) {
        let message = "it does not work".to_owned();
        let (task, log, other_runs) = (map(job), None, false);
        let event = RunEvent::AttemptFailed { task, message, log, other_runs, is_final };
        self.apply_event(StateEvent::Run { number, event });
        if is_final {
            let event = RunEvent::FlowFailed { flow: "f".to_owned() };
            self.apply_event(StateEvent::Run { number, event });
        }
    }

    /// Returns a run.
    pub(super) fn back(&mut self, number: u64) {
        self.live.remove(&number);
        self.apply_event(StateEvent::Returned { number, stopped: None });
    }

    pub(super) fn stopped(&mut self, number: u64, why: &str) {
        self.live.remove(&number);
        self.apply_event(StateEvent::Returned { number, stopped: Some(why.to_owned()) });
    }

    pub(super) fn show(&mut self, number: u64) -> api::Submission {
        self.state.show(self.wall(), number).unwrap()
    }

    pub(super) fn state(&mut self, number: u64) -> State {
        self.show(number).state
    }

    /// Whether the parsed file of a submission is in memory.
    pub(super) fn is_parsed(&self, number: u64) -> bool {
        self.state.pending(number).unwrap().wanted.draft.get().is_some()
    }

    pub(super) fn why(&mut self, number: u64) -> Option<String> {
        self.show(number).why
    }

    pub(super) fn flow(&mut self, number: u64, flow: &str) -> api::Flow {
        self.show(number).flows.into_iter().find(|one| one.flow == flow).unwrap()
    }

    pub(super) fn list(&mut self) -> Vec<api::Submission> {
        self.state.list(self.wall(), &Filter { most: 10_000, ..Filter::default() })
    }

    pub(super) fn number_of(&mut self, name: &str) -> u64 {
        self.list().iter().find(|one| one.name == name).unwrap().number
    }

    /// The kept alerts, the latest first.
    pub(super) fn kept_alerts(&self) -> Vec<Alert> {
        self.state.alerts()
    }

    pub(super) fn service(&mut self) -> api::Service {
        self.state.service(self.wall())
    }

    pub(super) fn recurrences(&self) -> Vec<api::Recurrence> {
        self.state.recurrences()
    }

    /// The accepted submissions, from the records.
    pub(super) fn submitted(&self) -> Vec<SubmissionSpec> {
        let of = |record: &Record| match record {
            Record::Submitted { wanted, .. } => Some((**wanted).clone()),
            _ => None,
        };
        self.records.iter().filter_map(of).collect()
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.events.iter().map(|event| event.kind.clone()).collect()
    }

    /// Drops the events and alerts so far.
    pub(super) fn forget_events(&mut self) {
        self.events.clear();
        self.alerted.clear();
        self.forgotten.clear();
    }

    pub(super) fn alerts(&self) -> Vec<String> {
        self.alerted.iter().map(|alert| alert.kind.name().to_owned()).collect()
    }
}

/// Random principals send random commands to a world that restarts at random times. The invariants are
/// checked after each step.
pub(super) fn chaos(seed: u64) {
    let mut rng = random::rng(Seed(seed), "desk", 0);
    let limits = Limits { live: 3, live_by_user: 2, remembered: 1_000, ..Limits::default() };
    let mut world = World::new(limits);
    world.hold_predictions = true;
    let mut acknowledged: BTreeSet<u64> = BTreeSet::new();
    let people = [
        Principal::new("anna", Role::Submit),
        Principal::new("bert", Role::Submit),
        Principal::new("otto", Role::Operate),
    ];
    let hourly = Schedule {
        cron: "0 * * * *".into(),
        zone: None,
        catch_up: [CatchUp::All, CatchUp::Latest, CatchUp::None][pick(&mut rng, 3)],
    };
    let again = api::Submit { schedule: Some(hourly), overlap: Overlap::Wait, ..submit("hourly") };
    world.execute(&people[0], sent(again, "hourly")).unwrap();
    for _ in 0..200 {
        let principal = &people[pick(&mut rng, 3)];
        match pick(&mut rng, 14) {
            0..=2 => {
                let overlap = [Overlap::Wait, Overlap::Skip, Overlap::Replace][pick(&mut rng, 3)];
                let name = format!("{}{}", principal.name, pick(&mut rng, 3));
                let held = pick(&mut rng, 5) == 0;
                let priority = pick(&mut rng, 3) as u32;
                let wanted = api::Submit { priority, held, overlap, ..submit(&name) };
                if let Ok(Answer::Accepted(accepted)) = world.execute(principal, sent(wanted, &name)) {
                    acknowledged.extend(accepted.number);
                }
            }
            3 => world.restart(),
            4 => world.compact(),
            5 => world.pass(minutes(random::integer(&mut rng, 1, 90))),
            6 => world.predict(),
            7 | 8 => {
                one_of(
                    &mut rng,
                    &world.opening.iter().copied().collect::<Vec<_>>(),
                    |rng, number| match pick(rng, 6) {
                        0 => world.not_opened(number, "no", false),
                        1 => world.not_opened(number, "never", true),
                        _ => world.open(number, &[("f", 2, Some(minutes(30))), ("g", 1, None)]),
                    },
                );
            }
            9 | 10 => one_of(&mut rng, &world.live.keys().copied().collect::<Vec<_>>(), |rng, number| {
                let job = pick(rng, 2) as u32;
                let open = world.show(number).flows[job as usize].clone();
                if open.state.is_over() {
                    return;
                }
                world.start(number, job);
                match pick(rng, 8) {
                    0 => world.fail(number, job, pick(rng, 2) == 0),
                    _ => world.finish(number, job),
                }
            }),
            11 => one_of(&mut rng, &world.live.keys().copied().collect::<Vec<_>>(), |rng, number| {
                if world.show(number).flows.iter().all(|flow| flow.state.is_over()) {
                    world.back(number);
                } else if pick(rng, 10) == 0 {
                    world.stopped(number, "no journal");
                }
            }),
            12 => {
                let numbers: Vec<u64> = world.list().iter().map(|one| one.number).collect();
                one_of(&mut rng, &numbers, |rng, number| {
                    let flow = [None, Some("f".to_owned())][pick(rng, 2)].clone();
                    let command = match pick(rng, 3) {
                        0 => Command::Cancel { number, flow },
                        1 => Command::Hold { number, flow, held: pick(rng, 2) == 0 },
                        _ => {
                            let change =
                                Change { flow, weight: Some(2.0), priority: Some(1), ..Change::default() };
                            let deadline = Some(world.now + minutes(random::integer(rng, 1, 60)));
                            Command::Change { number, change, deadline }
                        }
                    };
                    // Many of these commands are refused.
                    let _ = world.execute(principal, command);
                });
            }
            _ => {
                let _ = world.execute(principal, Command::Drain(pick(&mut rng, 3) == 0));
            }
        }
        audit(&mut world, &acknowledged, seed);
    }
}

fn pick(rng: &mut ChaCha8Rng, n: u64) -> usize {
    random::integer(rng, 0, n - 1) as usize
}

fn one_of(rng: &mut ChaCha8Rng, numbers: &[u64], what: impl FnOnce(&mut ChaCha8Rng, u64)) {
    if !numbers.is_empty() {
        let number = numbers[pick(rng, numbers.len() as u64)];
        what(rng, number);
    }
}

/// Checks the invariants.
fn audit(world: &mut World, acknowledged: &BTreeSet<u64>, seed: u64) {
    let all = world.list();
    let numbers: BTreeSet<u64> = all.iter().map(|one| one.number).collect();
    assert!(acknowledged.is_subset(&numbers), "seed {seed}: what was acknowledged is there");
    assert_eq!(numbers.len(), all.len(), "seed {seed}: numbers are given once");
    let begun: Vec<&api::Submission> =
        all.iter().filter(|one| matches!(one.state, State::Opening | State::Running)).collect();
    let names: BTreeSet<&str> = begun.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names.len(), begun.len(), "seed {seed}: of one name one has begun");
    assert!(begun.len() <= 3, "seed {seed}: {} have begun", begun.len());
    for user in ["anna", "bert", "otto"] {
        let of_user = begun.iter().filter(|one| one.user == user).count();
        assert!(of_user <= 2, "seed {seed}: {of_user} of {user} have begun");
    }
    assert_eq!(world.state.submissions.queue.begun.total, begun.len(), "seed {seed}");
    let queued: Vec<&api::Submission> = all.iter().filter(|one| one.state == State::Queued).collect();
    assert_eq!(world.state.submissions.queue.waiting.total, queued.len(), "seed {seed}");
    assert!(queued.iter().all(|one| one.why.is_some()), "seed {seed}: each says why it waits");
    let running: u64 = all.iter().flat_map(|one| &one.flows).map(|flow| flow.running).sum();
    assert_eq!(world.service().running, running, "seed {seed}");
    // Each time of a schedule is submitted once, and in order.
    let times: Vec<WallTime> = all
        .iter()
        .rev()
        .filter_map(|one| one.occurrence.as_ref())
        .map(|one| crate::wall_time(one.at))
        .collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: {times:?}");
    // No alert is sent twice.
    let causes: Vec<(u64, String, AlertKind, Option<String>)> = world
        .alerted
        .iter()
        .filter(|alert| !matches!(alert.kind, AlertKind::Late | AlertKind::LikelyLate))
        .map(|alert| (alert.number, alert.flow.clone(), alert.kind, None))
        .collect();
    assert_eq!(causes.iter().collect::<BTreeSet<_>>().len(), causes.len(), "seed {seed}");
}

/// A map of a job.
fn map(job: u32) -> TaskId {
    TaskId { job, phase: PhaseKind::Map, task: 0 }
}
