//! Every built-in program against a naive computation in a few lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proptest::prelude::*;
use serde_json::json;

use crate::job::{Trial, text};

/// Lines `key TAB count` of a naive count, sorted.
fn counted<K: AsRef<str>>(keys: impl Iterator<Item = K>) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key.as_ref().to_owned()).or_insert(0) += 1;
    }
    let mut lines: Vec<String> = counts.iter().map(|(key, count)| format!("{key}\t{count}")).collect();
    lines.sort();
    lines
}

#[test]
fn wordcount_equals_a_naive_count() {
    let input = text(1, 3000);
    for (reducers, split, memory) in [(1, 1 << 20, 1 << 20), (3, 5000, 2000), (2, 700, 1)] {
        let trial = Trial::program("wordcount", json!({})).with(reducers, split, memory);
        let file = trial.write("in.txt", &input);
        let output = trial.run(&[file]).unwrap();
        assert_eq!(output.sorted(), counted(input.split_ascii_whitespace()));
        assert_eq!(output.maps.iter().map(|o| o.counts.records_in).sum::<u64>(), 3000);
        assert_eq!(output.maps.iter().map(|o| o.counts.bytes_in).sum::<u64>(), input.len() as u64);
        assert_eq!(output.spills() > 0, memory < 1 << 20);
        for part in &output.parts {
            let lines: Vec<_> = part.split(|&b| b == b'\n').filter(|l| !l.is_empty()).collect();
            let keys: Vec<_> = lines.iter().map(|l| l.split(|&b| b == b'\t').next()).collect();
            assert!(keys.is_sorted());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn wordcount_does_not_depend_on_limits(
        seed: u64, lines in 0usize..60, reducers in 1u32..5, split in 1u64..2000, memory in 0u64..3000,
    ) {
        let input = text(seed, lines);
        let trial = Trial::program("wordcount", json!({})).with(reducers, split, memory);
        let file = trial.write("in.txt", &input);
        prop_assert_eq!(trial.run(&[file]).unwrap().sorted(), counted(input.split_ascii_whitespace()));
    }

    #[test]
    fn sort_is_stable_and_global(
        seed: u64, lines in 0usize..80, reducers in 1u32..5, split in 1u64..2000, memory in 0u64..3000,
        field in 0u64..3, reverse: bool,
    ) {
        let input = text(seed, lines);
        let trial = Trial::program("sort", json!({ "field": field, "reverse": reverse }))
            .with(reducers, split, memory);
        let file = trial.write("in.txt", &input);
        let key = |line: &&str| match field {
            0 => (*line).to_owned(),
            n => line.split('\t').nth(n as usize - 1).unwrap_or_default().to_owned(),
        };
        let mut expected: Vec<&str> = input.lines().collect();
        if reverse {
            expected.sort_by_key(|line| std::cmp::Reverse(key(line)));
        } else {
            expected.sort_by_key(key);
        }
        let output = trial.run(&[file]).unwrap().text();
        prop_assert_eq!(output.lines().collect::<Vec<_>>(), expected);
    }
}

/// Boundaries hold the beginnings of keys alone.
#[test]
fn long_keys_with_one_beginning_are_sorted_over_all_parts() {
    for reverse in [false, true] {
        let trial = Trial::program("sort", json!({ "reverse": reverse })).with(3, 5000, 1 << 20);
        let mut lines: Vec<String> = (0..60)
            .map(|i| format!("{}{:02}\n", "x".repeat([300, 400, 256, 255][i % 4]), i * 7 % 10))
            .collect();
        let output = trial.run(&[trial.write("in", lines.concat())]).unwrap();
        lines.sort();
        if reverse {
            lines.reverse();
        }
        assert!(output.text() == lines.concat());
        assert!(std::fs::metadata(trial.path("prepared")).unwrap().len() <= 2 * (256 + 2));
    }
}

#[test]
fn sort_takes_numbers() {
    let trial = Trial::program("sort", json!({ "field": 2, "numeric": true, "reverse": true }));
    let file = trial.write("in.txt", "a\t9\nb\t10\nc\tx\nd\t-3.5\ne\t1e2\nf\nb2\t10\n");
    let output = trial.run(&[file]).unwrap();
    assert_eq!(output.text(), "e\t1e2\nb\t10\nb2\t10\na\t9\nd\t-3.5\nc\tx\nf\n");
}

/// An order-independent checksum of records.
fn checksum(records: &[&[u8]]) -> u64 {
    records
        .iter()
        .map(|r| r.iter().fold(1u64, |h, &b| h.wrapping_mul(131).wrapping_add(b.into())))
        .fold(0, u64::wrapping_add)
}

#[test]
fn terasort_is_globally_sorted_and_keeps_its_checksum() {
    for (format, split) in [("lines", 20_000), ("binary", 33_333)] {
        let generator =
            Trial::program("teragen", json!({ "records": 2000, "maps": 3, "format": format, "seed": 5 }));
        let records = generator.run(&[]).unwrap();
        assert_eq!(records.parts.iter().map(Vec::len).collect::<Vec<_>>(), [66_600, 66_700, 66_700]);
        let input = records.parts.concat();

        let trial = Trial::program("terasort", json!({ "format": format })).with(4, split, 50_000);
        for (i, part) in records.parts.iter().enumerate() {
            trial.write(&format!("in/part-{i}"), part);
        }
        let sorted = trial.run(&[trial.path("in").to_str().unwrap().to_owned()]).unwrap();
        assert!(sorted.parts.iter().all(|part| part.len() > 30_000), "the ranges are uneven");
        let output = sorted.parts.concat();
        let (before, after): (Vec<_>, Vec<_>) = (input.chunks(100).collect(), output.chunks(100).collect());
        assert!(after.is_sorted_by_key(|record| &record[..10]));
        assert_eq!((before.len(), checksum(&before)), (after.len(), checksum(&after)));
        let mut expected = before;
        expected.sort_by_key(|record| &record[..10]);
        assert!(after == expected);
    }
}

#[test]
fn grep_gives_lines_or_counts() {
    let input = text(3, 500);
    let matching: Vec<&str> =
        input.lines().filter(|line| line.contains("abx") || line.contains("abé")).collect();
    assert!(matching.len() > 20);
    let trial = Trial::program("grep", json!({ "pattern": "ab(x|é)" })).with(0, 3000, 3000);
    let file = trial.write("in.txt", &input);
    let lines = trial.run(std::slice::from_ref(&file)).unwrap();
    assert_eq!(lines.text().lines().collect::<Vec<_>>(), matching);
    assert!(lines.parts.len() > 3);

    let trial = Trial::program("grep", json!({ "pattern": "ab(x|é)" })).with(2, 3000, 3000);
    let mut sorted = matching.clone();
    sorted.sort_unstable();
    assert_eq!(trial.run(std::slice::from_ref(&file)).unwrap().sorted(), sorted);

    let trial =
        Trial::program("grep", json!({ "pattern": "b(x|é)", "output": "matches" })).with(2, 3000, 3000);
    let found = ["bx", "bé"].iter().flat_map(|text| input.matches(text));
    assert_eq!(trial.run(&[file]).unwrap().sorted(), counted(found));
}

#[test]
fn inverted_index_lists_files() {
    let trial = Trial::program("inverted-index", json!({})).with(2, 900, 2000);
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for seed in 0..5 {
        let input = text(seed, 40);
        let file = trial.write(&format!("in/{seed}.txt"), &input);
        for word in input.split_ascii_whitespace() {
            expected.entry(word.to_owned()).or_default().insert(file.clone());
        }
    }
    let output = trial.run(&[trial.path("in").join("*.txt").to_str().unwrap().to_owned()]).unwrap();
    let mut lines: Vec<String> = expected
        .iter()
        .map(|(word, files)| format!("{word}\t{}", files.iter().cloned().collect::<Vec<_>>().join(",")))
        .collect();
    lines.sort();
    assert_eq!(output.sorted(), lines);
}

#[test]
fn count_equals_a_naive_count_of_fields() {
    let input = text(5, 2000);
    for (reducers, split, memory) in [(1, 1 << 20, 1 << 20), (3, 5000, 2000)] {
        let trial = Trial::program("count", json!({ "field": 2 })).with(reducers, split, memory);
        let file = trial.write("in.txt", &input);
        let output = trial.run(&[file]).unwrap();
        let fields: Vec<&str> = input.lines().filter_map(|line| line.split('\t').nth(1)).collect();
        assert_eq!(output.maps.iter().map(|o| o.counts.skipped).sum::<u64>(), 2000 - fields.len() as u64);
        assert_eq!(output.sorted(), counted(fields.into_iter()));
        let trial = Trial::program("count", json!({ "separator": "spaces" })).with(reducers, split, memory);
        let file = trial.write("in.txt", &input);
        let words = input.lines().filter_map(|line| line.split_ascii_whitespace().next());
        assert_eq!(trial.run(&[file]).unwrap().sorted(), counted(words));
    }
}

#[test]
fn programs_read_fields_of_csv_and_json_wherever_files_are_cut() {
    let rows: Vec<(String, i32)> = (0..200)
        .map(|i: i32| (["plain", "with, comma", "a \"quote\""][i as usize % 3].to_owned(), i * 37 % 50 - 9))
        .collect();
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let records = rows.iter().enumerate().map(|(i, (name, n))| format!("{i},{},{n}\r\n", quoted(name)));
    let csv = "id,name,value\r\n".to_owned() + &records.collect::<Vec<_>>().concat();
    let json: String = rows
        .iter()
        .map(|(name, n)| json!({ "who": { "name": name }, "value": n }).to_string() + "\n")
        .collect();
    let expected = counted(rows.iter().map(|(name, _)| name.as_str()));
    for split in [1 << 20, 300] {
        let cases = [
            (&csv, json!({ "format": "csv", "field": "name" })),
            (&csv, json!({ "format": "csv", "field": 2, "header": true })),
            (&json, json!({ "format": "json", "field": "who.name" })),
        ];
        for (input, args) in cases {
            let trial = Trial::program("count", args.clone()).with(2, split, 1 << 20);
            let output = trial.run(&[trial.write("in", input)]).unwrap();
            assert_eq!(output.sorted(), expected, "{args}");
            assert_eq!(output.maps.iter().map(|o| o.counts.skipped).sum::<u64>(), 0);
        }
        for (input, args) in [
            (&csv, json!({ "format": "csv", "field": "value", "numeric": true })),
            (&json, json!({ "format": "json", "field": "value", "numeric": true })),
        ] {
            let trial = Trial::program("sort", args).with(3, split, 1 << 20);
            let output = trial.run(&[trial.write("in", input)]).unwrap();
            let mut lines: Vec<(i32, String)> = input
                .lines()
                .skip(input.lines().count() - rows.len())
                .zip(&rows)
                .map(|(line, (_, n))| (*n, line.to_owned()))
                .collect();
            lines.sort_by_key(|(n, _)| *n);
            let found: Vec<String> = output.text().lines().map(str::to_owned).collect();
            assert!(found == lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>());
        }
        let trial = Trial::program("histogram", json!({ "format": "csv", "field": "value", "width": 10 }))
            .with(1, split, 1 << 20);
        let output = trial.run(&[trial.write("in", &csv)]).unwrap();
        let bin = |n: i32| (f64::from(n) / 10.0).floor() as i32 * 10;
        assert_eq!(output.sorted(), counted(rows.iter().map(|(_, n)| bin(*n).to_string())));
    }
    let trial = Trial::program("count", json!({ "format": "csv", "field": "nam" }));
    let error = trial.run(&[trial.write("in", &csv)]).unwrap_err();
    assert!(
        error.to_string().starts_with("count: field: found field \"nam\", expected one of id, name, value"),
        "{error}"
    );
    assert!(error.is_final());
}

#[test]
fn join_takes_keys_of_csv_by_name() {
    let trial = Trial::program("join", json!({ "format": "csv", "left": "id", "right": "owner" })).with(
        2,
        1 << 20,
        1 << 20,
    );
    let inputs = [
        trial.write("left", "id,name\n1,\"a,b\"\n2,c\n"),
        trial.write("right", "what,owner\nx,1\ny,2\nz,3\n"),
    ];
    assert_eq!(trial.run(&inputs).unwrap().sorted(), ["1\t\"a,b\"\tx", "2\tc\ty"]);
}

/// Nine of ten lines have one key, and the others lie above it.
#[test]
fn a_hot_key_leaves_the_other_parts_of_a_sort_their_share() {
    let lines: Vec<String> = (0..2000)
        .map(|i| if i % 10 == 0 { format!("x{i:05}\t{i}\n") } else { format!("hot\t{i}\n") })
        .collect();
    let trial = Trial::program("sort", json!({ "field": 1 })).with(4, 1 << 30, 1 << 20);
    let output = trial.run(&[trial.write("in", lines.concat())]).unwrap();
    let counts: Vec<usize> =
        output.parts.iter().map(|part| part.split(|b| *b == b'\n').count() - 1).collect();
    assert_eq!((counts[0], counts.iter().sum::<usize>()), (1800, 2000));
    assert!(counts[1..].iter().all(|count| (60..74).contains(count)), "{counts:?}");
}

#[test]
fn words_are_parted_by_the_six_of_isspace() {
    let trial = Trial::program("wordcount", json!({})).with(1, 1 << 30, 1 << 20);
    let file = trial.write("in", "a\x0bb\x0cc\rd\te f\ng\u{a0}h");
    assert_eq!(trial.run(&[file]).unwrap().text(), "a\t1\nb\t1\nc\t1\nd\t1\ne\t1\nf\t1\ng\u{a0}h\t1\n");
}

#[test]
fn histogram_counts_by_bin_in_order() {
    let trial = Trial::program("histogram", json!({ "field": 2, "width": 2.5 })).with(1, 10, 100);
    let file = trial.write("in.txt", "a\t0\nb\t2.4\nc\t2.5\nd\t-0.1\ne\tnone\nf\ng\t 7\nh\t-30\ni\tinf\n");
    let output = trial.run(&[file]).unwrap();
    assert_eq!(output.text(), "-30\t1\n-2.5\t1\n0\t2\n2.5\t1\n5\t1\n");
    assert_eq!(output.maps.iter().map(|o| o.counts.skipped).sum::<u64>(), 3);
}

#[test]
fn sequence_count_equals_a_naive_count() {
    let input = text(8, 300);
    let trial = Trial::program("sequence-count", json!({})).with(2, 2000, 3000);
    let file = trial.write("in.txt", &input);
    let sequences = input.lines().flat_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        words.windows(3).map(|window| window.join(" ")).collect::<Vec<_>>()
    });
    assert_eq!(trial.run(&[file]).unwrap().sorted(), counted(sequences).into_iter().collect::<Vec<_>>());
}

