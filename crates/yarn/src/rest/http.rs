//! A blocking HTTP client for the web interfaces of a Hadoop cluster: time limits, retries, a limit on the
//! size of answers, and errors that name the next step.
//!
//! Hadoop answers with HTML in place of JSON while a process starts, after an application's end (a page that
//! leads to the history), and from a proxy. So the client checks the body, with any status.

use std::io::ErrorKind;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use std::{fmt, thread};

use serde_json::Value;
use slackline_task::base::activity::during;
use slackline_task::base::system::with_remedy;
use ureq::config::Config;
use ureq::http::{Response, StatusCode, Uri};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout, time};
use ureq::{Agent, Body};

use crate::clock::pause;

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No answer: unknown host, no listener, a broken connection, a time limit.
    #[error("{url}: no answer: {why}")]
    Unreachable {
        url: String,
        /// From the system or the client.
        why: String,
    },
    /// The server failed (5xx).
    #[error("{url}: the server failed ({status}): {message}")]
    Failed {
        url: String,
        /// 500 or more.
        status: u16,
        /// The message of the server.
        message: String,
    },
    /// The server refuses (4xx), or does not know the target (404).
    #[error("{url}: refused ({status}): {message}")]
    Refused {
        url: String,
        /// From 400, below 500.
        status: u16,
        /// The message of its `RemoteException`, or the begin of its answer.
        message: String,
    },
    /// The answer is not JSON, but an HTML page or empty.
    #[error("{url}: the answer is not JSON but {found}")]
    NotJson { url: String, found: String },
    /// The answer is JSON, but not in the form that Hadoop documents.
    #[error("{url}: the answer is invalid: {why}")]
    Unknown {
        url: String,
        /// The error and its place.
        why: String,
    },
    /// The answer is larger than [`Settings::largest`].
    #[error("{url}: the answer is larger than {largest} bytes")]
    TooLarge {
        url: String,
        /// The limit, in bytes.
        largest: u64,
    },
    /// The cluster requires Kerberos or TLS.
    #[error("{url}: {missing}")]
    Security {
        url: String,
        /// The requirement, that it is not supported, and an alternative.
        missing: String,
    },
}

impl HttpError {
    /// Whether the same request may succeed in a moment: no answer, or the server failed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Failed { .. })
    }

    /// Whether the server answered that it does not know the target.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
}

/// The settings of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Time limit for a connection: 2 s.
    pub connect: Duration,
    /// Time limit for a request with its answer: 5 s.
    pub total: Duration,
    /// Retries of a reading request after a temporary failure: 2.
    pub retries: u32,
    /// The pause before the first repetition; it doubles each time: 200 ms.
    pub back_off: Duration,
    /// The largest answer in bytes: 64 MiB, some 30,000 applications.
    pub largest: u64,
    /// The user of writing requests (`user.name`), for clusters with access control.
    pub user: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            total: Duration::from_secs(5),
            retries: 2,
            back_off: Duration::from_millis(200),
            largest: 64 << 20,
            user: None,
        }
    }
}

/// The host and port of a web interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    authority: String,
}

/// An address that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is not one host and port.
    #[error("`{found}` is not an address such as `yarn://HOST:8088`")]
    Malformed { found: String },
    /// It has a TLS scheme.
    #[error(
        "`{found}`: TLS is not supported; give the plain HTTP address of the ResourceManager \
         (yarn.resourcemanager.webapp.address, with yarn.http.policy HTTP_ONLY or HTTP_AND_HTTPS)"
    )]
    Tls { found: String },
}

impl Address {
    /// Reads `yarn://HOST:PORT`, `http://HOST:PORT` or `HOST:PORT`. The default port is 8088, that of the
    /// ResourceManager.
    ///
    /// # Errors
    /// [`AddressError`] describes a valid address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed { found: text.to_owned() };
        let rest = match text.split_once("://") {
            Some(("yarn" | "http", rest)) => rest,
            Some(("https" | "yarn+https", _)) => return Err(AddressError::Tls { found: text.to_owned() }),
            Some(_) => return Err(malformed()),
            None => text,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse::<u16>().map_err(|_| malformed())?)
            }
            _ => (rest, 8088),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let fine = match bare {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)),
        };
        if fine && port != 0 { Ok(Self { authority: format!("{host}:{port}") }) } else { Err(malformed()) }
    }

    /// `HOST:PORT` with another port.
    pub(crate) fn with_port(&self, port: &str) -> String {
        let host = self.authority.rsplit_once(':').map_or(&*self.authority, |(host, _)| host);
        format!("{host}:{port}")
    }

    /// `http://HOST:PORT`.
    fn base(&self) -> String {
        format!("http://{}", self.authority)
    }
}

/// `HOST:PORT`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.authority)
    }
}

/// Parameters of a request after the `?`; values are encoded.
pub type Query<'a> = &'a [(&'a str, &'a str)];

/// How many redirections are followed.
const REDIRECTS: usize = 3;

enum Answer {
    Document(Vec<u8>),
    /// A redirection. A server that answers 307 or 308 has not executed the request.
    ExternalRuns(StatusCode, String),
}

