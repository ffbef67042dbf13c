//! Writes the results of `compare`: a table, CSV or a document, for one cluster or several sizes of it.

use slackline::PolicySpec;
use slackline::import::{Loaded, RecordedOptions};
use slackline::report::comparison::{ComparisonSubject, OnSize};
use slackline::report::number::counted;
use slackline::report::page::Page;
use slackline::report::{Figures, Row, View, comparison, headline, spread};

use super::flags::Compare;
use super::round::Round;
use super::samples::Samples;
use crate::args::output::Form;
use crate::args::report::about;
use crate::terminal::out;

pub(super) struct ResultWriter<'a> {
    pub(super) args: &'a Compare,
    pub(super) view: &'a View,
    pub(super) policies: &'a [PolicySpec],
    pub(super) samples: &'a Samples<'a>,
    /// Why the figures may mislead; the page has this warning too.
    pub(super) warning: Option<String>,
}

impl ResultWriter<'_> {
    /// Writes what all samples gave on one cluster.
    pub(super) fn write(&self, rounds: &[Round]) -> anyhow::Result<()> {
        let (args, view) = (self.args, self.view);
        let form = args.output.form();
        let head = self.headlines(rounds) + &self.remarks(rounds);
        let sample = self.samples.word();
        let body = match (form, rounds) {
            (Form::Table, [only]) => match args.by {
                Some(by) => comparison::table_by(by, &only.rows, view),
                None => comparison::table(&only.rows, view),
            },
            (Form::Table, _) => match args.by {
                Some(by) => spread::table_by(by, &self.by_policy(rounds), sample, view),
                None => spread::table(&self.by_policy(rounds), sample, view),
            },
            (Form::Csv, [only]) => match args.by {
                Some(by) => comparison::csv_by(by, &only.rows),
                None => comparison::csv(&only.rows),
            },
            (Form::Csv, _) => match args.by {
                Some(by) => spread::csv_by(by, &self.by_policy(rounds), sample),
                None => spread::csv(&self.by_policy(rounds), sample),
            },
            (Form::Json, _) => comparison::json(&self.about(rounds), &self.by_policy(rounds)),
        };
        if form != Form::Table {
            let crowding = spread::crowding(&self.by_policy(rounds));
            crowding.lines().for_each(out::talk);
        }
        self.args.output.write(&head, &body, self.view)
    }

    /// Writes what all samples gave on clusters of several sizes, as a table or CSV.
    pub(super) fn write_sizes(&self, sizes: &[Vec<Round>]) -> anyhow::Result<()> {
        let heads = sizes.iter().map(|rounds| self.headlines(rounds));
        let head = heads.collect::<String>() + &self.remarks(&sizes[0]);
        let sample = self.samples.word();
        let is_table = self.args.output.form() == Form::Table;
        let body = if sizes[0].len() == 1 {
            let sizes = of_sizes(sizes);
            if is_table {
                comparison::table_of_sizes(&sizes, self.view)
            } else {
                comparison::csv_of_sizes(&sizes)
            }
        } else {
            let runs = |rounds: &Vec<Round>| OnSize {
                machines: rounds[0].machines,
                policies: self.by_policy(rounds),
            };
            let sizes: Vec<_> = sizes.iter().map(runs).collect();
            if is_table {
                comparison::spreads_of_sizes(&sizes, sample, self.view)
            } else {
                comparison::csv_of_spreads(&sizes, sample)
            }
        };
        self.args.output.write(&head, &body, self.view)
    }

    /// Writes the page of `--report`. It shows the first sample on the first cluster, which has this
    /// workload.
    pub(super) fn write_page(&self, loaded: &Loaded, sizes: &mut [Vec<Round>]) -> anyhow::Result<()> {
        let drawn = std::mem::take(&mut sizes[0][0].drawn);
        let first = &sizes[0][0];
        let name = self.samples.title();
        let about =
            about(&name, "compare", self.samples.seeds.to_vec(), self.options(first), self.samples.sha256());
        let mut page = Page::new(&loaded.instance, about);
        for (row, drawn) in first.rows.iter().zip(drawn) {
            page = page.with_policy(row.clone(), drawn);
        }
        if let Some(warning) = &self.warning {
            page = page.with_warning(warning);
        }
        if sizes[0].len() > 1 {
            page = page.with_samples(&self.by_policy(&sizes[0]), self.samples.word(), first.name.as_deref());
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
        match (rounds, no_bound) {
            ([_], None) if is_swept => format!("cost: {objective}; {TIMES}"),
            ([only], None) => format!("cost: {objective}; {}; {TIMES}", headline::bound(only.bound)),
            ([_], Some(why)) => format!("cost: {objective}; {why}; {TIMES}"),
            (_, why) => {
                let why = why.map_or_else(String::new, |why| format!("; {why}"));
                format!(
                    "cost: {objective}; {}: means ± half their 95 % interval; {TIMES}{why}",
                    self.counted(rounds)
                )
            }
        }
    }

    /// `5 seeds from 0`, `7 days from 2026-03-01 to 2026-03-07, each on an empty cluster`.
    fn counted(&self, rounds: &[Round]) -> String {
        let n = counted(rounds.len() as u64, self.samples.word());
        let name = |round: Option<&Round>| round.and_then(|round| round.name.clone());
        match (name(rounds.first()), name(rounds.last())) {
            (Some(first), Some(last)) => format!("{n} from {first} to {last}, each on an empty cluster"),
            _ => format!("{n} from {}", self.samples.seeds[0]),
        }
    }

    /// The subject of the results: only the first round names it for seeds, and if there is only one.
    fn headlines(&self, rounds: &[Round]) -> String {
        let first = &rounds[0];
        if !self.samples.are_named() || rounds.len() == 1 {
            return first.headlines.clone();
        }
        // With each seed every flow comes again.
        let flows = rounds.iter().map(|round| round.flows).sum::<u64>() / self.samples.seeds.len() as u64;
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
        // A workload that was drawn records its seed, but here there may be several.
        options.retain(|name, _| name != "seed" || self.samples.seeds.len() == 1);
        ComparisonSubject {
            sha256: self.samples.sha256(),
            options,
            seeds: self.samples.seeds.to_vec(),
            samples: rounds.iter().filter_map(|round| round.name.clone()).collect(),
            lower_bounds: rounds.iter().map(|round| round.bound).collect(),
            objective: first.objective,
            is_weighted: first.is_weighted,
            not_modelled: first.not_modelled.clone(),
        }
    }

    /// The rounds of each policy, with ranks where there are several.
    fn by_policy(&self, rounds: &[Round]) -> Vec<spread::Runs> {
        let runs = |(k, policy): (usize, &PolicySpec)| {
            let results = rounds.iter().map(|round| round.rows[k].result.clone());
            let result: Result<Vec<Figures>, String> = results.collect();
            spread::Runs { policy: policy.spec().to_owned(), result }
        };
        let mut all: Vec<_> = self.policies.iter().enumerate().map(runs).collect();
        if rounds.len() > 1 && all.len() > 1 {
            spread::rank(&mut all);
        }
        all
    }
}

/// The rows of the first sample on each cluster.
fn of_sizes(sizes: &[Vec<Round>]) -> Vec<OnSize<Row>> {
    let rows =
        |rounds: &Vec<Round>| OnSize { machines: rounds[0].machines, policies: rounds[0].rows.clone() };
    sizes.iter().map(rows).collect()
}
