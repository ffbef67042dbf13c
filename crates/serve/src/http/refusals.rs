//! Refused requests, counted by source and logged with at most one line for each source and minute. The log
//! and its memory stay small under any load.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

use crate::http::audit_line::Line;

/// The time between two lines of a source.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// Refused requests of one source within [`WINDOW`]. Further ones get status 429.
pub(crate) const LIMIT: u64 = 300;

/// Sources that are counted separately. All further ones share one count.
const SOURCES: usize = 1_024;

/// The name of the shared count.
const SHARED: &str = "other addresses";

/// Refused requests by source.
#[derive(Debug, Default)]
pub(crate) struct Refusals(BTreeMap<String, Source>);

#[derive(Debug)]
struct Source {
    since: Instant,
    /// Refused requests in the window.
    refused: u64,
    /// The last refused request that no line has counted yet.
    unwritten: Option<Line>,
    unwritten_count: u64,
}

/// The result of counting a refused request.
#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    /// The line to write now.
    pub(crate) line: Option<Line>,
    /// If the source has exceeded [`LIMIT`]: the time until its window ends.
    pub(crate) retry: Option<Duration>,
}

/// The source of a request from an address: one IPv4 address, or one IPv6 network of 64 bits, which is the
/// usual assignment of one client.
pub(crate) fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", IpAddr::from([a, b, c, d, 0, 0, 0, 0]))
        }
    }
}

impl Refusals {
    pub(crate) fn add(&mut self, source: &str, line: Line, now: Instant) -> Verdict {
        let is_full = self.0.len() >= SOURCES && !self.0.contains_key(source);
        let name = if is_full { SHARED } else { source };
        let Some(found) = self.0.get_mut(name) else {
            let source = Source { since: now, refused: 1, unwritten: None, unwritten_count: 0 };
            self.0.insert(name.to_owned(), source);
            return Verdict { line: Some(line), retry: None };
        };
        let mut written = None;
        if now.saturating_duration_since(found.since) >= WINDOW {
            let more = std::mem::take(&mut found.unwritten_count);
            *found = Source { since: now, refused: 1, unwritten: None, unwritten_count: 0 };
            written = Some(Line { more, ..line });
        } else {
            found.refused += 1;
            found.unwritten_count += 1;
            found.unwritten = Some(line);
        }
        let left = (found.since + WINDOW).saturating_duration_since(now);
        Verdict { line: written, retry: (found.refused > LIMIT).then_some(left) }
    }

    /// The lines of windows that have ended, or of all windows if `now` is `None`. Forgets sources without
    /// new requests.
    pub(crate) fn due(&mut self, now: Option<Instant>) -> Vec<Line> {
        let mut lines = Vec::new();
        self.0.retain(|_, source| {
            let has_ended = |now: Instant| now.saturating_duration_since(source.since) >= WINDOW;
            if !now.is_none_or(has_ended) {
                return true;
            }
            let Some(line) = source.unwritten.take() else { return false };
            let more = std::mem::take(&mut source.unwritten_count) - 1;
            lines.push(Line { more, ..line });
            *source = Source {
                since: now.unwrap_or(source.since),
                refused: 0,
                unwritten: None,
                unwritten_count: 0,
            };
            true
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from: &str, status: u16) -> Line {
        Line {
            at: crate::timestamp(slackline_model::WallTime(7)),
            principal: None,
            role: None,
            from: from.to_owned(),
            method: "GET".into(),
            path: "/".into(),
            status,
            said: None,
            more: 0,
        }
    }

    fn counts(lines: &[Line]) -> u64 {
        lines.iter().map(|line| 1 + line.more).sum()
    }

    #[test]
    fn a_source_has_one_line_a_minute_that_counts_all_its_requests() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        let mut lines = Vec::new();
        // 100 requests per second for 10 minutes.
        for k in 0..60_000 {
            let now = start + Duration::from_millis(10 * k);
            lines.extend(refusals.add("a", line("a", 401), now).line);
            if k % 1_000 == 0 {
                lines.extend(refusals.due(Some(now)));
            }
        }
        lines.extend(refusals.due(None));
        assert!(lines.len() <= 11, "{}", lines.len());
        assert_eq!(counts(&lines), 60_000);
    }

    #[test]
    fn memory_and_lines_stay_small_for_any_number_of_sources() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let mut lines = Vec::new();
        for k in 0..100_000 {
            let source = k.to_string();
            lines.extend(refusals.add(&source, line(&source, 401), now).line);
        }
        assert_eq!((refusals.0.len(), lines.len()), (SOURCES + 1, SOURCES + 1));
        lines.extend(refusals.due(Some(now + WINDOW)));
        assert_eq!(counts(&lines), 100_000);
        assert_eq!(refusals.due(Some(now + 2 * WINDOW)), []);
        assert_eq!(refusals.0.len(), 0, "silent sources are forgotten");
    }

    #[test]
    fn a_source_that_passes_the_limit_waits_and_others_do_not() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let mut add = |source: &str, after: u64| {
            refusals.add(source, line(source, 401), now + Duration::from_secs(after)).retry
        };
        assert!((0..LIMIT).all(|_| add("a", 0).is_none()));
        assert_eq!(add("a", 20), Some(Duration::from_secs(40)));
        assert_eq!((add("b", 20), add("a", 60)), (None, None));
    }

    #[test]
    fn an_ipv6_network_is_one_source() {
        let of = |address: &str| network(address.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
    }
}
