//! A year of a service: flows recur across both changes of daylight saving time, the simulator is the engine,
//! the test controls the clock, and the service stops 500 times.

use slackline::{Options, PolicySpec, Registry, simulate};
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{Instance, Seed, WallTime, random};

use crate::state::tests::world::{START, World, minutes, sent, submit};
use crate::state::tests::*;

const DAY: u64 = 24 * 3600 * SECOND;
const ZONE: &str = "Europe/Berlin";
const RESTARTS: u64 = 500;

/// Schedules: the name, the cron expression, the number of tasks, and their duration in minutes.
const RECURRING: [(&str, &str, u32, f64); 8] = [
    ("hourly", "5 * * * *", 2, 4.0),
    ("ingest", "0 1 * * *", 4, 15.0),
    // A time in the hour that is skipped in spring and repeated in autumn.
    ("in the gap", "30 2 * * *", 3, 10.0),
    ("at the gap", "0 2 * * *", 1, 5.0),
    ("after the gap", "0 3 * * *", 2, 20.0),
    ("workdays", "15 6 * * 1-5", 4, 10.0),
    ("monthly", "0 4 1 * *", 8, 30.0),
    ("weekly", "45 23 * * 0", 6, 20.0),
];

/// The simulator as an engine. Each new run simulates again all runs since the engine was idle. Earlier
/// results stay the same, because no policy sees the future.
struct Engine {
    policy: PolicySpec,
    began: WallTime,
    flows: Vec<(u64, FlowDraft)>,
    /// The ends of unfinished runs.
    ends: BTreeMap<u64, WallTime>,
}

impl Engine {
    fn admit(&mut self, now: WallTime, number: u64, name: &str) {
        if self.ends.is_empty() {
            self.flows.clear();
            self.began = now;
        }
        let (_, _, tasks, minutes) = RECURRING.into_iter().find(|(known, ..)| *known == name).unwrap();
        let map = Some(TasksDraft::Uniform { tasks, seconds: 60.0 * minutes }.into());
        let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
        let release = now.seconds_since(self.began);
        let flow = FlowDraft { release, ..FlowDraft::new(format!("{number}"), vec![job]) };
        self.flows.push((number, flow));
        self.ends.insert(number, WallTime::MAX);
        let slots = Slots::Generic(2);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        let flows = self.flows.iter().map(|(_, flow)| flow.clone()).collect();
        let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
        // `simulate` also validates the schedule.
        let simulated = simulate(&instance, &self.policy, &Options::exact(), None, None).unwrap();
        for row in &simulated.schedule.flows {
            let (number, _) = self.flows[row.flow.index()];
            let at = self.began.after_seconds(row.completion.unwrap());
            if let Some(end) = self.ends.get_mut(&number) {
                assert!(at > now, "{number} was done before it was known");
                *end = at;
            }
        }
    }

    fn next(&self) -> Option<(WallTime, u64)> {
        self.ends.iter().map(|(&number, &at)| (at, number)).min()
    }
}

/// The expected times of a schedule, found minute by minute. Fixed times of day: in local time; a skipped time counts
/// at the end of the gap, and a repeated time counts once, the first time. With `*` in the minute or hour: in elapsed
/// time.
fn expected(cron: &str, from: WallTime, until: WallTime) -> Vec<WallTime> {
    let fields: Vec<&str> = cron.split(' ').collect();
    let is_in = |field: &str, value: i8| match (field, field.split_once('-')) {
        ("*", _) => true,
        (_, Some((least, most))) => (least.parse::<i8>().unwrap()..=most.parse().unwrap()).contains(&value),
        _ => field.parse() == Ok(value),
    };
    let matches = |wall: jiff::civil::DateTime| {
        let weekday = wall.weekday().to_sunday_zero_offset();
        let values = [wall.minute(), wall.hour(), wall.day(), wall.month(), weekday];
        fields.iter().zip(values).all(|(field, value)| is_in(field, value))
    };
    let zone = jiff::tz::TimeZone::get(ZONE).unwrap();
    if fields[..2].contains(&"*") {
        let minute = minutes(1);
        let first = WallTime(from.0 / minute * minute);
        let all = (1..).map(|k| first + k * minute).take_while(|&at| at <= until);
        return all.filter(|&at| matches(timestamp(at).to_zoned(zone.clone()).datetime())).collect();
    }
    let mut wall = timestamp(from.earlier_by(DAY)).to_zoned(zone.clone()).datetime();
    wall = wall.with().second(0).subsec_nanosecond(0).build().unwrap();
    let mut times = Vec::new();
    while times.last().is_none_or(|&at| at < until) {
        wall = wall.checked_add(jiff::Span::new().minutes(1)).unwrap();
        if matches(wall) {
            let ambiguous = zone.to_ambiguous_zoned(wall);
            let at = ambiguous.clone().compatible().unwrap().timestamp();
            let is_skipped = matches!(ambiguous.offset(), jiff::tz::AmbiguousOffset::Gap { .. });
            // The gap is an hour, and `compatible` moves by it.
            let after = at + jiff::SignedDuration::from_nanos(1);
            let at = if is_skipped { zone.preceding(after).next().unwrap().timestamp() } else { at };
            times.push(crate::wall_time(at));
        }
    }
    times.retain(|&at| at > from && at <= until);
    times.sort_unstable();
    times.dedup();
    times
}

