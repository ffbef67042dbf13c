//! `serve`: starts the scheduler service.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use slackline::PolicySpec;
use slackline_executor::store::log::LogError;
use slackline_model::quota::Quota;
use slackline_model::{Combine, Metric};
use slackline_serve::TlsFiles;
use slackline_serve::api::AlertKind;
use slackline_serve::http::{Bounds, Server, Setup as HttpSetup, Socket, users};
use slackline_serve::service::hooks::{Address, AlertForm, Hooks};
use slackline_serve::service::paths::{ServicePaths, shared};
use slackline_serve::service::{Service, Setup, StartError};
use slackline_serve::state::Limits;
use slackline_serve::state::auth::Role;
use slackline_task::base::system::on_stop_signal;
use slackline_task::base::{activity, clock, regular_file};

use crate::args::defaults::Defaults;
use crate::args::listed::NamedValue;
use crate::args::server::STATE;
use crate::args::{EngineFlags, PolicyTimeout, TaskRules, path, policy, secret, value};
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;
use crate::verbs::service::drain::{self, Drain};

/// The number of attempts to start while another service, which may be ending, is running; one per second.
const TRIES: u32 = 10;

/// How long the service may take to stop. Then its process ends, also if threads are still blocked.
const LAST: Duration = Duration::from_secs(7);

/// The time limit on the last message.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The variable with the address of alerts, where no option gives it.
const ALERT_TO: &str = "SLACKLINE_ALERT_TO";

/// Bytes of a file with an address.
const ADDRESS_MAX: u64 = 16 << 10;

/// The interval of checks for a stop.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline serve
  slackline serve --state /var/lib/slackline --slots 16 --on-alert 'mail -s \"$SLACKLINE_MESSAGE\" ops@example.org'
  slackline serve --listen 127.0.0.1:7070 --loopback look
  slackline serve --listen 0.0.0.0:7070 --tls-certificate cert.pem --tls-key key.pem

Flows come from `slackline submit` and from schedules. `queue`, `top`, `status`, `explain`, `logs`, `submission` and `schedule` \
ask the service, through its socket in the state directory or the address of --listen, which also has a page (/) and the API \
(/openapi.json). See docs/serve.md.

All flows run as the user who started the service, so it does not start as root unless --allow-root is given. Acknowledged submissions are on disk: after ctrl-C, TERM or a crash the service \
resumes when it is started again, and repeats no finished work. If an earlier service is still ending, the new one \
waits for it for up to ten seconds.")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    /// State directory of the service [default: serve in the state directory of runs]
    #[arg(long, value_name = "DIR", help_heading = "Service")]
    state: Option<PathBuf>,
    /// Policy (see `slackline policies`)
    ///
    /// Parameters follow a colon, as in fair:by=flow.
    #[arg(long, short, value_name = "POLICY", default_value = policy::DEFAULT_POLICY, value_parser = policy::standard(), help_heading = "Policy")]
    policy: PolicySpec,
    /// Policy for predictions [default: that of --policy; auto:ends=no for auto]
    ///
    /// auto:ends=no decides when flows arrive and not when flows end. This takes a fraction of the time, and the
    /// predictions are nearly the same (docs/serve.md). A faster policy gives predictions sooner if hundreds of
    /// flows are active.
    #[arg(long, hide_short_help = true, value_name = "POLICY", value_parser = policy::standard(), help_heading = "Policy")]
    predict_with: Option<PolicySpec>,
    #[command(flatten)]
    policy_timeout: PolicyTimeout,
    /// Cost of a flow in the objective [default: its document's, else response]
    ///
    /// With tardiness the policy minimises how late flows are. With response it minimises response times,
    /// also of flows with deadlines.
    #[arg(long, hide_short_help = true, value_name = "METRIC", value_parser = value::metric(), help_heading = "Policy")]
    metric: Option<Metric>,
    /// Objective: sum or maximum of the costs
    #[arg(long, hide_short_help = true, value_name = "HOW", value_parser = value::combine(), default_value = "sum", help_heading = "Policy")]
    combine: Combine,

    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    tasks: TaskRules,

    /// Start as root, in a container: all flows run as root
    #[arg(long, hide_short_help = true, help_heading = "Service")]
    allow_root: bool,
    /// Time zone of schedules without one, such as Europe/Berlin [default: the local one]
    #[arg(long, hide_short_help = true, value_name = "ZONE", help_heading = "Service")]
    zone: Option<String>,

    #[command(flatten)]
    access: AccessFlags,

    #[command(flatten)]
    alerts: AlertFlags,

    #[command(flatten)]
    limits: LimitFlags,
}

