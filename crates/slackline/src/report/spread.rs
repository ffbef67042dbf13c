//! Compares policies over several samples: seeds, files, or pieces of a workload such as its days. Shows
//! means with 95 % confidence intervals, and differences to the first policy sample by sample. Paired
//! differences are more precise, because both policies get the same random draws.

use crate::report::comparison::{self, FLOWS, Figures, Spec};
use crate::report::names;
use crate::report::number::{NOTHING, Unit, column, exact};
use crate::report::table::{Best, Column, Table, View};

/// The word for one sample: `seed`, `day`, `file`.
pub const SEED: &str = "seed";

/// The results of one policy, sample by sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The policy with its parameters.
    pub policy: String,
    /// Its figures for every sample, or the reason why there are none.
    pub result: Result<Vec<Figures>, String>,
}

/// The mean and the spread of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample; 0 for a single number.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); 0 for a single number.
    pub ci95: f64,
}

impl Spread {
    /// The mean and the spread; `None` for no numbers.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.is_empty() {
            return None;
        }
        if values.len() == 1 || values.iter().all(|v| *v == values[0]) {
            return Some(Self { mean: values[0], sd: 0.0, ci95: 0.0 });
        }
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
        let sd = variance.sqrt();
        Some(Self { mean, sd, ci95: student_975(values.len() - 1) * sd / n.sqrt() })
    }
}

/// The 97.5th percentile of Student's t. Between two listed degrees of freedom the lower one counts, which
/// makes intervals wider.
fn student_975(freedom: usize) -> f64 {
    const FEW: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => FEW[freedom - 1],
        31..=39 => FEW[29],
        40..=59 => 2.021,
        60..=119 => 2.000,
        _ => 1.980,
    }
}

impl Spread {
    /// The spread of a number over the samples that have it.
    pub(crate) fn over(runs: &[Figures], get: &dyn Fn(&Figures) -> Option<f64>) -> Option<Self> {
        Self::of(&runs.iter().filter_map(get).collect::<Vec<_>>())
    }

    /// The spread of the differences to `first`, over the samples that both have.
    pub(crate) fn of_differences(
        runs: &[Figures],
        first: &[Figures],
        get: &dyn Fn(&Figures) -> Option<f64>,
    ) -> Option<Self> {
        let pairs = runs.iter().zip(first).filter_map(|(a, b)| Some(get(a)? - get(b)?));
        Self::of(&pairs.collect::<Vec<_>>())
    }
}

/// Two tables: means ± half the 95 % confidence interval with the best means marked, and the paired
/// differences to the first policy. `sample` is the word for one sample.
pub fn table(all: &[Runs], sample: &str, view: &View) -> String {
    let mut out = means(all).render(view);
    let names = names::shown(all.iter().map(|runs| runs.policy.as_str()));
    let mut named = all.iter().zip(&names);
    let first = named.find_map(|(runs, name)| Some((&runs.policy, name, runs.result.as_deref().ok()?)));
    if let Some((policy, name, base)) = first
        && all.len() > 1
    {
        let others: Vec<&Runs> = all.iter().filter(|runs| &runs.policy != policy).collect();
        let to_first = |runs: &[Figures], spec: &Spec| {
            Spread::of_differences(runs, base, &|figures| spec.value(figures))
        };
        // The difference of two gaps is no upper limit, so it is rounded to the nearest value.
        let unit = |spec: &Spec| if spec.unit == Unit::Gap { Unit::Percent } else { spec.unit };
        out.extend(["\ndifference to ", name, ", ", sample, " by ", sample, "\n"]);
        out += &columns(&others, to_first, |spec| (unit(spec), None)).render(view);
    }
    out + &notes(all, sample)
}

/// The means with their intervals, one row per policy.
pub(crate) fn means(all: &[Runs]) -> Table {
    let rows: Vec<&Runs> = all.iter().collect();
    let own = |runs: &[Figures], spec: &Spec| Spread::over(runs, &|figures| spec.value(figures));
    columns(&rows, own, |spec| (spec.unit, spec.best()))
}

