//! Documents with parameters: the texts that they reach, the copies of flows, and refusals.

use slackline_model::Draft;
use slackline_model::draft::RunWork;

use crate::{Format, ImportOptions, Parameters, TraceError, read_workload, write_workload};

fn parameters(set: &[(&str, &str)], each: Option<(&str, &str)>) -> Parameters {
    let mut parameters = Parameters::default();
    for (name, value) in set {
        parameters.set(name, value).unwrap();
    }
    if let Some((name, values)) = each {
        parameters.for_each(name, values).unwrap();
    }
    parameters
}

fn read(text: &str, parameters: Parameters) -> Result<Draft, TraceError> {
    let options = ImportOptions::default().with_parameters(parameters);
    read_workload("w.toml", text.as_bytes(), None, &options).map(|read| read.draft)
}

const ALL: &str = "slackline = 1
[parameters]
night = '2026-03-01'
n = 3
[[flows]]
id = 'f{n}'
[[flows.jobs]]
id = 'a'
[flows.jobs.run]
mapper = 'awk \"{ print }\" {night}'
reducer = 'r {n} {other}'
combiner = 'c {n}'
inputs = ['in/{night}']
output = 'out/{night}'
env = { NIGHT = '{night}', N = 7 }
cwd = 'work/{n}'
files = ['t-{n}']
shell = 'sh -{n}'
[[flows.jobs]]
id = 'b'
run = { program = 'grep', args = { pattern = '^{night}' }, inputs = ['@a'], output = 'out/b{n}' }
[[flows.jobs]]
id = 'c'
run = { command = 'cat {night}', output = 'out/c' }
";

#[test]
fn names_that_are_declared_are_replaced_in_run_sections() {
    let draft = read(ALL, parameters(&[("n", "4 5")], None)).unwrap();
    assert_eq!(draft.flows[0].id, "f{n}", "elsewhere braces are braces");
    let runs: Vec<_> = draft.flows[0].jobs.iter().map(|job| job.run.clone().unwrap()).collect();
    let commands = RunWork::Commands {
        mapper: "awk \"{ print }\" 2026-03-01".into(),
        reducer: Some("r 4 5 {other}".into()),
        combiner: Some("c 4 5".into()),
    };
    assert_eq!(runs[0].work, commands);
    assert_eq!(
        (runs[0].inputs.as_slice(), runs[0].output.as_deref().unwrap()),
        (&["in/2026-03-01".to_owned()][..], "out/2026-03-01")
    );
    let setting = &runs[0].setting;
    assert_eq!((setting.env["NIGHT"].as_str(), setting.env["N"].as_str()), ("2026-03-01", "7"));
    assert_eq!((setting.cwd.as_deref(), setting.files[0].as_str()), (Some("work/4 5"), "t-4 5"));
    assert_eq!(setting.shell.as_deref(), Some("sh -{n}"));
    let args = vec![("pattern".to_owned(), "^2026-03-01".to_owned())];
    assert_eq!(runs[1].work, RunWork::Program { name: "grep".into(), args });
    assert_eq!(runs[2].work, RunWork::Command { command: "cat 2026-03-01".into() });
    let again = read_workload(
        "w.json",
        write_workload(&draft, Format::Json).as_bytes(),
        None,
        &ImportOptions::default(),
    );
    assert_eq!(again.unwrap().draft, draft, "a document that is written has none left");
}

const NIGHTS: &str = "slackline = 1
[parameters]
night = '2026-03-01'
[[flows]]
id = 'once'
jobs = [{ id = 'j', run = { command = 'c', output = 'once' } }]
[[flows]]
id = 'nightly'
deadline = 60
jobs = [{ id = 'j', run = { command = 'c {night}', inputs = ['@once/j'], output = 'out/{night}' } }]
[[flows]]
id = 'report'
jobs = [{ id = 'j', run = { command = 'c', inputs = ['@nightly/j'], output = 'report/{night}' } }]
[[flows]]
id = 'week'
jobs = [{ id = 'j', run = { command = 'c', inputs = ['x', '@nightly/j', 'y'], output = 'week' } }]
";

#[test]
fn a_flow_that_uses_a_parameter_with_several_values_becomes_one_a_value() {
    let draft = read(NIGHTS, parameters(&[], Some(("night", "2026-03-01..2026-03-02")))).unwrap();
    let flows: Vec<(&str, &str, Vec<&str>)> = (draft.flows.iter())
        .map(|flow| {
            let run = flow.jobs[0].run.as_ref().unwrap();
            (
                flow.id.as_str(),
                run.output.as_deref().unwrap(),
                run.inputs.iter().map(String::as_str).collect(),
            )
        })
        .collect();
    let expected = [
        ("once", "once", vec![]),
        ("nightly#2026-03-01", "out/2026-03-01", vec!["@once/j"]),
        ("nightly#2026-03-02", "out/2026-03-02", vec!["@once/j"]),
        ("report#2026-03-01", "report/2026-03-01", vec!["@nightly#2026-03-01/j"]),
        ("report#2026-03-02", "report/2026-03-02", vec!["@nightly#2026-03-02/j"]),
        ("week", "week", vec!["x", "@nightly#2026-03-01/j", "@nightly#2026-03-02/j", "y"]),
    ];
    assert_eq!(flows, expected);
    assert!(draft.flows[1..3].iter().all(|flow| flow.deadline == Some(60.0)));
    let one = read(NIGHTS, parameters(&[], Some(("night", "x")))).unwrap();
    assert_eq!(one.flows[1].id, "nightly#x");
}

