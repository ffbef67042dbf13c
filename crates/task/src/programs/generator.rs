//! The common part of programs that make their own input: they have only maps, which share the work and write
//! part files.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::base::error::TaskError;
use crate::programs::arguments::Arguments;
use crate::shuffle::part::PARTS_MAX;

/// The argument `maps`; by default `otherwise`, within the limit on parts.
pub(crate) fn maps(arguments: &Arguments<'_>, otherwise: u64) -> Result<u32, TaskError> {
    let most = u64::from(PARTS_MAX);
    let maps = arguments.whole("maps")?.unwrap_or(otherwise.clamp(1, most));
    if !(1..=most).contains(&maps) {
        return Err(arguments.problem("maps", &format!("found {maps}, expected 1 to {most}")));
    }
    Ok(maps as u32)
}

/// The random numbers of one map.
pub(crate) fn rng(seed: u64, index: u32) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..12].copy_from_slice(&index.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// The share of one of `maps` maps of a total.
pub(crate) fn share(total: u64, index: u32, maps: u32) -> Range<u64> {
    let before = |index: u64| (u128::from(total) * u128::from(index) / u128::from(maps.max(1))) as u64;
    before(index.into())..before(u64::from(index) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_one_another() {
        let shares: Vec<_> = (0..7).map(|i| share(100, i, 7)).collect();
        assert!(shares[0].start == 0 && shares[6].end == 100);
        assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(share(u64::MAX, 0, 1), 0..u64::MAX);
    }
}
