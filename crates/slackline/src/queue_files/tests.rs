use std::io::Write;

use slackline_algo::yarn::capacity::{Capacity, Mapping};
use slackline_algo::yarn::fair::{Amount, Placement, Resources};
use slackline_algo::yarn::{Turns, UserApps};

use super::*;
use crate::Registry;

/// A capacity-scheduler.xml with these properties, one per line from line 2 on.
fn properties(all: &[(&str, &str)]) -> String {
    let property = |(name, value): &(&str, &str)| {
        format!("<property><name>yarn.scheduler.capacity.{name}</name><value>{value}</value></property>\n")
    };
    let lines: String = all.iter().map(property).collect();
    format!("<configuration>\n{lines}</configuration>\n")
}

fn file() -> File {
    File { name: "q.xml".to_owned(), unknown: BTreeMap::new() }
}

fn capacity(all: &[(&str, &str)]) -> Result<(yarn::capacity::Hierarchy, Vec<String>), String> {
    let root = read_element("q.xml", properties(all).as_bytes()).unwrap();
    let mut file = file();
    let hierarchy = capacity::hierarchy(&mut file, &root).map_err(|error| error.to_string())?;
    Ok((hierarchy, file.remarks()))
}

fn fair(text: &str) -> Result<(yarn::fair::Allocations, Vec<String>), String> {
    let root = read_element("f.xml", format!("<allocations>\n{text}</allocations>").as_bytes()).unwrap();
    let mut file = File { name: "f.xml".to_owned(), ..file() };
    let allocations = fair::allocations(&mut file, &root).map_err(|error| error.to_string())?;
    Ok((allocations, file.remarks()))
}

#[test]
fn queues_of_the_capacity_scheduler_are_read_with_all_they_say() {
    let (hierarchy, remarks) = capacity(&[
        ("root.queues", "etl, adhoc"),
        ("root.ordering-policy", "priority-utilization"),
        ("root.etl.queues", "day,night"),
        ("root.etl.capacity", "70"),
        ("root.etl.maximum-capacity", "90"),
        ("root.etl.priority", "3"),
        ("root.etl.day.capacity", "1w"),
        ("root.etl.night.capacity", "3w"),
        ("root.adhoc.capacity", "30.0"),
        ("root.adhoc.maximum-capacity", "-1"),
        ("root.adhoc.user-limit-factor", "2.5"),
        ("root.adhoc.minimum-user-limit-percent", "25"),
        ("root.adhoc.ordering-policy", "fair"),
        ("root.adhoc.ordering-policy.fair.enable-size-based-weight", "true"),
        ("root.adhoc.max-parallel-apps", "20"),
        ("root.adhoc.acl_submit_applications", "*"),
        ("root.adhoc.default-application-priority", "4"),
        ("root.adhoc.state", "RUNNING"),
        ("user.max-parallel-apps", "5"),
        ("user.ann.max-parallel-apps", "7"),
        ("queue-mappings", "u:ann:etl.day, u:%user:adhoc"),
        ("queue-mappings-override.enable", "true"),
    ])
    .unwrap();
    let paths: Vec<&str> = hierarchy.queues.iter().map(|queue| queue.path.as_str()).collect();
    assert_eq!(paths, ["root", "root.etl", "root.etl.day", "root.etl.night", "root.adhoc"]);
    let parents: Vec<_> = hierarchy.queues.iter().map(|queue| queue.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(1), Some(1), Some(0)]);
    let capacities: Vec<_> = hierarchy.queues.iter().map(|queue| queue.capacity).collect();
    assert_eq!(capacities, [1.0, 70.0 / 100.0, 0.25, 0.75, 30.0 / 100.0].map(Capacity::Part));
    let [root, etl, day, _, adhoc] = hierarchy.queues.as_slice() else { unreachable!() };
    assert!(root.by_priority && etl.by_priority, "the order of a parent is that of the queue it is in");
    assert_eq!((etl.priority, etl.maximum), (3, Capacity::Part(90.0 / 100.0)));
    assert_eq!(
        (day.user_limit, day.user_limit_factor, day.turns, day.apps),
        (100.0, 1.0, Turns::Fifo, u32::MAX)
    );
    assert_eq!((adhoc.user_limit, adhoc.user_limit_factor, adhoc.turns), (25.0, 2.5, Turns::FairBySize));
    assert_eq!((adhoc.apps, adhoc.maximum, adhoc.app_priority), (20, Capacity::Part(1.0), 4));
    assert_eq!(hierarchy.user_apps, UserApps { of: [("ann".to_owned(), 7)].into(), others: 5 });
    let mapping =
        |user: Option<&str>, queue: &str| Mapping { user: user.map(Into::into), queue: queue.into() };
    assert_eq!(hierarchy.mappings, [mapping(Some("ann"), "etl.day"), mapping(None, "adhoc")]);
    assert!(hierarchy.mappings_first);
    assert_eq!(remarks, Vec::<String>::new());
}

