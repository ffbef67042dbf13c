//! The `run` section of a job: between the document and the model's draft.

use slackline_model::draft::{RunDraft, RunWork};

use super::wire;

/// Where in the section something is wrong, and what.
type Fault = (String, String);

/// The section as a draft, or what in it does not go together.
pub(super) fn to_run(run: wire::Run) -> Result<RunDraft, Fault> {
    let wire::Run { program, mapper, reducer, combiner, inputs, output, reducers, args } = run;
    let fault = |at: &str, what: &str| Err((at.to_owned(), what.to_owned()));
    if output.trim().is_empty() {
        return fault(".output", "found an empty path, expected a directory for the output");
    }
    if let Some(k) = inputs.iter().position(|input| input.trim().is_empty() || input == "@") {
        return fault(
            &format!(".inputs[{k}]"),
            "found nothing, expected a file, a glob, a directory, or @ and the id of an earlier job",
        );
    }
    let work = match (program, mapper) {
        (Some(name), None) if reducer.is_none() && combiner.is_none() => {
            let args = args.into_iter().map(|(name, value)| (name, value.to_string())).collect();
            RunWork::Program { name, args }
        }
        (None, Some(_)) if !args.is_empty() => {
            return fault(".args", "found arguments with a mapper, expected them in the command itself");
        }
        (None, Some(_)) if combiner.is_some() && reducer.is_none() => {
            return fault(".combiner", "found a combiner without a reducer, expected both or none");
        }
        (None, Some(_)) if reducer.is_none() && reducers.is_some_and(|n| n > 0) => {
            return fault(
                ".reducers",
                "found reducers without a reducer command, expected `reducer` as well",
            );
        }
        (None, Some(mapper)) => RunWork::Commands { mapper, reducer, combiner },
        _ => {
            return fault(
                "",
                "found neither or both of `program` and commands, expected either program = \"…\" or mapper = \"…\"",
            );
        }
    };
    Ok(RunDraft { work, inputs, output, reducers })
}

/// Jobs whose output is an input: the section comes after them.
pub(super) fn upstream(run: &RunDraft) -> impl Iterator<Item = &str> {
    run.inputs.iter().filter_map(|input| input.strip_prefix('@'))
}

/// The section that describes a draft.
pub(super) fn from_run(run: &RunDraft) -> wire::Run {
    let none = wire::Run {
        program: None,
        mapper: None,
        reducer: None,
        combiner: None,
        inputs: run.inputs.clone(),
        output: run.output.clone(),
        reducers: run.reducers,
        args: std::collections::BTreeMap::new(),
    };
    match &run.work {
        RunWork::Program { name, args } => {
            let args = args.iter().map(|(name, value)| (name.clone(), wire::Arg::Text(value.clone())));
            wire::Run { program: Some(name.clone()), args: args.collect(), ..none }
        }
        RunWork::Commands { mapper, reducer, combiner } => wire::Run {
            mapper: Some(mapper.clone()),
            reducer: reducer.clone(),
            combiner: combiner.clone(),
            ..none
        },
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::Instance;

    use crate::{Format, ImportOptions, read_workload, write_workload};

    fn document(run: &str) -> String {
        format!(
            "slackline = 1\n[cluster]\nmachines = [{{ name = 'n', slots = 2 }}]\n[[flows]]\nid = 'f'\njobs = [\n\
             {{ id = 'a', run = {{ program = 'wordcount', inputs = ['in/*.txt'], output = 'out/a', args = {{ n = 3 }} }} }},\n\
             {{ id = 'b', run = {{ {run} }} }},\n]\n"
        )
    }

    fn error(run: &str) -> String {
        let text = document(run);
        let read = read_workload("flow.toml", text.as_bytes(), None, &ImportOptions::default());
        read.unwrap_err().to_string()
    }

    #[test]
    fn inputs_from_jobs_make_edges_and_sections_survive() {
        let text = document("mapper = 'cat', reducer = 'uniq -c', inputs = ['@a', 'x'], output = 'out/b'");
        let read = |text: &str| {
            read_workload("flow.toml", text.as_bytes(), None, &ImportOptions::default()).unwrap().draft
        };
        let draft = read(&text);
        assert_eq!(draft.flows[0].jobs[1].after, ["a"]);
        assert_eq!(read(&write_workload(&draft, Format::Toml)), draft);
        let invalid = Instance::new(&draft).unwrap_err().to_string();
        assert!(invalid.contains("to be run for real"), "{invalid}");
    }

    #[test]
    fn what_does_not_go_together_is_said() {
        assert!(error("inputs = ['x'], output = 'y'").contains("expected either program"));
        assert!(error("program = 'sort', mapper = 'cat', output = 'y'").contains("expected either program"));
        assert!(error("program = 'sort', output = ' '").contains("expected a directory"));
        assert!(error("mapper = 'cat', inputs = [''], output = 'y'").contains("expected a file"));
        assert!(
            error("mapper = 'cat', combiner = 'cat', output = 'y'").contains("combiner without a reducer")
        );
        assert!(error("mapper = 'cat', reducers = 2, output = 'y'").contains("without a reducer command"));
        assert!(error("mapper = 'cat', args = { a = 1 }, output = 'y'").contains("in the command itself"));
        assert!(error("programm = 'sort', output = 'y'").contains("expected one of `program`"));
    }
}
