//! `cargo xtask study`: how often `auto` is worse than the best single policy or rule, on classes of workloads
//! that are for this alone.
//!
//! Each workload is simulated under each policy with its default parameters and each rule, for each metric,
//! with true estimates, with wrong ones, and with learned ones. Rows are added to a CSV file; rows that are
//! there are not computed again. The verdicts follow from the file.

mod classes;
mod verdicts;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use slackline::simulate::{Knowledge, Watch, simulate_figures};
use slackline::{Options, PolicySpec, Registry, parallel};
use slackline_model::History;
use slackline_model::draft::Weights;
use slackline_model::{Combine, Instance, Metric, Objective, Seed};

use classes::{CLASSES, Class};

/// What a study is run on.
pub(crate) const USAGE: &str =
    "cargo xtask study FILE.csv [--first SEED] [--seeds N] [--classes A,B] [--policies P,Q]";

const OBJECTIVES: [(&str, Metric, Combine); 6] = [
    ("response", Metric::Response, Combine::Sum),
    ("slowdown", Metric::Slowdown, Combine::Sum),
    ("slowdown max", Metric::Slowdown, Combine::Max),
    ("tardiness", Metric::Tardiness, Combine::Sum),
    ("tardiness max", Metric::Tardiness, Combine::Max),
    ("tardy", Metric::Tardy, Combine::Sum),
];

const CONDITIONS: [&str; 4] = ["true", "noise 0.5", "noise 1", "learned"];

/// A cost. Empty if the policy cannot run the workload.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Row {
    class: String,
    seed: u64,
    condition: String,
    metric: String,
    policy: String,
    cost: Option<f64>,
    /// Of one thread, from start to end of the simulation.
    seconds: f64,
}

/// What there is to run.
struct Study {
    file: String,
    seeds: std::ops::Range<u64>,
    classes: Vec<&'static Class>,
    policies: Vec<PolicySpec>,
}

/// Runs what is not in the file, and prints the verdicts of the whole file.
///
/// # Errors
/// Unknown options, classes or policies; a file that cannot be read or written; a policy that fails.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let study = Study::parse(args)?;
    let rows = read(&study.file)?;
    let known: BTreeSet<(String, u64)> =
        rows.iter().map(|row| (row.class.clone() + &row.policy, row.seed)).collect();
    drop(rows);
    let cells: Vec<(&Class, u64)> =
        study.seeds.clone().flat_map(|seed| study.classes.iter().map(move |&class| (class, seed))).collect();
    let out = File::options().create(true).append(true).open(&study.file).context(study.file.clone())?;
    let is_new = out.metadata()?.len() == 0;
    let out = Mutex::new(csv::WriterBuilder::new().has_headers(is_new).from_writer(out));
    parallel::map(cells.len(), parallel::processors(), |k| -> Result<()> {
        let (class, seed) = cells[k];
        let is_wanted =
            |policy: &&PolicySpec| !known.contains(&(class.name.to_owned() + policy.spec(), seed));
        let rows = rows_of(class, seed, study.policies.iter().filter(is_wanted))?;
        let mut out = out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        rows.iter().try_for_each(|row| out.serialize(row))?;
        Ok(out.flush()?)
    })?;
    print(&verdicts::verdicts(&read(&study.file)?))
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

impl Study {
    fn parse(args: &[String]) -> Result<Self> {
        let Some((file, mut rest)) = args.split_first().filter(|(file, _)| !file.starts_with('-')) else {
            bail!("{USAGE}")
        };
        let (mut first, mut n) = (1, 20);
        let mut classes: Vec<&'static Class> = CLASSES.iter().collect();
        let registry = Registry::standard();
        let rules =
            slackline_algo::rule::orders::RULES.iter().map(|rule| format!("rule:order={}", rule.name));
        let rules = rules.map(|spec| registry.parse(&spec)).collect::<Result<Vec<_>, _>>()?;
        let mut policies: Vec<PolicySpec> =
            registry.policies().into_iter().filter(|policy| policy.name() != "rule").chain(rules).collect();
        while let [option, value, others @ ..] = rest {
            match option.as_str() {
                "--first" => first = value.parse().context("--first")?,
                "--seeds" => n = value.parse().context("--seeds")?,
                "--classes" => classes.retain(|class| value.split(',').any(|name| name == class.name)),
                "--policies" => policies = registry.parse_several(value)?,
                _ => bail!("{USAGE}"),
            }
            rest = others;
        }
        if !rest.is_empty() || classes.is_empty() {
            bail!("{USAGE}");
        }
        Ok(Self { file: file.clone(), seeds: first..first + n, classes, policies })
    }
}

fn read(file: &str) -> Result<Vec<Row>> {
    if !Path::new(file).exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(file).context(file.to_owned())?;
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().context(file.to_owned())
}

/// All conditions and metrics of these policies on a workload.
fn rows_of<'a>(class: &Class, seed: u64, policies: impl Iterator<Item = &'a PolicySpec>) -> Result<Vec<Row>> {
    let instance = Instance::new(&class.workload(Seed(seed))?)?;
    let objectives = OBJECTIVES.map(|(name, metric, combine)| {
        let objective = Objective::new(metric, combine);
        (name, instance.clone().with_objective(objective, Weights::Use))
    });
    let mut rows = Vec::new();
    for policy in policies {
        for condition in CONDITIONS {
            let options = options(condition, seed);
            for (metric, instance) in &objectives {
                let instance = instance.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
                #[expect(clippy::disallowed_methods, reason = "a study times what it runs")]
                let start = Instant::now();
                let done = simulate_figures(instance, policy, &options, None, Watch::default());
                rows.push(Row {
                    class: class.name.to_owned(),
                    seed,
                    condition: condition.to_owned(),
                    metric: (*metric).to_owned(),
                    policy: policy.spec().to_owned(),
                    cost: done.ok().and_then(|done| done.schedule.cost),
                    seconds: start.elapsed().as_secs_f64(),
                });
            }
        }
    }
    Ok(rows)
}

/// The options of a condition. Errors of estimates are the same for all policies.
fn options(condition: &str, seed: u64) -> Options {
    let mut options = Options::exact();
    options.sim.seed = Seed(seed);
    match condition {
        "noise 0.5" => options.noise = 0.5,
        "noise 1" => options.noise = 1.0,
        "learned" => options.knowledge = Knowledge::Learned(History::default()),
        _ => {}
    }
    options
}
