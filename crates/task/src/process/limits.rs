//! Limits that a job sets for its attempts: memory, processors, time, retries.

use std::num::NonZeroUsize;

/// The settings of a job for its attempts. A missing one is that of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Memory an attempt takes, bytes: it starts when so much is free of that of other attempts that say so,
    /// and its commands get no more.
    pub memory: Option<u64>,
    /// Processors an attempt takes: it starts when this many are free. One that does not say takes one, but
    /// waits only for those that do.
    pub processors: Option<u32>,
    /// Seconds after which an attempt is killed and counts as failed.
    pub timeout: Option<f64>,
    /// How often a task may fail before its flow has failed.
    pub attempts: Option<u16>,
    /// Seconds from a failure to the next attempt of the task, which keeps its slot meanwhile.
    pub retry_delay: Option<f64>,
    /// Exit codes of commands after which the task is not tried again.
    pub no_retry: Vec<u8>,
}

impl Limits {
    /// Why no attempt of the job could ever start on a machine, if so.
    pub fn too_large(&self, machine: Capacity) -> Option<String> {
        let Capacity { processors, memory } = machine;
        if let Some(asked) = self.processors.filter(|&asked| asked > processors) {
            return Some(format!(
                "found {asked} processors an attempt, expected at most {processors}, which this machine has"
            ));
        }
        let (asked, has) = self.memory.zip(memory).filter(|(asked, has)| asked > has)?;
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        Some(format!(
            "found {} MiB of memory an attempt, expected at most {} MiB, which this machine has",
            mib(asked),
            has >> 20
        ))
    }

    /// What an attempt takes.
    pub fn demand(&self) -> Demand {
        Demand { processors: self.processors, memory: self.memory.unwrap_or(0) }
    }
}

/// What an attempt takes of its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Processors; none if its job does not say.
    processors: Option<u32>,
    /// Memory, bytes.
    memory: u64,
}

impl Demand {
    /// Whether its job says what it takes.
    pub fn is_declared(self) -> bool {
        self.processors.is_some() || self.memory > 0
    }

    /// Whether it may start beside what works on a machine. Attempts that say nothing do not wait for each
    /// other.
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

/// What a machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    pub processors: u32,
    /// Memory, bytes; none if it does not say.
    pub memory: Option<u64>,
}

impl Capacity {
    /// What this machine has.
    pub fn here() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { processors: u32::try_from(processors).unwrap_or(u32::MAX), memory: memory() }
    }
}

/// The memory of this machine, bytes; none if it does not say.
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
        assert_eq!(
            of_processors,
            "found 3 processors an attempt, expected at most 2, which this machine has"
        );
        let of_memory = asks(Some((8 << 30) + 1), None).too_large(MACHINE).unwrap();
        assert!(of_memory.starts_with("found 8193 MiB of memory an attempt, expected at most 8192 MiB"));
        assert_eq!(asks(Some(u64::MAX), None).too_large(Capacity { memory: None, ..MACHINE }), None);
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