/// The memory of the process, MiB: now, and at most. `None` if the system does not report it.
fn memory() -> Option<[u64; 2]> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? >> 10)
    };
    Some([of("VmRSS:")?, of("VmHWM:")?])
}

/// Prints the memory of the process and the size of the state at the end of a quarter.
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
        world.execute(&anna, sent(again, name)).unwrap();
    }
    let mut rng = random::rng(Seed(2027), "year", 0);
    let until = START + 365 * DAY;
    let mut restarts: Vec<WallTime> =
        (0..RESTARTS).map(|_| START + SECOND * random::integer(&mut rng, 1, 365 * 24 * 3600 - 1)).collect();
    restarts.sort_unstable();
    let mut restarts = restarts.into_iter().peekable();
    let mut submitted: Vec<(String, WallTime)> = Vec::new();
    let (mut sizes, mut ended, mut quarter) = (Vec::<usize>::new(), 0_u64, 1);
    while world.now < until {
        if world.now >= START + quarter * until.since(START) / 4 {
            tell(quarter, memory(), sizes.last(), ended);
            quarter += 1;
        }
        let next = [
            Some(world.now + world.state.due(world.clock())),
            engine.next().map(|(at, _)| at),
            restarts.peek().copied(),
        ];
        let next = next.into_iter().flatten().min().unwrap().clamp(world.now, until);
        world.pass(next.since(world.now));
        if restarts.next_if(|&at| at <= world.now).is_some() {
            // In some steps the service is down for hours.
            if random::integer(&mut rng, 0, 9) == 0 {
                world.now = world.now + SECOND * random::integer(&mut rng, 1, 6 * 3600);
            }
            submitted.extend(world.submitted().into_iter().map(|wanted| (wanted.name, wanted.since)));
            world.records = world.state.records();
            world.restart();
            world.forget_events();
            // Running tasks start again.
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
            world.open(number, &[("f", tasks.into(), Some(now.since(START) + minutes(240)))]);
            engine.admit(now, number, &name);
        }
    }
    tell(quarter, memory(), sizes.last(), ended);
    submitted.extend(world.submitted().into_iter().map(|wanted| (wanted.name, wanted.since)));
    submitted.sort();
    // A rewrite repeats the records of unfinished submissions.
    submitted.dedup();
    for (name, cron, ..) in RECURRING {
        let found: Vec<WallTime> = submitted.iter().filter(|(of, _)| of == name).map(|(_, at)| *at).collect();
        assert_eq!(found, expected(cron, START, world.now), "{name}");
    }
    assert_eq!(restarts.count(), 0);
    assert!(ended + 20 > submitted.len() as u64, "{ended} of {}", submitted.len());
    // The remembered submissions reach their limit in the first weeks, and then stay at it.
    let most = |part: &[usize]| part.iter().max().copied().unwrap();
    let (first, last) = (most(&sizes[50..250]), most(&sizes[250..]));
    assert!(last as f64 <= 1.1 * first as f64, "{first} bytes in the first half, {last} in the second");
}
