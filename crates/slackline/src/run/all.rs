//! Combines several sinks into one.

use std::sync::{Arc, Mutex, PoisonError};

use slackline_executor::engine::Happening;
use slackline_model::Time;

use super::{Ending, Forecast, Note, Overview, Sink, Stop};

/// Forwards each call to several sinks, in order.
#[derive(Default)]
pub struct All<'a>(Vec<Box<dyn Sink + 'a>>);

impl<'a> All<'a> {
    /// An empty list of sinks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sink.
    #[must_use]
    pub fn and(mut self, sink: impl Sink + 'a) -> Self {
        self.0.push(Box::new(sink));
        self
    }
}

impl Sink for All<'_> {
    fn note(&mut self, note: &Note<'_>) {
        self.0.iter_mut().for_each(|sink| sink.note(note));
    }

    fn begin(&mut self, overview: &Overview, stop: Stop) {
        let stop = Arc::new(Mutex::new(stop));
        for sink in &mut self.0 {
            let stop = stop.clone();
            let all = move || stop.lock().unwrap_or_else(PoisonError::into_inner).stop();
            sink.begin(overview, Stop::new(all));
        }
    }

    fn happened(&mut self, now: Time, what: Happening<'_>, forecast: &Forecast) {
        self.0.iter_mut().for_each(|sink| sink.happened(now, what, forecast));
    }

    fn end(&mut self, ending: &Ending) {
        self.0.iter_mut().for_each(|sink| sink.end(ending));
    }
}
