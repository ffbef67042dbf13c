//! Verdicts of the study: for each condition, class and metric, the best single policy or rule on the seeds of
//! even number, and the ratio of the cost of `auto` to its cost on those of odd number.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use slackline_model::Seed;
use slackline_model::random;

use super::{CONDITIONS, OBJECTIVES, Row};
use crate::study::classes::CLASSES;

/// The policy that is judged.
const JUDGED: &str = "auto";
/// A class fails if the lower end of the interval is above this.
const FAILS: f64 = 1.01;
const RESAMPLES: usize = 2_000;

/// The costs of a policy by seed.
type Costs = BTreeMap<u64, f64>;

/// A ratio of sums over seeds.
#[derive(Clone, Debug, PartialEq)]
struct Verdict {
    /// The best policy.
    best: String,
    ratio: f64,
    /// 95 %, by resampling seeds.
    low: f64,
    high: f64,
}

/// A table for each condition, a summary of it, and the time of each policy over that of `fifo`.
pub(super) fn verdicts(rows: &[Row]) -> String {
    let mut cells: BTreeMap<(&str, &str, &str), BTreeMap<&str, Costs>> = BTreeMap::new();
    for row in rows {
        let Some(cost) = row.cost else { continue };
        // So that ratios exist where no flow is late.
        let more = if row.metric.starts_with("tard") { 1.0 } else { 0.0 };
        let cell = cells.entry((&row.condition, &row.class, &row.metric)).or_default();
        cell.entry(&row.policy).or_default().insert(row.seed, cost + more);
    }
    let mut text = String::new();
    for condition in CONDITIONS {
        write(&mut text, &table(condition, &cells));
    }
    write(&mut text, &times(rows));
    text
}

fn write(text: &mut String, more: &str) {
    text.push_str(more);
    text.push('\n');
}

fn table(condition: &str, cells: &BTreeMap<(&str, &str, &str), BTreeMap<&str, Costs>>) -> String {
    let names = OBJECTIVES.map(|(name, ..)| name);
    let mut text =
        format!("{condition}\n\n| class | {} |\n|---|---|---|---|---|---|---|\n", names.join(" | "));
    let mut of_metric: Vec<Vec<(&str, Verdict)>> = vec![Vec::new(); names.len()];
    for class in CLASSES {
        let verdicts = names.map(|metric| cells.get(&(condition, class.name, metric)).and_then(verdict));
        if verdicts.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(text, "| {} |", class.name);
        for (k, verdict) in verdicts.into_iter().enumerate() {
            let shown = verdict.as_ref().map_or_else(|| "–".to_owned(), Verdict::to_string);
            let _ = write!(text, " {shown} |");
            of_metric[k].extend(verdict.map(|verdict| (class.name, verdict)));
        }
        text.push('\n');
    }
    let _ = write!(text, "| mean; worst; failed |");
    for verdicts in &of_metric {
        let mean =
            verdicts.iter().map(|(_, verdict)| libm::log(verdict.ratio)).sum::<f64>() / verdicts.len() as f64;
        let worst = verdicts.iter().max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
        let (worst, most) = worst.map_or(("–", f64::NAN), |(name, verdict)| (*name, verdict.ratio));
        let failed = verdicts.iter().filter(|(_, verdict)| verdict.fails()).count();
        let _ = write!(text, " {:.3}; {worst} {most:.3}; {failed} |", libm::exp(mean));
    }
    text.push('\n');
    text
}

impl Verdict {
    fn fails(&self) -> bool {
        self.low > FAILS
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { best, ratio, low, high } = self;
        let mark = if self.fails() { "**" } else { "" };
        let best = best.trim_start_matches("rule:order=");
        write!(f, "{mark}{ratio:.3}{mark} [{low:.2}, {high:.2}] {best}")
    }
}

/// `None` without `auto` or without seeds of both kinds.
fn verdict(policies: &BTreeMap<&str, Costs>) -> Option<Verdict> {
    let judged = policies.get(JUDGED)?;
    let half = |odd: u64| judged.keys().copied().filter(move |seed| seed % 2 == odd);
    let others = policies
        .iter()
        .filter(|(name, costs)| **name != JUDGED && judged.keys().all(|seed| costs.contains_key(seed)));
    let sum = |costs: &Costs| half(0).map(|seed| costs[&seed]).sum::<f64>();
    let (best, costs) = others.min_by(|a, b| sum(a.1).total_cmp(&sum(b.1)))?;
    let pairs: Vec<(f64, f64)> = half(1).map(|seed| (judged[&seed], costs[&seed])).collect();
    let ratio = |pairs: &mut dyn Iterator<Item = (f64, f64)>| {
        let (ours, theirs) = pairs.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        ours / theirs
    };
    let last = (pairs.len() as u64).checked_sub(1)?;
    let mut rng = random::rng(Seed(0), "bootstrap", 0);
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .map(|_| ratio(&mut (0..=last).map(|_| pairs[random::integer(&mut rng, 0, last) as usize])))
        .collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn[(share * RESAMPLES as f64) as usize];
    let ratio = ratio(&mut pairs.iter().copied());
    Some(Verdict { best: (*best).to_owned(), ratio, low: at(0.025), high: at(0.975) })
}

/// The time of each policy over that of `fifo`.
fn times(rows: &[Row]) -> String {
    let mut seconds: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        *seconds.entry(&row.policy).or_default() += row.seconds;
    }
    let fifo = seconds.get("fifo").copied().unwrap_or(f64::NAN);
    let mut text = String::from("| policy | seconds | over fifo |\n|---|---:|---:|\n");
    for (policy, seconds) in seconds {
        let _ = writeln!(text, "| {policy} | {seconds:.1} | {:.1} |", seconds / fifo);
    }
    text
}
