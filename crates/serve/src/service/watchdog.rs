//! Finds blocked threads of the service and names their operation. It runs on a separate thread and waits for
//! no other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slackline_task::base::activity::{self, Activity, Duty};
use slackline_task::base::clock;

use crate::lock;
use crate::service::launcher::{LauncherPool, OPENER};
use crate::service::message::{Message, StatusCallback};
use crate::state::HealthProblem;

/// The interval between two checks. Checks are counted, so time in which this process was stopped does not
/// count.
const STEP: Duration = Duration::from_millis(250);

/// The number of checks without progress after which a thread counts as blocked: 5 s.
const BLOCKED: u32 = 20;

/// The operation of the blocked thread. `None` while no thread is blocked. Reading it waits for no other
/// thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blockage(Arc<Mutex<Option<String>>>);

impl Blockage {
    pub(crate) fn get(&self) -> Option<String> {
        lock(&self.0).clone()
    }

    fn set(&self, what: Option<String>) {
        *lock(&self.0) = what;
    }
}

/// Watches the announced threads of this process.
pub(crate) struct Watchdog {
    pub(crate) blocked: Blockage,
    pub(crate) log: StatusCallback,
    pub(crate) messages: Sender<Message>,
}

/// The observations of one thread.
#[derive(Default)]
struct ThreadView {
    steps: u64,
    /// The number of checks without progress.
    looks: u32,
    /// The blocked operation that was logged.
    logged: Option<String>,
}

impl Watchdog {
    /// Checks every [`STEP`] until the service ends.
    pub(crate) fn work(self, is_over: &AtomicBool, openers: &LauncherPool) {
        let mut seen = BTreeMap::new();
        while !is_over.load(Ordering::SeqCst) {
            clock::pause(STEP);
            for name in self.look(&mut seen, &activity::all()) {
                if name.starts_with(OPENER) {
                    // If the system has no more threads, the existing ones do the work.
                    let _ = openers.start();
                }
            }
        }
    }

    /// Compares all threads with the previous check, by name. Returns the newly blocked ones.
    fn look(&self, seen: &mut BTreeMap<String, ThreadView>, all: &[Arc<Activity>]) -> Vec<String> {
        let (mut lines, mut blocked, mut new) = (Vec::new(), None, Vec::new());
        seen.retain(|name, _| all.iter().any(|one| one.name() == name));
        for one in all {
            let seen = seen.entry(one.name().to_owned()).or_default();
            let (name, steps, operation) = (one.name(), one.steps(), one.operation());
            let has_moved = steps != seen.steps || operation.is_none() && one.duty() != Duty::Loop;
            if has_moved {
                if let Some(what) = seen.logged.take() {
                    lines.push(format!("{name} runs again; it was blocked ({what})"));
                }
                *seen = ThreadView { steps, ..ThreadView::default() };
                continue;
            }
            seen.looks = seen.looks.saturating_add(1);
            if seen.looks < BLOCKED {
                continue;
            }
            let what = operation.unwrap_or_else(|| "unknown operation".to_owned());
            let line = format!("{name} is blocked: {what}");
            if seen.logged.is_none() {
                lines.push(line.clone());
                new.push(name.to_owned());
                seen.logged = Some(what);
            }
            if one.duty() != Duty::Helper {
                blocked.get_or_insert(line);
            }
        }
        let is_new = self.blocked.get() != blocked;
        // This comes before the log, which may block.
        self.blocked.set(blocked.clone());
        if is_new {
            let _ = self.messages.send(Message::Problem(HealthProblem::Blocked, blocked));
        }
        for line in lines {
            let _ = self.messages.send(Message::Happened("blocked", line.clone()));
            (self.log)(&line);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_blocked_thread_is_logged_once_and_again_when_it_runs() {
        let (messages, received) = channel();
        let (lines, logged) = channel();
        let lines = Mutex::new(lines);
        let log: StatusCallback =
            Arc::new(move |line: &str| lines.lock().unwrap().send(line.to_owned()).unwrap());
        let watchdog = Watchdog { blocked: Blockage::default(), log, messages };
        let blocked = watchdog.blocked.clone();
        let (begin, begun) = channel::<()>();
        let (end, ended) = channel::<()>();
        let (wait, waited) = channel::<()>();
        let thread = std::thread::spawn(move || {
            activity::announce("writer of a test", Duty::Sole);
            activity::during("write to", "a journal", || {
                begin.send(()).unwrap();
                ended.recv().unwrap();
            });
            begin.send(()).unwrap();
            waited.recv().unwrap();
        });
        let mut seen = BTreeMap::new();
        let own = || {
            let all = activity::all().into_iter().filter(|one| one.name() == "writer of a test");
            all.collect::<Vec<_>>()
        };
        begun.recv().unwrap();
        for _ in 0..BLOCKED {
            watchdog.look(&mut seen, &own());
            assert_eq!(blocked.get(), None);
        }
        for _ in 0..3 {
            watchdog.look(&mut seen, &own());
            assert_eq!(blocked.get().as_deref(), Some("writer of a test is blocked: write to a journal"));
        }
        end.send(()).unwrap();
        begun.recv().unwrap();
        for _ in 0..2 * BLOCKED {
            watchdog.look(&mut seen, &own());
            assert_eq!(blocked.get(), None, "a thread without work is not blocked");
        }
        wait.send(()).unwrap();
        thread.join().unwrap();
        drop(watchdog);
        let logged: Vec<String> = logged.iter().collect();
        let expected = [
            "writer of a test is blocked: write to a journal",
            "writer of a test runs again; it was blocked (write to a journal)",
        ];
        assert_eq!(logged, expected);
        let troubles = received.iter().filter_map(|message| match message {
            Message::Problem(HealthProblem::Blocked, what) => Some(what),
            _ => None,
        });
        assert_eq!(troubles.collect::<Vec<_>>(), [Some(expected[0].to_owned()), None]);
    }
}