#[derive(Debug, Subcommand)]
enum ServeCommand {
    /// Start no more submissions in a running service
    Drain(Drain),
}

/// Who may use the service.
#[derive(Args, Debug)]
#[command(next_help_heading = "Access control")]
struct AccessFlags {
    /// Unix socket [default: in the state directory]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// Group whose members may open the socket [default: none]
    #[arg(long, hide_short_help = true, value_name = "GROUP")]
    socket_group: Option<String>,
    /// Role of other users of the socket [default: none]
    #[arg(long, hide_short_help = true, value_name = "ROLE", value_parser = roles())]
    socket_role: Option<Role>,
    /// Address to listen on; other machines need TLS and tokens
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
    /// TLS certificate (PEM), read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// TLS key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Role of local users without a token [default: none]
    #[arg(long, value_name = "ROLE", value_parser = roles(), requires = "listen")]
    loopback: Option<Role>,
    /// Host name that a proxy uses for this service; may be given several times
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    host: Vec<String>,
}

/// Where alerts go.
#[derive(Args, Debug)]
#[command(next_help_heading = "Alerts")]
struct AlertFlags {
    /// Command to run for each alert
    ///
    /// Alerts: a flow is likely to be late, is late, has failed, its tasks do not take the estimated time, or a submission
    /// has finished (--alert-on).
    /// `sh -c` runs the command with SLACKLINE_ALERT (the kind), SLACKLINE_NUMBER, SLACKLINE_NAME, SLACKLINE_FLOW, SLACKLINE_USER and SLACKLINE_MESSAGE
    /// in its environment and the alert as JSON on standard input.
    #[arg(long, value_name = "COMMAND", value_parser = path::command)]
    on_alert: Option<String>,
    /// URL that gets alerts as JSON (POST); must have no secret
    ///
    /// All users of this machine see the command line: pass a URL with a password or a token in a file
    /// (--alert-to-file) or in SLACKLINE_ALERT_TO.
    #[arg(long, value_name = "URL", conflicts_with = "alert_to_file")]
    alert_to: Option<String>,
    /// File with the URL that gets alerts
    #[arg(long, value_name = "FILE")]
    alert_to_file: Option<PathBuf>,
    /// Form of the alerts that the URL gets
    ///
    /// `slack` is for incoming webhooks of Slack, `teams` for workflows of Microsoft Teams that receive webhooks.
    #[arg(long, hide_short_help = true, value_name = "FORM", default_value = "json", value_parser = NamedValue::of("form", [("json", AlertForm::Json), ("slack", AlertForm::Slack), ("teams", AlertForm::Teams)]))]
    alert_form: AlertForm,
    /// Kinds of alerts: likely_late, late, failed, estimates_off, finished [default: all but finished]
    #[arg(long, hide_short_help = true, value_name = "KINDS", value_delimiter = ',', value_parser = NamedValue::of("alert", AlertKind::ALL.map(|kind| (kind.name(), kind))), hide_possible_values = true)]
    alert_on: Vec<AlertKind>,
}

/// How large things may get.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitFlags {
    /// Submissions that are active at a time; the others wait in the queue
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = Limits::default().live, value_parser = value::whole::<usize>(1, 100_000))]
    live: usize,
    /// Submissions of one user that are active at a time
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = Limits::default().live_by_user, value_parser = value::whole::<usize>(1, 100_000))]
    live_by_user: usize,
    /// Limit on the slots that the tasks of one user hold, such as slots=8 [default: no limit]
    ///
    /// Slots beyond the quota stay free even if no other user needs them.
    #[arg(long, hide_short_help = true, value_name = "slots=N")]
    quota: Option<Quota>,
    /// Submissions that may wait in the queue
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = Limits::default().queued, value_parser = value::whole::<usize>(1, 10_000_000))]
    queued: usize,
    /// Submissions of one user that may wait in the queue
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = Limits::default().queued_by_user, value_parser = value::whole::<usize>(1, 10_000_000))]
    queued_by_user: usize,
    /// New submissions of one user per minute
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = Limits::default().rate_by_user, value_parser = value::whole::<usize>(1, 10_000_000))]
    rate_by_user: usize,
    /// Ended submissions that the service keeps
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = Limits::default().remembered, value_parser = value::whole::<usize>(1, 10_000_000))]
    keep: usize,
    /// How long the service keeps ended submissions
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "30d", value_parser = value::seconds_above_zero)]
    keep_for: f64,
}

