//! Writes the results of `compare`: a table, CSV or a document, for one cluster or several sizes of it.

use slackline::PolicySpec;
use slackline::import::{Loaded, RecordedOptions};
use slackline::report::comparison::{ComparisonSubject, OnSize};
use slackline::report::flow_chances::{self, FlowSeeds};
use slackline::report::number::counted;
use slackline::report::page::Page;
use slackline::report::significance::Sampling;
use slackline::report::{Figures, Row, View, comparison, headline, spread};

use super::flags::Compare;
use super::raw;
use super::round::Round;
use super::samples::Samples;
use super::sweep::by_policy;
use crate::args::output::Form;
use crate::args::report::about;
use crate::terminal::out;

pub(super) struct ResultWriter<'a> {
    pub(super) args: &'a Compare,
    pub(super) view: &'a View,
    pub(super) policies: &'a [PolicySpec],
    pub(super) samples: &'a Samples<'a>,
    /// Whether another seed gives other results.
    pub(super) is_random: bool,
    /// Whether `--budget` ended the sampling.
    pub(super) is_cut: bool,
    /// Why the figures may mislead; the page has this warning too.
    pub(super) warning: Option<String>,
}

impl ResultWriter<'_> {
    /// Writes what all samples gave on one cluster.
    pub(super) fn write(&self, rounds: &[Round]) -> anyhow::Result<()> {
        let (args, view) = (self.args, self.view);
        let form = args.output.form();
        let sampling = self.sampling(rounds);
        let head = self.headlines(rounds) + &self.remarks(rounds);
        let flows = if args.flows { self.flows(rounds) } else { Vec::new() };
        let body = match (form, rounds) {
            (Form::Csv, _) if args.flows => flow_chances::csv(&flows),
            (Form::Table, [only]) => match args.by {
                Some(by) => comparison::table_by(by, &only.rows, view),
                None => comparison::table(&only.rows, sampling, view),
            },
            (Form::Table, _) => match args.by {
                Some(by) => spread::table_by(by, &self.by_policy(rounds), sampling.word, view),
                None => spread::table(&self.by_policy(rounds), sampling, view),
            },
            (Form::Csv, [only]) => match args.by {
                Some(by) => comparison::csv_by(by, &only.rows),
                None => comparison::csv(&only.rows, sampling),
            },
            (Form::Csv, _) => match args.by {
                Some(by) => spread::csv_by(by, &self.by_policy(rounds), sampling.word),
                None => spread::csv(&self.by_policy(rounds), sampling.word),
            },
            (Form::Json, _) => comparison::json(&self.about(rounds), &self.by_policy(rounds), &flows),
        };
        if form != Form::Table {
            let crowding = spread::crowding(&self.by_policy(rounds));
            crowding.lines().for_each(out::talk);
        }
        let body = match &rounds[0].flows_of {
            Some((sample, _)) if form == Form::Table && args.flows => {
                let start = sample.loaded.instance.start();
                let plain = View { columns: Vec::new(), sort: None, ..view.clone() };
                format!("{body}\n{}", flow_chances::table(&flows, start, &plain))
            }
            _ => body,
        };
        self.args.output.write(&head, &body, self.view)
    }

    /// What the seeds say of each flow under each policy.
    fn flows(&self, rounds: &[Round]) -> Vec<FlowSeeds> {
        let Some((sample, _)) = &rounds[0].flows_of else { return Vec::new() };
        let of = |(k, policy): (usize, &PolicySpec)| {
            let completions = |round: &Round| {
                let mut of_flow = vec![None; sample.loaded.instance.flows().len()];
                let rows = round.flows_of.iter().flat_map(|(_, flows)| &flows[k]);
                for row in rows {
                    if let Some(completion) = of_flow.get_mut(usize::from(row.flow)) {
                        *completion = row.completion;
                    }
                }
                of_flow
            };
            let seeds: Vec<_> = rounds.iter().map(completions).collect();
            FlowSeeds::of(policy.spec(), &sample.loaded.instance, &seeds)
        };
        self.policies.iter().enumerate().flat_map(of).collect()
    }

    /// Writes what all samples gave on clusters of several sizes, as a table or CSV.
    pub(super) fn write_sizes(&self, sizes: &[Vec<Round>]) -> anyhow::Result<()> {
        let heads = sizes.iter().map(|rounds| self.headlines(rounds));
        let head = heads.collect::<String>() + &self.remarks(&sizes[0]);
        let sampling = self.sampling(&sizes[0]);
        let is_table = self.args.output.form() == Form::Table;
        let body = if sizes[0].len() == 1 {
            let sizes = of_sizes(sizes);
            if is_table {
                comparison::table_of_sizes(&sizes, self.view)
            } else {
                comparison::csv_of_sizes(&sizes, sampling)
            }
        } else {
            let runs = |rounds: &Vec<Round>| OnSize {
                machines: rounds[0].machines,
                policies: self.by_policy(rounds),
            };
            let sizes: Vec<_> = sizes.iter().map(runs).collect();
            if is_table {
                comparison::spreads_of_sizes(&sizes, sampling, self.view)
            } else {
                comparison::csv_of_spreads(&sizes, sampling.word)
            }
        };
        self.args.output.write(&head, &body, self.view)
    }

    /// Writes the files of `--raw` and `--raw-flows`.
    pub(super) fn write_raw(&self, sizes: &[Vec<Round>]) -> anyhow::Result<()> {
        let Self { args, policies, .. } = *self;
        args.raw.iter().try_for_each(|file| raw::write_rounds(file, sizes, policies))?;
        args.raw_flows.iter().try_for_each(|file| raw::write_flows(file, sizes, policies))
    }

    /// How the values of the policies were sampled.
    fn sampling(&self, rounds: &[Round]) -> Sampling {
        let is_one_draw = rounds.len() == 1 && self.is_random;
        Sampling { word: self.samples.word(), is_one_draw }
    }

    /// Writes the page of `--report`. It shows the first sample on the first cluster, which has this
    /// workload.
    pub(super) fn write_page(&self, loaded: &Loaded, sizes: &mut [Vec<Round>]) -> anyhow::Result<()> {
        let drawn = std::mem::take(&mut sizes[0][0].drawn);
        let first = &sizes[0][0];
        let name = self.samples.title();
        let (options, sha256) = (self.options(first), self.samples.sha256());
        let about = about(&name, "compare", seeds(&sizes[0]), options, sha256, first.not_modelled.clone());
        let mut page = Page::new(&loaded.instance, about);
        for (row, drawn) in first.rows.iter().zip(drawn) {
            page = page.with_policy(row.clone(), drawn);
        }
        if let Some(warning) = &self.warning {
            page = page.with_warning(warning);
        }
        if sizes[0].len() > 1 {
            let sampling = self.sampling(&sizes[0]);
            page = page.with_samples(&self.by_policy(&sizes[0]), sampling, first.name.as_deref());
        }
        let flows = self.flows(&sizes[0]);
        if is_enough(&flows) {
            page = page.with_flow_chances(&flows);
        }
        if sizes.len() > 1 {
            page = page.with_sizes(&of_sizes(sizes));
        }
        self.args.report.write(&page)
    }

    /// The objective, and remarks on the figures: how they are made, and what the bound covers.
    fn remarks(&self, rounds: &[Round]) -> String {
        const TIMES: &str = "times without a unit are in seconds";
        let objective = &rounds[0].objective_text;
        // A bound holds for the durations of the workload, not for distorted ones.
        let no_bound =
            self.args.simulation.options().distorts().then_some(
                "no lower bound and no gaps, because --jitter changes the durations of the workload",
            );
        let is_swept = self.args.shape.sizes().len() > 1;
        let one_draw =
            if self.sampling(rounds).is_one_draw { "; one draw (--seeds 5 for intervals)" } else { "" };
        match (rounds, no_bound) {
            ([_], None) if is_swept => format!("cost: {objective}{one_draw}; {TIMES}"),
            ([only], None) => {
                format!("cost: {objective}; {}{one_draw}; {TIMES}", headline::bound(only.bound))
            }
            ([_], Some(why)) => format!("cost: {objective}; {why}{one_draw}; {TIMES}"),
            (_, why) => {
                let why = why.map_or_else(String::new, |why| format!("; {why}"));
                let cut = if self.is_cut { " (--budget ended the sampling)" } else { "" };
                let legend = spread::legend(match units(rounds).as_slice() {
                    [None] => rounds.len(),
                    units => units.len(),
                });
                format!("cost: {objective}; {}{cut}: {legend}; {TIMES}{why}", self.counted(rounds))
            }
        }
    }

    /// `5 seeds from 0`, `7 days from 2026-03-01 to 2026-03-07, each on an empty cluster`.
    fn counted(&self, rounds: &[Round]) -> String {
        let seeds = seeds(rounds);
        let units = units(rounds);
        let n_seeds = counted(seeds.len() as u64, spread::SEED);
        match units.as_slice() {
            [Some(first), .., Some(last)] => {
                let n = counted(units.len() as u64, self.samples.word());
                let each =
                    if seeds.len() > 1 { format!(" with the mean of {n_seeds}") } else { String::new() };
                format!("{n} from {first} to {last}, each on an empty cluster{each}")
            }
            _ => format!("{n_seeds} from {}", seeds.first().copied().unwrap_or_default()),
        }
    }

    /// The subject of the results: only the first round names it for seeds, and if there is only one.
    fn headlines(&self, rounds: &[Round]) -> String {
        let first = &rounds[0];
        if !self.samples.are_named() || rounds.len() == 1 {
            return first.headlines.clone();
        }
        // With each seed every flow comes again.
        let units = units(rounds);
        let flows = units.iter().filter_map(|unit| rounds.iter().find(|round| round.name == *unit));
        let flows = flows.map(|round| round.flows).sum::<u64>();
        let (title, flows) = (self.samples.title(), counted(flows, "flow"));
        format!("{title}: {flows} on {}\n", first.cluster)
    }

    /// The options of a round, with how the workload was cut.
    fn options(&self, round: &Round) -> RecordedOptions {
        let mut options = round.options.clone();
        options.extend(self.samples.every.map(|every| ("each".to_owned(), every.to_string().into())));
        options
    }

    fn about(&self, rounds: &[Round]) -> ComparisonSubject {
        let first = &rounds[0];
        let mut options = self.options(first);
        let seeds = seeds(rounds);
        // A workload that was drawn records its seed, but here there may be several.
        options.retain(|name, _| name != "seed" || seeds.len() == 1);
        let units = units(rounds);
        ComparisonSubject {
            sha256: self.samples.sha256(),
            options,
            seeds,
            lower_bounds: match units.as_slice() {
                [None] => rounds.iter().map(|round| round.bound).collect(),
                units => units.iter().map(|unit| mean_bound(rounds, unit.as_deref())).collect(),
            },
            samples: units.into_iter().flatten().collect(),
            objective: first.objective,
            sampling: self.sampling(rounds),
            is_weighted: first.is_weighted,
            not_modelled: first.not_modelled.clone(),
        }
    }

    /// The samples of each policy, with ranks where there are several. Each file or piece is one, with the means of
    /// its seeds; otherwise each seed is one.
    fn by_policy(&self, rounds: &[Round]) -> Vec<spread::Runs> {
        let mut all = by_policy(self.policies, rounds);
        if rounds.len() > 1 && all.len() > 1 {
            spread::rank(&mut all);
        }
        let units = units(rounds);
        if units.iter().all(Option::is_some) {
            for figures in all.iter_mut().filter_map(|runs| runs.result.as_mut().ok()) {
                let of_unit = |unit: &Option<String>| {
                    let of = rounds.iter().zip(figures.iter()).filter(|(round, _)| round.name == *unit);
                    Figures::mean_of(&of.map(|(_, figures)| figures).collect::<Vec<_>>())
                };
                *figures = units.iter().map(of_unit).collect();
            }
        }
        all
    }
}

