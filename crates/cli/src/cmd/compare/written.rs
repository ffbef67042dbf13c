//! What `compare` writes: a table, CSV or a document, of one cluster or of several sizes of it.

use slackline::PolicySpec;
use slackline::import::Loaded;
use slackline::report::comparison::{About, OnSize};
use slackline::report::number::counted;
use slackline::report::page::Page;
use slackline::report::table::fitted;
use slackline::report::{Figures, Row, View, comparison, headline, spread};

use super::{Compare, Round};
use crate::args::output::Form;
use crate::args::report::about;
use crate::out;

/// How results are written.
pub(super) struct Written<'a> {
    pub(super) args: &'a Compare,
    pub(super) view: &'a View,
    pub(super) policies: &'a [PolicySpec],
    pub(super) seeds: &'a [u64],
    /// Why the figures may mislead, which the page says too.
    pub(super) warning: Option<String>,
}

impl Written<'_> {
    /// Writes what all seeds gave on one cluster.
    pub(super) fn write(&self, rounds: &[Round]) -> anyhow::Result<()> {
        let (args, view) = (self.args, self.view);
        let form = args.output.form();
        let head = format!("{}{}", rounds[0].headlines, self.remarks(rounds));
        let body = match (form, rounds) {
            (Form::Table, [only]) => match args.by {
                Some(by) => comparison::table_by(by, &only.rows, view),
                None => comparison::table(&only.rows, view),
            },
            (Form::Table, _) => match args.by {
                Some(by) => spread::table_by(by, &self.by_policy(rounds), view),
                None => spread::table(&self.by_policy(rounds), view),
            },
            (Form::Csv, [only]) => match args.by {
                Some(by) => comparison::csv_by(by, &only.rows),
                None => comparison::csv(&only.rows),
            },
            (Form::Csv, _) => match args.by {
                Some(by) => spread::csv_by(by, &self.by_policy(rounds)),
                None => spread::csv(&self.by_policy(rounds)),
            },
            (Form::Json, _) => comparison::json(&self.about(rounds), &self.by_policy(rounds)),
        };
        if form != Form::Table {
            let crowding = spread::crowding(&self.by_policy(rounds));
            crowding.lines().for_each(out::talk);
        }
        self.put(&head, &body)
    }

    /// Writes what all seeds gave on clusters of several sizes, as a table or CSV.
    pub(super) fn write_sizes(&self, sizes: &[Vec<Round>]) -> anyhow::Result<()> {
        let heads = sizes.iter().map(|rounds| rounds[0].headlines.trim_end_matches(&objective(rounds)));
        let head = heads.collect::<String>() + &objective(&sizes[0]) + &self.remarks(&sizes[0]);
        let is_table = self.args.output.form() == Form::Table;
        let body = if self.seeds.len() == 1 {
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
                comparison::spreads_of_sizes(&sizes, self.view)
            } else {
                comparison::csv_of_spreads(&sizes)
            }
        };
        self.put(&head, &body)
    }

    /// Writes the page of `--report`: the first seed on the first cluster is drawn, whose workload this is.
    pub(super) fn write_page(
        &self,
        loaded: &Loaded,
        name: &str,
        sizes: &mut [Vec<Round>],
    ) -> anyhow::Result<()> {
        let drawn = std::mem::take(&mut sizes[0][0].drawn);
        let first = &sizes[0][0];
        let about = about(name, "compare", self.seeds.to_vec(), first.options.clone(), first.sha256.clone());
        let mut page = Page::new(&loaded.instance, about);
        for (row, drawn) in first.rows.iter().zip(drawn) {
            page = page.with_policy(row.clone(), drawn);
        }
        if let Some(warning) = &self.warning {
            page = page.with_warning(warning);
        }
        if self.seeds.len() > 1 {
            page = page.with_seeds(&self.by_policy(&sizes[0]));
        }
        if sizes.len() > 1 {
            page = page.with_sizes(&of_sizes(sizes));
        }
        self.args.report.write(&page)
    }

    fn put(&self, head: &str, body: &str) -> anyhow::Result<()> {
        let file = self.args.output.file();
        if self.args.output.form() == Form::Table {
            let head = fitted(head, self.view.width);
            return out::text(file, &format!("{head}\n{body}"));
        }
        out::talk(head);
        out::text(file, body)
    }

    /// What is to be known of the figures: how they are made, and what the bound is of.
    fn remarks(&self, rounds: &[Round]) -> String {
        const TIMES: &str = "times are seconds unless they show units";
        // A bound holds for the durations of the workload, not for distorted ones.
        let no_bound = self.args.simulation.options().distorts().then_some(
            "no lower bound and no gaps, because --jitter makes durations others than the workload's",
        );
        let is_swept = self.args.shape.sizes().len() > 1;
        match (rounds, no_bound) {
            ([_], None) if is_swept => TIMES.to_owned(),
            ([only], None) => format!("{}; {TIMES}", headline::bound(only.bound)),
            ([_], Some(why)) => format!("{why}; {TIMES}"),
            (_, why) => {
                let (n, from) = (counted(self.seeds.len() as u64, "seed"), self.seeds[0]);
                let why = why.map_or_else(String::new, |why| format!("; {why}"));
                format!("{n} from {from}: means ± half their 95 % interval; {TIMES}{why}")
            }
        }
    }

    /// What all rounds are about.
    fn about(&self, rounds: &[Round]) -> About {
        let first = &rounds[0];
        let mut options = first.options.clone();
        // A workload that was drawn records its seed, but here there are several.
        options.retain(|name, _| name != "seed" || rounds.len() == 1);
        About {
            sha256: first.sha256.clone(),
            options,
            seeds: self.seeds.to_vec(),
            lower_bounds: rounds.iter().map(|round| round.bound).collect(),
            objective: first.objective,
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

/// The rows of the first seed on each cluster.
fn of_sizes(sizes: &[Vec<Round>]) -> Vec<OnSize<Row>> {
    let rows =
        |rounds: &Vec<Round>| OnSize { machines: rounds[0].machines, policies: rounds[0].rows.clone() };
    sizes.iter().map(rows).collect()
}

/// `sum of response, `: the end of the headlines.
fn objective(rounds: &[Round]) -> String {
    format!("{}, ", headline::objective(rounds[0].objective))
}
