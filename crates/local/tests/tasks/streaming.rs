//! Commands by the contract of Hadoop Streaming.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::job::{Trial, text};

/// A word count in awk, with or without a combiner.
fn awk(combiner: Value) -> Value {
    let mut job = json!({
        "mapper": "awk '{ for (i = 1; i <= NF; i++) print $i \"\\t\" 1 }'",
        "reducer": "awk -F '\\t' 'k != $1 { if (NR > 1) print k \"\\t\" n; k = $1; n = 0 } { n += $2 } END { if (NR) print k \"\\t\" n }'",
    });
    if combiner != Value::Null {
        job["combiner"] = combiner;
    }
    job
}

#[test]
fn awk_counts_words_with_and_without_a_combiner() {
    let input = text(6, 400);
    let mut counts = BTreeMap::new();
    for word in input.split_ascii_whitespace() {
        *counts.entry(word).or_insert(0) += 1;
    }
    let mut expected: Vec<_> = counts.iter().map(|(word, count)| format!("{word}\t{count}")).collect();
    expected.sort();
    // The last one gives its keys in an order of its own.
    let combiners = [
        Value::Null,
        awk(Value::Null)["reducer"].clone(),
        json!("awk -F '\\t' '{ n[$1] += $2 } END { for (k in n) print k \"\\t\" n[k] }'"),
    ];
    for combiner in combiners {
        let combines = combiner != Value::Null;
        let trial = Trial::of(awk(combiner)).with(2, 4000, 15_000);
        let file = trial.write("in.txt", &input);
        let output = trial.run(&[file]).unwrap();
        assert_eq!(output.sorted(), expected);
        assert!(output.spills() > 2 && output.parts.len() == 2);
        let pairs: u64 = output.maps.iter().map(|o| o.records_out).sum();
        assert_eq!(pairs < 1000, combines, "{pairs} pairs");
    }
}

#[test]
fn reducers_see_sorted_lines_and_bytes_pass_untouched() {
    let lines: Vec<Vec<u8>> = (0..=255u8)
        .filter(|byte| *byte != b'\n')
        .map(|byte| [&[byte, 0xff, 0xfe][..], b"\t\xc3\x28", &[byte, b'\n']].concat())
        .collect();
    let trial = Trial::of(json!({ "mapper": "cat", "reducer": "cat" })).with(1, 100, 100);
    let file = trial.write("in", lines.concat());
    let output = trial.run(&[file]).unwrap();
    let mut expected: Vec<Vec<u8>> = lines;
    for line in &mut expected {
        // A tab at the front ends an empty key.
        if line[0] == b'\t' {
            *line = b"\t\xff\xfe\t\xc3\x28\t\n".to_vec();
        }
    }
    expected.sort_by(|a, b| a.split(|&b| b == b'\t').next().cmp(&b.split(|&b| b == b'\t').next()));
    assert_eq!(output.parts[0], expected.concat());
}

#[test]
fn lines_without_a_tab_are_keys_and_a_reducer_is_optional() {
    for job in [json!({ "mapper": "cat" }), json!({ "mapper": "cat", "reducer": "cat" })] {
        let trial = Trial::of(job).with(1, 100, 100);
        let file = trial.write("in", "b\na\tx\ty\n\na");
        assert_eq!(trial.run(&[file]).unwrap().text(), "\t\na\tx\ty\na\t\nb\t\n");
    }
}

#[test]
fn map_only_output_is_what_the_mapper_says() {
    let trial = Trial::of(json!({ "mapper": "tr a-z A-Z; printf end" })).with(0, 8, 100);
    let file = trial.write("in", "one\ntwo\nthree\nfour\n");
    let output = trial.run(&[file]).unwrap();
    assert_eq!(output.parts, [b"ONE\nTWO\nTHREE\nend".to_vec(), b"FOUR\nend".to_vec(), b"end".to_vec()]);
    assert_eq!(output.maps[0].records_out, 4);
}

#[test]
fn commands_know_their_input() {
    let trial = Trial::of(
        json!({ "mapper": "cat >&2; echo $SLACKLINE_TASK $SLACKLINE_INPUT ${mapreduce_map_input_file##*/}" }),
    );
    let inputs = [trial.write("a", "x\n"), trial.write("b", "y\n")];
    assert_eq!(trial.with(0, 100, 100).run(&inputs).unwrap().text(), "0 0 a\n1 1 b\n");
}

#[test]
fn a_command_may_stop_reading_early() {
    let input = "line\n".repeat(200_000);
    let trial = Trial::of(json!({ "mapper": "head -n 3", "reducer": "head -n 2" })).with(1, 1 << 30, 1 << 20);
    let file = trial.write("in", &input);
    assert_eq!(trial.run(&[file]).unwrap().text(), "line\t\nline\t\n");

    // Whatever it has read, the exit status decides.
    let trial = Trial::of(json!({ "mapper": "head -n 3; exit 9" })).with(1, 1 << 30, 1 << 20);
    let file = trial.write("in", &input);
    let error = trial.run(&[file]).unwrap_err().to_string();
    assert_eq!(error, "mapper \"head -n 3; exit 9\": exit status: 9");
}

#[test]
fn combiners_and_reducers_may_leave_background_processes_and_lose_nothing() {
    let leave = "cat; sleep 3 &";
    let trial = Trial::of(json!({ "mapper": leave, "combiner": leave, "reducer": leave }));
    // More than a pipe holds, and read slower than it is written: pairs are sorted and spilled between.
    let lines: Vec<String> = (0..40_000).map(|i| format!("{i:05}\tx\n")).collect();
    let output = trial.with(1, 1 << 30, 1 << 20);
    let file = output.write("in", lines.concat());
    let output = output.run(&[file]).unwrap();
    assert!(output.spills() > 2, "{} spills", output.spills());
    assert!(output.text() == lines.concat());
}
