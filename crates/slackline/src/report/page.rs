//! Results as one page that opens in a browser, from disk and without a network: charts, tables, and why
//! flows waited.
//!
//! A [`Collector`] hears the rows of one policy as they leave its run and keeps what is drawn: every row as
//! long as there are few, else only when each phase ran and how many slots were held when, so that memory
//! does not follow the rows. A [`Page`] puts what all policies left beside their figures and writes it: a
//! document of columns (`document`), compressed, in a template with its style and its program, whose source
//! is `crates/slackline/page`.
//!
//! Numbers of tables are written here, as everywhere else; the page only draws. What users named comes to it
//! as data alone, never as HTML.

mod clock;
mod collect;
mod columns;
mod document;
mod explained;
mod extras;
mod least;
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

pub use collect::{Collector, Drawn};
pub use extras::is_alike;

use crate::import::RecordedOptions;
use crate::report::comparison::{Row, crowding, distances, marked_columns, shown_names};
use crate::report::headline;
use crate::report::spread::Runs;
use document::{Document, Made, Policy};
use extras::Extras;
use least::Least;

/// Bars that are drawn of a policy; where one has more, jobs are drawn instead of tasks. A bar is a row of
/// the schedule on neighbouring slots.
pub const BARS_MAX: usize = 50_000;

/// The template up to its title, to its style, to its program, to its data, and the rest.
const TEMPLATE: &str = include_str!("../../page/template.html");
const STYLE: &str = include_str!("../../page/built/page.css");
const PROGRAM: &str = include_str!("../../page/built/page.js");

/// Where results come from.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// What the workload is called.
    pub name: String,
    /// The verb that made them.
    pub verb: String,
    /// The command line that made them.
    pub command: String,
    /// The seeds that were drawn from.
    pub seeds: Vec<u64>,
    /// The options that shaped them.
    pub options: RecordedOptions,
    /// Hash of the workload's bytes.
    pub sha256: String,
}

/// What a page shows.
pub struct Page<'a> {
    instance: &'a Instance,
    about: About,
    rows: Vec<Row>,
    drawn: Vec<Option<Drawn>>,
    /// What stands above all, if it is not the workload.
    head: Option<String>,
    /// The figures of all samples, if there are several, and what one of them is called.
    samples: Option<(Vec<Runs>, &'static str)>,
    extras: Extras,
}

impl<'a> Page<'a> {
    /// A page about a workload, without policies yet.
    pub fn new(instance: &'a Instance, about: About) -> Self {
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

    /// With a policy: its figures, or why there are none; and what it did, if there is anything to draw.
    #[must_use]
    pub fn with_policy(mut self, row: Row, drawn: Option<Drawn>) -> Self {
        self.rows.push(row);
        self.drawn.push(drawn);
        self
    }

    /// Writes the page. The same results are the same bytes.
    ///
    /// # Errors
    /// Whatever `out` says.
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

    /// The document as JSON, compressed by gzip, in base 64.
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
        let objective = headline::objective(self.instance.objective());
        Document {
            version: 1,
            tick: scale.seconds(),
            end: scale.ticks(horizon),
            title: &self.about.name,
            head: self.head.clone().unwrap_or_else(|| headline::lines(&self.about.name, self.instance)),
            made: Made::of(&self.about),
            least: self.least(&objective),
            believed: believed(&self.rows),
            objective,
            clock: self.instance.start().and_then(|start| clock::Clock::of(start, horizon)),
            cluster: document::Cluster::of(self.instance.cluster()),
            workload: workload::Workload::of(self.instance, scale),
            table: document::Table::of(marked_columns(&self.rows)),
            groups: document::groups(&self.rows),
            extras: &self.extras,
            with_bars,
            policies: policies
                .map(|(row, drawn)| Policy::of(self.instance, row, drawn.as_ref(), scale, with_bars))
                .collect(),
        }
    }
}

impl Page<'_> {
    /// Which policy costs least; not of a run and what was expected of it, which are no choice.
    fn least(&self, objective: &str) -> Option<Least> {
        if self.extras.has_prediction() {
            return None;
        }
        let samples = self.samples.as_ref().map(|(all, sample)| (all.as_slice(), *sample));
        Least::of(&self.rows, samples, objective)
    }
}

/// What says how far results may be believed: how far simulations are from what was recorded, and what made
/// them so.
fn believed(rows: &[Row]) -> Vec<String> {
    [distances(rows), crowding(rows)].into_iter().filter(|text| !text.is_empty()).collect()
}

/// Writes the template up to a mark and returns what follows it.
fn put<'t>(out: &mut dyn Write, template: &'t str, mark: &str) -> io::Result<&'t str> {
    let (before, after) =
        template.split_once(mark).expect("invariant: the template has all its marks in order");
    out.write_all(before.as_bytes())?;
    Ok(after)
}

/// Text as HTML.
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
