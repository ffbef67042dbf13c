//! DMRS and the two baselines of its paper (§VI).

use slackline_model::PhaseKind;

use super::lp::{Job, Side};

slackline_model::named_enum! {
    /// Which of the paper's schedulers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Variant {
        #[default]
        Full = "dmrs",
        /// All machines are assumed to have the mean speed (Identical-machine). Nothing is re-optimised, because
        /// with this assumption everything always deviates from the plan.
        Identical = "dmrs-identical",
        /// Orders and places maps only; reduces go to the first free slot (Map-only).
        MapOnly = "dmrs-map-only",
    }
}

impl Variant {
    /// Whether phases of that kind are placed ahead.
    pub(super) fn places(self, kind: PhaseKind) -> bool {
        self != Self::MapOnly || kind == PhaseKind::Map
    }

    /// The job in the view of this scheduler.
    pub(super) fn considers(self, job: Job) -> Job {
        match self {
            Self::Full | Self::Identical => job,
            Self::MapOnly => Job { reduce: Side::default(), ..job },
        }
    }
}
