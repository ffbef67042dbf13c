//! The wall clock jumps under a service and under a run: work continues, nothing is deleted, and the service
//! reports the jump.

use std::fs::{self, File};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::fake_system::FakeSystem;
use crate::processes::{pause, signal};
use crate::scratch;
use crate::serve::{Place, get};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A service whose wall clock a test can shift.
struct Clocked {
    place: Place,
    system: FakeSystem,
    options: Vec<&'static str>,
    service: Child,
}

impl Clocked {
    /// Starts a service with a wall clock that is off by `shift` seconds.
    fn start(name: &str, shift: i64, options: &[&'static str]) -> Option<Self> {
        let place = Place::new(scratch(name), name);
        let system = FakeSystem::new(&place.dir)?;
        system.shift(shift);
        let service = Self::serve(&place, &system, options);
        let this = Self { place, system, options: options.to_vec(), service };
        this.wait_for(|this| this.queue().is_some());
        Some(this)
    }

    fn serve(place: &Place, system: &FakeSystem, options: &[&str]) -> Child {
        let socket = place.socket.display().to_string();
        let args = ["serve", "--allow-root", "--state", "s", "--slots", "2", "--socket", &socket];
        let mut command = place.family.command(&place.dir, &[&args, options].concat());
        let log = File::options().create(true).append(true).open(place.dir.join("serve.log")).unwrap();
        system.fake(&mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().unwrap()
    }

    /// Ends the service, and starts it again with another wall clock.
    fn restart(&mut self, shift: i64) {
        self.stop();
        self.system.shift(shift);
        self.service = Self::serve(&self.place, &self.system, &self.options);
        self.wait_for(|this| this.queue().is_some());
    }

    fn stop(&mut self) {
        signal("TERM", self.service.id());
        self.service.wait().unwrap();
    }

    /// Waits for a condition, at most two minutes.
    fn wait_for(&self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..1200 {
            if is_so(self) {
                return;
            }
            pause(100);
        }
        let log = fs::read_to_string(self.place.dir.join("serve.log")).unwrap_or_default();
        panic!("it does not come:\n{:#}\n{:#}\n{log}", self.queue().unwrap_or_default(), self.service());
    }

    fn queue(&self) -> Option<Value> {
        let ran = self.place.ask(&["queue", "--all", "--format", "json"]);
        (ran.code == Some(0)).then(|| serde_json::from_str(&ran.out).unwrap())
    }

    fn submissions(&self) -> Vec<Value> {
        let queue = self.queue().unwrap_or_default();
        queue["submissions"].as_array().cloned().unwrap_or_default()
    }

    /// The document of the service; null if it does not answer.
    fn service(&self) -> Value {
        get(&self.place.socket, "/api/v1/service")
            .and_then(|(_, body)| serde_json::from_str(&body).ok())
            .unwrap_or_default()
    }

    fn trouble(&self) -> Option<String> {
        self.service()["trouble"].as_str().map(str::to_owned)
    }

    fn state(&self, number: u64) -> String {
        let all = self.submissions();
        let one = all.iter().find(|one| one["number"] == number);
        one.map_or(String::new(), |one| one["state"].as_str().unwrap().to_owned())
    }

    /// Submits a flow of one command, which writes to `out-NAME`.
    fn submit(&self, name: &str, command: &str, options: &[&str]) -> u64 {
        let file = format!("{name}.toml");
        let run = format!("run = {{ command = \"{command}\", output = 'out-{name}' }}");
        let flow = format!("slackline = 1\n[[flows]]\nid = 'f'\njobs = [{{ id = 'j', {run} }}]\n");
        fs::write(self.place.dir.join(&file), flow).unwrap();
        let out = self.place.done(&[&["submit", &file, "--quiet"], options].concat());
        out.trim().parse().unwrap_or_default()
    }

    fn wait_done(&self, number: u64) {
        self.wait_for(|this| this.state(number) == "finished");
    }

    /// Whether the next time of a schedule comes within `seconds`, by the clock of the service.
    fn comes_within(&self, name: &str, seconds: i64) -> bool {
        let out = self.place.done(&["schedule", "list", "--format", "json"]);
        let all: Value = serde_json::from_str(&out).unwrap();
        let all = all["recurrences"].as_array().unwrap_or_else(|| panic!("{all:#}"));
        let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {all:#?}"));
        let at = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second();
        (0..=seconds).contains(&(at(&one["next"]) - at(&self.service()["now"])))
    }
}

impl Drop for Clocked {
    fn drop(&mut self) {
        let _ = self.service.kill();
        let _ = self.service.wait();
    }
}

#[test]
fn after_a_jump_under_a_service_submissions_start_at_once_and_it_is_reported() {
    let Some(clocked) = Clocked::start("clock-jumps", 0, &[]) else { return };
    clocked.wait_done(clocked.submit("before", "echo a", &[]));
    let long = clocked.submit("long", "sleep 12", &["--deadline", "f=10h"]);
    clocked.wait_for(|this| this.state(long) == "running");
    let jumps =
        [("night", 8 * HOUR), ("morning", 0), ("back", -8 * HOUR), ("year", YEAR), ("again", 0), ("few", 15)];
    for (name, shift) in jumps {
        clocked.system.shift(shift);
        clocked.wait_for(|this| this.trouble().is_some_and(|trouble| trouble.starts_with("the clock")));
        clocked.wait_done(clocked.submit(name, "echo a", &[]));
    }
    clocked.wait_done(long);
    let document = clocked.place.done(&["status", &long.to_string(), "--format", "json"]);
    let shown: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(shown["flows"][0]["late"], false, "{shown:#}");
    for name in ["long", "night"] {
        let [workload, schedule] = ["workload", "schedule"].map(|file| format!("s/flows/{name}/{file}.json"));
        let checked = clocked.place.ask(&["check", &workload, &schedule]);
        assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    }
}

#[test]
fn a_clock_that_is_a_year_ahead_for_seconds_stops_no_schedule_and_deletes_nothing() {
    let Some(mut clocked) = Clocked::start("clock-year", 0, &["--keep-for", "30d"]) else { return };
    let first = clocked.submit("first", "echo a", &[]);
    clocked.wait_done(first);
    clocked.submit("minutely", "echo a", &["--schedule", "* * * * *"]);
    clocked.submit("nightly", "echo a", &["--schedule", "0 2 * * *"]);
    clocked.system.shift(YEAR);
    clocked.wait_for(|this| this.comes_within("nightly", DAY));
    let ahead = clocked.submit("ahead", "echo a", &[]);
    clocked.wait_for(|this| this.comes_within("minutely", 60));
    clocked.system.shift(0);
    clocked.wait_for(|this| this.comes_within("minutely", 60));
    clocked.wait_for(|this| this.comes_within("nightly", DAY));
    clocked.wait_done(ahead);
    let said = clocked.trouble().unwrap();
    assert!(said.contains("minutely") && said.contains("nightly"), "{said}");
    // The clock is wrong also while the service starts, and right again.
    clocked.restart(61 * DAY);
    clocked.restart(0);
    assert_eq!(clocked.state(first), "finished");
    assert!(clocked.place.dir.join("s/flows/first/journal.log").exists());
    clocked.wait_done(clocked.submit("first", "echo a", &[]));
    clocked.wait_for(|this| this.comes_within("minutely", 60));
}

#[test]
fn a_service_that_starts_with_a_clock_that_is_behind_says_so_and_works() {
    let Some(mut clocked) = Clocked::start("clock-behind", 0, &[]) else { return };
    clocked.submit("minutely", "echo a", &["--schedule", "* * * * *"]);
    // Eight hours, and more than a day.
    for (k, shift) in [-8 * HOUR, -30 * HOUR].into_iter().enumerate() {
        clocked.restart(shift);
        let trouble = clocked.trouble().unwrap_or_default();
        assert!(trouble.contains("the clock"), "{trouble}");
        clocked.wait_done(clocked.submit(&format!("f{k}"), "echo a", &[]));
        clocked.wait_for(|this| this.comes_within("minutely", 60));
    }
    clocked.system.shift(0);
    clocked.wait_for(|this| this.comes_within("minutely", 60));
    clocked.wait_done(clocked.submit("right", "echo a", &[]));
}

#[test]
fn many_missed_times_cost_nothing() {
    let Some(mut clocked) = Clocked::start("clock-missed", 0, &[]) else { return };
    for k in 0..100 {
        clocked.submit(&format!("m{k}"), "echo a", &["--schedule", "* * * * *"]);
    }
    clocked.restart(31 * DAY);
    // Missed starts are made up for once.
    clocked.wait_for(|this| {
        let all = this.submissions();
        all.iter().filter(|one| one["state"] == "finished").count() >= 100
    });
    let seconds: f64 = fs::read_to_string(format!("/proc/{}/stat", clocked.service.id()))
        .map(|stat| {
            stat.rsplit(')')
                .next()
                .unwrap()
                .split_whitespace()
                .skip(11)
                .take(2)
                .map(|t| t.parse::<f64>().unwrap())
                .sum()
        })
        .unwrap();
    assert!(seconds < 1500.0, "{} s of processor time", seconds / 100.0);
}

#[test]
fn a_run_keeps_the_date_of_its_deadline_when_the_clock_jumps() {
    let place = Place::new(scratch("clock-run"), "clock-run");
    let Some(system) = FakeSystem::new(&place.dir) else { return };
    let flow = "slackline = 1\n[[flows]]\nid = 'f'\ndeadline = '1h'\njobs = [{ id = 'j', run = { command = \
                'touch began; while [ ! -e go ]; do sleep 0.1; done', output = 'out' } }]\n\
                [[flows]]\nid = 'g'\nrelease = '2h'\njobs = [{ id = 'j', run = { command = 'echo a', output = 'g' } }]\n";
    fs::write(place.dir.join("flow.toml"), flow).unwrap();
    let mut command = place
        .family
        .command(&place.dir, &["run", "flow.toml", "--slots", "2", "--state", "st", "--events", "ev"]);
    let child = system.fake(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let events = || fs::read_to_string(place.dir.join("ev")).unwrap_or_default();
    let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
        assert!(
            (0..600).any(|_| {
                pause(100);
                is_so()
            }),
            "{what} does not come: {}",
            events()
        );
    };
    wait_for("the task", &|| place.dir.join("began").exists());
    system.shift(8 * HOUR);
    wait_for("the jump", &|| events().contains("clock_jumped"));
    fs::write(place.dir.join("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(events().contains("flow_late"), "{}", events());
    let schedule = place.ask(&["check", "st/workload.json", "st/schedule.json"]);
    assert_eq!(schedule.code, Some(0), "{}{}", schedule.out, schedule.err);
    let document: Value =
        serde_json::from_slice(&fs::read(place.dir.join("st/schedule.json")).unwrap()).unwrap();
    let late = document["metrics"]["late"].as_f64().or(document["metrics"]["tardy"].as_f64());
    assert!(text.contains("late"), "{text}\n{late:?}");
    let again = place.ask(&["run", "flow.toml", "--slots", "2", "--state", "st"]);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
}
