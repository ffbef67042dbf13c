//! The specifications that come with the program.

use crate::error::SpecError;
use crate::kinds;
use crate::spec::Spec;

/// An experiment: a name and the text of its specification.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Name, also of its directory under `experiments`.
    pub id: &'static str,
    /// The specification.
    pub text: &'static str,
}

impl Experiment {
    /// The specification, read.
    ///
    /// # Errors
    /// What is wrong with it; those that come with the program are tested.
    pub fn spec(&self) -> Result<Spec, SpecError> {
        Spec::parse(&format!("experiments/{}/spec.toml", self.id), self.text, &kinds::names())
    }
}

/// All experiments, in the order in which they are listed.
pub fn experiments() -> &'static [Experiment] {
    const ALL: &[Experiment] = &[
        Experiment { id: "baselines", text: include_str!("../experiments/baselines/spec.toml") },
        Experiment { id: "dmrs", text: include_str!("../experiments/dmrs/spec.toml") },
        Experiment { id: "job-ordering", text: include_str!("../experiments/job-ordering/spec.toml") },
        Experiment { id: "flex", text: include_str!("../experiments/flex/spec.toml") },
        Experiment { id: "flowflex", text: include_str!("../experiments/flowflex/spec.toml") },
        Experiment { id: "woha", text: include_str!("../experiments/woha/spec.toml") },
    ];
    ALL
}

/// The experiment of that name.
pub fn experiment(id: &str) -> Option<&'static Experiment> {
    experiments().iter().find(|experiment| experiment.id == id)
}