/// A client of one web interface. It keeps connections, and several threads can use it.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    base: String,
    settings: Settings,
}

impl Client {
    /// A client; nothing is sent.
    pub fn new(address: &Address, settings: Settings) -> Self {
        let config = Agent::config_builder()
            .timeout_connect(Some(settings.connect))
            .timeout_global(Some(settings.total))
            .http_status_as_error(false)
            // Clusters are reached directly, without the proxy of the environment.
            .proxy(None)
            // This client follows redirections itself, so that errors name their target.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .accept("application/json")
            .user_agent(concat!("slackline/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent = Agent::with_parts(config, DefaultConnector::default(), FallibleResolver);
        Self { agent, base: address.base(), settings }
    }

    /// The bytes of a JSON document. A temporary failure is retried.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn get(&self, path: &str, query: Query) -> Result<Vec<u8>, HttpError> {
        let get = || self.repeat(HttpError::may_pass, || self.get_once(path, query));
        during("ask", self.url(path), get)
    }

    /// The same for a process that is starting: a page in place of JSON is also a temporary failure.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn get_while_starting(&self, path: &str, query: Query) -> Result<Vec<u8>, HttpError> {
        let starts = |error: &HttpError| error.may_pass() || matches!(error, HttpError::NotJson { .. });
        self.repeat(starts, || self.get_once(path, query))
    }

    /// Sends a JSON document, without retries, since a failed request may have had an effect. A standby
    /// ResourceManager only names the active one, to which the document is then sent.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn put(&self, path: &str, document: &Value) -> Result<Vec<u8>, HttpError> {
        let document = document.to_string();
        let send = |url: &str| {
            let mut request = self.agent.put(url).content_type("application/json");
            if let Some(user) = self.settings.user.as_ref().filter(|_| !url.contains("user.name=")) {
                request = request.query("user.name", user);
            }
            self.read(url, request.send(&document))
        };
        let url = self.url(path);
        let mut answer = during("ask", &url, || send(&url))?;
        for _ in 0..REDIRECTS {
            match answer {
                Answer::ExternalRuns(StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT, to) => {
                    answer = send(&to)?;
                }
                _ => break,
            }
        }
        match answer {
            Answer::Document(bytes) => Ok(bytes),
            Answer::ExternalRuns(status, to) => {
                let message = format!("it redirects to {to}; pass the address of the active ResourceManager");
                Err(HttpError::Refused { url, status: status.as_u16(), message })
            }
        }
    }

    /// The whole URL, for messages.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn repeat(
        &self,
        passing: impl Fn(&HttpError) -> bool,
        request: impl Fn() -> Result<Vec<u8>, HttpError>,
    ) -> Result<Vec<u8>, HttpError> {
        let mut wait = self.settings.back_off;
        for _ in 0..self.settings.retries {
            match request() {
                Err(error) if passing(&error) => pause(wait),
                answer => return answer,
            }
            wait = wait.saturating_mul(2);
        }
        request()
    }

    fn get_once(&self, path: &str, query: Query) -> Result<Vec<u8>, HttpError> {
        let url = self.url(path);
        let mut answer = self.read(&url, self.agent.get(&url).query_pairs(query.iter().copied()).call())?;
        for _ in 0..REDIRECTS {
            if let Answer::ExternalRuns(_, to) = answer {
                answer = self.read(&to, self.agent.get(&to).call())?;
            }
        }
        let bytes = match answer {
            Answer::Document(bytes) => bytes,
            Answer::ExternalRuns(_, to) => {
                return Err(HttpError::NotJson { url, found: format!("a redirect loop to {to}") });
            }
        };
        match bytes.trim_ascii_start().first() {
            Some(b'{' | b'[' | b'"') => Ok(bytes),
            _ => Err(HttpError::NotJson { url, found: described(&bytes) }),
        }
    }

    /// The body of a successful answer, or the target of a redirection.
    fn read(&self, url: &str, answer: Result<Response<Body>, ureq::Error>) -> Result<Answer, HttpError> {
        let mut answer = answer.map_err(|error| self.unanswered(url, error))?;
        let status = answer.status();
        let asks =
            answer.headers().get("www-authenticate").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = answer.body_mut().with_config().limit(self.settings.largest).read_to_vec();
        if status.is_success() {
            return body.map(Answer::Document).map_err(|error| self.unanswered(url, error));
        }
        let leads = answer.headers().get("location").and_then(|value| value.to_str().ok());
        if let Some(to) = leads.filter(|_| status.is_redirection()) {
            return elsewhere(url, status, to);
        }
        Err(refusal(url, status, asks.as_deref(), &body.unwrap_or_default()))
    }

    fn unanswered(&self, url: &str, error: ureq::Error) -> HttpError {
        let url = url.to_owned();
        let why = match error {
            ureq::Error::BodyExceedsLimit(_) => {
                return HttpError::TooLarge { url, largest: self.settings.largest };
            }
            ureq::Error::Protocol(error) => {
                format!("{error}: is this the port of a web interface, without TLS?")
            }
            ureq::Error::Timeout(_) => "timed out".to_owned(),
            ureq::Error::HostNotFound => "no such host".to_owned(),
            ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
                "no program listens there (connection refused)".to_owned()
            }
            error => error.to_string(),
        };
        HttpError::Unreachable { url, why }
    }
}

