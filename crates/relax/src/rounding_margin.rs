//! The margin that keeps rounding from lifting a bound above the optimum.

/// Relative margin for the few operations around a sum: far above their rounding, far below the
/// 10^-6 to which costs are compared.
const RELATIVE: f64 = 1e-12;

/// The largest error of a result of about `magnitude` after naive summation of `terms` numbers.
///
/// Naive summation of numbers of one sign errs by less than `terms` times the unit roundoff.
pub(crate) fn margin(magnitude: f64, terms: usize) -> f64 {
    magnitude.abs() * (RELATIVE + terms as f64 * f64::EPSILON)
}
