//! Converts the `run` section of a job between the document and the model's draft.

mod kind;
#[cfg(test)]
mod tests;
mod values;

use slackline_model::draft::{FailurePolicy, RunDraft, RunLimits, RunSetting, RunShuffle, RunWork};

use super::wire;
use crate::reading::sizes::Size;
use crate::reading::times::Duration;

/// The place of a fault in the section, and the fault.
type Fault = (String, String);

fn fault<T>(at: impl Into<String>, what: impl Into<String>) -> Result<T, Fault> {
    Err((at.into(), what.into()))
}

/// The section as a draft, or its contradictions.
pub(super) fn to_run(run: wire::Run) -> Result<RunDraft, Fault> {
    let kind = kind::of(&run)?;
    kind::check(kind, &run)?;
    values::check(&run)?;
    let words = |table: std::collections::BTreeMap<String, wire::Arg>| {
        table.into_iter().map(|(name, value)| (name, value.to_string()))
    };
    let work = match (run.program, run.mapper, run.jar) {
        (Some(name), ..) => RunWork::Program { name, args: words(run.args).collect() },
        (None, Some(mapper), _) => RunWork::Commands { mapper, reducer: run.reducer, combiner: run.combiner },
        (None, None, Some(jar)) => {
            RunWork::Jar { jar, main: run.main.unwrap_or_default(), arguments: run.arguments }
        }
        (None, None, None) => RunWork::Command { command: run.command.unwrap_or_default() },
    };
    Ok(RunDraft {
        work,
        inputs: run.inputs,
        output: run.output,
        reducers: run.reducers,
        setting: RunSetting {
            env: words(run.env).collect(),
            cwd: run.cwd,
            shell: run.shell,
            files: run.files,
        },
        limits: RunLimits {
            memory: run.memory.map(|Size(bytes)| bytes),
            processors: run.processors,
            timeout: run.timeout.map(|Duration(seconds)| seconds),
            attempts: run.attempts,
            retry_delay: run.retry_delay.map(|Duration(seconds)| seconds),
            retry_backoff: run.retry_backoff,
            no_retry: run.no_retry,
            failure_policy: run.failure_policy.as_deref().and_then(FailurePolicy::from_name),
        },
        shuffle: RunShuffle {
            key_fields: run.key_fields,
            separator: run.separator,
            partition_fields: run.partition_fields,
            order: run.order,
            total_order: run.total_order,
            compress: run.compress_shuffle,
        },
        compress: run.compress,
    })
}

/// The section that describes a draft.
pub(super) fn from_run(run: &RunDraft) -> wire::Run {
    let RunDraft { work, inputs, output, reducers, setting, limits, shuffle, compress } = run.clone();
    let words = |pairs: &mut dyn Iterator<Item = (String, String)>| {
        pairs.map(|(name, value)| (name, wire::Arg::Text(value))).collect()
    };
    let mut wire = wire::Run {
        inputs,
        output,
        reducers,
        env: words(&mut setting.env.into_iter()),
        cwd: setting.cwd,
        shell: setting.shell,
        files: setting.files,
        memory: limits.memory.map(Size),
        processors: limits.processors,
        timeout: limits.timeout.map(Duration),
        attempts: limits.attempts,
        retry_delay: limits.retry_delay.map(Duration),
        retry_backoff: limits.retry_backoff,
        no_retry: limits.no_retry,
        failure_policy: limits.failure_policy.map(|policy| policy.name().to_owned()),
        key_fields: shuffle.key_fields,
        separator: shuffle.separator,
        partition_fields: shuffle.partition_fields,
        order: shuffle.order,
        total_order: shuffle.total_order,
        compress_shuffle: shuffle.compress,
        compress,
        ..wire::Run::default()
    };
    match work {
        RunWork::Program { name, args } => {
            wire.program = Some(name);
            wire.args = words(&mut args.into_iter());
        }
        RunWork::Commands { mapper, reducer, combiner } => {
            (wire.mapper, wire.reducer, wire.combiner) = (Some(mapper), reducer, combiner);
        }
        RunWork::Command { command } => wire.command = Some(command),
        RunWork::Jar { jar, main, arguments } => {
            (wire.jar, wire.main, wire.arguments) = (Some(jar), Some(main), arguments);
        }
    }
    wire
}
