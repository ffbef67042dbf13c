//! The next decisions of a driver, for engines that announce them to others in advance.

use std::collections::BTreeMap;

use slackline_model::{PhaseId, SlotKind};

use crate::Driver;
use crate::engine::AsEngine;
use crate::policy::Style;

/// The next decisions of a driver.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    /// How the policy decides.
    pub style: Option<Style>,
    /// The targets of phases that could run, in slots.
    pub targets: BTreeMap<PhaseId, f64>,
    /// Phases in the order in which the policy would start them.
    pub ranking: Vec<PhaseId>,
    /// Phases that could run.
    pub ready: Vec<PhaseId>,
}

/// The length of the longest ranking.
const RANKED_MAX: usize = 16;

impl Plans {
    /// Queries the driver. O(live phases + ranked · a decision).
    pub fn of<E: AsEngine + ?Sized>(driver: &Driver<'_, '_, E>) -> Self {
        let view = driver.view();
        let slot_kinds = view.instance.cluster().slot_kinds();
        let ready: Vec<PhaseId> =
            slot_kinds.iter().flat_map(|&slot_kind| view.state.ready(slot_kind)).collect();
        let targets = ready.iter().filter_map(|&phase| Some((phase, driver.target(phase)?))).collect();
        let ranking = slot_kinds
            .iter()
            .flat_map(|&slot_kind: &SlotKind| driver.ranking(slot_kind, RANKED_MAX))
            .collect();
        Self { style: Some(driver.policy().style()), targets, ranking, ready }
    }

    /// Phases that could run, in the order in which the policy would start them.
    pub fn in_order(&self) -> impl Iterator<Item = PhaseId> + '_ {
        self.ranking.iter().chain(&self.ready).copied()
    }
}
