//! The parameters of the policy.

use super::super::lp::Form;
use super::super::order::Key;
use super::super::variant::Variant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub variant: Variant,
    /// Whether the list is rebuilt after deviations from the plan.
    pub reoptimise: Reoptimise,
    pub form: Form,
    /// The sort key of the list.
    pub key: Key,
}

/// When the list is rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reoptimise {
    /// When jobs or machines come or go, and when the best slot of the next task has changed.
    #[default]
    OnDeparture,
    /// Only when jobs or machines come or go.
    Never,
}
