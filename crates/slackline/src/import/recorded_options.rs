//! Options by name, as a schedule records them under `workload.options`.
//!
//! Simulations and plans write them. `check` and `explain` read them, so that users need not repeat them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Value;
use slackline_model::draft::Weights;
use slackline_model::load::{LOADS, LoadBy};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Combine, Metric, Span};
use slackline_trace::importers::importer::SEED;
use slackline_trace::{ImportOptions, Importers, Parameters};

use super::workload_options::{DEADLINES_MAX, DeadlineCluster, SlotOptions, WorkloadOptions};

/// Options by name. Numbers are stored as numbers, and other values as text.
pub type RecordedOptions = BTreeMap<String, Value>;

/// Options of simulations and plans that a schedule records only for information.
const FOR_READERS: [&str; 14] = [
    "budget",
    "crash",
    "crash-rate",
    "heartbeat",
    "history",
    "jitter",
    "knowledge",
    "known-releases",
    "locality-wait",
    "noise",
    "plan-file",
    "profile",
    "repair",
    "slowstart",
];

/// The option for the cluster of deadlines: a number of machines, or a cluster in words, which readers ignore.
pub(super) const DEADLINES_ON: &str = "deadlines-on";

/// Stores a value: a number as a number, anything else as text.
pub(super) fn put(options: &mut RecordedOptions, name: &str, value: Option<impl ToString>) {
    let Some(text) = value.map(|value| value.to_string()) else { return };
    let number = serde_json::from_str(&text).ok().filter(Value::is_number);
    options.insert(name.to_owned(), number.unwrap_or(Value::String(text)));
}

/// Records the grain of phases given only as work.
pub(super) fn add_grain(options: &mut RecordedOptions, grain: Span) {
    put(options, "grain", Some(grain.seconds()));
}

/// Records the time limit of the search for a plan, seconds.
pub fn add_budget(options: &mut RecordedOptions, seconds: Option<f64>) {
    put(options, "budget", seconds);
}

impl WorkloadOptions {
    /// The record of all options of a workload: the assumptions of its importer, and the given options.
    pub fn record(&self, import: BTreeMap<String, String>) -> RecordedOptions {
        let mut options = RecordedOptions::new();
        for (name, value) in import {
            put(&mut options, &name, Some(value));
        }
        put(&mut options, "from", self.from.as_ref());
        put(&mut options, "machines", self.machines);
        match self.slots {
            Some(SlotOptions::MapReduce { map, reduce }) => {
                put(&mut options, "map-slots", Some(map));
                put(&mut options, "reduce-slots", Some(reduce));
            }
            Some(SlotOptions::Generic(slots)) => put(&mut options, "slots", Some(slots)),
            Some(SlotOptions::Total(slots)) => put(&mut options, "total-slots", Some(slots)),
            None => {}
        }
        put(&mut options, "speed", self.speed);
        put(&mut options, "metric", self.metric);
        put(&mut options, "combine", self.combine.map(Combine::name));
        let weights = |weights| if weights == Weights::Use { "use" } else { "ignore" };
        put(&mut options, "weights", self.weights.map(weights));
        put(&mut options, "deadlines", self.deadlines);
        put(&mut options, DEADLINES_ON, self.deadlines_on.map(|cluster| cluster.machines));
        put(&mut options, "load", self.load);
        put(&mut options, "load-by", self.load_by.map(LoadBy::name));
        options
    }

    /// Reads recorded options, including those of these importers, and the grain.
    ///
    /// # Errors
    /// The unknown option or the invalid value, and what was expected.
    pub fn read(recorded: &RecordedOptions, importers: &Importers) -> Result<(Self, Option<f64>), String> {
        let mut reader = Reader(recorded.clone());
        let mut import = Vec::new();
        let mut known = ImportOptions::new(importers.clone());
        for (_, param) in importers.params().filter(|(_, param)| param.name != SEED.name) {
            let Some(value) = reader.0.remove(param.name) else { continue };
            let text = text(&value);
            known.set(param.name, &text).map_err(|problem| problem.to_string())?;
            import.push((param.name.to_owned(), text));
        }
        let map_reduce = reader.count("map-slots")?.zip(reader.count("reduce-slots")?);
        let generic = reader.count("slots")?.map(SlotOptions::Generic);
        let total = reader.count("total-slots")?.filter(|&total| total > 0).map(SlotOptions::Total);
        let slots =
            map_reduce.map(|(map, reduce)| SlotOptions::MapReduce { map, reduce }).or(generic).or(total);
        let options = Self {
            importers: importers.clone(),
            from: reader.take("from", |text| Some(text.to_owned()), "a format")?,
            import,
            parameters: Parameters::default(),
            machines: reader.count("machines")?.filter(|&machines| machines > 0),
            slots,
            speed: reader.number("speed", 1e-6..=1e6)?,
            metric: reader.take("metric", Metric::from_name, "a metric")?,
            combine: reader.take("combine", Combine::from_name, "sum or max")?,
            weights: reader.take("weights", weights, "use or ignore")?,
            deadlines: reader.number("deadlines", 0.0..=DEADLINES_MAX)?,
            deadlines_on: reader.deadline_machines().map(|machines| DeadlineCluster { machines, slots }),
            load: reader.number("load", LOADS)?,
            load_by: reader.take("load-by", LoadBy::from_name, "arrivals, jobs or size")?,
            seed: reader.take("seed", |text| text.parse().ok(), "a whole number")?,
        };
        let grain = reader.number("grain", 1e-6..=SECONDS_MAX)?;
        let unknown = reader.0.keys().find(|name| !FOR_READERS.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(format!("found option {name:?}, expected one that schedules record")),
            None => Ok((options, grain)),
        }
    }
}

