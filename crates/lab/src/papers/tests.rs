//! Tests of the claims of the papers on the figures in `experiments`, and of verdicts on made-up rows.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::*;
use crate::counterexamples::CounterexampleEntry;
use crate::experiments;

/// A committed file and its expected content: compared, or written again.
fn holds(path: &Path, fresh: &str) {
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        std::fs::write(path, fresh).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == fresh, "{} is stale: run `cargo xtask bless` and review the diff", path.display());
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The experiments with their committed files.
fn kept() -> Vec<ExperimentPage> {
    let made = experiments().iter().map(|experiment| {
        let spec = experiment.spec().unwrap();
        let paper = experiment.paper(&spec).unwrap();
        let folder = root().join("experiments").join(experiment.id);
        let shown = |figure: &Figure| {
            let csv = std::fs::read_to_string(folder.join(format!("{}.csv", figure.id))).unwrap();
            FigurePage { figure: figure.clone(), rows: rows(&csv), files: Vec::new(), pictures: Vec::new() }
        };
        let figures = spec.figures.iter().map(shown).collect();
        ExperimentPage {
            id: experiment.id.to_owned(),
            title: spec.title.clone(),
            paper: Some(paper),
            figures,
        }
    });
    made.collect()
}

#[test]
fn every_figure_has_a_claim_and_every_expectation_is_about_rows_that_are_there() {
    for made in kept() {
        let paper = made.paper.as_ref().unwrap();
        for shown in &made.figures {
            let name = format!("{}/{}", made.id, shown.figure.id);
            let claim = paper.claim(&shown.figure.id).unwrap_or_else(|| panic!("{name} has no claim"));
            let (verdict, checked) = verdict(claim, &shown.rows);
            for one in &checked {
                assert!(
                    !one.found.contains("no number") && !one.found.contains("nothing of"),
                    "{name}: {one:?}"
                );
            }
            assert!(
                verdict != Verdict::Differs || claim.because.is_some(),
                "{name} differs, without a reason: {checked:?}"
            );
            for number in &claim.numbers {
                let fits = |row: &&Row| row.policy == number.policy && row.measure == number.measure;
                assert!(shown.rows.iter().any(|row| fits(&row)), "{name}: {number:?}");
            }
        }
    }
}

#[test]
fn a_picture_stands_beside_every_table_of_measures() {
    for made in kept() {
        let paper = made.paper.as_ref().unwrap();
        for shown in made.figures.iter().filter(|shown| !shown.rows.is_empty()) {
            let picture =
                picture(&shown.figure.title, paper.claim(&shown.figure.id), &shown.rows).unwrap().unwrap();
            let file = root().join("experiments").join(&made.id).join(format!("{}.svg", shown.figure.id));
            holds(&file, &picture);
        }
    }
}

/// The verdicts as a table of Markdown, for PAPERS.md.
fn markdown(made: &[ExperimentPage]) -> String {
    let mut out = String::from("| figure | in the paper | seeds | verdict |\n|---|---|---:|---|\n");
    for experiment in made {
        for (shown, claim, verdict, checked) in experiment.verdicts() {
            let (id, at) = (&shown.figure.id, claim.map_or("–", |claim| claim.at.as_str()));
            let holds = checked.iter().filter(|checked| checked.holds).count();
            let of =
                if checked.is_empty() { String::new() } else { format!(", {holds} of {}", checked.len()) };
            let _ = writeln!(
                out,
                "| `{}/{id}` | {at} | {} | {}{of} |",
                experiment.id,
                shown.seeds(),
                verdict.name()
            );
        }
    }
    out
}

