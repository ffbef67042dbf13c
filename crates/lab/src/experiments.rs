//! The specifications that come with the program.

use crate::error::SpecError;
use crate::kinds;
use crate::papers::Paper;
use crate::spec::Spec;

/// An experiment: a name and the text of its specification.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Name, also of its directory under `experiments`.
    pub id: &'static str,
    pub text: &'static str,
    /// The claims of its paper, as text.
    pub paper: &'static str,
}

impl Experiment {
    /// The specification, parsed.
    ///
    /// # Errors
    /// An error in it; tests check those that come with the program.
    pub fn spec(&self) -> Result<Spec, SpecError> {
        Spec::parse(&format!("experiments/{}/spec.toml", self.id), self.text, &kinds::names())
    }

    /// The claims of its paper on the figures of its specification.
    ///
    /// # Errors
    /// An error in them; tests check those that come with the program.
    pub fn paper(&self, spec: &Spec) -> Result<Paper, SpecError> {
        Paper::parse(&format!("experiments/{}/paper.toml", self.id), self.paper, spec)
    }
}

/// All experiments, in the order in which they are listed.
pub fn experiments() -> &'static [Experiment] {
    macro_rules! experiment {
        ($id:literal) => {
            Experiment {
                id: $id,
                text: include_str!(concat!("../experiments/", $id, "/spec.toml")),
                paper: include_str!(concat!("../experiments/", $id, "/paper.toml")),
            }
        };
    }
    const ALL: &[Experiment] = &[
        experiment!("baselines"),
        experiment!("dmrs"),
        experiment!("job-ordering"),
        experiment!("flex"),
        experiment!("flowflex"),
        experiment!("woha"),
    ];
    ALL
}

/// The experiment of that name.
pub fn experiment(id: &str) -> Option<&'static Experiment> {
    experiments().iter().find(|experiment| experiment.id == id)
}
