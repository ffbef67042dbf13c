//! Names the files that those in a mirror stand for, for users.

use std::path::Path;

use crate::run::JobVerdict;
use crate::run::error::EngineError;
use crate::run::reuse::{Reason, Verdict};
use crate::spec::resolve::without_mirror;

pub(super) fn translate_verdicts(mirror: &Path, verdicts: &mut [JobVerdict]) {
    for it in verdicts {
        match &mut it.verdict {
            Verdict::Prevented(text) | Verdict::Run(Reason::Output(text, _)) => {
                *text = without_mirror(mirror, text);
            }
            Verdict::Run(Reason::Input(path, _)) => {
                *path = without_mirror(mirror, &path.display().to_string()).into();
            }
            _ => {}
        }
    }
}

pub(super) fn translate_error(mirror: &Path, error: &mut EngineError) {
    match error {
        EngineError::Unrunnable(jobs) => {
            for job in jobs {
                job.fault.problem = without_mirror(mirror, &job.fault.problem);
            }
        }
        EngineError::Claimed { path } => *path = without_mirror(mirror, path),
        _ => {}
    }
}
