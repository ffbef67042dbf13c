//! What several suites read: the documents of `testdata/instances`.

pub(crate) use slackline_testkit::conformance::documents as instances;
