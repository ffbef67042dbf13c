//! A policy as a value: what every function of the facade takes.
//!
//! It comes from a [`Registry`](crate::Registry) by its name, or from a closure ([`PolicySpec::new`]), and
//! makes a fresh policy for each run from a cluster and an objective.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use slackline_algo::registry::{Capabilities, Flows, Planner, PolicyEntry, Speeds, Typed};
use slackline_algo::{auto, woha};
use slackline_model::params::Settings;
use slackline_model::{Cluster, FlowId, Objective};
use slackline_policy::Policy;

#[cfg(feature = "command")]
use crate::command::{self, Program};

pub(crate) type Make = dyn Fn(&Cluster, &Objective) -> Box<dyn Policy + Send> + Send + Sync;

/// A policy with its parameters.
#[derive(Clone)]
pub struct PolicySpec {
    spec: String,
    name: &'static str,
    capabilities: Capabilities,
    planner: Planner,
    settings: Settings,
    maker: Maker,
    remarks: Vec<String>,
    /// Queues of Hadoop's CapacityScheduler that were read from a file.
    #[cfg(feature = "import")]
    tree: Option<Arc<crate::queue_files::Tree>>,
}

/// What makes a policy.
#[derive(Clone)]
enum Maker {
    Here(Arc<Make>),
    /// A program that is started.
    #[cfg(feature = "command")]
    Elsewhere(Program),
}

/// What a policy gives when it is asked for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanForm {
    /// Slots of each phase over time; machines must have one speed.
    Allocations,
    /// Which task runs where and when.
    Tasks,
    /// How many tasks of a flow should have been started by which time.
    Progress,
}

impl PlanForm {
    /// What a planner gives.
    pub const fn of(planner: &Planner) -> Self {
        match planner {
            Planner::Allocations(_) => Self::Allocations,
            Planner::Tasks(_) | Planner::Rehearsal | Planner::Best => Self::Tasks,
            Planner::Progress { .. } => Self::Progress,
        }
    }

    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocations => "allocations",
            Self::Tasks => "tasks",
            Self::Progress => "progress",
        }
    }

    /// Whether phases given only as work must have been cut into tasks.
    pub const fn needs_tasks(self) -> bool {
        matches!(self, Self::Tasks | Self::Progress)
    }
}

