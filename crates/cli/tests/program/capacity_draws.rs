//! `capacity` where something is random: chances, intervals and ranges instead of one lucky seed.

use serde_json::Value;

use super::{NIGHTLY, done, run};

const SEARCH: [&str; 6] = ["capacity", NIGHTLY, "-p", "edf", "--machines", "8..20"];
const RANDOM: [&str; 6] = ["--until", "missed:0", "--jitter", "0.3", "--noise", "0.3"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SEARCH[..], &RANDOM[..], more].concat()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_answer_has_a_chance_with_its_interval() {
    let found = json(&done(&with(&["--format", "json"])));
    assert_eq!(found["random"], json(r#"{"confidence": 0.95, "seeds": null, "out_of_time": false}"#));
    let answer = found["found"].as_f64().unwrap();
    let at = |size: f64| {
        let tried = found["tried"].as_array().unwrap().iter().find(|tried| tried["value"] == size);
        tried.unwrap_or_else(|| panic!("{size} is tried"))
    };
    let number = |size: f64, name: &str| at(size)["draws"][name].as_f64().unwrap();
    for size in [answer - 1.0, answer, answer + 1.0] {
        assert!(number(size, "draws") >= 60.0, "{}", at(size));
        let [low, chance, high] = ["chance_low", "chance", "chance_high"].map(|name| number(size, name));
        assert!(low <= chance && chance <= high && high - low < 0.3, "{}", at(size));
        assert!(at(size)["draws"]["p90"]["missed"].as_f64() >= at(size)["draws"]["p10"]["missed"].as_f64());
    }
    assert!(number(answer, "chance") >= 0.95 && number(answer - 1.0, "chance") < 0.95);
    assert_eq!(json(&done(&with(&["--format", "json", "--threads", "1"]))), found, "threads change nothing");
    let table = done(&with(&[]));
    let start = format!("edf: {answer} machines are the fewest in 8..20: missed is 0 in ");
    assert!(table.contains(&start) && table.contains("% of ") && table.contains("(95 % interval"), "{table}");
    assert!(table.contains(&format!("{} machines: in ", answer - 1.0)), "{table}");
    assert!(table.contains("80 % range") && table.contains("chance"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn a_fixed_number_of_seeds_and_a_time_limit() {
    let csv = done(&with(&["--seeds", "6", "--confidence", "80%", "--format", "csv"]));
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|known| *known == name).unwrap();
    for row in csv.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!((cells.len(), cells[column("draws")]), (header.len(), "6"), "{row}");
        let chance: f64 = cells[column("chance")].parse().unwrap();
        assert_eq!(cells[column("meets")], (chance >= 0.8).to_string(), "{row}");
        assert!(cells[column("missed_p10")].parse::<f64>().unwrap() >= 0.0, "{row}");
    }
    let one = done(&with(&["--seeds", "1"]));
    assert!(one.contains("; one draw: other seeds may give other answers"), "{}", one);
    let first = done(&with(&["--seeds", "1", "--seed", "7", "--columns", "missed,cost"]));
    assert!(first.contains("machines") && !first.contains("chance"), "{first}");
    let short = run(&with(&["--budget", "1us"]));
    assert!(short.out.contains("; the time limit allowed at most "), "{}{}", short.out, short.err);
}

#[test]
fn without_anything_random_there_are_no_draws() {
    let plain = [&SEARCH[..], &["--until", "missed:0"]].concat();
    let document = json(&done(&[&plain[..], &["--format", "json"]].concat()));
    assert!(document.get("random").is_none() && document["tried"][0].get("draws").is_none(), "{document}");
    let ran = run(&[&plain[..], &["--confidence", "0.9"]].concat());
    assert!(ran.code == Some(0) && ran.err.contains("nothing is random here"), "{}", ran.err);
    let ran = run(&[&plain[..], &["--columns", "chance"]].concat());
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    for confidence in ["1", "0", "95", "x", "101%"] {
        let ran = run(&with(&["--confidence", confidence]));
        assert!(ran.code == Some(2) && ran.err.contains("a share of draws"), "{confidence}: {}", ran.err);
    }
}

#[test]
fn task_times_of_a_trace_are_drawn_again_for_each_seed() {
    let trace = ["capacity", "testdata/formats/swim/day.tsv", "--slots", "3", "-p", "fifo"];
    let more = ["--machines", "1..60", "--until", "mean_response:2m", "--seeds", "9", "--format", "json"];
    let found = json(&run(&[&trace[..], &more].concat()).out);
    assert_eq!(found["random"]["seeds"], 9);
    let ranges = found["tried"].as_array().unwrap().iter().map(|tried| &tried["draws"]);
    let is_wide = |draws: &Value| {
        draws["p10"]["mean_response"].as_f64().unwrap() < draws["p90"]["mean_response"].as_f64().unwrap()
    };
    assert!(ranges.into_iter().all(is_wide), "{found}");
}

#[test]
fn settings_name_all_values_of_about_the_same_cost() {
    let setting = ["capacity", NIGHTLY, "-p", "fair", "--jitter", "0.5", "--over"];
    let table = done(&[&setting[..], &["slowstart=0.5..1:0.1", "--columns", "cost,difference"]].concat());
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains(" costs least: ") && table.contains(" on average of "), "{table}");
    assert!(
        table.contains("cost about the same")
            || table.contains("costs about the same")
            || table.contains("the others cost more"),
        "{table}"
    );
    let speeds = [&setting[..], &["speed=0.5..2:0.5", "--until", "missed:0", "--format", "json"]].concat();
    let found = json(&done(&speeds));
    assert_eq!((&found["over"], found["found"].is_f64()), (&json("\"speed\""), true), "{found}");
    let rule = ["capacity", NIGHTLY, "-p", "rule:order=atc", "--over"];
    let table = done(&[&rule[..], &["param:k=1..3"]].concat());
    assert!(table.contains("param:k ") && table.contains("of 3 values of 1..3 costs least"), "{table}");
    let wrong = run(&[&rule[..], &["param:kk=1..3"]].concat());
    assert!(
        wrong.code == Some(2) && wrong.err.contains("expected one of order, k, x, tail"),
        "{}",
        wrong.err
    );
}
