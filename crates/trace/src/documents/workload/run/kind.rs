//! Checks which keys of a `run` section go together.

use super::{Fault, fault};
use crate::documents::workload::wire;

/// The kind of a section, by the keys of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A program that is built in.
    Program,
    Maps,
    MapsAndReduces,
    Command,
    /// A program for Hadoop.
    Jar,
}

use Kind::{Command, Jar, Maps, MapsAndReduces, Program};

impl Kind {
    const fn words(self) -> &'static str {
        match self {
            Program => "a program",
            Maps => "a mapper without a reducer command",
            MapsAndReduces => "a mapper and a reducer",
            Command => "a plain command",
            Jar => "a jar",
        }
    }
}

/// What kind of section it is.
pub(super) fn of(run: &wire::Run) -> Result<Kind, Fault> {
    let expected = "expected one of program = \"…\", mapper = \"…\", command = \"…\" and jar = \"…\"";
    match (&run.program, &run.mapper, &run.command, &run.jar) {
        (Some(_), None, None, None) => Ok(Program),
        (None, Some(_), None, None) if run.reducer.is_some() => Ok(MapsAndReduces),
        (None, Some(_), None, None) => Ok(Maps),
        (None, None, Some(_), None) => Ok(Command),
        (None, None, None, Some(_)) => Ok(Jar),
        (None, None, None, None) if run.reducer.is_some() => {
            fault(".reducer", "found a reducer without a mapper, expected both")
        }
        (None, None, None, None) => fault("", format!("found nothing to do, {expected}")),
        (program, mapper, command, jar) => {
            let given = [
                ("program", program.is_some()),
                ("mapper", mapper.is_some()),
                ("command", command.is_some()),
                ("jar", jar.is_some()),
            ];
            let given: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
            fault("", format!("found {}, {expected}", given.join(" and ")))
        }
    }
}

/// Refuses keys without effect in a section of this kind: the user meant them to have one.
pub(super) fn check(kind: Kind, run: &wire::Run) -> Result<(), Fault> {
    if kind == Maps && run.combiner.is_some() {
        return fault(".combiner", "found a combiner without a reducer, expected both or none");
    }
    if kind != Program && !run.args.is_empty() {
        let where_else = if kind == Jar { "as a list in `arguments`" } else { "in the command itself" };
        return fault(".args", format!("found arguments with {}, expected them {where_else}", kind.words()));
    }
    if kind != Command && run.output.is_none() {
        let what = format!("found no `output` with {}, expected the directory of its output", kind.words());
        return fault("", what);
    }
    if kind == Jar && run.main.is_none() {
        return fault("", "found a jar without a main class, expected main = \"…\" as well");
    }
    if kind == Maps && run.reducers.is_some_and(|n| n > 0) {
        return fault(".reducers", "found reducers without a reducer command, expected `reducer` as well");
    }
    let shell: &[Kind] = &[Maps, MapsAndReduces, Command];
    let reduces: &[Kind] = &[MapsAndReduces];
    let files: &[Kind] = &[Maps, MapsAndReduces, Command, Jar];
    let tasks: &[Kind] = &[Program, Maps, MapsAndReduces, Command];
    let jar: &[Kind] = &[Jar];
    let keys = [
        ("reducer", run.reducer.is_some(), reduces),
        ("combiner", run.combiner.is_some(), reduces),
        ("main", run.main.is_some(), jar),
        ("arguments", !run.arguments.is_empty(), jar),
        ("reducers", run.reducers.is_some(), &[Program, Maps, MapsAndReduces, Jar]),
        ("env", !run.env.is_empty(), shell),
        ("cwd", run.cwd.is_some(), shell),
        ("shell", run.shell.is_some(), shell),
        ("files", !run.files.is_empty(), files),
        ("memory", run.memory.is_some(), tasks),
        ("processors", run.processors.is_some(), tasks),
        ("timeout", run.timeout.is_some(), tasks),
        ("retry_delay", run.retry_delay.is_some(), tasks),
        ("retry_backoff", run.retry_backoff.is_some(), tasks),
        ("failure_policy", run.failure_policy.is_some(), tasks),
        ("no_retry", !run.no_retry.is_empty(), shell),
        ("key_fields", run.key_fields.is_some(), reduces),
        ("separator", run.separator.is_some(), reduces),
        ("partition_fields", run.partition_fields.is_some(), reduces),
        ("order", !run.order.is_empty(), reduces),
        ("total_order", run.total_order, reduces),
        ("compress_shuffle", run.compress_shuffle.is_some(), &[Program, MapsAndReduces]),
    ];
    for (key, is_given, with) in keys {
        if is_given && !with.contains(&kind) {
            let with: Vec<&str> = with.iter().map(|kind| kind.words()).collect();
            let what =
                format!("found `{key}` with {}, expected it only with {}", kind.words(), with.join(" or "));
            return fault(format!(".{key}"), what);
        }
    }
    Ok(())
}
