//! Alerts that leave the service: a command, or a POST to a web address. A thread tries each up to 4 times.
//! An event reports that all attempts failed.

use std::collections::BTreeSet;
use std::fmt;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::json;
use slackline::run::{HookProcess, variable};
use slackline_task::base::clock;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::api::{Alert, AlertKind};

/// The most attempts to send an alert, and the pause after the first one. The pause doubles each time.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);

/// The time limit of a command or a response.
const PATIENCE: Duration = Duration::from_secs(30);

/// The form of the message that an address gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlertForm {
    /// The alert as JSON.
    #[default]
    Json,
    /// A message for an incoming webhook of Slack.
    Slack,
    /// An adaptive card for a workflow of Microsoft Teams.
    Teams,
}

impl AlertForm {
    fn text(self, alert: &Alert) -> String {
        let document = match self {
            Self::Json => serde_json::to_value(alert).expect("invariant: an alert can be written as JSON"),
            Self::Slack => {
                // The three characters that Slack interprets everywhere.
                let escaped = line(alert).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                json!({ "text": escaped })
            }
            Self::Teams => {
                let block = json!({ "type": "TextBlock", "text": line(alert), "wrap": true });
                let card = json!({ "type": "AdaptiveCard", "version": "1.2", "body": [block] });
                let kind = "application/vnd.microsoft.card.adaptive";
                json!({ "type": "message", "attachments": [{ "contentType": kind, "content": card }] })
            }
        };
        document.to_string()
    }
}

/// `late: submission 17 night, flow load: its deadline has passed`.
fn line(alert: &Alert) -> String {
    let Alert { kind, number, name, flow, message, .. } = alert;
    let flow = if flow.is_empty() { String::new() } else { format!(", flow {flow}") };
    format!("{}: submission {number} {name}{flow}: {message}", kind.name())
}

/// The receivers of alerts.
#[derive(Clone, Debug)]
pub struct Hooks {
    /// The kinds of alerts that are sent.
    pub kinds: BTreeSet<AlertKind>,
    /// A command for `sh -c`. Its environment has SLACKLINE_ALERT (the kind), SLACKLINE_NUMBER,
    /// SLACKLINE_NAME, SLACKLINE_FLOW, SLACKLINE_USER and SLACKLINE_MESSAGE. Its standard input is the alert
    /// as JSON.
    pub command: Option<String>,
    /// The address to which the alert is sent (POST).
    pub address: Option<Address>,
    pub form: AlertForm,
}

impl Default for Hooks {
    /// No receivers, and all kinds but the one for finished submissions.
    fn default() -> Self {
        let kinds = AlertKind::ALL.into_iter().filter(|kind| *kind != AlertKind::Finished).collect();
        Self { kinds, command: None, address: None, form: AlertForm::Json }
    }
}

/// A web address for alerts, `http://…` or `https://…`. Its path, query and password may be secret, so it
/// displays only its scheme and host.
#[derive(Clone)]
pub struct Address(Uri);

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_one = |uri: &Uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
        };
        let uri = text.parse().ok().filter(is_one);
        uri.map(Self).ok_or("expected http://HOST/… or https://HOST/…")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/…", self.0.scheme_str().unwrap_or_default(), self.0.host().unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Hooks {
    pub fn is_empty(&self) -> bool {
        self.command.is_none() && self.address.is_none()
    }

    /// Sends alerts until all senders are gone. Once the service has stopped, the remaining alerts have two
    /// seconds together. Calls `failed` for each alert that could not be sent.
    pub fn work(&self, alerts: &Receiver<Alert>, is_over: &AtomicBool, failed: &dyn Fn(&Alert, String)) {
        let mut patience = Deadline { is_over, left: GRACE };
        while let Ok(alert) = alerts.recv() {
            if self.kinds.contains(&alert.kind) {
                self.tell(&alert, &mut patience, &|problem| failed(&alert, problem));
            }
        }
    }

    fn tell(&self, alert: &Alert, patience: &mut Deadline<'_>, failed: &dyn Fn(String)) {
        if let Some(command) = &self.command
            && let Err(problem) =
                patience.tried(|patience| run(command, alert, &AlertForm::Json.text(alert), patience))
        {
            failed(format!("the command for alerts: {problem}"));
        }
        if let Some(address) = &self.address
            && let Err(problem) = patience.tried(|patience| send(address, &self.form.text(alert), patience))
        {
            failed(format!("{address}: {problem}"));
        }
    }
}

/// The remaining time for alerts: unlimited while the service runs, then `GRACE` in total.
struct Deadline<'a> {
    is_over: &'a AtomicBool,
    left: Duration,
}