impl LimitFlags {
    fn limits(&self) -> Limits {
        Limits {
            live: self.live,
            queued: self.queued,
            queued_by_user: self.queued_by_user,
            live_by_user: self.live_by_user,
            quota: self.quota,
            rate_by_user: self.rate_by_user,
            remembered: self.keep,
            remembered_for: (self.keep_for * 1e6) as u64,
        }
    }
}

pub(super) fn roles() -> NamedValue<Role> {
    NamedValue::of("role", Role::ALL.map(|role| (role.name(), role)))
}

pub(crate) fn run(args: &Serve, defaults: &Defaults) -> anyhow::Result<Answer> {
    if let Some(ServeCommand::Drain(args)) = &args.command {
        return drain::run(args, defaults);
    }
    if users::own() == 0 && !args.allow_root {
        bail!(
            "the service does not start as root, because all flows would run as root: start it as the user whose commands it runs \
             (`systemctl --user`, or User= in a unit of systemd), or pass --allow-root in a container"
        );
    }
    let state = args.state.clone().unwrap_or_else(|| defaults.state().join(STATE));
    ServicePaths::new(&state).prepare().context("the state directory cannot be used")?;
    let paths =
        ServicePaths::new(std::fs::canonicalize(&state).with_context(|| state.display().to_string())?);
    let setup = args.setup(paths.clone())?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    on_stop_signal(move || {
        if !flag.swap(true, Ordering::SeqCst) {
            exit_after_timeout();
        }
    })?;
    out::warn_if(shared(paths.root()));
    let Some(service) = args.started(&setup, &stop)? else {
        return Ok(stopped());
    };
    let server = Server::start(service.handle().clone(), &args.http(&paths)?)?;
    announce(args, &paths, &server);
    notify_manager("READY=1");
    while !stop.load(Ordering::SeqCst) && !service.has_ended() {
        clock::pause(PAUSE);
    }
    notify_manager("STOPPING=1");
    server.stop();
    if let Err(problem) = service.stop() {
        bail!("the service stopped because of an error: {problem}");
    }
    Ok(stopped())
}

/// Ends the process if it has not ended by itself by then. All that the service has acknowledged is on disk.
fn exit_after_timeout() {
    clock::pause(LAST);
    // Standard error may block too.
    let printing = std::thread::Builder::new().spawn(|| {
        let blocked = activity::all()
            .into_iter()
            .filter_map(|one| Some(format!("{} ({})", one.name(), one.operation()?)));
        let blocked: Vec<String> = blocked.collect();
        out::warn(format_args!(
            "stopped before {} ended; the same command resumes the unfinished flows",
            if blocked.is_empty() { "a thread".to_owned() } else { blocked.join(", ") }
        ));
    });
    for _ in 0..LAST_WORDS.as_millis() / PAUSE.as_millis() {
        if printing.as_ref().is_ok_and(|printing| !printing.is_finished()) {
            clock::pause(PAUSE);
        }
    }
    std::process::exit(0);
}

/// The message and the answer after a stop by a signal.
fn stopped() -> Answer {
    out::talk("stopped; the same command resumes the unfinished flows");
    Answer::Yes
}

fn announce(args: &Serve, paths: &ServicePaths, server: &Server) {
    let socket = args.access.socket.clone().unwrap_or_else(|| paths.socket());
    out::talk(format_args!("the service is at {} (--server {})", socket.display(), paths.root().display()));
    if let Some(address) = server.address() {
        let scheme = if args.access.tls_certificate.is_some() { "https" } else { "http" };
        out::talk(format_args!("its page is at {scheme}://{address}/"));
    }
}

