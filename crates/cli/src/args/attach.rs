//! The flags of `hadoop attach` for the Hadoop cluster: one for each parameter that the library declares.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use slackline::attach::PARAMS;
use slackline_model::params::{ParamError, Settings};

use super::declared::{self, DeclaredParam, Table};

/// The parameters that were given, by their names.
#[derive(Clone, Debug)]
pub(crate) struct AttachFlags(Vec<(String, String)>);

impl AttachFlags {
    pub(crate) fn names(&self, param: &str) -> bool {
        self.0.iter().any(|(name, _)| name == param)
    }

    /// The values of all parameters.
    ///
    /// # Errors
    /// One that was given twice.
    pub(crate) fn settings(&self) -> Result<Settings, ParamError> {
        Settings::parse(PARAMS, self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

impl Args for AttachFlags {
    fn augment_args(command: Command) -> Command {
        let declared = PARAMS.iter().map(|param| DeclaredParam { owner: "yarn", params: PARAMS, param });
        declared::with_flags(command, Table::Attach, declared)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for AttachFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(declared::given(matches, Table::Attach)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
