//! Access tokens of clients on a network. They are in a file of the state directory, which is read again when
//! it changes.
//!
//! A token is 256 random bits, so guessing is hopeless with any hash. The file has the SHA-256 of each token;
//! a slow password hash would not make it safer. Each check compares all hashes in constant time.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use slackline::atomic_file;
use slackline_model::printable::is_printable;
use slackline_task::base::file_lock::{is_at, lock_within};
use slackline_task::base::regular_file;
use slackline_trace::{Document, Format};
use subtle::{Choice, ConstantTimeEq};

use crate::lock;
use crate::state::auth::{LOOPBACK, Principal, Role};

/// The prefix of all tokens, by which secret scanners can find leaked ones.
const PREFIX: &str = "slackline_";

/// The number of random bytes of a token.
const BYTES: usize = 32;

/// How long a change waits for the lock of the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// The largest file of tokens, bytes.
const LARGEST: u64 = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("tokens {}: {problem}", .path.display())]
    File { path: PathBuf, problem: io::Error },
    /// The file is not a valid tokens file.
    #[error("{0}")]
    Document(String),
    /// The request is invalid.
    #[error("{0}")]
    Asked(String),
}

/// A stored token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The principal: submissions with this token belong to it.
    pub name: String,
    pub role: Role,
    pub created: Timestamp,
    /// The SHA-256 hash, hexadecimal.
    sha256: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRecord {
    slackline: u32,
    tokens: Vec<Token>,
}

/// Detects changes of the file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp(Option<SystemTime>, u64, u64);

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(metadata.modified().ok(), metadata.len(), metadata.ino())
    }
}

#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    read: Mutex<TokenFile>,
}

/// The content of the file at its last reading.
#[derive(Debug, Default)]
struct TokenFile {
    stamp: Option<Stamp>,
    tokens: Vec<Token>,
}

impl Tokens {
    /// The tokens of a file. The file may be missing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), read: Mutex::default() }
    }

    /// The principal of a token.
    ///
    /// # Errors
    /// The file cannot be read. Then no token is accepted.
    pub fn principal(&self, token: &str) -> Result<Option<Principal>, TokenError> {
        let hash = hash(token);
        let mut read = lock(&self.read);
        self.refresh(&mut read)?;
        let mut found = None;
        for known in &read.tokens {
            let is_it: Choice = known.sha256.as_bytes().ct_eq(hash.as_bytes());
            if bool::from(is_it) {
                found = Some(Principal::new(known.name.clone(), known.role));
            }
        }
        Ok(found)
    }

    /// All tokens.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn all(&self) -> Result<Vec<Token>, TokenError> {
        let mut read = lock(&self.read);
        self.refresh(&mut read)?;
        Ok(read.tokens.clone())
    }

    /// Creates a token, and returns it. The token is not stored, so it cannot be shown again.
    ///
    /// # Errors
    /// The name is taken or invalid, or the file cannot be written.
    pub fn add(&self, name: &str, role: Role, now: Timestamp) -> Result<String, TokenError> {
        let is_name = !name.is_empty() && name.len() <= 100 && name.chars().all(is_printable);
        if !is_name {
            let message = format!("found the name {name:?}, expected 1 to 100 printable characters");
            return Err(TokenError::Asked(message));
        }
        if name == LOOPBACK {
            let message =
                format!("the name {name} is reserved for clients of --loopback; choose another name");
            return Err(TokenError::Asked(message));
        }
        let mut random = [0; BYTES];
        getrandom::fill(&mut random)
            .map_err(|error| TokenError::Asked(format!("this machine gives no random bytes: {error}")))?;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        self.change(false, |tokens| {
            if tokens.iter().any(|known| known.name == name) {
                return Err(TokenError::Asked(format!(
                    "{name} already has a token; choose another name, or remove the token first"
                )));
            }
            tokens.push(Token { name: name.to_owned(), role, created: now, sha256: hash(&token) });
            Ok(())
        })?;
        Ok(token)
    }

    /// Removes a token. Its submissions stay.
    ///
    /// # Errors
    /// The name is unknown, or the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), TokenError> {
        self.change(true, |tokens| {
            let names: Vec<String> = tokens.iter().map(|token| token.name.clone()).collect();
            let Some(at) = names.iter().position(|known| known == name) else {
                return Err(TokenError::Asked(slackline::names::unknown("token", name, &names)));
            };
            tokens.remove(at);
            Ok(())
        })
    }

    fn refresh(&self, read: &mut TokenFile) -> Result<(), TokenError> {
        let stamp = match std::fs::metadata(&self.path) {
            Ok(metadata) => Some(Stamp::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(problem) => return Err(self.broken(problem)),
        };
        if read.stamp != stamp {
            // If the file cannot be read, no token is accepted.
            *read = TokenFile::default();
            *read = TokenFile { stamp, tokens: self.tokens()? };
        }
        Ok(())
    }

    fn tokens(&self) -> Result<Vec<Token>, TokenError> {
        let read = regular_file::open(&self.path).and_then(|file| regular_file::whole(&file, LARGEST));
        let text = match read {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(problem) => return Err(self.broken(problem)),
        };
        let document = Document::new(self.path.display().to_string(), text, Format::Json);
        let written: TokenRecord =
            document.read().map_err(|error| TokenError::Document(error.to_string()))?;
        Ok(written.tokens)
    }

    /// Changes the file under its lock. If `is_urgent`, takes the lock away from a process that holds it for
    /// more than `PATIENCE`.
    fn change(
        &self,
        is_urgent: bool,
        how: impl Fn(&mut Vec<Token>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let broken = |problem| self.broken(problem);
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(broken)?;
        }
        let path = self.path.with_extension("lock");
        loop {
            let lock = regular_file::open_private(&path).map_err(broken)?;
            match lock_within(&lock, PATIENCE) {
                Err(error) if is_urgent && error.kind() == io::ErrorKind::WouldBlock => {
                    // The former holder checks the lock before it writes.
                    std::fs::remove_file(&path).map_err(broken)?;
                    continue;
                }
                locked => locked.map_err(|problem| TokenError::File { path: path.clone(), problem })?,
            }
            let mut tokens = self.tokens()?;
            how(&mut tokens)?;
            let text = serde_json::to_string_pretty(&TokenRecord { slackline: 1, tokens })
                .expect("invariant: tokens can be written as JSON");
            if is_at(&lock, &path).map_err(broken)? {
                atomic_file::replace(&self.path, |out| writeln!(out, "{text}")).map_err(broken)?;
                return for_owner_alone(&self.path).map_err(broken);
            }
        }
    }

    fn broken(&self, problem: io::Error) -> TokenError {
        TokenError::File { path: self.path.clone(), problem }
    }
}

