//! Every specification that comes with the program is valid, and its committed results are of it.

use std::path::PathBuf;

use slackline_repro::{Context, experiments, make};

fn directory(id: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(id)
}

#[test]
fn every_experiment_of_the_repository_comes_with_the_program() {
    let known: Vec<&str> = experiments().iter().map(|experiment| experiment.id).collect();
    for entry in std::fs::read_dir(directory("")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            assert!(known.contains(&name.as_str()), "experiments/{name} is in no list");
        }
    }
}

/// A figure's rows carry the hash of its specification: whoever changes one makes the other again.
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

#[test]
fn the_same_figure_has_the_same_bytes_on_any_number_of_threads() {
    let spec = experiments()[0].spec().unwrap();
    let made = |threads| {
        let context = Context { seeds: Some(2), threads, progress: &|_, _| {} };
        make(&spec.figures[0], &context).unwrap()
    };
    assert_eq!(made(1), made(3));
}
