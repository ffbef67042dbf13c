//! `completions`: prints a completion script for a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use slackline::report::{comparison, flows, tuning};

use crate::args::listed::NamedValue;
use crate::terminal::out;
use crate::verbs::answer::Answer;
use crate::verbs::research::repro;
use crate::verbs::run::history;

#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  slackline completions bash > ~/.local/share/bash-completion/completions/slackline")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// `known` is the command line that the script completes.
pub(crate) fn run(args: &Completions, known: Command) -> anyhow::Result<Answer> {
    let mut script = Vec::new();
    let verbs: Vec<String> = known.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    // Names that only a script has a use for.
    let mut known = known
        .mut_subcommand("repro", |repro| {
            repro.mut_arg("figures", |arg| arg.value_parser(listed(repro::figures())))
        })
        .mut_subcommand("man", |man| man.mut_arg("verb", |arg| arg.value_parser(listed(verbs))));
    for (verb, columns) in [
        ("compare", comparison::column_names()),
        ("simulate", flows::COLUMNS.to_vec()),
        ("plan", flows::COLUMNS.to_vec()),
        ("tune", tuning::COLUMNS.to_vec()),
        ("history", history::columns()),
    ] {
        let columns: Vec<String> = columns.into_iter().map(str::to_owned).collect();
        known = known.mut_subcommand(verb, |verb| {
            ["columns", "sort"]
                .into_iter()
                .fold(verb, |verb, flag| verb.mut_arg(flag, |arg| arg.value_parser(listed(columns.clone()))))
        });
    }
    clap_complete::generate(args.shell, &mut known, "slackline", &mut script);
    out::data(None, |out| out.write_all(&script))?;
    Ok(Answer::Yes)
}

/// Any text, with these names for completions.
fn listed(names: Vec<String>) -> NamedValue<String> {
    NamedValue::new(names, |text| Ok::<_, String>(text.to_owned()))
}
