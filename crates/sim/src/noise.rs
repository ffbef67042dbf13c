//! Estimates with errors, for policies that do not know the exact durations.

use slackline_model::{Instance, PhaseId, Seed, Span, random};
use slackline_policy::view::mean_of;

/// The true mean of a phase, multiplied by a lognormal factor of mean 1. The logarithm of the factor has
/// standard deviation `sigma` (0 for the exact mean). Every phase has its own random stream.
pub fn distorted(instance: &Instance, phase: PhaseId, sigma: f64, seed: Seed) -> Span {
    let mean = mean_of(instance.phase(phase));
    if sigma == 0.0 {
        return mean;
    }
    let draw = factor(&mut random::rng(seed, "noise", u64::from(phase.0)), sigma);
    Span::from_seconds_nearest(mean.seconds() * draw)
}

/// A lognormal factor with mean 1.
pub(crate) fn factor(rng: &mut random::ChaCha8Rng, sigma: f64) -> f64 {
    random::lognormal(rng, -sigma * sigma / 2.0, sigma)
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;

    #[test]
    fn the_mean_factor_is_one_and_its_logarithm_has_the_deviation() {
        let sigma = 0.5;
        let mut rng = random::rng(Seed(1), "test", 0);
        let factors: Vec<f64> = (0..10_000).map(|_| factor(&mut rng, sigma)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        // Standard deviations of the two means: 0.0053 and 0.005.
        assert!((mean(&factors) - 1.0).abs() < 0.02, "{}", mean(&factors));
        let logs: Vec<f64> = factors.iter().map(|f| f.ln()).collect();
        let centre = mean(&logs);
        assert!((centre + sigma * sigma / 2.0).abs() < 0.02, "{centre}");
        let squares: Vec<f64> = logs.iter().map(|log| (log - centre) * (log - centre)).collect();
        assert!((mean(&squares).sqrt() - sigma).abs() < 0.02);
    }

    #[test]
    fn each_phase_is_distorted_by_itself_and_always_the_same() {
        let phase = |seconds| Some(TasksDraft::Uniform { tasks: 2, seconds }.into());
        let job = JobDraft { id: "j".into(), map: phase(8.0), reduce: phase(8.0), ..JobDraft::default() };
        let slots = Slots::Generic(1);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        let flows = vec![FlowDraft::new("f", vec![job])];
        let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
        let tasks = |sigma, seed| [0, 1].map(|phase| distorted(&instance, PhaseId(phase), sigma, Seed(seed)));
        assert_eq!(tasks(0.0, 1), [Span(8_000_000); 2]);
        assert_eq!(tasks(0.5, 1), tasks(0.5, 1));
        assert_ne!(tasks(0.5, 1)[0], tasks(0.5, 1)[1]);
        assert_ne!(tasks(0.5, 1), tasks(0.5, 2));
    }
}
