//! Runs all samples on all sizes of the cluster, one round after the other.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use slackline::PolicySpec;
use slackline::import::{Source, WorkloadOptions};

use super::flags::Compare;
use super::round::{Round, Setting, round};
use super::samples::{Sample, Samples};
use crate::args::history::HistoryFile;
use crate::terminal::input::{report_diagnostics, warn_of_load};
use crate::terminal::out;
use crate::terminal::progress::Progress;

pub(super) struct Sweep<'a> {
    pub(super) args: &'a Compare,
    pub(super) samples: &'a Samples<'a>,
    pub(super) shapes: &'a [WorkloadOptions],
    pub(super) policies: &'a [PolicySpec],
    pub(super) past: &'a HistoryFile,
    /// Whether policies are shown as they end.
    pub(super) is_shown: bool,
}

pub(super) struct Results {
    pub(super) sizes: Vec<Vec<Round>>,
    /// The sample of the first round, if it is drawn.
    pub(super) first_drawn: Option<Rc<Sample>>,
}

impl Sweep<'_> {
    /// Runs all. `of_first` are the samples of the first file with the first seed on the first size, if they
    /// are loaded.
    pub(super) fn run(&self, mut of_first: Option<Vec<Sample>>) -> anyhow::Result<Results> {
        let Self { args, samples, shapes, policies, past, is_shown } = *self;
        // Pieces are about as many in each file.
        let n_samples = of_first.as_ref().map_or(1, Vec::len) * samples.sources.len() * samples.seeds.len();
        let (mut progress, mut reported) = (None, BTreeSet::new());
        let mut results = Results { sizes: Vec::new(), first_drawn: None };
        let seeds = || samples.seeds.iter().copied();
        for shape in shapes {
            let is_first_size = results.sizes.is_empty();
            let late: Vec<AtomicBool> = policies.iter().map(|_| AtomicBool::new(false)).collect();
            let mut rounds: Vec<Round> = Vec::new();
            let mut last: (usize, Vec<Rc<Sample>>) = (0, Vec::new());
            for (file, seed) in
                (0..samples.sources.len()).flat_map(|file| seeds().map(move |seed| (file, seed)))
            {
                let source = &samples.sources[file];
                let is_known = last.0 == file && last.1.iter().any(|sample| !sample.depends_on_seed());
                if !is_known {
                    last = (file, self.prepared(of_first.take(), source, shape, seed)?);
                }
                for sample in &last.1 {
                    if rounds.is_empty() {
                        if is_first_size {
                            warn_of_seeds(args, sample);
                        }
                        warn_of_load(&sample.loaded.instance);
                    }
                    if is_first_size && reported.insert(&source.name) {
                        report_diagnostics(&source.name, &sample.loaded.diagnostics);
                    }
                    let runs = policies.len() * n_samples * shapes.len();
                    let tasks = sample.loaded.instance.n_tasks();
                    let progress = progress.get_or_insert_with(|| Progress::new(runs, tasks));
                    let name = samples.name(source, sample, seed);
                    let late = late.as_slice();
                    let setting =
                        Setting { args, source, seed, name, past, policies, progress, late, is_shown };
                    let base = (results.sizes.len() * n_samples + rounds.len()) * policies.len();
                    let is_drawn = args.report.is_asked() && results.first_drawn.is_none();
                    rounds.push(round(&setting, sample, base, is_drawn)?);
                    if is_drawn {
                        results.first_drawn = Some(Rc::clone(sample));
                    }
                }
            }
            if rounds.is_empty() {
                bail!("--each: found no flows in {}, expected at least one", samples.title());
            }
            results.sizes.push(rounds);
        }
        Ok(results)
    }

    /// The samples of a file with a seed, ready to be simulated; `loaded` if they are loaded already.
    fn prepared(
        &self,
        loaded: Option<Vec<Sample>>,
        source: &Source,
        shape: &WorkloadOptions,
        seed: u64,
    ) -> anyhow::Result<Vec<Rc<Sample>>> {
        let loaded = match loaded {
            Some(loaded) => loaded,
            None => self.samples.of(source, shape, seed)?,
        };
        let prepare = |mut sample: Sample| {
            sample.loaded.prepare(self.args.simulation.grain)?;
            Ok(Rc::new(sample))
        };
        loaded.into_iter().map(prepare).collect()
    }
}

fn warn_of_seeds(args: &Compare, sample: &Sample) {
    if args.seeds > 1 && !args.simulation.options().draws() && !sample.depends_on_seed() {
        out::warn(
            "nothing is random here, so every seed gives the same result; see --jitter, --noise and --crash-rate",
        );
    }
}