/// The files or pieces, each once; `None` for a single one.
fn units(rounds: &[Round]) -> Vec<Option<String>> {
    let mut units: Vec<Option<String>> = Vec::new();
    for round in rounds {
        if !units.contains(&round.name) {
            units.push(round.name.clone());
        }
    }
    units
}

/// The seeds, each once.
fn seeds(rounds: &[Round]) -> Vec<u64> {
    let mut seeds: Vec<u64> = Vec::new();
    for round in rounds {
        if !seeds.contains(&round.seed) {
            seeds.push(round.seed);
        }
    }
    seeds
}

/// The mean of the bounds of a file or piece over its seeds.
fn mean_bound(rounds: &[Round], unit: Option<&str>) -> Option<f64> {
    let bounds = rounds.iter().filter(|round| round.name.as_deref() == unit).map(|round| round.bound);
    let bounds: Vec<f64> = bounds.collect::<Option<_>>()?;
    Some(bounds.iter().sum::<f64>() / bounds.len() as f64)
}

/// Whether there are enough seeds for the chances of flows.
fn is_enough(flows: &[FlowSeeds]) -> bool {
    flows.first().is_some_and(|flow| flow.completions.len() >= flow_chances::ENOUGH)
}

/// The rows of the first sample on each cluster.
fn of_sizes(sizes: &[Vec<Round>]) -> Vec<OnSize<Row>> {
    let rows =
        |rounds: &Vec<Round>| OnSize { machines: rounds[0].machines, policies: rounds[0].rows.clone() };
    sizes.iter().map(rows).collect()
}
