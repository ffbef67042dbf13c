//! The HTTP API: sockets, who asks, what they may, and what is answered.
//!
//! In reading order:
//! - [`Setup`], [`Server`]: where it listens, and the threads that do;
//! - `listen`: connections, their limits and time-outs; `patience`: writes that get nowhere;
//! - `guard`: who asks, and what every request is held to;
//! - `routes`: what there is, and its description ([`description`]);
//! - `submissions`, `told`, `recurrences`, `service`, `events`, `page`: what is done;
//! - `answer`: documents and problems.
//!
//! Whoever asks is known by a token, or as a user of this machine at the other end of a Unix socket. Nothing is known by cookies, and
//! tokens come in a header alone, so that no page of somebody else can ask in anybody's name.

mod answer;
mod events;
mod guard;
mod listen;
mod page;
mod patience;
mod recurrences;
mod routes;
mod service;
mod submissions;
mod told;

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
use crate::audit::Audit;
use crate::desk::{Answer, Ask};
use crate::front::Front;
use crate::metrics::{Metrics, Others};
use crate::tls::{Tls, TlsFiles};
use crate::tokens::Tokens;
use crate::users::{self, Users};
use crate::who::{Role, Who};

pub use routes::description;

const THREADS: usize = 2;

/// Threads that read flow files at a time.
const READERS: usize = 8;

/// How long requests that are being answered may go on when the service ends.
const LAST: Duration = Duration::from_secs(2);

/// Says a line to whoever runs the service.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

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
    pub say: Say,
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
    Tokens(#[from] crate::tokens::TokenError),
    /// Anything else that is missing.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// The service as it listens.
pub struct Server {
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    house: House,
    address: Option<SocketAddr>,
    socket: Option<PathBuf>,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// An address beyond this machine without TLS and tokens; one that cannot be had; files that cannot be read.
    pub fn start(front: Front, setup: &Setup) -> Result<Self, ListenError> {
        let tokens = Tokens::new(front.place().tokens());
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
        let audit = Audit::open(&front.place().audit(), &front.place().refused())?;
        let (stop, stopped) = watch::channel(false);
        let house = House(Arc::new(Inner {
            epoch: epoch(&front),
            front,
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
        let router = routes::router(&house);
        let mut server =
            Self { runtime: Some(runtime), stop, house: house.clone(), address: None, socket: None };
        let handle = server.runtime.as_ref().expect("invariant: it was made just now").handle().clone();
        let _entered = handle.enter();
        handle.spawn(events::count(house.clone()));
        if let Some(address) = setup.listen {
            let bound = TcpListener::bind(address).and_then(|bound| {
                bound.set_nonblocking(true)?;
                Ok((bound.local_addr()?, tokio::net::TcpListener::from_std(bound)?))
            });
            let (address, bound) = bound.map_err(|error| ListenError::Bind(address.to_string(), error))?;
            server.address = Some(address);
            handle.spawn(listen::tcp(bound, tls.map(Arc::new), house.clone(), router.clone()));
        }
        if let Some(socket) = &setup.socket {
            let bound = listen::bind(socket)?;
            server.socket = Some(socket.path.clone());
            handle.spawn(listen::unix(bound, house, router));
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
        let house = self.house.clone();
        runtime.block_on(async {
            let ended = async {
                while house.connections.load(Ordering::SeqCst) > 0 {
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
fn epoch(front: &Front) -> Moment {
    match front.ask_and_wait(Who::new("http", Role::Look), Ask::Service) {
        Ok(Answer::Service(service)) => crate::moment(service.started),
        _ => front.now(),
    }
}

/// What handlers of requests share.
#[derive(Clone)]
pub(crate) struct House(Arc<Inner>);

/// See [`House`].
pub(crate) struct Inner {
    front: Front,
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
    say: Say,
}

impl Deref for House {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Inner {
    fn others_count(&self) -> Others {
        Others {
            connections: self.connections.load(Ordering::Relaxed),
            streams: self.streams.load(Ordering::Relaxed),
            audit_lost: self.audit.lost(),
            refused_and_limited: self.audit.refused_and_limited(),
            attempts: self.front.attempts(),
            decisions: self.front.timings.decisions.clone(),
            predictions: self.front.timings.predictions.clone(),
        }
    }
}
