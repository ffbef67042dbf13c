//! The page of `--report`: the run beside its prediction.

use slackline::judge;
use slackline::report::page::{Drawn, Page, is_alike};
use slackline::report::{Figures, Row, comparison};
use slackline::run::{Outcome, Prediction};

use super::{Run, with_flag_names};
use crate::args::report::about;

impl Run {
    /// Writes the page of a finished run, if requested.
    pub(super) fn write_page(
        &self,
        name: &str,
        run: &slackline::run::Run,
        outcome: &Outcome,
    ) -> anyhow::Result<()> {
        if !self.report.is_asked() {
            return Ok(());
        }
        let (instance, schedule, meta) = (&outcome.instance, &outcome.schedule, &outcome.meta);
        let predicted = run.prediction().map_err(with_flag_names)?;
        let about = about(name, "run", Vec::new(), meta.options.clone(), meta.sha256.clone(), Vec::new());
        let mut page = Page::new(instance, about);
        page = page.with_policy(ran(outcome), Some(Drawn::of_schedule(instance, schedule, false)));
        if let Some(predicted) = predicted.as_ref().filter(|predicted| predicted.unknown.is_empty()) {
            page = page.with_policy(self.expected(predicted), drawn(outcome, predicted));
            page = page.with_prediction(&predicted.completions());
            if let Some(off) = outcome.error_of(predicted) {
                page = page.with_prediction_error(off.seconds, off.share);
            }
        }
        self.report.write(&page)
    }

    /// The figures of the prediction.
    fn expected(&self, predicted: &Prediction) -> Row {
        let policy = format!("{} predicted", self.policy.spec());
        Row { policy, ..Row::of_simulation(&predicted.instance, &predicted.simulated) }
    }
}

/// The figures of the run.
fn ran(outcome: &Outcome) -> Row {
    let mut figures = Figures::of_schedule(&outcome.schedule, &outcome.metrics);
    if let Ok(report) = judge::check(&outcome.instance, &outcome.schedule) {
        figures.groups = comparison::groups(&outcome.instance, &report.flows);
    }
    Row { policy: format!("{} ran", outcome.schedule.policy), result: Ok(figures) }
}

/// The prediction, to be drawn beside the run, if it has the same flows.
fn drawn(outcome: &Outcome, predicted: &Prediction) -> Option<Drawn> {
    let is_same = is_alike(&outcome.instance, &predicted.instance);
    is_same.then(|| Drawn::of_schedule(&predicted.instance, &predicted.simulated.schedule, true))
}
