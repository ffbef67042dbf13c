//! The live view of a run on a terminal: flows, what is at work, what happened, and keys to look into a flow.
//!
//! It shows what `status --format json` gives, looked up again and again by a thread of its own; another one reads keys and
//! draws, so that neither waits for the other or for the run.
//!
//! - [`content`]: what is shown, in words;
//! - [`keys`]: what keys do;
//! - [`draw`](mod@draw), [`columns`]: how it looks on so much room;
//! - [`terminal`]: a terminal that is taken over, and given back whatever happens.

mod columns;
pub(crate) mod content;
mod draw;
mod keys;
mod terminal;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event as Input};
use slackline::run::StateOfRun;
use slackline_local::clock;
use slackline_local::surroundings::on_stop_signal;

use crate::terminal::clock::Stopwatches;
use crate::terminal::out;

use content::{Event, ViewContent};
use keys::{KeyAction, Selection};
use terminal::Screen;

pub(crate) use keys::Viewer;
pub(crate) use terminal::Stream;

/// Between two looks at the run, at least; and so many times as long as a look takes, so that watching takes little.
const PAUSE: f64 = 1.0;
const PAUSE_FACTOR: f64 = 10.0;

/// How long keys are waited for before it is drawn again.
const KEYS: Duration = Duration::from_millis(100);

/// Between two looks at whether it is over.
const TICK: Duration = Duration::from_millis(20);

/// A thread that does not end within so many seconds is left behind.
const JOIN_TIMEOUT: f64 = 2.0;

/// A run that is over sooner is not worth a view.
const VIEW_DELAY: f64 = 1.0;

/// How a view ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ViewEnd {
    #[default]
    Open,
    /// By the person at the terminal.
    ByKey,
    /// By ctrl-C, or because its terminal is gone.
    ByInterrupt,
    /// The run is over, or there is nothing to look at any more.
    RunFinished,
}

/// What a look at the run gives.
pub(crate) enum Observation {
    /// The run as it is now.
    State(Box<StateOfRun>),
    /// Something else, in words already.
    Content(Box<ViewContent>),
    Nothing,
    /// There is nothing to be looked at any more.
    Finished,
}

/// How to look at the run.
pub(crate) type Observer = Box<dyn FnMut() -> Observation + Send>;

/// What its threads share.
#[derive(Default)]
struct Shared {
    content: Mutex<Option<ViewContent>>,
    left: Mutex<ViewEnd>,
    is_finished: AtomicBool,
}

/// What may be broken by a panic is only shown.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A view that is open until it is dropped.
pub(crate) struct Watch {
    stream: Stream,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Opens a view. What is said on standard error meanwhile is shown among the events and said when it is left.
    /// `stop` is called when the person at the terminal wants the run to stop.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn open(
        stream: Stream,
        viewer: Viewer,
        observer: Observer,
        stop: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let mut watch = Self { stream, shared: Arc::default(), threads: Vec::new() };
        out::hold();
        watch.start({
            let shared = Arc::clone(&watch.shared);
            move || {
                let left = show(&shared, stream, viewer, &stop);
                // Where no view can be drawn there are lines.
                let left = left.unwrap_or_else(|error| {
                    out::warn(format_args!("the terminal cannot show the run: {error}"));
                    ViewEnd::ByKey
                });
                *lock(&shared.left) = left;
                out::release_held();
            }
        })?;
        let shared = Arc::clone(&watch.shared);
        watch.start(move || observe(&shared, observer))?;
        Ok(watch)
    }

    /// Starts one of its threads.
    fn start(&mut self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("view".to_owned()).spawn(work);
        let thread =
            thread.map_err(|e| io::Error::new(e.kind(), format!("the view cannot be opened: {e}")))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Looks on at something that others do, until the view is left or a signal ends it. Signals end the view first, or the terminal
    /// would stay as it is.
    ///
    /// # Errors
    /// The system has no more threads or descriptors.
    pub(crate) fn observe(observer: Observer) -> io::Result<ViewEnd> {
        let watch = Self::open(Stream::Out, Viewer::Observer, observer, || {})?;
        let (end, was_signalled) = (watch.stop_handle(), Arc::new(AtomicBool::new(false)));
        let signalled = Arc::clone(&was_signalled);
        on_stop_signal(move || {
            signalled.store(true, Ordering::SeqCst);
            end();
        })?;
        let left = watch.wait();
        out::release_held();
        Ok(if was_signalled.load(Ordering::SeqCst) { ViewEnd::ByInterrupt } else { left })
    }

    /// How it ended, if it has.
    pub(crate) fn left(&self) -> ViewEnd {
        *lock(&self.shared.left)
    }

    /// Waits until it ends.
    pub(crate) fn wait(mut self) -> ViewEnd {
        if !self.threads.is_empty() {
            let drawing = self.threads.remove(0);
            while !drawing.is_finished() && !self.shared.is_finished.load(Ordering::SeqCst) {
                // Not everywhere a signal says so.
                if !self.stream.is_terminal() {
                    self.shared.is_finished.store(true, Ordering::SeqCst);
                    *lock(&self.shared.left) = ViewEnd::ByInterrupt;
                }
                clock::pause(TICK);
            }
            join(drawing);
        }
        self.left()
    }

    /// Ends it from elsewhere, such as a handler of signals.
    pub(crate) fn stop_handle(&self) -> impl Fn() + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.is_finished.store(true, Ordering::SeqCst)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.is_finished.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(join);
        out::release_held();
    }
}

