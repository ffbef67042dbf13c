//! Replaces the parameters of a document by their values: only names that it declares, and only in `run`
//! sections.

mod braces;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::names::unknown;

use self::braces::Braces;
use super::wire;
use crate::documents::parameters::{Parameters, check_value};

/// The place of a fault in a document, and the fault.
type Fault = (String, String);

/// A document without parameters, and the flow of the original document behind each of its flows.
#[derive(Debug)]
pub(super) struct ExpandedWorkload {
    pub(super) document: wire::Workload,
    /// By flow: its number in the document.
    pub(super) origins: Vec<usize>,
}

/// Replaces the parameters of a document by their values; a flow that uses one with several values becomes
/// one flow a value. O(bytes of run sections · copies).
pub(super) fn apply(
    mut document: wire::Workload,
    given: &Parameters,
) -> Result<ExpandedWorkload, Vec<Fault>> {
    let values = values(std::mem::take(&mut document.parameters), given).map_err(|fault| vec![fault])?;
    let n_flows = document.flows.len();
    if values.is_empty() {
        return Ok(ExpandedWorkload { document, origins: (0..n_flows).collect() });
    }
    let mut values = Braces::new(values);
    let mut faults: Vec<Fault> = braces_of_the_shell(&document, &values);
    faults.extend(braces_of_jars(&document, &values));
    if !faults.is_empty() {
        return Err(faults);
    }
    let Some((name, each)) = given.each() else {
        for run in document.flows.iter_mut().flat_map(runs_of) {
            run.texts().for_each(|(_, text)| values.fill(text));
        }
        return Ok(ExpandedWorkload { document, origins: (0..n_flows).collect() });
    };
    let parse_values = ParameterValues::new(&mut document, name, each)?;
    let (mut flows, mut origins) = (Vec::new(), Vec::new());
    for (at, flow) in std::mem::take(&mut document.flows).into_iter().enumerate() {
        if !parse_values.using.contains(&flow.id) {
            let mut flow = flow;
            parse_values.read_all(&mut flow);
            runs_of(&mut flow).flat_map(wire::Run::texts).for_each(|(_, text)| values.fill(text));
            flows.push(flow);
            origins.push(at);
            continue;
        }
        for value in each {
            values.set(name, value);
            let mut copy = wire::Flow { id: flow_id_of_value(&flow.id, value), ..flow.clone() };
            parse_values.check_shared_inputs(&mut copy, value);
            runs_of(&mut copy).flat_map(wire::Run::texts).for_each(|(_, text)| values.fill(text));
            flows.push(copy);
            origins.push(at);
        }
    }
    Ok(ExpandedWorkload { document: wire::Workload { flows, ..document }, origins })
}

/// The value of each parameter that is declared.
fn values(
    declared: BTreeMap<String, wire::Arg>,
    given: &Parameters,
) -> Result<BTreeMap<String, String>, Fault> {
    let known: Vec<&str> = declared.keys().map(String::as_str).collect();
    let named = given.values().keys().map(String::as_str).chain(given.each().map(|(name, _)| name));
    for name in named {
        if !declared.contains_key(name) {
            return Err((String::new(), unknown("a value for parameter", name, &known)));
        }
    }
    for (name, value) in &declared {
        if !is_name(name) {
            let what = "expected a letter or _, then letters, digits, _ or -";
            return Err(("parameters".to_owned(), format!("found the name {name:?}, {what}")));
        }
        check_value(&value.to_string()).map_err(|what| (format!("parameters.{name}"), what))?;
    }
    let value = |(name, default): (String, wire::Arg)| {
        let value = given.values().get(&name).cloned().unwrap_or_else(|| default.to_string());
        (name, value)
    };
    Ok(declared.into_iter().map(value).collect())
}

fn is_name(name: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    let is_inner = |b: u8| is_letter(b) || b.is_ascii_digit() || b == b'-';
    name.bytes().next().is_some_and(is_letter) && name.bytes().all(is_inner)
}

fn runs_of(flow: &mut wire::Flow) -> impl Iterator<Item = &mut wire::Run> {
    flow.jobs.iter_mut().filter_map(|job| job.run.as_mut())
}

