//! A policy as a value, which every function of the facade takes.
//!
//! It comes from a [`Registry`](crate::Registry) by name or from a closure ([`PolicySpec::new`]). It creates
//! a new policy for each run, from a cluster and an objective.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use slackline_algo::registry::{Capabilities, Flows, MapReduceSlots, Planner, PolicyEntry, Speeds};
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
    /// Its entry, unless it is a closure.
    entry: Option<Arc<PolicyEntry>>,
    maker: Maker,
    remarks: Vec<String>,
    /// The queues of Hadoop's CapacityScheduler, if they were read from a file.
    #[cfg(feature = "import")]
    tree: Option<Arc<crate::queue_files::Tree>>,
}

/// The constructor of a policy.
#[derive(Clone)]
enum Maker {
    Here(Arc<Make>),
    /// An external program that is started.
    #[cfg(feature = "command")]
    Elsewhere(Program),
}

slackline_model::named_enum! {
    /// The form of the plan of a policy.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum PlanForm {
        /// The slots of each phase over time. Machines must have equal speeds.
        Allocations = "allocations",
        /// The slot and the times of each task.
        Tasks = "tasks",
        /// The number of tasks of a flow that should have started by each time.
        Progress = "progress",
    }
}

impl PlanForm {
    /// The form of the plan of a planner.
    pub const fn of(planner: &Planner) -> Self {
        match planner {
            Planner::Allocations(_) => Self::Allocations,
            Planner::Tasks(_) | Planner::Rehearsal | Planner::Best => Self::Tasks,
            Planner::Progress { .. } => Self::Progress,
        }
    }

    /// Whether phases given only as work must have been cut into tasks.
    pub const fn needs_tasks(self) -> bool {
        matches!(self, Self::Tasks | Self::Progress)
    }
}

