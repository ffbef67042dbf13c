//! Commands by the contract of Hadoop Streaming.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slackline_task::base::codec::Codec;
use slackline_task::process::spec::Outcome;

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
    // The last one writes its keys in another order.
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
        let pairs: u64 = output.maps.iter().map(|o| o.counts.records_out).sum();
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
fn map_only_output_is_the_lines_of_the_mapper() {
    let trial = Trial::of(json!({ "mapper": "tr a-z A-Z; printf end" })).with(0, 8, 100);
    let file = trial.write("in", "one\ntwo\nthree\nfour\n");
    let output = trial.run(&[file]).unwrap();
    assert_eq!(
        output.parts,
        [b"ONE\nTWO\nTHREE\nend\n".to_vec(), b"FOUR\nend\n".to_vec(), b"end\n".to_vec()]
    );
    assert_eq!(output.maps[0].counts.records_out, 4);
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

    // The exit status decides, for any amount of input read.
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

#[test]
fn a_mapper_runs_once_for_each_file_of_a_map_and_knows_which() {
    let mapper = "sed \"s,$,\t${mapreduce_map_input_file##*/} $SLACKLINE_INPUT $mapreduce_map_input_start \
                  $mapreduce_map_input_length $mapreduce_task_partition $mapreduce_task_ismap,\"";
    let trial = Trial::of(json!({ "mapper": mapper.replace("\\\n", "") })).with(0, 100, 1 << 20);
    trial.write("in/a.txt", "x\n");
    trial.write("in/b.txt", "y\ny");
    trial.write("in/c.txt", "");
    let output = trial.run(&[trial.path("in").to_str().unwrap().to_owned()]).unwrap();
    assert_eq!(output.maps.len(), 1, "they share a map");
    let lines: Vec<String> =
        output.text().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines, ["x a.txt 0 0 2 0 true", "y b.txt 0 0 3 0 true", "y b.txt 0 0 3 0 true"]);
    assert_eq!((output.maps[0].counts.records_in, output.maps[0].counts.bytes_in), (3, 6));

    // Lines and their end in one file are nothing to the next one.
    let trial =
        Trial::of(json!({ "mapper": "tail -n 1; printf end", "reducer": "cat" })).with(1, 100, 1 << 20);
    for name in ["a", "b"] {
        trial.write(&format!("in/{name}"), format!("{name}1\n{name}2\n"));
    }
    let output = trial.run(&[trial.path("in").to_str().unwrap().to_owned()]).unwrap();
    assert_eq!(output.text(), "a2\t\nb2\t\nend\t\nend\t\n");
}

#[test]
fn a_split_of_a_file_says_where_it_lies() {
    let trial = Trial::of(
        json!({ "mapper": "cat >&2; echo $mapreduce_map_input_start $mapreduce_map_input_length" }),
    );
    let file = trial.write("in", "0123456789\n".repeat(5));
    assert_eq!(trial.with(0, 25, 1 << 20).run(&[file]).unwrap().text(), "0 25\n25 25\n50 5\n");
}

#[test]
fn commands_have_their_own_variables_directory_and_shell() {
    let mut trial = Trial::of(
        json!({ "mapper": "cat; echo \"$GREETING\" $(basename $PWD) $SLACKLINE_TASK" }),
    )
    .with(0, 100, 1 << 20);
    std::fs::create_dir(trial.path("work")).unwrap();
    trial.setting.env.insert("GREETING".to_owned(), "it's  me".to_owned());
    trial.setting.env.insert("SLACKLINE_TASK".to_owned(), "mine".to_owned());
    trial.setting.cwd = Some(trial.path("work"));
    let file = trial.write("in", "x\n");
    assert_eq!(trial.run(std::slice::from_ref(&file)).unwrap().text(), "x\nit's  me work 0\n");

    trial.setting.cwd = Some(trial.path("none"));
    let error = trial.run(std::slice::from_ref(&file)).unwrap_err();
    assert!(error.to_string().starts_with("cannot enter ") && error.is_final(), "{error}");
    trial.setting.cwd = None;

    trial.setting.shell = Some("sh -e".to_owned());
    trial.job = serde_json::from_value(json!({ "mapper": "cat; false; echo more" })).unwrap();
    let error = trial.run(std::slice::from_ref(&file)).unwrap_err();
    assert!(error.to_string().contains("exit status: 1"), "{error}");
    for (shell, expected) in
        [("", "shell: found \"\", expected a program"), ("no-such-shell -x", "cannot start no-such-shell: ")]
    {
        trial.setting.shell = Some(shell.to_owned());
        let error = trial.run(std::slice::from_ref(&file)).unwrap_err();
        assert!(error.to_string().starts_with(expected) && error.is_final(), "{error}");
    }
}