impl Deadline<'_> {
    /// Waits for `step`. Returns false if no time is left.
    fn wait(&mut self, step: Duration) -> bool {
        if self.is_over.load(Ordering::SeqCst) {
            if self.left.is_zero() {
                return false;
            }
            self.left = self.left.saturating_sub(step);
        }
        clock::pause(step);
        true
    }

    /// Tries an action up to `TRIES` times, or once after the service has stopped.
    fn tried(&mut self, mut what: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            let tried = what(self);
            if tried.is_ok() || self.is_over.load(Ordering::SeqCst) {
                return tried;
            }
            for _ in 0..pause.as_millis() / STEP.as_millis() {
                if !self.wait(STEP) {
                    return tried;
                }
            }
            pause *= 2;
        }
        what(self)
    }
}

/// Runs a command, and waits until it has ended.
fn run(command: &str, alert: &Alert, text: &str, patience: &mut Deadline<'_>) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let variables = [
        ("SLACKLINE_ALERT", alert.kind.name().into()),
        ("SLACKLINE_NUMBER", alert.number.to_string().into()),
        ("SLACKLINE_NAME", variable(&alert.name).into()),
        ("SLACKLINE_FLOW", variable(&alert.flow).into()),
        ("SLACKLINE_USER", alert.user.clone().into()),
        // One line, so that it can be the subject of a mail.
        ("SLACKLINE_MESSAGE", variable(&alert.message).replace('\n', " ").into()),
    ];
    let mut child = HookProcess::start(command, variables, text, Stdio::null(), false).map_err(said)?;
    for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
        match child.try_wait().map_err(said)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None if patience.wait(STEP) => {}
            None => {
                child.kill();
                return Err("the service stopped before it ended".to_owned());
            }
        }
    }
    child.kill();
    Err(format!("timed out after {} s and was killed", PATIENCE.as_secs()))
}

/// The total time for alerts after the service has stopped.
const GRACE: Duration = Duration::from_secs(2);

/// The interval between two checks whether a command has ended.
const STEP: Duration = Duration::from_millis(20);

/// Sends a message, and waits for the response within the deadline.
fn send(address: &Address, text: &str, patience: &mut Deadline<'_>) -> Result<(), String> {
    let (tell, ended) = channel();
    let (address, text) = (address.clone(), text.to_owned());
    let sender = std::thread::Builder::new().name("alert".to_owned());
    sender.spawn(move || tell.send(posted(&address, &text))).map_err(|error| error.to_string())?;
    loop {
        match ended.recv_timeout(STEP) {
            Ok(sent) => return sent,
            Err(RecvTimeoutError::Timeout) if patience.wait(STEP) => {}
            Err(_) => return Err("the service stopped before it ended".to_owned()),
        }
    }
}

/// Sends a message, and waits for the response.
fn posted(address: &Address, text: &str) -> Result<(), String> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(true)
        .tls_config(TlsConfig::builder().root_certs(trusted()).build());
    let agent = ureq::Agent::new_with_config(config.build());
    let sent = agent.post(&address.0).header("content-type", "application/json").send(text);
    sent.map(drop).map_err(|error| match error {
        // The message of this error quotes the whole address.
        ureq::Error::BadUri(_) => "the address cannot be used".to_owned(),
        error => error.to_string(),
    })
}

