//! The error of estimated task durations, learned from finished phases.

use slackline_model::PhaseId;
use slackline_policy::{Event, IdTable, View};

/// The mean covers about this number of the last phases.
const MEMORY: f64 = 32.0;

/// Up to this error rollouts and a search find better orders than the rule for the metric.
const LITTLE: f64 = 0.2;

/// Up to this mean error of single tasks, the mean of a phase says enough about each of its tasks.
const ALIKE: f64 = 0.5;

/// The estimates of phases, the measured durations, and the mean error.
#[derive(Clone, Debug, Default)]
pub(super) struct EstimateError {
    /// Seconds of a task at speed 1, as estimated when the flow arrived.
    estimated: IdTable<PhaseId, f64>,
    /// The total duration of finished tasks, their number, and the sum of |ln(duration / estimate)| over them.
    took: IdTable<PhaseId, (f64, u32, f64)>,
    /// Mean over phases of |ln(measured duration / estimate)|.
    error: f64,
    /// Mean over phases of the mean of |ln(duration of a task / estimate)|; 0 if the policy knows single tasks.
    spread: f64,
    n: f64,
}

impl EstimateError {
    /// Learns from the events of an instant.
    pub(super) fn note(&mut self, events: &[Event], view: &View<'_>) {
        for event in events {
            match *event {
                Event::FlowArrived(flow) => {
                    for phase in view.instance.flow(flow).phases() {
                        self.estimated[phase] = view.estimates.task[phase].seconds();
                    }
                }
                Event::TasksDone { phase, count, machine, took } => {
                    let speed = view.estimates.speed[view.instance.cluster().group_id_of(machine)];
                    let (size, n) = (took.seconds() * speed, f64::from(count));
                    let estimated = self.estimated[phase];
                    let is_known = view.estimates.each || estimated <= 0.0 || size <= 0.0;
                    let off = if is_known { 0.0 } else { (size / estimated).ln().abs() };
                    let (seconds, tasks, spread) = self.took[phase];
                    self.took[phase] = (seconds + n * size, tasks + count, spread + n * off);
                }
                Event::PhaseDone(phase) => self.learn(phase),
                _ => {}
            }
            if let Some(flow) = event.over() {
                self.estimated.forget(view.instance.flow(flow).phases());
                self.took.forget(view.instance.flow(flow).phases());
            }
        }
    }

    fn learn(&mut self, phase: PhaseId) {
        let (estimated, (seconds, tasks, spread)) = (self.estimated[phase], self.took[phase]);
        if estimated > 0.0 && seconds > 0.0 {
            self.n = (self.n + 1.0).min(MEMORY);
            self.error += ((seconds / f64::from(tasks) / estimated).ln().abs() - self.error) / self.n;
            self.spread += (spread / f64::from(tasks) - self.spread) / self.n;
        }
    }

    /// Whether rollouts of the estimates say which order is better.
    pub(super) fn is_little(&self) -> bool {
        self.error <= LITTLE && self.spread <= ALIKE
    }

    /// The relative error of a sum over this number of phases.
    pub(super) fn noise(&self, phases: usize) -> f64 {
        // Errors below one in a million come from rounding.
        if self.error > 1e-3 { self.error / (phases.max(1) as f64).sqrt() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_that_of_the_last_phases() {
        let mut estimate_error = EstimateError::default();
        let mut phase = |estimated: f64, took: f64| {
            estimate_error.estimated[PhaseId(0)] = estimated;
            estimate_error.took[PhaseId(0)] = (took * 3.0, 3, 0.0);
            estimate_error.learn(PhaseId(0));
            (estimate_error.error, estimate_error.is_little())
        };
        assert_eq!(phase(2.0, 2.0), (0.0, true));
        let (error, is_little) = phase(2.0, 4.0);
        assert!((error - 2.0_f64.ln() / 2.0).abs() < 1e-9 && !is_little, "{error}");
        for _ in 0..200 {
            phase(8.0, 4.0);
        }
        let (error, is_little) = phase(8.0, 4.0);
        assert!((error - 2.0_f64.ln()).abs() < 0.01 && !is_little, "half as long as estimated: {error}");
        assert!((estimate_error.noise(100) - error / 10.0).abs() < 1e-12);
    }

    #[test]
    fn tasks_of_unlike_length_are_an_error_where_their_mean_is_none() {
        let mut estimate_error = EstimateError::default();
        let mut phase = |off: f64| {
            estimate_error.estimated[PhaseId(0)] = 2.0;
            estimate_error.took[PhaseId(0)] = (6.0, 3, off * 3.0);
            estimate_error.learn(PhaseId(0));
            (estimate_error.error, estimate_error.is_little())
        };
        assert_eq!(phase(0.4), (0.0, true));
        assert_eq!(phase(0.8), (0.0, false));
    }
}
