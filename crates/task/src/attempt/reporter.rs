//! Counters and the status that commands report by lines on standard error, as in Hadoop Streaming:
//! `reporter:counter:GROUP,NAME,AMOUNT` and `reporter:status:TEXT`.
//!
//! All sizes are bounded: a line that is too long, a counter above the limit, or an amount that is not a
//! whole number stays in the log as text.

use std::collections::BTreeMap;

/// The most counters of an attempt.
const COUNTERS_MAX: usize = 500;
/// The longest line that is checked, bytes; and thereby the longest name of a counter.
const LINE_MAX: usize = 256;
/// The prefix of such a line.
const MARK: &[u8] = b"reporter:";

/// The reports of the commands of an attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandReports {
    /// Sums by `GROUP,NAME`.
    pub(crate) counters: BTreeMap<String, i64>,
    pub(crate) status: Option<String>,
}

impl CommandReports {
    /// Reads a line without its newline; returns false if it is not a report.
    fn take(&mut self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        if let Some(status) = text.strip_prefix("reporter:status:") {
            self.status = Some(status.to_owned());
            return true;
        }
        let Some(counter) = text.strip_prefix("reporter:counter:") else { return false };
        let mut fields = counter.split(',');
        let (Some(group), Some(name), Some(amount), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        let Ok(amount) = amount.trim().parse::<i64>() else { return false };
        let key = format!("{group},{name}");
        if self.counters.len() >= COUNTERS_MAX && !self.counters.contains_key(&key) {
            return false;
        }
        let sum = self.counters.entry(key).or_default();
        *sum = sum.saturating_add(amount);
        true
    }
}

/// Removes reports from the output of one command.
#[derive(Default)]
pub(crate) struct Filter {
    /// The beginning of a line that may report something.
    held: Vec<u8>,
    /// Whether the current line is plain text.
    is_text: bool,
}

impl Filter {
    /// Appends all text that is not a report to `out`.
    pub(crate) fn pass(&mut self, mut bytes: &[u8], reported: &mut CommandReports, out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes);
            let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            bytes = rest;
            if self.is_text {
                out.extend_from_slice(piece);
            } else {
                self.held.extend_from_slice(piece);
                self.settle(end.is_some(), reported, out);
            }
            self.is_text &= end.is_none();
        }
    }

    /// At the end: the held text is output, or a report without a newline.
    pub(crate) fn end(&mut self, reported: &mut CommandReports, out: &mut Vec<u8>) {
        if !reported.take(&self.held) {
            out.append(&mut self.held);
        }
        self.held.clear();
    }

    /// Decides whether the held line is a report, if possible by now.
    fn settle(&mut self, is_whole: bool, reported: &mut CommandReports, out: &mut Vec<u8>) {
        let common = self.held.len().min(MARK.len());
        let may_report = self.held[..common] == MARK[..common] && self.held.len() <= LINE_MAX;
        if may_report && !is_whole {
            return;
        }
        let is_report = may_report && reported.take(self.held.strip_suffix(b"\n").unwrap_or(&self.held));
        if !is_report {
            out.extend_from_slice(&self.held);
            self.is_text = true;
        }
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &[u8], piece: usize) -> (CommandReports, String) {
        let (mut filter, mut reported, mut out) = (Filter::default(), CommandReports::default(), Vec::new());
        text.chunks(piece).for_each(|bytes| filter.pass(bytes, &mut reported, &mut out));
        filter.end(&mut reported, &mut out);
        (reported, String::from_utf8(out).unwrap())
    }

    #[test]
    fn reports_are_counted_and_left_out_however_they_are_cut() {
        let text = "one\nreporter:counter:My group,good lines,2\nreporter:counter:My group,good lines,-5\r\n\
                    reporter\nreporter:counter:a,b\nreporter:counter:a,b,c\nreporter:status:half\nrep\n\
                    xreporter:counter:a,b,1\n\nreporter:status:done";
        for piece in [1, 2, 7, 1000] {
            let (reported, rest) = said(text.as_bytes(), piece);
            assert_eq!(reported.counters, BTreeMap::from([("My group,good lines".to_owned(), -3)]));
            assert_eq!(reported.status.as_deref(), Some("done"));
            assert_eq!(
                rest,
                "one\nreporter\nreporter:counter:a,b\nreporter:counter:a,b,c\nrep\nxreporter:counter:a,b,1\n\n"
            );
        }
    }

    #[test]
    fn reports_beyond_the_limits_stay_text() {
        let many = (0..600).map(|i| format!("reporter:counter:g,{i},1\n")).collect::<Vec<_>>().concat();
        let (reported, rest) = said(many.repeat(2).as_bytes(), 4096);
        assert_eq!(reported.counters.len(), COUNTERS_MAX);
        assert!(reported.counters.values().all(|count| *count == 2));
        assert_eq!(rest.lines().count(), 200);
        let long = format!("reporter:status:{}\n", "x".repeat(300));
        let (reported, rest) = said(long.as_bytes(), 50);
        assert!(reported.status.is_none() && rest == long);
        let (reported, _) =
            said(format!("reporter:counter:g,n,{0}\nreporter:counter:g,n,{0}\n", i64::MAX).as_bytes(), 9);
        assert_eq!(reported.counters["g,n"], i64::MAX);
    }
}