/// The reasons of policies without a row, the numbers of failures, and crowding by ApplicationMasters.
fn notes(all: &[Runs], sample: &str) -> String {
    let note = |(runs, name): (&Runs, &String)| match &runs.result {
        Err(reason) => Some(format!("{name}: {reason}\n")),
        Ok(figures) => {
            let failed = figures.iter().filter(|f| f.failed > 0).count();
            (failed > 0)
                .then(|| format!("{name}: flows failed with {failed} of {} {sample}s\n", figures.len()))
        }
    };
    let names = names::shown(all.iter().map(|runs| runs.policy.as_str()));
    let notes: String = all.iter().zip(&names).filter_map(note).collect();
    notes + &crowding(all)
}

/// The policies under which ApplicationMasters held most slots, on average.
pub fn crowding(all: &[Runs]) -> String {
    let names = names::shown(all.iter().map(|runs| runs.policy.as_str()));
    let ran = all.iter().zip(names).filter_map(|(runs, name)| Some((name, runs.result.clone().ok()?)));
    comparison::crowding_of(ran)
}

/// The runs of each policy for each group, with the mean number of flows in the group. `by` selects the
/// groups. If seeds differ in their groups, all groups are shown, and the figures are over the seeds that
/// have the group.
fn by_group(by: &str, all: &[Runs]) -> Vec<(String, f64, Runs)> {
    let mut rows = Vec::new();
    for runs in all {
        let figures = runs.result.as_deref().unwrap_or_default();
        let groups = || figures.iter().flat_map(|figures| &figures.groups).filter(|group| group.by == by);
        let mut names: Vec<&str> = Vec::new();
        for group in groups() {
            if !names.contains(&group.name.as_str()) {
                names.push(&group.name);
            }
        }
        for name in names {
            let of = || groups().filter(|group| group.name == name);
            let figures: Vec<Figures> =
                of().map(|group| Figures { metrics: group.metrics.clone(), ..Figures::default() }).collect();
            let flows = of().map(|group| group.flows as f64).sum::<f64>() / figures.len() as f64;
            rows.push((name.to_owned(), flows, Runs { policy: runs.policy.clone(), result: Ok(figures) }));
        }
    }
    rows
}

/// A row for each policy and group: means ± half the 95 % confidence interval. `by` selects the groups:
/// pools, users or size classes.
pub fn table_by(by: &'static str, all: &[Runs], sample: &str, view: &View) -> String {
    let groups = by_group(by, all);
    let rows: Vec<&Runs> = groups.iter().map(|(_, _, runs)| runs).collect();
    let own = |runs: &[Figures], spec: &Spec| Spread::over(runs, &|figures| spec.value(figures));
    let mut columns = columns(&rows, own, |spec| (spec.unit, None)).into_columns();
    let flows: Vec<Option<f64>> = groups.iter().map(|&(_, flows, _)| Some(flows)).collect();
    let unit =
        if flows.iter().flatten().all(|flows| flows.fract() == 0.0) { Unit::Count } else { Unit::Measure };
    let name = Column::words(by, groups.iter().map(|(name, _, _)| name.clone())).key();
    columns.splice(1..1, [name, Column::numbers(FLOWS, &flows, unit)]);
    Table::of(columns).render(view) + &notes(all, sample)
}

/// One row per policy, group and metric: flows, samples, mean, standard deviation and half the 95 %
/// confidence interval.
pub fn csv_by(by: &'static str, all: &[Runs], sample: &str) -> String {
    let samples = format!("{sample}s");
    let header = ["policy", by, FLOWS, "metric", &samples, "mean", "sd", "ci95"];
    let groups = by_group(by, all);
    let records = groups.iter().flat_map(|(group, flows, runs)| {
        let figures = runs.result.as_deref().unwrap_or_default();
        let metrics = figures.first().into_iter().flat_map(|figures| &figures.metrics);
        metrics.map(move |&(metric, _)| {
            let own = Spread::over(figures, &|figures| figures.metric(metric));
            let words = [runs.policy.clone(), group.clone(), flows.to_string(), metric.to_owned()];
            let numbers = [own.map(|s| s.mean), own.map(|s| s.sd), own.map(|s| s.ci95)].map(exact);
            words.into_iter().chain([figures.len().to_string()]).chain(numbers).collect::<Vec<_>>()
        })
    });
    crate::report::csv(&header, records)
}

