//! What several suites read: the documents of `testdata/instances`.

pub(crate) use slackline::conformance::workloads as instances;
