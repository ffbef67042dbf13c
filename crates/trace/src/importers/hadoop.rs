//! Names of properties of Hadoop's configuration.

/// Hadoop's names of the number of tasks, by phase.
pub(super) const TASK_COUNTS: [[&str; 2]; 2] =
    [["mapreduce.job.maps", "mapred.map.tasks"], ["mapreduce.job.reduces", "mapred.reduce.tasks"]];
