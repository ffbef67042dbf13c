//! Writes workload documents: as text that is pleasant to read, with one line for each phase, or as JSON
//! lines.

use std::fmt::Write;
use std::io;

use serde::Serialize;
use slackline_model::draft::{FlowDraft, Weights};
use slackline_model::{Draft, Time};

use super::{convert, wire};
use crate::reading::format::Format;
use crate::reading::wire::SchemaName;

const WRITES: &str = "invariant: text grows without errors";
const VALUES: &str = "invariant: wire structs have names as keys and leave empty values out";

/// A draft as a document: reading it gives the same draft.
///
/// Numbers are written so that they are read back to the last bit; a draft with numbers that are not finite
/// is no workload and has no JSON.
pub fn write_workload(draft: &Draft, format: Format) -> String {
    let workload = convert::from_draft(draft);
    match format {
        Format::Toml => toml(&workload),
        Format::Json => json(&workload),
        Format::Yaml => yaml(&workload),
    }
}

/// Writes a draft line by line: its flows in the order of their releases, equal ones in that of the draft.
///
/// # Errors
/// Errors of `out`.
pub fn write_workload_lines(out: &mut dyn io::Write, draft: &Draft) -> io::Result<()> {
    let wire::Workload { slackline, start, cluster, objective, pools, .. } = convert::from_head(draft);
    let head = wire::Head { schema: SchemaName, slackline, start, cluster, objective, pools };
    serde_json::to_writer(&mut *out, &head)?;
    out.write_all(b"\n")?;
    let mut order: Vec<&FlowDraft> = draft.flows.iter().collect();
    order.sort_by_key(|flow| Time::from_seconds_nearest(flow.release));
    for flow in order {
        serde_json::to_writer(&mut *out, &convert::from_flow(flow))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// How keys and values are written.
#[derive(Clone, Copy)]
enum Style {
    Toml,
    /// Values as JSON, which YAML reads.
    Yaml,
}

impl Style {
    /// The text between a key and its value.
    fn is(self) -> &'static str {
        match self {
            Self::Toml => " =",
            Self::Yaml => ":",
        }
    }

    /// A value on one line.
    fn value(self, value: &impl Serialize) -> String {
        match self {
            Self::Toml => {
                let mut text = String::new();
                value.serialize(toml::ser::ValueSerializer::new(&mut text)).expect(VALUES);
                text
            }
            Self::Yaml => compact(value),
        }
    }
}

fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect(VALUES)
}

/// Writes the entries of one table, one a line.
struct Entries<'a> {
    out: &'a mut String,
    style: Style,
    indent: &'a str,
}

impl Entries<'_> {
    fn put(&mut self, key: &str, value: &impl Serialize) {
        let is = self.style.is();
        writeln!(self.out, "{}{key}{is} {}", self.indent, self.style.value(value)).expect(WRITES);
    }

    fn put_some(&mut self, key: &str, value: Option<&impl Serialize>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// A flow without its jobs and its id.
    fn flow(&mut self, flow: &wire::Flow) {
        self.put("release", &flow.release);
        if flow.weight != 1.0 {
            self.put("weight", &flow.weight);
        }
        self.put_some("deadline", flow.deadline.as_ref());
        self.put_some("cost", flow.cost.as_ref());
        self.put_some("pool", flow.pool.as_ref());
        self.put_some("user", flow.user.as_ref());
        self.put_some("priority", flow.priority.as_ref());
        self.put_some("repeat", flow.repeat.as_ref());
    }

    /// A job without its id.
    fn job(&mut self, job: &wire::Job) {
        if !job.after.is_empty() {
            self.put("after", &job.after);
        }
        self.put_some("map", job.map.as_ref());
        self.put_some("reduce", job.reduce.as_ref());
        self.put_some("min_slots", job.min_slots.as_ref());
        self.put_some("max_slots", job.max_slots.as_ref());
        self.put_some("run", job.run.as_ref());
        self.put_some("recorded_end", job.recorded_end.as_ref());
        self.put_rows("recorded", &job.recorded);
    }

    /// A list with an item a line, if it has any.
    fn put_rows(&mut self, key: &str, items: &[impl Serialize]) {
        if items.is_empty() {
            return;
        }
        let is = self.style.is();
        write!(self.out, "{}{key}{is} [", self.indent).expect(WRITES);
        for item in items {
            write!(self.out, "\n{}  {},", self.indent, self.style.value(item)).expect(WRITES);
        }
        // In YAML the bracket that closes a list is still within it, so it is indented too.
        writeln!(self.out, "\n{}  ]", self.indent).expect(WRITES);
    }
}

