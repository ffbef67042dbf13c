//! Time in integer microseconds, and every crossing between it and seconds as `f64`.
//!
//! Simulated time must be exact and equal on every machine, so it is counted. Plans on a continuous
//! axis (FLEX, FlowFlex, linear programs) and reports use seconds as `f64`. Each crossing is a
//! function here with its rounding in the name.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Microseconds in a second.
pub const MICROS: u64 = 1_000_000;

/// The longest time or span a document may hold, in seconds: about 2,850 years.
///
/// 9·10^16 microseconds: a two-hundredth of the range of `u64`, so that a time plus a hundred spans does not
/// overflow. It is ten times 2^53, so that `f64` holds whole microseconds exactly only up to 9.007·10^9 s
/// (285 years); towards the end of the range it is off by up to 8 µs.
pub const SECONDS_MAX: f64 = 9.0e10;

/// An instant: microseconds since the start of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A time of the wall clock: microseconds since 1970. It is a date, and no monotonic time: the wall clock
/// jumps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WallTime(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// Work in slot-microseconds: what one slot of speed 1 does in a microsecond. Sums and differences stop at
/// the ends of `u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work(pub u64);

/// Seconds to whole microseconds, to the nearest, halves up; negative becomes zero.
fn round_micros(seconds: f64) -> u64 {
    (seconds * MICROS as f64).round() as u64
}

impl Time {
    /// The start of the workload.
    pub const ZERO: Self = Self(0);

    /// The nearest microsecond to `seconds` (negative becomes zero).
    pub fn from_seconds_nearest(seconds: f64) -> Self {
        Self(round_micros(seconds))
    }

    /// Seconds since the start of the workload; exact below 2^53 microseconds (285 years).
    pub fn seconds(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// The span from `earlier` to here, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The nearest microsecond to `seconds` (negative becomes zero).
    pub fn from_seconds_nearest(seconds: f64) -> Self {
        Self(round_micros(seconds))
    }

    /// The length in seconds; exact below 2^53 microseconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// How long this much work of one task takes on a slot of `speed`, to the nearest microsecond.
    pub fn at_speed_nearest(self, speed: f64) -> Self {
        if speed == 1.0 {
            return self;
        }
        Self((self.0 as f64 / speed).round() as u64)
    }
}

impl WallTime {
    /// The end of time.
    pub const MAX: Self = Self(u64::MAX);

    /// The time `seconds` later; negative seconds count as 0.
    pub fn after_seconds(self, seconds: f64) -> Self {
        self + round_micros(seconds)
    }

    /// Microseconds from `earlier` to here, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Seconds from `earlier` to here, zero if `earlier` is later.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        self.since(earlier) as f64 / MICROS as f64
    }

    /// The time that many microseconds earlier, not before 1970.
    pub fn earlier_by(self, micros: u64) -> Self {
        Self(self.0.saturating_sub(micros))
    }
}

impl Work {
    /// No work.
    pub const ZERO: Self = Self(0);

    /// The nearest slot-microsecond to `slot_seconds` (negative becomes zero).
    pub fn from_slot_seconds_nearest(slot_seconds: f64) -> Self {
        Self(round_micros(slot_seconds))
    }

    /// The work in slot-seconds.
    pub fn slot_seconds(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }
}

impl Add<u64> for WallTime {
    type Output = Self;

    /// That many microseconds later, at most the end of time.
    fn add(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    /// Stays at the end of time rather than wrap around.
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Work {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Work {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Work {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.seconds())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.seconds())
    }
}