fn columns(
    rows: &[&Runs],
    get: impl Fn(&[Figures], &Spec) -> Option<Spread>,
    how: impl Fn(&Spec) -> (Unit, Option<Best>),
) -> Table {
    let figures: Vec<&Figures> = rows.iter().filter_map(|runs| runs.result.as_ref().ok()).flatten().collect();
    let of = |spec: &Spec| {
        let spreads = rows.iter().map(|runs| runs.result.as_deref().ok().and_then(|runs| get(runs, spec)));
        let spreads: Vec<Option<Spread>> = spreads.collect();
        let (unit, best) = how(spec);
        let means: Vec<Option<f64>> = spreads.iter().map(|spread| Some((*spread)?.mean)).collect();
        spec.column(&means, plus_minus(&spreads, unit), &figures).best(best)
    };
    let names = names::shown(rows.iter().map(|runs| runs.policy.as_str()));
    let names = Column::words("policy", names).key();
    Table::of(std::iter::once(names).chain(comparison::specs().iter().map(of)).collect())
}

/// `12.5 ± 0.4`, `15.6 ± 1.2 %`, with the same number of decimals in a column. Means of counts have decimals.
fn plus_minus(spreads: &[Option<Spread>], unit: Unit) -> Vec<String> {
    let (of_mean, of_half) = match unit {
        Unit::Count | Unit::Measure => (Unit::Measure, Unit::Measure),
        Unit::Seconds => (unit, unit),
        Unit::Percent | Unit::Gap => (unit, Unit::Percent),
    };
    let means = spreads.iter().map(|spread| Some((*spread)?.mean));
    let halves = spreads.iter().map(|spread| Some((*spread)?.ci95));
    // Formatted together, so that the largest number determines the decimals.
    let both: Vec<Option<f64>> = means.chain(halves).collect();
    let (means, halves) = (column(&both, of_mean), column(&both, of_half));
    let halves = &halves[spreads.len()..];
    let wide = halves.iter().map(|half| half.chars().count()).max().unwrap_or(0);
    let text = |k: usize| match spreads[k] {
        None => NOTHING.to_owned(),
        Some(_) => {
            format!("{} ± {:>wide$}", means[k].strip_suffix(" %").unwrap_or(&means[k]), halves[k])
        }
    };
    (0..spreads.len()).map(text).collect()
}

/// The names of all metrics, in order.
fn names(all: &[Runs]) -> Vec<&'static str> {
    let mut names = vec!["cost", "lower_bound", "gap"];
    for (name, _) in all.iter().filter_map(|r| r.result.as_ref().ok()).flatten().flat_map(|f| &f.metrics) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names.push("failed");
    names
}

/// Adds the metric `rank`: the rank of each policy by cost for each seed. The lowest cost has rank 1, and
/// equal costs share the mean of their ranks. Refused policies and seeds with failed flows have no rank.
/// O(policies² · seeds).
pub fn rank(all: &mut [Runs]) {
    let cost_of = |runs: &Runs, seed: usize| runs.result.as_ref().ok()?.get(seed)?.cost;
    let seeds = all.iter().filter_map(|runs| Some(runs.result.as_ref().ok()?.len())).max().unwrap_or(0);
    for seed in 0..seeds {
        let costs: Vec<Option<f64>> = all.iter().map(|runs| cost_of(runs, seed)).collect();
        for (runs, own) in all.iter_mut().zip(&costs) {
            let rank = own.map(|own| {
                let less = costs.iter().flatten().filter(|&&cost| cost < own).count();
                let equal = costs.iter().flatten().filter(|&&cost| cost == own).count();
                f64::midpoint((less + 1) as f64, (less + equal) as f64)
            });
            if let Ok(figures) = &mut runs.result {
                figures[seed].metrics.push(("rank", rank));
            }
        }
    }
}

/// The columns of [`csv`].
pub(crate) const HEADER: [&str; 9] =
    ["policy", "metric", SAMPLES, "mean", "sd", "ci95", "difference", "difference_ci95", "refused"];

/// A placeholder for the column with the number of samples. Its real name contains the word for a sample.
const SAMPLES: &str = "samples";

/// The columns of [`csv`] for this word for a sample.
pub(crate) fn header(sample: &str) -> [String; 9] {
    HEADER.map(|name| if name == SAMPLES { format!("{sample}s") } else { name.to_owned() })
}

