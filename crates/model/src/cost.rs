//! The cost of completing a flow at a time: the metric table of the workload document.
//!
//! A [`CostFn`] is a metric applied to one flow with a known release, weight, deadline and size. Every one is
//! non-decreasing in the completion time.

use crate::tolerance;

/// How late a completion must be beyond a deadline to count as late: 2 µs plus a billionth.
///
/// The document's tolerance of instants, so that a plan in `f64` seconds that ends on its deadline
/// is on time.
pub fn is_late(completion: f64, deadline: f64) -> bool {
    completion > tolerance::latest(deadline)
}

crate::named_enum! {
    /// The metric of an objective.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Metric {
        /// w·C.
        Completion = "completion",
        /// w·(C − r).
        Response = "response",
        /// C, always combined by the maximum, weights ignored.
        Makespan = "makespan",
        /// w·(C − r) over the flow's total work.
        Stretch = "stretch",
        /// w·(C − r) over the flow's time alone on the whole cluster.
        Slowdown = "slowdown",
        /// w if C > d.
        Tardy = "tardy",
        /// w·max(0, C − d).
        Tardiness = "tardiness",
        /// w·(C − d).
        Lateness = "lateness",
        /// Step costs; every flow must give its steps.
        Sla = "sla",
        /// Piecewise linear costs; every flow must give its points.
        Piecewise = "piecewise",
    }
}

impl Metric {
    /// The metric of that name; `steps` is another name of `sla`.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "steps" {
            return Some(Self::Sla);
        }
        Self::ALL.into_iter().find(|m| m.name() == name)
    }
}

crate::named_enum! {
    /// How the costs of the flows are combined.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Combine {
        /// The sum: a *minisum* objective.
        Sum = "sum",
        /// The maximum: a *minimax* objective.
        Max = "max",
    }
}

impl Combine {
    /// The way of combining of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }

    /// Combines costs; 0 of no costs.
    pub fn of(self, costs: impl IntoIterator<Item = f64>) -> f64 {
        let mut costs = costs.into_iter();
        match self {
            // From 0: the empty sum of floats would be −0.
            Self::Sum => costs.fold(0.0, |sum, cost| sum + cost),
            Self::Max => costs.by_ref().reduce(f64::max).unwrap_or(0.0),
        }
    }

    /// The same for costs that come one at a time: combines the result so far (`None` before the first) with
    /// one more.
    #[must_use]
    pub fn and(self, so_far: Option<f64>, cost: f64) -> Option<f64> {
        Some(match self {
            Self::Sum => so_far.unwrap_or(0.0) + cost,
            Self::Max => so_far.map_or(cost, |most| most.max(cost)),
        })
    }
}

/// The objective to minimise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objective {
    /// The metric of flows without their own cost.
    pub metric: Metric,
    /// Sum or maximum.
    pub combine: Combine,
}

impl Objective {
    /// An objective; makespan is always combined by the maximum.
    pub fn new(metric: Metric, combine: Combine) -> Self {
        let combine = if metric == Metric::Makespan { Combine::Max } else { combine };
        Self { metric, combine }
    }
}

impl Default for Objective {
    /// Total response time.
    fn default() -> Self {
        Self::new(Metric::Response, Combine::Sum)
    }
}

/// The shape of a cost function, in seconds of workload time.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Linear { slope: f64, origin: f64 },
    Tardiness { slope: f64, due: f64 },
    Steps(Vec<(f64, f64)>),
    Piecewise { points: Vec<(f64, f64)>, slope: f64 },
}

/// A non-decreasing cost of completing one flow at a time (seconds after the start of the workload).
#[derive(Clone, Debug, PartialEq)]
pub struct CostFn {
    shape: Shape,
}

impl CostFn {
    /// Costs nothing, whenever the flow completes.
    pub fn zero() -> Self {
        Self::linear(0.0, 0.0)
    }

    /// `slope·(C − origin)`, which may be negative.
    pub fn linear(slope: f64, origin: f64) -> Self {
        Self { shape: Shape::Linear { slope, origin } }
    }

    /// `slope·max(0, C − due)`.
    pub fn tardiness(slope: f64, due: f64) -> Self {
        Self { shape: Shape::Tardiness { slope, due } }
    }

    /// The level `c_i` for `d_i < C ≤ d_(i+1)`, 0 up to `d_1`; levels and times non-decreasing.
    pub fn steps(steps: Vec<(f64, f64)>) -> Self {
        Self { shape: Shape::Steps(steps) }
    }

    /// Linear between `points`, constant before the first, `slope` after the last.
    pub fn piecewise(points: Vec<(f64, f64)>, slope: f64) -> Self {
        Self { shape: Shape::Piecewise { points, slope } }
    }

