//! The policies, engines and formats that the program knows by name.

use slackline::Registry;
use slackline::run::{EngineEntry, Engines};
use slackline_trace::{Importer, Importers};

/// What the program knows by name: policies, engines, formats of workloads. The default is everything of the
/// library.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    pub(crate) policies: Registry,
    pub(crate) engines: Engines,
    pub(crate) importers: Importers,
}

impl From<Registry> for Tables {
    /// These policies, with the engines and formats of the library.
    fn from(policies: Registry) -> Self {
        Self { policies, ..Self::default() }
    }
}

impl Tables {
    /// These, and one more engine, instead of one of the same name if there is one.
    #[must_use]
    pub fn with_engine(self, entry: EngineEntry) -> Self {
        Self { engines: self.engines.with(entry), ..self }
    }

    /// These, and one more format, instead of one of the same name if there is one.
    #[must_use]
    pub fn with_importer(self, importer: Importer) -> Self {
        Self { importers: self.importers.with(importer), ..self }
    }
}
