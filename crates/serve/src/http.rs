//! The HTTP server: sockets, authentication, permissions, requests and responses.
//!
//! In reading order:
//! - [`Setup`], [`Server`]: the addresses, and the threads that serve them;
//! - `listen`: connections, their limits and time-outs; `stall_timeout`: ends writes that make no progress;
//! - `guard`: authentication, limits and the audit note of every request;
//! - `routes`: the list of routes, and the OpenAPI [`description`];
//! - `submissions`, `explain`, `recurrences`, `service`, `events`, `page`: the handlers;
//! - `answer`: parameters and documents of requests, and errors as documents;
//! - [`tokens`], [`users`], `tls`: the identity of the client; [`audit`], [`audit_line`], `refusals`,
//!   [`metrics`]: logs and counters;
//! - [`client`]: the client of this API.
//!
//! A token identifies the client, or the user at the other end of a Unix socket. There are no cookies, and
//! tokens come only in a header, so a page of another site cannot send requests in a user's name.

mod answer;
pub mod audit;
pub mod audit_line;
pub mod client;
mod events;
mod explain;
mod guard;
mod listen;
pub mod metrics;
mod page;
mod recurrences;
pub(crate) mod refusals;
mod routes;
mod service;
mod stall_timeout;
mod submissions;
pub(crate) mod tls;
pub mod tokens;
pub mod users;

use std::net::{SocketAddr, TcpListener};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slackline_model::WallTime;
use slackline_task::base::system::try_threads;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::http::audit::Audit;
use crate::http::metrics::{Metrics, SchedulerMetrics};
use crate::http::tls::{Tls, TlsFiles};
use crate::http::tokens::Tokens;
use crate::http::users::Users;
use crate::service::handle::ServiceHandle;
use crate::service::message::StatusCallback;
use crate::state::auth::Role;

pub use routes::description;

const THREADS: usize = 2;

/// Threads that read flow files at the same time.
const READERS: usize = 8;

/// How long running requests may take after the service stops.
const LAST: Duration = Duration::from_secs(2);

/// The addresses of the service, and its access control.
#[derive(Clone)]
pub struct Setup {
    /// The Unix socket. `None`: no socket.
    pub socket: Option<Socket>,
    /// The network address. `None`: no address. Port 0 selects a free port.
    pub listen: Option<SocketAddr>,
    /// The TLS files of that address.
    pub tls: Option<TlsFiles>,
    /// The role of clients without a token on the loopback address. `None`: no access.
    pub loopback: Option<Role>,
    /// Host names of proxies that forward to the loopback address.
    pub hosts: Vec<String>,
    pub bounds: Bounds,
    /// Receives error messages for the operator.
    pub say: StatusCallback,
}

#[derive(Clone, Debug)]
pub struct Socket {
    pub path: PathBuf,
    /// The group whose members may open the socket. `None`: only this user.
    pub group: Option<u32>,
    /// The role of other users who can open the socket. `None`: no access. This user and root have all
    /// permissions.
    pub others: Option<Role>,
}