impl PolicySpec {
    /// Your own policy. Its plan is its simulation with exact durations.
    pub fn new<F>(name: &'static str, make: F) -> Self
    where
        F: Fn(&Cluster, &Objective) -> Box<dyn Policy + Send> + Send + Sync + 'static,
    {
        Self {
            spec: name.to_owned(),
            name,
            capabilities: Capabilities {
                flows: Flows::Whole,
                map_reduce_slots: MapReduceSlots::Yes,
                speeds: Speeds::Ignored,
                minima: false,
            },
            planner: Planner::Rehearsal,
            settings: Settings::defaults(&[]),
            entry: None,
            maker: Maker::Here(Arc::new(make)),
            remarks: Vec::new(),
            #[cfg(feature = "import")]
            tree: None,
        }
    }

    /// The policy of an external program, requested by `spec`.
    #[cfg(feature = "command")]
    pub(crate) fn of_program(program: Program, spec: &str) -> Self {
        Self {
            maker: Maker::Elsewhere(program),
            ..Self::of_entry(&command::ENTRY, Settings::defaults(&[]), spec)
        }
    }

    /// The policy of an entry with these settings, requested by `spec`.
    pub(crate) fn of_entry(entry: &PolicyEntry, settings: Settings, spec: &str) -> Self {
        let (make, own) = (entry.make, settings.clone());
        Self {
            spec: spec.to_owned(),
            name: entry.name,
            capabilities: entry.capabilities,
            planner: entry.planner,
            settings,
            entry: Some(Arc::new(*entry)),
            maker: Maker::Here(Arc::new(move |cluster, objective| make(cluster, objective, &own))),
            remarks: Vec::new(),
            #[cfg(feature = "import")]
            tree: None,
        }
    }

    /// The same policy with the queues of a file.
    #[cfg(feature = "import")]
    pub(crate) fn with_queues(self, queues: crate::queue_files::WithQueues) -> Self {
        Self {
            maker: Maker::Here(queues.make),
            remarks: queues.remarks,
            tree: queues.tree.map(Arc::new),
            ..self
        }
    }

    /// The same policy with another capacity of a queue in its file, in percent of the parent. The other
    /// queues of the parent share the rest in their current proportions. A maximum below the capacity is
    /// raised to it.
    ///
    /// # Errors
    /// A policy without such queues; an error of
    /// [`slackline_algo::yarn::capacity::Hierarchy::with_capacity`].
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

    /// The same policy with another value of a parameter.
    ///
    /// # Errors
    /// A policy without that parameter; a value that it does not allow; a queue file that cannot be read.
    pub fn with_parameter(&self, name: &str, value: f64) -> Result<Self, String> {
        let value = value.to_string();
        let wrong = |problem: String| format!("param:{name} = {value}: policy {}: {problem}", self.name);
        let entry = self.entry.as_deref().filter(|_| !self.is_program());
        let entry = entry.ok_or_else(|| wrong("found no parameters, expected some".to_owned()))?;
        let own: Vec<_> = self.settings.pairs().filter(|(own, _)| *own != name).collect();
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let settings = Settings::parse(entry.params, own.chain([(name, value.as_str())]));
        let settings = settings.map_err(|problem| wrong(problem.to_string()))?;
        let kept = self.spec.split(':').filter(|part| part.split('=').next() != Some(name));
        let spec = format!("{}:{name}={value}", kept.collect::<Vec<_>>().join(":"));
        let policy = Self::of_entry(entry, settings, &spec);
        #[cfg(feature = "import")]
        if let Some(queues) = crate::queue_files::read(entry, policy.settings()).map_err(&wrong)? {
            return Ok(policy.with_queues(queues));
        }
        Ok(policy)
    }

    /// The policy of an entry with default parameters.
    pub(crate) fn default_of(entry: &PolicyEntry) -> Self {
        Self::of_entry(entry, Settings::defaults(entry.params), entry.name)
    }

    /// The same policy under another name, which may contain the parameters that a closure has captured.
    #[must_use]
    pub fn called(self, spec: impl Into<String>) -> Self {
        Self { spec: spec.into(), ..self }
    }

    /// Sets the time limit for each answer of an external program. Has no effect on other policies.
    #[cfg(feature = "command")]
    #[must_use]
    pub fn with_timeout(mut self, timeout: std::time::Duration) -> Self {
        if let Maker::Elsewhere(program) = self.maker {
            self.maker = Maker::Elsewhere(program.with_timeout(timeout));
        }
        self
    }

    /// Whether it is an external program.
    pub fn is_program(&self) -> bool {
        !matches!(self.maker, Maker::Here(_))
    }

    /// Its name in results and schedules: the name with the given parameters.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Its name for use in file names: `fair-by-flow`. The name of an external program ends with a checksum,
    /// because two command lines may differ only in characters that file names cannot have.
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

    /// Remarks for its users: settings of its file that it ignores.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Its name without parameters.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its capabilities.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Its planner.
    pub fn planner(&self) -> Planner {
        self.planner
    }

    /// The value of each of its parameters.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The form of its plan.
    pub fn plan_form(&self) -> PlanForm {
        PlanForm::of(&self.planner)
    }

    /// Whether it can follow progress plans from plan files.
    pub fn follows_plans(&self) -> bool {
        matches!(self.planner, Planner::Progress { .. })
    }

    /// Whether it chooses among the schedules of all policies if all flows are known in advance.
    pub fn foresees(&self) -> bool {
        matches!(self.planner, Planner::Best)
    }

    /// The policy for predictions. `auto` then searches again only when flows arrive, and not when they end,
    /// unless `ends` is set.
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

    /// A new policy for one run on this cluster. It learns about flows when they arrive.
    pub fn build(&self, cluster: &Cluster, objective: &Objective) -> Box<dyn Policy + Send> {
        match &self.maker {
            Maker::Here(make) => make(cluster, objective),
            #[cfg(feature = "command")]
            Maker::Elsewhere(program) => program.policy(cluster, objective),
        }
    }

    /// A new policy that follows these plans and plans all other flows. A policy that follows no plans
    /// ignores them ([`Self::follows_plans`]).
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
