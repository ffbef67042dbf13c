//! Checks the values of a `run` section.

use slackline_model::draft::FailurePolicy;
use slackline_model::names::unknown;

use super::{Fault, fault};
use crate::documents::workload::wire;

/// The compressions of part files.
const CODECS: [&str; 3] = ["gzip", "zstd", "lz4"];
/// The compressions of map output: it is read again soon, so a slow one costs more than it saves.
const SHUFFLE_CODECS: [&str; 1] = ["lz4"];

/// Refuses the first value that cannot be meant.
pub(super) fn check(run: &wire::Run) -> Result<(), Fault> {
    files(run)?;
    setting(run)?;
    limits(run)?;
    shuffle(run)?;
    codec(".compress_shuffle", run.compress_shuffle.as_deref(), &SHUFFLE_CODECS)?;
    codec(".compress", run.compress.as_deref(), &CODECS)
}

fn files(run: &wire::Run) -> Result<(), Fault> {
    if run.output.as_ref().is_some_and(|output| output.trim().is_empty()) {
        return fault(".output", "found an empty path, expected a directory for the output");
    }
    if let Some(k) = run.inputs.iter().position(|input| input.trim().is_empty() || input == "@") {
        return fault(
            format!(".inputs[{k}]"),
            "found nothing, expected a file, a glob, a directory, or @ and the id of an earlier job",
        );
    }
    let is_half = |input: &String| match input.strip_prefix('@').and_then(|name| name.rsplit_once('/')) {
        Some((flow, job)) => flow.is_empty() || job.is_empty(),
        None => false,
    };
    if let Some(k) = run.inputs.iter().position(is_half) {
        let what = format!("found {:?}, expected a job of another flow as @flow/job", run.inputs[k]);
        return fault(format!(".inputs[{k}]"), what);
    }
    match run.files.iter().position(|file| is_blank(file)) {
        Some(k) => fault(format!(".files[{k}]"), "found no path, expected a file that the job depends on"),
        None => Ok(()),
    }
}

/// Whether no command line or path can contain a text.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty() || text.contains('\0')
}

fn setting(run: &wire::Run) -> Result<(), Fault> {
    for (name, value) in &run.env {
        let at = || format!(".env.{name}");
        if name.is_empty() || name.contains(['=', '\0']) {
            let what = "expected the name of an environment variable, without = and NUL";
            return fault(".env", format!("found the name {name:?}, {what}"));
        }
        if name.starts_with("SLACKLINE_") {
            return fault(at(), "names that begin with SLACKLINE_ are reserved; choose another name");
        }
        if value.to_string().contains('\0') {
            return fault(at(), "found a NUL, expected a text without one");
        }
    }
    let texts = [
        ("cwd", &run.cwd, "found no path, expected a directory"),
        ("shell", &run.shell, "found no program, expected a shell with its options such as bash -o pipefail"),
        ("command", &run.command, "found no command, expected a shell command"),
        ("jar", &run.jar, "found no path, expected the path of a jar"),
        ("main", &run.main, "found no name, expected the name of a class such as org.example.Main"),
    ];
    for (key, text, what) in texts {
        if text.as_deref().is_some_and(is_blank) {
            return fault(format!(".{key}"), what);
        }
    }
    match run.arguments.iter().position(|argument| argument.contains('\0')) {
        Some(k) => fault(format!(".arguments[{k}]"), "found a NUL, expected a text without one"),
        None => Ok(()),
    }
}

fn limits(run: &wire::Run) -> Result<(), Fault> {
    if run.processors == Some(0) {
        return fault(".processors", "found 0, expected 1 or more");
    }
    if run.attempts == Some(0) {
        return fault(".attempts", "found 0, expected 1 or more: the first attempt counts");
    }
    let seconds = |duration: Option<crate::reading::times::Duration>| duration.map(|duration| duration.0);
    if let Some(found) = seconds(run.timeout).filter(|&s| !(s.is_finite() && s > 0.0)) {
        return fault(".timeout", format!("found {found}, expected a duration above 0 such as 10m"));
    }
    if let Some(found) = seconds(run.retry_delay).filter(|&s| !(s.is_finite() && s >= 0.0)) {
        return fault(".retry_delay", format!("found {found}, expected a duration such as 30s"));
    }
    if let Some(found) = run.retry_backoff.filter(|factor| !(1.0..=100.0).contains(factor)) {
        return fault(".retry_backoff", format!("found {found}, expected a factor from 1 to 100 such as 2"));
    }
    if run.retry_backoff.is_some() && run.retry_delay.is_none() {
        return fault(
            ".retry_backoff",
            "found it without `retry_delay`, expected retry_delay = \"30s\" as well",
        );
    }
    if let Some(found) = run.failure_policy.as_deref().filter(|name| FailurePolicy::from_name(name).is_none())
    {
        return fault(".failure_policy", format!("found {found:?}, expected continue, finish or stop"));
    }
    match run.no_retry.iter().position(|&code| code == 0) {
        Some(k) => {
            let what = "found 0, which is success; expected exit codes of commands that failed, 1 to 255";
            fault(format!(".no_retry[{k}]"), what)
        }
        None => Ok(()),
    }
}

fn shuffle(run: &wire::Run) -> Result<(), Fault> {
    let key_fields = run.key_fields.unwrap_or(1);
    if key_fields == 0 {
        return fault(".key_fields", "found 0, expected 1 or more");
    }
    if let Some(found) = run.separator.as_deref()
        && !matches!(found.as_bytes(), [byte] if byte.is_ascii() && !b"\n\r\0".contains(byte))
    {
        let what = "expected one ASCII character that is no line break";
        return fault(".separator", format!("found {found:?}, {what}"));
    }
    if let Some(found) = run.partition_fields.filter(|&n| n == 0 || n > key_fields) {
        let what = format!("found {found} of {}, expected 1 to {key_fields}", of_key(key_fields));
        return fault(".partition_fields", what);
    }
    if run.partition_fields.is_some() && run.total_order {
        let what =
            "found it with `total_order`, expected one of the two: a total order cuts the keys into ranges";
        return fault(".partition_fields", what);
    }
    for (k, field) in run.order.iter().enumerate() {
        order(field, key_fields).or_else(|what| fault(format!(".order[{k}]"), what))?;
    }
    Ok(())
}

fn of_key(fields: u32) -> String {
    match fields {
        1 => "a key of 1 field".to_owned(),
        n => format!("a key of {n} fields"),
    }
}

/// A field of the key as `sort -k` has it: a number, then `n`, `r` or both.
fn order(text: &str, key_fields: u32) -> Result<(), String> {
    let letters = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..letters].parse::<u32>().ok().filter(|_| !text.starts_with('0'));
    let Some(number) = number.filter(|_| matches!(&text[letters..], "" | "n" | "r" | "nr" | "rn")) else {
        return Err(format!(
            "found {text:?}, expected the number of a field, then n for numbers and r for reverse, such as 2nr"
        ));
    };
    if number > key_fields {
        let key = of_key(key_fields);
        return Err(format!("found field {number} of {key}, expected 1 to {key_fields}: see `key_fields`"));
    }
    Ok(())
}

fn codec(at: &str, name: Option<&str>, known: &[&str]) -> Result<(), Fault> {
    match name {
        Some(name) if !known.contains(&name) => fault(at, unknown("compression", name, known)),
        _ => Ok(()),
    }
}