fn weights(text: &str) -> Option<Weights> {
    match text {
        "use" => Some(Weights::Use),
        "ignore" => Some(Weights::Ignore),
        _ => None,
    }
}

/// The options that were not read yet.
struct Reader(RecordedOptions);

/// The original text of a value.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Reader {
    fn take<T>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let text = text(&value);
        read(&text).map(Some).ok_or_else(|| format!("found {name}={text}, expected {expected}"))
    }

    fn count(&mut self, name: &str) -> Result<Option<u32>, String> {
        self.take(name, |text| text.parse().ok(), "a whole number")
    }

    /// The number of machines for deadlines. A cluster in words follows from the workload.
    fn deadline_machines(&mut self) -> Option<u32> {
        let value = self.0.remove(DEADLINES_ON)?;
        value.as_u64().and_then(|machines| u32::try_from(machines).ok()).filter(|&machines| machines > 0)
    }

    fn number(&mut self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, String> {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        // Comparisons with NaN are false, so it is in no range.
        self.take(name, |text| text.parse().ok().filter(|x| range.contains(x)), &expected)
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::params::{Param, Values};
    use slackline_trace::Importer;

    use super::*;

    #[test]
    fn the_options_of_an_importer_are_read_back_and_the_seed_separately() {
        let texts = [("split", "134217728"), ("properties", "maps = 3"), ("actions", "{}"), ("cases", "a=b")];
        let import: BTreeMap<String, String> = texts
            .iter()
            .chain(&[("seed", "7")])
            .map(|&(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
        let (read, grain) =
            WorkloadOptions::read(&WorkloadOptions::default().record(import), &Importers::default()).unwrap();
        let expected = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!((read.import, read.seed, grain), (expected.to_vec(), Some(7), None));
    }

    #[test]
    fn the_options_of_a_user_defined_importer_are_read_back() {
        const PARAMS: &[Param] =
            &[Param::new("stretch", "1", Values::Real(0.0, 9.0), "factor on all seconds")];
        let swim = *Importers::default().get("swim").unwrap();
        let importers = Importers::default().with(Importer { name: "mine", params: PARAMS, ..swim });
        let options = BTreeMap::from([("stretch".to_owned(), "2.5".to_owned())]);
        let recorded = WorkloadOptions::default().record(options);
        assert_eq!(recorded["stretch"], 2.5);
        let (read, _) = WorkloadOptions::read(&recorded, &importers).unwrap();
        assert_eq!(read.import, [("stretch".to_owned(), "2.5".to_owned())]);
        assert!(read.importers.get("mine").is_some());
        let unknown = WorkloadOptions::read(&recorded, &Importers::default()).unwrap_err();
        assert!(unknown.contains("stretch"), "{unknown}");
    }

    #[test]
    fn given_options_override_recorded_ones() {
        let import = |pairs: &[(&str, &str)]| WorkloadOptions {
            import: pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
            ..WorkloadOptions::default()
        };
        let recorded = WorkloadOptions {
            machines: Some(3),
            slots: Some(SlotOptions::MapReduce { map: 2, reduce: 1 }),
            ..import(&[("split", "1"), ("reduces-max", "none")])
        };
        let given = WorkloadOptions { slots: Some(SlotOptions::Generic(4)), ..import(&[("split", "2")]) };
        let both = given.or(recorded);
        assert_eq!((both.machines, both.slots), (Some(3), Some(SlotOptions::Generic(4))));
        assert_eq!(both.import, import(&[("split", "2"), ("reduces-max", "none")]).import);
    }

    #[test]
    fn options_that_are_none_are_refused() {
        let error = |name: &str, value: Value| {
            WorkloadOptions::read(&RecordedOptions::from([(name.to_owned(), value)]), &Importers::default())
                .unwrap_err()
        };
        assert!(error("colour", "red".into()).contains("colour"), "{}", error("colour", "red".into()));
        assert_eq!(error("machines", "many".into()), "found machines=many, expected a whole number");
        assert!(error("deadlines", Value::Null).contains("null"));
        assert!(error("speed", "NaN".into()).contains("expected a number from 0.000001 to 1000000"));
        assert!(error("split", "5 miles".into()).contains("expected a size"));
    }
}
