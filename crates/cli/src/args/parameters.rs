//! `--set` and `--for`: values of the parameters that a document declares.

use clap::Args;
use slackline_trace::{ParameterError, Parameters};

/// Flags of the parameters of a document.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct ParameterFlags {
    /// Value of a parameter; may be given several times
    ///
    /// The document declares parameters with defaults under [parameters]; in `run` sections {NAME} stands
    /// for the value.
    #[arg(long, value_name = "NAME=VALUE", value_parser = named, help_heading = "Parameters")]
    set: Vec<(String, String)>,
    /// Values of a parameter: one flow for each
    ///
    /// Each flow that uses the parameter becomes one flow for each value, named FLOW#VALUE; the others stay
    /// as they are. VALUES are a list such as north,south, days such as 2026-03-01..2026-03-07 or whole
    /// numbers such as 1..24.
    #[arg(long = "for", value_name = "NAME=VALUES", value_parser = named, help_heading = "Parameters")]
    each: Option<(String, String)>,
}

fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

impl ParameterFlags {
    /// The values.
    ///
    /// # Errors
    /// Values that are none, with their flag; a parameter that is given twice.
    pub(crate) fn parameters(&self) -> anyhow::Result<Parameters> {
        let flagged = |flag: &str, error: ParameterError| anyhow::anyhow!("--{flag}: {error}");
        let mut parameters = Parameters::default();
        for (name, value) in &self.set {
            parameters.set(name, value).map_err(|error| flagged("set", error))?;
        }
        if let Some((name, values)) = &self.each {
            parameters.for_each(name, values).map_err(|error| flagged("for", error))?;
        }
        Ok(parameters)
    }
}
