//! A client of the HTTP API, over the Unix socket of a service or over a network. The commands of the program
//! use it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use slackline_model::shell;
use slackline_task::base::system::try_threads;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::api::{Event, Problem};
use crate::http::tls::trusting;

/// The time limit of a connection attempt.
const CONNECT: Duration = Duration::from_secs(10);

/// The name of the socket in a state directory.
const SOCKET: &str = "socket";

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The name of the service is invalid.
    #[error("{0}")]
    Server(String),
    #[error("no service answers at {0}: {1}")]
    Unreachable(String, String),
    /// The connection ended before the response. The service may or may not have executed the command.
    #[error("{0}: the connection ended before the service answered: {1}")]
    Broken(String, String),
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The value found, and the value expected.
        message: String,
    },
    /// The server is not a Slackline service.
    #[error("{0}: the answer is not from a Slackline service: {1}")]
    Foreign(String, String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Unix(PathBuf),
    Tcp { host: String, port: u16, is_secret: bool },
}

/// The address of a service, and the credentials of the client.
#[derive(Clone, Debug)]
pub struct Server {
    target: Target,
    /// The name of the service in messages.
    name: String,
    token: Option<String>,
    trusted: Option<PathBuf>,
}

impl Server {
    /// Parses the path of a socket or state directory, or an address such as
    /// `https://flows.example.org:7070`.
    ///
    /// # Errors
    /// The name is none of these.
    pub fn parse(name: &str) -> Result<Self, ClientError> {
        let target = match name.split_once("://") {
            Some((scheme, rest)) => address(name, scheme, rest)?,
            None if name.is_empty() => return Err(wrong(name)),
            None => {
                shell::check_path(name).map_err(|expected| {
                    ClientError::Server(format!("server: found {name:?}, expected {expected}"))
                })?;
                let path = Path::new(name);
                if is_bare_address(name) && !path.exists() {
                    return Err(ClientError::Server(format!(
                        "server: found {name:?}, expected http://{name} or https://{name}, or the path of an existing socket"
                    )));
                }
                Target::Unix(if path.is_dir() { path.join(SOCKET) } else { path.to_owned() })
            }
        };
        Ok(Self { target, name: name.to_owned(), token: None, trusted: None })
    }

    /// Authenticates with a token.
    #[must_use]
    pub fn with_token(mut self, token: Option<String>) -> Self {
        self.token = token;
        self
    }

    /// Trusts the certificates of a file in place of those of this machine.
    #[must_use]
    pub fn trusting(mut self, file: Option<PathBuf>) -> Self {
        self.trusted = file;
        self
    }

    /// Whether the service is reached over TCP.
    pub fn is_remote(&self) -> bool {
        matches!(self.target, Target::Tcp { .. })
    }

    /// Adds a hint to the message of a refusal without a token. A socket needs no token, because the service
    /// knows its user.
    fn hinted(&self, status: StatusCode, message: String) -> String {
        let is_for_who_asks = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_for_who_asks && self.token.is_none() && self.is_remote() {
            return format!("{message} (set SLACKLINE_TOKEN to a token)");
        }
        message
    }

    fn host(&self) -> String {
        match &self.target {
            Target::Unix(_) => "localhost".to_owned(),
            Target::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Target::Tcp { host, port, .. } => format!("{host}:{port}"),
        }
    }
}

/// Whether a name is a host and a port without a scheme.
fn is_bare_address(name: &str) -> bool {
    let parts = name.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains('/'));
    parts.is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

fn wrong(name: &str) -> ClientError {
    ClientError::Server(format!(
        "server: found {name:?}, expected a socket, a state directory, http://HOST:PORT or https://HOST:PORT"
    ))
}

