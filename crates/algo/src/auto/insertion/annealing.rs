//! Simulated annealing over the orders of tasks (Kirkpatrick, Gelatt, Vecchi 1983), for as long as the caller
//! likes: cycles from hot to cold, each twice as long as the last, in turn from the best order found and from
//! the last one. Nothing depends on time but the end.

use slackline_model::Seed;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::schedule::TaskRows;

use super::{Cost, Insertion, Layout};

/// The first and the last length of a cycle, in steps.
const CYCLES: (u64, u64) = (5_000, 640_000);
/// The temperature at the start of a cycle and at its end, as shares of the cost.
const HOT: f64 = 1e-2;
const COLD: f64 = 5e-5;
/// The weight of the sum of completions beside the cost, which has plateaus.
const COMPLETIONS: f64 = 1e-3;
/// The largest distance of a short move, in tasks.
const NEAR: u64 = 8;

/// The cheapest order found.
struct Best {
    cost: Cost,
    order: Vec<u32>,
}

impl Insertion<'_> {
    /// The rows of the cheapest schedule found until `stop` is true, starting with the order in which the
    /// tasks of `from` start. `stop` is called before each step, with the least cost so far.
    pub fn anneal(&mut self, from: &TaskRows, seed: u64, stop: &dyn Fn(f64) -> bool) -> TaskRows {
        let mut order = self.by_start(from);
        let mut rng: ChaCha8Rng = random::rng(Seed(seed), "annealing", 0);
        let mut best = Best { cost: self.place(&order), order: order.clone() };
        if order.len() < 2 {
            return self.rows(&order);
        }
        let mut length = CYCLES.0;
        let mut is_fresh = true;
        loop {
            if is_fresh {
                order.clone_from(&best.order);
            }
            if self.cycle(&mut order, &mut best, length, &mut rng, stop) {
                return self.rows(&best.order);
            }
            is_fresh = !is_fresh;
            length = (2 * length).min(CYCLES.1);
        }
    }

    /// One cycle; true if it was stopped.
    fn cycle(
        &mut self,
        order: &mut Vec<u32>,
        best: &mut Best,
        length: u64,
        rng: &mut ChaCha8Rng,
        stop: &dyn Fn(f64) -> bool,
    ) -> bool {
        let mut next = Vec::new();
        let cost = self.place(order);
        let scale = cost.0.abs().max(f64::MIN_POSITIVE);
        let weight = COMPLETIONS * scale / (cost.1 as f64).max(1.0);
        let energy = |cost: Cost| cost.0 + weight * cost.1 as f64;
        let mut now = energy(cost);
        let cooling = libm::pow(COLD / HOT, 1.0 / length as f64);
        let mut temperature = HOT * scale;
        for _ in 0..length {
            if stop(best.cost.0) {
                return true;
            }
            temperature *= cooling;
            self.step(order, &mut next, rng);
            let cost = self.place(&next);
            let worse = energy(cost) - now;
            if worse <= 0.0 || random::unit(rng) < libm::exp(-worse / temperature) {
                now = energy(cost);
                std::mem::swap(order, &mut next);
                if cost < best.cost {
                    best.cost = cost;
                    best.order.clone_from(order);
                }
            }
        }
        false
    }

    /// Writes an order near another: two tasks change places, or a task, a phase or a flow moves.
    fn step(&self, order: &[u32], next: &mut Vec<u32>, rng: &mut ChaCha8Rng) {
        let what = random::integer(rng, 0, 9);
        if what == 0 {
            return self.change(order, next, rng);
        }
        let Layout { tasks, .. } = &self.layout;
        let last = order.len() as u64 - 1;
        next.clear();
        next.extend_from_slice(order);
        // Tasks of a phase that change places change nothing.
        for _ in 0..4 {
            let from = random::integer(rng, 0, last);
            let to = random::integer(rng, from.saturating_sub(NEAR), (from + NEAR).min(last));
            let (from, to) = (from as usize, to as usize);
            if tasks[order[from] as usize].phase == tasks[order[to] as usize].phase {
                continue;
            }
            if what < 5 {
                next.swap(from, to);
            } else if from < to {
                next[from..=to].rotate_left(1);
            } else {
                next[to..=from].rotate_right(1);
            }
            return;
        }
    }
}
