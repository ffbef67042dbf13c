//! A year of a service: flows recur across both changes of daylight saving time, the simulator is the engine,
//! the clock is the test's, and the service stops five hundred times.

use slackline::{Options, PolicySpec, Registry, simulate};
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{Instance, Seed, random};

use crate::state::tests::world::{START, World, checked, minutes, submit};
use crate::state::tests::*;

const DAY: u64 = 24 * 3600 * SECOND;
const ZONE: &str = "Europe/Berlin";
const RESTARTS: u64 = 500;

/// What recurs: its name, when, how many tasks of so many minutes it has.
const RECURRING: [(&str, &str, u32, f64); 8] = [
    ("hourly", "5 * * * *", 2, 4.0),
    ("ingest", "0 1 * * *", 4, 15.0),
    // Within the hour that there is not in spring, and twice in autumn.
    ("in the gap", "30 2 * * *", 3, 10.0),
    ("at the gap", "0 2 * * *", 1, 5.0),
    ("after the gap", "0 3 * * *", 2, 20.0),
    ("workdays", "15 6 * * 1-5", 4, 10.0),
    ("monthly", "0 4 1 * *", 8, 30.0),
    ("weekly", "45 23 * * 0", 6, 20.0),
];

/// The simulator as an engine: since it was idle last, everything that came is simulated anew whenever more
/// comes. What was done before stays as it was, since no policy sees what is to come.
struct Engine {
    policy: PolicySpec,
    began: Moment,
    flows: Vec<(u64, FlowDraft)>,
    /// When those are done that are not yet.
    ends: BTreeMap<u64, Moment>,
}

impl Engine {
    fn admit(&mut self, now: Moment, number: u64, name: &str) {
        if self.ends.is_empty() {
            self.flows.clear();
            self.began = now;
        }
        let (_, _, tasks, minutes) = RECURRING.into_iter().find(|(known, ..)| *known == name).unwrap();
        let map = Some(TasksDraft::Uniform { tasks, seconds: 60.0 * minutes }.into());
        let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
        let release = (now - self.began) as f64 / SECOND as f64;
        let flow = FlowDraft { release, ..FlowDraft::new(format!("{number}"), vec![job]) };
        self.flows.push((number, flow));
        self.ends.insert(number, Moment::MAX);
        let slots = Slots::Universal(2);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        let flows = self.flows.iter().map(|(_, flow)| flow.clone()).collect();
        let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
        // `simulate` judges what it gives.
        let simulated = simulate(&instance, &self.policy, &Options::exact(), None, None).unwrap();
        for row in &simulated.schedule.flows {
            let (number, _) = self.flows[row.flow.index()];
            let at = self.began + (row.completion.unwrap() * SECOND as f64).round() as Moment;
            if let Some(end) = self.ends.get_mut(&number) {
                assert!(at > now, "{number} was done before it was known");
                *end = at;
            }
        }
    }

    fn next(&self) -> Option<(Moment, u64)> {
        self.ends.iter().map(|(&number, &at)| (at, number)).min()
    }
}

/// When something has to have been submitted, counted minute by minute over the clock on the wall: a time
/// that there is not counts when the clocks have been put forward, one that there is twice the first time.
fn expected(cron: &str, from: Moment, until: Moment) -> Vec<Moment> {
    let fields: Vec<&str> = cron.split(' ').collect();
    let is_in = |field: &str, value: i8| match (field, field.split_once('-')) {
        ("*", _) => true,
        (_, Some((least, most))) => (least.parse::<i8>().unwrap()..=most.parse().unwrap()).contains(&value),
        _ => field.parse() == Ok(value),
    };
    let zone = jiff::tz::TimeZone::get(ZONE).unwrap();
    let mut wall = timestamp(from - DAY).to_zoned(zone.clone()).datetime();
    wall = wall.with().second(0).subsec_nanosecond(0).build().unwrap();
    let mut times = Vec::new();
    while times.last().is_none_or(|&at| at < until) {
        wall = wall.checked_add(jiff::Span::new().minutes(1)).unwrap();
        let weekday = wall.weekday().to_sunday_zero_offset();
        let values = [wall.minute(), wall.hour(), wall.day(), wall.month(), weekday];
        if fields.iter().zip(values).all(|(field, value)| is_in(field, value)) {
            let at = zone.to_ambiguous_zoned(wall).compatible().unwrap().timestamp();
            times.push(crate::moment(at));
        }
    }
    times.retain(|&at| at > from && at <= until);
    times.sort_unstable();
    times.dedup();
    times
}

/// What the process has in memory, MiB: now, and most; nothing where that cannot be read.
fn memory() -> Option<[u64; 2]> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? >> 10)
    };
    Some([of("VmRSS:")?, of("VmHWM:")?])
}

