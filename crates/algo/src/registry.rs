//! The entries of the table of policies: the description and the constructor of each policy.
//!
//! Every policy's file declares a [`PolicyEntry`], and [`crate::policies::POLICIES`] has a line for it.
//! Parameters, help, documents and the reasons for which a plan is refused follow from the entry.

use std::collections::BTreeMap;

use slackline_model::params::{Param, Settings};
use slackline_model::schedule::Rows;
use slackline_model::{Cluster, FlowId, Instance, Objective};
use slackline_policy::Policy;

use crate::woha;

/// A policy as a table of policies knows it.
#[derive(Clone, Copy)]
pub struct PolicyEntry {
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from (a key of PAPERS.md and sections).
    pub source: &'static str,
    /// What it promises on cost.
    pub guarantee: &'static str,
    /// What it can take.
    pub capabilities: Capabilities,
    pub params: &'static [Param],
    /// Makes a fresh policy for one run.
    pub make: MakePolicy,
    /// How it plans before anything runs.
    pub planner: Planner,
    /// What it does when, for who wants to know: paragraphs, a line each; empty where the rest says it.
    pub page: &'static [&'static str],
    /// Whether who asks for all policies means it too.
    pub among_all: bool,
}

impl PolicyEntry {
    /// The entry of a policy without parameters that takes flows as they are, without regard to speeds and
    /// minima, and whose plans are rehearsals. Struct update syntax changes what is different.
    pub const fn new(name: &'static str, summary: &'static str, make: MakePolicy) -> Self {
        Self {
            name,
            summary,
            source: "none",
            guarantee: "none",
            capabilities: Capabilities::PLAIN,
            params: &[],
            make,
            planner: Planner::Rehearsal,
            page: &[],
            among_all: true,
        }
    }
}

impl Capabilities {
    /// Those of most policies: flows and slots as they are, without regard to speeds and minima.
    pub const PLAIN: Self = Self {
        flows: Flows::Whole,
        map_reduce_slots: MapReduceSlots::Yes,
        speeds: Speeds::Ignored,
        minima: false,
    };
    /// The same of policies that know which machines are fast.
    pub const WITH_SPEEDS: Self = Self { speeds: Speeds::Known, ..Self::PLAIN };
}

/// Makes a policy for a cluster and an objective; it learns of flows as they arrive.
pub type MakePolicy = fn(&Cluster, &Objective, &Settings) -> Box<dyn Policy + Send>;

/// What a policy can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Flows of several jobs.
    pub flows: Flows,
    pub map_reduce_slots: MapReduceSlots,
    /// Machines of mixed speed.
    pub speeds: Speeds,
    /// Whether minima are kept.
    pub minima: bool,
}

slackline_model::named_enum! {
    /// How a policy takes flows of several jobs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Flows {
        /// As flows.
        Whole = "whole",
        /// Online, every ready job is one of its jobs, with the cost or weight of its flow; plans are for flows
        /// of one job.
        ReadyJobs = "ready-jobs",
    }
}

slackline_model::named_enum! {
    /// How a policy takes map and reduce slots.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MapReduceSlots {
        /// As they are.
        Yes = "as-they-are",
        /// As one instance for each kind.
        PerKind = "per-kind",
        /// Online, it orders by the sum of all slots and gives them out kind by kind, without a guarantee; plans
        /// are for generic slots.
        OnSum = "on-sum",
    }
}

slackline_model::named_enum! {
    /// How a policy takes machines of mixed speed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Speeds {
        /// It knows which machines are fast.
        Known = "known",
        /// It takes them as if all had the mean speed.
        Ignored = "ignored",
    }
}

/// How a policy plans.
#[derive(Clone, Copy)]
pub enum Planner {
    /// The best task schedule of all policies and of orders near it.
    Best,
    /// By simulation: the plan is what the policy does if everything goes as it is known, task by task.
    Rehearsal,
    /// Slots of each phase over time; machines must have one speed.
    Allocations(MakePlan),
    /// Which task runs where and when.
    Tasks(MakePlan),
    /// How many tasks of a flow should have been started by which time.
    Progress {
        /// What makes the requirements of each flow.
        generator: fn(&Settings) -> woha::Progress,
        /// Makes the policy so that it follows these plans, and makes those of other flows itself.
        follow: FollowPlans,
    },
}

/// Makes a policy that follows the plans it is given, and makes those of other flows itself.
pub type FollowPlans =
    fn(&Cluster, &Objective, &Settings, BTreeMap<FlowId, woha::Plan>) -> Box<dyn Policy + Send>;

/// Makes a plan; the closure is asked now and then whether to stop searching. What its capabilities exclude
/// was refused before; a policy that takes still less refuses it here.
pub type MakePlan = fn(&Instance, &Settings, &dyn Fn() -> bool) -> Result<Proposal, Refused>;

/// A plan with what its maker knows of it. Completions and costs are the judge's business.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// The rows; `None` for what the policy does if everything goes as it is known.
    pub rows: Option<Rows>,
    /// A lower bound on the cost of any schedule, those of `relax` included; `None` if the maker knows none
    /// beyond `relax::best`, which the caller then asks for.
    pub bound: Option<f64>,
    /// Which candidate won, of a policy that has several.
    pub winner: Option<String>,
    /// What is proven of any plan of this policy for this workload, beyond the bound.
    pub guarantee: Option<String>,
    /// Whether a search was not finished.
    pub cut: bool,
    /// What a plan of the policy costs that does not keep minima, of one that does.
    pub without_minima: Option<f64>,
}

/// Why a policy has no plan for an instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A flow has several jobs.
    #[error("{policy} plans only flows of one job, found {jobs} jobs in flow {flow:?} (use simulate)")]
    SeveralJobs {
        policy: &'static str,
        flow: String,
        /// How many jobs it has.
        jobs: usize,
    },
    #[error("{policy} plans only generic slots, found map and reduce slots (use simulate)")]
    MapReduceSlots { policy: &'static str },
    /// Machines differ in speed.
    #[error("{policy} plans only machines of one speed, found several speeds (use simulate)")]
    MixedSpeeds { policy: &'static str },
    /// Jobs may not give up slots, and minima may come when none are free.
    #[error(
        "{policy} plans moldable jobs with minima only if all have one phase and are released at 0, found others (use jobs=malleable)"
    )]
    Minima { policy: &'static str },
    /// A phase is given only as work, and was not cut.
    #[error("{policy} plans tasks, found phase {phase} given only as work (cut it first)")]
    NotCut { policy: &'static str, phase: String },
}