#[test]
fn a_command_gets_no_more_memory_than_it_may_have() {
    let mut trial = Trial::of(json!({ "mapper": "ulimit -v; cat" })).with(0, 100, 1 << 20);
    let file = trial.write("in", "x\n");
    trial.memory_limit = Some(300 << 20);
    assert_eq!(trial.run(std::slice::from_ref(&file)).unwrap().text(), "307200\nx\n");
    trial.memory_limit = Some(64 << 20);
    let mapper = "cat; x=$(head -c 100000000 /dev/zero | tr '\\0' a); echo ${#x}";
    trial.job = serde_json::from_value(json!({ "mapper": mapper })).unwrap();
    assert!(trial.run(std::slice::from_ref(&file)).unwrap_err().to_string().starts_with("mapper "));
    trial.memory_limit = None;
    assert_eq!(trial.run(&[file]).unwrap().text(), "x\n100000000\n");
}

#[test]
fn counters_from_commands_are_counted_and_left_out_of_the_log() {
    let report = "echo reporter:counter:My group,lines,2 >&2; echo reporter:status:$1 >&2; echo words >&2";
    let trial = Trial::of(json!({
        "mapper": format!("cat; {report}"),
        "combiner": "cat; echo reporter:counter:My group,combined,1 >&2",
        "reducer": "cat; echo reporter:counter:My group,reduced,-1 >&2; printf reporter:status:done >&2",
    }));
    let trial = trial.with(1, 100, 1 << 20);
    trial.write("in/a", "b\t1\n");
    trial.write("in/b", "a\t1\n");
    let output = trial.run(&[trial.path("in").to_str().unwrap().to_owned()]).unwrap();
    let counters = |outcome: &slackline_task::process::spec::Outcome| -> Vec<(String, i64)> {
        outcome.counts.counters.iter().map(|(name, count)| (name.clone(), *count)).collect()
    };
    assert_eq!(
        counters(&output.maps[0]),
        [("My group,combined".to_owned(), 1), ("My group,lines".to_owned(), 4)]
    );
    assert_eq!(output.maps[0].counts.says.as_deref(), Some(""));
    assert_eq!(counters(&output.reduces[0]), [("My group,reduced".to_owned(), -1)]);
    assert_eq!(output.reduces[0].counts.says.as_deref(), Some("done"));
    assert_eq!(slackline_task::attempt::log::read(&trial.path("map-0")).unwrap(), b"words\nwords\n");
    assert_eq!(
        (output.maps[0].counts.combine_in, output.maps[0].counts.combine_out, output.maps[0].counts.spilled),
        (2, 2, 0)
    );
}

#[test]
fn spills_and_combined_records_are_counted() {
    let trial = Trial::program("wordcount", json!({})).with(2, 1 << 30, 1000);
    let file = trial.write("in.txt", text(1, 3000));
    let map = trial.run(&[file]).unwrap().maps.remove(0);
    assert!(map.counts.spills > 1 && map.counts.spilled > map.counts.records_out, "{map:?}");
    assert!(
        map.counts.combine_in > map.counts.combine_out && map.counts.combine_out >= map.counts.records_out,
        "{map:?}"
    );
}

