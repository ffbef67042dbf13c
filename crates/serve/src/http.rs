//! The HTTP server: sockets, authentication, permissions, requests and responses.
//!
//! In reading order:
//! - [`Setup`], [`Server`]: the addresses, and the threads that serve them;
//! - `listen`: connections, their limits and time-outs; `stall_timeout`: ends writes that make no progress;
//! - `guard`: authentication, limits and the audit note of every request;
//! - `routes`: the list of routes, and the OpenAPI [`description`];
//! - `submissions`, `explain`, `recurrences`, `service`, `events`, `page`: the handlers;
//! - `answer`: parameters and documents of requests, and errors as documents;
//! - [`auth`], [`tokens`], [`users`], `tls`: who the client is; [`audit`], `refusals`, [`metrics`]: what is
//!   counted and logged;
//! - [`client`]: the client of this API.
//!
//! A token identifies the client, or the user at the other end of a Unix socket. There are no cookies, and
//! tokens come only in a header, so a page of another site cannot send requests in a user's name.

mod answer;
pub mod audit;
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

use slackline_task::base::system::try_threads;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::Moment;
use crate::http::audit::Audit;
use crate::http::metrics::{Metrics, SchedulerMetrics};
use crate::http::tls::{Tls, TlsFiles};
use crate::http::tokens::Tokens;
use crate::http::users::Users;
use crate::service::StatusCallback;
use crate::service::handle::ServiceHandle;
use crate::state::auth::{Principal, Role};
use crate::state::{Answer, Command};

pub use routes::description;

const THREADS: usize = 2;

/// Threads that read flow files at a time.
const READERS: usize = 8;

/// How long requests that are being answered may go on when the service ends.
const LAST: Duration = Duration::from_secs(2);

/// Where and how the service listens.
#[derive(Clone)]
pub struct Setup {
    /// The Unix socket, if there is to be one.
    pub socket: Option<Socket>,
    /// The address on a network, if there is to be one; a port of 0 is any that is free.
    pub listen: Option<SocketAddr>,
    /// TLS on that address.
    pub tls: Option<TlsFiles>,
    /// What those may who reach this machine's own address without a token; nothing if it is none.
    pub loopback: Option<Role>,
    /// Names by which the service is reached through something that forwards to this machine's own address.
    pub hosts: Vec<String>,
    /// What requests and connections are held to.
    pub bounds: Bounds,
    /// Says what goes wrong.
    pub say: StatusCallback,
}

#[derive(Clone, Debug)]
pub struct Socket {
    pub path: PathBuf,
    /// The group whose members may open it, by number; nobody but this user if it is none.
    pub group: Option<u32>,
    /// What other users may who can open it; nothing if it is none. This user and root may everything.
    pub others: Option<Role>,
}

/// What requests and connections are held to.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at a time, of the socket and of the address each.
    pub connections: usize,
    /// How long the head of a request may take, and a connection may wait for the next one.
    pub head: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// How long an answer may get nowhere.
    pub stall: Duration,
    /// Between two signs of life on a stream of events on which nothing happens.
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

/// Why the service cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// An address beyond this machine needs more than it has.
    #[error("{0}: found an address that others than this machine reach, expected {1} with it")]
    Open(SocketAddr, String),
    /// The address or the socket cannot be had.
    #[error("{0}: cannot listen there: {1}")]
    Bind(String, std::io::Error),
    /// The path of a socket is too long for the system.
    #[error("{}: found a path of {} bytes, expected at most {} for a socket: --socket names another", .0.display(), .0.as_os_str().len(), listen::SOCKET_MAX)]
    Long(PathBuf),
    /// Certificates or keys are wrong.
    #[error("{0}")]
    Tls(String),
    /// Tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] crate::http::tokens::TokenError),
    /// Anything else that is missing.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// The service as it listens.
pub struct Server {
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    app: AppState,
    address: Option<SocketAddr>,
    socket: Option<PathBuf>,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// An address beyond this machine without TLS and tokens; one that cannot be had; files that cannot be
    /// read.
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
            epoch: epoch(&handle),
            handle,
            tokens,
            users: Users::default(),
            metrics: Metrics::default(),
            audit,
            own: users::own(),
            others: setup.socket.as_ref().and_then(|socket| socket.others),
            loopback: setup.loopback,
            hosts: setup.hosts.clone(),
            bounds: setup.bounds,
            connections: AtomicU64::new(0),
            streams: AtomicU64::new(0),
            stopped,
            say: setup.say.clone(),
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

    /// The address on a network, with its port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Ends it: nothing new is taken in, streams end, and what is being answered is answered.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if let Some(socket) = self.socket.take() {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(socket);
        }
        // Nobody may listen.
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

/// When the process of a service started: what its events are numbered from.
fn epoch(handle: &ServiceHandle) -> Moment {
    match handle.execute_and_wait(Principal::new("http", Role::Look), Command::Service) {
        Ok(Answer::Service(service)) => crate::moment(service.started),
        _ => handle.now(),
    }
}

/// What handlers of requests share.
#[derive(Clone)]
pub(crate) struct AppState(Arc<Inner>);

/// See [`AppState`].
pub(crate) struct Inner {
    handle: ServiceHandle,
    tokens: Tokens,
    users: Users,
    metrics: Metrics,
    audit: Audit,
    /// The number of this user.
    own: u32,
    /// What other users of the socket may.
    others: Option<Role>,
    /// What those may who reach this machine's own address without a token.
    loopback: Option<Role>,
    hosts: Vec<String>,
    bounds: Bounds,
    connections: AtomicU64,
    streams: AtomicU64,
    /// When the process started.
    epoch: Moment,
    stopped: watch::Receiver<bool>,
    say: StatusCallback,
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
            attempts: self.handle.attempts(),
            decisions: self.handle.timings.decisions.clone(),
            predictions: self.handle.timings.predictions.clone(),
        }
    }
}