#[test]
fn absolute_capacities_are_memory() {
    let (hierarchy, _) = capacity(&[
        ("root.queues", "a,b"),
        ("root.a.capacity", "[memory=10240,vcores=10]"),
        ("root.a.maximum-capacity", "[vcores=1, memory=20Gi]"),
        ("root.b.capacity", "[memory=4096]"),
    ])
    .unwrap();
    let [_, a, b] = hierarchy.queues.as_slice() else { unreachable!() };
    assert_eq!((a.capacity, a.maximum), (Capacity::Memory(10_240), Capacity::Memory(20_480)));
    assert_eq!(b.capacity, Capacity::Memory(4_096));
}

#[test]
fn ams_have_a_part_of_each_queue() {
    let queues = [("root.queues", "a,b"), ("root.a.capacity", "50"), ("root.b.capacity", "50")];
    let parts = |more: &[(&'static str, &'static str)]| {
        let (hierarchy, remarks) = capacity(&[&queues, more].concat()).unwrap();
        assert!(remarks.is_empty(), "{remarks:?}");
        hierarchy.queues[1..].iter().map(|queue| queue.ams).collect::<Vec<_>>()
    };
    assert_eq!(parts(&[]), [0.1, 0.1]);
    let more = [("maximum-am-resource-percent", "0.3"), ("root.b.maximum-am-resource-percent", "0.5")];
    assert_eq!(parts(&more), [0.3, 0.5]);
}

#[test]
fn unsupported_properties_are_named_with_their_lines() {
    let (_, remarks) = capacity(&[
        ("root.queues", "a,b"),
        ("root.a.capacity", "50"),
        ("root.b.capacity", "50"),
        ("node-locality-delay", "40"),
        ("root.a.accessible-node-labels", "gpu"),
        ("root.b.accessible-node-labels", "*"),
        ("root.b.state", "STOPPED"),
        ("queue-mappings", "g:staff:a"),
    ])
    .unwrap();
    let expected = "q.xml: not modelled: accessible-node-labels (2 times, first on line 6), \
                    node-locality-delay (line 5), queue-mappings g:staff:a (line 9), state STOPPED (line 8)";
    assert_eq!(remarks, [expected]);
    let (_, remarks) = fair(
        "<queue name='a'>\n<maxAMShare>0.3</maxAMShare>\n<aclSubmitApps>*</aclSubmitApps></queue>\n\
         <queuePlacementPolicy><rule name='primaryGroup'/><rule name='default'/></queuePlacementPolicy>",
    )
    .unwrap();
    assert_eq!(
        remarks,
        ["f.xml: not modelled: <maxAMShare> (line 3), the placement rule primaryGroup (line 5)"]
    );
}

