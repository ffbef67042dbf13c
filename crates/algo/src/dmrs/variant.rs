//! DMRS and the two baselines of its paper (§VI).

use slackline_model::PhaseKind;

use super::lp::{Job, Side};

/// Which of the paper's schedulers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    #[default]
    Full,
    /// All machines are assumed to have the mean speed (Identical-machine). Nothing is re-optimised, because
    /// with this assumption everything always deviates from the plan.
    Identical,
    /// Orders and places maps only; reduces go to the first free slot (Map-only).
    MapOnly,
}

impl Variant {
    pub(super) const ALL: [Self; 3] = [Self::Full, Self::Identical, Self::MapOnly];

    /// The name in the registry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "dmrs",
            Self::Identical => "dmrs-identical",
            Self::MapOnly => "dmrs-map-only",
        }
    }

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
