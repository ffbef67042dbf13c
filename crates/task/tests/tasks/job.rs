//! Runs jobs in this process, one task after the other.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use slackline_task::attempt::plan;
use slackline_task::attempt::prepare::prepare;
use slackline_task::base::codec::Codec;
use slackline_task::base::error::TaskError;
use slackline_task::process::spec::{Job, Outcome, Setting, Shuffle, Spec, Split, Task};
use slackline_task::shuffle::part;
use slackline_task::{attempt, programs};

/// A job that will run in a separate directory.
pub(crate) struct Trial {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) job: Job,
    pub(crate) reducers: u32,
    pub(crate) split_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) setting: Setting,
    pub(crate) shuffle: Shuffle,
    pub(crate) compress: Option<Codec>,
    pub(crate) memory_limit: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) parts: Vec<Vec<u8>>,
    pub(crate) maps: Vec<Outcome>,
    pub(crate) reduces: Vec<Outcome>,
}

impl Output {
    /// All parts, one after the other.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.parts.concat()).unwrap()
    }

    /// The lines of all parts, sorted.
    pub(crate) fn sorted(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    pub(crate) fn spills(&self) -> u64 {
        self.maps.iter().map(|outcome| outcome.counts.spills).sum()
    }
}

impl Trial {
    pub(crate) fn of(job: Value) -> Self {
        let job = serde_json::from_value(job).unwrap();
        Trial {
            dir: tempfile::tempdir().unwrap(),
            job,
            reducers: 2,
            split_bytes: 1 << 20,
            memory_bytes: 1 << 20,
            setting: Setting::default(),
            shuffle: Shuffle::default(),
            compress: None,
            memory_limit: None,
        }
    }

    pub(crate) fn program(name: &str, args: Value) -> Self {
        Self::of(json!({ "program": name, "args": args }))
    }

    pub(crate) fn with(mut self, reducers: u32, split_bytes: u64, memory_bytes: u64) -> Self {
        (self.reducers, self.split_bytes, self.memory_bytes) = (reducers, split_bytes, memory_bytes);
        self
    }

    /// Writes an input file and gives its path.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn spec(&self, task: Task, directory: &Path) -> Spec {
        Spec {
            setting: self.setting.clone(),
            shuffle: self.shuffle.clone(),
            compress: self.compress,
            memory_limit: self.memory_limit,
            ..Spec::new(self.job.clone(), task, directory.to_owned(), self.memory_bytes)
        }
    }

    /// The attempt of a job's only map, over one file.
    pub(crate) fn map_of(&self, file: &str) -> Spec {
        let split = Split { path: file.into(), offset: 0, length: None, input: 0, source: None, copy: None };
        let task =
            Task::Map { index: 0, maps: 1, splits: vec![split], partitions: self.reducers, prepared: None };
        self.spec(task, &self.path("map-0"))
    }

    pub(crate) fn run(&self, inputs: &[String]) -> Result<Output, TaskError> {
        let shape = programs::describe(&self.job)?;
        let partitions = if shape.is_map_only { 0 } else { self.reducers };
        let plan = plan::plan(&self.job, inputs, self.split_bytes)?;
        let prepared = (shape.needs_preparation && partitions > 1).then(|| self.path("prepared"));
        if let Some(file) = &prepared {
            prepare(&self.job, &plan, partitions, file)?;
        }
        let count = plan.len() as u32;
        let mut output = Output { parts: Vec::new(), maps: Vec::new(), reduces: Vec::new() };
        let mut directories = Vec::new();
        for (index, splits) in (0..).zip(plan) {
            let directory = self.path(&format!("map-{index}"));
            let task = Task::Map { index, maps: count, splits, partitions, prepared: prepared.clone() };
            output.maps.push(attempt::run(&self.spec(task, &directory))?);
            if partitions == 0 {
                output.parts.push(fs::read(directory.join(part::part_file(index, self.compress))).unwrap());
            }
            directories.push(directory);
        }
        for partition in 0..partitions {
            let directory = self.path(&format!("reduce-{partition}"));
            let task = Task::Reduce { partition, maps: directories.clone() };
            output.reduces.push(attempt::run(&self.spec(task, &directory))?);
            output.parts.push(fs::read(directory.join(part::part_file(partition, self.compress))).unwrap());
        }
        Ok(output)
    }
}

/// Text from a small vocabulary, the same each time for a seed.
pub(crate) fn text(seed: u64, lines: usize) -> String {
    let mut state = seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut text = String::new();
    for _ in 0..lines {
        for _ in 0..next(9) {
            text.push_str(&"abcdefghijklmno"[..=next(3) as usize * next(5) as usize]);
            text.push_str(["x", "yy", "é", ""][next(4) as usize]);
            text.push_str([" ", "  ", "\t"][next(3) as usize]);
        }
        text.push('\n');
    }
    text
}
