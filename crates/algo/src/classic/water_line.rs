//! Max-min fair shares with minima, maxima and weights: the water-line of Hadoop's Fair Scheduler.

use std::cmp::Reverse;

use slackline_model::Key;

/// The claim of one claimant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// At least this much.
    pub min: f64,
    /// At most this much; not below `min`.
    pub max: f64,
    /// Shares between minimum and maximum are proportional to it.
    pub weight: f64,
}

impl Claim {
    fn at(&self, level: f64) -> f64 {
        // Without weight no level lifts a claim, not even an infinite one.
        if self.weight == 0.0 { self.min } else { (self.weight * level).clamp(self.min, self.max) }
    }
}

/// Divides `capacity`: claim `j` gets clamp(w_j·L, min_j, max_j) for the one level L at which the sum
/// is the capacity, or everything asked for if that is less.
///
/// If the minima alone exceed the capacity everybody gets the minimum: normalise them before.
/// Zero weights get their minimum. Time O(n log n): the sum is piecewise linear in L with a corner
/// where a claim leaves its minimum and one where it reaches its maximum.
///
/// # Example
/// ```
/// use slackline_algo::classic::{Claim, water_line};
/// let claim = |min, max, weight| Claim { min, max, weight };
/// // The second wants only 2, the third is guaranteed 5: 3 are left for the first.
/// let shares = water_line(&[claim(0.0, 9.0, 1.0), claim(0.0, 2.0, 1.0), claim(5.0, 9.0, 1.0)], 10.0);
/// assert_eq!(shares, [3.0, 2.0, 5.0]);
/// ```
pub fn water_line(claims: &[Claim], capacity: f64) -> Vec<f64> {
    let level = level(claims.iter(), capacity);
    claims.iter().map(|claim| claim.at(level)).collect()
}

/// [`water_line`] for claims that are stored beside other data.
pub(crate) fn water_line_of<'a>(
    claims: impl Iterator<Item = &'a Claim> + Clone,
    capacity: f64,
) -> impl Iterator<Item = f64> {
    let level = level(claims.clone(), capacity);
    claims.map(move |claim| claim.at(level))
}

/// A level at which a claim starts or stops growing, and the change of the slope of the sum.
#[derive(Clone, Copy)]
struct Corner {
    level: f64,
    change: f64,
}

impl Corner {
    /// By level. At one level, claims that start come before those that stop, the heaviest first among starts
    /// and the lightest first among stops. Levels are not negative, so their bits order as they do.
    fn key(&self) -> (u64, Reverse<Key>) {
        (self.level.to_bits(), Reverse(Key::new(self.change)))
    }
}

/// The level at which the claims add up to the capacity; infinite if they never do.
fn level<'a>(claims: impl Iterator<Item = &'a Claim> + Clone, capacity: f64) -> f64 {
    let most = |claim: &Claim| if claim.weight == 0.0 { claim.min } else { claim.max };
    if claims.clone().map(most).sum::<f64>() < capacity {
        return f64::INFINITY;
    }
    // At level min/w a claim starts to grow with slope w, at max/w it stops.
    let growing = claims.clone().filter(|c| c.weight > 0.0);
    let begin = growing.clone().map(|c| Corner { level: c.min / c.weight, change: c.weight });
    let cease = growing.clone().map(|c| Corner { level: c.max / c.weight, change: -c.weight });
    // Most claims start at once, and stop one after the other: two sorted halves, which a stable sort merges.
    let mut corners: Vec<Corner> = begin.collect();
    let begins = corners.len();
    match corners.first() {
        // Usually all weights are equal: sorting only levels is several times faster.
        Some(&Corner { change: weight, .. }) if growing.clone().all(|c| c.weight == weight) => {
            let mut levels: Vec<u64> = cease.map(|corner| corner.level.to_bits()).collect();
            levels.sort_unstable();
            let corner = |level| Corner { level: f64::from_bits(level), change: -weight };
            corners.extend(levels.into_iter().map(corner));
        }
        _ => {
            corners.extend(cease);
            corners[begins..].sort_unstable_by_key(Corner::key);
        }
    }
    corners.sort_by_key(Corner::key);
    let mut total: f64 = claims.map(|c| c.min).sum();
    let (mut slope, mut at) = (0.0, 0.0);
    for Corner { level, change } in corners {
        let grown = total + slope * (level - at);
        if grown >= capacity && slope > 0.0 {
            return at + ((capacity - total) / slope).max(0.0);
        }
        (total, at) = (grown, level);
        slope += change;
    }
    if total >= capacity { at } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claims() -> impl Strategy<Value = Vec<Claim>> {
        let claim = (0u32..8, 0u32..20, 0u32..5).prop_map(|(min, more, weight)| Claim {
            min: f64::from(min),
            max: f64::from(min + more),
            weight: f64::from(weight),
        });
        prop::collection::vec(claim, 1..8)
    }

    proptest! {
        #[test]
        fn shares_are_max_min_fair(claims in claims(), capacity in 1u32..60) {
            let capacity = f64::from(capacity);
            prop_assume!(claims.iter().map(|c| c.min).sum::<f64>() <= capacity);
            let shares = water_line(&claims, capacity);
            let total: f64 = shares.iter().sum();
            let most: f64 = claims.iter().map(|c| if c.weight > 0.0 { c.max } else { c.min }).sum();
            prop_assert!((total - capacity.min(most)).abs() < 1e-9, "{total} of {capacity}, at most {most}");
            for (i, a) in claims.iter().enumerate() {
                prop_assert!(shares[i] >= a.min && shares[i] <= a.max);
                // A claimant that could still grow is not behind one that got more than its minimum.
                for (k, b) in claims.iter().enumerate() {
                    if a.weight > 0.0 && b.weight > 0.0 && shares[i] < a.max - 1e-9 && shares[k] > b.min + 1e-9 {
                        prop_assert!(shares[i] / a.weight >= shares[k] / b.weight - 1e-9);
                    }
                }
            }
        }
    }

    #[test]
    fn without_claims_nothing_is_granted() {
        assert!(water_line(&[], 5.0).is_empty());
        assert_eq!(water_line(&[Claim { min: 1.0, max: 4.0, weight: 0.0 }], 5.0), [1.0]);
    }
}
