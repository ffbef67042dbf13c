//! Slot configuration: exact sweeps over all splits, by number of slots and of jobs.
//!
//! Targets, on one core: 20,000 slots and the 150 jobs of `facebook-table3` in 1 s; 200,000 slots and
//! 1,000 jobs of 2 million tasks in 10 s. Seconds are those on a processor; a sweep uses one.

use slackline_algo::ordering::orders::{Goal, Rule};
use slackline_algo::ordering::split::{Best, Config, best_split, mk_sf_jr, mk_tct_sf_jr};
use slackline_algo::ordering::splits::Splits;
use slackline_algo::ordering::workload::Workload;
use slackline_model::{Instance, Seed};
use slackline_trace::generate;

use super::measure::{busy, median};
use super::size::Size;

/// Prints a row for each sweep.
pub fn run(size: Size) {
    let table3 = |jobs: &str| load("facebook-table3", &[("jobs", jobs)]);
    println!(
        "{:<10} {:>6} {:>9} {:>8} {:<14} {:>9} {:>9} {:>8}  hash",
        "workload", "jobs", "tasks", "slots", "sweep", "CPU s", "evaluated", "share"
    );
    match size {
        Size::Small => sweeps("table3", &table3("50"), 200, 1),
        Size::Large => {
            for slots in [2_000, 20_000, 200_000] {
                sweeps("table3", &table3("150"), slots, 5);
            }
            let day = load("facebook-day", &[("jobs", "1000"), ("maps", "1900000")]);
            for slots in [200_000, 20_000] {
                sweeps("day", &day, slots, 1);
            }
        }
    }
}

/// A generated workload, with all jobs released at the start.
fn load(name: &str, settings: &[(&str, &str)]) -> Workload {
    let generator = generate::generator(name).expect("the generator is registered");
    let mut draft = generator.generate(settings, Seed(1)).expect("the parameters are valid");
    draft.flows.iter_mut().for_each(|flow| flow.release = 0.0);
    let instance = Instance::new(&draft).expect("generated workloads are valid");
    Workload::from_instance(&instance).expect("they are flows of one job")
}

fn sweeps(name: &str, workload: &Workload, slots: u32, repeats: usize) {
    let splits = Splits::of_total(slots).expect("there are slots to divide");
    let config = Config::standard();
    let total = || best_split(workload, splits, Rule::MkTctJr, Goal::TotalCompletion, config);
    let front = || {
        let front = mk_tct_sf_jr(workload, splits, config);
        let choice = front.choices.into_iter().next().expect("fronts are not empty");
        Best { choice, evaluated: front.evaluated, candidates: front.candidates }
    };
    let sweeps: [(&str, &dyn Fn() -> Best); 3] =
        [("makespan", &|| mk_sf_jr(workload, splits, config)), ("total", &total), ("front", &front)];
    for (sweep, find) in sweeps {
        let (mut seconds, mut last) = (Vec::new(), None);
        for _ in 0..repeats {
            let (best, took) = busy(find);
            seconds.push(took);
            last = Some(best);
        }
        let best = last.expect("at least one repeat");
        let hash =
            best.choice.makespan.0 ^ (best.choice.total_completion as u64).wrapping_mul(0x100_0000_01b3);
        println!(
            "{name:<10} {:>6} {:>9} {slots:>8} {sweep:<14} {:>9.4} {:>9} {:>7.3}%  {hash:016x}",
            workload.len(),
            workload.n_tasks(),
            median(seconds),
            best.evaluated,
            100.0 * f64::from(best.evaluated) / f64::from(best.candidates),
        );
    }
}