fn address(name: &str, scheme: &str, rest: &str) -> Result<Target, ClientError> {
    let is_secret = match scheme {
        "http" => false,
        "https" => true,
        "unix" => return Ok(Target::Unix(PathBuf::from(rest))),
        _ => return Err(wrong(name)),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains('@') {
        let message = "server: found a user or a password in the address, expected a socket, a state directory, http://HOST:PORT or https://HOST:PORT, with a token in SLACKLINE_TOKEN";
        return Err(ClientError::Server(message.to_owned()));
    }
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(|| wrong(name))?)),
        None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| wrong(name))?,
        None => {
            if is_secret {
                443
            } else {
                80
            }
        }
    };
    if host.is_empty() || host.contains(['/', '?']) {
        return Err(wrong(name));
    }
    Ok(Target::Tcp { host: host.to_owned(), port, is_secret })
}

/// A client of a service. It sends one request after another over one connection.
pub struct Client {
    server: Server,
    runtime: Runtime,
    tls: Option<Arc<ClientConfig>>,
    open: Option<SendRequest<Full<Bytes>>>,
}

#[derive(Clone, Debug)]
struct PendingRequest {
    method: Method,
    path: String,
    body: Option<Bytes>,
}

impl Client {
    /// A client that has not connected yet.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub fn new(server: Server) -> Result<Self, ClientError> {
        let is_secret = matches!(server.target, Target::Tcp { is_secret: true, .. });
        let tls = is_secret.then(|| trusting(server.trusted.as_deref())).transpose();
        let tls = tls.map_err(ClientError::Server)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ClientError::Server(error.to_string()))?;
        Ok(Self { server, runtime, tls, open: None })
    }

    /// Gets a document.
    ///
    /// # Errors
    /// No service answers, or it refuses the request.
    pub fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, None::<&()>)
    }

    /// Gets a text.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn text(&mut self, path: &str) -> Result<String, ClientError> {
        let asked = PendingRequest { method: Method::GET, path: path.to_owned(), body: None };
        let bytes = self.whole(&asked)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Sends a POST request, and returns the document of the response.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        self.call(Method::POST, path, body)
    }

    /// Sends a PATCH request, and returns the document of the response.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn patch<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.call(Method::PATCH, path, Some(body))
    }

    /// Sends a DELETE request, and returns the document of the response.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn delete<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        self.call(Method::DELETE, path, None::<&()>)
    }

    /// Calls `each` for every event until it returns false or the stream ends. The stream starts with the
    /// kept events after the event id `after`.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn events(
        &mut self,
        after: Option<&str>,
        mut each: impl FnMut(&str, Event) -> bool,
    ) -> Result<(), ClientError> {
        let query = after.map(|after| query(&[("after", Some(after))])).unwrap_or_default();
        let asked =
            PendingRequest { method: Method::GET, path: format!("/api/v1/events{query}"), body: None };
        let mut answer = self.answer(&asked)?;
        self.open = None;
        let mut lines = Lines::default();
        loop {
            let Some(frame) = self.runtime.block_on(answer.body_mut().frame()) else { return Ok(()) };
            let Ok(frame) = frame else { return Ok(()) };
            for (id, event) in lines.read(frame.data_ref().map_or(&[], |data| &data[..])) {
                if !each(&id, event) {
                    return Ok(());
                }
            }
        }
    }

    fn call<T: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let body = body.map(|body| {
            let text =
                serde_json::to_vec(body).expect("invariant: documents of the API can be written as JSON");
            Bytes::from(text)
        });
        let bytes = self.whole(&PendingRequest { method, path: path.to_owned(), body })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ClientError::Foreign(self.server.name.clone(), error.to_string()))
    }

    /// The whole body of a successful response.
    fn whole(&mut self, asked: &PendingRequest) -> Result<Bytes, ClientError> {
        let answer = self.answer(asked)?;
        self.body(answer)
    }

    fn body(&self, answer: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = self.runtime.block_on(answer.into_body().collect());
        let broken = |error: hyper::Error| ClientError::Broken(self.server.name.clone(), error.to_string());
        Ok(body.map_err(broken)?.to_bytes())
    }

    /// A successful response.
    fn answer(&mut self, asked: &PendingRequest) -> Result<Response<Incoming>, ClientError> {
        let answer = self.sent(asked)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let bytes = self.body(answer)?;
        let message = match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => problem.message,
            Err(_) => return Err(ClientError::Foreign(self.server.name.clone(), status.to_string())),
        };
        let message = self.server.hinted(status, message);
        Err(ClientError::Refused { status: status.as_u16(), message })
    }

    /// Sends a request. If the kept connection has ended meanwhile, it connects again, once.
    fn sent(&mut self, asked: &PendingRequest) -> Result<Response<Incoming>, ClientError> {
        let broken =
            |name: &str, error: hyper::Error| ClientError::Broken(name.to_owned(), error.to_string());
        let name = self.server.name.clone();
        if let Some(mut open) = self.open.take() {
            let request = self.request(asked);
            let answered = self.runtime.block_on(async {
                open.ready().await.ok()?;
                Some(open.try_send_request(request).await)
            });
            match answered {
                Some(Ok(answer)) => {
                    self.open = Some(open);
                    return Ok(answer);
                }
                // The service may have executed a request that was sent. Only a GET request is repeated.
                Some(Err(mut error)) => {
                    let is_out = error.take_message().is_none();
                    if is_out && asked.method != Method::GET {
                        return Err(broken(&name, error.into_error()));
                    }
                }
                None => {}
            }
        }
        let mut open = self.connected()?;
        let request = self.request(asked);
        let answer = self.runtime.block_on(open.send_request(request));
        let answer = answer.map_err(|error| broken(&name, error))?;
        self.open = Some(open);
        Ok(answer)
    }

    fn request(&self, asked: &PendingRequest) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(&asked.method)
            .uri(&asked.path)
            .header(header::HOST, self.server.host());
        if let Some(token) = &self.server.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if asked.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = Full::new(asked.body.clone().unwrap_or_default());
        request.body(body).unwrap_or_else(|error| unreachable!("invariant: names are encoded: {error}"))
    }

    fn connected(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let unreachable = |error: String| ClientError::Unreachable(self.server.name.clone(), error);
        self.runtime.block_on(async {
            let connected = tokio::time::timeout(CONNECT, self.connect()).await;
            match connected {
                Ok(connected) => connected.map_err(unreachable),
                Err(_) => Err(unreachable(format!("found nothing within {} s", CONNECT.as_secs()))),
            }
        })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let words = |error: std::io::Error| error.to_string();
        match &self.server.target {
            Target::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                spoken(stream.map_err(|error| format!("{}: {error}", path.display()))?).await
            }
            Target::Tcp { host, port, .. } => {
                // Tokio resolves host names on a thread.
                try_threads(1).map_err(words)?;
                let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(words)?;
                // Without this option, requests are only slower.
                let _ = stream.set_nodelay(true);
                let Some(tls) = &self.tls else { return spoken(stream).await };
                let name = ServerName::try_from(host.clone()).map_err(|error| error.to_string())?;
                let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
                spoken(stream.map_err(|error| secret_words(&error, &self.server.host()))?).await
            }
        }
    }
}