/// Waits for a thread that is told to end. Whoever reads keys of a terminal that is gone never comes back, and is left behind.
fn join(thread: JoinHandle<()>) {
    let watches = Stopwatches::new(1);
    while !thread.is_finished() {
        if watches.seconds(0) > JOIN_TIMEOUT {
            return;
        }
        clock::pause(TICK);
    }
    // A thread that panicked has said so.
    let _ = thread.join();
}

/// Waits so many seconds, or until the view is over.
fn pause(shared: &Shared, seconds: f64) {
    let watches = Stopwatches::new(1);
    while watches.seconds(0) < seconds && !shared.is_finished.load(Ordering::SeqCst) {
        clock::pause(TICK);
    }
}

/// Looks at the run again and again.
fn observe(shared: &Shared, mut observer: Observer) {
    while !shared.is_finished.load(Ordering::SeqCst) {
        let took = Stopwatches::new(1);
        took.seconds(0);
        match observer() {
            Observation::State(state) => *lock(&shared.content) = Some(ViewContent::from(&*state)),
            Observation::Content(content) => *lock(&shared.content) = Some(*content),
            Observation::Nothing => {}
            Observation::Finished => return shared.is_finished.store(true, Ordering::SeqCst),
        }
        pause(shared, (took.seconds(0) * PAUSE_FACTOR).max(PAUSE));
    }
}

/// Draws and reads keys until the view is left.
fn show(shared: &Shared, stream: Stream, viewer: Viewer, stop: &dyn Fn()) -> io::Result<ViewEnd> {
    if viewer == Viewer::Owner {
        pause(shared, VIEW_DELAY);
    }
    if shared.is_finished.load(Ordering::SeqCst) {
        return Ok(ViewEnd::RunFinished);
    }
    let mut screen = Screen::open(stream)?;
    let mut selection = Selection::new(viewer);
    while !shared.is_finished.load(Ordering::SeqCst) {
        let content = current_content(shared, viewer);
        selection.clamp(&content);
        screen.draw(|frame| draw::draw(frame, &content, &selection))?;
        if !event::poll(KEYS)? {
            continue;
        }
        if let Input::Key(key) = event::read()? {
            match selection.press(key, &content) {
                KeyAction::Stay => {}
                KeyAction::Leave => return Ok(ViewEnd::ByKey),
                KeyAction::Interrupt => return Ok(ViewEnd::ByInterrupt),
                KeyAction::Stop => stop(),
            }
        }
    }
    Ok(ViewEnd::RunFinished)
}

/// What is shown now: of a run of this process, what it said goes before what is recorded.
fn current_content(shared: &Shared, viewer: Viewer) -> ViewContent {
    let headline = || "looking at the run …".to_owned();
    let mut content = lock(&shared.content)
        .clone()
        .unwrap_or_else(|| ViewContent { headline: headline(), ..ViewContent::default() });
    if viewer == Viewer::Owner {
        let of_flow = |line: &str| {
            let words = line.trim_start();
            let is_of = |flow: &&content::Flow| {
                let of = [format!(" {}/", flow.name), format!(" {} ", flow.name)];
                of.iter().any(|of| words.contains(of.as_str()))
            };
            content.flows.iter().find(is_of).map(|flow| flow.name.clone())
        };
        content.events =
            out::held_lines().iter().map(|line| Event { flow: of_flow(line), text: line.clone() }).collect();
    }
    content
}
