//! Compares policies over several samples: seeds, files, or pieces of a workload such as its days. Shows
//! means with 95 % confidence intervals, and differences to the first policy sample by sample. Paired
//! differences are more precise, because both policies get the same random draws. With several files or pieces
//! each is one sample, with the means over its seeds, so nothing is counted as independent that is not.

use crate::report::comparison::{self, FLOWS, Figures, Spec, distances};
use crate::report::names;
use crate::report::number::{NOTHING, Unit, column, exact};
pub use crate::report::samples::{Runs, SEED, SEEDS_MOST, SEEDS_STEP, is_enough, legend};
use crate::report::significance::{self, Sampling, Verdict};
use crate::report::table::{Column, Table, View, fitted};
pub use crate::statistics::{Interval, Spread};

/// Two tables: means ± half the 95 % confidence interval with the best means marked, and the paired
/// differences to the first policy; then what they say in words.
pub fn table(all: &[Runs], sampling: Sampling, view: &View) -> String {
    let sample = sampling.word;
    let mut out = means(all).render(view);
    let names = names::shown(all.iter().map(|runs| runs.policy.as_str()));
    let mut named = all.iter().zip(&names);
    let first = named.find_map(|(runs, name)| Some((runs, name, runs.result.as_deref().ok()?)));
    if let Some((policy, name, base)) = first
        && all.len() > 1
    {
        let others: Vec<&Runs> = all.iter().filter(|runs| runs.policy != policy.policy).collect();
        out.extend(["\ndifference to ", name, ", ", sample, " by ", sample, "\n"]);
        let differences = differences(&others, base, &all.iter().collect::<Vec<_>>()).render(view);
        out += &differences;
        if differences.contains(SMALL) {
            out += "~ less than the simulation error in this metric (own scheduler against recorded)\n";
        }
    }
    let verdict = Verdict::of(all, sampling);
    let verdict = verdict.map_or_else(String::new, |verdict| format!("\n{}\n", verdict.sentence()));
    out + &fitted(&(notes(all, sample) + &distances(all) + &verdict), view.width)
}

/// The mark of differences that are less than the error of the simulation.
const SMALL: char = '~';

/// The paired differences to the first policy; those that are less than the error of the simulation are marked.
fn differences(others: &[&Runs], base: &[Figures], all: &[&Runs]) -> Table {
    let to_first =
        |runs: &[Figures], spec: &Spec| Spread::of_differences(runs, base, &|figures| spec.value(figures));
    // The difference of two gaps is no upper limit, so it is rounded to the nearest value.
    let unit = |spec: &Spec| if spec.unit == Unit::Gap { Unit::Percent } else { spec.unit };
    let error = |spec: &Spec| significance::model_error(all, &|figures| spec.value(figures));
    let is_small = |spec: &Spec, spread: &Option<Spread>| {
        spread.zip(error(spec)).is_some_and(|(spread, error)| spread.mean.abs() < error)
    };
    let mut cells = |spec: &Spec, spreads: &[Option<Spread>]| {
        let texts = plus_minus(spreads, unit(spec)).into_iter().zip(spreads);
        let marked = |(text, spread): (String, &Option<Spread>)| {
            if is_small(spec, spread) { format!("{SMALL}{text}") } else { text }
        };
        texts.map(marked).collect()
    };
    columns(others, to_first, &mut cells, |_| Vec::new())
}

/// The means with their intervals, one row per policy.
pub fn means(all: &[Runs]) -> Table {
    let rows: Vec<&Runs> = all.iter().collect();
    let marks = |spec: &Spec| significance::best(&rows, &|figures| spec.value(figures), spec.best());
    columns(&rows, own, &mut |spec, spreads| plus_minus(spreads, spec.unit), marks)
}

fn own(runs: &[Figures], spec: &Spec) -> Option<Spread> {
    Spread::over(runs, &|figures| spec.value(figures))
}

