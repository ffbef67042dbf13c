//! The live view of a run on a terminal: flows, running tasks, events, and keys to open a flow.
//!
//! It shows what `status --format json` gives. One thread observes the run, another one reads keys and
//! draws, so that neither waits for the other or for the run.
//!
//! - [`content`]: the texts of the view;
//! - [`keys`]: the actions of keys;
//! - [`draw`](mod@draw), [`columns`]: the layout for the size of the terminal;
//! - [`terminal`]: takes the terminal over, and restores it in any case.

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
use slackline_task::base::clock;
use slackline_task::base::system::on_stop_signal;

use crate::terminal::clock::Stopwatches;
use crate::terminal::out;

use content::{Event, ViewContent};
use keys::{KeyAction, Selection};
use terminal::Screen;

pub(crate) use keys::Viewer;
pub(crate) use terminal::Stream;

/// The least pause between two observations, seconds; and the pause as a multiple of the time of an
/// observation.
const PAUSE: f64 = 1.0;
const PAUSE_FACTOR: f64 = 10.0;

/// How long the view waits for a key before it is drawn again.
const KEYS: Duration = Duration::from_millis(100);

/// The pause between two checks whether the view has ended.
const TICK: Duration = Duration::from_millis(20);

/// After how many seconds a thread that does not end is left behind.
const JOIN_TIMEOUT: f64 = 2.0;

/// A run that ends within this time, in seconds, gets no view.
const VIEW_DELAY: f64 = 1.0;

/// How a view ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ViewEnd {
    #[default]
    Open,
    /// By the person at the terminal.
    ByKey,
    /// By ctrl-C, or because its terminal was closed.
    ByInterrupt,
    /// The run has finished, or is not available any more.
    RunFinished,
}

/// The result of one observation of the run.
pub(crate) enum Observation {
    /// The run as it is now.
    State(Box<StateOfRun>),
    /// The content of the view, for something else than a run.
    Content(Box<ViewContent>),
    Nothing,
    /// The run has finished, or is not available any more.
    Finished,
}

/// Observes the run.
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
    /// Opens a view. Lines for standard error are shown among the events, and printed when the view is
    /// closed. `stop` is called when the person at the terminal wants the run to stop.
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

    fn start(&mut self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("view".to_owned()).spawn(work);
        let thread =
            thread.map_err(|e| io::Error::new(e.kind(), format!("the view cannot be opened: {e}")))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Observes a run of another process, until the view is closed or a signal ends it. Signals end the view
    /// first, or the terminal would stay as it is.
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
                // Some systems send no signal.
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

/// Waits for a thread to end. A thread that reads keys of a closed terminal never ends, and is left behind.
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

/// Waits for this time, or until the view has ended.
fn pause(shared: &Shared, seconds: f64) {
    let watches = Stopwatches::new(1);
    while watches.seconds(0) < seconds && !shared.is_finished.load(Ordering::SeqCst) {
        clock::pause(TICK);
    }
}

/// Observes the run until the view ends.
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

/// The current content. For a run of this process its own lines replace the recorded events.
fn current_content(shared: &Shared, viewer: Viewer) -> ViewContent {
    let headline = || "reading the state of the run …".to_owned();
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