/// Limits of requests and connections.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most open connections, for the socket and for the address separately.
    pub connections: usize,
    /// The time limit of the head of a request, and of an idle connection.
    pub head: Duration,
    /// The time limit of the body of a request.
    pub body: Duration,
    /// The largest body, bytes.
    pub body_bytes: usize,
    /// The longest time in which a client may read nothing of a response.
    pub stall: Duration,
    /// The interval between heartbeats on an event stream without events.
    pub heartbeat: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 1_000,
            head: Duration::from_secs(30),
            body: Duration::from_secs(60),
            body_bytes: 16 << 20,
            stall: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// An address that other machines reach needs TLS and tokens.
    #[error("{0}: other machines can reach this address, so the service needs {1}")]
    Open(SocketAddr, String),
    /// The address or the socket cannot be bound.
    #[error("{0}: cannot listen: {1}")]
    Bind(String, std::io::Error),
    /// The path of the socket is too long for the system.
    #[error("{}: found a socket path of {} bytes, expected at most {}; choose another path with --socket", .0.display(), .0.as_os_str().len(), listen::SOCKET_MAX)]
    Long(PathBuf),
    /// The certificates or the key are invalid.
    #[error("{0}")]
    Tls(String),
    #[error(transparent)]
    Tokens(#[from] crate::http::tokens::TokenError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// The running HTTP server.
pub struct Server {
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    app: AppState,
    address: Option<SocketAddr>,
    socket: Option<PathBuf>,
}

impl Server {
    /// Starts to listen.
    ///
    /// # Errors
    /// An address that other machines reach has no TLS or no tokens, an address cannot be bound, or a file
    /// cannot be read.
    pub fn start(handle: ServiceHandle, setup: &Setup) -> Result<Self, ListenError> {
        let tokens = Tokens::new(handle.paths().tokens());
        let has_tokens = !tokens.all()?.is_empty();
        if let Some(address) = setup.listen.filter(|address| !address.ip().is_loopback()) {
            let lacks = match (setup.tls.is_some(), has_tokens) {
                (true, true) => None,
                (false, true) => Some("TLS"),
                (true, false) => Some("tokens"),
                (false, false) => Some("TLS and tokens"),
            };
            if let Some(lacks) = lacks {
                return Err(ListenError::Open(address, lacks.to_owned()));
            }
        }
        let tls = setup.tls.clone().map(Tls::new).transpose().map_err(ListenError::Tls)?;
        let audit = Audit::open(&handle.paths().audit(), &handle.paths().refused())?;
        let (stop, stopped) = watch::channel(false);
        let app = AppState(Arc::new(Inner {
            epoch: handle.query_and_wait(|state, _| state.started()).unwrap_or_else(|_| handle.now()),
            handle,
            tokens,
            users: Users::default(),
            metrics: Metrics::default(),
            audit,
            own: users::own(),
            setup: setup.clone(),
            connections: AtomicU64::new(0),
            streams: AtomicU64::new(0),
            stopped,
        }));
        try_threads(THREADS + READERS)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(READERS)
            .thread_name("http")
            .enable_all()
            .build()?;
        let router = routes::router(&app);
        let mut server = Self { runtime: Some(runtime), stop, app: app.clone(), address: None, socket: None };
        let handle = server.runtime.as_ref().expect("invariant: it was made just now").handle().clone();
        let _entered = handle.enter();
        handle.spawn(events::count(app.clone()));
        if let Some(address) = setup.listen {
            let bound = TcpListener::bind(address).and_then(|bound| {
                bound.set_nonblocking(true)?;
                Ok((bound.local_addr()?, tokio::net::TcpListener::from_std(bound)?))
            });
            let (address, bound) = bound.map_err(|error| ListenError::Bind(address.to_string(), error))?;
            server.address = Some(address);
            handle.spawn(listen::tcp(bound, tls.map(Arc::new), app.clone(), router.clone()));
        }
        if let Some(socket) = &setup.socket {
            let bound = listen::bind(socket)?;
            server.socket = Some(socket.path.clone());
            handle.spawn(listen::unix(bound, app, router));
        }
        Ok(server)
    }

    /// The network address, with its port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Stops the server: it accepts no more connections, ends streams, and finishes running requests.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if let Some(socket) = self.socket.take() {
            // The file may have been removed already.
            let _ = std::fs::remove_file(socket);
        }
        // There may be no receivers.
        let _ = self.stop.send(true);
        let app = self.app.clone();
        runtime.block_on(async {
            let ended = async {
                while app.connections.load(Ordering::SeqCst) > 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let _ = tokio::time::timeout(LAST, ended).await;
        });
        runtime.shutdown_background();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// The state that all handlers share.
#[derive(Clone)]
pub(crate) struct AppState(Arc<Inner>);

/// See [`AppState`].
pub(crate) struct Inner {
    handle: ServiceHandle,
    tokens: Tokens,
    users: Users,
    metrics: Metrics,
    audit: Audit,
    /// The user id of this process.
    own: u32,
    setup: Setup,
    connections: AtomicU64,
    streams: AtomicU64,
    /// The start of the process.
    epoch: WallTime,
    stopped: watch::Receiver<bool>,
}

impl Deref for AppState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Inner {
    fn others_count(&self) -> SchedulerMetrics {
        SchedulerMetrics {
            connections: self.connections.load(Ordering::Relaxed),
            streams: self.streams.load(Ordering::Relaxed),
            audit_lost: self.audit.lost(),
            refused_and_limited: self.audit.refused_and_limited(),
            attempts: self.handle.recent.counts(),
            decisions: self.handle.timings.decisions.clone(),
            predictions: self.handle.timings.predictions.clone(),
        }
    }
}