/// Looks up hosts like the client's own resolver, on another thread and within a time limit. A thread that
/// cannot start is an error here; the client's own resolver panics.
#[derive(Debug)]
struct FallibleResolver;

impl Resolver for FallibleResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let (uri, config) = (uri.clone(), config.clone());
        let (sender, addresses) = sync_channel(1);
        let unlimited = NextTimeout { after: time::Duration::NotHappening, ..timeout };
        let lookup = move || {
            // The receiver has gone once the time is over.
            let _ = sender.send(DefaultResolver::default().resolve(&uri, &config, unlimited));
        };
        thread::Builder::new()
            .name("resolve".to_owned())
            .spawn(lookup)
            .map_err(|error| std::io::Error::new(error.kind(), with_remedy(error.to_string())))?;
        addresses.recv_timeout(*timeout.after).unwrap_or(Err(ureq::Error::Timeout(timeout.reason)))
    }
}

/// The target of a redirection: a standby ResourceManager names the active one.
fn elsewhere(url: &str, status: StatusCode, to: &str) -> Result<Answer, HttpError> {
    if to.starts_with("https:") {
        let missing =
            format!("it redirects to {to}, and TLS is not supported; set yarn.http.policy to HTTP_AND_HTTPS");
        return Err(HttpError::Security { url: url.to_owned(), missing });
    }
    let authority = url.match_indices('/').nth(2).map_or(url, |(end, _)| &url[..end]);
    let to = if to.starts_with('/') { format!("{authority}{to}") } else { to.to_owned() };
    Ok(Answer::ExternalRuns(status, to))
}

/// The error of an unsuccessful answer.
fn refusal(url: &str, status: StatusCode, asks: Option<&str>, body: &[u8]) -> HttpError {
    let url = url.to_owned();
    let message = remote_message(body).unwrap_or_else(|| described(body));
    let kerberos = asks.is_some_and(|asks| asks.to_ascii_lowercase().contains("negotiate"));
    // The default user of requests without one, to whom web interfaces behind Kerberos refuse everything.
    let is_default_user = status == StatusCode::FORBIDDEN && message.contains("static user");
    if status == StatusCode::UNAUTHORIZED || kerberos || is_default_user {
        let missing = if kerberos {
            "the cluster asks for Kerberos (SPNEGO), which is not supported; only clusters with simple authentication are"
        } else {
            "the cluster requires authentication; only simple authentication is supported, without Kerberos, tokens or passwords"
        };
        return HttpError::Security { url, missing: format!("{missing} ({message})") };
    }
    let status = status.as_u16();
    if status >= 500 {
        HttpError::Failed { url, status, message }
    } else {
        HttpError::Refused { url, status, message }
    }
}

/// The message of `{"RemoteException":{"exception":…,"message":…,"javaClassName":…}}`.
fn remote_message(body: &[u8]) -> Option<String> {
    let document: Value = serde_json::from_slice(body).ok()?;
    let exception = document.get("RemoteException")?;
    let field = |key| exception.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    field("message").or_else(|| field("exception")).map(shortened)
}

/// A short description of an invalid answer.
fn described(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(2_000)]);
    let text = text.trim();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    if !text.starts_with('<') {
        return format!("`{}`", shortened(text));
    }
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    match title {
        Some((title, _)) => format!("a page: `{}`", shortened(title.trim())),
        None => "a page".to_owned(),
    }
}

/// The first line, up to 300 characters.
fn shortened(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_host_and_a_port() {
        let base = |text| Address::parse(text).map(|address| address.base());
        assert_eq!(base("yarn://rm:8088").unwrap(), "http://rm:8088");
        assert_eq!(base("yarn://rm/").unwrap(), "http://rm:8088");
        assert_eq!(base("http://10.0.0.1:80").unwrap(), "http://10.0.0.1:80");
        assert_eq!(base("yarn://[::1]:9").unwrap(), "http://[::1]:9");
        assert_eq!(base("yarn://[::1]").unwrap(), "http://[::1]:8088");
        for text in [
            "",
            "yarn://",
            "yarn://:8088",
            "yarn://rm:port",
            "yarn://rm:0",
            "yarn://rm:8088/ws",
            "ftp://rm",
            "yarn://a b",
        ] {
            assert!(matches!(base(text), Err(AddressError::Malformed { .. })), "{text}");
        }
        for tls in ["https://rm:8090", "yarn+https://rm:8090"] {
            let error = base(tls).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{tls}`: TLS is not supported")), "{error}");
        }
    }

    #[test]
    fn unreadable_answers_are_described() {
        assert_eq!(described(b"  "), "nothing");
        assert_eq!(described(b"<html><head><title>Error 503</title>"), "a page: `Error 503`");
        assert_eq!(described(b"<html>"), "a page");
        assert_eq!(described("no\nmore".as_bytes()), "`no`");
    }
}
