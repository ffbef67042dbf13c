//! The page of the papers: every figure with the paper's claim, our picture, our numbers, the verdict and its
//! reasons, and the false statements in the papers. It needs no network and no script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::expectation::short;
use super::{Checked, Claim, Paper, Row, Verdict, verdict};
use crate::counterexamples::CounterexampleEntry;
use crate::spec::Figure;

/// The look: light and dark by the reader's setting, one column in print.
const STYLE: &str = include_str!("page.css");

/// An experiment on the page.
#[derive(Clone, Debug)]
pub struct ExperimentPage {
    /// Its name, which is also its directory.
    pub id: String,
    /// Its subject.
    pub title: String,
    /// The claims of its paper.
    pub paper: Option<Paper>,
    pub figures: Vec<FigurePage>,
}

/// A figure on the page.
#[derive(Clone, Debug)]
pub struct FigurePage {
    pub figure: Figure,
    /// Its rows; none if its CSV has no measures.
    pub rows: Vec<Row>,
    /// Names of its files, the CSV first.
    pub files: Vec<String>,
    /// Its pictures, as SVG.
    pub pictures: Vec<String>,
}

impl FigurePage {
    /// Over how many seeds a figure was averaged.
    pub(super) fn seeds(&self) -> u32 {
        self.rows.first().map_or(self.figure.seeds, |row| row.seeds)
    }
}

impl ExperimentPage {
    fn claim(&self, shown: &FigurePage) -> Option<&Claim> {
        self.paper.as_ref().and_then(|paper| paper.claim(&shown.figure.id))
    }

    /// The verdict on each figure.
    pub fn judged(&self) -> impl Iterator<Item = Verdict> {
        self.verdicts().map(|(_, _, verdict, _)| verdict)
    }

    /// The verdict on each figure and its reasons, in the order of the figures.
    pub(super) fn verdicts(
        &self,
    ) -> impl Iterator<Item = (&FigurePage, Option<&Claim>, Verdict, Vec<Checked>)> {
        self.figures.iter().map(|shown| {
            let claim = self.claim(shown);
            let (verdict, checked) =
                claim.map_or((Verdict::Shown, Vec::new()), |claim| verdict(claim, &shown.rows));
            (shown, claim, verdict, checked)
        })
    }
}

/// The whole page. O(content).
pub fn page(made: &[ExperimentPage], printed: &[CounterexampleEntry]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "The papers and Slackline" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "The papers and Slackline" }
                    p {
                        "Every figure that the program reproduces, beside the claim of its paper. A point is the mean over the seeds, \
                         the thick line its 95 % interval, the thin line goes from the least to the largest. Hollow diamonds are numbers \
                         of the paper. A verdict is computed from the rows: "
                        b { "confirmed" } " if everything in the claim holds, " b { "better" } " if the result is better than the claim, " b { "differs" }
                        " if something in the claim does not hold."
                    }
                    p { "Slackline " (version) "." }
                }
                (contents(made, printed))
                main {
                    @for experiment in made { (section(experiment)) }
                    @if !printed.is_empty() { (errors(printed)) }
                }
            }
        }
    }
    .into_string()
}

/// The verdicts as CSV: experiment, figure, its place in the paper, seeds, verdict, expectations that hold.
pub fn verdicts(made: &[ExperimentPage]) -> String {
    let head = ["experiment", "figure", "paper", "seeds", "verdict", "holds", "expected"];
    let rows = made.iter().flat_map(|experiment| {
        experiment.verdicts().map(|(shown, claim, verdict, checked)| {
            let holds = checked.iter().filter(|checked| checked.holds).count();
            vec![
                experiment.id.clone(),
                shown.figure.id.clone(),
                claim.map_or(String::new(), |claim| claim.at.clone()),
                shown.seeds().to_string(),
                verdict.name().to_owned(),
                holds.to_string(),
                checked.len().to_string(),
            ]
        })
    });
    slackline::report::csv(&head, rows)
}

fn contents(made: &[ExperimentPage], printed: &[CounterexampleEntry]) -> Markup {
    html! {
        nav aria-label="Contents" {
            table {
                caption { "Figures and verdicts" }
                thead { tr { th { "Experiment" } th { "Figure" } th { "In the paper" } th { "Seeds" } th { "Verdict" } } }
                tbody {
                    @for experiment in made {
                        @for (shown, claim, verdict, checked) in experiment.verdicts() {
                            @let holds = checked.iter().filter(|checked| checked.holds).count();
                            tr {
                                td { (experiment.id) }
                                td { a href={ "#" (anchor(experiment, shown)) } { (shown.figure.id) } }
                                td { (claim.map_or("–", |claim| claim.at.as_str())) }
                                td.number { (shown.seeds()) }
                                td { (badge(verdict)) @if !checked.is_empty() { " " (holds) " of " (checked.len()) } }
                            }
                        }
                    }
                }
            }
            @if !printed.is_empty() {
                p { a href="#in-print" { "Claims of the papers that do not hold" } " (" (printed.len()) ")" }
            }
        }
    }
}