fn trusted() -> RootCerts {
    let all = rustls_native_certs::load_native_certs().certs;
    RootCerts::from(all.iter().map(|one| Certificate::from_der(one).to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::api::AlertKind;

    fn alert() -> Alert {
        Alert {
            kind: AlertKind::Late,
            at: crate::timestamp(slackline_model::WallTime(7)),
            number: 3,
            name: "night".into(),
            flow: "f".into(),
            user: "anna".into(),
            message: "it is\n\"late\"".into(),
        }
    }

    #[test]
    fn messages_have_the_form_of_their_receiver() {
        let alert = Alert { message: "a < b & c".into(), ..alert() };
        let slack = AlertForm::Slack.text(&alert);
        assert_eq!(slack, r#"{"text":"late: submission 3 night, flow f: a &lt; b &amp; c"}"#);
        let teams: serde_json::Value = serde_json::from_str(&AlertForm::Teams.text(&alert)).unwrap();
        let block = &teams["attachments"][0]["content"]["body"][0];
        assert_eq!(block["text"], "late: submission 3 night, flow f: a < b & c");
        let json: Alert = serde_json::from_str(&AlertForm::Json.text(&alert)).unwrap();
        assert_eq!(json, alert);
        let whole = Alert { flow: String::new(), kind: AlertKind::Finished, ..alert };
        assert_eq!(line(&whole), "finished: submission 3 night: a < b & c");
    }

    #[test]
    fn only_the_wanted_kinds_are_sent() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kinds");
        let command = Some(format!("echo $SLACKLINE_ALERT >> {}", file.display()));
        let (tell, alerts) = channel();
        for kind in AlertKind::ALL {
            tell.send(Alert { kind, ..alert() }).unwrap();
        }
        drop(tell);
        let hooks = Hooks { command, ..Hooks::default() };
        hooks.work(&alerts, &AtomicBool::new(false), &|_, problem| panic!("{problem}"));
        let sent = std::fs::read_to_string(&file).unwrap();
        assert_eq!(sent.lines().collect::<Vec<_>>(), ["likely_late", "late", "failed", "estimates_off"]);
    }

    #[test]
    fn a_command_gets_each_alert_and_is_retried_if_it_fails() {
        let dir = tempfile::tempdir().unwrap();
        let (file, first) = (dir.path().join("events"), dir.path().join("first"));
        let command = format!(
            "mkdir {} && exit 1; echo $SLACKLINE_ALERT $SLACKLINE_NUMBER $SLACKLINE_NAME/$SLACKLINE_FLOW $SLACKLINE_USER \
             \"$SLACKLINE_MESSAGE\" >> {file}; cat >> {file}",
            first.display(),
            file = file.display()
        );
        let hooks = Hooks { command: Some(command), ..Hooks::default() };
        let (sender, alerts) = channel();
        sender.send(alert()).unwrap();
        drop(sender);
        hooks.work(&alerts, &AtomicBool::new(false), &|_, problem| panic!("{problem}"));
        let event = std::fs::read_to_string(&file).unwrap();
        let (line, json) = event.split_once('\n').unwrap();
        assert_eq!(line, "late 3 night/f anna it is \"late\"");
        assert_eq!(serde_json::from_str::<Alert>(json).unwrap(), alert());
    }

    #[test]
    fn no_alert_delays_the_end_of_the_service_and_no_process_of_a_command_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let hooks = Hooks {
            command: Some(format!("sleep 1000 & echo $! >> {}; wait", file.display())),
            ..Hooks::default()
        };
        let (sender, alerts) = channel();
        for _ in 0..20 {
            sender.send(alert()).unwrap();
        }
        drop(sender);
        let failed = std::cell::Cell::new(0);
        hooks.work(&alerts, &AtomicBool::new(true), &|_, problem| {
            assert_eq!(problem, "the command for alerts: the service stopped before it ended");
            failed.set(failed.get() + 1);
        });
        assert_eq!(failed.get(), 20);
        let pids = std::fs::read_to_string(&file).unwrap();
        assert!(pids.lines().count() >= 1);
        for pid in pids.lines() {
            // The system may need a moment until the process is gone or a zombie.
            let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let is_gone = |stat: String| stat.is_empty() || stat.contains(") Z ");
            let waits = || slackline_task::base::clock::pause(Duration::from_millis(10));
            assert!(
                (0..1_000).any(|_| is_gone(stat()) || {
                    waits();
                    false
                }),
                "{}",
                stat()
            );
        }
    }

    #[test]
    fn addresses_are_of_the_web_and_show_no_secret() {
        for good in ["http://a", "https://a.example:8443/hook?x=1", "http://[::1]:7/"] {
            assert!(good.parse::<Address>().is_ok(), "{good}");
        }
        for wrong in
            ["", "nourl", "a.example/hook", "ftp://a/", "http://", "https:///x", "mailto:a@b", "http://a b/"]
        {
            assert!(wrong.parse::<Address>().unwrap_err().starts_with("expected http://"), "{wrong}");
        }
        let secret: Address = "https://u:hunter2@a.example:1/hunter2?t=hunter2".parse().unwrap();
        assert_eq!(
            (format!("{secret}"), format!("{secret:?}")),
            ("https://a.example/…".into(), "https://a.example/…".into())
        );
    }

    #[test]
    fn an_address_without_a_server_is_reported() {
        // A free port: it was bound and released.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let is_over = AtomicBool::new(false);
        let mut patience = Deadline { is_over: &is_over, left: GRACE };
        let address = format!("http://127.0.0.1:{port}/hunter2").parse().unwrap();
        let problem = send(&address, "{}", &mut patience).unwrap_err();
        assert!(!problem.is_empty() && !problem.contains("hunter2"), "{problem}");
    }
}
