//! Runs all samples on all sizes of the cluster, one round after the other.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use slackline::PolicySpec;
use slackline::import::{Source, WorkloadOptions};
use slackline::report::Figures;
use slackline::report::spread::Runs;

use super::flags::Compare;
use super::round::{Round, Setting, round};
use super::samples::{Sample, Samples};
use crate::args::history::HistoryFile;
use crate::args::seeds::Seeds;
use crate::terminal::input::{report_diagnostics, warn_of_load};
use crate::terminal::out;
use crate::terminal::progress::Progress;

pub(super) struct Sweep<'a> {
    pub(super) args: &'a Compare,
    pub(super) samples: &'a Samples<'a>,
    pub(super) seeds: &'a Seeds<'a>,
    pub(super) shapes: &'a [WorkloadOptions],
    pub(super) policies: &'a [PolicySpec],
    pub(super) past: &'a HistoryFile,
}

pub(super) struct Results {
    pub(super) sizes: Vec<Vec<Round>>,
    /// The sample of the first round, if it is drawn.
    pub(super) first_drawn: Option<Rc<Sample>>,
}

/// What the rounds of one size of the cluster share.
struct Size<'a> {
    shape: &'a WorkloadOptions,
    /// Which policies took longer than they may.
    late: Vec<AtomicBool>,
    rounds: Vec<Round>,
}

impl Sweep<'_> {
    /// Runs all. `of_first` are the samples of the first file with the first seed on the first size, if they
    /// are loaded.
    pub(super) fn run(&self, mut of_first: Option<Vec<Sample>>) -> anyhow::Result<Results> {
        let mut results = Results { sizes: Vec::new(), first_drawn: None };
        let mut reported = BTreeSet::new();
        for shape in self.shapes {
            let late = self.policies.iter().map(|_| AtomicBool::new(false)).collect();
            let mut size = Size { shape, late, rounds: Vec::new() };
            for source in self.samples.sources {
                self.file(source, &mut size, of_first.take(), &mut reported, &mut results)?;
            }
            if size.rounds.is_empty() {
                bail!("--each: found no flows in {}, expected at least one", self.samples.title());
            }
            results.sizes.push(size.rounds);
        }
        Ok(results)
    }

    /// Runs the seeds of a file, until there are enough.
    fn file<'a>(
        &self,
        source: &'a Source,
        size: &mut Size<'_>,
        mut loaded: Option<Vec<Sample>>,
        reported: &mut BTreeSet<&'a str>,
        results: &mut Results,
    ) -> anyhow::Result<()> {
        let first = size.rounds.len();
        let is_first_size = results.sizes.is_empty();
        let mut last: Vec<Rc<Sample>> = Vec::new();
        for k in 0.. {
            let seed = self.seeds.seed(k);
            if last.iter().all(|sample| sample.loaded.depends_on_seed()) {
                last = self.prepared(loaded.take(), source, size.shape, seed)?;
            }
            let is_random = self.is_random(&last);
            if is_first_size && reported.insert(&source.name) {
                report_first(self.args, source, &last, is_random);
            }
            if let (true, Some(sample)) = (size.rounds.is_empty(), last.first()) {
                warn_of_load(&sample.loaded.instance);
            }
            let is_one_seed = !is_random || self.seeds.most() == 1;
            self.seed(source, size, &last, seed, is_one_seed, results)?;
            let is_several = self.samples.are_named();
            let so_far = || by_policy(self.policies, &size.rounds[first..]);
            let so_far = (!is_several).then_some(&so_far as &dyn Fn() -> Vec<Runs>);
            if !is_random || last.is_empty() || self.seeds.is_enough(k + 1, so_far) {
                break;
            }
        }
        Ok(())
    }

    /// Whether a file gives other results with another seed.
    fn is_random(&self, samples: &[Rc<Sample>]) -> bool {
        self.args.simulation.options().draws() || samples.iter().any(|sample| sample.loaded.depends_on_seed())
    }

    /// Runs the pieces of a file with one seed.
    fn seed(
        &self,
        source: &Source,
        size: &mut Size<'_>,
        pieces: &[Rc<Sample>],
        seed: u64,
        is_one_seed: bool,
        results: &mut Results,
    ) -> anyhow::Result<()> {
        let Self { args, samples, policies, past, .. } = *self;
        let is_averaged = !is_one_seed || samples.are_named();
        let tasks = pieces.iter().map(|sample| sample.loaded.instance.n_tasks()).max().unwrap_or(0);
        let progress = Progress::new(policies.len() * pieces.len(), tasks);
        for (k, sample) in pieces.iter().enumerate() {
            let late = size.late.as_slice();
            let name = samples.name(source, sample);
            let is_shown = !is_averaged && self.shapes.len() == 1;
            let progress = &progress;
            let keeps = args.seeds.seeds.is_some() || seed == self.seeds.seed(0);
            let setting =
                Setting { args, source, seed, name, past, policies, progress, late, is_shown, keeps };
            let is_drawn = args.report.is_asked() && results.first_drawn.is_none();
            if is_drawn {
                results.first_drawn = Some(Rc::clone(sample));
            }
            size.rounds.push(round(&setting, sample, k * policies.len(), is_drawn)?);
        }
        Ok(())
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

/// Reports what the importer found in a file, and what is unusual about it.
fn report_first(args: &Compare, source: &Source, samples: &[Rc<Sample>], is_random: bool) {
    if args.seeds.seeds.is_some_and(|seeds| seeds > 1) && !is_random {
        out::warn("nothing is random here, so one seed is simulated; see --jitter, --noise and --crash-rate");
    }
    for sample in samples {
        report_diagnostics(&source.name, &sample.loaded.diagnostics);
    }
}

/// The figures of each policy, round by round.
pub(super) fn by_policy(policies: &[PolicySpec], rounds: &[Round]) -> Vec<Runs> {
    let runs = |(k, policy): (usize, &PolicySpec)| {
        let results = rounds.iter().map(|round| round.rows[k].result.clone());
        let result: Result<Vec<Figures>, String> = results.collect();
        Runs { policy: policy.spec().to_owned(), result }
    };
    policies.iter().enumerate().map(runs).collect()
}
