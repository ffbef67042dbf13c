//! The program limits, cuts and escapes input from clients, files and commands, and secrets stay out of
//! command lines and messages.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::processes::{Family, until};
use crate::runs_terminal::OnTerminal;
use crate::scratch;
use crate::serve::Place;

/// Texts that a terminal obeys: colours, erasing, a title, an 8-bit control sequence, text from right to
/// left, a separate line.
const HOSTILE: [&str; 6] = ["\x1b[31m", "\x1b[2J", "\x1b]0;x\x07", "\u{9b}2J", "\u{202e}", "\u{2028}"];

/// Fails if text has a character that a terminal obeys.
fn is_harmless(text: &str, of: &str) {
    let harmful = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || ('\u{200e}'..='\u{202e}').contains(&c) && c != '\u{2026}' && !"‐–—‘’“”•".contains(c)
    };
    assert!(!text.chars().any(harmful), "{of}: {text:?}");
}

#[test]
fn secrets_on_the_command_line_are_refused_and_not_repeated() {
    let place = Place::new(scratch("limits-secrets"), "limits-secrets");
    let serve = ["serve", "--allow-root", "--state", "s"];
    let run = ["run", "flow.toml"];
    let cases: [(&[&str], &[&str], &str); 7] = [
        (
            &serve,
            &["--alert-to", "https://ops:hunter2@example.org/"],
            "--alert-to-file FILE, or the variable SLACKLINE_ALERT_TO",
        ),
        (&serve, &["--alert-to", "https://example.org/hook?token=hunter2"], "--alert-to-file FILE"),
        (
            &serve,
            &["--alert-to", "https://hooks.example.org/services/T00000001/hunter2hunter2hunter2x"],
            "--alert-to-file FILE",
        ),
        (
            &serve,
            &["--on-alert", "curl -u ops:hunter2 https://example.org"],
            "a script that reads it from a file",
        ),
        (
            &run,
            &["--on-end", "curl -H 'Authorization: Bearer hunter2' https://example.org"],
            "a variable ($NAME)",
        ),
        (&run, &["--on-failure", "notify --password hunter2"], "a variable ($NAME)"),
        (&["queue"], &["--server", "https://ops:hunter2@example.org"], "a token in SLACKLINE_TOKEN"),
    ];
    fs::write(place.dir.join("flow.toml"), FAILS).expect("a flow file");
    for (verb, options, expected) in cases {
        let refused = place.refused(&[verb, options].concat());
        assert!(refused.contains(expected) && !refused.contains("hunter2"), "{options:?}: {refused}");
    }
    let wrong = place.refused(&[&serve[..], &["--alert-to-file", "nothing"]].concat());
    assert!(wrong.contains("--alert-to-file: nothing: cannot be read"), "{wrong}");
    assert!(!place.dir.join("out").exists(), "nothing ran");
}

/// A flow that fails, with a control sequence in its output.
const FAILS: &str = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'j', run = { \
                     command = 'printf \"\\033[31mred\\302\\233 \\342\\200\\256x\" >&2; exit 3', output = 'out', attempts = 1 } }]\n";

/// The head of the first request to an address.
fn first_request(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("a request") == 1 {
        head.push(byte[0]);
    }
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    String::from_utf8(head).expect("UTF-8")
}

#[test]
fn the_address_of_alerts_comes_from_a_file_or_a_variable() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address =
        format!("http://{}/services/hunter2?token=hunter2", listener.local_addr().expect("it is bound"));
    for by_file in [true, false] {
        let test = if by_file { "limits-file" } else { "limits-variable" };
        let place = Place::new(scratch(test), test);
        fs::write(place.dir.join("flow.toml"), FAILS).expect("a flow file");
        fs::write(place.dir.join("address"), format!("{address}\n")).expect("a file");
        let socket = place.socket.display().to_string();
        let mut args = vec!["serve", "--allow-root", "--state", "s", "--slots", "1", "--socket", &socket];
        let mut command = if by_file {
            args.extend(["--alert-to-file", "address"]);
            place.family.command(&place.dir, &args)
        } else {
            let mut command = place.family.command(&place.dir, &args);
            command.env("SLACKLINE_ALERT_TO", &address);
            command
        };
        let mut service = command.spawn().expect("the program starts");
        until("the service answers", || place.ask(&["queue"]).code == Some(0));
        place.done(&["submit", "flow.toml"]);
        let head = first_request(&listener);
        assert!(head.starts_with("POST /services/hunter2?token=hunter2 "), "{head}");
        let line = fs::read(format!("/proc/{}/cmdline", service.id())).expect("it is there");
        assert!(!String::from_utf8_lossy(&line).contains("hunter2"));
        service.kill().expect("it can be killed");
        service.wait().expect("it is gone");
    }
}

