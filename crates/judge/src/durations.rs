//! Checks the durations of attempts: seconds / speed, from the later of the start and the last map.

use slackline_model::schedule::{Outcome, TaskRow};
use slackline_model::{Instance, Profile};

use crate::ledger::Ledger;
use crate::order::{Progress, computes_from};
use crate::violation::{First, Place, Subject, Violation};
use crate::{inputs, tolerance};

/// Offers attempts that computed for more or less time than their task takes: seconds / speed, under a
/// profile times the factor of the place where they ran. Under a profile with stragglers an attempt may also
/// take the straggler factor times that. Attempts that were stopped may have computed for less time. The rows
/// do not show how long an attempt computed that was stopped after it waited for maps: with heartbeats, the
/// ApplicationMaster may learn of the last map only later.
pub(crate) fn check(ledger: &Ledger<'_>, progress: &Progress, profile: Option<&Profile>, first: &mut First) {
    let straggler = profile.filter(|profile| profile.straggler_share() > 0.0);
    let straggler = straggler.map_or(1.0, Profile::straggler_factor);
    for &i in ledger.by_start() {
        let row = ledger.row(i);
        // Reduces whose maps never complete may wait for any time.
        let Some(from) = computes_from(ledger.instance, progress, row) else { continue };
        // An attempt that ended while it still waited did not compute.
        let found = row.end.since(from).seconds();
        let outright = matches!(row.outcome, Outcome::Done | Outcome::Lost);
        if !outright && progress.may_have_waited(ledger.instance, row) {
            continue;
        }
        // A re-run without length may have preceded a reduce without length at the same instant.
        let at_once = row.end > from && progress.ends_with_barrier(ledger.instance, row);
        for_each_stretch(ledger, profile, row, |task, slot, expected| {
            let wrong = if outright {
                let mut may_take = [expected, straggler * expected].into_iter();
                let right = may_take.any(|expected| tolerance::same_amount(found, expected));
                !(right || at_once && tolerance::same_amount(0.0, expected))
            } else {
                found > straggler * expected + tolerance::amount(straggler * expected)
            };
            if wrong {
                let at = row.end.seconds();
                first.offer(at, row.phase, || Violation::Duration {
                    at,
                    task: Subject::task(ledger.instance, row.phase, task),
                    place: place(ledger.instance, row, slot),
                    found,
                    expected,
                    outright,
                });
            }
        });
    }
}

fn place(instance: &Instance, row: &TaskRow, slot: u32) -> Place {
    Place::new(instance.cluster(), instance.slot_kind_of(row.phase), slot)
}

/// Calls `f(task, slot, seconds)` with the first task of each stretch of a row. The tasks of a stretch take
/// equally long, on slots of equal speed, at the same distance from their input.
fn for_each_stretch(
    ledger: &Ledger<'_>,
    profile: Option<&Profile>,
    row: &TaskRow,
    mut f: impl FnMut(u32, u32, f64),
) {
    let Some(tasks) = ledger.instance.phase(row.phase).tasks() else { return };
    let slot_kind = ledger.instance.slot_kind_of(row.phase);
    let is_one_by_one = inputs::have_factors(profile);
    let mut task = row.first;
    let mut last = None;
    for place in ledger.rows.places(row) {
        let mut slot = place.first;
        while slot < place.end() {
            let (span, equal) = tasks.run_at(task);
            let (speed, until) = ledger.instance.cluster().speed_of(slot_kind, slot);
            let far = inputs::factor(profile, ledger.instance, row.phase, task, slot);
            if last != Some((span, speed, far)) {
                f(task, slot, far * span.seconds() / speed);
                last = Some((span, speed, far));
            }
            let step = if is_one_by_one { 1 } else { equal.min(until.min(place.end()) - slot) };
            task += step;
            slot += step;
        }
    }
}
