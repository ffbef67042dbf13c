//! The principal of a request, and its role.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The name of clients without a token on the loopback address.
pub const LOOPBACK: &str = "loopback";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name of the token, or the user at the other end of the socket.
    pub name: String,
    pub role: Role,
}

/// The role of a principal. Each role includes the permissions of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read everything.
    Look,
    /// Submit, and change their own submissions.
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
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        Self { name: name.into(), role }
    }

    /// Whether the principal may change the submissions of `user`.
    pub fn may_change(&self, user: &str) -> bool {
        self.role == Role::Operate || self.role == Role::Submit && self.name == user
    }
}