#[test]
fn a_wrong_file_of_queues_is_refused_with_its_line() {
    let a_and_b = [("root.queues", "a,b"), ("root.a.capacity", "50"), ("root.b.capacity", "50")];
    let with = |name: &'static str, value: &'static str| {
        let mut all: Vec<_> = a_and_b.iter().copied().filter(|&(known, _)| known != name).collect();
        all.push((name, value));
        capacity(&all).unwrap_err()
    };
    for (name, value, expected) in [
        (
            "root.b.capacity",
            "40",
            "q.xml:4:1: found capacities of 90 % together in the queues of root (root.a 50 % on line 3, root.b 40 % on \
             line 4), expected 100 %",
        ),
        (
            "root.b.capacity",
            "much",
            "q.xml:4:1: found root.b.capacity \"much\", expected a percentage from 0 to 100",
        ),
        ("root.b.capacity", "150", "expected a percentage from 0 to 100, a weight such as 2w"),
        (
            "root.b.capacity",
            "2w",
            "q.xml:4:1: found a percentage as the capacity of root.a and a weight as that of root.b",
        ),
        ("root.b.capacity", "[memory=50%]", "(percentages and weights in them are not read)"),
        (
            "root.b.maximum-capacity",
            "20",
            "q.xml:5:1: found root.b.maximum-capacity 20 %, expected at least its capacity, which is 50 %",
        ),
        (
            "root.b.ordering-policy",
            "lifo",
            "q.xml:5:1: found root.b.ordering-policy \"lifo\", expected fifo or fair",
        ),
        ("root.ordering-policy", "fifo", "expected utilization or priority-utilization"),
        ("root.queues", "a,a", "found queue \"a\" in root, expected each name once"),
        ("root.queues", " ", "missing property yarn.scheduler.capacity.root.queues"),
        ("queue-mappings", "ann:a", "found the queue-mapping \"ann:a\", expected u:USER:QUEUE"),
        ("root.b.user-limit-factor", "x", "found root.b.user-limit-factor \"x\", expected a number"),
    ] {
        let found = with(name, value);
        assert!(found.contains(expected), "{name}={value}: {found}");
    }
}

#[test]
fn pools_of_the_fair_scheduler_are_read_with_all_they_say() {
    let (allocations, _) = fair(
        "<queueMaxAppsDefault>9</queueMaxAppsDefault>
        <queueMaxResourcesDefault>80%</queueMaxResourcesDefault>
        <userMaxAppsDefault>4</userMaxAppsDefault>
        <user name='ann'><maxRunningApps>6</maxRunningApps></user>
        <defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>
        <queue name='etl'>
          <minResources>10240 mb, 4 vcores</minResources>
          <maxResources>memory-mb=50%, vcores=20%</maxResources>
          <weight>2.5</weight>
          <queue name='night'><schedulingPolicy>FIFO</schedulingPolicy><maxRunningApps>1</maxRunningApps></queue>
        </queue>
        <pool name='users' type='parent'><maxChildResources>2048mb,2vcores</maxChildResources></pool>
        <queuePlacementPolicy>
          <rule name='specified' create='false'/>
          <rule name='nestedUserQueue'><rule name='default' queue='users'/></rule>
          <rule name='reject'/>
        </queuePlacementPolicy>",
    )
    .unwrap();
    let [root, etl, night, users] = allocations.queues.as_slice() else { unreachable!() };
    assert_eq!((root.path.as_str(), root.apps, root.is_parent), ("root", u32::MAX, true));
    assert_eq!(
        (etl.path.as_str(), etl.parent, etl.min_memory, etl.weight),
        ("root.etl", Some(0), 10_240, 2.5)
    );
    assert_eq!(etl.max, Resources { memory: Amount::Part(0.5), vcores: Amount::Part(0.2) });
    assert_eq!((night.path.as_str(), night.turns, night.apps), ("root.etl.night", Turns::Fifo, 1));
    let most = Amount::Part(0.8);
    assert_eq!(night.max, Resources { memory: most, vcores: most });
    let two = Resources { memory: Amount::Absolute(2048), vcores: Amount::Absolute(2) };
    assert_eq!((users.is_parent, users.max_child, users.apps), (true, Some(two), 9));
    assert_eq!(allocations.user_apps, UserApps { of: [("ann".to_owned(), 6)].into(), others: 4 });
    let within = Placement::Default { queue: "users".into(), create: true };
    assert_eq!(
        allocations.placement,
        [
            Placement::Specified { create: false },
            Placement::User { create: true, within: Some(Box::new(within)) },
            Placement::Reject,
        ]
    );
}

