//! The documents of `testdata/instances`, which several suites read.

pub(crate) use slackline::conformance::workloads as instances;
