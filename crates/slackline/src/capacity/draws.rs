//! Random draws in a search: how many draws a value needs, and the chance that it meets the conditions.

use slackline_model::Draft;

/// The random part of a search. Draw `k` has the same seed at every value, so that values are compared with
/// common random numbers.
#[derive(Clone, Copy)]
pub struct Draws<'a> {
    /// When a value has enough draws, and when it meets the conditions.
    pub rule: DrawRule,
    /// The seed of the first draw. Each further draw has the next seed.
    pub seed: u64,
    /// The workload for a seed; `None` if the seed changes only the simulation.
    pub draft: Option<&'a SeededDraft<'a>>,
    /// Whether the time limit has passed. Values that have at least one draw then get no more.
    pub is_out_of_time: &'a (dyn Fn() -> bool + Sync),
}

/// The workload for a seed, or the reason why there is none.
pub type SeededDraft<'a> = dyn Fn(u64) -> Result<Draft, String> + Sync + 'a;

impl Draws<'_> {
    /// The seed of a draw.
    pub fn seed_of(&self, draw: usize) -> u64 {
        self.seed.wrapping_add(draw as u64)
    }
}

/// The number of draws at a value, and the fraction of them that must meet the conditions.
///
/// Without a fixed number, draws are added until Wald's sequential probability ratio test ("Sequential tests of
/// statistical hypotheses", 1945) tells a chance of `confidence + d` from one of `confidence − d`. Its error is 2.5 %
/// either way, and 4 % with the limit on draws. `d` is 0.02, and at most 0.4 of the distance to 0 or 1. At 95 % a
/// value whose chance is 100 % needs 87 draws, one of 95 % needs 280 on average, and one below 85 % the minimum of 60.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawRule {
    /// The fraction of draws, above 0 and below 1.
    pub confidence: f64,
    /// The number of draws at every value, instead of the test.
    pub number: Option<u32>,
}

/// How sure the search must be about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Enough to choose the next value of a bisection.
    Rough,
    /// Enough for the answer and for its neighbours.
    Full,
}

/// The fewest draws of a value that is tested fully.
pub(super) const DRAWS_MIN: u32 = 60;
/// The most draws of a value, and the number of failures expected in them if this number is larger: a confidence of
/// 99 % needs 2,000 draws to see 20 failures.
const DRAWS_MAX: (u32, f64) = (400, 20.0);
/// No confidence needs more draws.
const DRAWS_LIMIT: f64 = 100_000.0;
/// Half the distance between the two chances that the test tells apart.
const HALF_WIDTH: (f64, f64) = (0.02, 0.4);
/// The logarithm of the likelihood ratio that decides: ln(0.975 / 0.025).
const DECISIVE: f64 = 3.66;
/// The same for a rough test: up after 19 draws that all meet the conditions, down after two failures in ten draws.
const ROUGH: (f64, f64) = (0.8, -1.2);
/// The fewest draws of a rough test.
const ROUGH_MIN: u32 = 10;

impl DrawRule {
    /// The most draws of a value.
    pub fn most(&self) -> u32 {
        let (most, failures) = DRAWS_MAX;
        let needed = (failures / (1.0 - self.confidence)).min(DRAWS_LIMIT).ceil() as u32;
        self.number.unwrap_or_else(|| most.max(needed))
    }

    /// Whether `met` of `drawn` draws are enough to decide.
    pub(super) fn is_decided(&self, met: u32, drawn: u32, effort: Effort) -> bool {
        if let Some(number) = self.number {
            return drawn >= number;
        }
        let evidence = self.evidence(met, drawn);
        match effort {
            Effort::Rough if drawn < ROUGH_MIN => false,
            Effort::Rough => drawn >= DRAWS_MIN || evidence >= ROUGH.0 || evidence <= ROUGH.1,
            Effort::Full => drawn >= self.most() || drawn >= DRAWS_MIN && evidence.abs() >= DECISIVE,
        }
    }

    /// Whether `met` of `drawn` draws are often enough. For a fixed number of draws this is the plain fraction.
    /// For the test it is a likelihood ratio of at least 1, which for 95 % are 95.3 % of the draws.
    pub fn accepts(&self, met: u32, drawn: u32) -> bool {
        let is_enough = match self.number {
            Some(_) => f64::from(met) >= self.confidence * f64::from(drawn) - 1e-9,
            None => self.evidence(met, drawn) >= 0.0,
        };
        drawn > 0 && is_enough
    }

    /// The logarithm of the likelihood ratio of the upper chance to the lower one.
    fn evidence(&self, met: u32, drawn: u32) -> f64 {
        let p = self.confidence;
        let half = HALF_WIDTH.0.min(HALF_WIDTH.1 * p.min(1.0 - p));
        let (low, high) = (p - half, p + half);
        f64::from(met) * (high / low).ln() + f64::from(drawn - met) * ((1.0 - high) / (1.0 - low)).ln()
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::{Seed, random};

    use super::*;

    const RULE: DrawRule = DrawRule { confidence: 0.95, number: None };

    /// Draws until the rule decides; `meets` tells whether a draw meets the conditions.
    fn decide(rule: DrawRule, effort: Effort, mut meets: impl FnMut(u32) -> bool) -> (bool, u32) {
        let (mut met, mut drawn) = (0, 0);
        while !rule.is_decided(met, drawn, effort) {
            met += u32::from(meets(drawn));
            drawn += 1;
        }
        (rule.accepts(met, drawn), drawn)
    }

    #[test]
    fn clear_chances_need_few_draws() {
        assert_eq!(decide(RULE, Effort::Full, |_| true), (true, 87));
        assert_eq!(decide(RULE, Effort::Full, |_| false), (false, 60));
        assert_eq!(decide(RULE, Effort::Rough, |_| true), (true, 19));
        assert_eq!(decide(RULE, Effort::Rough, |_| false), (false, 10));
        assert_eq!(decide(RULE, Effort::Full, |k| k % 20 != 0), (false, 400));
        assert_eq!(decide(RULE, Effort::Full, |k| k % 25 != 0), (true, 400));
        let strict = DrawRule { confidence: 0.99, number: None };
        assert_eq!(strict.most(), 2000);
        let fixed = DrawRule { confidence: 0.95, number: Some(7) };
        assert_eq!(decide(fixed, Effort::Rough, |_| true), (true, 7));
        assert!(!RULE.accepts(0, 0) && RULE.accepts(58, 60) && !RULE.accepts(57, 60));
    }

    #[test]
    fn the_rule_seldom_errs_outside_its_zone() {
        // Each size is right if its chance is at least 97 % and it is accepted, or at most 93 % and it is refused.
        let errors = |chance: f64| {
            let wrong = (0..1000).filter(|&trial| {
                let mut rng = random::rng(Seed(1), "chance", trial);
                decide(RULE, Effort::Full, |_| random::chance(&mut rng, chance)).0 != (chance > 0.95)
            });
            wrong.count()
        };
        for (chance, most) in [(0.90, 2), (0.93, 50), (0.97, 50), (0.99, 2)] {
            let wrong = errors(chance);
            assert!(wrong <= most, "{chance}: {wrong} of 1000");
        }
    }
}