/// The reasons of policies without a row, the numbers of failures, and crowding by ApplicationMasters.
fn notes(all: &[Runs], sample: &str) -> String {
    let note = |(runs, name): (&Runs, &String)| match &runs.result {
        Err(reason) => Some(format!("{name}: {reason}\n")),
        Ok(figures) => {
            let failed: Vec<&Figures> = figures.iter().filter(|f| f.failed > 0).collect();
            let reasons: Vec<&str> =
                failed.first()?.unfinished.iter().map(|flows| flows.reason.as_str()).collect();
            let reasons =
                if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
            Some(format!(
                "{name}: flows failed with {} of {} {sample}s and are left out of the metrics{reasons}\n",
                failed.len(),
                figures.len()
            ))
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
    let texts = &mut |spec: &Spec, spreads: &[Option<Spread>]| plus_minus(spreads, spec.unit);
    let mut columns = columns(&rows, own, texts, |_| Vec::new()).into_columns();
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
            let numbers =
                [own.map(|s| s.mean), own.map(|s| s.sd), own.and_then(|s| s.shown_half())].map(exact);
            words.into_iter().chain([figures.len().to_string()]).chain(numbers).collect::<Vec<_>>()
        })
    });
    crate::report::csv(&header, records)
}

/// The cells of a column.
type Texts<'a> = &'a mut dyn FnMut(&Spec, &[Option<Spread>]) -> Vec<String>;

fn columns(
    rows: &[&Runs],
    get: impl Fn(&[Figures], &Spec) -> Option<Spread>,
    texts: Texts<'_>,
    marks: impl Fn(&Spec) -> Vec<bool>,
) -> Table {
    let figures: Vec<&Figures> = rows.iter().filter_map(|runs| runs.result.as_ref().ok()).flatten().collect();
    let of = |spec: &Spec| {
        let spreads = rows.iter().map(|runs| runs.result.as_deref().ok().and_then(|runs| get(runs, spec)));
        let spreads: Vec<Option<Spread>> = spreads.collect();
        let means: Vec<Option<f64>> = spreads.iter().map(|spread| Some((*spread)?.mean)).collect();
        spec.column(&means, texts(spec, &spreads), &figures).marked(marks(spec))
    };
    let names = names::shown(rows.iter().map(|runs| runs.policy.as_str()));
    let names = Column::words("policy", names).key();
    Table::of(std::iter::once(names).chain(comparison::specs().iter().map(of)).collect())
}