#[test]
fn arguments_and_names_of_files_are_escaped_in_messages() {
    let dir = scratch("limits-messages");
    let family = Family::new("limits-messages");
    for hostile in HOSTILE {
        let name = format!("no{hostile}file");
        fs::write(dir.join(&name), format!("slackline = 1\n'{name}' = 1\n")).expect("a file");
        for args in [
            &["check", &name, "x"][..],
            &["simulate", &name],
            &["simulate", "missing", "-p", &name],
            &["simulate", "missing", &format!("--{name}")],
            &[&name],
            &["run", &name, "--state", &name],
            &["status", "--state", &name],
            &["logs", &name, &name],
            &["queue", "--server", &name],
            &["queue", "--server", &format!("http://{name}/")],
            &["explain", &name, &name],
            &["serve", "--allow-root", "--state", &name, "--zone", &name],
            &["generate", &name],
            &["export", &name, "-o", &format!("{name}.svg")],
        ] {
            let ran = family.slackline(&dir, args);
            assert!(!ran.err.is_empty() && ran.code != Some(0), "{args:?}: {}", ran.out);
            is_harmless(&ran.err, &format!("{args:?}"));
            is_harmless(&ran.out, &format!("{args:?}"));
        }
    }
}

/// The name of a state directory is part of the headline; the message of a command, of its log.
#[test]
fn output_of_commands_is_escaped_except_for_a_pipe() {
    let dir = scratch("limits-logs");
    let family = Family::new("limits-logs");
    fs::write(dir.join("flow.toml"), FAILS).expect("a flow file");
    let state = "s\x1b[31m\u{202e}";
    let ran = family.slackline(&dir, &["run", "flow.toml", "--state", state]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("\\u001b[31mred\\u009b \\u202ex"), "{}", ran.err);
    for args in [
        &["status", "--state", state][..],
        &["status", "--state", state, "--format", "csv"],
        &["status", "--state", state, "--format", "json"],
        &["explain", "f", "--state", state],
    ] {
        let shown = family.slackline(&dir, args);
        is_harmless(&(shown.out + &shown.err + &ran.err), &format!("{args:?}"));
    }
    // A log is data: unchanged to a pipe, escaped to a terminal.
    let args = ["logs", "f", "j", "--state", state];
    let raw = family.command(&dir, &args).output().expect("the program starts");
    let bytes = b"\x1b[31mred\xc2\x9b \xe2\x80\xaex";
    assert!(raw.stdout.windows(bytes.len()).any(|window| window == bytes), "{:?}", raw.stdout);
    let mut shown = OnTerminal::start(&family, &dir, &args);
    shown.child.wait().expect("it ends");
    shown.awaits("\\u001b[31mred\\u009b \\u202ex", 0);
    is_harmless(&shown.drawn().replace('\r', ""), "a terminal");
    let mut shown = OnTerminal::start(&family, &dir, &["status", "--state", state]);
    shown.child.wait().expect("it ends");
    shown.awaits("failed", 0);
    let styles = ["\x1b[1m", "\x1b[0m", "\x1b[32m", "\r"];
    is_harmless(&styles.iter().fold(shown.drawn(), |text, style| text.replace(style, "")), "a terminal");
    assert!(shown.drawn().contains("\\u001b[31m\\u202e"), "{}", shown.drawn());
}

#[test]
fn names_of_submissions_print_and_messages_of_a_service_are_escaped() {
    let place = Place::new(scratch("limits-names"), "limits-names");
    let mut service = place.serve(&[]);
    for hostile in HOSTILE.iter().chain(&["\n", "\t", "\u{200b}"]) {
        let name = format!("n{hostile}n");
        fs::write(place.dir.join(format!("{name}.toml")), FAILS).expect("a flow file");
        for args in [&["submit", "flow.toml", "--name", &name][..], &["submit", &format!("{name}.toml")]] {
            fs::write(place.dir.join("flow.toml"), FAILS).expect("a flow file");
            let refused = place.refused(args);
            assert!(refused.contains("printable characters"), "{refused}");
            is_harmless(&refused, &format!("{args:?}"));
        }
    }
    place.done(&["submit", "flow.toml", "--when", "no\u{202e}such\x1b[2J*"]);
    place.done(&["submit", "flow.toml", "--name", "failing"]);
    let shown = place.until_state("2", "failed");
    assert!(shown["why"].to_string().contains("u009b"), "{shown}");
    for args in [
        &["queue", "--all"][..],
        &["queue", "--all", "--format", "json"],
        &["queue", "--all", "--format", "csv"],
        &["status", "1"],
        &["status", "2"],
        &["status", "2", "--format", "json"],
        &["explain", "2", "f"],
    ] {
        let ran = place.ask(args);
        is_harmless(&(ran.out + &ran.err), &format!("{args:?}"));
    }
    let audit = fs::read(place.dir.join("s/audit.log")).expect("it is there");
    let refused = fs::read(place.dir.join("s/refused.log")).expect("it is there");
    assert!(audit.iter().chain(&refused).all(|b| *b == b'\n' || (b' '..127).contains(b)));
    service.kill().expect("it can be killed");
    service.wait().expect("it is gone");
}

/// A name that is not UTF-8 is shown, too.
#[test]
fn bytes_that_are_no_text_are_shown_as_such() {
    let dir = scratch("limits-bytes");
    let family = Family::new("limits-bytes");
    let mut command = family.command(&dir, &["simulate"]);
    command.arg(Path::new(std::ffi::OsStr::from_bytes(b"no\xff\x1b[2J")));
    let output = command.output().expect("the program starts");
    let err = String::from_utf8(output.stderr).expect("messages are UTF-8");
    is_harmless(&err, "bytes");
    assert!(err.contains("\\u001b[2J"), "{err}");
}
