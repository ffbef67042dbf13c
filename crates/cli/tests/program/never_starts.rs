//! Work that never starts has a reason: the limit, the machine or the attempts that keep it from finishing,
//! and no event that did not happen.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::processes::{Family, until};
use crate::serve::Place;
use crate::{Ran, run, scratch, text};

/// A workload of flows with one job of maps each: id, pool, maps.
fn workload(dir: &Path, machines: &str, flows: &[(&str, &str, u32)]) -> String {
    let mut document =
        format!("slackline = 1\npools = [{{ id = 'a' }}, {{ id = 'b' }}]\ncluster.machines = [{machines}]\n");
    for (id, pool, maps) in flows {
        let _ = write!(
            document,
            "[[flows]]\nid = '{id}'\npool = '{pool}'\njobs = [{{ id = 'j', map = {{ tasks = {maps}, seconds = 10.0 }} }}]\n"
        );
    }
    let file = dir.join("workload.toml");
    fs::write(&file, document).unwrap();
    text(&file).to_owned()
}

/// A run in which flows fail without the failure of a machine.
fn failed(args: &[&str]) -> Ran {
    let ran = run(args);
    assert_eq!(ran.code, Some(1), "{args:?}: {}{}", ran.out, ran.err);
    assert!(!ran.err.contains("died") && !ran.out.contains("died"), "{args:?}: {}{}", ran.out, ran.err);
    ran
}

const CAPACITY: &str = "<?xml version='1.0'?><configuration>
<property><name>yarn.scheduler.capacity.root.queues</name><value>a,b</value></property>
<property><name>yarn.scheduler.capacity.root.a.capacity</name><value>10</value></property>
<property><name>yarn.scheduler.capacity.root.a.maximum-capacity</name><value>10</value></property>
<property><name>yarn.scheduler.capacity.root.b.capacity</name><value>90</value></property>
</configuration>";

#[test]
fn a_queue_whose_only_slot_an_application_master_holds_is_named() {
    let dir = scratch("never-am");
    let file = dir.join("capacity-scheduler.xml");
    fs::write(&file, CAPACITY).unwrap();
    let flows = [("fa0", "a", 4), ("fa1", "a", 4), ("fa2", "a", 4)];
    let workload = workload(&dir, "{ name = 'n', count = 5, slots = 2 }", &flows);
    let policy = format!("yarn-capacity:file={}", text(&file));
    let reason = "queue root.a may have 1 slot, which the ApplicationMaster of fa";
    let ran = failed(&["simulate", &workload, "-p", &policy, "--profile", "hadoop"]);
    assert!(ran.err.contains(&format!("3 flows failed: {reason}")), "{}", ran.err);
    let ran = failed(&["compare", &workload, "-p", &policy, "--profile", "hadoop"]);
    let printed = (ran.out + &ran.err).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains(&format!("left out of the metrics: {reason}")), "{printed}");
}

#[test]
fn a_queue_without_cores_may_have_no_slot_despite_its_minimum_of_memory() {
    for (test, limits) in [
        ("never-max", "<maxResources>40000 mb,0vcores</maxResources>"),
        (
            "never-min",
            "<minResources>10000 mb,0vcores</minResources><maxResources>90000 mb,0vcores</maxResources>",
        ),
    ] {
        let dir = scratch(test);
        let file = dir.join("fair-scheduler.xml");
        fs::write(
            &file,
            format!("<allocations><queue name='a'>{limits}</queue><queue name='b'/></allocations>"),
        )
        .unwrap();
        let workload = workload(&dir, "{ name = 'n', slots = 4 }", &[("small", "a", 3), ("big", "b", 10)]);
        let ran = failed(&["simulate", &workload, "-p", &format!("yarn-fair:file={}", text(&file))]);
        let reason = "flow small failed: queue root.a may have no slot: its maximum is less than a container of 1024 MiB and 1 virtual core";
        assert!(ran.err.contains(reason), "{}", ran.err);
    }
}

