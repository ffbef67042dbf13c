//! The path of the plug-in's table, from the option `table` and the configuration of the ResourceManager.

use std::path::{Path, PathBuf};
use std::time::Duration;

use slackline_executor::run::error::EngineError;
use slackline_model::params::{Param, ParamError, Values};

use crate::rest::resource_manager::ResourceManager;

pub(crate) const TABLE: Param = Param::new(
    "table",
    "cluster",
    Values::Path("FILE"),
    "the plug-in's table; cluster: that of its yarn-site.xml, none: use only priorities",
);

/// The lifetime of a table whose writer has ended.
pub(crate) const VALID: Duration = Duration::from_secs(30);

/// The property of the ResourceManager with the path of the table.
const TABLE_PROPERTY: &str = "slackline.table";

/// The path of the table; `None` with `table=none`. Any path but that of the ResourceManager is refused,
/// since no plug-in would read it.
pub(crate) fn table_path(given: &str, manager: &ResourceManager) -> Result<Option<PathBuf>, EngineError> {
    if given == "none" {
        return Ok(None);
    }
    let Some(read) = manager.property(TABLE_PROPERTY).map_err(EngineError::other)? else {
        return Err(EngineError::other(format!(
            "found no {TABLE_PROPERTY} in the ResourceManager's configuration, expected the plug-in to be set up \
             (docs/hadoop.md); or pass table=none to use only priorities"
        )));
    };
    if given != "cluster" && real(Path::new(given)) != real(Path::new(&read)) {
        let expected = format!(
            "{read}, which the ResourceManager reads ({TABLE_PROPERTY} in its yarn-site.xml); pass table=cluster to use it"
        );
        return Err(ParamError::Value { name: TABLE.name, found: given.to_owned(), expected }.into());
    }
    Ok(Some(read.into()))
}

/// The path of a file without symbolic links, as far as it exists; the file itself may be missing.
fn real(path: &Path) -> PathBuf {
    let of_directory = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(of_directory).unwrap_or_else(|| path.to_owned())
}