/// `12.5 ± 0.4`, `15.6 ± 1.2 %`, `12.5 (11.0 to 13.1)`, with the same number of decimals in a column. Means of
/// counts have decimals. A value that is the same in all samples has no interval.
fn plus_minus(spreads: &[Option<Spread>], unit: Unit) -> Vec<String> {
    let is_constant = spreads.iter().flatten().all(|spread| spread.interval() == Interval::None);
    let (of_mean, of_half) = match unit {
        Unit::Count if is_constant => (unit, unit),
        Unit::Count | Unit::Measure => (Unit::Measure, Unit::Measure),
        Unit::Seconds => (unit, unit),
        Unit::Percent | Unit::Gap => (unit, Unit::Percent),
    };
    // Formatted together, so that the largest number determines the decimals.
    let mut numbers: Vec<Option<f64>> = spreads.iter().map(|spread| Some((*spread)?.mean)).collect();
    for spread in spreads {
        let (from, to) = match spread.map(|spread| spread.interval()) {
            Some(Interval::Half(half)) => (Some(half), None),
            Some(Interval::Range(least, most)) => (Some(least), Some(most)),
            Some(Interval::None) | None => (None, None),
        };
        numbers.extend([from, to]);
    }
    let (means, bands) = (column(&numbers, of_mean), column(&numbers, of_half));
    let bands = &bands[spreads.len()..];
    let bare = |text: &str| text.strip_suffix(" %").unwrap_or(text).to_owned();
    let is_half = |k: &usize| matches!(spreads[*k].map(|spread| spread.interval()), Some(Interval::Half(_)));
    let halves = (0..spreads.len()).filter(is_half).map(|k| bands[2 * k].chars().count());
    let wide = halves.max().unwrap_or(0);
    let band = |k: usize| {
        let [from, to] = [&bands[2 * k], &bands[2 * k + 1]];
        match spreads[k].map(|spread| spread.interval()) {
            Some(Interval::Half(_)) => format!("± {from:>wide$}"),
            Some(Interval::Range(..)) => format!("({} to {to})", bare(from)),
            Some(Interval::None) | None => String::new(),
        }
    };
    let all: Vec<String> = (0..spreads.len()).map(band).collect();
    let wide = all.iter().map(|band| band.chars().count()).max().unwrap_or(0);
    let text = |k: usize| match spreads[k] {
        None => NOTHING.to_owned(),
        Some(_) if wide == 0 => means[k].clone(),
        Some(_) if all[k].is_empty() => format!("{} {:wide$}", means[k], ""),
        Some(_) => format!("{} {:>wide$}", bare(&means[k]), all[k]),
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

/// Adds the metric `rank`: the rank of each policy for each sample. With deadlines, fewer missed deadlines are
/// better, then less tardiness in total; else a lower cost is. The best one has rank 1, and equal ones share the
/// mean of their ranks. Refused policies, samples with failed flows and the recorded run have no rank.
/// O(policies² · samples).
pub fn rank(all: &mut [Runs]) {
    let metrics = significance::ranked_by(&all.iter().collect::<Vec<_>>());
    let key_of = |runs: &Runs, sample: usize| -> Option<Vec<f64>> {
        let figures = runs.result.as_ref().ok()?.get(sample)?;
        figures.cost.filter(|_| runs.policy != crate::recorded::NAME)?;
        metrics.iter().map(|metric| figures.value(metric)).collect()
    };
    let samples = all.iter().filter_map(|runs| Some(runs.result.as_ref().ok()?.len())).max().unwrap_or(0);
    for sample in 0..samples {
        let keys: Vec<Option<Vec<f64>>> = all.iter().map(|runs| key_of(runs, sample)).collect();
        for (runs, own) in all.iter_mut().zip(&keys) {
            let rank = own.as_ref().map(|own| {
                let less = keys.iter().flatten().filter(|&key| key < own).count();
                let equal = keys.iter().flatten().filter(|&key| key == own).count();
                f64::midpoint((less + 1) as f64, (less + equal) as f64)
            });
            if let Ok(figures) = &mut runs.result {
                figures[sample].metrics.push(("rank", rank));
            }
        }
    }
}

/// The columns of [`csv`].
pub(crate) const HEADER: [&str; 12] = [
    "policy",
    "metric",
    SAMPLES,
    "mean",
    "sd",
    "ci95",
    "least",
    "most",
    "difference",
    "difference_ci95",
    "best",
    "refused",
];

/// A placeholder for the column with the number of samples. Its real name contains the word for a sample.
const SAMPLES: &str = "samples";

/// The columns of [`csv`] for this word for a sample.
pub(crate) fn header(sample: &str) -> [String; 12] {
    HEADER.map(|name| if name == SAMPLES { format!("{sample}s") } else { name.to_owned() })
}

/// One row per policy and metric: samples, mean, standard deviation, half the 95 % confidence interval (from five
/// values that differ on), the least and the largest, the difference to the first policy with half its interval,
/// and whether the policy cannot be distinguished from the best one.
pub fn csv(all: &[Runs], sample: &str) -> String {
    let header = header(sample);
    crate::report::csv(&header.each_ref().map(String::as_str), records(all))
}

/// The records of [`csv`].
pub(crate) fn records(all: &[Runs]) -> Vec<Vec<String>> {
    let base = all.iter().find_map(|runs| runs.result.as_deref().ok()).unwrap_or_default();
    let every: Vec<&Runs> = all.iter().collect();
    let names = names(all);
    let direction = |name: &str| comparison::specs().iter().find(|spec| spec.name == name)?.best();
    let marks: Vec<Vec<bool>> = names
        .iter()
        .map(|name| significance::best(&every, &|figures| figures.value(name), direction(name)))
        .collect();
    let mut rows = Vec::new();
    for (k, runs) in all.iter().enumerate() {
        match &runs.result {
            Err(reason) => {
                let mut cells = vec![runs.policy.clone()];
                cells.resize(HEADER.len() - 1, String::new());
                cells.push(reason.clone());
                rows.push(cells);
            }
            Ok(figures) => {
                for (name, marks) in names.iter().zip(&marks) {
                    let get = |figures: &Figures| figures.value(name);
                    let own = Spread::over(figures, &get);
                    let to = Spread::of_differences(figures, base, &get);
                    let numbers = [own.map(|s| s.mean), own.map(|s| s.sd), own.and_then(|s| s.shown_half())];
                    let range = [own.map(|s| s.least), own.map(|s| s.most)];
                    let differences = [to.map(|s| s.mean), to.and_then(|s| s.shown_half())];
                    let mut cells = vec![runs.policy.clone(), (*name).to_owned(), figures.len().to_string()];
                    cells.extend(numbers.into_iter().chain(range).chain(differences).map(exact));
                    cells.push(direction(name).map_or_else(String::new, |_| marks[k].to_string()));
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
    use crate::report::samples::is_precise;

    #[test]
    fn spread_of_known_numbers() {
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(spread.mean, 5.0);
        assert!((spread.sd - 2.138_089_935_299_395).abs() < 1e-12);
        assert!((spread.ci95 - 2.365 * spread.sd / 8f64.sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(&[]), None);
        let same = Spread::of(&[0.1; 3]).unwrap();
        assert_eq!((same.mean, same.ci95, same.interval()), (0.1, 0.0, Interval::None));
        assert_eq!(Spread::of(&[1.0, 2.0]).unwrap().interval(), Interval::Range(1.0, 2.0));
    }

    #[test]
    fn means_and_intervals_of_a_column_have_the_same_digits() {
        let spread =
            |mean, ci95| Some(Spread { mean, sd: 0.0, ci95, n: 9, least: mean - ci95, most: mean + ci95 });
        let found = plus_minus(&[spread(2_529.0, 128.25), None, spread(7.5, 0.0)], Unit::Count);
        assert_eq!(found, ["2,529 ± 128", NOTHING, "8      "]);
        assert_eq!(plus_minus(&[spread(0.1551, 0.012)], Unit::Gap), ["15.6 ± 1.2 %"]);
        let few = |spread: Option<Spread>| Some(Spread { n: 2, ..spread? });
        assert_eq!(plus_minus(&[few(spread(0.1551, 0.012))], Unit::Gap), ["15.6 (14.3 to 16.7 %)"]);
        assert_eq!(plus_minus(&[spread(28.0, 0.0)], Unit::Count), ["28"]);
    }

    #[test]
    fn seeds_are_enough_when_differences_are_precise() {
        let runs = |costs: &[f64]| Runs {
            policy: "p".into(),
            result: Ok(costs.iter().map(|&c| Figures { cost: Some(c), ..Figures::default() }).collect()),
        };
        let luck = runs(&[100.0, 200.0, 50.0]);
        assert!(is_precise(&[luck.clone(), runs(&[110.0, 210.0, 60.0])], &[]), "the same luck");
        assert!(!is_precise(&[luck.clone(), runs(&[110.0, 190.0, 60.0])], &[]));
        assert!(!is_precise(std::slice::from_ref(&luck), &[]));
        assert!(is_precise(&[luck, runs(&[110.0, 190.0, 60.0])], &["makespan".to_owned()]), "not asked for");
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
