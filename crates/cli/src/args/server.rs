//! `--server`: the address of the service and the token of the client.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use slackline_serve::http::client::{Client, Server};

use super::path;

/// The variables that say what the flags do not.
const SERVER: &str = "SLACKLINE_SERVER";
const TOKEN: &str = "SLACKLINE_TOKEN";

/// Where the service of a machine has its socket, if its unit file is the one that comes with the program.
const OF_MACHINE: &str = "/run/slackline/socket";

/// The state directory of a service below that of runs.
pub(crate) const STATE: &str = "serve";

/// Flags of a verb that asks a service.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServerFlags {
    /// The service: a socket, a state directory or a URL [default: the local one]
    ///
    /// Such as .slackline/serve or https://flows.example.org:7070. SLACKLINE_SERVER sets another default,
    /// SLACKLINE_TOKEN the token.
    #[arg(long, value_name = "SERVER", value_parser = path::text, help_heading = "Service")]
    server: Option<String>,
    /// Certificates (PEM) to trust, instead of those of this machine
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Service")]
    trust: Option<PathBuf>,
}

impl ServerFlags {
    /// A client of the service; `states` is where runs have their state directories.
    ///
    /// # Errors
    /// There is none, or its name is none.
    pub(crate) fn client(&self, states: &Path) -> anyhow::Result<Client> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let server = match self.server.clone().or_else(|| variable(SERVER)) {
            Some(server) => server,
            None => there_is(states)?.display().to_string(),
        };
        // Read from a file of Windows, it ends with a carriage return.
        let token = variable(TOKEN).map(|token| token.trim_end().to_owned());
        let server = Server::parse(&server)?.with_token(token).trusting(self.trust.clone());
        Ok(Client::new(server)?)
    }

    /// Whether the flag says a service.
    pub(crate) fn is_given(&self) -> bool {
        self.server.is_some()
    }
}

/// The socket of a service that is there.
fn there_is(states: &Path) -> anyhow::Result<PathBuf> {
    let own = states.join(STATE).join("socket");
    let Some(found) = [own.clone(), PathBuf::from(OF_MACHINE)].into_iter().find(|path| path.exists()) else {
        bail!(
            "found no service at {} or {OF_MACHINE}: name one with --server or {SERVER}, or start one with `slackline serve`",
            own.display()
        )
    };
    Ok(found)
}

/// The number of a submission, where a run is named.
pub(crate) fn submission(named: Option<&Path>) -> Option<u64> {
    let text = named?.to_str()?;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !Path::new(text).exists() { text.parse().ok() } else { None }
}