fn anchor(experiment: &ExperimentPage, shown: &FigurePage) -> String {
    format!("{}-{}", experiment.id, shown.figure.id)
}

fn badge(verdict: Verdict) -> Markup {
    html! { span class={ "verdict " (verdict.name()) } { (verdict.name()) } }
}

fn section(experiment: &ExperimentPage) -> Markup {
    html! {
        section id=(experiment.id) {
            h2 { (experiment.title) }
            @if let Some(paper) = &experiment.paper { p.cite { (paper.cite) } }
            @for (shown, claim, verdict, checked) in experiment.verdicts() {
                article id=(anchor(experiment, shown)) {
                    h3 { (shown.figure.id) " " (badge(verdict)) }
                    p { (shown.figure.title) "." }
                    @if let Some(claim) = claim { p { b { (claim.at) ": " } (claim.claim) } }
                    @for picture in &shown.pictures {
                        figure role="img" aria-label=(shown.figure.title) { (PreEscaped(picture)) }
                    }
                    (rests_on(verdict, claim, &checked))
                    (numbers(experiment, shown))
                }
            }
        }
    }
}

fn rests_on(verdict: Verdict, claim: Option<&Claim>, checked: &[Checked]) -> Markup {
    html! {
        @if !checked.is_empty() {
            ul.checks {
                @for one in checked {
                    li class=(if one.holds { "holds" } else { "fails" }) {
                        span.sign aria-hidden="true" { (if one.holds { "✓" } else { "✗" }) }
                        (one.expected) ": " b { (if one.holds { "yes" } else { "no" }) } ", found " (one.found)
                    }
                }
            }
        }
        @match (verdict, claim.and_then(|claim| claim.because.as_ref())) {
            (Verdict::Differs, Some(because)) => p { b { "Differs because: " } (because) },
            (Verdict::Differs, None) => p { b { "Differs" } "; the reason is unknown." },
            (_, Some(because)) => p { (because) },
            (_, None) => "",
        }
    }
}

/// The rows as a table, folded, and the files.
fn numbers(experiment: &ExperimentPage, shown: &FigurePage) -> Markup {
    let number = |x: Option<f64>| x.map_or("–".to_owned(), short);
    html! {
        @if !shown.rows.is_empty() {
            details {
                summary { "The numbers (" (shown.rows.len()) " rows, " (shown.seeds()) @if shown.seeds() == 1 { " seed)" } @else { " seeds)" } }
                div.wide {
                    table {
                        caption { (shown.figure.title) }
                        thead { tr {
                            th { "x" } th { "Series" } th { "Policy" } th { "Measure" }
                            th { "Mean" } th { "± 95 %" } th { "Least" } th { "Most" } th { "Missing" }
                        } }
                        tbody {
                            @for row in &shown.rows {
                                tr {
                                    td { (row.x) } td { (row.series) } td { (row.policy) } td { (row.measure) }
                                    td.number { (number(row.mean)) } td.number { (number(row.ci95)) }
                                    td.number { (number(row.least)) } td.number { (number(row.most)) }
                                    td.number { (row.missing) }
                                }
                            }
                        }
                    }
                }
            }
        }
        p.files {
            "Files:"
            @for file in &shown.files { " " a href={ (experiment.id) "/" (file) } { (file) } }
        }
    }
}

fn errors(printed: &[CounterexampleEntry]) -> Markup {
    html! {
        section id="in-print" {
            h2 { "Claims of the papers that do not hold" }
            p { "Each has a counterexample, which the program computes when it writes this page." }
            @for error in printed {
                article id=(error.id) {
                    h3 { (error.paper) ", " (error.at) }
                    p { b { "Printed: " } (error.printed) }
                    p { b { "Counterexample: " } (error.example) }
                    @for picture in &error.pictures { figure role="img" aria-label=(error.example) { (PreEscaped(picture)) } }
                    ul.checks {
                        @for line in &error.found { li { (line) } }
                    }
                    p { b { "Instead: " } (error.instead) }
                }
            }
        }
    }
}
