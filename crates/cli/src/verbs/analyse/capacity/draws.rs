//! The flags for random draws: how sure the answer is, and how many seeds it takes.

use clap::Args;
use slackline::capacity::DrawRule;

use crate::args::value;
use crate::terminal::out;

#[derive(Args, Debug)]
pub(super) struct DrawArgs {
    /// Share of draws in which the conditions must hold [default: 0.95]
    ///
    /// Where anything is random, a value is simulated with several seeds, which are the same for all values. It
    /// meets the conditions if they hold in this share of all draws, such as 0.95 or 95%. A sequential test decides
    /// with 60 to 400 draws at the answer.
    #[arg(long, value_name = "P", value_parser = confidence, help_heading = "Capacity")]
    confidence: Option<f64>,
    /// Number of seeds at every value, instead of as many as the answer needs
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(1, 10_000), help_heading = "Capacity")]
    seeds: Option<u32>,
    /// Time limit: then values get no further seeds, and the answer says how many they had
    #[arg(long, value_name = "DURATION", value_parser = value::seconds_above_zero, help_heading = "Capacity")]
    budget: Option<f64>,
}

/// Reads a share of draws: `0.95` or `95%`.
fn confidence(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / scale);
    share.filter(|share| (0.01..=0.999).contains(share)).ok_or_else(|| {
        "expected a share of draws from 0.01 to 0.999, such as 0.95, or a percentage such as 95%".to_owned()
    })
}

impl DrawArgs {
    /// The rule for the number of draws; `None` if nothing is random.
    pub(super) fn rule(&self, is_random: bool) -> Option<DrawRule> {
        if !is_random && (self.confidence.is_some() || self.seeds.is_some_and(|seeds| seeds > 1)) {
            out::warn(
                "nothing is random here, so every seed gives the same result; see --jitter, --noise and --crash-rate",
            );
        }
        let rule = DrawRule { confidence: self.confidence.unwrap_or(0.95), number: self.seeds };
        is_random.then_some(rule)
    }

    /// Whether a search of this many seconds has used up its time limit.
    pub(super) fn is_over(&self, seconds: f64) -> bool {
        self.budget.is_some_and(|budget| seconds >= budget)
    }
}

#[cfg(test)]
mod tests {
    use super::confidence;

    #[test]
    fn a_share_is_a_fraction_or_a_percentage() {
        assert_eq!(confidence("0.95"), Ok(0.95));
        assert_eq!(confidence("95%"), Ok(0.95));
        assert_eq!(confidence("99.5 %"), Ok(0.995));
        for wrong in ["0", "1", "100%", "95", "x", "NaN", "-5%"] {
            assert!(confidence(wrong).is_err(), "{wrong}");
        }
    }
}
