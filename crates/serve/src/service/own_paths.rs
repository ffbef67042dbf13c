//! Whether the times of a schedule read and write separate paths, so that none has to wait for another.

use jiff::tz::TimeZone;
use slackline_model::WallTime;
use slackline_model::draft::RunDraft;

use crate::api::{Overlap, Schedule, Submit};
use crate::service::flow_file::read;
use crate::state::cron::Times;

/// Two times that differ in all conversions, microseconds: 2001-02-03 04:05:06 (a Saturday) and 2013-11-18 19:27:48
/// (a Monday).
const TIMES: [WallTime; 2] = [WallTime(981_173_106_000_000), WallTime(1_384_802_868_000_000)];

/// The parameters whose values distinguish the paths of one time of a schedule from those of others. Empty if times
/// share paths: an output is the same at two times, or an input may be the output of another time.
/// `here` is the zone of the service.
pub(crate) fn own_by(submit: &Submit, here: &TimeZone) -> Vec<String> {
    let times = submit.schedule.as_ref().filter(|_| submit.overlap == Overlap::Apart).and_then(|schedule| {
        let zone = submit.zone.clone();
        // The state machine reports a schedule without times.
        Times::new(&Schedule { zone, ..schedule.clone() }, here).ok()
    });
    let Some(times) = &times else { return Vec::new() };
    let is_dated = |(_, value): &(&String, &String)| value.replace("%%", "").contains('%');
    let dated = submit.parameters.iter().filter(is_dated).map(|(name, _)| name);
    let Some(first) = runs_at(submit, times, |_| TIMES[0]) else { return Vec::new() };
    let mut own_by = Vec::new();
    for name in dated {
        let Some(then) = runs_at(submit, times, |other| TIMES[usize::from(other == name)]) else {
            return Vec::new();
        };
        let differ = |text: fn(&RunDraft) -> Option<&String>| {
            let pairs = || first.iter().zip(&then).filter(|(run, _)| text(run).is_some());
            let differing = pairs().filter(|(run, then)| text(run) != text(then)).count();
            (differing, pairs().count())
        };
        match differ(|run| run.output.as_ref()) {
            // No job declares an output: the parameters of commands and inputs distinguish the times.
            (0, 0) if first != then => own_by.push(name.clone()),
            (0, _) => {}
            (differing, all) if differing == all => own_by.push(name.clone()),
            // It does not distinguish all outputs.
            _ => return Vec::new(),
        }
    }
    let Some(later) = runs_at(submit, times, |_| TIMES[1]) else { return Vec::new() };
    let is_shared = own_by.is_empty() || may_meet(&first, &later);
    if is_shared { Vec::new() } else { own_by }
}

/// The run sections of a flow file whose parameters have their values at a time, by the name of the parameter. `None` if
/// the file cannot be read with them.
fn runs_at(submit: &Submit, times: &Times, at: impl Fn(&String) -> WallTime) -> Option<Vec<RunDraft>> {
    let mut filled = submit.clone();
    for (name, value) in &mut filled.parameters {
        *value = times.filled(value, at(name)).ok()?;
    }
    let (read, _) = read(&filled, TIMES[0]).ok()?;
    let jobs = read.draft.flows.into_iter().flat_map(|flow| flow.jobs);
    Some(jobs.filter_map(|job| job.run).collect())
}

/// Whether a job may read or write what another job writes at another time. `first` and `later` have the same jobs at two
/// times.
fn may_meet(first: &[RunDraft], later: &[RunDraft]) -> bool {
    let jobs = || first.iter().zip(later).enumerate();
    let outputs = || jobs().filter_map(|(k, (a, b))| Some((k, [a.output.as_ref()?, b.output.as_ref()?])));
    outputs().any(|(k, output)| {
        let is_written = outputs().any(|(other, path)| other != k && meet(path, output));
        let is_read = jobs().any(|(_, (a, b))| {
            let files = a.setting.files.iter().zip(&b.setting.files);
            let read = a.inputs.iter().zip(&b.inputs).chain(files).filter(|(path, _)| !path.starts_with('@'));
            read.into_iter().any(|(a, b)| meet([a, b], output))
        });
        is_written || is_read
    })
}