#[test]
fn machines_that_went_are_named_with_their_times() {
    let dir = scratch("never-machines");
    let workload = workload(
        &dir,
        "{ name = 'n', slots = 1 }, { name = 'm', slots = 1 }",
        &[("f", "a", 9), ("g", "b", 9)],
    );
    let ran = run(&["simulate", &workload, "-p", "fifo", "--crash", "n@10", "--crash", "m@15"]);
    let reason =
        "2 flows failed: no machine with slots is left: n died at 10 s and m died at 15 s, and none returns";
    assert!(ran.code == Some(1) && ran.err.contains(reason), "{}", ran.err);
}

#[test]
fn machines_that_die_again_and_again_are_counted() {
    let ran = run(&["simulate", crate::NIGHTLY, "--policy", "fifo", "--crash-rate", "1m", "--repair", "1s"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(
        ran.err.contains("flows failed: machines died too often: 1000 times before another task finished"),
        "{}",
        ran.err
    );
}

#[test]
fn a_cluster_too_small_for_an_application_master_and_a_task_says_so() {
    let dir = scratch("never-small");
    let workload = workload(&dir, "{ name = 'n', slots = 1 }", &[("f", "a", 1)]);
    let ran = run(&["simulate", &workload, "-p", "fifo", "--profile", "hadoop"]);
    assert!(ran.code != Some(0) && !ran.err.contains("died"), "{}", ran.err);
    assert!(ran.err.contains("slot"), "{}", ran.err);
}

/// A real run ends at once with the same message.
#[test]
fn a_real_run_under_a_policy_that_gives_no_slot_says_why() {
    let dir = scratch("never-run");
    fs::write(
        dir.join("fair.xml"),
        "<allocations><queue name='a'><maxResources>40000 mb,0vcores</maxResources></queue></allocations>",
    )
    .unwrap();
    let flow = "slackline = 1\npools = [{ id = 'a' }]\n[[flows]]\nid = 'f'\npool = 'a'\n\
                jobs = [{ id = 'j', run = { command = 'true', output = 'out' } }]\n";
    fs::write(dir.join("flow.toml"), flow).unwrap();
    let family = Family::new("never-run");
    let ran = family.slackline(&dir, &["run", "flow.toml", "-p", "yarn-fair:file=fair.xml"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("flow f failed: queue root.a may have no slot"), "{}", ran.err);
}

/// A service shows the reason in `queue` and `status`; a submission behind another one also shows why that
/// one waits.
#[test]
fn a_service_says_which_limit_or_file_keeps_a_submission_waiting() {
    let place = Place::new(scratch("never-serve"), "never-serve");
    fs::write(
        place.dir.join("fair.xml"),
        "<allocations><queue name='a'><maxResources>40000 mb,0vcores</maxResources></queue></allocations>",
    )
    .unwrap();
    let flow = "slackline = 1\npools = [{ id = 'a' }]\n[[flows]]\nid = 'f'\npool = 'a'\n\
                jobs = [{ id = 'j', run = { command = 'true', output = 'out' } }]\n";
    fs::write(place.dir.join("flow.toml"), flow).unwrap();
    let mut service = place.serve(&["--policy", "yarn-fair:file=fair.xml"]);
    place.done(&["submit", "flow.toml"]);
    let why = || place.shown("1")["flows"][0]["why"].as_str().unwrap_or_default().to_owned();
    until("the limit is reported", || why().starts_with("queue root.a may have no slot"));
    assert!(place.done(&["explain", "1", "f"]).contains("why now: queue root.a may have no slot"));
    place.done(&["submit", "flow.toml", "--name", "n", "--when", "no/such*"]);
    place.done(&["submit", "flow.toml", "--name", "n"]);
    let queue = || place.done(&["queue", "--format", "json"]);
    let directory = fs::canonicalize(&place.dir).unwrap();
    let file = directory.join("no/such*").display().to_string();
    let expected = format!("waits for 2, which has the same name: 2 waits for {file}, which does not exist");
    until("the file is reported", || queue().contains(&expected));
    place.done(&["submission", "hold", "2"]);
    assert!(queue().contains("waits for 2, which has the same name: 2 is held"), "{}", queue());
    service.kill().unwrap();
    service.wait().unwrap();
}
