//! Everything that happens, a line of JSON each. Each line is written at once and as a whole.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use slackline_model::Time;

use super::{Application, Happened, Phase, Status, Watcher};

/// Version of the lines.
const VERSION: u32 = 1;

/// Writes events. What cannot be written disturbs nothing: it is remembered, and told at the end.
pub struct Events<W: Write> {
    out: W,
    problem: Option<io::Error>,
}

impl<W: Write> Events<W> {
    /// Events that are written to `out`, the first of which says what is driven and how.
    pub fn new(out: W, address: &str, queues: &[String], policy: &str, dry_run: bool) -> Self {
        let mut events = Self { out, problem: None };
        let begin = json!({
            "version": VERSION, "cluster": address, "queues": queues, "policy": policy, "dry_run": dry_run,
        });
        events.say("begin", Time::ZERO, begin);
        events
    }

    /// What kept a line from being written, if anything did; after it no line is.
    pub fn problem(&self) -> Option<&io::Error> {
        self.problem.as_ref()
    }

    fn say(&mut self, event: &str, now: Time, more: Value) {
        if self.problem.is_some() {
            return;
        }
        let mut line = Map::new();
        line.insert("event".to_owned(), event.into());
        line.insert("at".to_owned(), now.seconds().into());
        if let Value::Object(more) = more {
            line.extend(more);
        }
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        self.problem = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).err();
    }
}

impl<W: Write> Watcher for Events<W> {
    fn happened(&mut self, now: Time, what: &Happened) {
        let (event, more) = match what {
            Happened::Troubled(reason) => ("troubled", json!({ "reason": reason })),
            Happened::Seen(app) => ("seen", json!({ "application": app.to_string() })),
            Happened::WrongTag(app, problem) => {
                ("wrong_tag", json!({ "application": app.to_string(), "problem": problem }))
            }
            Happened::Released(app) => ("released", json!({ "application": app.to_string() })),
            Happened::Arrived { app, flow, job, tasks: [maps, reduces] } => (
                "arrived",
                json!({ "application": app.to_string(), "flow": flow, "job": job, "maps": maps, "reduces": reduces }),
            ),
            Happened::LeftAlone(app, reason) => {
                ("left_alone", json!({ "application": app.to_string(), "reason": reason }))
            }
            Happened::Done(app) => ("done", json!({ "application": app.to_string() })),
            Happened::Failed(app, reason) => {
                ("failed", json!({ "application": app.to_string(), "reason": reason }))
            }
            // What may be added is no part of this version.
            _ => return,
        };
        self.say(event, now, more);
    }

    fn status(&mut self, status: &Status) {
        let applications: Vec<Value> = status.applications.iter().map(application).collect();
        let status_of = json!({ "slots": status.slots, "taken": status.taken, "applications": applications });
        self.say("status", status.now, status_of);
    }
}

fn application(one: &Application) -> Value {
    let phase = |phase: Option<Phase>| {
        phase.map(|Phase { total, done, running, cap, seconds }| {
            json!({ "total": total, "done": done, "running": running, "cap": cap, "seconds": seconds })
        })
    };
    let [maps, reduces] = one.phases.map(phase);
    json!({ "application": one.id.to_string(), "flow": one.flow, "job": one.job, "stage": one.stage.name(), "maps": maps,
        "reduces": reduces, "priority": one.priority, "deadline": one.deadline, "weight": one.weight })
}
