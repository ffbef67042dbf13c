//! The published JSON Schema of specifications, made from the structs that read them; compiled for tests
//! alone.

use schemars::{JsonSchema, schema_for};
use serde_json::{Value, json};

use crate::experiments::experiments;
use crate::spec::Spec;
use crate::{kinds, ordering, packings, progress, slots, sweep};

/// A specification of figures for `slackline repro`.
#[derive(JsonSchema)]
#[schemars(title = "Slackline experiment", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is of use")]
struct Experiment {
    /// Version of the format.
    #[schemars(extend("const" = 1))]
    slackline: u32,
    /// What the experiment is about, in a line.
    title: String,
    /// The paper, by its key in PAPERS.md, or where else the workload comes from.
    paper: String,
    /// Its figures, each with a different name.
    figures: Vec<Figure>,
}

/// A figure: a kind, and the settings that the kind has.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is of use")]
enum Figure {
    /// A workload against policies.
    Sweep(SweepFigure),
    /// Job orders and slot configurations.
    Ordering(OrderingFigure),
    /// FIFO, Fair and FLEX against the best packing order.
    Packings(PackingsFigure),
    /// Who holds how many slots over time.
    Slots(SlotsFigure),
    /// Plans of WOHA.
    Progress(ProgressFigure),
}

macro_rules! figure {
    ($name:ident, $kind:literal, $settings:ty, $about:literal) => {
        #[doc = $about]
        #[derive(JsonSchema)]
        #[schemars(deny_unknown_fields)]
        #[expect(dead_code, reason = "only its schema is of use")]
        struct $name {
            /// Name, also of its files: letters, digits, `-`, `_`, and dots not at the beginning.
            #[schemars(regex(pattern = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$"))]
            id: String,
            /// What it shows, in a line.
            title: String,
            /// Its kind.
            #[schemars(extend("const" = $kind))]
            kind: String,
            /// It is averaged over this number of seeds: 0, 1, …
            #[schemars(range(min = 1))]
            seeds: u32,
            /// Settings of the kind.
            settings: $settings,
        }
    };
}

figure!(SweepFigure, "sweep", sweep::Settings, "A figure of a workload against policies.");
figure!(OrderingFigure, "ordering", ordering::Settings, "A figure of job orders and slot configurations.");
figure!(
    PackingsFigure,
    "packings",
    packings::Settings,
    "A figure of policies against the best packing order."
);
figure!(SlotsFigure, "slots", slots::Settings, "A figure of who holds how many slots over time.");
figure!(ProgressFigure, "progress", progress::Settings, "A figure of plans of WOHA.");

fn schema() -> String {
    let mut schema = schema_for!(Experiment);
    schema.insert("$id".to_owned(), "urn:slackline:experiment:1".into());
    let mut text = serde_json::to_string_pretty(&schema).unwrap();
    text.push('\n');
    text
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(&schema()).unwrap()).unwrap()
}

#[test]
fn the_published_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/experiment.schema.json");
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        std::fs::write(path, schema()).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    // Compares values: the order of keys depends on features of serde_json that other crates enable.
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    assert!(value(&published) == value(&schema()), "{path} is stale: run `cargo xtask bless`");
}

#[test]
fn every_kind_is_in_the_schema() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    for kind in kinds::names() {
        let has = |part: &Value| part["properties"]["kind"]["const"] == kind;
        assert!(schema["$defs"].as_object().unwrap().values().any(has), "{kind}");
    }
}

#[test]
fn specifications_follow_the_schema() {
    for experiment in experiments() {
        let spec: Value = toml::from_str(experiment.text).unwrap();
        if let Err(error) = validator().validate(&spec) {
            panic!("{}: {error}", experiment.id);
        }
    }
}

#[test]
fn the_schema_refuses_what_the_program_refuses() {
    let settings = json!({
        "by": "simulate", "workload": { "generator": "woha-fig7" }, "policies": ["fifo"], "measures": ["missed"],
    });
    let figure = json!({ "id": "f", "title": "t", "kind": "sweep", "seeds": 1, "settings": settings });
    let spec = json!({ "slackline": 1, "title": "t", "paper": "p", "figures": [figure] });
    let refused = |spec: &Value| {
        let text = toml::to_string(spec).unwrap();
        let none = |_: usize, _: usize| {};
        let context = crate::Context { seeds: None, threads: 1, progress: &none, tell: &|_| {} };
        let read = Spec::parse("spec.toml", &text, &kinds::names());
        read.is_err() || read.is_ok_and(|spec| crate::make(&spec.figures[0], &context).is_err())
    };
    assert!(validator().validate(&spec).is_ok() && !refused(&spec));
    for (pointer, value) in [
        ("/slackline", json!(2)),
        ("/new", json!(2)),
        ("/figures/0/id", json!("../f")),
        ("/figures/0/seeds", json!(0)),
        ("/figures/0/kind", json!("slots")),
        ("/figures/0/settings/by", json!("guess")),
        ("/figures/0/settings/weights", json!("double")),
        ("/figures/0/settings/grain", json!(0)),
        ("/figures/0/settings/policies", json!([])),
        ("/figures/0/settings/simulation", json!({ "slowstart": 2 })),
        ("/figures/0/settings/workload", json!({ "set": {} })),
        ("/figures/0/settings/workload", json!({ "generator": "woha-fig7", "file": "w.toml" })),
        ("/figures/0/settings/workload", json!({ "generator": "woha-fig7", "from": "toml" })),
        ("/figures/0/settings/workload/repeat", json!({ "every": 1, "times": 0 })),
        ("/figures/0/settings/cluster", json!({ "machines": 0 })),
        ("/figures/0/settings/vary", json!({ "param": "machines", "values": [] })),
    ] {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let mut wrong = spec.clone();
        wrong.pointer_mut(parent).unwrap()[field] = value;
        assert!(validator().validate(&wrong).is_err(), "the schema takes {pointer}: {wrong}");
        assert!(refused(&wrong), "the program takes {pointer}: {wrong}");
    }
}