/// The places where `${name}` names a parameter: the shell would read its own variable, and a value after the
/// dollar would be neither.
fn braces_of_the_shell(document: &wire::Workload, values: &Braces) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (f, flow) in document.flows.iter().enumerate() {
        for (k, job) in flow.jobs.iter().enumerate() {
            let Some(mut run) = job.run.clone() else { continue };
            faults.extend(run.texts().filter_map(|(at, text)| {
                let name = values.after_a_dollar(text)?;
                let what = format!(
                    "found ${{{name}}}, expected {{{name}}} for the parameter, or ${name} for a variable of the shell"
                );
                Some((format!("flows[{f}].jobs[{k}].run.{at}"), what))
            }));
        }
    }
    faults
}

/// The places where a parameter has a name with another meaning in the arguments of a jar.
fn braces_of_jars(document: &wire::Workload, values: &Braces) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (f, flow) in document.flows.iter().enumerate() {
        for (k, job) in flow.jobs.iter().enumerate() {
            let arguments = job.run.iter().flat_map(|run| &run.arguments).enumerate();
            for (n, argument) in arguments {
                let is_meant = |name: &&&str| values.has(name) && braces::names(argument, name);
                let Some(name) = ["inputs", "output"].iter().find(is_meant) else { continue };
                let what = format!(
                    "found {{{name}}} for a parameter, expected another name: it stands for the {name} of the job"
                );
                faults.push((format!("flows[{f}].jobs[{k}].run.arguments[{n}]"), what));
            }
        }
    }
    faults
}

/// The id of the copy of a flow that has this value.
fn flow_id_of_value(flow: &str, value: &str) -> String {
    format!("{flow}#{value}")
}

/// A parameter with several values, and the flows that use it.
struct ParameterValues<'a> {
    values: &'a [String],
    using: BTreeSet<String>,
}

impl<'a> ParameterValues<'a> {
    /// Finds the flows; each of their jobs must name the parameter in its output, or all copies would write
    /// the same.
    fn new(document: &mut wire::Workload, name: &str, values: &'a [String]) -> Result<Self, Vec<Fault>> {
        let (mut using, mut faults) = (BTreeSet::new(), Vec::new());
        for (f, flow) in document.flows.iter_mut().enumerate() {
            if !runs_of(flow).flat_map(wire::Run::texts).any(|(_, text)| braces::names(text, name)) {
                continue;
            }
            using.insert(flow.id.clone());
            for (k, job) in flow.jobs.iter().enumerate() {
                let output = job.run.as_ref().and_then(|run| run.output.as_ref());
                let Some(output) = output.filter(|output| !braces::names(output, name)) else { continue };
                let n = values.len();
                let what = format!(
                    "found the output {output} for each of {n} values of {name}, expected {{{name}}} in it, such as \
                     {}-{{{name}}}",
                    output.trim_end_matches('/')
                );
                faults.push((format!("flows[{f}].jobs[{k}].run.output"), what));
            }
        }
        if values.len() > 1 && !faults.is_empty() {
            return Err(faults);
        }
        if using.is_empty() {
            let what = format!("found values for each flow that uses {{{name}}}, but no flow uses it");
            return Err(vec![(format!("parameters.{name}"), what)]);
        }
        Ok(Self { values, using })
    }

    /// A flow that is there once reads from every copy.
    fn read_all(&self, flow: &mut wire::Flow) {
        self.rename(flow, |from, job| {
            self.values.iter().map(|value| format!("@{}/{job}", flow_id_of_value(from, value))).collect()
        });
    }

    /// A copy reads from the copies with its own value.
    fn check_shared_inputs(&self, flow: &mut wire::Flow, value: &str) {
        self.rename(flow, |from, job| vec![format!("@{}/{job}", flow_id_of_value(from, value))]);
    }

    /// Puts the names of copies in place of inputs from flows that have copies.
    fn rename(&self, flow: &mut wire::Flow, names: impl Fn(&str, &str) -> Vec<String>) {
        for run in runs_of(flow) {
            let inputs = std::mem::take(&mut run.inputs);
            let renamed = |input: String| match input.strip_prefix('@').and_then(|name| name.rsplit_once('/'))
            {
                Some((from, job)) if self.using.contains(from) => names(from, job),
                _ => vec![input],
            };
            run.inputs = inputs.into_iter().flat_map(renamed).collect();
        }
    }
}
