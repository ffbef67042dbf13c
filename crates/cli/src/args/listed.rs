//! Arguments whose values have names, such as formats: help and completions list the names, and the message
//! for an unknown name does so too.

use std::ffi::OsStr;
use std::sync::Arc;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use slackline::names::unknown;

type ParseValue<T> = dyn Fn(&str) -> Result<T, String> + Send + Sync;

/// Reads a value of a table.
#[derive(Clone)]
pub(crate) struct NamedValue<T> {
    names: Arc<[PossibleValue]>,
    read: Arc<ParseValue<T>>,
}

impl<T: Clone + Send + Sync + 'static> NamedValue<T> {
    /// A function that reads a value, and the names that it may begin with.
    pub(crate) fn new<N: Into<PossibleValue>, E: ToString>(
        names: impl IntoIterator<Item = N>,
        read: impl Fn(&str) -> Result<T, E> + Send + Sync + 'static,
    ) -> Self {
        let read = move |text: &str| read(text).map_err(|error| error.to_string());
        Self { names: names.into_iter().map(Into::into).collect(), read: Arc::new(read) }
    }

    /// One of the values of a table; `kind` is what messages call its names.
    pub(crate) fn of<N: Into<PossibleValue>>(
        kind: &'static str,
        table: impl IntoIterator<Item = (N, T)>,
    ) -> Self {
        let table: Vec<(PossibleValue, T)> =
            table.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let names: Vec<PossibleValue> = table.iter().map(|(name, _)| name.clone()).collect();
        Self::new(names, move |text| {
            let found = table.iter().find(|(name, _)| name.matches(text, false));
            found.map(|(_, value)| value.clone()).ok_or_else(|| {
                let names: Vec<&str> = table.iter().map(|(name, _)| name.get_name()).collect();
                unknown(kind, text, &names)
            })
        })
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for NamedValue<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let read = Arc::clone(&self.read);
        TypedValueParser::parse_ref(&move |text: &str| read(text), command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().cloned()))
    }
}
