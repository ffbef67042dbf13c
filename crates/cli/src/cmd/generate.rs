//! `generate`: a synthetic workload.

use std::path::PathBuf;

use clap::Args;
use slackline::report::table::list;
use slackline_model::Seed;
use slackline_trace::generate::{Generator, generator, generators};
use slackline_trace::{Format, write_workload};

use super::Answer;
use super::import::format_of;
use crate::args::value;
use crate::out;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline generate --list
  slackline generate facebook-day --set jobs=1000 --seed 7 --output day.toml
  slackline generate purdue | slackline compare -

The same name, settings and seed give the same workload.")]
pub(crate) struct Generate {
    /// Generator
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,
    /// Set a parameter; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Format of the document [default: by the name of the output file, else toml]
    #[arg(long, value_name = "FORMAT", value_parser = value::native(), help_heading = "Output")]
    format: Option<Format>,
    /// Write the document to FILE, as a whole or not at all, instead of standard output
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// List the generators, or the one named, with parameters and defaults
    #[arg(long, conflicts_with_all = ["set", "format"])]
    list: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

pub(crate) fn run(args: &Generate) -> anyhow::Result<Answer> {
    let file = args.output.as_deref();
    let one = args.name.as_deref().map(generator).transpose()?;
    let Some(one) = one.filter(|_| !args.list) else {
        let listed = one.map_or(generators(), std::slice::from_ref);
        let texts: Vec<String> = listed.iter().map(describe).collect();
        out::text(file, &texts.join("\n"))?;
        return Ok(Answer::Yes);
    };
    let settings: Vec<(&str, &str)> = args.set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let draft = one.generate(&settings, Seed(args.seed))?;
    out::text(file, &write_workload(&draft, format_of(args.format, file)))?;
    Ok(Answer::Yes)
}

/// A generator with its parameters, their defaults and what they may be.
fn describe(generator: &Generator) -> String {
    let parameters: Vec<(String, String)> = generator
        .params
        .iter()
        .map(|param| {
            let name = format!("{}={}", param.name, param.default);
            (name, format!("{} ({})", param.help, param.expected()))
        })
        .collect();
    format!("{}: {}\n{}", generator.name, generator.summary, list(&parameters))
}