/// The message of a failed TLS handshake. A server without TLS answers with an invalid TLS message.
fn secret_words(error: &std::io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<tokio_rustls::rustls::Error>());
    match inner {
        Some(tokio_rustls::rustls::Error::InvalidMessage(_)) => {
            format!("the service answers without TLS; its address may be http://{host}")
        }
        _ => error.to_string(),
    }
}

/// Starts HTTP on a connection.
async fn spoken<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
) -> Result<SendRequest<Full<Bytes>>, String> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // The pending request reports the end of the connection.
    tokio::spawn(connection);
    Ok(sender)
}

/// A query string with its question mark. Parameters without a value are omitted.
pub fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { query } else { format!("?{query}") }
}

/// Encodes a name as a segment of a path.
pub fn part(name: &str) -> String {
    form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

/// A parser of server-sent events.
#[derive(Default)]
struct Lines {
    /// An incomplete line.
    rest: Vec<u8>,
    id: String,
}

impl Lines {
    fn read(&mut self, bytes: &[u8]) -> Vec<(String, Event)> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]);
            if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut self.id);
            } else if let Some(data) = line.strip_prefix("data: ")
                && let Ok(event) = serde_json::from_str(data)
            {
                events.push((self.id.clone(), event));
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_tls_is_distinguished_from_a_missing_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let service = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
            // The test waits for the client's bytes: unread bytes would reset the connection.
            let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
        });
        let mut client = Client::new(Server::parse(&format!("https://{host}")).unwrap()).unwrap();
        let error = client.get::<Event>("/x").unwrap_err().to_string();
        assert!(error.ends_with(&format!("its address may be http://{host}")), "{error}");
        service.join().unwrap();
    }

    #[test]
    fn servers_are_sockets_directories_and_addresses() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| Server::parse(name).map(|server| (server.host(), server.target));
        let unix = |path: &Path| ("localhost".to_owned(), Target::Unix(path.to_owned()));
        assert_eq!(of(&dir.path().display().to_string()).unwrap(), unix(&dir.path().join("socket")));
        assert_eq!(of("/run/x/socket").unwrap(), unix(Path::new("/run/x/socket")));
        assert_eq!(of("unix:///run/x").unwrap(), unix(Path::new("/run/x")));
        let tcp = |host: &str, port, is_secret| Target::Tcp { host: host.to_owned(), port, is_secret };
        assert_eq!(of("http://a.b:70").unwrap(), ("a.b:70".to_owned(), tcp("a.b", 70, false)));
        assert_eq!(of("https://a.b/").unwrap(), ("a.b:443".to_owned(), tcp("a.b", 443, true)));
        assert_eq!(of("https://[::1]:8").unwrap(), ("[::1]:8".to_owned(), tcp("::1", 8, true)));
        for bare in ["127.0.0.1:7070", "flows.example.org:443", "[::1]:8"] {
            let refused = of(bare).unwrap_err().to_string();
            assert!(refused.contains(&format!("expected http://{bare} or https://{bare}")), "{refused}");
        }
        assert_eq!(of("dir/x:7").unwrap(), unix(Path::new("dir/x:7")));
        for wrong in [
            "",
            "ftp://x",
            "http://",
            "http://x:y",
            "http://x:70000",
            "http://a@b",
            "http://a/b",
            "http://[::1]8",
        ] {
            assert!(of(wrong).unwrap_err().to_string().contains("expected a socket"), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_spoken_of_where_one_may_be_missing() {
        let advises = |name: &str, token: Option<&str>, status| {
            let server = Server::parse(name).unwrap().with_token(token.map(str::to_owned));
            server.hinted(status, "no".to_owned()) != "no"
        };
        assert!(advises("http://a", None, StatusCode::UNAUTHORIZED));
        assert!(advises("https://a", None, StatusCode::FORBIDDEN));
        assert!(!advises("https://a", Some("t"), StatusCode::FORBIDDEN));
        assert!(!advises("https://a", None, StatusCode::NOT_FOUND));
        assert!(!advises("/run/x/socket", None, StatusCode::FORBIDDEN));
    }

    #[test]
    fn names_are_encoded() {
        assert_eq!(part("a b/c?d"), "a%20b%2Fc%3Fd");
        assert_eq!(query(&[("a", Some("x y&z")), ("b", None), ("c", Some("1"))]), "?a=x+y%26z&c=1");
        assert_eq!(query(&[("a", None)]), "");
    }

    #[test]
    fn events_are_read_in_pieces_of_any_size() {
        let event = Event {
            id: 3,
            at: crate::timestamp(slackline_model::WallTime(5)),
            kind: "late".into(),
            number: Some(2),
            name: None,
            flow: None,
            message: "ä is late".into(),
        };
        let data = serde_json::to_string(&event).unwrap();
        let text = format!(
            "retry: 1\nevent: begin\ndata: {{\"complete\":true}}\n\n:\n\nid: 9-3\nevent: late\ndata: {data}\n\n"
        );
        for piece in [1, 2, 7, text.len()] {
            let mut lines = Lines::default();
            let read: Vec<_> = text.as_bytes().chunks(piece).flat_map(|piece| lines.read(piece)).collect();
            assert_eq!(read, [("9-3".to_owned(), event.clone())], "{piece}");
        }
    }
}
