//! Writes results as one HTML page that works offline: charts, tables, and explanations of waiting flows.
//!
//! A [`Collector`] receives the final rows of one policy and keeps the data for the charts. It keeps every
//! row while there are few. Otherwise it keeps only the time range of each phase and the number of held slots
//! over time, so that memory does not grow with the rows. A [`Page`] combines the data of all policies with
//! their figures and writes the page: a compressed document of columns (`document`) in a template with its
//! style and its program. The source of the program is in `crates/slackline/page`.
//!
//! The numbers of tables are formatted here; the program of the page only draws. Names given by users reach
//! the page only as data, never as HTML.

mod best_policy;
mod clock;
mod collect;
mod columns;
mod document;
mod explained;
mod extras;
mod series;
mod sums;
#[cfg(test)]
mod tests;
mod workload;

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use slackline_model::Instance;
use slackline_model::printable::escaped_line;
use slackline_trace::Simplification;

pub use collect::{Collector, Drawn};
pub use extras::is_alike;

use crate::import::RecordedOptions;
use crate::report::comparison::{Row, crowding, distances, marked_columns, shown_names};
use crate::report::headline;
use crate::report::significance::Sampling;
use crate::report::spread::Runs;
use best_policy::Answer;
use document::{Document, OriginFields, Policy};
use extras::Extras;

/// The maximum number of bars per policy. With more, the page draws jobs instead of tasks. A bar is a row of
/// the schedule on adjacent slots.
pub const BARS_MAX: usize = 50_000;

/// The template has marks for its title, its style, its program and its data.
const TEMPLATE: &str = include_str!("../../page/template.html");
const STYLE: &str = include_str!("../../page/built/page.css");
const PROGRAM: &str = include_str!("../../page/built/page.js");

/// The origin of results.
#[derive(Clone, Debug, Default)]
pub struct PageOrigin {
    /// The name of the workload.
    pub name: String,
    /// The subcommand that produced them.
    pub verb: String,
    /// The command line that produced them.
    pub command: String,
    /// The seeds of the simulations.
    pub seeds: Vec<u64>,
    /// The options of the workload and the simulations.
    pub options: RecordedOptions,
    /// Hash of the workload's bytes.
    pub sha256: String,
    /// What simulations leave out of the log.
    pub not_modelled: Vec<Simplification>,
}

/// The content of a page.
pub struct Page<'a> {
    instance: &'a Instance,
    about: PageOrigin,
    rows: Vec<Row>,
    drawn: Vec<Option<Drawn>>,
    /// The headline, if it is not the one of the workload.
    head: Option<String>,
    /// The figures of all samples, if there are several.
    samples: Option<(Vec<Runs>, Sampling)>,
    extras: Extras,
}

impl<'a> Page<'a> {
    /// A page for a workload, without policies.
    pub fn new(instance: &'a Instance, about: PageOrigin) -> Self {
        Self {
            instance,
            about,
            rows: Vec::new(),
            drawn: Vec::new(),
            head: None,
            samples: None,
            extras: Extras::default(),
        }
    }

    /// Adds a policy: its figures, or the reason why there are none, and its data for the charts.
    #[must_use]
    pub fn with_policy(mut self, row: Row, drawn: Option<Drawn>) -> Self {
        self.rows.push(row);
        self.drawn.push(drawn);
        self
    }

    /// Writes the page. The same results give the same bytes.
    ///
    /// # Errors
    /// An error of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let title = format!("{} · slackline {}", self.about.name, self.about.verb);
        let mut rest = TEMPLATE;
        for (mark, text) in [("{{title}}", escaped(&title).as_str()), ("{{style}}", STYLE)] {
            rest = put(out, rest, mark)?;
            out.write_all(text.as_bytes())?;
        }
        rest = put(out, rest, "{{data}}")?;
        self.write_data(out)?;
        rest = put(out, rest, "{{program}}")?;
        out.write_all(PROGRAM.as_bytes())?;
        out.write_all(rest.as_bytes())
    }

    /// Writes the document as JSON, compressed with gzip and encoded in base64.
    fn write_data(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut gzip = GzEncoder::new(EncoderWriter::new(out, &STANDARD), Compression::best());
        serde_json::to_writer(io::BufWriter::new(&mut gzip), &self.document())?;
        gzip.finish()?.finish()?;
        Ok(())
    }

    fn document(&self) -> Document<'_> {
        let drawn = || self.drawn.iter().flatten();
        let horizon = workload::horizon(self.instance, drawn().map(Drawn::end).max().unwrap_or(0));
        let scale = columns::Scale::of(horizon);
        let with_bars = drawn().all(Drawn::is_few);
        let names = shown_names(&self.rows);
        let policies = self.rows.iter().zip(names).zip(&self.drawn);
        let objective = headline::objective_of(self.instance);
        Document {
            version: 1,
            tick: scale.seconds(),
            end: scale.ticks(horizon),
            title: &self.about.name,
            head: self.head.clone().unwrap_or_else(|| headline::lines(&self.about.name, self.instance)),
            made: OriginFields::of(&self.about),
            answer: self.answer(&objective),
            reliability: self.reliability(),
            objective,
            clock: self.instance.start().and_then(|start| clock::Clock::of(start, horizon)),
            cluster: document::Cluster::of(self.instance.cluster()),
            workload: workload::Workload::of(self.instance, scale),
            table: columns::Table::of(marked_columns(&self.rows)),
            groups: document::groups(&self.rows),
            extras: &self.extras,
            with_bars,
            policies: policies
                .map(|((row, name), drawn)| {
                    Policy::of(self.instance, row, name, drawn.as_ref(), scale, with_bars)
                })
                .collect(),
        }
    }
}

impl Page<'_> {
    /// The best policies. `None` for a run and its prediction, which are not alternatives.
    fn answer(&self, objective: &str) -> Option<Answer> {
        if self.extras.has_prediction() {
            return None;
        }
        let samples = self.samples.as_ref().map(|(all, sampling)| (all.as_slice(), *sampling));
        Answer::of(&self.rows, samples, objective)
    }

    /// Remarks on the accuracy of results: the error of the simulation, and crowding by ApplicationMasters.
    fn reliability(&self) -> Vec<String> {
        let distances = match &self.samples {
            Some((all, _)) => distances(all),
            None => distances(&self.rows.iter().map(Runs::of_row).collect::<Vec<_>>()),
        };
        let left_out = self.about.not_modelled.iter().map(|what| format!("Not modelled: {what}."));
        [distances, crowding(&self.rows)]
            .into_iter()
            .filter(|text| !text.is_empty())
            .chain(left_out)
            .collect()
    }
}

/// Writes the template up to a mark and returns the rest after it.
fn put<'t>(out: &mut dyn Write, template: &'t str, mark: &str) -> io::Result<&'t str> {
    let (before, after) =
        template.split_once(mark).expect("invariant: the template has all its marks in order");
    out.write_all(before.as_bytes())?;
    Ok(after)
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in escaped_line(text).chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            c => html.push(c),
        }
    }
    html
}