impl Serve {
    fn setup(&self, paths: ServicePaths) -> anyhow::Result<Setup> {
        let policy = self.policy_timeout.of(self.policy.clone());
        input::report_remarks(std::slice::from_ref(&policy));
        let engine = self.engine.spec()?;
        let zone = match &self.zone {
            Some(zone) => jiff::tz::TimeZone::get(zone).with_context(|| format!("--zone {zone}"))?,
            None => jiff::tz::TimeZone::system(),
        };
        let mut limits = self.limits.limits();
        limits.live_by_user = limits.live_by_user.min(limits.live);
        let looks_with = self.predict_with.clone().unwrap_or_else(|| policy.for_looks());
        Ok(Setup {
            paths,
            engine,
            policy,
            looks_with,
            metric: self.metric,
            combine: self.combine,
            slowstart: self.tasks.slowstart,
            attempts_max: self.tasks.attempts,
            failure_policy: self.tasks.failure_policy,
            limits,
            hooks: self.hooks()?,
            zone,
            says: Arc::new(|line: &str| out::talk(line)),
            warns: Arc::new(|line: &str| out::warn(line)),
        })
    }

    fn hooks(&self) -> anyhow::Result<Hooks> {
        secret::refuse_in_command("--on-alert", self.alerts.on_alert.as_deref())?;
        let address = |from: &str, text: &str| {
            text.trim().parse::<Address>().map_err(|expected| anyhow::anyhow!("{from}: {expected}"))
        };
        let address = match (&self.alerts.alert_to, &self.alerts.alert_to_file, std::env::var(ALERT_TO)) {
            (Some(text), _, _) => {
                let instead = format!("--alert-to-file FILE, or the variable {ALERT_TO}");
                secret::refuse("--alert-to", text, &instead)?;
                Some(address("--alert-to", text)?)
            }
            (None, Some(file), _) => {
                let name = file.display();
                let bytes = regular_file::read(file, ADDRESS_MAX)
                    .with_context(|| format!("--alert-to-file: {name}: cannot be read"))?;
                Some(address(&format!("--alert-to-file: {name}"), &String::from_utf8_lossy(&bytes))?)
            }
            (None, None, Ok(text)) if !text.is_empty() => Some(address(ALERT_TO, &text)?),
            _ => None,
        };
        let kinds = match self.alerts.alert_on.as_slice() {
            [] => Hooks::default().kinds,
            kinds => kinds.iter().copied().collect(),
        };
        Ok(Hooks { kinds, command: self.alerts.on_alert.clone(), address, form: self.alerts.alert_form })
    }

    /// Starts the service. Returns `None` if `stop` is set first. An earlier service that is ending gets some
    /// time to do so; a service that still answers is not ending.
    fn started(&self, setup: &Setup, stop: &AtomicBool) -> anyhow::Result<Option<Service>> {
        let socket = self.access.socket.clone().unwrap_or_else(|| setup.paths.socket());
        let mut answers = 0;
        for k in 1.. {
            // Each attempt waits for a second.
            match Service::start(setup) {
                Err(StartError::Log(LogError::Busy { .. })) if stop.load(Ordering::SeqCst) => {
                    return Ok(None);
                }
                Err(StartError::Log(LogError::Busy { .. })) if k < TRIES && answers < 2 => {}
                Err(StartError::Log(error @ LogError::Busy { .. })) => {
                    return Err(error).context("another service is running there, and does not end");
                }
                started => return Ok(Some(started?)),
            }
            if k == 1 {
                let state = setup.paths.root().display();
                out::talk(format_args!(
                    "{state}: another service is running there; waiting {TRIES} s for it to end"
                ));
            }
            answers = if UnixStream::connect(&socket).is_ok() { answers + 1 } else { 0 };
        }
        unreachable!("invariant: the last try is answered")
    }

    fn http(&self, paths: &ServicePaths) -> anyhow::Result<HttpSetup> {
        let group =
            self.access.socket_group.as_deref().map(|group| {
                users::group(group).map_err(|problem| anyhow::anyhow!("--socket-group: {problem}"))
            });
        let tls = self.access.tls_certificate.clone().zip(self.access.tls_key.clone());
        Ok(HttpSetup {
            socket: Some(Socket {
                path: self.access.socket.clone().unwrap_or_else(|| paths.socket()),
                group: group.transpose()?,
                others: self.access.socket_role,
            }),
            listen: self.access.listen,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            loopback: self.access.loopback,
            hosts: self.access.host.clone(),
            bounds: Bounds::default(),
            say: Arc::new(|line: &str| out::warn(line)),
        })
    }
}

/// Tells systemd how the service is, if that has started it.
fn notify_manager(what: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    // Without a service manager nothing is sent.
    if let Ok(socket) = std::os::unix::net::UnixDatagram::unbound() {
        let _ = socket.send_to(what.as_bytes(), Path::new(&path));
    }
}
