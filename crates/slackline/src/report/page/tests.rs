//! Tests that a page contains the same data as the text output, and no more than can be drawn.

use std::fmt::Write as _;
use std::io::Read;

use base64::Engine;
use flate2::read::GzDecoder;
use serde_json::Value;
use slackline_model::schedule::{NewRow, Outcome};
use slackline_model::{PhaseId, Span, Time};
use slackline_trace::{ImportOptions, read_workload};

use super::*;
use crate::Registry;
use crate::explain::{Explainer, explain};
use crate::report::explain::ExplainInput;
use crate::report::{Figures, View, comparison};
use crate::simulate::{FinalRow, Options, Simulated, simulate};

/// Two flows on two machines, with names that contain HTML.
const HOSTILE: &str = r#"
slackline = 1
[cluster]
machines = [{ name = "m<b>", count = 2, slots = 2 }]
[[flows]]
id = "</script><script>alert(1)</script>"
deadline = 3.0
jobs = [{ id = "<!--", map = { tasks = 9, seconds = 2.0 } }]
[[flows]]
id = "日本語 \"quoted\" & 'too'"
release = 1.0
jobs = [{ id = "]]>", map = { tasks = 3, seconds = 3.0 }, reduce = { tasks = 1, seconds = 2.0 } }]
"#;

fn instance(text: &str) -> Instance {
    let imported = read_workload("t.toml", text.as_bytes(), None, &ImportOptions::default()).unwrap();
    Instance::new(&imported.draft).unwrap()
}

fn simulated(instance: &Instance, policy: &str) -> Simulated {
    let policy = Registry::standard().parse(policy).unwrap();
    simulate(instance, &policy, &Options::exact(), None, None).unwrap()
}

fn row(instance: &Instance, simulated: &Simulated) -> Row {
    let groups = comparison::groups(instance, &simulated.flows);
    let figures = Figures { groups, ..Figures::of_simulation(simulated) };
    Row { policy: simulated.schedule.policy.clone(), result: Ok(figures) }
}

fn drawn(instance: &Instance, simulated: &Simulated) -> Drawn {
    let mut collector = Collector::new(instance);
    collector.take_schedule(&simulated.schedule);
    collector.finish_simulation(simulated)
}

/// A page of two policies, and the rows of its table.
fn page(instance: &Instance) -> (Page<'_>, Vec<Row>) {
    let about = PageOrigin {
        name: "</title><b>".to_owned(),
        verb: "compare".to_owned(),
        command: "slackline compare '</script>'".to_owned(),
        seeds: vec![u64::MAX],
        ..PageOrigin::default()
    };
    let mut page = Page::new(instance, about);
    let mut rows = Vec::new();
    for policy in ["fifo", "fair"] {
        let simulated = simulated(instance, policy);
        rows.push(row(instance, &simulated));
        page = page.with_policy(row(instance, &simulated), Some(drawn(instance, &simulated)));
    }
    (page, rows)
}

