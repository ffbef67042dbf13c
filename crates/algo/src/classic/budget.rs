//! Step budgets of searches.

/// Steps left, and a function that may stop the searches.
pub struct Budget<'a> {
    left: u64,
    cancel: Option<&'a dyn Fn() -> bool>,
    cut: bool,
}

impl<'a> Budget<'a> {
    /// A budget of `steps` steps. `cancel` is called before each evaluation, and makes results depend on the
    /// clock if it does.
    pub fn new(steps: u64, cancel: Option<&'a dyn Fn() -> bool>) -> Self {
        Self { left: steps, cancel, cut: false }
    }

    /// Spends `steps` steps. Returns whether an evaluation of that size may start.
    pub fn spend(&mut self, steps: usize) -> bool {
        if self.cut || self.left < steps as u64 || self.is_called_off() {
            self.cut = true;
            return false;
        }
        self.left -= steps as u64;
        true
    }

    /// Whether another evaluation may start, if its steps are known only at its end ([`Budget::charge`]).
    pub fn may_begin(&mut self) -> bool {
        let may = self.left > 0 && !self.is_called_off();
        self.cut |= !may;
        may
    }

    /// Spends the steps of an evaluation.
    pub fn charge(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }

    /// Whether no step is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Whether the caller requests a stop.
    pub fn is_called_off(&mut self) -> bool {
        let stop = self.cancel.is_some_and(|stop| stop());
        self.cut |= stop;
        stop
    }

    /// Whether a search was cut short by the budget.
    pub fn was_cut(&self) -> bool {
        self.cut
    }

    /// Records that a search was cut short.
    pub fn note_cut(&mut self) {
        self.cut = true;
    }

    /// A part of the remaining steps, for one search; [`Budget::refund`] returns the rest.
    #[must_use]
    pub fn share(&mut self, parts: u64) -> Self {
        let left = self.left / parts;
        self.left -= left;
        Budget { left, cancel: self.cancel, cut: self.cut }
    }

    /// Returns the steps that a search did not spend.
    pub fn refund(&mut self, part: &Budget<'_>) {
        self.left += part.left;
    }
}
