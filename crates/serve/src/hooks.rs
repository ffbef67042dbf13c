//! Alerts that reach somebody: a command, or a message to a web address. Each is tried a few times, beside everything else; that
//! none of them worked is an event.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use slackline_local::clock;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::api::Alert;

/// How often an alert is tried, and how long after the last time; twice as long each time.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);

/// How long a command or an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How alerts reach somebody.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    /// A command for `sh -c`: it has SLACKLINE_ALERT (the kind), SLACKLINE_NUMBER, SLACKLINE_NAME, SLACKLINE_FLOW, SLACKLINE_USER and
    /// SLACKLINE_MESSAGE in its environment, and the alert as JSON on its standard input.
    pub command: Option<String>,
    /// An address that the alert is sent to as JSON (POST), `http://…` or `https://…`.
    pub address: Option<String>,
}

/// An address that alerts can be sent to.
///
/// # Errors
/// What was expected instead.
pub fn address(text: &str) -> Result<String, String> {
    let is_one = |uri: &Uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    };
    let found = text.parse().is_ok_and(|uri| is_one(&uri));
    if found { Ok(text.to_owned()) } else { Err("expected http://HOST/… or https://HOST/…".to_owned()) }
}

impl Hooks {
    /// Whether there is nobody to tell.
    pub fn is_empty(&self) -> bool {
        self.command.is_none() && self.address.is_none()
    }

    /// Tells alerts as they come, until none do any more; `failed` is told of those that could not be told.
    pub fn work(&self, alerts: &Receiver<Alert>, failed: &dyn Fn(&Alert, String)) {
        while let Ok(alert) = alerts.recv() {
            self.tell(&alert, &|problem| failed(&alert, problem));
        }
    }

    fn tell(&self, alert: &Alert, failed: &dyn Fn(String)) {
        let text = serde_json::to_string(alert).expect("invariant: an alert can be written as JSON");
        if let Some(command) = &self.command
            && let Err(problem) = tried(|| run(command, alert, &text))
        {
            failed(format!("the command for alerts: {problem}"));
        }
        if let Some(address) = &self.address
            && let Err(problem) = tried(|| send(address, &text))
        {
            failed(format!("{address}: {problem}"));
        }
    }
}

/// Tries something until it works, a few times.
fn tried(mut what: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        if what().is_ok() {
            return Ok(());
        }
        clock::pause(pause);
        pause *= 2;
    }
    what()
}

/// Runs a command, and waits for it.
fn run(command: &str, alert: &Alert, text: &str) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("SLACKLINE_ALERT", alert.kind.name())
        .env("SLACKLINE_NUMBER", alert.number.to_string())
        .env("SLACKLINE_NAME", &alert.name)
        .env("SLACKLINE_FLOW", &alert.flow)
        .env("SLACKLINE_USER", &alert.user)
        .env("SLACKLINE_MESSAGE", &alert.message)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(said)?;
    if let Some(mut input) = child.stdin.take() {
        // A command need not read it.
        let _ = input.write_all(text.as_bytes());
    }
    for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
        match child.try_wait().map_err(said)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None => clock::pause(STEP),
        }
    }
    // It may have ended just now.
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("found no end after {} s", PATIENCE.as_secs()))
}

/// How often it is looked whether a command has ended.
const STEP: Duration = Duration::from_millis(20);

/// Sends a message.
fn send(address: &str, text: &str) -> Result<(), String> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(true)
        .tls_config(TlsConfig::builder().root_certs(trusted()).build());
    let agent = ureq::Agent::new_with_config(config.build());
    let sent = agent.post(address).header("content-type", "application/json").send(text);
    sent.map(drop).map_err(|error| error.to_string())
}

/// The certificates that this machine trusts.
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
            at: crate::timestamp(7),
            number: 3,
            name: "night".into(),
            flow: "f".into(),
            user: "anna".into(),
            message: "it is \"late\"".into(),
        }
    }

    #[test]
    fn a_command_hears_of_each_alert_and_is_tried_again_if_it_fails() {
        let dir = tempfile::tempdir().unwrap();
        let (file, first) = (dir.path().join("heard"), dir.path().join("first"));
        let command = format!(
            "mkdir {} && exit 1; echo $SLACKLINE_ALERT $SLACKLINE_NUMBER $SLACKLINE_NAME/$SLACKLINE_FLOW $SLACKLINE_USER \
             $SLACKLINE_MESSAGE >> {file}; cat >> {file}",
            first.display(),
            file = file.display()
        );
        let hooks = Hooks { command: Some(command), address: None };
        let (sender, alerts) = channel();
        sender.send(alert()).unwrap();
        drop(sender);
        hooks.work(&alerts, &|_, problem| panic!("{problem}"));
        let heard = std::fs::read_to_string(&file).unwrap();
        let (line, json) = heard.split_once('\n').unwrap();
        assert_eq!(line, "late 3 night/f anna it is \"late\"");
        assert_eq!(serde_json::from_str::<Alert>(json).unwrap(), alert());
    }

    #[test]
    fn addresses_are_of_the_web() {
        for good in ["http://a", "https://a.example:8443/hook?x=1", "http://[::1]:7/"] {
            assert_eq!(address(good).as_deref(), Ok(good));
        }
        for wrong in
            ["", "nourl", "a.example/hook", "ftp://a/", "http://", "https:///x", "mailto:a@b", "http://a b/"]
        {
            assert!(address(wrong).unwrap_err().starts_with("expected http://"), "{wrong}");
        }
    }

    #[test]
    fn nobody_at_an_address_is_said() {
        // A port that nobody listens at: it was had and given back.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let problem = send(&format!("http://127.0.0.1:{port}/"), "{}").unwrap_err();
        assert!(!problem.is_empty());
    }
}
