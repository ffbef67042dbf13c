//! The result of a search at one value.

use slackline_judge::Metrics;

use crate::statistics::{Interval, Spread, wilson};

/// The figures of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The metrics of its schedule.
    pub metrics: Metrics,
    /// Its cost under the workload's objective.
    pub cost: f64,
    /// The number of machines times the makespan, hours.
    pub machine_hours: f64,
}

/// One simulation at a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// The figures; `None` if flows failed.
    pub figures: Option<Box<Figures>>,
    /// Whether all conditions are met.
    pub meets: bool,
}

/// A value that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchStep {
    /// The value of the axis.
    pub value: f64,
    /// The simulations, by seed; one if nothing is random.
    pub draws: Vec<Draw>,
    /// Whether all conditions are met; with draws, whether they are met often enough.
    pub meets: bool,
}

impl SearchStep {
    /// The number of draws that meet all conditions.
    pub fn met(&self) -> u32 {
        self.draws.iter().filter(|draw| draw.meets).count() as u32
    }

    /// The number of draws.
    pub fn drawn(&self) -> u32 {
        self.draws.len() as u32
    }

    /// The fraction of draws that meet all conditions; 0 without draws.
    pub fn chance(&self) -> f64 {
        f64::from(self.met()) / f64::from(self.drawn()).max(1.0)
    }

    /// The 95 % confidence interval of the chance (Wilson).
    pub fn chance_interval(&self) -> [f64; 2] {
        wilson(self.met(), self.drawn())
    }

    /// The mean of a figure over the draws in which no flow failed; `None` if there are none.
    pub fn mean(&self, of: &dyn Fn(&Figures) -> f64) -> Option<f64> {
        let values = self.values(of);
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The 10th and the 90th percentile of a figure over the same draws (nearest rank).
    pub fn range(&self, of: &dyn Fn(&Figures) -> f64) -> Option<[f64; 2]> {
        let mut values = self.values(of);
        values.sort_by(f64::total_cmp);
        let at = |tenths: usize| values.get((values.len() * tenths).div_ceil(10).saturating_sub(1)).copied();
        at(1).zip(at(9)).map(|(low, high)| [low, high])
    }

    fn values(&self, of: &dyn Fn(&Figures) -> f64) -> Vec<f64> {
        self.draws.iter().filter_map(|draw| draw.figures.as_deref()).map(of).collect()
    }

    /// The difference of the mean cost to that of another value, paired by draw: its 95 % confidence interval
    /// (Student's t), or the range of the differences for fewer than five draws. `None` without a common draw.
    pub fn cost_difference(&self, other: &Self) -> Option<[f64; 2]> {
        let cost = |draw: &Draw| Some(draw.figures.as_deref()?.cost);
        let pairs = self.draws.iter().zip(&other.draws);
        let found: Vec<f64> = pairs.filter_map(|(own, other)| Some(cost(own)? - cost(other)?)).collect();
        let spread = Spread::of(&found)?;
        Some(match spread.interval() {
            Interval::None => [spread.mean, spread.mean],
            Interval::Half(half) => [spread.mean - half, spread.mean + half],
            Interval::Range(least, most) => [least, most],
        })
    }

    /// Whether the draws cannot tell the costs of both values apart: the interval of the difference contains 0.
    pub(super) fn is_tied_with(&self, other: &Self) -> bool {
        self.cost_difference(other).is_some_and(|[low, high]| low <= 0.0 && high >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(costs: &[f64]) -> SearchStep {
        let draw = |&cost: &f64| {
            let figures = Figures { metrics: Metrics::default(), cost, machine_hours: 0.0 };
            Draw { figures: Some(Box::new(figures)), meets: cost < 5.0 }
        };
        SearchStep { value: 1.0, draws: costs.iter().map(draw).collect(), meets: false }
    }

    #[test]
    fn a_step_has_means_ranges_and_a_chance() {
        let ten = step(&[4.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        let cost = |figures: &Figures| figures.cost;
        assert_eq!((ten.mean(&cost), ten.range(&cost)), (Some(5.5), Some([1.0, 9.0])));
        assert_eq!((ten.met(), ten.drawn(), ten.chance()), (4, 10, 0.4));
        let mut failed = ten.clone();
        failed.draws.iter_mut().for_each(|draw| draw.figures = None);
        assert_eq!((failed.mean(&cost), failed.range(&cost)), (None, None));
    }

    #[test]
    fn costs_are_compared_draw_by_draw() {
        let base = step(&[10.0, 100.0, 20.0, 50.0]);
        assert!(!step(&[11.0, 101.5, 21.0, 51.5]).is_tied_with(&base));
        assert!(step(&[9.0, 101.5, 19.0, 51.5]).is_tied_with(&base));
        let [one, other] = [step(&[1.0, 2.0, 3.0, 4.0, 5.0]), step(&[2.0, 3.0, 4.0, 5.0, 7.0])];
        let [low, high] = one.cost_difference(&other).unwrap();
        assert!(
            (low + 1.2 + 2.776 * 0.2).abs() < 5e-3 && (high + 1.2 - 2.776 * 0.2).abs() < 5e-3,
            "{low} {high}"
        );
    }
}
