//! Who asks, and what they may.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The name of those who reach this machine's own address without a token.
pub const LOOPBACK: &str = "loopback";

/// Somebody who asks something of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Their name: of a token, or of the user at the other end of the socket.
    pub name: String,
    /// What they may.
    pub role: Role,
    /// As whom what they submit runs.
    pub runs_as: RunsAs,
}

/// As whom something runs that somebody submits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunsAs {
    /// The user of the service.
    #[default]
    Service,
    /// Root, who has started it, and as whom it runs because that was said.
    Root,
    /// Another user of this machine. Names of what they submit, and its files, are their own.
    User {
        /// Their number.
        uid: u32,
        /// Their name.
        name: String,
    },
    /// Nobody, and why: they may not submit.
    Nobody(String),
}

impl RunsAs {
    /// The number of the user, if it is said.
    pub fn uid(&self) -> Option<u32> {
        match self {
            Self::User { uid, .. } => Some(*uid),
            Self::Root => Some(0),
            Self::Service | Self::Nobody(_) => None,
        }
    }

    /// What something is called that they call by a name: theirs are apart from those of all others.
    pub fn own_name(&self, name: &str) -> String {
        match self {
            Self::User { name: user, .. } => format!("{user}/{name}"),
            Self::Service | Self::Root | Self::Nobody(_) => name.to_owned(),
        }
    }
}

/// What somebody may; each role may what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look at everything.
    Look,
    /// Submit, and change what they have submitted.
    Submit,
    /// Change everything, and the service.
    Operate,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Look, Self::Submit, Self::Operate];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Submit => "submit",
            Self::Operate => "operate",
        }
    }
}

impl Who {
    /// Somebody with a role.
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        Self { name: name.into(), role, runs_as: RunsAs::Service }
    }

    /// The same, whose submissions run as somebody.
    #[must_use]
    pub fn running_as(mut self, runs_as: RunsAs) -> Self {
        self.runs_as = runs_as;
        self
    }

    /// Whether they may change what is somebody's.
    pub fn may_change(&self, user: &str) -> bool {
        self.role == Role::Operate || self.role == Role::Submit && self.name == user
    }
}
