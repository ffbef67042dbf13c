//! Further seeds of `simulate`: its schedule is of the first one, its summary is over all.

use slackline::PolicySpec;
use slackline::import::{Loaded, Source, WorkloadOptions};
use slackline::parallel::{self, processors};
use slackline::report::flow_chances::{self, FlowSeeds};
use slackline::report::number::counted;
use slackline::report::spread::{self, Runs};
use slackline::report::{Figures, View};
use slackline::simulate::{Simulated, Watch, simulate_figures};
use slackline_model::Start;

use crate::args::SimulationArgs;
use crate::args::history::HistoryFile;
use crate::args::seeds::{SeedArgs, Seeds};

/// The results of all seeds.
pub(super) struct AllSeeds {
    runs: Runs,
    first: u64,
    is_cut: bool,
    pub(super) flows: Vec<FlowSeeds>,
}

/// The figures of a seed, and the completions of its flows.
type OfSeed = (Figures, Vec<Option<f64>>);

/// What is simulated again with other seeds.
pub(super) struct Further<'a> {
    pub(super) seeds: &'a SeedArgs,
    pub(super) root: u64,
    pub(super) simulation: &'a SimulationArgs,
    pub(super) shape: &'a WorkloadOptions,
    pub(super) source: &'a Source,
    pub(super) loaded: &'a Loaded,
    pub(super) past: &'a HistoryFile,
    pub(super) policy: &'a PolicySpec,
}

impl Further<'_> {
    /// Whether another seed gives another result.
    pub(super) fn is_random(&self) -> bool {
        self.simulation.options().draws() || self.loaded.depends_on_seed()
    }

    /// Simulates further seeds until there are enough; `None` if nothing is random, or one is enough.
    ///
    /// # Errors
    /// Those of a simulation.
    pub(super) fn run(&self, first: &Simulated) -> anyhow::Result<Option<AllSeeds>> {
        let seeds = Seeds::new(self.seeds, self.root, &[]);
        if !self.is_random() || seeds.most() == 1 {
            return Ok(None);
        }
        let mut all: Vec<OfSeed> = vec![of(first)];
        let runs = |all: &[OfSeed]| Runs {
            policy: self.policy.spec().to_owned(),
            result: Ok(all.iter().map(|(figures, _)| figures.clone()).collect()),
        };
        while !seeds.is_enough(all.len() as u32, Some(&|| vec![runs(&all)])) {
            let done = all.len() as u32;
            let more = seeds.to_next_step(done);
            let from = seeds.seed(done);
            let one = |k: usize| self.seed(from.wrapping_add(k as u64));
            all.extend(parallel::map(more as usize, processors(), one)?);
        }
        let completions: Vec<Vec<Option<f64>>> = all.iter().map(|(_, flows)| flows.clone()).collect();
        Ok(Some(AllSeeds {
            runs: runs(&all),
            first: seeds.seed(0),
            is_cut: seeds.is_cut(),
            flows: if self.loaded.draws_flows() {
                Vec::new()
            } else {
                FlowSeeds::of(self.policy.spec(), &self.loaded.instance, &completions)
            },
        }))
    }

    fn seed(&self, seed: u64) -> anyhow::Result<OfSeed> {
        let Self { simulation, shape, source, past, policy, .. } = *self;
        let drawn = if self.loaded.depends_on_seed() {
            let mut drawn = source.load(&WorkloadOptions { seed: Some(seed), ..shape.clone() })?;
            drawn.prepare(simulation.grain)?;
            Some(drawn)
        } else {
            None
        };
        let instance = &drawn.as_ref().unwrap_or(self.loaded).instance;
        let options = simulation.options().resolve(instance, seed, &past.history)?;
        let simulated = simulate_figures(instance, policy, &options, None, Watch::default())?;
        Ok(of(&simulated))
    }
}

fn of(simulated: &Simulated) -> OfSeed {
    let flows = simulated.schedule.flows.iter().map(|row| row.completion).collect();
    (Figures::of_simulation(simulated), flows)
}

impl AllSeeds {
    /// The means over all seeds, with the chances of flows if there are enough.
    pub(super) fn text(&self, start: Option<&Start>, view: &View) -> String {
        let n = self.n();
        let plain = View { columns: Vec::new(), sort: None, ..view.clone() };
        let cut = if self.is_cut { " (--budget ended the sampling)" } else { "" };
        let seeds = counted(n as u64, "seed");
        let means = spread::means(std::slice::from_ref(&self.runs)).render(&plain);
        let head = format!(
            "\n{seeds} from {first}{cut}: {}; the schedule and what is above are of seed {first}\n{means}",
            spread::legend(n),
            first = self.first
        );
        if !self.has_chances() {
            return head;
        }
        head + "\n" + &flow_chances::table(&self.flows, start, &plain)
    }

    /// Whether there are enough for the chances of flows.
    pub(super) fn has_chances(&self) -> bool {
        self.n() >= flow_chances::ENOUGH && !self.flows.is_empty()
    }

    fn n(&self) -> usize {
        self.runs.result.as_ref().map_or(0, Vec::len)
    }
}