/// One row per policy and metric: samples, mean, standard deviation, half the 95 % confidence interval, and
/// the mean and half the interval of the difference to the first policy.
pub fn csv(all: &[Runs], sample: &str) -> String {
    let header = header(sample);
    crate::report::csv(&header.each_ref().map(String::as_str), records(all))
}

/// The records of [`csv`].
pub(crate) fn records(all: &[Runs]) -> Vec<Vec<String>> {
    let base = all.iter().find_map(|runs| runs.result.as_deref().ok()).unwrap_or_default();
    let mut rows = Vec::new();
    for runs in all {
        match &runs.result {
            Err(reason) => {
                let mut cells = vec![runs.policy.clone()];
                cells.resize(HEADER.len() - 1, String::new());
                cells.push(reason.clone());
                rows.push(cells);
            }
            Ok(figures) => {
                for name in names(all) {
                    let get = |figures: &Figures| figures.value(name);
                    let own = Spread::over(figures, &get);
                    let to = Spread::of_differences(figures, base, &get);
                    let numbers = [own.map(|s| s.mean), own.map(|s| s.sd), own.map(|s| s.ci95)];
                    let differences = [to.map(|s| s.mean), to.map(|s| s.ci95)];
                    let mut cells = vec![runs.policy.clone(), name.to_owned(), figures.len().to_string()];
                    cells.extend(numbers.into_iter().chain(differences).map(exact));
                    cells.push(String::new());
                    rows.push(cells);
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_known_numbers() {
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(spread.mean, 5.0);
        assert!((spread.sd - 2.138_089_935_299_395).abs() < 1e-12);
        assert!((spread.ci95 - 2.365 * spread.sd / 8f64.sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[0.1; 3]).unwrap(), Spread { mean: 0.1, sd: 0.0, ci95: 0.0 });
    }

    #[test]
    fn means_and_intervals_of_a_column_have_the_same_digits() {
        let spread = |mean, ci95| Some(Spread { mean, sd: 0.0, ci95 });
        let found = plus_minus(&[spread(2_529.0, 128.25), None, spread(7.5, 0.0)], Unit::Count);
        assert_eq!(found, ["2,529 ± 128", NOTHING, "8 ±   0"]);
        assert_eq!(plus_minus(&[spread(0.1551, 0.012)], Unit::Gap), ["15.6 ± 1.2 %"]);
    }

    #[test]
    fn ranks_are_by_cost_seed_by_seed() {
        let runs = |policy: &str, costs: [Option<f64>; 3]| Runs {
            policy: policy.into(),
            result: Ok(costs.map(|cost| Figures { cost, ..Figures::default() }).to_vec()),
        };
        let refused = Runs { policy: "dmrs".into(), result: Err("map and reduce slots".into()) };
        let mut all = [
            runs("fifo", [Some(3.0), Some(5.0), None]),
            refused,
            runs("edf", [Some(2.0), Some(5.0), Some(1.0)]),
            runs("fair", [Some(9.0), Some(6.0), Some(7.0)]),
        ];
        rank(&mut all);
        let ranks = |k: usize| -> Vec<Option<f64>> {
            all[k].result.as_ref().unwrap().iter().map(|figures| figures.metric("rank")).collect()
        };
        assert_eq!(ranks(0), [Some(2.0), Some(1.5), None]);
        assert_eq!(ranks(2), [Some(1.0), Some(1.5), Some(1.0)]);
        assert_eq!(ranks(3), [Some(3.0), Some(3.0), Some(2.0)]);
        let mean = Spread::over(all[3].result.as_ref().unwrap(), &|figures| figures.metric("rank")).unwrap();
        assert!((mean.mean - 8.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn paired_differences_cancel_what_both_met() {
        let runs = |costs: [f64; 3]| costs.map(|c| Figures { cost: Some(c), ..Figures::default() }).to_vec();
        let (own, first) = (runs([11.0, 101.0, 6.0]), runs([10.0, 100.0, 5.0]));
        let difference = Spread::of_differences(&own, &first, &|figures| figures.cost).unwrap();
        assert_eq!((difference.mean, difference.ci95), (1.0, 0.0));
    }
}
