//! An allocation of Slurm: its nodes and its time limit, how to request it and how to release it.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::fleet::slurm::nodes::{names, processors};

/// So long before its end an allocation counts as over: what runs then is asked to end by Slurm.
const MARGIN: Duration = Duration::from_secs(10);

/// Asks for an allocation, says what it is, and keeps it until its standard input ends: because the run gives
/// it back, or because the run is gone. `salloc` ends with the command that it was given, and takes HUP, of
/// the common signals alone, as the order to give back what it has or waits for. What `salloc` writes for
/// people goes into the same pipe, which keeps the order.
const KEEPER: &str = r#"
exec 3<&0 2>&1
salloc "$@" sh -c 'printf "\ngranted %s %s %s\n" "$SLURM_JOB_ID" "$SLURM_JOB_NODELIST" "$SLURM_JOB_CPUS_PER_NODE"; exec cat > /dev/null' <&3 &
salloc=$!
{ cat; kill -s HUP $salloc; } <&3 > /dev/null 2>&1 &
wait $salloc
printf '\nover %s\n' $?
"#;

/// Nodes that Slurm lends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Allocation {
    /// The number of its job.
    pub(crate) job: String,
    /// Its nodes, with their processors.
    pub(crate) nodes: Vec<(String, u32)>,
}

impl Allocation {
    /// That of a job, from what Slurm says of it.
    ///
    /// # Errors
    /// What was found and what was expected.
    pub(crate) fn of(job: &str, nodelist: &str, cpus: &str) -> Result<Self, String> {
        let (names, cpus) = (names(nodelist)?, processors(cpus)?);
        if names.len() != cpus.len() {
            return Err(format!(
                "found {} nodes and processor counts for {}, expected a count for each node",
                names.len(),
                cpus.len()
            ));
        }
        Ok(Self { job: job.to_owned(), nodes: names.into_iter().zip(cpus).collect() })
    }

    /// The one that this process is in; none if it is in none.
    ///
    /// # Errors
    /// What was found and what was expected.
    pub(crate) fn of_environment() -> Result<Option<Self>, String> {
        let Ok(job) = std::env::var("SLURM_JOB_ID") else { return Ok(None) };
        let said = |name: &str| {
            std::env::var(name).map_err(|_| format!("{name} is not set, although SLURM_JOB_ID is"))
        };
        Self::of(&job, &said("SLURM_JOB_NODELIST")?, &said("SLURM_JOB_CPUS_PER_NODE")?).map(Some)
    }

    /// How long it is still there; none if it does not end, or that is unknown.
    pub(crate) fn left(&self) -> Option<Duration> {
        let asked = Command::new("squeue").args(["--noheader", "--format=%L", "--jobs", &self.job]).output();
        let left = time_left(String::from_utf8_lossy(&asked.ok()?.stdout).trim())?;
        Some(left.saturating_sub(MARGIN))
    }
}

/// `1-02:03:04`, `2:03:04`, `3:04`; `None` for other texts, such as `UNLIMITED`.
fn time_left(text: &str) -> Option<Duration> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
        None => (0, text),
    };
    let parts: Vec<u64> = rest.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match *parts.as_slice() {
        [hours, minutes, seconds] => (hours, minutes, seconds),
        [minutes, seconds] => (0, minutes, seconds),
        _ => return None,
    };
    let hours = days.checked_mul(24)?.checked_add(hours)?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    Some(Duration::from_secs(minutes.checked_mul(60)?.checked_add(seconds)?))
}

/// Who keeps an allocation; it is given back when this is dropped.
pub(crate) struct Keeper {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Keeper {
    /// Requests an allocation with these options, and waits until it is granted, however long that takes.
    /// `says` receives what `salloc` says.
    ///
    /// # Errors
    /// It is refused, or cannot be asked for.
    pub(crate) fn ask(options: &[String], says: &mut dyn FnMut(&str)) -> Result<(Self, Allocation), String> {
        use std::os::unix::process::CommandExt;
        let child = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .args(options)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| format!("sh: cannot be started: {error}"))?;
        let output = child.stdout.take();
        let keeper = Self { stdin: child.stdin.take(), child };
        let unreadable = |error: io::Error| format!("cannot read the output of salloc: {error}");
        let mut output = BufReader::new(output.ok_or_else(|| unreadable(io::ErrorKind::BrokenPipe.into()))?);
        let allocation = granted(&mut output, says)?;
        // The process writes more; a full pipe would stop it.
        let rest = move || drop(io::copy(&mut output, &mut io::sink()));
        thread::Builder::new().spawn(rest).map_err(unreadable)?;
        Ok((keeper, allocation))
    }

    /// Whether the allocation was taken away.
    pub(crate) fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stdin = None;
        // It ends when salloc has, which takes a moment.
        let _ = self.child.wait();
    }
}

/// Waits until a keeper has an allocation; `says` receives all other lines.
fn granted(output: &mut impl BufRead, says: &mut dyn FnMut(&str)) -> Result<Allocation, String> {
    let (mut line, mut last) = (Vec::new(), String::new());
    loop {
        line.clear();
        if !output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            return Err(format!("salloc ended without an allocation: {last}"));
        }
        let text = String::from_utf8_lossy(&line);
        let words: Vec<&str> = text.trim_end().split(' ').collect();
        match words.as_slice() {
            ["granted", job, nodes, cpus] => return Allocation::of(job, nodes, cpus),
            ["over", _] => return Err(format!("salloc gave no allocation: {last}")),
            [""] => {}
            _ => {
                text.trim_end().clone_into(&mut last);
                says(&last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_read_as_slurm_writes_it() {
        let seconds = |text| time_left(text).map(|left| left.as_secs());
        assert_eq!(seconds("1-02:03:04"), Some(93_784));
        assert_eq!(seconds("2:03:04"), Some(7384));
        assert_eq!(seconds("3:04"), Some(184));
        assert_eq!(["UNLIMITED", "NOT_SET", "INVALID", "", "5"].map(seconds), [None; 5]);
    }

    #[test]
    fn every_node_has_its_processors() {
        let allocation = Allocation::of("7", "n[1-2],m", "2(x2),8").unwrap();
        let nodes: Vec<(&str, u32)> = allocation.nodes.iter().map(|(name, cpus)| (&**name, *cpus)).collect();
        assert_eq!(nodes, [("n1", 2), ("n2", 2), ("m", 8)]);
        assert!(
            Allocation::of("7", "n[1-2]", "2")
                .unwrap_err()
                .contains("found 2 nodes and processor counts for 1")
        );
    }
}
