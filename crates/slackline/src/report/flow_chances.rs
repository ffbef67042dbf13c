//! What several seeds say of each flow: its chance to meet its deadline, and when it completes.

use slackline_model::cost::is_late;
use slackline_model::{Instance, Start};

use crate::report::number::{NOTHING, counted, exact, instants};
use crate::report::table::{Column, Table, View};
use crate::statistics::wilson;

/// From this number of seeds on, flows have chances.
pub const ENOUGH: usize = 20;

/// A flow under one policy, over several seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSeeds {
    /// The policy.
    pub policy: String,
    /// The flow.
    pub flow: String,
    /// Its deadline, seconds.
    pub deadline: Option<f64>,
    /// For each seed its completion, seconds; infinite where it failed.
    pub completions: Vec<f64>,
}

impl FlowSeeds {
    /// Each flow of an instance under a policy, with the completions of its flows for each seed, in their order.
    pub fn of(policy: &str, instance: &Instance, seeds: &[Vec<Option<f64>>]) -> Vec<Self> {
        let flow = |(k, flow): (usize, &slackline_model::instance::Flow)| Self {
            policy: policy.to_owned(),
            flow: flow.id.clone(),
            deadline: flow.deadline.map(slackline_model::Time::seconds),
            completions: seeds.iter().map(|seed| seed[k].unwrap_or(f64::INFINITY)).collect(),
        };
        instance.flows().iter().enumerate().map(flow).collect()
    }

    /// The chance that it meets its deadline: the fraction of the seeds in which it does.
    pub fn chance(&self) -> Option<f64> {
        Some(self.met()? as f64 / self.completions.len() as f64)
    }

    fn met(&self) -> Option<usize> {
        let deadline = self.deadline?;
        Some(self.completions.iter().filter(|&&completion| !is_late(completion, deadline)).count())
    }

    /// The 95 % interval of this chance (Wilson).
    pub fn chance_interval(&self) -> Option<[f64; 2]> {
        self.met().map(|met| wilson(met as u32, self.completions.len() as u32))
    }

    /// The quantile of the completions for this fraction; infinite if as many fail. Between two seeds it is
    /// interpolated at `fraction · (n + 1)`, so that a further draw is below it with this chance (Weibull, 1939).
    pub fn quantile(&self, fraction: f64) -> f64 {
        let mut sorted = self.completions.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return f64::INFINITY };
        let at = (fraction * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, last as f64);
        let (below, share) = (at.floor() as usize, at.fract());
        if share == 0.0 || sorted[below].is_infinite() {
            sorted[below]
        } else {
            sorted[below] + share * (sorted[below + 1] - sorted[below])
        }
    }
}

/// The columns of [`csv()`] and of [`table`].
pub const COLUMNS: [&str; 9] =
    ["policy", "flow", "deadline", "chance", "chance_low", "chance_high", "p10", "p50", "p90"];

/// The chance as a percentage with its interval.
fn chance_text(flow: &FlowSeeds) -> String {
    let Some((chance, [low, high])) = flow.chance().zip(flow.chance_interval()) else {
        return NOTHING.to_owned();
    };
    let percent = |share: f64| (share * 100.0).round();
    format!("{} % ({} to {})", percent(chance), percent(low), percent(high))
}

/// A row for each flow: its deadline, its chance to meet it with the 95 % interval, and the median and the 80 %
/// interval of its completion.
pub fn table(flows: &[FlowSeeds], start: Option<&Start>, view: &View) -> String {
    let few = flows.first().map(|flow| flow.completions.len()).filter(|&n| n < ENOUGH);
    let few = few.map_or_else(String::new, |n| {
        format!("only {}: chances of flows need {ENOUGH} (--seeds {ENOUGH})\n", counted(n as u64, "seed"))
    });
    Table::of(columns(flows, start)).render(view) + &few
}

pub(crate) fn columns(flows: &[FlowSeeds], start: Option<&Start>) -> Vec<Column> {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let values = |get: &dyn Fn(&FlowSeeds) -> Option<f64>| flows.iter().map(get).collect::<Vec<_>>();
    let at = |name: &str, heading: &str, get: &dyn Fn(&FlowSeeds) -> Option<f64>| {
        let values = values(get);
        Column::written(name, &values, instants(&values, start)).heading(heading)
    };
    let chances = values(&FlowSeeds::chance);
    let policies = flows.iter().map(|flow| flow.policy.as_str());
    vec![
        Column::words("flow", flows.iter().map(|flow| flow.flow.clone())),
        Column::words("policy", crate::report::names::shown(policies)).key(),
        at("deadline", "deadline", &|flow| flow.deadline).rank(1),
        Column::written("chance", &chances, flows.iter().map(chance_text).collect()).rank(1),
        at("p10", "completion\n10 % by", &|flow| finite(flow.quantile(0.1))).rank(2),
        at("p50", "median", &|flow| finite(flow.quantile(0.5))).rank(1),
        at("p90", "completion\n90 % by", &|flow| finite(flow.quantile(0.9))).rank(2),
    ]
}

/// One row per policy and flow, with all digits; times in seconds.
pub fn csv(flows: &[FlowSeeds]) -> String {
    let record = |flow: &FlowSeeds| {
        let interval = flow.chance_interval();
        let numbers = [flow.deadline, flow.chance(), interval.map(|i| i[0]), interval.map(|i| i[1])];
        let quantiles =
            [0.1, 0.5, 0.9].map(|share| Some(flow.quantile(share)).filter(|value| value.is_finite()));
        let names = [flow.policy.clone(), flow.flow.clone()];
        names.into_iter().chain(numbers.into_iter().chain(quantiles).map(exact)).collect::<Vec<_>>()
    };
    crate::report::csv(&COLUMNS, flows.iter().map(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(completions: Vec<f64>) -> FlowSeeds {
        FlowSeeds { policy: "edf".into(), flow: "etl".into(), deadline: Some(10.0), completions }
    }

    #[test]
    fn chances_are_shares_of_seeds_with_an_interval() {
        let etl = flow((1..=20).map(f64::from).collect());
        assert_eq!(etl.chance(), Some(0.5));
        let [low, high] = etl.chance_interval().unwrap();
        assert!((low - 0.299_3).abs() < 1e-3 && (high - 0.700_7).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn quantiles_leave_a_further_draw_its_chance() {
        let etl = flow((1..=19).map(f64::from).collect());
        assert_eq!([0.1, 0.5, 0.9].map(|share| etl.quantile(share)), [2.0, 10.0, 18.0]);
        assert_eq!(flow(vec![3.0, f64::INFINITY]).quantile(0.9), f64::INFINITY, "it may fail");
        assert_eq!(flow(vec![5.0]).quantile(0.1), 5.0);
    }
}
