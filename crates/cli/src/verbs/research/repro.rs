//! `repro`: regenerates the figures of the papers, and searches workloads on which a policy is worst.

mod pages;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use slackline::names::unknown;
use slackline::report::table::{fitted, wrapped};
use slackline::report::{Align, Table};
use slackline_lab::provenance::{self, Maker, Provenance};
use slackline_lab::{
    Adversary, Artifact, Context, Experiment, Figure, Opponent, Spec, adversary, experiments, make, papers,
};
use slackline_model::Seed;

use crate::args::help::COLUMNS;
use crate::args::listed::NamedValue;
use crate::args::value;
use crate::tables::Tables;
use crate::terminal::out;
use crate::terminal::progress::Cells;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline repro
  slackline repro baselines woha-fig7 --seeds 3
  slackline repro baselines --output experiments/baselines
  slackline repro mine.toml --output results
  slackline repro --report papers --quick
  slackline repro flex/fig5a --report papers
  slackline repro --adversary edf tardiness --output worst --against flex

Each figure is a CSV file: mean, half the 95 % interval, minimum and maximum over the seeds. The same \
specification gives the same bytes. DIR also gets made.toml, which names the version and commit of the \
program that made each file.

--report writes a page, DIR/index.html: each figure as a picture, next to it the claim of its paper, and whether our rows confirm \
it (verdicts.csv is a summary). Without EXPERIMENT it also has counterexamples to wrong claims of the papers. Figures \
that are in DIR already are kept, so the command resumes a stopped run.

--adversary changes small workloads at random (simulated annealing, as PISA does for list schedulers) to maximise the \
ratio of the cost of POLICY to that of another policy, or to the optimum (exhaustive search). DIR gets the worst \
workloads, reduced to the essential flows, and summary.csv. METRIC is summed over the flows; \"max slowdown\" is the largest slowdown. Where \
costs may be 0, 1 is added to both. If POLICY never costs more, the command reports it and writes no workload.")]
pub(crate) struct Repro {
    /// Experiment, EXPERIMENT/FIGURE, or your own specification FILE.toml (docs/experiments.md); without it,
    /// all are listed
    #[arg(value_name = "EXPERIMENT", value_parser = name(), hide_possible_values = true)]
    experiment: Option<Experiments>,
    /// Figures of the experiment [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Your own specification, with any file ending
    #[arg(long, value_name = "FILE", conflicts_with = "experiment")]
    spec: Option<PathBuf>,
    /// Average over seeds 0 to N-1 instead of the seeds of the figure
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(1, 100_000))]
    seeds: Option<u32>,
    /// Threads that work on a figure [default: one per processor]
    #[arg(long, value_name = "N", value_parser = value::whole::<u16>(1, u16::MAX.into()))]
    threads: Option<u16>,
    /// Write the files of every figure into DIR instead of printing tables
    #[arg(long, short, value_name = "DIR", group = "written")]
    output: Option<PathBuf>,
    /// Write a page that compares the figures with the papers into DIR, and their files; without EXPERIMENT,
    /// for all
    #[arg(long, value_name = "DIR", conflicts_with = "output", group = "written")]
    report: Option<PathBuf>,
    /// At most five seeds per figure; all figures take two minutes
    #[arg(long, requires = "report", conflicts_with = "seeds")]
    quick: bool,
    /// Recompute figures that already exist in DIR
    #[arg(long, requires = "report")]
    again: bool,
    /// Search small workloads on which POLICY is worst at METRIC
    #[arg(long, num_args = 2, value_names = ["POLICY", "METRIC"], requires = "output", conflicts_with_all = ["experiment", "spec", "seeds", "report"])]
    adversary: Option<Vec<String>>,
    /// Policy to compare POLICY with, or optimum for the best schedule
    #[arg(long, value_name = "POLICY", requires = "adversary", default_value = OPTIMUM)]
    against: String,
    /// Seed of the search
    #[arg(long, value_name = "N", requires = "adversary", default_value_t = 0)]
    seed: u64,
    /// Number of workloads that the search tries
    #[arg(long, value_name = "N", requires = "adversary", default_value_t = 2000, value_parser = value::whole::<u32>(4, 10_000_000))]
    budget: u32,
    /// Commit of this program, to be recorded in DIR/made.toml
    #[arg(long, value_name = "COMMIT", requires = "written")]
    commit: Option<String>,
}

/// The word for the best schedule there is.
const OPTIMUM: &str = "optimum";

