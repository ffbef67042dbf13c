//! The table of policies: one line each.

use crate::baseline::{edf, fair, fifo};
use crate::registry::PolicyEntry;
use crate::{auto, dmrs, flex, flowflex, ordering, rule, woha, yarn};

pub const POLICIES: &[PolicyEntry] = &[
    fifo::ENTRY,
    fair::ENTRY,
    edf::ENTRY,
    flex::ENTRY,
    flowflex::ENTRY,
    woha::HLF,
    woha::LPF,
    woha::MPF,
    dmrs::ENTRY,
    dmrs::IDENTICAL,
    dmrs::MAP_ONLY,
    ordering::MK_JR,
    ordering::MK_TCT_JR,
    rule::ENTRY,
    auto::ENTRY,
    yarn::capacity::ENTRY,
    yarn::fair::ENTRY,
];