#[test]
fn a_plain_command_reads_its_inputs_itself_and_makes_one_part() {
    let command = "cat; echo \"$SLACKLINE_INPUTS\" | sort -r | xargs cat; echo reporter:counter:g,n,1 >&2";
    let trial = Trial::of(json!({ "command": command })).with(0, 3, 1 << 20);
    let inputs = [trial.write("a", "one\ntwo\n"), trial.write("b", "three\n")];
    let output = trial.run(&inputs).unwrap();
    assert_eq!(output.parts, [b"three\none\ntwo\n"]);
    assert_eq!((output.maps[0].counts.records_out, output.maps[0].counts.counters["g,n"]), (3, 1));
    // It may make what it says of nothing.
    let trial = Trial::of(json!({ "command": "seq 3" })).with(0, 3, 1 << 20);
    assert_eq!(trial.run(&[]).unwrap().text(), "1\n2\n3\n");
    let trial = Trial::of(json!({ "command": "exit 4" })).with(0, 3, 1 << 20);
    let error = trial.run(&[]).unwrap_err();
    assert_eq!((error.to_string(), error.exit()), ("command \"exit 4\": exit status: 4".to_owned(), Some(4)));
}

/// A secondary sort: by the first field to the reduces, by the second, as a number and turned around, within.
#[test]
fn keys_of_several_fields_are_ordered_as_asked_and_partitioned_by_the_first() {
    let lines: Vec<String> = (0..300).map(|i| format!("{},{},v{i}\n", i % 7, i * 37 % 50 - 20)).collect();
    for combiner in [Value::Null, json!("cat")] {
        let mut job = json!({ "mapper": "cat", "reducer": "cat" });
        if combiner != Value::Null {
            job["combiner"] = combiner;
        }
        let mut trial = Trial::of(job).with(3, 900, 3000);
        trial.shuffle = serde_json::from_value(json!({
            "key_fields": 2, "separator": ",", "partition_fields": 1, "order": ["1", "2nr"],
        }))
        .unwrap();
        let file = trial.write("in", lines.concat());
        let output = trial.run(&[file]).unwrap();
        let mut all = Vec::new();
        for part in &output.parts {
            let text = String::from_utf8(part.clone()).unwrap();
            let found: Vec<(i32, i32, &str)> = text
                .lines()
                .map(|line| {
                    let fields: Vec<&str> = line.split(',').collect();
                    (fields[0].parse().unwrap(), fields[1].parse().unwrap(), fields[2])
                })
                .collect();
            assert!(found.is_sorted_by_key(|&(first, second, _)| (first, -second)), "{text}");
            let mut firsts: Vec<i32> = found.iter().map(|line| line.0).collect();
            firsts.dedup();
            all.extend(firsts);
            // Equal keys keep the order of the input.
            let number = |value: &str| value[1..].parse::<u32>().unwrap();
            let same = |a: &(i32, i32, &str), b: &(i32, i32, &str)| (a.0, a.1) == (b.0, b.1);
            assert!(found.chunk_by(same).all(|group| group.is_sorted_by_key(|line| number(line.2))));
        }
        all.sort_unstable();
        assert_eq!(all, (0..7).collect::<Vec<_>>(), "each first field is in one part");
        let mut expected: Vec<String> = lines.iter().map(|line| line.trim_end().to_owned()).collect();
        expected.sort();
        assert_eq!(output.sorted(), expected);
    }
    // Without a reducer pairs come out with their own separator.
    let mut trial = Trial::of(json!({ "mapper": "cat" })).with(1, 900, 3000);
    trial.shuffle = serde_json::from_value(json!({ "separator": ";", "order": ["1n"] })).unwrap();
    let file = trial.write("in", "10;a\n9;b\nx;c\n");
    assert_eq!(trial.run(&[file]).unwrap().text(), "x;c\n9;b\n10;a\n");
}

