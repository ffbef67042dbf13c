//! `top`: a live view of a service on a terminal.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use slackline_serve::api::{Event, Service, State, Submission};
use slackline_serve::http::client::{Client, ClientError};

use super::queue::Listing;
use crate::args::ServerFlags;
use crate::args::defaults::Defaults;
use crate::terminal::service;
use crate::terminal::watch::content::ViewContent;
use crate::terminal::watch::{Observation, Stream, ViewEnd, Watch, content};
use crate::verbs::answer::Answer;

/// As many live submissions are looked into.
const LOOKED_INTO: usize = 200;
/// As many that wait are shown.
const WAITING: usize = 200;
const EVENTS: usize = 200;
/// The interval of retries for an unreachable service.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline top
  slackline top --server https://flows.example.org:7070

Flows of all submissions with their deadlines, running tasks and events; ? shows its keys. `slackline queue` prints the \
same once.")]
pub(crate) struct Top {
    #[command(flatten)]
    server: ServerFlags,
}

type Events = Arc<Mutex<VecDeque<content::Event>>>;

pub(crate) fn run(args: &Top, defaults: &Defaults) -> anyhow::Result<Answer> {
    if !std::io::stdout().is_terminal() || !Stream::Out.is_interactive() {
        bail!("top needs a terminal; `slackline queue` prints the same once");
    }
    let mut client = args.server.client(defaults.state())?;
    // Errors are printed before the screen is taken over.
    let _: Service = client.get("/api/v1/service")?;
    let events: Events = Arc::default();
    let (event_list, mut listening) = (events.clone(), args.server.client(defaults.state())?);
    let thread = std::thread::Builder::new().name("events".to_owned());
    thread.spawn(move || listen(&mut listening, &event_list)).context("cannot listen to events")?;
    let look = move || match observe(&mut client, &events) {
        Ok(shown) => Observation::Content(Box::new(shown)),
        Err(error) => Observation::Content(Box::new(ViewContent {
            headline: format!("{error:#}"),
            ..ViewContent::default()
        })),
    };
    let left = Watch::observe(Box::new(look))?;
    Ok(if left == ViewEnd::ByInterrupt { Answer::Stopped } else { Answer::Yes })
}

fn observe(client: &mut Client, events: &Events) -> anyhow::Result<ViewContent> {
    let service: Service = client.get("/api/v1/service")?;
    let list = |client: &mut Client, states: &[State], limit: usize| {
        Listing { states, user: None, name: None, limit }.get(client).map(|(all, _)| all)
    };
    let live = list(client, &[State::Running], LOOKED_INTO)?;
    let queued = list(client, &[State::Queued, State::Opening], WAITING)?;
    let mut whole = Vec::new();
    for one in live {
        // A submission that finished meanwhile keeps its last state.
        whole.push(match client.get::<Submission>(&format!("/api/v1/submissions/{}", one.number)) {
            Ok(shown) => shown,
            Err(ClientError::Refused { .. }) => one,
            Err(error) => return Err(error.into()),
        });
    }
    whole.reverse();
    let events: Vec<content::Event> =
        events.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
    Ok(service::view_content(&service, &whole, &queued, &events))
}

/// Collects the events of the service until the program ends.
fn listen(client: &mut Client, events: &Events) {
    let mut last: Option<String> = None;
    loop {
        // Errors of the service are reported by the observer.
        let _ = client.events(last.clone().as_deref(), |id, event| {
            last = Some(id.to_owned());
            let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
            events.push_back(event_line(&event));
            if events.len() > EVENTS {
                events.pop_front();
            }
            true
        });
        slackline_task::base::clock::pause(AGAIN);
    }
}

fn event_line(event: &Event) -> content::Event {
    let flow = event.number.zip(event.flow.as_ref()).map(|(number, flow)| format!("{number}/{flow}"));
    let number = event.number.map_or_else(String::new, |number| format!("{number}: "));
    let message = service::localised(&event.message, event.at);
    content::Event { flow, text: format!("{}  {number}{message}", service::clock(event.at, event.at)) }
}