#[test]
fn join_pairs_lines_of_two_inputs() {
    let lines = |seed: u64, side: &str| -> Vec<(String, String)> {
        (0..60u64)
            .map(|i| (format!("k{}", (i * 7 + seed) * (i + seed) % 40), format!("{side}{i}\t")))
            .collect()
    };
    let (left, right) = (lines(1, "l"), lines(4, "r"));
    for kind in ["inner", "left", "right", "full"] {
        let trial = Trial::program("join", json!({ "right": 2, "kind": kind })).with(3, 150, 400);
        let write = |name: &str, lines: Vec<String>| trial.write(name, lines.concat());
        let inputs = [
            write("left", left.iter().map(|(k, v)| format!("{k}\t{v}\n")).collect()),
            write("right", right.iter().map(|(k, v)| format!("{}\t{k}\t\n", v.trim_end())).collect()),
        ];
        let mut expected = Vec::new();
        for (key, value) in &left {
            let others: Vec<_> = right.iter().filter(|(other, _)| other == key).collect();
            expected.extend(others.iter().map(|(_, other)| format!("{key}\t{value}\t{other}")));
            if others.is_empty() && ["left", "full"].contains(&kind) {
                expected.push(format!("{key}\t{value}\t"));
            }
        }
        for (key, value) in &right {
            if !left.iter().any(|(other, _)| other == key) && ["right", "full"].contains(&kind) {
                expected.push(format!("{key}\t\t{value}"));
            }
        }
        expected.sort();
        assert_eq!(trial.run(&inputs).unwrap().sorted(), expected, "{kind}");
    }
    let trial = Trial::program("join", json!({}));
    assert_eq!(trial.run(&["x".to_owned()]).unwrap_err().to_string(), "found 1 inputs, expected 2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn join_of_few_keys_does_not_depend_on_memory(
        left in proptest::collection::vec((0u8..3, "[a-c]{0,20}"), 0..40),
        right in proptest::collection::vec((0u8..3, "[a-c]{0,4}"), 0..12),
        memory in 0u64..600, reducers in 1u32..3, kind in prop_oneof![Just("inner"), Just("full")],
    ) {
        let text = |lines: &[(u8, String)]| {
            lines.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect::<Vec<_>>().concat()
        };
        let run = |memory| {
            let trial = Trial::program("join", json!({ "kind": kind })).with(reducers, 100, memory);
            let inputs = [trial.write("left", text(&left)), trial.write("right", text(&right))];
            trial.run(&inputs).unwrap()
        };
        let output = run(memory);
        let has = |lines: &[(u8, String)], key| lines.iter().any(|(other, _)| *other == key);
        let mut expected = Vec::new();
        for (key, l) in &left {
            expected.extend(right.iter().filter(|r| r.0 == *key).map(|(_, r)| format!("{key}\t{l}\t{r}")));
        }
        if kind == "full" {
            expected.extend(left.iter().filter(|l| !has(&right, l.0)).map(|(key, l)| format!("{key}\t{l}\t")));
            expected.extend(right.iter().filter(|r| !has(&left, r.0)).map(|(key, r)| format!("{key}\t\t{r}")));
        }
        expected.sort();
        prop_assert_eq!(output.sorted(), expected);
        prop_assert_eq!(output.parts, run(1 << 20).parts);
    }
}