    /// The same costs, `factor ≥ 0` times as high.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        match &mut self.shape {
            Shape::Linear { slope, .. } | Shape::Tardiness { slope, .. } => *slope *= factor,
            Shape::Steps(steps) => {
                for (_, c) in steps {
                    *c *= factor;
                }
            }
            Shape::Piecewise { points, slope } => {
                for (_, c) in points {
                    *c *= factor;
                }
                *slope *= factor;
            }
        }
        self
    }

    /// The same costs, this number of seconds later: for a recurrence of a flow.
    #[must_use]
    pub fn later(mut self, seconds: f64) -> Self {
        match &mut self.shape {
            Shape::Linear { origin: at, .. } | Shape::Tardiness { due: at, .. } => *at += seconds,
            Shape::Steps(points) | Shape::Piecewise { points, .. } => {
                for (at, _) in points {
                    *at += seconds;
                }
            }
        }
        self
    }

    /// The cost of completing at `completion` seconds. O(log points).
    ///
    /// A step counts from just after its time, with the documents' tolerance of instants ([`is_late`]).
    pub fn eval(&self, completion: f64) -> f64 {
        match &self.shape {
            Shape::Linear { slope, origin } => slope * (completion - origin),
            Shape::Tardiness { slope, due } => slope * (completion - due).max(0.0),
            Shape::Steps(steps) => {
                let passed = steps.partition_point(|&(d, _)| is_late(completion, d));
                if passed == 0 { 0.0 } else { steps[passed - 1].1 }
            }
            Shape::Piecewise { points, slope } => eval_piecewise(points, *slope, completion),
        }
    }

    /// The latest completion that costs at most `level`: sup{t ≥ 0 : w(t) ≤ level}.
    ///
    /// `Some(f64::INFINITY)` if every completion does, `None` if none does.
    pub fn latest(&self, level: f64) -> Option<f64> {
        match &self.shape {
            Shape::Linear { slope, origin } => latest_linear(*slope, *origin, level),
            Shape::Tardiness { slope, due } if level >= 0.0 => {
                Some(if *slope > 0.0 { due + level / slope } else { f64::INFINITY })
            }
            Shape::Tardiness { .. } => None,
            Shape::Steps(_) if level < 0.0 => None,
            Shape::Steps(steps) => {
                let within = steps.partition_point(|&(_, c)| c <= level);
                Some(steps.get(within).map_or(f64::INFINITY, |&(d, _)| d))
            }
            Shape::Piecewise { points, slope } => latest_piecewise(points, *slope, level),
        }
    }

    /// `(slope, intercept)` with `w(C) = slope·C + intercept`, if the function is linear everywhere.
    pub fn as_linear(&self) -> Option<(f64, f64)> {
        match &self.shape {
            Shape::Linear { slope, origin } => Some((*slope, -slope * origin)),
            Shape::Tardiness { slope, .. } if *slope == 0.0 => Some((0.0, 0.0)),
            _ => None,
        }
    }

    /// The `(time, level)` steps, if the function is a step function.
    pub fn as_steps(&self) -> Option<&[(f64, f64)]> {
        match &self.shape {
            Shape::Steps(steps) => Some(steps),
            _ => None,
        }
    }

    /// The points and the slope with which [`Self::piecewise`] is the same function from 0 on; `None` for a
    /// step function.
    pub fn as_piecewise(&self) -> Option<(Vec<(f64, f64)>, f64)> {
        match &self.shape {
            Shape::Linear { slope, .. } => Some((vec![(0.0, self.eval(0.0))], *slope)),
            Shape::Tardiness { slope, due } => Some((vec![(*due, 0.0)], *slope)),
            Shape::Steps(_) => None,
            Shape::Piecewise { points, slope } => Some((points.clone(), *slope)),
        }
    }

    /// Whether the function is convex in the completion time.
    pub fn is_convex(&self) -> bool {
        match &self.shape {
            Shape::Linear { .. } | Shape::Tardiness { .. } => true,
            Shape::Steps(steps) => steps.iter().all(|&(_, c)| c == 0.0),
            Shape::Piecewise { points, slope } => {
                let mut last = 0.0;
                let inner = points.windows(2).map(|w| rise(w[1].0 - w[0].0, w[1].1 - w[0].1));
                inner.chain([*slope]).all(|s| {
                    let ok = s >= last;
                    last = s;
                    ok
                })
            }
        }
    }

    /// Times at which the function changes its form, in order.
    pub fn breakpoints(&self) -> Vec<f64> {
        match &self.shape {
            Shape::Linear { .. } => Vec::new(),
            Shape::Tardiness { due, .. } => vec![*due],
            Shape::Steps(points) | Shape::Piecewise { points, .. } => {
                points.iter().map(|&(t, _)| t).collect()
            }
        }
    }
}

