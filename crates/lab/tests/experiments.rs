//! Every specification that comes with the program is valid, and its committed results belong to it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use slackline_lab::provenance::{FILE, Provenance};
use slackline_lab::{Context, experiment, experiments, make};

fn directory(id: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(id)
}

#[test]
fn every_experiment_of_the_repository_comes_with_the_program() {
    let known: Vec<&str> = experiments().iter().map(|experiment| experiment.id).collect();
    for entry in std::fs::read_dir(directory("")).unwrap() {
        let entry = entry.unwrap();
        // Studies that are separate scripts have no specification.
        if entry.path().join("spec.toml").exists() {
            let name = entry.file_name().into_string().unwrap();
            assert!(known.contains(&name.as_str()), "experiments/{name} is in no list");
        }
    }
}

/// A figure's rows carry the hash of its specification. After a change, the figure must be made again.
#[test]
fn committed_results_are_of_their_specification() {
    for experiment in experiments() {
        let readme = std::fs::read_to_string(directory(experiment.id).join("README.md")).unwrap();
        for figure in experiment.spec().unwrap().figures {
            let file = format!("{}.csv", figure.id);
            let path = directory(experiment.id).join(&file);
            let rows = std::fs::read_to_string(&path)
                .unwrap_or_else(|_| panic!("{}/{file} is missing", experiment.id));
            let mut rows = csv::Reader::from_reader(rows.as_bytes());
            let column = rows.headers().unwrap().iter().position(|name| name == "spec").unwrap();
            let hash = figure.hash();
            for row in rows.records() {
                assert_eq!(
                    &row.unwrap()[column],
                    hash,
                    "{}/{file} is stale: slackline repro {0} {1} --output experiments/{0}",
                    experiment.id,
                    figure.id
                );
            }
            assert!(
                readme.contains(&figure.id),
                "{}/README.md does not say what {} shows",
                experiment.id,
                figure.id
            );
        }
    }
}

/// The record names the program that made each figure.
#[test]
fn each_committed_file_names_the_program_that_made_it() {
    for experiment in experiments() {
        let dir = directory(experiment.id);
        let text = std::fs::read_to_string(dir.join(FILE)).unwrap();
        let made = Provenance::parse(&text).unwrap();
        assert_eq!(
            made.to_string(),
            text,
            "experiments/{}/{FILE} is as the program writes it",
            experiment.id
        );
        let names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
        let present: BTreeSet<String> = names
            .map(|name| name.into_string().unwrap())
            .filter(|name| matches!(name.rsplit_once('.'), Some((_, "csv" | "svg"))))
            .collect();
        let listed: BTreeSet<String> = made.files.keys().cloned().collect();
        assert_eq!(listed.difference(&present).next(), None, "experiments/{}/{FILE}", experiment.id);
        // A separate test draws the picture of a table from its rows.
        let unlisted = present.difference(&listed).find(|name| {
            !name.strip_suffix(".svg").is_some_and(|figure| listed.contains(&format!("{figure}.csv")))
        });
        assert_eq!(unlisted, None, "experiments/{}/{FILE}", experiment.id);
        for (name, maker) in made.files {
            let commit = maker.commit.unwrap_or_default();
            let is_one = commit.len() >= 7 && commit.chars().all(|sign| sign.is_ascii_hexdigit());
            assert!(is_one, "experiments/{}/{FILE}: {name} is of commit {commit:?}", experiment.id);
        }
    }
}

/// Makes a figure again and compares it with the committed one, byte for byte.
fn made_again(id: &str, figure: &str) {
    let spec = experiment(id).and_then(|known| known.spec().ok()).expect("an experiment of ours");
    let figure = spec.figures.iter().find(|known| known.id == figure).expect("a figure of it");
    let context = Context { seeds: None, threads: 2, progress: &|_, _| {}, tell: &|_| {} };
    for artifact in make(figure, &context).expect("a figure that can be made") {
        let committed = std::fs::read_to_string(directory(id).join(&artifact.name)).unwrap_or_default();
        assert!(
            artifact.text == committed,
            "{id}/{} is not what the program gives: slackline repro {id} {} --output experiments/{id}",
            artifact.name,
            figure.id
        );
    }
}

#[test]
fn the_figure_of_the_baselines_is_what_the_program_gives() {
    made_again("baselines", "woha-fig7");
}

#[test]
fn a_figure_of_dmrs_is_what_the_program_gives() {
    made_again("dmrs", "fig2a");
}

#[test]
fn a_figure_of_flex_is_what_the_program_gives() {
    made_again("flex", "base");
}

#[test]
fn a_figure_of_flowflex_is_what_the_program_gives() {
    made_again("flowflex", "fig11-sla");
}

#[test]
fn a_figure_of_job_orders_is_what_the_program_gives() {
    made_again("job-ordering", "fig5");
}

#[test]
fn a_figure_of_woha_is_what_the_program_gives() {
    made_again("woha", "fig14-19");
}

#[test]
fn the_same_figure_has_the_same_bytes_on_any_number_of_threads() {
    let spec = experiments()[0].spec().unwrap();
    let made = |threads| {
        let context = Context { seeds: Some(2), threads, progress: &|_, _| {}, tell: &|_| {} };
        make(&spec.figures[0], &context).unwrap()
    };
    assert_eq!(made(1), made(3));
}
