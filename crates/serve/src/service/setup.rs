//! The configuration of a service.

use slackline::PolicySpec;
use slackline::report::headline;
use slackline::run::EngineSpec;
use slackline_model::draft::FailurePolicy;
use slackline_model::{Combine, Metric, Objective};

use crate::api::AlertKind;
use crate::service::hooks::Hooks;
use crate::service::message::StatusCallback;
use crate::service::paths::ServicePaths;
use crate::state::{Limits, ServiceFacts};

/// The configuration of a service.
#[derive(Clone)]
pub struct Setup {
    /// The state directory.
    pub paths: ServicePaths,
    pub engine: EngineSpec,
    pub policy: PolicySpec,
    /// The policy that simulates forecasts: the same, or a faster one.
    pub looks_with: PolicySpec,
    /// Replaces the cost metric of the flow files.
    pub metric: Option<Metric>,
    /// The combination of the flow costs into the objective.
    pub combine: Combine,
    /// The fraction of maps after which reduces may take slots.
    pub slowstart: f64,
    /// The most attempts of a task whose job sets no limit.
    pub attempts_max: u16,
    /// What happens to the rest of a flow when a job has failed that sets nothing.
    pub failure_policy: Option<FailurePolicy>,
    pub limits: Limits,
    /// The receivers of alerts.
    pub hooks: Hooks,
    /// The time zone of schedules without a zone.
    pub zone: jiff::tz::TimeZone,
    /// Receives status lines while the engine starts.
    pub says: StatusCallback,
    /// Receives warnings for the operator, about blocked threads.
    pub warns: StatusCallback,
}

impl Setup {
    pub(super) fn objective(&self) -> Objective {
        Objective::new(self.metric.unwrap_or(Metric::Response), self.combine)
    }

    pub(super) fn facts(&self) -> ServiceFacts {
        ServiceFacts {
            engine: self.engine.name().to_owned(),
            policy: self.policy.spec().to_owned(),
            objective: headline::objective(self.objective()),
            zone: self.zone.clone(),
            limits: self.limits.clone(),
            tells_finished: self.hooks.kinds.contains(&AlertKind::Finished),
        }
    }
}