#[test]
fn the_verdicts_in_papers_md_are_those_of_the_kept_rows() {
    let path = root().join("PAPERS.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once("<!-- verdicts: made by `cargo xtask bless` -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end of verdicts -->").unwrap();
    let table = markdown(&kept());
    holds(
        &path,
        &format!(
            "{head}<!-- verdicts: made by `cargo xtask bless` -->\n{table}<!-- end of verdicts -->{tail}"
        ),
    );
}

fn row(x: &str, policy: &str, mean: f64) -> Row {
    Row {
        x: x.to_owned(),
        series: String::new(),
        policy: policy.to_owned(),
        measure: "cost".to_owned(),
        seeds: 3,
        missing: 0,
        mean: Some(mean),
        ci95: Some(0.1),
        least: Some(mean - 0.5),
        most: Some(mean + 0.5),
        spec: "abc".to_owned(),
        version: "0".to_owned(),
    }
}

fn claim(expect: &str, better: &str) -> Claim {
    let text = format!("id = 'f'\nat = 'Fig. 1'\nclaim = 'c'\nexpect = [{expect}]\nbetter = [{better}]");
    toml::from_str(&text).unwrap()
}

#[test]
fn a_verdict_follows_from_the_rows() {
    let rows = [row("1", "a", 2.0), row("2", "a", 3.0), row("1", "b", 4.0), row("2", "b", 3.5)];
    let a = "policy = 'a', measure = 'cost'";
    for (expect, better, expected) in [
        (format!("{{{a}, most = 3}}"), String::new(), Verdict::Confirmed),
        (format!("{{{a}, most = 2.9}}"), String::new(), Verdict::Differs),
        (format!("{{{a}, most = 2.9, x = ['1']}}"), String::new(), Verdict::Confirmed),
        (format!("{{{a}, of = 'most', most = 3}}"), String::new(), Verdict::Differs),
        (format!("{{{a}, of = 'least', least = 1.5}}"), String::new(), Verdict::Confirmed),
        (format!("{{{a}, trend = 'rises'}}"), String::new(), Verdict::Confirmed),
        (format!("{{{a}, trend = 'falls'}}"), String::new(), Verdict::Differs),
        (format!("{{{a}, below = 'b'}}"), format!("{{{a}, below = 'b', times = 0.9}}"), Verdict::Better),
        (format!("{{{a}, below = 'b'}}"), format!("{{{a}, below = 'b', times = 0.8}}"), Verdict::Confirmed),
        // Missing rows confirm nothing.
        ("{policy = 'c', measure = 'cost', most = 9}".to_owned(), String::new(), Verdict::Differs),
        (format!("{{{a}, below = 'c'}}"), String::new(), Verdict::Differs),
        (String::new(), String::new(), Verdict::Shown),
    ] {
        let (found, checked) = verdict(&claim(&expect, &better), &rows);
        assert_eq!(found, expected, "{expect} {better}: {checked:?}");
    }
}

#[test]
fn rows_without_a_number_confirm_nothing() {
    let mut rows = [row("1", "a", 2.0), row("2", "a", 2.0)];
    rows[1].mean = None;
    let (found, _) = verdict(&claim("{policy = 'a', measure = 'cost', most = 3}", ""), &rows);
    assert_eq!(found, Verdict::Differs);
}

#[test]
fn errors_of_claims_have_a_place() {
    let spec = "slackline = 1\ntitle = 't'\npaper = 'p'\n[[figures]]\nid = 'f'\ntitle = 't'\nkind = 'sweep'\nseeds = 1\n[figures.settings]\n";
    let spec = Spec::parse("spec.toml", spec, &["sweep"]).unwrap();
    for (figure, expected) in [
        ("id = 'g'", "found \"g\", expected a figure of the specification"),
        ("id = 'f'\nexpect = [{ policy = 'a', measure = 'm' }]", "expected least, most, below or trend"),
        (
            "id = 'f'\nexpect = [{ policy = 'a', measure = 'm', most = 1, times = 2 }]",
            "found times without below",
        ),
    ] {
        let text = format!("slackline = 1\ncite = 'c'\n[[figures]]\nat = 'a'\nclaim = 'c'\n{figure}\n");
        let error = Paper::parse("paper.toml", &text, &spec).unwrap_err().to_string();
        assert!(error.starts_with("paper.toml:") && error.contains(expected), "{error}");
    }
}

#[test]
fn the_page_escapes_what_it_shows() {
    let spec = "slackline = 1\ntitle = '<b>t'\npaper = 'p'\n[[figures]]\nid = 'f'\ntitle = '</figure><script>'\nkind = 'sweep'\nseeds = 1\n[figures.settings]\n";
    let spec = Spec::parse("spec.toml", spec, &["sweep"]).unwrap();
    let rows = vec![row("<i>", "a&b", 1.0), row("2", "</svg>", 2.0)];
    let drawn = picture(&spec.figures[0].title, None, &rows).unwrap().unwrap();
    let shown = FigurePage {
        figure: spec.figures[0].clone(),
        rows,
        files: vec!["f.csv".to_owned()],
        pictures: vec![drawn],
    };
    let made = ExperimentPage { id: "e".to_owned(), title: spec.title, paper: None, figures: vec![shown] };
    let text = page(&[made], &[] as &[CounterexampleEntry]);
    for never in ["<script>", "<b>t", "<i>", "a&b"] {
        assert!(!text.contains(never), "{never}");
    }
    assert_eq!(text.matches("</svg>").count(), 1);
}

#[test]
fn figures_that_are_kept_are_of_the_same_specification_and_seeds() {
    let spec = experiments()[0].spec().unwrap();
    let figure = &spec.figures[0];
    let csv = format!("x,seeds,spec\n1,3,{0}\n2,3,{0}\n", figure.hash());
    assert!(fits(&csv, figure, 3) && !fits(&csv, figure, 4));
    assert!(!fits("x,seeds,spec\n1,3,other\n", figure, 3));
    assert!(!fits("x,seeds,spec\n", figure, 3) && !fits("", figure, 3));
}
