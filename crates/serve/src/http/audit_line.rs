//! The lines of the audit log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use slackline_model::printable::cut_line;

/// The most characters of a path or a message in a line.
const LONGEST: usize = 500;

/// An accepted or refused request in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub at: Timestamp,
    /// The user. `None` if the user is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The origin: `unix:UID`, or a network address.
    pub from: String,
    pub method: String,
    /// The path without its query, because clients may send secrets in the query.
    pub path: String,
    /// The status of the response.
    pub status: u16,
    /// The message of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Further refused requests of the same source since its previous line.
    #[serde(default, skip_serializing_if = "crate::api::is_zero")]
    pub more: u64,
}

impl Line {
    pub(super) fn is_refused(&self) -> bool {
        self.status >= 400
    }

    /// Whether the user is unknown or lacks the permission.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self.status, 401 | 403)
    }

    /// Shortens long values and escapes control characters.
    pub(super) fn cut(self) -> Self {
        let (method, path) = (cut_line(&self.method, 20), cut_line(&self.path, LONGEST));
        Self { method, path, said: self.said.map(|said| cut_line(&said, LONGEST)), ..self }
    }
}