/// The experiments that the arguments name.
#[derive(Clone, Debug)]
enum Experiments {
    /// An experiment of the program, and its figure if the argument has a slash.
    Known { experiment: Experiment, figure: Option<String> },
    /// A specification of one's own.
    File(PathBuf),
}

fn name() -> NamedValue<Experiments> {
    let names: Vec<&str> = experiments().iter().map(|experiment| experiment.id).collect();
    NamedValue::new(names.clone(), move |text: &str| {
        if Path::new(text).extension().is_some_and(|extension| extension == "toml") {
            return Ok(Experiments::File(text.into()));
        }
        let (id, figure) = text.split_once('/').map_or((text, None), |(id, figure)| (id, Some(figure)));
        let found = experiments().iter().find(|experiment| experiment.id == id);
        let unknown =
            || unknown("experiment", id, &names) + "; your own specification is a file that ends in .toml";
        let experiment = *found.ok_or_else(unknown)?;
        Ok::<_, String>(Experiments::Known { experiment, figure: figure.map(str::to_owned) })
    })
}

impl Repro {
    /// The figures that were named, all if none was.
    fn ids(&self) -> Vec<String> {
        let slashed = match &self.experiment {
            Some(Experiments::Known { figure, .. }) => figure.clone(),
            _ => None,
        };
        slashed.into_iter().chain(self.figures.iter().cloned()).collect()
    }

    /// The experiment that was named, of those that come with the program.
    fn known(&self) -> Option<&Experiment> {
        match &self.experiment {
            Some(Experiments::Known { experiment, .. }) => Some(experiment),
            _ => None,
        }
    }

    /// The specification of one's own that was named.
    fn own(&self) -> Option<&Path> {
        match &self.experiment {
            Some(Experiments::File(path)) => Some(path),
            _ => self.spec.as_deref(),
        }
    }
}

/// The names of all figures that come with the program, for completions.
pub(crate) fn figures() -> Vec<String> {
    let specs = experiments().iter().filter_map(|experiment| experiment.spec().ok());
    specs.flat_map(|spec| spec.figures).map(|figure| figure.id).collect()
}

pub(crate) fn run(args: &Repro, tables: &Tables) -> anyhow::Result<Answer> {
    if let Some(asked) = &args.adversary {
        return worst(args, asked, tables);
    }
    if let Some(dir) = &args.report {
        return pages::run(args, dir);
    }
    let Some(spec) = specification(args)? else {
        out::text(None, &listed()?)?;
        return Ok(Answer::Yes);
    };
    let chosen = chosen(&spec, &args.ids())?;
    let paper = args.known().map(|experiment| experiment.paper(&spec)).transpose()?;
    if let Some(dir) = &args.output {
        std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot be created", dir.display()))?;
    }
    for figure in chosen {
        out::talk(format_args!("{}: {}", figure.id, figure.title));
        let mut made = {
            let cells = Cells::new();
            let context = Context {
                seeds: args.seeds,
                threads: threads(args),
                progress: &|done, of| cells.at(done, of),
                tell: &|remark| out::talk(format_args!("{remark}")),
            };
            make(figure, &context)?
        };
        if args.output.is_some() {
            let claim = paper.as_ref().and_then(|paper| paper.claim(&figure.id));
            made.extend(papers::drawn(figure, claim, &made)?);
        }
        for artifact in &made {
            write(args.output.as_deref(), artifact)?;
        }
        if let Some(dir) = &args.output {
            note(dir, &made, &Maker::this(args.commit.clone()).of(&figure.id))?;
        }
    }
    Ok(Answer::Yes)
}

fn threads(args: &Repro) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    args.threads.map_or_else(processors, usize::from)
}

/// Searches workloads on which a policy is worst, and writes them down.
fn worst(args: &Repro, asked: &[String], tables: &Tables) -> anyhow::Result<Answer> {
    let [policy, metric] = asked else { anyhow::bail!("--adversary: expected a policy and a metric") };
    let read = |spec: &str| tables.policies.parse(spec).with_context(|| format!("policy {spec:?}"));
    let against =
        if args.against == OPTIMUM { Opponent::Optimum } else { Opponent::Policy(read(&args.against)?) };
    let objective =
        adversary::objective(metric).map_err(|problem| anyhow::anyhow!("--adversary: {problem}"))?;
    let (seed, budget) = (Seed(args.seed), args.budget);
    let adversary = Adversary { policy: read(policy)?, objective, against, seed, budget };
    let found = {
        let cells = Cells::new();
        adversary.search(threads(args), &|done, of| cells.at(done, of))?
    };
    let Some(dir) = args.output.as_deref() else { anyhow::bail!("--adversary: expected --output") };
    std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot be created", dir.display()))?;
    let made = adversary.artifacts(&found);
    for artifact in &made {
        write(Some(dir), artifact)?;
    }
    note(dir, &made, &Maker::this(args.commit.clone()))?;
    let text = if found.is_empty() { adversary.nothing() + "\n" } else { table(&made[0].text) };
    out::text(None, &text)?;
    Ok(Answer::Yes)
}

