//! Simulated Hadoop clusters: simulated schedules pass `check`, manipulated ones do not, and options that
//! contradict a profile are refused.

use std::fs;

use crate::{NIGHTLY, done, run, scratch, text};

const FAIR: [&str; 6] =
    ["--slots", "4", "--policy", "fair", "--profile", "hadoop:am-share=0.4:straggler-share=0.1"];

#[test]
fn simulations_under_a_profile_pass_and_are_reproducible() {
    let dir = scratch("profiles_pass");
    for name in ["s.json", "s.jsonl"] {
        let files = ["first-", "again-"].map(|which| dir.join(format!("{which}{name}")));
        for file in &files {
            done(&[&["simulate", NIGHTLY, "--output", text(file)][..], &FAIR].concat());
        }
        let [first, again] = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
        assert!(first.contains("\"am-share\":0.4") && first.contains("\"startup\""), "{name}");
        assert!(first == again, "{name} differs the second time");
        let ran = run(&["check", NIGHTLY, text(&files[0])]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        // An ApplicationMaster that ended a second later than its job allows.
        let at = first.rfind("\"up\": ").unwrap();
        let end = at + first[at..].find("\"end\": ").unwrap() + "\"end\": ".len();
        fs::write(&files[1], format!("{}9{}", &first[..end], &first[end..])).unwrap();
        let ran = run(&["check", NIGHTLY, text(&files[1])]);
        assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("its AM"), "{}", ran.out);
    }
}

#[test]
fn explanations_tell_slots_of_ams_apart() {
    let file = scratch("profiles_explain").join("s.json");
    done(&[&["simulate", NIGHTLY, "--output", text(&file), "--machines", "2"][..], &FAIR].concat());
    let ran = run(&["explain", text(&file), "reindex", "--workload", NIGHTLY]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("ApplicationMasters"), "{}", ran.out);
}

#[test]
fn options_that_contradict_a_profile_are_refused() {
    for (flags, expected) in [
        (vec!["--profile", "hadop"], "did you mean \"hadoop\"?"),
        (vec!["--profile", "hadoop"], "found map slots and reduce slots, expected generic ones"),
        (vec!["--profile", "hadoop", "--slots", "4", "--heartbeat", "3"], "(hadoop:heartbeat=3)"),
        (vec!["--profile", "hadoop", "--slots", "4", "--jitter", "0.5"], "(hadoop:spread=0.5)"),
        (vec!["--profile", "hadoop", "--slots", "4", "--locality-wait", "3"], "(hadoop:node-delay=3)"),
        (vec!["--profile", "hadoop", "--slots", "4", "--crash", "node-0@3"], "found machines that fail"),
        (
            vec!["--profile", "hadoop", "--slots", "4", "--policy", "dmrs"],
            "leaves no slots to ApplicationMasters",
        ),
    ] {
        let policy: &[&str] = if flags.contains(&"--policy") { &[] } else { &["--policy", "fifo"] };
        let ran = run(&[&["simulate", NIGHTLY][..], &flags, policy].concat());
        assert_eq!(ran.code, Some(2), "{flags:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(expected), "{flags:?}: {}", ran.err);
    }
}
