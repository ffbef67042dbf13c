//! The order of the jobs of a flow.

use slackline_model::{Key, PhaseId, PhaseKind};
use slackline_policy::View;

use crate::rule::online::by_tail;
use crate::rule::residual::{PhaseLeft, Residual};

/// How the jobs of a flow are ordered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum JobOrder {
    /// The longest tail first.
    #[default]
    Tails,
    /// Johnson's order of the jobs, for map slots and reduce slots: a short map phase before much other work
    /// lets the reduce slots begin early.
    Stages,
}

impl JobOrder {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Tails => Self::Stages,
            Self::Stages => Self::Tails,
        }
    }

    /// The phases of the active flows in this order. O(n log n).
    pub(super) fn phases(self, residual: &Residual, view: &View<'_>) -> Vec<PhaseId> {
        let mut phases = by_tail(residual, view);
        if let Self::Stages = self {
            let cluster = view.instance.cluster();
            let key = |&phase: &PhaseId| {
                let PhaseLeft { work, tail } = residual.phases[phase];
                let first = work / cluster.capacity(view.instance.slot_kind_of(phase));
                let rest = tail - first;
                let is_map = view.instance.phase(phase).kind == PhaseKind::Map;
                if is_map && first > rest {
                    (true, Key::new(-rest))
                } else {
                    (false, Key::new(if is_map { first } else { 0.0 }))
                }
            };
            phases.sort_by_cached_key(key);
        }
        phases
    }
}