#[test]
fn a_wrong_allocation_file_is_refused_with_its_line() {
    for (text, expected) in [
        ("<queue name='a.b'/>", "f.xml:2:1: found queue \"a.b\" in root, expected a name without a dot"),
        ("<queue name='a'/>\n<queue name='a'/>", "f.xml:3:1: found queue root.a a second time"),
        ("<queue name='root'/><queue name='a'/>", "expected them inside it"),
        (
            "<queue name='a'><weight>-1</weight></queue>",
            "found weight \"-1\", expected a number of at least 0",
        ),
        (
            "<queue name='a'><minResources>10 gb</minResources></queue>",
            "found minResources \"10 gb\", expected",
        ),
        ("<queue name='a'><minResources>10%</minResources></queue>", "expected amounts, not percentages"),
        ("<queue name='a'><maxRunningApps>few</maxRunningApps></queue>", "expected a whole number"),
        ("<queue name='a'><schedulingPolicy>srpt</schedulingPolicy></queue>", "expected fair, fifo or drf"),
        (
            "<queue name='a'><schedulingPolicy>fifo</schedulingPolicy><queue name='b'/></queue>",
            "fifo in root.a, which has queues in it",
        ),
        (
            "<queuePlacementPolicy><rule name='best'/></queuePlacementPolicy>",
            "found the placement rule \"best\"",
        ),
    ] {
        let found = fair(text).unwrap_err();
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn a_policy_names_its_file() {
    let mut queues = tempfile::NamedTempFile::new().unwrap();
    let all = [("root.queues", "a"), ("root.a.capacity", "100"), ("node-locality-delay", "40")];
    queues.write_all(properties(&all).as_bytes()).unwrap();
    let path = queues.path().display();
    let registry = Registry::standard();
    let policy = registry.parse(&format!("yarn-capacity:file={path}:else=a")).unwrap();
    assert_eq!(policy.remarks(), [format!("{path}: not modelled: node-locality-delay (line 4)")]);
    assert!(registry.parse("yarn-capacity").unwrap().remarks().is_empty());
    let error = |spec: String| registry.parse(&spec).unwrap_err().to_string();
    assert_eq!(
        error(format!("yarn-capacity:file={path}:else=b")),
        "policy yarn-capacity: found else=b, expected one of the leaf queues root.a"
    );
    assert_eq!(
        error(format!("yarn-fair:file={path}")),
        format!(
            "policy yarn-fair: {path}:1:1: found <configuration>, which is a file of properties (policy yarn-capacity), \
             expected <allocations> of fair-scheduler.xml"
        )
    );
    assert!(
        error("yarn-fair:file=/not/there.xml".to_owned()).starts_with("policy yarn-fair: /not/there.xml: ")
    );
}

#[test]
fn policies_with_queues_pass_the_tests_for_every_policy() {
    let file = |text: String| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let queues = file(properties(&[
        ("root.queues", "adhoc,rest"),
        ("root.adhoc.capacity", "30"),
        ("root.adhoc.maximum-capacity", "60"),
        ("root.rest.capacity", "70"),
        ("root.rest.ordering-policy", "fair"),
        ("root.rest.user-limit-factor", "-1"),
        ("root.rest.max-parallel-apps", "2"),
    ]));
    let pools = file(
        "<allocations><queueMaxAppsDefault>2</queueMaxAppsDefault><queue name='adhoc'>\
         <minResources>2048 mb, 2 vcores</minResources><schedulingPolicy>fifo</schedulingPolicy></queue></allocations>"
            .to_owned(),
    );
    let specs = [
        format!("yarn-capacity:file={}:else=rest", queues.path().display()),
        format!("yarn-fair:file={}", pools.path().display()),
    ];
    for policy in specs.map(|spec| Registry::standard().parse(&spec).unwrap()) {
        for (name, instance) in crate::conformance::workloads() {
            let instance = instance.cut(slackline_model::Span(10_000_000));
            for (how, setup) in crate::conformance::setups(&instance) {
                if let Err(what) = crate::conformance::simulated(&instance, &policy, &setup) {
                    panic!("{name}, {policy:?}, {how}: {what}");
                }
            }
        }
    }
}
