//! Connections: accepted, limited, timed out and closed.

use std::convert::Infallible;
use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::{AppState, ListenError, Socket};
use crate::http::stall_timeout::StallTimeout;
use crate::http::tls::Tls;

/// The largest head of a request, bytes.
const HEAD_MAX: usize = 16 << 10;

/// The most header fields of a request.
const FIELDS_MAX: usize = 64;

/// The time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The pause after a failed accept, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest path of a Unix socket, bytes.
pub(super) const SOCKET_MAX: usize = 107;

/// The response when all connections are in use.
const FULL: &str = "{\"message\":\"too many connections; retry later\"}";

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peer {
    /// A user of this machine. `None` if the system does not report the user.
    Unix(Option<u32>),
    /// A client at a network address.
    Tcp {
        address: SocketAddr,
        /// Whether the client connected to the loopback address.
        is_own: bool,
    },
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(Some(uid)) => write!(f, "unix:{uid}"),
            Self::Unix(None) => write!(f, "unix"),
            Self::Tcp { address, .. } => write!(f, "{address}"),
        }
    }
}

/// Creates a socket that has its permissions from the start.
///
/// # Errors
/// The path is too long, or is not a socket.
pub(super) fn bind(socket: &Socket) -> Result<UnixListener, ListenError> {
    let Socket { path, group, .. } = socket;
    let beside = path.with_extension("new");
    if beside.as_os_str().len().max(path.as_os_str().len()) > SOCKET_MAX {
        return Err(ListenError::Long(path.clone()));
    }
    let made = || {
        if let Ok(found) = std::fs::symlink_metadata(path)
            && !found.file_type().is_socket()
        {
            return Err(std::io::Error::other("the file exists and is not a socket"));
        }
        // A leftover of an unfinished start.
        let _ = std::fs::remove_file(&beside);
        let bound = std::os::unix::net::UnixListener::bind(&beside)?;
        if group.is_some() {
            chown(&beside, None, *group)?;
        }
        std::fs::set_permissions(
            &beside,
            Permissions::from_mode(if group.is_some() { 0o660 } else { 0o600 }),
        )?;
        std::fs::rename(&beside, path)?;
        bound.set_nonblocking(true)?;
        UnixListener::from_std(bound)
    };
    made().map_err(|error| ListenError::Bind(path.display().to_string(), error))
}

/// Accepts connections on the Unix socket.
pub(super) async fn unix(bound: UnixListener, app: AppState, router: Router) {
    let room = Arc::new(Semaphore::new(app.setup.bounds.connections));
    let mut stopped = app.stopped.clone();
    loop {
        let accepted = tokio::select! {
            accepted = bound.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let uid = stream.peer_cred().ok().map(|cred| cred.uid());
                let stream = StallTimeout::new(stream, app.setup.bounds.stall);
                take_in(stream, None, Peer::Unix(uid), &room, &app, &router);
            }
            Err(error) => not_taken_in(&app, &error).await,
        }
    }
}

/// Accepts connections on the network address.
pub(super) async fn tcp(bound: TcpListener, tls: Option<Arc<Tls>>, app: AppState, router: Router) {
    let room = Arc::new(Semaphore::new(app.setup.bounds.connections));
    let is_own = bound.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let mut stopped = app.stopped.clone();
    loop {
        let accepted = tokio::select! {
            accepted = bound.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match accepted {
            Ok((stream, address)) => {
                // Without this option, responses are only slower.
                let _ = stream.set_nodelay(true);
                let stream = StallTimeout::new(stream, app.setup.bounds.stall);
                take_in(stream, tls.as_ref(), Peer::Tcp { address, is_own }, &room, &app, &router);
            }
            Err(error) => not_taken_in(&app, &error).await,
        }
    }
}

async fn not_taken_in(app: &AppState, error: &std::io::Error) {
    (app.setup.say)(&format!("a connection could not be accepted: {error}"));
    tokio::time::sleep(PAUSE).await;
}

/// Counts an open connection until it is dropped.
struct OpenConnection(AppState);

impl OpenConnection {
    fn new(app: &AppState) -> Self {
        app.connections.fetch_add(1, Ordering::SeqCst);
        Self(app.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Starts a task for a connection, or refuses it if all connections are in use.
fn take_in<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    mut stream: S,
    tls: Option<&Arc<Tls>>,
    peer: Peer,
    room: &Arc<Semaphore>,
    app: &AppState,
    router: &Router,
) {
    let Ok(permit) = room.clone().try_acquire_owned() else {
        app.metrics.refused();
        if tls.is_none() {
            tokio::spawn(async move {
                let length = FULL.len();
                let answer = format!(
                    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{FULL}"
                );
                // The connection closes, whether or not the client reads the response.
                let _ = tokio::time::timeout(PAUSE, stream.write_all(answer.as_bytes())).await;
            });
        }
        return;
    };
    let (counted, app, router) = (OpenConnection::new(app), app.clone(), router.clone());
    let Some(tls) = tls else {
        tokio::spawn(serve(stream, peer, permit, counted, app, router));
        return;
    };
    let (config, problem) = tls.config();
    if let Some(problem) = problem {
        (app.setup.say)(&problem);
    }
    tokio::spawn(async move {
        let handshake = TlsAcceptor::from(config).accept(stream);
        // A failed or timed-out handshake closes the connection.
        if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, handshake).await {
            serve(stream, peer, permit, counted, app, router).await;
        }
    });
}

/// Serves the requests of a connection.
async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    _permit: OwnedSemaphorePermit,
    _connection: OpenConnection,
    app: AppState,
    router: Router,
) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        let answer = router.clone().call(request);
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.setup.bounds.head)
        .max_buf_size(HEAD_MAX)
        .max_headers(FIELDS_MAX)
        // The date header panics if the clock of this machine is before 1970.
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut stopped = app.stopped.clone();
    // An error of the connection concerns only its client.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
