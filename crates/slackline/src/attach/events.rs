//! Writes every event as one line of JSON. The schema is `docs/schema/attach-events.schema.json`. Each line
//! is written whole and flushed at once.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use slackline_model::Time;
use slackline_yarn::attach::{Application, AttachEvent, Phase, Status, Watcher};

/// Version of the line format.
const VERSION: u32 = 1;

/// Writes events. A write error disturbs nothing; [`Events::problem`] returns it at the end.
pub struct Events<W: Write> {
    out: W,
    problem: Option<io::Error>,
}

impl<W: Write> Events<W> {
    /// Writes events to `out`. The first event describes the cluster and the options.
    pub fn new(out: W, address: &str, queues: &[String], policy: &str, dry_run: bool) -> Self {
        let mut events = Self { out, problem: None };
        let begin = json!({
            "version": VERSION, "cluster": address, "queues": queues, "policy": policy, "dry_run": dry_run,
        });
        events.say("begin", Time::ZERO, begin);
        events
    }

    /// The first write error, if any. No line is written after it.
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
    fn happened(&mut self, now: Time, what: &AttachEvent) {
        let (event, more) = match what {
            AttachEvent::Troubled(reason) => ("troubled", json!({ "reason": reason })),
            AttachEvent::Warned(message) => ("warned", json!({ "message": message })),
            AttachEvent::Seen(app) => ("seen", json!({ "application": app.to_string() })),
            AttachEvent::WrongTag(app, problem) => {
                ("wrong_tag", json!({ "application": app.to_string(), "problem": problem }))
            }
            AttachEvent::Released(app) => ("released", json!({ "application": app.to_string() })),
            AttachEvent::Arrived { app, flow, job, tasks: [maps, reduces] } => (
                "arrived",
                json!({ "application": app.to_string(), "flow": flow, "job": job, "maps": maps, "reduces": reduces }),
            ),
            AttachEvent::LeftAlone(app, reason) => {
                ("left_alone", json!({ "application": app.to_string(), "reason": reason }))
            }
            AttachEvent::Done(app) => ("done", json!({ "application": app.to_string() })),
            AttachEvent::Failed(app, reason) => {
                ("failed", json!({ "application": app.to_string(), "reason": reason }))
            }
            // Later additions are not part of this version.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::Stage;

    /// One example of every event.
    fn all() -> (Vec<AttachEvent>, Status) {
        let id = "application_1700000000000_0001".parse().unwrap();
        let text = || "text".to_owned();
        let happened = vec![
            AttachEvent::Troubled(Some(text())),
            AttachEvent::Troubled(None),
            AttachEvent::Warned(text()),
            AttachEvent::Seen(id),
            AttachEvent::WrongTag(id, text()),
            AttachEvent::Released(id),
            AttachEvent::Arrived { app: id, flow: text(), job: text(), tasks: [3, 0] },
            AttachEvent::LeftAlone(id, text()),
            AttachEvent::Done(id),
            AttachEvent::Failed(id, text()),
        ];
        let application = |stage, cap, deadline| Application {
            id,
            flow: String::new(),
            job: text(),
            stage,
            phases: [Some(Phase { total: 3, done: 1, running: 1, cap, seconds: 0.5 }), None],
            priority: 1000,
            deadline,
            weight: 1.0,
        };
        let applications = vec![
            application(Stage::Held, None, None),
            application(Stage::Starting, Some(0), Some(-3.0)),
            application(Stage::Runs, Some(2), Some(60.0)),
        ];
        (happened, Status { now: Time(1_500_000), slots: 8, taken: 1, applications })
    }

    #[test]
    fn every_line_follows_the_schema_and_every_kind_of_line_is_in_it() {
        let schema = include_str!("../../../../docs/schema/attach-events.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let (happened, status) = all();
        let mut out = Vec::new();
        let mut events = Events::new(&mut out, "127.0.0.1:8088", &["etl".to_owned()], "edf", true);
        for what in &happened {
            events.happened(Time(1_000_000), what);
        }
        events.status(&status);
        assert!(events.problem().is_none());
        let mut names = std::collections::BTreeSet::new();
        for line in String::from_utf8(out).unwrap().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            validator.validate(&event).unwrap_or_else(|error| panic!("{line}: {error}"));
            names.insert(format!("#/$defs/{}", event["event"].as_str().unwrap()));
        }
        let known = schema["oneOf"].as_array().unwrap().iter();
        assert_eq!(names, known.map(|of| of["$ref"].as_str().unwrap().to_owned()).collect());
    }
}
