//! Messages for mistyped names: the found name, the known names, and the probable one.
//!
//! Every table of names (policies, formats, parameters, metrics, fields of documents, …) uses these
//! functions.

/// The number of names that a message lists.
const LISTED: usize = 30;

/// Common words for things that have another name here.
const SYNONYMS: [(&str, &str); 12] = [
    ("capacity-scheduler", "yarn-capacity"),
    ("capacityscheduler", "yarn-capacity"),
    ("deadline", "edf"),
    ("fair-scheduler", "yarn-fair"),
    ("fairscheduler", "yarn-fair"),
    ("fcfs", "fifo"),
    ("jobhistory", "jhist"),
    ("late", "missed"),
    ("latency", "mean_response"),
    ("machine", "machines"),
    ("slurm", "sacct"),
    ("turnaround", "mean_response"),
];

/// The probable name: one that is close in any case, starts with `found`, has it as a word, or has it as a
/// synonym. Ties go to the first.
pub fn closest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long texts are no typing mistakes, and the time of the distance is quadratic.
    if found.is_empty() || found.len() > 64 {
        return None;
    }
    let found = found.to_lowercase();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        let has_word = || name.split(['-', '_', '.', '/']).any(|word| word == found);
        let is_called = || SYNONYMS.contains(&(&found, &name));
        let is_it = name.starts_with(&found) || has_word() || is_called();
        if is_it { 0 } else { strsim::damerau_levenshtein(&found, &name) }
    };
    let close = names.into_iter().map(|name| (distance(name), name));
    // A name without a common letter was not meant.
    let close = close.filter(|&(far, name)| far <= (name.len() / 3).max(1) && far < name.chars().count());
    close.min_by_key(|&(far, _)| far).map(|(_, name)| name)
}

/// `; did you mean "…"?` if a name is close, else nothing.
pub fn did_you_mean<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    closest(found, names).map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

/// Names as a message lists them: the first names, and the number of the others.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(AsRef::as_ref).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The expected names: `one of …`, the only name, or `none`.
pub fn one_of<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => "none".to_owned(),
        [only] => only.as_ref().to_owned(),
        _ => format!("one of {}", listed(names)),
    }
}

/// The message for an unknown name of this kind: `found policy "fiffo", expected one of …; did you mean …?`.
pub fn unknown<S: AsRef<str>>(kind: &str, found: &str, names: &[S]) -> String {
    let meant = did_you_mean(found, names.iter().map(AsRef::as_ref));
    format!("found {kind} {found:?}, expected {}{meant}", one_of(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_and_beginnings_are_recognised() {
        let names = ["fifo", "fair", "flowflex", "woha-lpf"];
        assert_eq!(did_you_mean("fiffo", names), r#"; did you mean "fifo"?"#);
        assert_eq!(did_you_mean("flow", names), r#"; did you mean "flowflex"?"#);
        assert_eq!(did_you_mean("wohalpf", names), r#"; did you mean "woha-lpf"?"#);
        assert_eq!(did_you_mean("sjf", names) + &did_you_mean("", names), "");
        assert_eq!(did_you_mean(&"f".repeat(65), names), "");
        assert_eq!(closest("relaese", ["weight", "release"]), Some("release"));
        assert_eq!(closest("colour", ["id", "after"]), None);
        assert_eq!(closest("h", ["f", "g"]), None);
        assert_eq!(closest("capacity", ["yarn-fair", "yarn-capacity"]), Some("yarn-capacity"));
        assert_eq!(closest("Slurm", ["swf", "sacct"]), Some("sacct"));
        assert_eq!(closest("slurm", ["swf", "swim"]), None);
        assert_eq!(closest("CapacityScheduler", ["fair", "yarn-capacity"]), Some("yarn-capacity"));
        assert_eq!(closest("FCFS", ["fair", "fifo"]), Some("fifo"));
    }

    #[test]
    fn another_case_is_a_typing_mistake() {
        assert_eq!(closest("FIFO", ["edf", "fifo"]), Some("fifo"));
        assert_eq!(closest("j1", ["J1", "J2"]), Some("J1"));
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..35).map(|k| format!("J{k}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = unknown("job", "j7", &names);
        assert!(text.starts_with(r#"found job "j7", expected one of J0, J1, "#), "{text}");
        assert!(text.ends_with(r#" J29 and 5 more; did you mean "J7"?"#), "{text}");
        assert_eq!(unknown("engine", "x", &["local"]), r#"found engine "x", expected local"#);
        assert_eq!(unknown::<&str>("engine", "x", &[]), r#"found engine "x", expected none"#);
    }
}