fn specification(args: &Repro) -> anyhow::Result<Option<Spec>> {
    if let Some(path) = args.own() {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
        return Ok(Some(Spec::parse(&name, &text, &slackline_lab::kinds::names())?));
    }
    Ok(args.known().map(Experiment::spec).transpose()?)
}

fn chosen<'a>(spec: &'a Spec, ids: &[String]) -> anyhow::Result<Vec<&'a Figure>> {
    if ids.is_empty() {
        return Ok(spec.figures.iter().collect());
    }
    let find = |id: &String| {
        spec.figures.iter().find(|figure| figure.id == *id).with_context(|| {
            let known: Vec<&str> = spec.figures.iter().map(|figure| figure.id.as_str()).collect();
            unknown("figure", id, &known)
        })
    };
    ids.iter().map(find).collect()
}

/// Every experiment with its figures.
fn listed() -> anyhow::Result<String> {
    let mut texts = Vec::new();
    for experiment in experiments() {
        let spec = experiment.spec()?;
        let figures: Vec<(String, String)> =
            spec.figures.into_iter().map(|figure| (figure.id, figure.title)).collect();
        let head = format!("{}: {} (paper: {})", experiment.id, spec.title, spec.paper);
        texts.push(fitted(&head, COLUMNS) + &wrapped(&figures, COLUMNS));
    }
    Ok(texts.join("\n"))
}

/// Writes an artifact into the directory, or prints it: rows as a table, pictures not at all.
fn write(dir: Option<&Path>, artifact: &Artifact) -> anyhow::Result<()> {
    if let Some(dir) = dir {
        return out::text(Some(&dir.join(&artifact.name)), &artifact.text);
    }
    if Path::new(&artifact.name).extension().is_some_and(|extension| extension == "csv") {
        return out::text(None, &table(&artifact.text));
    }
    out::talk(format_args!("{} is written with --output DIR only", artifact.name));
    Ok(())
}

/// Records in the directory's made.toml which program made these files; other entries stay.
fn note(dir: &Path, artifacts: &[Artifact], maker: &Maker) -> anyhow::Result<()> {
    let path = dir.join(provenance::FILE);
    let mut known = match std::fs::read_to_string(&path) {
        Ok(text) => Provenance::parse(&text).with_context(|| path.display().to_string())?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Provenance::default(),
        Err(error) => {
            return Err(error).with_context(|| format!("{}: cannot be read", path.display()));
        }
    };
    known.files.extend(artifacts.iter().map(|artifact| (artifact.name.clone(), maker.clone())));
    out::text(Some(&path), &known.to_string())
}

/// Rows as a table for people, without the columns that are only for programs.
fn table(text: &str) -> String {
    const FOR_PROGRAMS: [&str; 3] = ["figure", "spec", "version"];
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().filter_map(Result::ok).collect();
    let Some((header, rows)) = rows.split_first() else { return String::new() };
    let has_cells = |k: usize| rows.iter().any(|row| row.get(k).is_some_and(|cell| !cell.is_empty()));
    let kept: Vec<usize> =
        (0..header.len()).filter(|&k| !FOR_PROGRAMS.contains(&&header[k]) && has_cells(k)).collect();
    let number = |cell: &str| cell.parse::<f64>().ok();
    let align = |k: usize| {
        let all =
            rows.iter().all(|row| row.get(k).is_none_or(|cell| cell.is_empty() || number(cell).is_some()));
        if all { Align::Right } else { Align::Left }
    };
    let headings: Vec<(&str, Align)> = kept.iter().map(|&k| (&header[k], align(k))).collect();
    let mut table = Table::new(&headings);
    for row in rows {
        let cell = |&k: &usize| match row.get(k).unwrap_or_default() {
            cell if cell.len() > 8 => number(cell).map_or(cell.to_owned(), |x| format!("{x:.4}")),
            cell => cell.to_owned(),
        };
        table.row(kept.iter().map(cell));
    }
    table.render(&out::view(None))
}
