//! Reads the file of machines that are reached by ssh: on each line an address, then what is known of the
//! machine.
//!
//! ```text
//! # address          what is known
//! node-a             slots=4
//! me@node-b.example  slots=8  speed=2  name=b
//! ```

use std::collections::BTreeMap;

use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::names::did_you_mean;

/// What may be said of a machine.
const KEYS: [&str; 3] = ["slots", "speed", "name"];

/// The most slots of a machine.
const SLOTS_MAX: u32 = 4096;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Host {
    /// Its address, as ssh takes it.
    pub(crate) address: String,
    /// The run's name of the machine.
    pub(crate) name: String,
    /// How many attempts it takes at a time.
    pub(crate) slots: u32,
    /// Its speed, if it is known.
    pub(crate) speed: Option<f64>,
}

impl Host {
    /// The same as documents have it.
    pub(crate) fn draft(&self) -> MachineDraft {
        let (name, speed) = (self.name.clone(), self.speed.unwrap_or(1.0));
        MachineDraft { name, count: 1, speed, slots: Slots::Generic(self.slots), rack: None }
    }
}

/// The machines of a file.
///
/// # Errors
/// Found and expected, with the name of the file and the line.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Host>, String> {
    let mut hosts: Vec<Host> = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |problem: String| format!("{file}:{number}: {problem}");
        let said = line.split('#').next().unwrap_or_default();
        let Some(host) = host(said).map_err(wrong)? else { continue };
        if let Some(before) = lines.insert(host.name.clone(), number) {
            let name = &host.name;
            return Err(format!(
                "{file}:{number}: the name {name} is taken by the machine in line {before}: give this one another with \
                 name=OTHER"
            ));
        }
        hosts.push(host);
    }
    if hosts.is_empty() {
        return Err(format!("{file}: found no machines, expected a line for each, such as node-a slots=4"));
    }
    Ok(hosts)
}

/// The machine of a line; none of an empty one.
fn host(line: &str) -> Result<Option<Host>, String> {
    let mut words = line.split_whitespace();
    let Some(address) = words.next() else { return Ok(None) };
    if address.contains('=') || address.starts_with('-') {
        return Err(format!(
            "found {address:?}, expected the address of a machine first, such as node-a or me@node-a"
        ));
    }
    let mut said: BTreeMap<&str, &str> = BTreeMap::new();
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("found {word:?}, expected slots=N, speed=X or name=NAME"))?;
        if !KEYS.contains(&key) {
            let hint = did_you_mean(key, KEYS);
            return Err(format!("found {key:?}, expected slots, speed or name{hint}"));
        }
        if said.insert(key, value).is_some() {
            return Err(format!("{key} is given twice"));
        }
    }
    let slots =
        said.get("slots").ok_or("missing slots=N, the number of tasks that the machine runs at a time")?;
    let slots = slots
        .parse()
        .ok()
        .filter(|slots| (1..=SLOTS_MAX).contains(slots))
        .ok_or_else(|| format!("found slots={slots}, expected a whole number from 1 to {SLOTS_MAX}"))?;
    let speed = said.get("speed").map(|text| speed(text)).transpose()?;
    let name = match said.get("name") {
        Some(name) => (*name).to_owned(),
        None => name_of(address).to_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || !name.chars().all(is_plain) || name.starts_with('.') {
        return Err(format!(
            "found the name {name:?}, expected letters, digits, '-', '_' and '.': name=NAME gives one"
        ));
    }
    Ok(Some(Host { address: address.to_owned(), name, slots, speed }))
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| (1e-3..=1e3).contains(speed));
    speed.ok_or_else(|| {
        format!("found speed={text}, expected a number from 0.001 to 1000, 1 for a usual machine")
    })
}

/// The name of the machine in an address: `me@node-a`, `ssh://me@node-a:2222`.
fn name_of(address: &str) -> &str {
    let host = address.strip_prefix("ssh://").unwrap_or(address);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    match host.rsplit_once(':') {
        Some((name, port)) if address.starts_with("ssh://") && port.chars().all(|c| c.is_ascii_digit()) => {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_machine() {
        let text = "# all of them\nnode-a slots=4\n\n  me@b.example\tslots=8  speed=2.5 # the new one\nssh://me@c:2222 slots=1\n\
                    10.0.0.7 name=seven slots=2\n";
        let hosts = parse("hosts", text).unwrap();
        let said: Vec<(&str, &str, u32, Option<f64>)> =
            hosts.iter().map(|host| (&*host.address, &*host.name, host.slots, host.speed)).collect();
        assert_eq!(
            said,
            [
                ("node-a", "node-a", 4, None),
                ("me@b.example", "b.example", 8, Some(2.5)),
                ("ssh://me@c:2222", "c", 1, None),
                ("10.0.0.7", "seven", 2, None),
            ]
        );
        assert_eq!(hosts[1].draft().speed, 2.5);
    }

    #[test]
    fn errors_name_their_line() {
        let error = |text: &str| parse("hosts.txt", text).unwrap_err();
        assert_eq!(
            error("a slots=1\nb\n"),
            "hosts.txt:2: missing slots=N, the number of tasks that the machine runs at a time"
        );
        assert_eq!(error("a slots=0"), "hosts.txt:1: found slots=0, expected a whole number from 1 to 4096");
        assert!(error("a slots=1 speed=fast").contains("found speed=fast, expected a number"));
        assert!(error("a slots=1 speed=inf").contains("found speed=inf, expected a number"));
        assert!(
            error("a slot=1")
                .contains("found \"slot\", expected slots, speed or name; did you mean \"slots\"?")
        );
        assert!(error("a slots=1 4").contains("found \"4\", expected slots=N"));
        assert!(error("a slots=1 slots=2").contains("slots is given twice"));
        assert!(error("slots=1").contains("expected the address of a machine first"));
        assert!(error("-oProxyCommand=x slots=1").contains("expected the address of a machine first"));
        assert!(error("::1 slots=1").contains("found the name \"::1\", expected letters"));
        assert!(
            error("a slots=1\nme@a slots=2").contains(":2: the name a is taken by the machine in line 1")
        );
        assert_eq!(
            error("# none\n"),
            "hosts.txt: found no machines, expected a line for each, such as node-a slots=4"
        );
    }
}
