//! A validator of the trace event format, from its description ("Trace Event Format", the object form) and
//! the additional requirements of Perfetto. It shares no code with the exporter.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A slice of a thread: start and end, microseconds.
type Slice = (u64, u64);

/// The content of a trace.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Complete events by their first category.
    pub(crate) complete: BTreeMap<String, usize>,
    /// Async slices.
    pub(crate) spans: usize,
    /// Names of processes and threads.
    pub(crate) processes: BTreeMap<u64, String>,
    pub(crate) threads: BTreeMap<(u64, u64), String>,
}

/// Reads a trace; the error names its fault.
pub(crate) fn validate(text: &str) -> Result<Seen, String> {
    let trace: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let trace = trace.as_object().ok_or("no object")?;
    if let Some(unit) = trace.get("displayTimeUnit") {
        (unit == "ms" || unit == "ns").then_some(()).ok_or("displayTimeUnit is neither ms nor ns")?;
    }
    let events = trace.get("traceEvents").and_then(Value::as_array).ok_or("no traceEvents")?;
    let mut seen = Seen::default();
    let mut tracks: BTreeMap<(u64, u64), Vec<Slice>> = BTreeMap::new();
    let mut open: BTreeMap<(String, String), (u64, Option<u64>)> = BTreeMap::new();
    for (k, event) in events.iter().enumerate() {
        one(event, &mut seen, &mut tracks, &mut open)
            .map_err(|what| format!("event {k}: {what}: {event}"))?;
    }
    for ((category, id), (begin, end)) in &open {
        let end = end.ok_or(format!("{category} {id} begins and never ends"))?;
        (*begin <= end).then_some(()).ok_or(format!("{category} {id} ends before it begins"))?;
    }
    for (track, slices) in &mut tracks {
        nest(slices).map_err(|what| format!("track {track:?}: {what}"))?;
        let is_named = seen.threads.contains_key(track) && seen.processes.contains_key(&track.0);
        is_named.then_some(()).ok_or(format!("track {track:?} has no name"))?;
    }
    // Perfetto identifies threads by their ids alone.
    let ids: BTreeSet<u64> = tracks.keys().map(|&(_, tid)| tid).collect();
    (ids.len() == tracks.len()).then_some(()).ok_or("a thread id is in two processes")?;
    Ok(seen)
}

fn one(
    event: &Value,
    seen: &mut Seen,
    tracks: &mut BTreeMap<(u64, u64), Vec<Slice>>,
    open: &mut BTreeMap<(String, String), (u64, Option<u64>)>,
) -> Result<(), String> {
    let word = |name: &str| event[name].as_str().map(str::to_owned).ok_or(format!("no text {name}"));
    // Negative numbers and fractions are none of these.
    let number = |name: &str| event[name].as_u64().ok_or(format!("no whole number {name}"));
    let (phase, name, pid, tid) = (word("ph")?, word("name")?, number("pid")?, number("tid")?);
    if let Some(arguments) = event.get("args") {
        arguments.as_object().ok_or("args is no object")?;
    }
    match phase.as_str() {
        "M" => {
            let argument = &event["args"];
            match name.as_str() {
                "process_name" | "thread_name" => {
                    let text = argument["name"].as_str().ok_or("no text name in args")?.to_owned();
                    let before = match name.as_str() {
                        "process_name" => seen.processes.insert(pid, text),
                        _ => seen.threads.insert((pid, tid), text),
                    };
                    before.map_or(Ok(()), |_| Err("named twice".to_owned()))
                }
                "process_sort_index" | "thread_sort_index" => {
                    argument["sort_index"].as_i64().map(drop).ok_or("no sort_index".to_owned())
                }
                _ => Err("unknown metadata".to_owned()),
            }
        }
        "X" => {
            let (start, length) = (number("ts")?, number("dur")?);
            let category = word("cat")?;
            let first = category.split(',').next().unwrap_or_default().to_owned();
            *seen.complete.entry(first).or_default() += 1;
            tracks.entry((pid, tid)).or_default().push((start, start + length));
            Ok(())
        }
        "b" | "n" | "e" => {
            let (at, key) = (number("ts")?, (word("cat")?, word("id")?));
            match (phase.as_str(), open.get_mut(&key)) {
                ("b", None) => {
                    open.insert(key, (at, None));
                    seen.spans += 1;
                    Ok(())
                }
                ("e", Some((_, end @ None))) => {
                    *end = Some(at);
                    Ok(())
                }
                ("n", Some((_, None))) => Ok(()),
                _ => Err("begins twice, ends twice or was never begun".to_owned()),
            }
        }
        _ => Err("unknown phase".to_owned()),
    }
}

/// Slices of a track may contain each other and not overlap otherwise.
fn nest(slices: &mut [Slice]) -> Result<(), String> {
    slices.sort_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
    let mut around: Vec<Slice> = Vec::new();
    for &(start, end) in slices.iter() {
        while around.last().is_some_and(|&(_, before)| before <= start) {
            around.pop();
        }
        if let Some(&(_, outer)) = around.last().filter(|&&(_, outer)| end > outer) {
            return Err(format!("a slice from {start} to {end} leaves one that ends at {outer}"));
        }
        around.push((start, end));
    }
    Ok(())
}

#[test]
fn the_judge_of_traces_finds_what_is_wrong() {
    let named = r#"{"ph":"M","name":"process_name","pid":1,"tid":2,"args":{"name":"p"}},
        {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"t"}}"#;
    let trace = |events: &str| format!(r#"{{"traceEvents":[{named},{events}]}}"#);
    let slice = |ts: i64, dur: i64| {
        format!(r#"{{"ph":"X","name":"a","cat":"map","pid":1,"tid":2,"ts":{ts},"dur":{dur}}}"#)
    };
    let both = |a: String, b: String| validate(&trace(&format!("{a},{b}")));
    assert!(both(slice(0, 10), slice(10, 5)).is_ok());
    assert!(both(slice(0, 10), slice(2, 8)).is_ok());
    assert!(both(slice(0, 10), slice(2, 9)).unwrap_err().contains("leaves one"));
    assert!(validate(&trace(&slice(-1, 10))).unwrap_err().contains("no whole number ts"));
    assert!(validate(&trace(&slice(1, -10))).unwrap_err().contains("no whole number dur"));
    let span = |phase: &str| {
        format!(r#"{{"ph":"{phase}","name":"f","cat":"flow","id":"0x1","pid":1,"tid":1,"ts":3}}"#)
    };
    assert!(both(span("b"), span("e")).is_ok());
    assert!(both(span("e"), span("b")).unwrap_err().contains("never begun"));
    assert!(validate(&trace(&span("b"))).unwrap_err().contains("never ends"));
    assert!(validate(r#"{"traceEvents":[{"ph":"X"}]}"#).is_err());
    let nameless = format!(r#"{{"traceEvents":[{}]}}"#, slice(0, 1));
    assert!(validate(&nameless).unwrap_err().contains("has no name"));
}