#[test]
fn an_output_that_all_values_would_write_is_refused() {
    let text = NIGHTS.replace("'out/{night}'", "'out/'");
    let found = read(&text, parameters(&[], Some(("night", "1..3")))).unwrap_err().to_string();
    assert_eq!(
        found,
        "w.toml:10:83: flows[1].jobs[0].run.output: found the output out/ for each of 3 values of night, expected \
         {night} in it, such as out-{night}"
    );
    assert!(read(&text, parameters(&[], Some(("night", "1")))).is_ok(), "of one value there is one copy");
}

#[test]
fn errors_of_a_copy_have_the_place_of_its_flow() {
    let text = NIGHTS.replace("command = 'c {night}'", "command = 'c {night}', attempts = 0");
    let each = || parameters(&[], Some(("night", "1..3")));
    let found = read(&text, each()).unwrap_err().to_string();
    assert_eq!(
        found,
        "w.toml:10:63: flows[1].jobs[0].run.attempts: found 0, expected 1 or more: the first attempt counts"
    );
    let wrong = NIGHTS.replace("id = 'week'", "id = 'week'\nweight = -1");
    let wrong = wrong.replacen('\n', "\ncluster = { machines = [{ name = 'm', slots = 1 }] }\n", 1);
    let options = ImportOptions::default().with_parameters(each());
    let read = read_workload("w.toml", wrong.as_bytes(), None, &options).unwrap();
    let invalid = slackline_model::Instance::new(&read.draft).unwrap_err();
    let found = TraceError::from_invalid(&invalid, &read.source).to_string();
    assert!(found.contains("w.toml:17:10: flows[3].weight: found -1"), "{found}");
}

#[test]
fn names_that_are_not_declared_are_refused_where_they_are_given() {
    let error = |set: &[(&str, &str)], each| read(NIGHTS, parameters(set, each)).unwrap_err().to_string();
    let expected = "w.toml: found a value for parameter \"nigth\", expected night; did you mean \"night\"?";
    assert_eq!(error(&[("nigth", "1")], None), expected);
    assert_eq!(error(&[], Some(("nigth", "1..3"))), expected);
    let unused = NIGHTS.replace("{night}", "x");
    let found = read(&unused, parameters(&[], Some(("night", "1")))).unwrap_err().to_string();
    assert!(
        found.contains("w.toml:3:9: parameters.night: found values for each flow that uses {night}"),
        "{found}"
    );
    for (line, expected) in [
        ("'a b' = 1", "parameters: found the name \"a b\", expected a letter"),
        ("'' = 1", "parameters: found the name \"\""),
        ("a = \"x\\ny\"", "parameters.a: found \"x\\ny\", expected a text without NUL"),
        ("a = [1]", "parameters.a: found a list, expected a word"),
    ] {
        let text = format!("slackline = 1\n[parameters]\n{line}\n");
        let found = read(&text, Parameters::default()).unwrap_err().to_string();
        assert!(found.contains(expected), "{line}: {found}");
    }
    let none = read("slackline = 1\n", parameters(&[("a", "1")], None)).unwrap_err().to_string();
    assert_eq!(none, "w.toml: found a value for parameter \"a\", expected none");
}

#[test]
fn a_variable_of_the_shell_is_not_mistaken_for_a_parameter() {
    let text = NIGHTS.replace("'c {night}'", "'c ${night}'");
    let found = read(&text, Parameters::default()).unwrap_err().to_string();
    let expected = "run.command: found ${night}, expected {night} for the parameter, or $night for a variable of the shell";
    assert!(found.contains(expected), "{found}");
    let other = NIGHTS.replace("'c {night}'", "'c ${nights} ${HOME}'");
    let draft = read(&other, Parameters::default()).unwrap();
    let command = RunWork::Command { command: "c ${nights} ${HOME}".into() };
    assert_eq!(draft.flows[1].jobs[0].run.as_ref().unwrap().work, command);
}

#[test]
fn the_arguments_of_a_jar_have_meanings_that_no_parameter_takes() {
    let text = |parameter: &str| {
        format!(
            "slackline = 1\n[parameters]\n{parameter} = 'v'\n[[flows]]\nid = 'f'\njobs = [{{ id = 'j', run = {{ \
             jar = '{{{parameter}}}.jar', main = 'M', arguments = ['{{inputs}}', '-o={{output}}/{{{parameter}}}'], \
             output = 'o' }} }}]\n"
        )
    };
    let found = read(&text("output"), Parameters::default()).unwrap_err().to_string();
    let expected = "flows[0].jobs[0].run.arguments[1]: found {output} for a parameter, expected another name";
    assert!(found.contains(expected), "{found}");
    let draft = read(&text("name"), Parameters::default()).unwrap();
    let arguments = vec!["{inputs}".into(), "-o={output}/v".into()];
    let work = RunWork::Jar { jar: "v.jar".into(), main: "M".into(), arguments };
    assert_eq!(draft.flows[0].jobs[0].run.as_ref().unwrap().work, work);
}

#[test]
fn only_documents_have_parameters() {
    let options = ImportOptions::default().with_parameters(parameters(&[("a", "1")], None));
    for (name, text) in [("w.jsonl", "{\"slackline\": 1}\n"), ("t.tsv", "j\t0\t0\t1\t1\t1\n")] {
        let found = read_workload(name, text.as_bytes(), None, &options).unwrap_err().to_string();
        assert!(found.contains("found values for parameters, expected none: the format"), "{found}");
    }
}
