//! Event logs of Spark (`spark.eventLog.enabled`): one application per file, or a folder of rolled files.
//!
//! An application becomes a flow, released at its start; a stage becomes a job with a map phase of its tasks,
//! each with the duration of its successful attempt. Stages come after their parents. A stage that did not
//! run, because an earlier job of the application had left its output, is replaced by the stage that wrote
//! it, which has the same last data set. A job of the application that was submitted after others had ended
//! comes after them, as the program waited for them; the program's own work meanwhile takes no slot and is
//! ignored.
//!
//! The user is the application's, the pool its queue (`spark.yarn.queue`). A task of several cores
//! (`spark.task.cpus`) becomes as many tasks as slots of `slot-cores` cover them. Failed, killed and repeated
//! attempts are counted and ignored. The first application begins at second 0.
//!
//! A folder may have the logs of many applications, rolled (`eventlog_v2_…/events_1_…`) or not, in any
//! readable compression. A last line that is cut short, as in a running application, is ignored; so is any
//! other line without an event, and both are counted.
//!
//! Children: `application` (the data of one), `events` (the event of a line), `order` (dependencies).

mod application;
mod events;
mod order;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::Draft;
use slackline_model::calendar::Zone;
use slackline_model::params::Settings;

use crate::importers::durations::whole_micros;
use crate::importers::importer::{ImportFolder, Importer, Input, Output};
use crate::importers::log::{SLOT_CORES, declare_pools, each_line};
use crate::importers::spark::application::{Application, Reader};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::folder::Folder;
use crate::reading::source::SourceMap;

pub(super) const IMPORTER: Importer = Importer {
    params: &[SLOT_CORES],
    folder: Some(ImportFolder {
        looks_like: |folder| folder.files().iter().any(|file| is_log(folder, file)),
        import: import_folder,
    }),
    ..Importer::new(
        "spark",
        "event logs of Spark: of an application, or a folder of them",
        looks_like,
        import,
    )
};

/// Whether the first line is an event of Spark's.
fn looks_like(text: &str) -> bool {
    let head: String = text.trim_start().chars().take(60).filter(|c| !c.is_whitespace()).collect();
    let event = head.strip_prefix("{\"Event\":\"");
    event.is_some_and(|event| event.starts_with("SparkListener") || event.starts_with("org.apache.spark."))
}

fn is_log(folder: &Folder, file: &str) -> bool {
    looks_like(&folder.head(file))
}

fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let mut diagnostics = Diagnostics::default();
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(input.text.lines()) {
        reader.line(number, line, &mut diagnostics);
    }
    let applications = reader.end(&mut diagnostics);
    if applications.is_empty() {
        return Err(input.error(None, "found no event of an application, expected an event log of Spark"));
    }
    let name = input.file.rsplit('/').next().unwrap_or(input.file);
    let applications = applications.into_iter().map(|found| (name.to_owned(), found)).collect();
    Ok(output(applications, settings, diagnostics, |places| {
        SourceMap::rows(input.file, places.into_iter().map(|(_, line)| line).collect())
    }))
}

fn import_folder(folder: &Folder, settings: &Settings) -> Result<Output, TraceError> {
    let mut diagnostics = Diagnostics::default();
    let mut applications = Vec::new();
    for (name, files) in logs(folder, &mut diagnostics) {
        let mut reader = Reader::default();
        for file in files {
            each_line(folder, file, &mut diagnostics, |number, line, diagnostics| {
                reader.line(number, line, diagnostics);
                Ok(())
            })?;
        }
        applications.extend(reader.end(&mut diagnostics).into_iter().map(|found| (name.clone(), found)));
    }
    if applications.is_empty() {
        let what = "found no event of an application, expected event logs of Spark";
        return Err(TraceError::input(folder.name(), None, what));
    }
    Ok(output(applications, settings, diagnostics, |places| SourceMap::files(folder, places)))
}

/// The logs in a folder by their names, each with its files in the order in which they were written.
fn logs<'f>(folder: &'f Folder, diagnostics: &mut Diagnostics) -> Vec<(String, Vec<&'f str>)> {
    let mut rolled: BTreeMap<&str, Vec<(u64, bool, &str)>> = BTreeMap::new();
    let mut logs = Vec::new();
    for file in folder.files() {
        let (parent, name) = file.rsplit_once('/').unwrap_or(("", file));
        if name.starts_with("appstatus_") {
            continue;
        }
        let number = name.strip_prefix("events_").and_then(|rest| rest.split('_').next()?.parse().ok());
        match number {
            Some(number) => {
                rolled.entry(parent).or_default().push((number, name.ends_with(".compact"), file));
            }
            None if is_log(folder, file) => logs.push((file.clone(), vec![file.as_str()])),
            None => diagnostics.add_file(file, "file that is no event log, left out"),
        }
    }
    for (parent, mut files) in rolled {
        files.sort_unstable();
        // A compacted file replaces the earlier files.
        let first = files.iter().filter(|(_, is_compact, _)| *is_compact).map(|(number, ..)| *number).max();
        files.retain(|&(number, is_compact, _)| {
            first.is_none_or(|first| number > first || (number == first && is_compact))
        });
        let name = if parent.is_empty() { files[0].2 } else { parent };
        logs.push((name.to_owned(), files.into_iter().map(|(.., file)| file).collect()));
    }
    logs
}

/// The workload of all applications, by the names of their logs.
fn output(
    mut applications: Vec<(String, Application)>,
    settings: &Settings,
    mut diagnostics: Diagnostics,
    source: impl FnOnce(Vec<(String, u32)>) -> SourceMap,
) -> Output {
    let slot_cores = settings.count(SLOT_CORES.name);
    let started = applications.iter().filter_map(|(_, application)| application.started());
    let first = started.min().unwrap_or(0);
    let mut draft = Draft { start: Zone::default().start(first), ..Draft::default() };
    let (mut places, mut known) = (Vec::new(), BTreeSet::new());
    for (name, application) in &mut applications {
        diagnostics.return_to_file(name);
        let id = application.id().unwrap_or_else(|| name.clone());
        if !known.insert(id.clone()) {
            diagnostics.add(application.line, "second log of an application, left out");
            continue;
        }
        let started = application.started().unwrap_or(first);
        let Some(mut flow) = application.flow(id, slot_cores, &mut diagnostics) else { continue };
        flow.release = whole_micros((started as f64 - first as f64) / 1000.0);
        draft.flows.push(flow);
        places.push((name.clone(), application.line));
    }
    declare_pools(&mut draft);
    Output::new(draft, diagnostics, source(places))
}