#[test]
fn generators_repeat_themselves() {
    let trial = |args| Trial::program("generate-text", args).run(&[]).unwrap();
    let one = trial(json!({ "bytes": "100KiB", "maps": 4, "seed": 3 }));
    assert_eq!(one.parts.len(), 4);
    let bytes: usize = one.parts.iter().map(Vec::len).sum();
    assert!((102_400..102_400 + 4 * 200).contains(&bytes), "{bytes} bytes");
    assert_eq!(one.text(), trial(json!({ "bytes": 102_400, "maps": 4, "seed": 3 })).text());
    assert_ne!(one.text(), trial(json!({ "bytes": 102_400, "maps": 4, "seed": 4 })).text());
    assert_ne!(one.parts[0], one.parts[1]);
    assert_eq!(
        one.text().lines().next(),
        Some("tu ba si no garita"),
        "the text of seed 3 begins so on every machine"
    );
}

#[test]
fn output_depends_on_input_alone() {
    let input = text(11, 400);
    let run = |memory| {
        let trial = Trial::program("wordcount", json!({})).with(3, 4000, memory);
        let file = trial.write("in.txt", &input);
        trial.run(&[file]).unwrap().parts
    };
    assert_eq!(run(1 << 20), run(1000));
}

#[test]
fn scratch_files_are_removed_and_no_other_is_made() {
    let trial = Trial::program("wordcount", json!({})).with(2, 1 << 20, 1000);
    let file = trial.write("in.txt", text(2, 500));
    trial.run(&[file]).unwrap();
    let names = |directory: &str| {
        let mut names: Vec<_> = fs::read_dir(trial.path(directory))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("map-0"), ["map.out"]);
    assert_eq!(names("reduce-1"), ["part-00001"]);
}
