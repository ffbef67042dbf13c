//! How far two numbers of a document may differ and still say the same.
//!
//! Instants are whole microseconds in simulations and `f64` seconds in plans, and either is printed and read
//! again: two microseconds cover the rounding of both, and the relative parts what `f64` loses in sums over a
//! whole workload. The judge has a separate tolerance, on purpose.

/// The absolute part, in seconds (or slot-seconds, or units of cost): two microseconds.
pub const ABSOLUTE: f64 = 2e-6;
/// The relative part of durations, work and costs.
pub const RELATIVE: f64 = 1e-6;
/// The relative part of instants.
pub const RELATIVE_OF_INSTANTS: f64 = 1e-9;

/// By how much an amount (a duration, work, a cost) may be off.
pub fn of_amount(value: f64) -> f64 {
    ABSOLUTE + RELATIVE * value.abs()
}

/// The last instant, in seconds, that still counts as this one. Every crate that asks adds the parts in this
/// order, so that no two of them disagree in the last bit.
pub fn latest(seconds: f64) -> f64 {
    seconds + ABSOLUTE + RELATIVE_OF_INSTANTS * seconds.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_count() {
        assert_eq!(of_amount(0.0), 2e-6);
        assert_eq!(of_amount(-10.0), 2e-6 + 1e-6 * 10.0);
        assert_eq!(latest(3.0), 3.0 + 2e-6 + 1e-9 * 3.0);
    }
}
