//! Random precedence among the jobs of a flow.
//!
//! A DAG is a list of predecessors a job; predecessors have smaller numbers.

use super::shape::{job_name, shuffle};
use crate::random::{self, ChaCha8Rng};

/// Jobs in topological order, each pair joined with probability `edge`; every other sink comes
/// before the last job (FlowFlex, section 5.1). O(n²).
pub(super) fn random_edges(rng: &mut ChaCha8Rng, n: usize, edge: f64) -> Vec<Vec<usize>> {
    let mut after = vec![Vec::new(); n];
    let mut sink = vec![true; n];
    for (b, list) in after.iter_mut().enumerate() {
        for (a, sink) in sink.iter_mut().enumerate().take(b) {
            if random::chance(rng, edge) {
                list.push(a);
                *sink = false;
            }
        }
    }
    if let Some(last) = after.last_mut() {
        last.extend((0..n - 1).filter(|&a| sink[a]));
        last.sort_unstable();
    }
    after
}

/// The precedence between one layer of jobs and the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wiring {
    /// How many layers; at most one per job is used.
    pub(super) layers: usize,
    /// Most predecessors of a job.
    pub(super) fan_in: usize,
    /// Most successors of a job, unless all jobs of its layer have as many.
    pub(super) fan_out: usize,
}

/// Jobs in layers: every job after the first layer comes after 1 to `fan_in` jobs of the layer
/// before, so that its level is its layer. O(n²).
pub(super) fn layered(rng: &mut ChaCha8Rng, n: usize, shape: Wiring) -> Vec<Vec<usize>> {
    let layers = shape.layers.clamp(1, n.max(1));
    let mut sizes = vec![1; layers];
    for _ in layers..n {
        sizes[random::integer(rng, 0, layers as u64 - 1) as usize] += 1;
    }
    let mut after = vec![Vec::new(); n];
    let mut successors = vec![0; n];
    let mut start = sizes[0];
    let mut previous = 0..start;
    for size in &sizes[1..] {
        let layer = start..start + size;
        for list in &mut after[layer.clone()] {
            let want = random::integer(rng, 1, shape.fan_in as u64) as usize;
            let mut parents: Vec<usize> = previous.clone().collect();
            shuffle(rng, &mut parents);
            // Stable: jobs with room first, otherwise at random.
            parents.sort_by_key(|&a| successors[a] >= shape.fan_out);
            let room = parents.iter().filter(|&&a| successors[a] < shape.fan_out).count();
            parents.truncate(want.min(room.max(1)));
            for &a in &parents {
                successors[a] += 1;
            }
            parents.sort_unstable();
            *list = parents;
        }
        start = layer.end;
        previous = layer;
    }
    after
}

pub(super) fn names(after: &[usize]) -> Vec<String> {
    after.iter().map(|&a| job_name(a)).collect()
}

#[cfg(test)]
mod tests {
    use slackline_model::Seed;

    use super::*;

    #[test]
    fn pairs_give_chains_and_fans() {
        let mut rng = random::rng(Seed(0), "dag", 0);
        assert_eq!(random_edges(&mut rng, 4, 0.0), [vec![], vec![], vec![], vec![0, 1, 2]]);
        assert_eq!(random_edges(&mut rng, 4, 1.0), [vec![], vec![0], vec![0, 1], vec![0, 1, 2]]);
        assert_eq!(random_edges(&mut rng, 1, 0.5), [Vec::<usize>::new()]);
        assert!(random_edges(&mut rng, 0, 0.5).is_empty());
    }

    #[test]
    fn layers_are_levels_and_fans_are_kept() {
        for index in 0..50 {
            let mut rng = random::rng(Seed(1), "dag", index);
            let after = layered(&mut rng, 33, Wiring { layers: 8, fan_in: 3, fan_out: 4 });
            let mut level = [0; 33];
            for (k, list) in after.iter().enumerate() {
                assert!(list.len() <= 3 && list.iter().all(|&a| a < k));
                level[k] = list.iter().map(|&a| level[a] + 1).max().unwrap_or(0);
                assert!(list.iter().all(|&a| level[a] + 1 == level[k]));
            }
            assert_eq!(level.iter().max(), Some(&7));
        }
    }

    #[test]
    fn more_layers_than_jobs_are_a_chain() {
        let mut rng = random::rng(Seed(2), "dag", 0);
        let after = layered(&mut rng, 3, Wiring { layers: 9, fan_in: 2, fan_out: 2 });
        assert_eq!(after, [vec![], vec![0], vec![1]]);
    }
}
