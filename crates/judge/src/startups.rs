//! Checks how long tasks take to start after they took their slots: no time, or the time in the profile.

use slackline_model::Profile;
use slackline_model::schedule::Outcome;

use crate::ledger::Ledger;
use crate::tolerance;
use crate::violation::{First, Subject, Violation};

/// Offers attempts that started sooner or later than the profile allows. The ApplicationMaster of a job
/// learns of a slot with its next heartbeat, and then the container starts. Attempts may have been stopped
/// before they started; their rows do not show this.
pub(crate) fn check(ledger: &Ledger<'_>, profile: Option<&Profile>, first: &mut First) {
    let (least, most) = profile.map_or((0.0, 0.0), |profile| {
        let range = profile.container_start();
        (range.least.seconds(), range.most.seconds() + profile.am_heartbeat().seconds())
    });
    for &i in ledger.by_start() {
        let row = ledger.row(i);
        let found = row.startup.seconds();
        let is_whole = matches!(row.outcome, Outcome::Done | Outcome::Lost);
        let too_soon = is_whole && found < least - tolerance::amount(least);
        if too_soon || found > most + tolerance::amount(most) {
            let at = row.start.seconds();
            first.offer(at, row.phase, || Violation::Startup {
                at,
                task: Subject::task(ledger.instance, row.phase, row.first),
                found,
                least,
                most,
                profile: profile.is_some(),
            });
        }
    }
}