/// Whether two paths, each given at two times, may be the same or one below the other at some times. Names that differ
/// between the times may be any name.
fn meet(path: [&String; 2], other: [&String; 2]) -> bool {
    let names = |path: [&String; 2]| {
        let [first, later] = path.map(|path| {
            path.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect::<Vec<_>>()
        });
        let is_fixed = |name: &String| !name.contains(['*', '?', '[']) && name != "..";
        let length = first.len().max(later.len());
        let name =
            |k: usize| first.get(k).filter(|name| later.get(k) == Some(name) && is_fixed(name)).cloned();
        let has_any_depth = first.iter().any(|name| name == "**" || name == "..");
        ((0..length).map(name).collect::<Vec<_>>(), has_any_depth || path[0].starts_with('/'))
    };
    let ((names, is_vague), (others, is_other_vague)) = (names(path), names(other));
    // A path from the root and one from the directory of the submission are not compared.
    if is_vague != is_other_vague {
        return true;
    }
    names.iter().zip(&others).all(|(name, other)| name.is_none() || other.is_none() || name == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(jobs: &str) -> Vec<String> {
        let document = format!(
            "slackline = 1\n[parameters]\nday = \"d\"\nhour = \"h\"\nfixed = \"x\"\n[[flows]]\nid = \"f\"\njobs = [{jobs}]\n"
        );
        let schedule = Schedule { cron: "0 * * * *".into(), ..Schedule::default() };
        let parameters = [("day", "%Y-%m-%d"), ("hour", "%H"), ("fixed", "100%%")]
            .map(|(name, value)| (name.into(), value.into()));
        let submit =
            Submit { document, parameters: parameters.into(), schedule: Some(schedule), ..Submit::default() };
        own_by(&submit, &TimeZone::UTC)
    }

    fn job(id: &str, inputs: &str, output: &str) -> String {
        let output = if output.is_empty() { String::new() } else { format!(", output = \"{output}\"") };
        format!("{{ id = \"{id}\", run = {{ command = \"cat\", inputs = [\"{inputs}\"]{output} }} }},")
    }

    #[test]
    fn times_with_separate_paths_are_distinguished_by_the_parameters_of_their_outputs() {
        assert_eq!(own(&job("a", "in/{day}", "out/{day}")), ["day"]);
        assert_eq!(own(&job("a", "in/{day}/raw", "in/{day}/clean")), ["day"]);
        assert_eq!(own(&job("a", "in/*", "out/{day}/{hour}")), ["day", "hour"]);
        assert_eq!(own(&(job("a", "in/{day}", "out/{day}/a") + &job("b", "@a", "out/{day}/b"))), ["day"]);
        // A job without a declared output writes nothing that another time has to wait for.
        assert_eq!(own(&(job("a", "in/{day}", "out/{day}") + &job("b", "@a", ""))), ["day"]);
        assert_eq!(own(&job("a", "in/{hour}", "")), ["hour"]);
    }

    #[test]
    fn times_share_paths_if_an_output_is_the_same_or_may_be_read_at_another_time() {
        for shared in [
            job("a", "in/{day}", "out"),
            job("a", "in/{day}", "out/{fixed}"),
            job("a", "in/{day}", "out/{day}") + &job("b", "@a", "latest"),
            job("a", "in/{day}", "out/{day}") + &job("b", "out/*", "sum/{day}"),
            job("a", "in/{day}", "out/{day}") + &job("b", "out/{hour}", "sum/{day}"),
            job("a", "in/{day}", "out/{day}") + &job("b", "@a", "out/{hour}"),
            job("a", "in/{day}", "out/{day}") + &job("b", "@a", "out/{day}/b"),
            job("a", "**/x", "out/{day}"),
            job("a", "/data/out", "out/{day}"),
            job("a", "../out", "out/{day}"),
            job("a", "in", ""),
        ] {
            assert_eq!(own(&shared), [""; 0], "{shared}");
        }
    }
}
