//! Text helpers that reports and runs share.

use slackline_executor::store::applications::ExternalJob;

/// `1 flow`, `2 flows`, `1,234 tasks`.
#[cfg_attr(not(feature = "report"), expect(unreachable_pub, reason = "reports have it for others"))]
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as f64, 0), if count == 1 { "" } else { "s" })
}

/// The state of an unfinished job on a cluster: the condition that it waits for, or its running tasks.
pub(crate) fn doing(there: &ExternalJob) -> String {
    let (at_work, starting) =
        (there.at_work.len(), (there.containers as usize).saturating_sub(there.at_work.len()));
    if there.failed {
        return "failed for good".to_owned();
    }
    match (there.applications.is_empty(), there.am) {
        (true, _) => "is being submitted".to_owned(),
        (false, [None, None]) => "waits for a slot for its ApplicationMaster".to_owned(),
        (false, [_, None]) => "its ApplicationMaster starts".to_owned(),
        (false, [_, Some(_)]) => match (at_work, starting) {
            (0, 0) => "waits for slots".to_owned(),
            (0, starting) => format!("{} starting", counted(starting as u64, "container")),
            (at_work, 0) => format!("{} running", counted(at_work as u64, "task")),
            (at_work, starting) => {
                let (at_work, starting) =
                    (counted(at_work as u64, "task"), counted(starting as u64, "container"));
                format!("{at_work} running, {starting} starting")
            }
        },
    }
}

/// A number with a comma after every three digits before the point; huge ones with an exponent.
pub(crate) fn grouped(value: f64, digits: usize) -> String {
    if !value.is_finite() || value.abs() >= 1e15 {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.digits$}");
    let (sign, text) = match text.strip_prefix('-') {
        // A rounded negative zero is shown as 0.
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => ("", rest),
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}