fn toml(workload: &wire::Workload) -> String {
    let style = Style::Toml;
    let mut out = format!("slackline = {}\n", workload.slackline);
    Entries { out: &mut out, style, indent: "" }.put_some("start", workload.start.as_ref());
    if let Some(cluster) = &workload.cluster {
        out += "\n[cluster]\nmachines = [\n";
        for machine in &cluster.machines {
            writeln!(out, "  {},", style.value(machine)).expect(WRITES);
        }
        out += "]\n";
    }
    out += "\n[objective]\n";
    let mut entries = Entries { out: &mut out, style, indent: "" };
    entries.put("metric", &workload.objective.metric);
    entries.put("combine", &workload.objective.combine.name());
    if workload.objective.weights == Weights::Ignore {
        entries.put("weights", &"ignore");
    }
    for pool in &workload.pools {
        out += "\n[[pools]]\n";
        let mut entries = Entries { out: &mut out, style, indent: "" };
        entries.put("id", &pool.id);
        entries.put_some("min_slots", pool.min_slots.as_ref());
    }
    for flow in &workload.flows {
        out += "\n[[flows]]\n";
        let mut entries = Entries { out: &mut out, style, indent: "" };
        entries.put("id", &flow.id);
        entries.flow(flow);
        if flow.jobs.is_empty() {
            entries.put("jobs", &flow.jobs);
        }
        for job in &flow.jobs {
            out += "\n  [[flows.jobs]]\n";
            let mut entries = Entries { out: &mut out, style, indent: "  " };
            entries.put("id", &job.id);
            entries.job(job);
        }
    }
    out
}

fn yaml(workload: &wire::Workload) -> String {
    let style = Style::Yaml;
    let mut out = format!("slackline: {}\n", workload.slackline);
    Entries { out: &mut out, style, indent: "" }.put_some("start", workload.start.as_ref());
    if let Some(cluster) = &workload.cluster {
        out += "cluster:\n  machines:\n";
        for machine in &cluster.machines {
            writeln!(out, "    - {}", style.value(machine)).expect(WRITES);
        }
    }
    writeln!(out, "objective: {}", style.value(&workload.objective)).expect(WRITES);
    if !workload.pools.is_empty() {
        out += "pools:\n";
        for pool in &workload.pools {
            writeln!(out, "  - {}", style.value(pool)).expect(WRITES);
        }
    }
    out += if workload.flows.is_empty() { "flows: []\n" } else { "flows:\n" };
    for flow in &workload.flows {
        writeln!(out, "  - id: {}", style.value(&flow.id)).expect(WRITES);
        Entries { out: &mut out, style, indent: "    " }.flow(flow);
        out += if flow.jobs.is_empty() { "    jobs: []\n" } else { "    jobs:\n" };
        for job in &flow.jobs {
            writeln!(out, "      - id: {}", style.value(&job.id)).expect(WRITES);
            Entries { out: &mut out, style, indent: "        " }.job(job);
        }
    }
    out
}

fn json(workload: &wire::Workload) -> String {
    let mut out = format!("{{\n  \"slackline\": {},\n", workload.slackline);
    if let Some(start) = &workload.start {
        writeln!(out, "  \"start\": {},", compact(start)).expect(WRITES);
    }
    if let Some(cluster) = &workload.cluster {
        out += "  \"cluster\": {\"machines\": [";
        rows(&mut out, &cluster.machines);
        out += "]},\n";
    }
    writeln!(out, "  \"objective\": {},", compact(&workload.objective)).expect(WRITES);
    if !workload.pools.is_empty() {
        out += "  \"pools\": [";
        rows(&mut out, &workload.pools);
        out += "],\n";
    }
    out += "  \"flows\": [";
    rows(&mut out, &workload.flows);
    out += "]\n}\n";
    out
}

/// The items of a JSON list, one a line.
fn rows(out: &mut String, items: &[impl Serialize]) {
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i == 0 { "\n    " } else { ",\n    " });
        out.push_str(&compact(item));
    }
    if !items.is_empty() {
        out.push_str("\n  ");
    }
}
