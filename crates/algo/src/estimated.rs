//! Estimated sizes of single tasks, and of the unstarted tasks of a phase.

use slackline_model::{PhaseId, Span};
use slackline_policy::View;
use slackline_policy::view::mean_of;

/// Consecutive tasks of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: u32,
    pub count: u32,
    /// Size: time at speed 1.
    pub span: Span,
}

/// The estimated size of a task.
pub(crate) fn size(view: &View<'_>, phase: PhaseId, task: u32) -> Span {
    let truth = || view.instance.phase(phase).tasks().map_or(Span::ZERO, |tasks| tasks.run_at(task).0);
    if view.estimates.each { of_task(view, phase, truth()) } else { view.estimates.task[phase] }
}

/// Unstarted tasks of a phase, with estimated sizes. O(pieces of them + runs of tasks).
pub(crate) fn pending<'a>(view: &View<'a>, phase: PhaseId) -> impl Iterator<Item = Run> + use<'a> {
    let View { instance, state, .. } = *view;
    let view = *view;
    let tasks = instance.phase(phase).tasks();
    state.phase(phase).pending().flat_map(move |(first, count)| {
        let (end, mut from) = (first + count, first);
        std::iter::from_fn(move || {
            let tasks = tasks.filter(|_| from < end)?;
            // Without knowledge of single tasks all of them are equal, in any pieces.
            let (span, count) = if view.estimates.each {
                let (truth, equal) = tasks.run_at(from);
                (of_task(&view, phase, truth), equal.min(end - from))
            } else {
                (view.estimates.task[phase], end - from)
            };
            let run = Run { first: from, count, span };
            from += count;
            Some(run)
        })
    })
}

/// Estimated total work and longest task of the unstarted tasks of a phase, seconds.
pub(crate) fn left(view: &View<'_>, phase: PhaseId) -> (f64, f64) {
    if !view.estimates.each {
        let (left, mean) = (view.phase(phase).unstarted(), view.estimates.task[phase].seconds());
        return (f64::from(left) * mean, if left > 0 { mean } else { 0.0 });
    }
    pending(view, phase).fold((0.0, 0.0), |(work, longest), run| {
        let seconds = run.span.seconds();
        (work + seconds * f64::from(run.count), seconds.max(longest))
    })
}

/// The estimated size of a task of that true size.
fn of_task(view: &View<'_>, phase: PhaseId, truth: Span) -> Span {
    let (estimated, mean) = (view.estimates.task[phase], mean_of(view.instance.phase(phase)));
    if !view.estimates.each || mean == Span::ZERO {
        estimated
    } else if estimated == mean {
        truth
    } else {
        Span::from_seconds_nearest(estimated.seconds() * (truth.seconds() / mean.seconds()))
    }
}
