//! `token`: manages the access tokens of a service.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use slackline::report::{Column, Table};
use slackline_serve::http::tokens::{Token as Known, Tokens};
use slackline_serve::http::users::{Users, own};
use slackline_serve::service::paths::ServicePaths;
use slackline_serve::state::auth::Role;

use super::serve::roles;
use crate::args::defaults::Defaults;
use crate::args::server::STATE;
use crate::terminal::{out, service};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline token --add anna --role submit
  slackline token
  slackline token --remove anna

A token is printed once; the service keeps only a hash of it. Clients pass it in the environment variable SLACKLINE_TOKEN. \
Changes apply at once, without a restart of the service. The state directory must exist: `slackline serve` creates it.")]
pub(crate) struct Token {
    /// Create a token for a user or a program, and print it
    #[arg(long, value_name = "NAME", requires = "role", conflicts_with = "remove")]
    add: Option<String>,
    /// Permissions: see everything; also submit, and change own submissions; or change everything
    #[arg(long, value_name = "ROLE", value_parser = roles(), requires = "add")]
    role: Option<Role>,
    /// Remove the token of this name
    #[arg(long, value_name = "NAME")]
    remove: Option<String>,
    /// State directory of the service [default: serve, in the directory of runs]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

pub(crate) fn run(args: &Token, defaults: &Defaults) -> anyhow::Result<Answer> {
    let state = args.state.clone().unwrap_or_else(|| defaults.state().join(STATE));
    // Creating the directory here would hide a mistyped name.
    if !state.is_dir() {
        bail!(
            "{}: found no directory, expected the state directory of a service: start `slackline serve`, or create it with `mkdir` \
             to add tokens first",
            state.display()
        );
    }
    // In a directory of another user, that user could have root write anywhere by a link.
    let owner = std::fs::metadata(&state)?.uid();
    if own() == 0 && owner != 0 {
        let user = Users::default().name(owner);
        bail!(
            "{}: belongs to {user}: run `sudo -u {user} slackline token` instead of as root",
            state.display()
        );
    }
    let paths = ServicePaths::new(&state);
    let tokens = Tokens::new(paths.tokens());
    match (&args.add, args.role, &args.remove) {
        (Some(name), Some(role), _) => {
            if !paths.has_served() {
                out::warn(format_args!("{}: no service has run there yet", state.display()));
            }
            let token = tokens.add(name, role, Timestamp::now())?;
            out::text(None, &format!("{token}\n"))?;
        }
        (_, _, Some(name)) => {
            tokens.remove(name)?;
            out::talk(format_args!("the token of {name} is removed"));
        }
        _ => {
            let all = tokens.all()?;
            let text = if all.is_empty() { "there are no tokens\n".to_owned() } else { table(&all) };
            out::text(None, &text)?;
        }
    }
    Ok(Answer::Yes)
}

fn table(all: &[Known]) -> String {
    let now = Timestamp::now();
    let words = |name: &str, cell: &dyn Fn(&Known) -> String| {
        Column::words(name, all.iter().map(cell).collect::<Vec<_>>())
    };
    let table = Table::of(vec![
        words("name", &|one| one.name.clone()),
        words("role", &|one| one.role.name().to_owned()),
        words("made", &|one| service::clock(one.created, now)),
    ]);
    table.render(&out::view(None))
}