/// Says how large things are at the end of a quarter; what the test keeps to look at is told by itself.
fn tell(quarter: u64, memory: Option<[u64; 2]>, state: Option<&usize>, ended: u64) {
    let memory =
        memory.map_or_else(String::new, |[now, most]| format!("{now} MiB in memory, {most} at most, "));
    let state = state.copied().unwrap_or_default();
    println!("quarter {quarter}: {memory}{state} bytes of state, {ended} submissions over");
}

#[test]
fn in_a_year_every_time_comes_once_and_the_state_stays_small() {
    let limits = Limits { remembered: 200, remembered_for: 7 * DAY, ..Limits::default() };
    let mut world = World::new(limits);
    let policy = Registry::standard().parse("edf").unwrap();
    let mut engine = Engine { policy, began: START, flows: Vec::new(), ends: BTreeMap::new() };
    let anna = Principal::new("anna", Role::Submit);
    for (name, cron, ..) in RECURRING {
        let schedule = Schedule { cron: cron.into(), zone: Some(ZONE.into()), catch_up: CatchUp::All };
        let again = api::Submit { schedule: Some(schedule), ..submit(name) };
        world.execute(&anna, Command::Submit(Box::new(again), checked(name))).unwrap();
    }
    let mut rng = random::rng(Seed(2027), "year", 0);
    let until = START + 365 * DAY;
    let mut restarts: Vec<Moment> =
        (0..RESTARTS).map(|_| START + SECOND * random::integer(&mut rng, 1, 365 * 24 * 3600 - 1)).collect();
    restarts.sort_unstable();
    let mut restarts = restarts.into_iter().peekable();
    let mut submitted: Vec<(String, Moment)> = Vec::new();
    let (mut sizes, mut ended, mut quarter) = (Vec::<usize>::new(), 0_u64, 1);
    while world.now < until {
        if world.now >= START + quarter * (until - START) / 4 {
            tell(quarter, memory(), sizes.last(), ended);
            quarter += 1;
        }
        let next = [
            Some(world.now + world.state.due(world.clock())),
            engine.next().map(|(at, _)| at),
            restarts.peek().copied(),
        ];
        let next = next.into_iter().flatten().min().unwrap().clamp(world.now, until);
        world.pass(next - world.now);
        if restarts.next_if(|&at| at <= world.now).is_some() {
            // Some find the service away for hours.
            if random::integer(&mut rng, 0, 9) == 0 {
                world.now += SECOND * random::integer(&mut rng, 1, 6 * 3600);
            }
            submitted.extend(world.submitted().into_iter().map(|wanted| (wanted.name, wanted.since)));
            world.records = world.state.records();
            world.restart();
            world.forget_what_was_told();
            // What was at work is started again.
            engine.ends.clear();
            let written = world
                .records
                .iter()
                .map(|record| serde_json::to_string(record).unwrap().len())
                .sum::<usize>();
            sizes.push(written);
        }
        while let Some((_, number)) = engine.next().filter(|&(at, _)| at <= world.now) {
            engine.ends.remove(&number);
            let tasks = world.flow(number, "f").tasks;
            for _ in 0..tasks {
                world.start(number, 0);
                world.finish(number, 0);
            }
            world.back(number);
            ended += 1;
        }
        for number in world.opening.clone() {
            let (now, name) = (world.now, world.show(number).name);
            let (_, _, tasks, _) = RECURRING.into_iter().find(|(known, ..)| *known == name).unwrap();
            world.open(number, &[("f", tasks.into(), Some(now - START + minutes(240)))]);
            engine.admit(now, number, &name);
        }
    }
    tell(quarter, memory(), sizes.last(), ended);
    submitted.extend(world.submitted().into_iter().map(|wanted| (wanted.name, wanted.since)));
    submitted.sort();
    // What was not over when records were written as few as they can be stands in those before and after.
    submitted.dedup();
    for (name, cron, ..) in RECURRING {
        let found: Vec<Moment> = submitted.iter().filter(|(of, _)| of == name).map(|(_, at)| *at).collect();
        assert_eq!(found, expected(cron, START, world.now), "{name}");
    }
    assert_eq!(restarts.count(), 0);
    assert!(ended + 20 > submitted.len() as u64, "{ended} of {}", submitted.len());
    // The first weeks fill what is remembered; from then on it is full, and stays so.
    let most = |part: &[usize]| part.iter().max().copied().unwrap();
    let (first, last) = (most(&sizes[50..250]), most(&sizes[250..]));
    assert!(last as f64 <= 1.1 * first as f64, "{first} bytes in the first half, {last} in the second");
}
