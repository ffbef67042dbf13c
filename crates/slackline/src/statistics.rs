//! Means, spreads and intervals of samples.

/// The mean and the spread of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample; 0 for a single number.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); 0 for a single number.
    pub ci95: f64,
    /// How many numbers there are.
    pub n: usize,
    /// The least number.
    pub least: f64,
    /// The largest number.
    pub most: f64,
}

/// From this number of values on an interval is shown, and below it the range.
pub(crate) const ENOUGH: usize = 5;

/// What is shown beside a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// Nothing: all numbers are equal, or there is only one.
    None,
    /// Half the width of the 95 % confidence interval.
    Half(f64),
    /// The least and the largest of fewer than five numbers.
    Range(f64, f64),
}

impl Spread {
    /// What is shown beside the mean.
    pub fn interval(&self) -> Interval {
        match self.n {
            _ if self.least == self.most => Interval::None,
            ENOUGH.. => Interval::Half(self.ci95),
            _ => Interval::Range(self.least, self.most),
        }
    }

    /// Half the width of the interval, where one is shown.
    pub fn shown_half(&self) -> Option<f64> {
        match self.interval() {
            Interval::Half(half) => Some(half),
            _ => None,
        }
    }

    /// The mean and the spread; `None` for no numbers.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.is_empty() {
            return None;
        }
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let same = Self { mean: values[0], sd: 0.0, ci95: 0.0, n: values.len(), least, most };
        if least == most {
            return Some(same);
        }
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
        let sd = variance.sqrt();
        Some(Self { mean, sd, ci95: student_975(values.len() - 1) * sd / n.sqrt(), ..same })
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

/// The 95 % confidence interval of a chance of which `met` of `drawn` draws were observed (Wilson, "Probable
/// inference", 1927). From 0 to 1 without draws.
pub(crate) fn wilson(met: u32, drawn: u32) -> [f64; 2] {
    const Z: f64 = 1.959_964;
    if drawn == 0 {
        return [0.0, 1.0];
    }
    let n = f64::from(drawn);
    let p = f64::from(met) / n;
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    [((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        let near = |found: [f64; 2], expected: [f64; 2]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 5e-4), "{found:?}");
        };
        near(wilson(81, 263), [0.255, 0.366]);
        near(wilson(60, 60), [0.9398, 1.0]);
        near(wilson(0, 20), [0.0, 0.1611]);
        near(wilson(0, 0), [0.0, 1.0]);
    }
}
