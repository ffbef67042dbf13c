//! The stream of server-sent events.
//!
//! Events are numbered from the start of the process; the `id` is `STARTED-NUMBER`. A stream starts with an
//! event `begin`, which says whether the stream continues the previous one without a gap. The stream of a
//! client that does not keep up ends; its next stream continues with the events that are still kept.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use slackline_model::WallTime;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use super::answer::{ApiError, ApiResult, Problems, Query, json};
use super::{AppState, guard};
use crate::api::{Event, StreamStart};

/// The most events that are sent together.
const TOGETHER: usize = 200;

/// How long a checked token stays valid for a stream.
const ASKED: Duration = Duration::from_secs(1);

/// The time after which a client should reconnect, milliseconds.
const RETRY: u32 = 1_000;

/// Stream the events of the service as they happen.
#[utoipa::path(get, path = "/api/v1/events", tag = "events", security(("token" = ["look"])),
    params(("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that was had: those after it come first"),
        ("after" = Option<String>, Query, description = "The same, for clients that cannot set a header")),
    responses((status = 200, body = Event, content_type = "text/event-stream",
        description = "Server-sent events: `data` of each is an `Event`, its `event` the kind; of the first, `begin`, it is a `Began`"), Problems))]
pub(super) async fn events(State(app): State<AppState>, headers: HeaderMap, mut query: Query) -> ApiResult {
    let asked = query.text("after")?;
    query.end(&["after"])?;
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = asked.as_deref().or(header).map(|id| {
        let read = id
            .split_once('-')
            .and_then(|(epoch, id)| Some((WallTime(epoch.parse().ok()?), id.parse().ok()?)));
        let wrong = || ApiError::bad(format!("after: found {id:?}, expected the id of an event"));
        read.ok_or_else(wrong)
    });
    let mut listener = Listener::new(&app, after.transpose()?);
    listener.credential = headers.get(header::AUTHORIZATION).cloned();
    Ok(streamed(listener))
}

fn streamed(listener: Listener) -> Response {
    let pieces = stream::unfold(listener, |mut listener| async move {
        let piece = listener.next().await?;
        Some((Ok::<_, Infallible>(piece), listener))
    });
    let mut answer = Body::from_stream(pieces).into_response();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // A proxy that buffers responses would delay the events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

struct Listener {
    app: AppState,
    /// The first bytes of the stream.
    first: Option<String>,
    events: Receiver<Arc<Event>>,
    stopped: watch::Receiver<bool>,
    /// The `authorization` header of the client, if any.
    credential: Option<HeaderValue>,
    /// The time of the last check of the token.
    asked: Instant,
}

impl Listener {
    /// A stream for a client that has received all events up to `after`.
    fn new(app: &AppState, after: Option<(WallTime, u64)>) -> Self {
        let epoch = app.epoch;
        let had = after.map(|(of, id)| if of == epoch { id } else { 0 });
        let (missed, events) = app.handle.events().after(had);
        let complete = match after {
            None => true,
            Some((of, id)) => of == epoch && missed.first().is_none_or(|first| first.id <= id + 1),
        };
        let begin = json(&StreamStart { complete });
        let mut first = format!("retry: {RETRY}\nevent: begin\ndata: {begin}\n\n");
        for event in missed {
            write(&mut first, epoch, &event);
        }
        app.streams.fetch_add(1, Ordering::Relaxed);
        let (stopped, asked) = (app.stopped.clone(), Instant::now());
        Self { app: app.clone(), first: Some(first), events, stopped, credential: None, asked }
    }

    /// The next bytes. `None`: the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first.into());
        }
        let event = tokio::select! {
            event = self.events.recv() => Some(event),
            () = tokio::time::sleep(self.app.setup.bounds.heartbeat) => None,
            _ = self.stopped.wait_for(|stopped| *stopped) => return None,
        };
        if self.is_shut_out().await {
            return None;
        }
        let Some(event) = event else { return Some(Bytes::from_static(b":\n\n")) };
        // A lagging client has missed events, so its stream ends.
        let event = event.ok()?;
        let mut text = String::new();
        write(&mut text, self.app.epoch, &event);
        for _ in 1..TOGETHER {
            match self.events.try_recv() {
                Ok(event) => write(&mut text, self.app.epoch, &event),
                // The next call handles the error.
                Err(_) => break,
            }
        }
        Some(text.into())
    }
}

impl Listener {
    /// Whether the token has been removed. The check reads a file, so it happens at most once per second.
    async fn is_shut_out(&mut self) -> bool {
        let Some(credential) = self.credential.clone().filter(|_| self.asked.elapsed() >= ASKED) else {
            return false;
        };
        self.asked = Instant::now();
        let app = self.app.clone();
        let asked = tokio::task::spawn_blocking(move || guard::is_unknown(&app, &credential));
        asked.await.unwrap_or(false)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.app.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

fn write(text: &mut String, epoch: WallTime, event: &Event) {
    use std::fmt::Write;
    let data = json(event);
    let _ = write!(text, "id: {}-{}\nevent: {}\ndata: {data}\n\n", epoch.0, event.id, event.kind);
}

/// Counts events by kind until the service stops.
pub(super) async fn count(app: AppState) {
    let (_, mut events) = app.handle.events().after(None);
    let mut stopped = app.stopped.clone();
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match event {
            Ok(event) => app.metrics.event(&event.kind),
            // The counter misses events only if more than the channel's capacity come at once.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
