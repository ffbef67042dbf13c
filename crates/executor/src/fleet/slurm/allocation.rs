//! An allocation of Slurm: its nodes and its time limit, how to request it and how to release it.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::fleet::slurm::nodes::{names, processors};

/// So long before its end an allocation counts as over: what runs then is asked to end by Slurm.
const MARGIN: Duration = Duration::from_secs(10);

/// Asks for an allocation, says what it is, and keeps it until its standard input ends: because the run gives
/// it back, or because the run is gone. `salloc` ends with the command that it was given, and takes HUP, of
/// the common signals alone, as the order to give back what it has or waits for.
const KEEPER: &str = r#"
exec 3<&0
salloc "$@" sh -c 'echo "granted $SLURM_JOB_ID $SLURM_JOB_NODELIST $SLURM_JOB_CPUS_PER_NODE"; exec cat > /dev/null' <&3 &
salloc=$!
{ cat; kill -s HUP $salloc; } <&3 > /dev/null 2>&1 &
wait $salloc
echo "over $?"
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
                "found {} nodes and the processors of {}, expected as many of both",
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
            std::env::var(name).map_err(|_| {
                format!("found no {name} beside SLURM_JOB_ID, expected what Slurm says of the job")
            })
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

/// `1-02:03:04`, `2:03:04`, `3:04`; none of what is no time, such as `UNLIMITED`.
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

/// What a keeper says while it waits.
enum KeeperOutput {
    /// A line of its standard output.
    Out(String),
    /// A line for people.
    Words(String),
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
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| format!("sh: cannot be started: {error}"))?;
        let (sender, said) = channel();
        let streams = (child.stdout.take(), child.stderr.take());
        let mut keeper = Self { stdin: child.stdin.take(), child };
        listen(streams.0, sender.clone(), KeeperOutput::Out)
            .and_then(|()| listen(streams.1, sender, KeeperOutput::Words))
            .map_err(|error| format!("salloc cannot be listened to: {error}"))?;
        let allocation = keeper.wait(&said, says)?;
        Ok((keeper, allocation))
    }

    /// Whether the allocation was taken away.
    pub(crate) fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn wait(
        &mut self,
        said: &Receiver<KeeperOutput>,
        says: &mut dyn FnMut(&str),
    ) -> Result<Allocation, String> {
        let mut last = String::new();
        loop {
            match said.recv() {
                Ok(KeeperOutput::Out(line)) => {
                    let words: Vec<&str> = line.split(' ').collect();
                    match words.as_slice() {
                        ["granted", job, nodes, cpus] => return Allocation::of(job, nodes, cpus),
                        ["over", ..] => {
                            // Its last words may come after that.
                            self.stdin = None;
                            last = said.iter().filter_map(KeeperOutput::words).last().unwrap_or(last);
                            return Err(format!("salloc gave no allocation: {last}"));
                        }
                        _ => {}
                    }
                }
                Ok(KeeperOutput::Words(line)) => {
                    says(&line);
                    last = line;
                }
                Err(_) => return Err(format!("salloc ended without an allocation: {last}")),
            }
        }
    }
}

impl KeeperOutput {
    fn words(self) -> Option<String> {
        match self {
            Self::Words(line) => Some(line),
            Self::Out(_) => None,
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stdin = None;
        // It ends when salloc has, which takes a moment.
        let _ = self.child.wait();
    }
}

/// Passes lines on, on its own thread, until there are no more or no process hears them.
fn listen(
    from: Option<impl Read + Send + 'static>,
    to: Sender<KeeperOutput>,
    said: impl Fn(String) -> KeeperOutput + Send + 'static,
) -> io::Result<()> {
    let Some(from) = from else { return Ok(()) };
    let work = move || {
        let lines = BufReader::new(from).lines().map_while(io::Result::ok);
        lines.map(said).for_each(|said| drop(to.send(said)));
    };
    thread::Builder::new().spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_read_as_slurm_writes_it() {
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
            Allocation::of("7", "n[1-2]", "2").unwrap_err().contains("found 2 nodes and the processors of 1")
        );
    }
}