/// Also with a hot key, numbers in turned order, several maps, spills, packed, and with a combiner that is
/// left out.
#[test]
fn parts_of_a_total_order_are_in_order_one_after_the_other_and_balanced() {
    let lines: Vec<String> = (0..20_000u64)
        .map(|i| format!("{}\tvalue {i}\n", if i % 4 == 0 { 77_777 } else { i * 7919 % 100_003 }))
        .collect();
    let mut seen = Vec::new();
    for (memory, compress) in [(1 << 24, None), (200_000, Some(Codec::Lz4))] {
        let mut trial = Trial::of(json!({ "mapper": "cat", "combiner": "head -n 1", "reducer": "cat" }))
            .with(5, 100_000, memory);
        trial.shuffle = serde_json::from_value(json!({ "order": ["1nr"], "ranges": 5 })).unwrap();
        trial.shuffle.compress = compress;
        let output = trial.run(&[trial.write("in", lines.concat())]).unwrap();
        let mut expected: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        expected
            .sort_by_key(|line| std::cmp::Reverse(line.split('\t').next().unwrap().parse::<u64>().unwrap()));
        assert!(output.text().lines().collect::<Vec<_>>() == expected);
        let counts: Vec<u64> = output.reduces.iter().map(|outcome| outcome.counts.records_in).collect();
        assert_eq!(counts.iter().sum::<u64>(), 20_000);
        // The hot key has 5,000 and is not cut; the others share the rest.
        assert!(counts.iter().all(|count| (1500..7500).contains(count)), "{counts:?}");
        assert_eq!(output.spills() > 0, compress.is_some());
        seen.push(output.parts);
        let keys = trial.path("map-1/map.keys");
        std::fs::write(&keys, "").unwrap();
        let maps = (0..output.maps.len()).map(|map| trial.path(&format!("map-{map}"))).collect();
        let reduce = slackline_task::process::spec::Task::Reduce { partition: 2, maps };
        let error = slackline_task::attempt::run(&trial.spec(reduce, &trial.path("reduce-x"))).unwrap_err();
        assert_eq!(error.lost_map(), Some(trial.path("map-1")), "{error}");
    }
    assert!(seen[0] == seen[1], "memory moves no boundary");
    // Fewer keys than ranges, and none at all.
    for (text, expected) in [("b\na\nb\n", "a\t\nb\t\nb\t\n"), ("", "")] {
        let mut trial = Trial::of(json!({ "mapper": "cat" })).with(4, 100, 1 << 20);
        trial.shuffle.ranges = 4;
        assert_eq!(trial.run(&[trial.write("in", text)]).unwrap().text(), expected);
    }
}

#[test]
fn wrong_shuffles_are_refused_by_name() {
    let mut trial = Trial::program("wordcount", json!({}));
    let file = trial.write("in", "a\n");
    trial.shuffle.key_fields = Some(2);
    let error = trial.run(std::slice::from_ref(&file)).unwrap_err();
    assert!(error.to_string().starts_with("found key fields for the program wordcount"), "{error}");
    trial.shuffle = serde_json::from_value(json!({ "compress": "gzip" })).unwrap();
    let error = trial.run(&[file]).unwrap_err().to_string();
    assert_eq!(error, "compressed map output: found \"gzip\", expected \"lz4\"");
}

#[test]
fn compressed_map_output_and_parts_hold_the_same() {
    let input = text(6, 2000);
    let jobs = [
        json!({ "program": "wordcount" }),
        json!({ "program": "sort" }),
        json!({ "mapper": "cat", "reducer": "cat" }),
    ];
    for job in jobs {
        let run = |compress, shuffle| {
            let mut trial = Trial::of(job.clone()).with(2, 9000, 20_000);
            trial.compress = compress;
            trial.shuffle.compress = shuffle;
            let file = trial.write("in", &input);
            let output = trial.run(&[file]).unwrap();
            // A part is an input of the next job.
            let next = Trial::program("grep", json!({ "pattern": "" })).with(0, 1 << 30, 1 << 20);
            let parts: Vec<String> = (0..2)
                .map(|n| {
                    next.write(
                        &slackline_task::shuffle::part::part_file(n, compress),
                        &output.parts[n as usize],
                    )
                })
                .collect();
            let size = output.parts.concat().len();
            // The files differ, and what is counted does not.
            let counts: Vec<Outcome> =
                output.reduces.iter().map(|of| Outcome { output: None, ..of.clone() }).collect();
            (next.run(&parts).unwrap().text(), size, counts)
        };
        let plain = run(None, None);
        for codec in [Codec::Gzip, Codec::Zstd, Codec::Lz4] {
            let packed = run(Some(codec), Some(Codec::Lz4));
            assert!(packed.0 == plain.0 && packed.2 == plain.2, "{codec:?}");
            assert!(packed.1 < plain.1, "{codec:?}: {} of {} bytes", packed.1, plain.1);
            assert!(run(Some(codec), Some(Codec::Lz4)) == packed, "the same content gives the same bytes");
        }
    }
}
