//! Reads bytes as a workload: in the format that `SLACKLINE_FORMAT` names, or guessed. A workload that was read can be
//! written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use slackline::import::{Shaped, Source, WorkloadOptions};
use slackline::trace::{Format, write_workload};

fuzz_target!(|bytes: &[u8]| {
    let mut options = WorkloadOptions::default();
    options.from = std::env::var("SLACKLINE_FORMAT").ok();
    let read = |source: Source, options| source.shape(options).and_then(Shaped::into_draft);
    if let Ok((draft, _)) = read(Source::new("fuzzed", bytes), &options) {
        let text = write_workload(&draft, Format::Json);
        let again = read(Source::new("again.json", text), &WorkloadOptions::default());
        assert_eq!(again.expect("a written workload can be read").0, draft);
    }
});
