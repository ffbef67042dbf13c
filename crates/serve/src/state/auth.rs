//! The principal of a request, and its role.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The name of those who reach this machine's own address without a token.
pub const LOOPBACK: &str = "loopback";

/// Somebody who asks something of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Their name: of a token, or of the user at the other end of the socket.
    pub name: String,
    pub role: Role,
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
    pub const ALL: [Self; 3] = [Self::Look, Self::Submit, Self::Operate];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Submit => "submit",
            Self::Operate => "operate",
        }
    }
}

impl Principal {
    /// Somebody with a role.
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        Self { name: name.into(), role }
    }

    /// Whether they may change what is somebody's.
    pub fn may_change(&self, user: &str) -> bool {
        self.role == Role::Operate || self.role == Role::Submit && self.name == user
    }
}