/// Restricts a file to its owner.
fn for_owner_alone(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().fold(String::new(), |mut out, byte| {
        use std::fmt::Write;
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn now() -> Timestamp {
        crate::timestamp(slackline_model::WallTime(7))
    }

    #[test]
    fn a_token_is_known_from_the_moment_it_is_made_to_that_of_its_removal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/tokens.json");
        let (there, elsewhere) = (Tokens::new(&path), Tokens::new(&path));
        assert_eq!(there.principal("slackline_x").unwrap(), None);
        let anna = elsewhere.add("anna", Role::Submit, now()).unwrap();
        let bert = elsewhere.add("bert", Role::Look, now()).unwrap();
        assert_ne!(anna, bert);
        assert_eq!(there.principal(&anna).unwrap(), Some(Principal::new("anna", Role::Submit)));
        assert_eq!(there.principal(&bert).unwrap(), Some(Principal::new("bert", Role::Look)));
        for wrong in ["", "slackline_", &anna[1..], &format!("{anna} "), &anna.to_lowercase()] {
            assert_eq!(there.principal(wrong).unwrap(), None, "{wrong}");
        }
        elsewhere.remove("anna").unwrap();
        assert_eq!(there.principal(&anna).unwrap(), None);
        assert_eq!(there.all().unwrap().len(), 1);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&bert) && text.contains(&hash(&bert)), "{text}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn invalid_tokens_are_refused_and_a_broken_file_has_no_principals() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        let tokens = Tokens::new(&path);
        let anna = tokens.add("anna", Role::Operate, now()).unwrap();
        let twice = tokens.add("anna", Role::Look, now()).unwrap_err().to_string();
        assert!(twice.starts_with("anna already has a token"), "{twice}");
        let unknown = tokens.remove("ana").unwrap_err().to_string();
        assert!(unknown.contains("anna"), "{unknown}");
        let reserved = tokens.add("loopback", Role::Look, now()).unwrap_err().to_string();
        assert!(reserved.contains("--loopback"), "{reserved}");
        assert!(tokens.add("", Role::Look, now()).is_err() && tokens.add("a\nb", Role::Look, now()).is_err());
        std::fs::write(&path, "{\"slackline\": 1, \"tokens\": 7}").unwrap();
        let broken = tokens.principal(&anna).unwrap_err().to_string();
        assert!(broken.contains("tokens.json:1"), "{broken}");
        assert!(tokens.principal(&anna).is_err(), "each request is refused");
    }
}
