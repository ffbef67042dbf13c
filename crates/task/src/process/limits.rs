//! Limits that a job sets for its attempts: memory, processors, time, retries.

use std::num::NonZeroUsize;

use slackline_model::draft::FailurePolicy;

/// The longest delay that a backoff leads to, seconds: a day.
const DELAY_MAX: f64 = 86_400.0;

/// The settings of a job for its attempts. A missing one has the value of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Memory of an attempt, bytes: it starts when that much is free beside the memory of other attempts with
    /// this setting, and its commands get no more.
    pub memory: Option<u64>,
    /// Processors of an attempt: it starts when that number is free. Without this setting an attempt counts
    /// as one, and waits only for attempts with the setting.
    pub processors: Option<u32>,
    /// Seconds after which an attempt is killed and counts as failed.
    pub timeout: Option<f64>,
    /// Number of failures of a task after which its job has failed.
    pub attempts: Option<u16>,
    /// Seconds from a failure to the next attempt of the task, which keeps its slot meanwhile.
    pub retry_delay: Option<f64>,
    /// The factor on this delay after each further failure.
    pub retry_backoff: Option<f64>,
    /// Exit codes of commands after which the task is not retried.
    pub no_retry: Vec<u8>,
    /// What happens to the rest of the flow if the job fails.
    pub failure_policy: FailurePolicy,
}

impl Limits {
    /// The reason why no attempt of the job can ever start on a machine, if there is one.
    pub fn too_large(&self, machine: Capacity) -> Option<String> {
        let Capacity { processors, memory } = machine;
        if let Some(asked) = self.processors.filter(|&asked| asked > processors) {
            return Some(format!("each attempt needs {asked} processors, but this machine has {processors}"));
        }
        let (asked, has) = self.memory.zip(memory).filter(|(asked, has)| asked > has)?;
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        Some(format!(
            "each attempt needs {} MiB of memory, but this machine has {} MiB",
            mib(asked),
            has >> 20
        ))
    }

    /// The delay of the next attempt of a task that has failed so often, seconds: at most a day, or the delay after
    /// the first failure if that is longer.
    pub fn delay(&self, failures: u16) -> Option<f64> {
        let first = self.retry_delay?;
        let factor = self.retry_backoff.unwrap_or(1.0).powi(i32::from(failures.saturating_sub(1)));
        Some((first * factor).min(first.max(DELAY_MAX)))
    }

    /// The resources of an attempt.
    pub fn demand(&self) -> Demand {
        Demand { processors: self.processors, memory: self.memory.unwrap_or(0) }
    }
}

/// The resources that an attempt takes of its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Processors; `None` if its job does not set them.
    processors: Option<u32>,
    /// Memory, bytes.
    memory: u64,
}

impl Demand {
    /// Whether its job sets its resources.
    pub fn is_declared(self) -> bool {
        self.processors.is_some() || self.memory > 0
    }

    /// Whether it may start beside the running attempts of a machine. Attempts without settings do not wait
    /// for each other.
    pub fn fits(self, machine: Capacity, at_work: impl Iterator<Item = Self>) -> bool {
        let (mut processors, mut memory, mut others, mut are_said) = (0u64, 0u64, 0, self.is_declared());
        for other in at_work {
            processors += u64::from(other.processors.unwrap_or(1));
            memory = memory.saturating_add(other.memory);
            others += 1;
            are_said |= other.is_declared();
        }
        let processors = processors + u64::from(self.processors.unwrap_or(1));
        let memory = memory.saturating_add(self.memory);
        others == 0
            || !are_said
            || processors <= u64::from(machine.processors) && machine.memory.is_none_or(|has| memory <= has)
    }
}

/// The resources of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    pub processors: u32,
    /// Memory, bytes; `None` if unknown.
    pub memory: Option<u64>,
}

impl Capacity {
    /// The resources of this machine.
    pub fn here() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { processors: u32::try_from(processors).unwrap_or(u32::MAX), memory: memory() }
    }
}

/// The memory of this machine, bytes; `None` if unknown.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Capacity = Capacity { processors: 2, memory: Some(8 << 30) };

    #[test]
    fn a_job_that_requests_more_than_there_is_is_refused() {
        let asks = |memory, processors| Limits { memory, processors, ..Limits::default() };
        assert_eq!(asks(None, None).too_large(MACHINE), None);
        assert_eq!(asks(Some(8 << 30), Some(2)).too_large(MACHINE), None);
        let of_processors = asks(None, Some(3)).too_large(MACHINE).unwrap();
        assert_eq!(of_processors, "each attempt needs 3 processors, but this machine has 2");
        let of_memory = asks(Some((8 << 30) + 1), None).too_large(MACHINE).unwrap();
        assert!(
            of_memory.starts_with("each attempt needs 8193 MiB of memory, but this machine has 8192 MiB")
        );
        assert_eq!(asks(Some(u64::MAX), None).too_large(Capacity { memory: None, ..MACHINE }), None);
    }

    #[test]
    fn delays_grow_by_the_backoff_up_to_a_day() {
        let limits =
            |delay, backoff| Limits { retry_delay: Some(delay), retry_backoff: backoff, ..Limits::default() };
        let delays = |limits: Limits| [1, 2, 3, 60_000].map(|failures| limits.delay(failures).unwrap());
        assert_eq!(delays(limits(30.0, None)), [30.0; 4]);
        assert_eq!(delays(limits(30.0, Some(2.0))), [30.0, 60.0, 120.0, 86_400.0]);
        assert_eq!(delays(limits(1e5, Some(2.0))), [1e5; 4]);
        assert_eq!(Limits::default().delay(1), None);
    }

    #[test]
    fn only_what_is_asked_for_is_waited_for() {
        let demand = |processors, gib: u64| Demand { processors, memory: gib << 30 };
        let fits = |one: Demand, others: &[Demand]| one.fits(MACHINE, others.iter().copied());
        let plain = Demand::default();
        assert!(fits(plain, &[plain; 9]), "slots alone decide");
        assert!(fits(demand(Some(2), 0), &[]) && !fits(demand(Some(2), 0), &[plain]));
        assert!(!fits(plain, &[demand(Some(2), 0)]) && fits(plain, &[demand(Some(1), 0)]));
        assert!(fits(demand(None, 4), &[demand(None, 4)]) && !fits(demand(None, 5), &[demand(None, 4)]));
        assert!(
            fits(demand(Some(9), 99), &[]),
            "what is too large is refused before, and never waits for ever"
        );
    }
}
