//! The execution database (§V): machine speeds and task times, learned from finished tasks.
//!
//! A value: it is handed to the policy at the start and taken back at the end, so that a second run of
//! the same jobs begins with what the first has seen. Tasks are found again by the name of their phase
//! ([`slackline_policy::learning::key`]) and of the machine group.
//!
//! A group's speed is the believed size of what it has finished over the time that took. A phase's size
//! is the time its tasks took, each at the speed of its group. Sizes and speeds are only known up to a
//! common factor, which the believed sizes set.

use std::collections::BTreeMap;

use slackline_model::Span;

/// What a group has finished.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupRecord {
    /// Believed size, seconds at speed 1.
    pub size: f64,
    /// How long it took, seconds.
    pub seconds: f64,
}

/// What of a phase a group has finished.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskRecord {
    /// How many tasks.
    pub count: u64,
    /// How long they took together, seconds.
    pub seconds: f64,
}

/// The execution database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    groups: BTreeMap<String, GroupRecord>,
    phases: BTreeMap<String, BTreeMap<String, TaskRecord>>,
}

impl History {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes finished tasks of a phase: how large they were believed to be, and how long each took on a
    /// machine of `group`.
    pub fn note(&mut self, phase: &str, group: &str, count: u32, (size, took): (Span, Span)) {
        let count = u64::from(count);
        let record =
            GroupRecord { size: size.seconds() * count as f64, seconds: took.seconds() * count as f64 };
        let task = TaskRecord { count, seconds: record.seconds };
        self.add_group(group, record);
        self.add_tasks(phase, group, task);
    }

    /// Adds to what a group has finished.
    pub fn add_group(&mut self, group: &str, record: GroupRecord) {
        let sum = entry(&mut self.groups, group);
        sum.size += record.size;
        sum.seconds += record.seconds;
    }

    /// Adds to what of a phase a group has finished.
    pub fn add_tasks(&mut self, phase: &str, group: &str, record: TaskRecord) {
        let sum = entry(entry(&mut self.phases, phase), group);
        sum.count += record.count;
        sum.seconds += record.seconds;
    }

    /// What each group has finished, by name.
    pub fn groups(&self) -> impl Iterator<Item = (&str, GroupRecord)> {
        self.groups.iter().map(|(name, &record)| (name.as_str(), record))
    }

    /// What of each phase each group has finished, by names.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, &str, TaskRecord)> {
        self.phases.iter().flat_map(|(phase, groups)| {
            groups.iter().map(|(group, &record)| (phase.as_str(), group.as_str(), record))
        })
    }

    /// The speed of a group, if it has finished anything that took time.
    pub fn speed(&self, group: &str) -> Option<f64> {
        self.groups.get(group).and_then(|record| speed(*record))
    }

    /// The mean speed of the groups that are known, if there are any.
    pub fn mean_speed(&self) -> Option<f64> {
        let (mut sum, mut n) = (0.0, 0.0);
        for speed in self.groups.values().filter_map(|record| speed(*record)) {
            sum += speed;
            n += 1.0;
        }
        (n > 0.0).then(|| sum / n)
    }

    /// The mean size of a task of a phase, if any has finished.
    pub fn size(&self, phase: &str) -> Option<Span> {
        let (mut count, mut size) = (0, 0.0);
        for (group, record) in self.phases.get(phase)? {
            if let Some(speed) = self.speed(group) {
                count += record.count;
                size += record.seconds * speed;
            }
        }
        (count > 0).then(|| Span::from_seconds_nearest(size / count as f64))
    }
}

fn speed(record: GroupRecord) -> Option<f64> {
    (record.seconds > 0.0 && record.size > 0.0).then(|| record.size / record.seconds)
}

/// The entry of that name, made on first use; no string is allocated after that.
fn entry<'a, T: Default>(map: &'a mut BTreeMap<String, T>, name: &str) -> &'a mut T {
    if !map.contains_key(name) {
        map.insert(name.to_owned(), T::default());
    }
    map.get_mut(name).expect("invariant: just inserted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_sizes_come_out_of_times() {
        let s = Span::from_seconds_nearest;
        let mut history = History::new();
        history.note("a/map", "fast", 3, (s(8.0), s(2.0)));
        history.note("a/map", "slow", 1, (s(8.0), s(8.0)));
        assert_eq!(
            [history.speed("fast"), history.speed("slow"), history.speed("new")],
            [Some(4.0), Some(1.0), None]
        );
        assert_eq!(history.mean_speed(), Some(2.5));
        assert_eq!(history.size("a/map"), Some(s(8.0)));
        // Believed to be twice as large as it is: the size is corrected by the speeds of the others.
        let mut again = history.clone();
        again.note("b/map", "slow", 1, (s(2.0), s(1.0)));
        assert!(again.size("b/map").is_some_and(|size| size < s(1.2)));
        assert_eq!(history.size("b/map"), None);
        let mut copy = History::new();
        history.groups().for_each(|(group, record)| copy.add_group(group, record));
        history.tasks().for_each(|(phase, group, record)| copy.add_tasks(phase, group, record));
        assert_eq!(copy, history);
    }
}