fn rise(time: f64, cost: f64) -> f64 {
    if time > 0.0 {
        cost / time
    } else if cost > 0.0 {
        f64::INFINITY
    } else {
        0.0
    }
}

fn eval_piecewise(points: &[(f64, f64)], slope: f64, at: f64) -> f64 {
    // A jump (two points at one time) costs the lower value at that time itself: C ≤ t is on time.
    let passed = points.partition_point(|&(t, _)| is_late(at, t));
    match passed {
        0 => points[0].1,
        n if n == points.len() => points[n - 1].1 + slope * (at - points[n - 1].0),
        n => {
            let (a, b) = (points[n - 1], points[n]);
            a.1 + (b.1 - a.1) * ((at - a.0) / (b.0 - a.0)).clamp(0.0, 1.0)
        }
    }
}

fn latest_linear(slope: f64, origin: f64, level: f64) -> Option<f64> {
    if slope > 0.0 {
        let at = origin + level / slope;
        (at >= 0.0).then_some(at)
    } else {
        (level >= 0.0).then_some(f64::INFINITY)
    }
}

fn latest_piecewise(points: &[(f64, f64)], slope: f64, level: f64) -> Option<f64> {
    let within = points.partition_point(|&(_, c)| c <= level);
    match within {
        0 => None,
        n if n == points.len() => {
            let (t, c) = points[n - 1];
            Some(if slope > 0.0 { t + (level - c) / slope } else { f64::INFINITY })
        }
        n => {
            let (a, b) = (points[n - 1], points[n]);
            Some(a.0 + (b.0 - a.0) * (level - a.1) / (b.1 - a.1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_levels_with_the_tolerance_of_instants() {
        let w = CostFn::steps(vec![(10.0, 1.0), (20.0, 5.0)]);
        assert_eq!([w.eval(10.0), w.eval(10.000_001), w.eval(10.1), w.eval(25.0)], [0.0, 0.0, 1.0, 5.0]);
        assert_eq!(w.latest(0.5), Some(10.0));
        assert_eq!(w.latest(1.0), Some(20.0));
        assert_eq!(w.latest(5.0), Some(f64::INFINITY));
        assert_eq!(w.latest(-1.0), None);
        assert!(!w.is_convex());
    }

    #[test]
    fn latest_inverts_eval() {
        let shapes = [
            CostFn::linear(2.0, 3.0),
            CostFn::tardiness(0.5, 7.0),
            CostFn::piecewise(vec![(0.0, 1.0), (10.0, 3.0), (10.0, 4.0), (12.0, 9.0)], 1.0),
        ];
        for w in shapes {
            for level in [0.0, 0.5, 1.0, 2.0, 3.5, 4.0, 6.0, 9.0, 20.0] {
                if let Some(t) = w.latest(level) {
                    assert!(w.eval(t) <= level + 1e-9, "{w:?} at {t} costs {} > {level}", w.eval(t));
                    assert!(w.eval(t + 1.0) > level, "{w:?}: {t} is not the latest for {level}");
                }
            }
        }
    }

    #[test]
    fn all_but_steps_are_piecewise_linear() {
        let points = vec![(1.0, 2.0), (3.0, 2.0), (3.0, 5.0), (8.0, 6.0)];
        for of in [CostFn::linear(0.5, 7.0), CostFn::tardiness(2.0, 3.0), CostFn::piecewise(points, 0.25)] {
            let (points, slope) = of.as_piecewise().unwrap();
            let same = CostFn::piecewise(points, slope);
            for at in [0.0, 0.5, 1.0, 3.0, 4.0, 7.0, 8.0, 100.0] {
                assert_eq!(same.eval(at), of.eval(at), "{of:?} at {at}");
            }
        }
        assert_eq!(CostFn::steps(vec![(1.0, 2.0)]).as_piecewise(), None);
    }

    #[test]
    fn convexity_is_recognised() {
        assert!(CostFn::tardiness(1.0, 5.0).is_convex());
        assert!(CostFn::piecewise(vec![(0.0, 0.0), (5.0, 1.0)], 1.0).is_convex());
        assert!(!CostFn::piecewise(vec![(0.0, 0.0), (5.0, 10.0)], 1.0).is_convex());
        assert!(!CostFn::piecewise(vec![(1.0, 0.0), (1.0, 10.0)], 1.0).is_convex());
    }

    #[test]
    fn makespan_is_always_a_maximum() {
        assert_eq!(Objective::new(Metric::Makespan, Combine::Sum).combine, Combine::Max);
    }
}
