//! Random numbers for importers, generators and simulated failures: seeded by name, equal bit for bit on
//! every machine.
//!
//! Each part of a workload (the durations of one row, the arrivals of a day) has a separate stream, so that
//! one more draw in one part does not affect another. Logarithms, exponentials and cosines come from `libm`,
//! not from the platform, because platforms differ in the last bit.

use std::ops::Range;

use crate::seed::Seed;
use rand_chacha::rand_core::{Rng, SeedableRng};

pub use rand_chacha::ChaCha8Rng;

/// The generator of the `index`-th part of the component called `stream`.
pub fn rng(seed: Seed, stream: &str, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.stream(stream, index).to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// Uniform on `[0, 1)`, a multiple of 2^-53.
pub fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Uniform on `[low, high)`; `low` if the interval is empty.
pub fn uniform(rng: &mut ChaCha8Rng, low: f64, high: f64) -> f64 {
    low + (high - low).max(0.0) * unit(rng)
}

/// A whole number, uniform on `low..=high`; `low` if `high` is smaller.
pub fn integer(rng: &mut ChaCha8Rng, low: u64, high: u64) -> u64 {
    let Some(n) = high.saturating_sub(low).checked_add(1) else { return rng.next_u64() };
    // Numbers above the last whole multiple of n would favour small remainders.
    let zone = u64::MAX - (u64::MAX - n + 1) % n;
    loop {
        let draw = rng.next_u64();
        if draw <= zone {
            return low + draw % n;
        }
    }
}

/// True with probability `p`.
pub fn chance(rng: &mut ChaCha8Rng, p: f64) -> bool {
    unit(rng) < p
}

/// Exponential with that mean (inverse of the distribution function).
pub fn exponential(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    -mean * libm::log1p(-unit(rng))
}

/// Normal with that mean and standard deviation (Box and Muller 1958). Always two draws, and the sine half is
/// dropped, so that the number of draws does not depend on earlier calls.
pub fn normal(rng: &mut ChaCha8Rng, mean: f64, deviation: f64) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log1p(-unit(rng)));
    let angle = std::f64::consts::TAU * unit(rng);
    mean + deviation * (radius * libm::cos(angle))
}

/// Lognormal: `exp` of a normal with mean `mu` and standard deviation `sigma`.
pub fn lognormal(rng: &mut ChaCha8Rng, mu: f64, sigma: f64) -> f64 {
    libm::exp(normal(rng, mu, sigma))
}

/// `SLACKLINE_SCALE` (default 1): the factor on the number of cases of random tests.
pub fn test_scale() -> f64 {
    let scale = std::env::var("SLACKLINE_SCALE").ok().and_then(|s| s.parse().ok());
    scale.filter(|s: &f64| *s > 0.0).unwrap_or(1.0)
}

/// A test uses one of this number of cases: `usually` by default, fewer with a larger [`test_scale`].
pub fn test_step(usually: f64) -> usize {
    (usually / test_scale()).round().max(1.0) as usize
}

/// The seeds of a random test: `usually` times [`test_scale`] of them, from `SLACKLINE_FROM` (default 0) on.
pub fn test_seeds(usually: u64) -> Range<u64> {
    let from = std::env::var("SLACKLINE_FROM").ok().and_then(|s| s.parse::<u64>().ok()).unwrap_or(0);
    from..from + (usually as f64 * test_scale()).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(draw: impl Fn(&mut ChaCha8Rng) -> f64) -> Vec<f64> {
        let mut rng = rng(Seed(7), "test", 0);
        (0..40_000).map(|_| draw(&mut rng)).collect()
    }

    /// Mean and standard deviation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt())
    }

    fn close(found: (f64, f64), expected: (f64, f64)) {
        let near = |a: f64, b: f64| (a - b).abs() <= 0.02 * b.abs().max(1.0);
        assert!(near(found.0, expected.0) && near(found.1, expected.1), "{found:?}, not {expected:?}");
    }

    #[test]
    fn distributions_have_their_moments() {
        close(moments(&draws(|r| uniform(r, 2.0, 5.0))), (3.5, 3.0 / 12f64.sqrt()));
        close(moments(&draws(|r| integer(r, 3, 8) as f64)), (5.5, (35.0 / 12f64).sqrt()));
        close(moments(&draws(|r| exponential(r, 4.0))), (4.0, 4.0));
        close(moments(&draws(|r| normal(r, -3.0, 2.0))), (-3.0, 2.0));
        close(moments(&draws(|r| lognormal(r, 1.0, 0.5).ln())), (1.0, 0.5));
        close(moments(&draws(|r| f64::from(u8::from(chance(r, 0.25))))), (0.25, (3f64 / 16.0).sqrt()));
    }

    #[test]
    fn streams_are_pinned() {
        let mut rng = rng(Seed(1), "durations", 3);
        let first = [unit(&mut rng), lognormal(&mut rng, 9.9511, 1.6764)];
        assert_eq!(first.map(f64::to_bits), [0x3fcf_fd90_2965_cf24, 0x40c4_0f68_0f8c_0b34]);
    }

    #[test]
    fn ends_of_ranges_are_kept() {
        let mut rng = rng(Seed(0), "ends", 0);
        assert_eq!(integer(&mut rng, 5, 5), 5);
        assert_eq!(integer(&mut rng, 5, 4), 5);
        integer(&mut rng, 0, u64::MAX);
        assert_eq!(uniform(&mut rng, 3.0, 3.0), 3.0);
        let seen: std::collections::BTreeSet<_> = (0..200).map(|_| integer(&mut rng, 1, 3)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }
}
