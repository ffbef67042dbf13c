//! Prices of slots over time, and payments of tasks under them.

/// The price of a slot of one kind over time: constant on intervals of one length, 0 before and after them.
///
/// Times are in intervals from the beginning of the first.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// The price of each whole interval.
    of_interval: Vec<f64>,
    /// The sum of all intervals before each, and of all.
    before: Vec<f64>,
}

impl Prices {
    pub(super) fn zero(intervals: usize) -> Self {
        Self { of_interval: vec![0.0; intervals], before: vec![0.0; intervals + 1] }
    }

    /// The prices times `times`, on `intervals` intervals, a multiple of the present number.
    pub(super) fn finer(&self, intervals: usize, times: f64) -> Self {
        let parts = intervals / self.of_interval.len();
        let mut finer = Self::zero(intervals);
        finer.change(|i| times * self.of_interval[i / parts] / parts as f64);
        finer
    }

    /// Changes the price of every interval, with a minimum of 0.
    pub(super) fn change(&mut self, mut by: impl FnMut(usize) -> f64) {
        for (i, price) in self.of_interval.iter_mut().enumerate() {
            *price = (*price + by(i)).max(0.0);
            self.before[i + 1] = self.before[i] + *price;
        }
    }

    /// The price of each interval.
    pub(super) fn of_intervals(&self) -> &[f64] {
        &self.of_interval
    }

    /// The price of a slot over all intervals.
    pub(super) fn whole(&self) -> f64 {
        self.before[self.of_interval.len()]
    }

    /// The price of a slot up to an instant.
    #[inline]
    pub(super) fn until(&self, at: f64) -> f64 {
        let at = at.max(0.0);
        let i = at as usize;
        match self.of_interval.get(i) {
            Some(price) => self.before[i] + price * (at - i as f64),
            None => self.before[self.of_interval.len()],
        }
    }

    /// The payment of a task that starts at `start` and takes `length`.
    #[inline]
    pub(super) fn of_task(&self, start: f64, length: f64) -> f64 {
        self.until(start + length) - self.until(start)
    }
}

/// The starts in a stretch of time at which the payment of a task, linear in between, may be least: the ends
/// of the stretch and the instants at which the task starts or ends with an interval.
#[derive(Clone, Debug)]
pub(super) struct Kinks {
    /// The next start with an interval.
    whole: f64,
    /// The next start with which the task ends with an interval.
    other: f64,
}

impl Kinks {
    /// Those after `start` of tasks of this length.
    pub(super) fn after(start: f64, length: f64) -> Self {
        let whole = start.floor() + 1.0;
        Self { whole, other: (start + length).floor() + 1.0 - length }
    }

    /// The next one before `end`.
    #[inline]
    pub(super) fn before(&mut self, end: f64) -> Option<f64> {
        let next = if self.whole <= self.other { &mut self.whole } else { &mut self.other };
        let at = *next;
        (at < end).then(|| {
            *next = at + 1.0;
            at
        })
    }
}

/// The usage of every interval, in slots.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Parts of intervals.
    parts: Vec<f64>,
    /// Whole intervals, as differences.
    steps: Vec<f64>,
}

impl Usage {
    pub(super) fn none(intervals: usize) -> Self {
        Self { parts: vec![0.0; intervals], steps: vec![0.0; intervals + 1] }
    }

    pub(super) fn clear(&mut self) {
        self.parts.fill(0.0);
        self.steps.fill(0.0);
    }

    /// `slots` tasks from `start` on.
    pub(super) fn add(&mut self, start: f64, length: f64, slots: f64) {
        let most = self.parts.len() as f64;
        let (start, end) = (start.clamp(0.0, most), (start + length).clamp(0.0, most));
        let (first, last) = (start as usize, end as usize);
        if let Some(part) = self.parts.get_mut(first) {
            *part -= slots * (start - first as f64);
        }
        if let Some(part) = self.parts.get_mut(last) {
            *part += slots * (end - last as f64);
        }
        self.steps[first] += slots;
        self.steps[last] -= slots;
    }

    /// Slots used of each interval, in order.
    pub(super) fn of_intervals(&self) -> impl Iterator<Item = f64> + '_ {
        let whole = self.steps.iter().scan(0.0, |sum, step| {
            *sum += step;
            Some(*sum)
        });
        self.parts.iter().zip(whole).map(|(part, whole)| part + whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_pay_for_the_parts_of_intervals_that_they_hold() {
        let mut prices = Prices::zero(3);
        prices.change(|i| [2.0, -1.0, 4.0][i]);
        assert_eq!(prices.whole(), 6.0, "no price is below 0");
        assert_eq!(prices.of_task(0.5, 2.0), 1.0 + 2.0);
        assert_eq!((prices.of_task(-2.0, 2.5), prices.of_task(2.5, 9.0)), (1.0, 2.0), "nothing outside");
    }

    #[test]
    fn prices_are_the_same_on_finer_intervals() {
        let mut prices = Prices::zero(2);
        prices.change(|i| [2.0, 6.0][i]);
        let finer = prices.finer(4, 0.5);
        assert_eq!(finer.of_intervals(), [0.5, 0.5, 1.5, 1.5]);
        assert_eq!(finer.of_task(1.0, 2.0), 0.5 * prices.of_task(0.5, 1.0));
    }

    #[test]
    fn usage_is_what_prices_are_paid_for() {
        let mut usage = Usage::none(3);
        usage.add(0.5, 2.0, 4.0);
        usage.add(0.25, 0.5, 1.0);
        usage.add(2.5, 9.0, 1.0);
        usage.add(3.0, 1.0, 7.0);
        assert_eq!(usage.of_intervals().collect::<Vec<_>>(), [2.5, 4.0, 2.5]);
    }

    #[test]
    fn kinks_are_where_a_task_meets_an_interval_with_either_end() {
        let mut kinks = Kinks::after(0.5, 1.25);
        let list: Vec<f64> = std::iter::from_fn(|| kinks.before(2.8)).collect();
        assert_eq!(list, [0.75, 1.0, 1.75, 2.0, 2.75]);
    }
}