impl PolicySpec {
    /// Your own policy. Its plan is its simulation on what is known.
    pub fn new<F>(name: &'static str, make: F) -> Self
    where
        F: Fn(&Cluster, &Objective) -> Box<dyn Policy + Send> + Send + Sync + 'static,
    {
        Self {
            spec: name.to_owned(),
            name,
            capabilities: Capabilities {
                flows: Flows::Whole,
                typed: Typed::Yes,
                speeds: Speeds::Ignored,
                minima: false,
            },
            planner: Planner::Rehearsal,
            settings: Settings::defaults(&[]),
            maker: Maker::Here(Arc::new(make)),
            remarks: Vec::new(),
            #[cfg(feature = "import")]
            tree: None,
        }
    }

    /// A program of one's own, which `spec` asked for.
    #[cfg(feature = "command")]
    pub(crate) fn of_program(program: Program, spec: &str) -> Self {
        Self {
            maker: Maker::Elsewhere(program),
            ..Self::of_entry(&command::ENTRY, Settings::defaults(&[]), spec)
        }
    }

    /// The policy of an entry with these settings, which `spec` asked for.
    pub(crate) fn of_entry(entry: &PolicyEntry, settings: Settings, spec: &str) -> Self {
        let (make, own) = (entry.make, settings.clone());
        Self {
            spec: spec.to_owned(),
            name: entry.name,
            capabilities: entry.capabilities,
            planner: entry.planner,
            settings,
            maker: Maker::Here(Arc::new(move |cluster, objective| make(cluster, objective, &own))),
            remarks: Vec::new(),
            #[cfg(feature = "import")]
            tree: None,
        }
    }

    /// The same policy, made by what was read from a file of its own.
    #[cfg(feature = "import")]
    pub(crate) fn with_queues(self, queues: crate::queue_files::WithQueues) -> Self {
        Self {
            maker: Maker::Here(queues.make),
            remarks: queues.remarks,
            tree: queues.tree.map(Arc::new),
            ..self
        }
    }

    /// The same policy with another capacity, in percent of its parent, of a queue that its file has; the
    /// other queues of the parent share the rest as they did, and a maximum below the capacity is raised to
    /// it.
    ///
    /// # Errors
    /// A policy without such queues; what [`slackline_algo::yarn::capacity::Hierarchy::with_capacity`]
    /// refuses.
    pub fn with_capacity(&self, queue: &str, percent: f64) -> Result<Self, String> {
        #[cfg(feature = "import")]
        if let Some(tree) = &self.tree {
            let tree = tree.with_capacity(queue, percent)?;
            let maker = Maker::Here(tree.clone().make());
            return Ok(Self { maker, tree: Some(Arc::new(tree)), ..self.clone() });
        }
        Err(format!(
            "found capacity:{queue} = {percent} with {}, expected yarn-capacity:file=capacity-scheduler.xml, whose queues \
             have capacities",
            self.spec
        ))
    }

    /// The policy of an entry, its parameters at their defaults.
    pub(crate) fn default_of(entry: &PolicyEntry) -> Self {
        Self::of_entry(entry, Settings::defaults(entry.params), entry.name)
    }

    /// The same policy under another text, such as the parameters that a closure has captured.
    #[must_use]
    pub fn called(self, spec: impl Into<String>) -> Self {
        Self { spec: spec.into(), ..self }
    }

    /// The same policy with so much time for each answer, if it is a program of its own; others need none.
    #[cfg(feature = "command")]
    #[must_use]
    pub fn with_timeout(mut self, timeout: std::time::Duration) -> Self {
        if let Maker::Elsewhere(program) = self.maker {
            self.maker = Maker::Elsewhere(program.with_timeout(timeout));
        }
        self
    }

    /// Whether a program has to be started for it.
    pub fn is_program(&self) -> bool {
        !matches!(self.maker, Maker::Here(_))
    }

    /// What results and schedules call it: the name with the parameters that were asked for.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// The same as a part of the name of a file: `fair-by-flow`. That of a program ends with a check sum,
    /// because two command lines may be the same but for what no such name can have.
    pub fn file_name(&self) -> String {
        const MOST: usize = 80;
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let name = self.spec.chars().map(plain);
        if self.is_program() {
            return format!(
                "{}-{:08x}",
                name.take(MOST).collect::<String>(),
                crc32fast::hash(self.spec.as_bytes())
            );
        }
        name.collect()
    }

    /// What is to be said of it where it is used: what its file says and it does not do.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Its name without parameters.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it can take.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// How it plans before anything runs.
    pub fn planner(&self) -> Planner {
        self.planner
    }

    /// The value of each of its parameters.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What `plan` gives.
    pub fn plan_form(&self) -> PlanForm {
        PlanForm::of(&self.planner)
    }

    /// Whether it can follow progress plans that were made elsewhere.
    pub fn follows_plans(&self) -> bool {
        matches!(self.planner, Planner::Progress { .. })
    }

    /// Whether it chooses among what all policies would do where all flows are known before they come.
    pub fn foresees(&self) -> bool {
        matches!(self.planner, Planner::Best)
    }

    /// The same policy as it looks ahead, unless something else is said: where it searches again and again as
    /// flows end, it does so when they come alone.
    #[must_use]
    pub fn for_looks(&self) -> Self {
        if !self.foresees() || self.spec.contains("ends=") {
            return self.clone();
        }
        let own = self.settings.pairs().filter(|(name, _)| *name != "ends").collect::<Vec<_>>();
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let settings = Settings::parse(auto::ENTRY.params, own.chain([("ends", "no")]));
        let settings = settings.expect("invariant: what was read once is read again");
        Self::of_entry(&auto::ENTRY, settings, &format!("{}:ends=no", self.spec))
    }

    /// A fresh policy for one run on that cluster. It learns of flows when they arrive.
    pub fn build(&self, cluster: &Cluster, objective: &Objective) -> Box<dyn Policy + Send> {
        match &self.maker {
            Maker::Here(make) => make(cluster, objective),
            #[cfg(feature = "command")]
            Maker::Elsewhere(program) => program.policy(cluster, objective),
        }
    }

    /// A fresh policy that follows these plans and makes those of other flows itself. A policy that follows
    /// no plans has no use for them ([`Self::follows_plans`]).
    pub fn build_following(
        &self,
        cluster: &Cluster,
        objective: &Objective,
        plans: BTreeMap<FlowId, woha::Plan>,
    ) -> Box<dyn Policy + Send> {
        match self.planner {
            Planner::Progress { follow, .. } if !plans.is_empty() => {
                follow(cluster, objective, &self.settings, plans)
            }
            _ => self.build(cluster, objective),
        }
    }
}

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicySpec({})", self.spec)
    }
}
