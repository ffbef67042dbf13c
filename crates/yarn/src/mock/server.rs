//! The part of HTTP/1.1 that the mock cluster needs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use super::documents::{Answer, Request, answer};
use super::{Mood, State};
use crate::clock::pause;

/// Answers one request after the other until the client hangs up.
pub(super) fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    while let Ok(Some(request)) = read(&mut reader) {
        let (mood, answer) = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.requests.push(format!("{} {}", request.method, request.address));
            match mood(&mut state, &request.address) {
                None => (None, answer(&mut state, &request)),
                Some(Mood::Slow(time)) => (Some(Mood::Slow(time)), answer(&mut state, &request)),
                // A request with a mock answer has no effect.
                mood => (mood, Answer::page(503, "")),
            }
        };
        let (answer_text, more) = match mood {
            None => (answer, String::new()),
            Some(Mood::Slow(time)) => {
                pause(time);
                (answer, String::new())
            }
            Some(Mood::Says(status, kind, body)) => (Answer { status, kind, body }, String::new()),
            Some(Mood::Leads(to)) => (Answer::page(307, "elsewhere"), format!("Location: {to}\r\n")),
            Some(Mood::Kerberos) => {
                (Answer::page(401, "Authentication required"), "WWW-Authenticate: Negotiate\r\n".to_owned())
            }
            Some(Mood::HangsUp) => return,
        };
        if write(stream, &answer_text, &more).is_err() {
            return;
        }
    }
}

fn mood(state: &mut State, address: &str) -> Option<Mood> {
    let (_, left, mood) =
        state.moods.iter_mut().find(|(part, left, _)| *left > 0 && address.contains(part))?;
    *left -= 1;
    Some(mood.clone())
}

fn read(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (Some(method), Some(address)) = (words.next(), words.next()) else { return Ok(None) };
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { method, address, body }))
}

fn write(mut stream: &TcpStream, answer: &Answer, more: &str) -> io::Result<()> {
    let Answer { status, kind, body } = answer;
    let head = format!(
        "HTTP/1.1 {status} Of\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())
}
