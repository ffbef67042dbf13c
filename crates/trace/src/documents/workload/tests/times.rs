//! Times in documents: texts and numbers have the same meaning, and the same errors in every form.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A document with one value in JSON at every place for a time.
fn timed(start: Option<&str>, moment: &Value, duration: &Value) -> Value {
    let mut document = json!({
        "slackline": 1,
        "cluster": { "machines": [{ "name": "n", "slots": 4 }] },
        "flows": [{
            "id": "f",
            "release": moment,
            "deadline": moment,
            "cost": { "kind": "steps", "steps": [[moment, 2.0]] },
            "repeat": { "every": duration, "times": 3 },
            "jobs": [
                { "id": "a", "map": { "tasks": 2, "seconds": duration }, "reduce": { "seconds": [duration, 1.0] } },
                { "id": "b", "map": { "work": duration }, "reduce": { "splits": [{ "seconds": duration }] } },
            ]
        }, {
            "id": "g",
            "cost": { "kind": "piecewise", "points": [[moment, 2.0]] },
            "jobs": [{ "id": "a", "map": { "tasks": 1, "seconds": 1.0 } }]
        }]
    });
    if let Some(start) = start {
        document["start"] = start.into();
    }
    document
}

/// A document of JSON in each form.
fn forms(document: &Value) -> [(Format, String); 3] {
    let mut yaml = String::new();
    block(document, 0, &mut yaml);
    [
        (Format::Toml, toml::to_string(document).unwrap()),
        (Format::Json, document.to_string()),
        (Format::Yaml, yaml),
    ]
}

fn error(document: &Value, format: Format) -> String {
    let (_, text) = forms(document).into_iter().find(|(form, _)| *form == format).unwrap();
    let message = read(&text, format).unwrap_err().to_string();
    // Without file, line and column, which are of the form.
    message.lines().map(|line| line.splitn(4, ':').nth(3).unwrap().trim()).collect::<Vec<_>>().join("\n")
}

proptest! {
    #[test]
    fn texts_and_numbers_give_the_same_instance(micros in 1..1_000_000_000_000_u64, unit in 0..3_usize) {
        let seconds = micros as f64 / 1e6;
        let text = [format!("{seconds}s"), format!("{micros}us"), format!("{}m {}us", micros / 60_000_000, micros % 60_000_000)];
        let numbers = read(&timed(None, &json!(seconds), &json!(seconds)).to_string(), Format::Json).unwrap();
        let texts = timed(None, &json!(text[unit]), &json!(text[unit]));
        for (format, document) in forms(&texts) {
            let read = read(&document, format).unwrap();
            prop_assert_eq!(&read, &numbers, "{}", format);
            prop_assert_eq!(Instance::new(&read), Instance::new(&numbers));
        }
    }

    #[test]
    fn any_text_for_a_time_is_survived(text in "[0-9a-zµ:.,+\\- \\[\\]/TZ]{0,16}") {
        let document = timed(Some("2026-03-29T00:00[Europe/Berlin]"), &json!(text), &json!(text));
        if let Ok(draft) = read(&document.to_string(), Format::Json) {
            prop_assert!(draft.flows[0].deadline.unwrap() >= 0.0);
        }
    }
}

#[test]
fn clock_times_count_from_the_start() {
    let hour = 3600.0;
    for (start, moment, seconds, next) in [
        ("2026-03-01T22:00[Europe/Berlin]", "06:00", 8.0 * hour, 32.0 * hour),
        ("2026-03-28T22:00[Europe/Berlin]", "06:00", 7.0 * hour, 31.0 * hour),
        ("2026-10-24T22:00[Europe/Berlin]", "06:00", 9.0 * hour, 33.0 * hour),
        ("2026-03-01T06:00Z", "2026-03-01T09:30:00+01:00", 2.5 * hour, 2.5 * hour),
        ("2026-03-01T06:00Z", "2026-03-01T09:30", 3.5 * hour, 3.5 * hour),
    ] {
        for (format, document) in forms(&timed(Some(start), &json!(moment), &json!("1h"))) {
            let draft = read(&document, format).unwrap();
            let flow = &draft.flows[0];
            assert_eq!((flow.release, flow.deadline), (seconds, Some(next)), "{start} {moment} {format}");
            assert_eq!(flow.cost, Some(CostDraft::Steps(vec![(next, 2.0)])));
            assert!(
                matches!(&draft.flows[1].cost, Some(CostDraft::Piecewise { points, .. }) if points[0].0 == seconds)
            );
            assert_eq!(draft.start, Start::parse(start).ok());
            assert_eq!(read(&write_workload(&draft, format), format), Ok(draft), "what is written is read");
        }
    }
}

