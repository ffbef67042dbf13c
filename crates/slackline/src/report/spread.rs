//! The same comparison over several seeds: means with 95 % intervals, and differences to the first
//! policy seed by seed, which say more because both met the same luck.

use serde_json::{Map, Value, json};

use crate::report::comparison::{self, Figures};
use crate::report::number::{NOTHING, Unit, exact, number};
use crate::report::table::{Align, Table};

/// What became of one policy, seed by seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The policy with its parameters.
    pub policy: String,
    /// Its figures for every seed, or why there are none.
    pub result: Result<Vec<Figures>, String>,
}

/// Mean and spread of a few numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample; 0 of a single number.
    pub sd: f64,
    /// Half the width of the 95 % interval of the mean (Student's t); 0 of a single number.
    pub ci95: f64,
}

impl Spread {
    /// Mean and spread; `None` of no numbers.
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

/// The 97.5th percentile of Student's t. Between the listed degrees of freedom the next lower counts,
/// which errs towards wider intervals.
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

/// A number of a schedule by its name in the documents.
fn value(figures: &Figures, name: &str) -> Option<f64> {
    match name {
        "cost" => figures.cost,
        "lower_bound" => figures.lower_bound,
        "gap" => figures.gap,
        "failed" => Some(figures.failed as f64),
        _ => figures.metric(name),
    }
}

/// Spread of a number over the seeds that have it.
fn spread(runs: &[Figures], name: &str) -> Option<Spread> {
    Spread::of(&runs.iter().filter_map(|f| value(f, name)).collect::<Vec<_>>())
}

/// Spread of the differences to `first`, over the seeds that both have.
fn difference(runs: &[Figures], first: &[Figures], name: &str) -> Option<Spread> {
    let pairs = runs.iter().zip(first).filter_map(|(a, b)| Some(value(a, name)? - value(b, name)?));
    Spread::of(&pairs.collect::<Vec<_>>())
}

/// Two tables: means ± half the 95 % interval, and the paired differences to the first policy.
pub fn table(all: &[Runs]) -> String {
    let figures: Vec<&Figures> = all.iter().filter_map(|runs| runs.result.as_ref().ok()).flatten().collect();
    let mut columns = vec![("cost", "cost", Unit::Measure)];
    if figures.iter().any(|f| f.gap.is_some()) {
        columns.push(("gap", "gap", Unit::Percent));
    }
    columns.extend(comparison::columns(&figures));
    // ± needs the width.
    columns.retain(|(_, name, _)| {
        !matches!(*name, "max_slowdown" | "p95_response" | "utilisation" | "decision_seconds_p99")
    });
    let mut out =
        part("policy", &columns, all.iter().map(|runs| (runs, runs.result.as_deref().ok())), spread);
    let first = all.iter().find_map(|runs| Some((&runs.policy, runs.result.as_deref().ok()?)));
    if let Some((name, base)) = first
        && all.len() > 1
    {
        let others = all.iter().filter(|runs| &runs.policy != name);
        let rows = others.map(|runs| (runs, runs.result.as_deref().ok()));
        out.extend(["\ndifference to ", name, ", seed by seed\n"]);
        out += &part("policy", &columns, rows, |runs, column| difference(runs, base, column));
    }
    out.extend(all.iter().filter_map(note));
    out
}

/// Why a policy has no row, or how often flows failed.
fn note(runs: &Runs) -> Option<String> {
    let policy = &runs.policy;
    match &runs.result {
        Err(reason) => Some(format!("{policy}: {reason}\n")),
        Ok(figures) => {
            let failed = figures.iter().filter(|f| f.failed > 0).count();
            (failed > 0).then(|| format!("{policy}: flows failed with {failed} of {} seeds\n", figures.len()))
        }
    }
}

fn part<'a>(
    corner: &str,
    columns: &[(&str, &str, Unit)],
    rows: impl Iterator<Item = (&'a Runs, Option<&'a [Figures]>)>,
    get: impl Fn(&[Figures], &str) -> Option<Spread>,
) -> String {
    let mut headings = vec![(corner, Align::Left)];
    headings.extend(columns.iter().map(|&(heading, ..)| (heading, Align::Right)));
    let mut table = Table::new(&headings);
    for (runs, figures) in rows {
        let cell = |&(_, name, unit): &(&str, &str, Unit)| {
            let unit = if unit == Unit::Count { Unit::Measure } else { unit };
            let Some(spread) = figures.and_then(|f| get(f, name)) else { return NOTHING.to_owned() };
            plus_minus(spread, unit)
        };
        table.row(std::iter::once(runs.policy.clone()).chain(columns.iter().map(cell)));
    }
    table.render()
}

fn plus_minus(spread: Spread, unit: Unit) -> String {
    let mean = number(spread.mean, unit);
    let half = number(spread.ci95, unit);
    format!("{} ± {half}", mean.strip_suffix(" %").unwrap_or(&mean))
}

/// Names of everything that was measured, in order.
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

/// One row a policy and metric: seeds, mean, standard deviation, half the 95 % interval, and mean and half
/// interval of the difference to the first policy.
pub fn csv(all: &[Runs]) -> String {
    let header =
        ["policy", "metric", "seeds", "mean", "sd", "ci95", "difference", "difference_ci95", "refused"];
    let base = all.iter().find_map(|runs| runs.result.as_deref().ok()).unwrap_or_default();
    let mut rows = Vec::new();
    for runs in all {
        match &runs.result {
            Err(reason) => {
                let mut cells = vec![runs.policy.clone()];
                cells.resize(header.len() - 1, String::new());
                cells.push(reason.clone());
                rows.push(cells);
            }
            Ok(figures) => {
                for name in names(all) {
                    let (own, to) = (spread(figures, name), difference(figures, base, name));
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
    crate::report::csv(&header, rows)
}

/// A list with an entry a policy: for every number its mean, standard deviation, 95 % interval and the paired
/// difference to the first policy.
pub fn json(all: &[Runs], seeds: &[u64]) -> String {
    let base = all.iter().find_map(|runs| runs.result.as_deref().ok()).unwrap_or_default();
    let entry = |runs: &Runs| match &runs.result {
        Err(reason) => json!({"policy": runs.policy, "refused": reason}),
        Ok(figures) => {
            let table = |names: &mut dyn Iterator<Item = &'static str>| -> Map<String, Value> {
                names.map(|name| (name.to_owned(), summary(figures, base, name))).collect()
            };
            let all = names(all);
            let objective = table(&mut all.iter().copied().take(3));
            let metrics = table(&mut all.iter().copied().skip(3));
            json!({"policy": runs.policy, "seeds": seeds, "objective": objective, "metrics": metrics})
        }
    };
    crate::report::pretty(&Value::Array(all.iter().map(entry).collect()))
}

fn summary(figures: &[Figures], base: &[Figures], name: &str) -> Value {
    let Some(own) = spread(figures, name) else { return Value::Null };
    let to = difference(figures, base, name).map(|s| json!({"mean": s.mean, "sd": s.sd, "ci95": s.ci95}));
    json!({"mean": own.mean, "sd": own.sd, "ci95": own.ci95, "difference": to})
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
    fn paired_differences_cancel_what_both_met() {
        let runs = |costs: [f64; 3]| costs.map(|c| Figures { cost: Some(c), ..Figures::default() }).to_vec();
        let difference = difference(&runs([11.0, 101.0, 6.0]), &runs([10.0, 100.0, 5.0]), "cost").unwrap();
        assert_eq!((difference.mean, difference.ci95), (1.0, 0.0));
    }
}