fn html(page: &Page<'_>) -> String {
    let mut out = Vec::new();
    page.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The document of a page.
fn document(html: &str) -> Value {
    let (_, rest) = html.split_once(r#"id="data">"#).unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let mut json = String::new();
    GzDecoder::new(STANDARD.decode(data).unwrap().as_slice()).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

#[test]
fn a_page_has_the_numbers_of_the_table_and_the_times_of_the_schedule() {
    let instance = instance(HOSTILE);
    let (page, rows) = page(&instance);
    let document = document(&html(&page));
    let columns = document["table"]["columns"].as_array().unwrap();
    let shown = || columns.iter().filter(|column| column["shown"] == true);
    let names = shown().map(|column| column["name"].as_str().unwrap().to_owned()).collect();
    let table = comparison::table(&rows, Sampling::EXACT, &View { columns: names, ..View::default() });
    for column in shown() {
        for text in column["texts"].as_array().unwrap() {
            assert!(table.contains(text.as_str().unwrap()), "{text} of {} in\n{table}", column["name"]);
        }
    }
    let cost = columns.iter().find(|column| column["name"] == "cost").unwrap();
    let costs: Vec<Option<f64>> = rows.iter().map(|row| row.result.as_ref().unwrap().cost).collect();
    assert_eq!(cost["values"], serde_json::json!(costs));
    let fifo = simulated(&instance, "fifo").schedule;
    let tick = document["tick"].as_f64().unwrap();
    for (k, row) in fifo.flows.iter().enumerate() {
        let took = document["policies"][0]["ran"]["took"][k].as_f64().unwrap() * tick;
        assert!((took - (row.completion.unwrap() - row.release)).abs() < tick);
    }
}

#[test]
fn every_task_is_in_a_bar_on_the_slots_that_it_had() {
    let instance = instance(HOSTILE);
    let document = document(&html(&page(&instance).0));
    let bars = &document["policies"][1]["ran"]["bars"];
    let sum =
        |name: &str| bars[name].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("slots"), instance.n_tasks());
    let schedule = simulated(&instance, "fair").schedule;
    let busy: u64 =
        schedule.tasks.rows().iter().map(|row| (row.end.0 - row.start.0) * u64::from(row.count)).sum();
    let lengths = bars["length"].as_array().unwrap().iter().zip(bars["slots"].as_array().unwrap());
    let drawn: u64 = lengths.map(|(length, slots)| length.as_u64().unwrap() * slots.as_u64().unwrap()).sum();
    assert_eq!(drawn, busy, "a tick of so short a workload is a microsecond");
}

#[test]
fn names_are_data_and_never_html() {
    let instance = instance(HOSTILE);
    let html = html(&page(&instance).0);
    assert_eq!(html.matches("<script").count(), TEMPLATE.matches("<script").count(), "and none by users");
    assert_eq!(html.matches("</title>").count(), 1);
    assert!(html.contains("<title>&lt;/title&gt;&lt;b&gt; · slackline compare</title>"));
    let document = document(&html);
    assert_eq!(document["workload"]["flows"]["id"][0], "</script><script>alert(1)</script>");
    assert_eq!(document["workload"]["flows"]["id"][1], "日本語 \"quoted\" & 'too'");
    assert_eq!(document["made"]["seeds"][0], "18446744073709551615", "which no number of JavaScript holds");
}

#[test]
fn a_page_needs_no_network_and_is_the_same_bytes_each_time() {
    let instance = instance(HOSTILE);
    let (first, second) = (html(&page(&instance).0), html(&page(&instance).0));
    assert_eq!(first, second);
    assert!(first.contains("default-src 'none'"));
    let (shell, _) = first.split_once(r#"id="data">"#).unwrap();
    for word in ["src=", "href=", "@import", "url("] {
        assert!(!shell.contains(word), "{word}");
    }
    let links = PROGRAM.matches("http").count();
    assert_eq!(links, PROGRAM.matches("http://www.w3.org/2000/svg").count(), "names of elements alone");
}

#[test]
fn tasks_are_drawn_up_to_a_number_of_bars_and_jobs_above_it() {
    let instance = instance(HOSTILE);
    let simulated = simulated(&instance, "fifo");
    let with_rows = |n: usize| {
        let mut collector = Collector::new(&instance);
        for k in 0..n {
            let (start, end) = (Time(k as u64 * 1000), Time(k as u64 * 1000 + 500));
            let (phase, outcome) = (PhaseId(0), Outcome::Done);
            let row =
                NewRow { phase, first: 0, count: 1, start, end, startup: Span::ZERO, attempt: 0, outcome };
            collector.take(FinalRow::Row(&row, &[slackline_model::SlotRange { first: 0, len: 1 }]));
        }
        let drawn = collector.finish_simulation(&simulated);
        let page =
            Page::new(&instance, PageOrigin::default()).with_policy(row(&instance, &simulated), Some(drawn));
        document(&html(&page))
    };
    let few = with_rows(BARS_MAX);
    assert_eq!(few["with_bars"], true);
    assert_eq!(few["policies"][0]["ran"]["bars"]["start"].as_array().unwrap().len(), BARS_MAX);
    let many = with_rows(BARS_MAX + 1);
    assert_eq!(many["with_bars"], false);
    assert!(many["policies"][0]["ran"]["bars"].is_null());
    assert!(many["policies"][0]["ran"]["held"][0].as_i64().unwrap() > 0, "jobs are drawn");
}

#[test]
fn flows_are_explained_as_by_explain() {
    let instance = instance(HOSTILE);
    let simulated = simulated(&instance, "fifo");
    let document = document(&html(&page(&instance).0));
    let explainer = Explainer::new(&instance, &simulated.schedule);
    for said in document["policies"][0]["ran"]["explained"].as_array().unwrap() {
        let flow = slackline_model::FlowId(said["flow"].as_u64().unwrap() as u32);
        let explanation = explain(&instance, &simulated.schedule, flow, None).unwrap();
        let input = ExplainInput {
            instance: &instance,
            policy: "fifo",
            plan: false,
            explanation: &explanation,
            flows: explainer.flow_times(),
            open: None,
            there: None,
        };
        let view = View { width: super::explained::WIDTH, ..View::default() };
        assert_eq!(said["text"], input.text(&view));
    }
    assert_eq!(document["policies"][0]["ran"]["explained"].as_array().unwrap().len(), 2);
}

#[test]
fn the_latest_flow_is_explained_although_others_cost_more() {
    let mut text =
        "slackline = 1\n[cluster]\nmachines = [{ name = 'm', count = 300, slots = 1 }]\n".to_owned();
    let mut flow = |id: &str, deadline: &str, seconds: f64| {
        let job = format!("{{ id = 'j', map = {{ tasks = 1, seconds = {seconds:?} }} }}");
        writeln!(text, "[[flows]]\nid = '{id}'\n{deadline}\njobs = [{job}]").unwrap();
    };
    (0..210).for_each(|k| flow(&format!("long-{k}"), "", 100.0));
    flow("late", "deadline = 0.5", 1.0);
    let instance = instance(&text);
    let document = document(&html(&page(&instance).0));
    let explained = document["policies"][0]["ran"]["explained"].as_array().unwrap();
    assert_eq!((explained.len(), explained[200]["flow"].as_u64()), (201, Some(210)));
}

#[test]
fn sums_explain_nearly_what_rows_do() {
    let mut flows = String::new();
    for k in 0..12 {
        let (release, tasks, seconds) = (k * 20, 20 + 7 * k % 40, 10 + 3 * k % 17);
        let map = format!("map = {{ tasks = {tasks}, seconds = {seconds}.0 }}");
        let job = format!("{{ id = \"j\", {map}, reduce = {{ tasks = 4, seconds = 30.0 }} }}");
        let _ = write!(flows, "[[flows]]\nid = \"f{k}\"\nrelease = {release}.0\njobs = [{job}]\n");
    }
    let cluster = "slackline = 1\n[cluster]\nmachines = [{ name = \"n\", count = 4, slots = { map = 2, reduce = 1 } }]\n";
    let instance = instance(&format!("{cluster}{flows}"));
    let simulated = simulated(&instance, "fair");
    let schedule = &simulated.schedule;
    let exact = Explainer::new(&instance, schedule);
    let sums = sums::Sums::of(&instance, &schedule.tasks).into_held();
    let summed = Explainer::of_sums(&instance, schedule, sums);
    for flow in instance.flows().keys() {
        let [exact, summed] = [&exact, &summed].map(|explainer| explainer.explain(flow, None).unwrap());
        assert_eq!(summed.chain, exact.chain);
        assert_eq!((summed.completed, summed.order), (exact.completed, exact.order));
        assert!((summed.until - exact.until).abs() < 1e-6);
        // A span is about 1 s long, and a phase may end, or start to want more, inside a span.
        let near = |near: f64, far: f64| (near - far).abs() <= 0.05 * far + 30.0;
        let (some, all) = (&summed.blocked, &exact.blocked);
        assert!(near(some.slot_seconds(), all.slot_seconds()), "{some:?} and {all:?}");
        assert!(near(some.own, all.own) && near(some.idle, all.idle), "{some:?} and {all:?}");
    }
}

#[test]
fn the_page_shows_the_limits_of_its_results() {
    let instance = instance(HOSTILE);
    let simulated = simulated(&instance, "fifo");
    let mut recorded = row(&instance, &simulated);
    recorded.policy = "recorded".to_owned();
    let mut own = row(&instance, &simulated);
    own.policy = "yarn-capacity:file=site/queues.xml".to_owned();
    let figures = own.result.as_mut().unwrap();
    let distance = crate::recorded::DISTANCE.into_iter().zip([0.127, 0.356, 0.008]);
    figures.metrics.extend(distance.map(|(name, value)| (name, Some(value))));
    figures.cost = figures.cost.map(|cost| cost * 1.002);
    let page = Page::new(&instance, PageOrigin::default()).with_policy(recorded, None).with_policy(own, None);
    let document = document(&html(&page.with_warning("no profile")));
    let lines = document["reliability"][0].as_str().unwrap();
    let line = "\n  yarn-capacity:file=queues.xml: 12.7 %, 95th percentile 35.6 %; makespan +0.8 %\n";
    assert!(lines.contains(line), "{lines}");
    assert_eq!(document["policies"][1]["name"], "yarn-capacity:file=queues.xml");
    assert_eq!(
        document["answer"]["names"], "recorded",
        "the recorded run is no candidate, but it has a cost"
    );
    assert_eq!(document["extras"]["warnings"][0], "no profile");
}