#[test]
fn the_dates_and_times_of_toml_are_those_of_texts() {
    let document = |moment: &str| {
        format!(
            "slackline = 1\nstart = 2026-03-01T00:00:00+01:00\n[[flows]]\nid = 'f'\nrelease = {moment}\njobs = []\n"
        )
    };
    for moment in [
        "06:00:00",
        "'06:00'",
        "2026-03-01T06:00:00",
        "2026-03-01 06:00:00+01:00",
        "2026-03-01T05:00:00Z",
        "'6h'",
    ] {
        assert_eq!(read(&document(moment), Format::Toml).unwrap().flows[0].release, 21_600.0, "{moment}");
    }
}

#[test]
fn a_start_that_a_run_gives_goes_before_the_documents_and_keeps_its_zone() {
    let now = Start::parse("2026-03-01T20:00Z").unwrap();
    let release = |start: Option<&str>| {
        let text = timed(start, &json!("06:00"), &json!("1h")).to_string();
        let options = ImportOptions::default().starting(now.clone());
        let draft = read_workload("w", text.as_bytes(), Some("json"), &options).unwrap().draft;
        (draft.flows[0].release, draft.start.unwrap().to_string())
    };
    assert_eq!(release(None), (36_000.0, "2026-03-01T20:00:00+00:00[UTC]".to_owned()));
    let berlin = "2026-03-01T21:00:00+01:00[Europe/Berlin]".to_owned();
    assert_eq!(release(Some("2020-01-01T00:00[Europe/Berlin]")), (32_400.0, berlin));
}

#[test]
fn errors_of_times_are_the_same_in_every_format() {
    let start = Some("2026-03-01T00:00[Europe/Berlin]");
    let cases = [
        (
            None,
            "06:00",
            "1h",
            "flows[0].release: found a time of day, 06:00:00, expected seconds or a duration, or a `start` at the top of the workload",
        ),
        (
            None,
            "2026-03-01T06:00Z",
            "1h",
            "flows[0].cost.steps[0][0]: found a date and time, 2026-03-01T06:00:00Z, expected seconds or a duration",
        ),
        (
            start,
            "2026-02-01T06:00",
            "1h",
            "flows[0].release: found a date and time, 2026-02-01T06:00:00, before the start of the workload, 2026-03-01T00:00:00+01:00[Europe/Berlin]",
        ),
        (start, "25:00", "1h", "found text \"25:00\", expected an hour from 00 to 23"),
        (
            start,
            "2026-03-01T06:00[Europe/Berln]",
            "1h",
            "expected the name of a time zone such as Europe/Berlin",
        ),
        (start, "-2h", "1h", "found text \"-2h\", expected a duration that is not negative"),
        (
            start,
            "2h",
            "1mo",
            "found text \"1mo\", expected days or shorter units such as 7d or 36h, because longer units",
        ),
        (
            start,
            "2h",
            "06:00",
            "found text \"06:00\", expected seconds or a duration such as 90s, 1.5h or 2d",
        ),
        (
            Some("noon"),
            "2h",
            "1h",
            "start: found text \"noon\", expected a date and time with a time zone or offset",
        ),
        (
            Some("2026-03-01T00:00"),
            "2h",
            "1h",
            "start: found text \"2026-03-01T00:00\", expected a date and time with a time zone",
        ),
    ];
    for (start, moment, duration, expected) in cases {
        let document = timed(start, &json!(moment), &json!(duration));
        let found = NATIVE.map(|format| error(&document, format));
        assert!(found[0].contains(expected), "{}\n{expected}", found[0]);
        // Which of several wrong values is found first depends on the order of the names.
        let lines = found.map(|text| {
            text.lines().map(|line| line.split(": ").last().unwrap().to_owned()).collect::<Vec<_>>()
        });
        assert_eq!((&lines[0], &lines[1]), (&lines[1], &lines[2]));
    }
}
