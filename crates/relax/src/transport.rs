//! The transportation problem: supplies into slots of bounded capacity, by the network simplex method.
//!
//! min Σ c_ik x_ik with Σ_k x_ik = supply_i, Σ_i x_ik ≤ capacity_k, x ≥ 0. An infinite cost forbids a pair.
//!
//! The basis is a spanning tree of rows (supplies and one dummy that takes unused capacity) and columns
//! (slots). A pivot enters the pair of least reduced cost of a row, rows in turn, and hangs the subtree that
//! the leaving pair cuts off to its new place. The leaving pair follows Cunningham's rule of strongly
//! feasible trees, so that the method does not cycle; a limit on pivots guards against rounding.
//!
//! After any number of pivots, [`Solution::bound`] is a lower bound: it is the value of slot prices π ≥ 0,
//! Σ_i supply_i · min_k (c_ik + π_k) − Σ_k capacity_k π_k (docs/math/flowflex.md B6).
//!
//! **Complexity**: O(rows · columns) memory and a pass over all pairs; a pivot O(columns + depth + subtree).
//! Existing libraries bind C++ code, or use successive shortest paths, which are quadratic here.

use crate::rounding_margin;

/// A price that no optimum pays, relative to the largest finite cost.
const FORBIDDEN: f64 = 1e4;
/// Pivots allowed a node of the tree; a few are usual.
const PIVOTS: usize = 200;
/// Reduced costs above this part of the largest cost are zero.
const NEAR: f64 = 1e-11;

/// A problem; `cost` is row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// How much each row has to send; positive.
    pub supply: Vec<f64>,
    /// How much each column can take; positive, in total at least the supply.
    pub capacity: Vec<f64>,
    /// Cost a unit of each row in each column.
    pub cost: Vec<f64>,
}

/// A solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The flow of each row, by column.
    pub shipped: Vec<Vec<(usize, f64)>>,
    /// A lower bound on the cost of any solution, equal to the optimum up to rounding unless pivots ran out.
    pub bound: f64,
    /// Price of a unit of each column.
    pub prices: Vec<f64>,
}

impl Problem {
    fn cost(&self, row: usize, column: usize) -> f64 {
        self.cost[row * self.capacity.len() + column]
    }
}

/// Solves the problem. Rows first fill the columns in the order given: the nearer that is to an optimum, the
/// fewer pivots.
pub fn solve(problem: &Problem) -> Solution {
    let mut tree = Tree::new(problem);
    tree.optimise();
    let prices = tree.prices();
    let mut shipped = vec![Vec::new(); problem.supply.len()];
    for (node, &amount) in tree.flow.iter().enumerate() {
        if amount <= 0.0 || node == ROOT {
            continue;
        }
        let (row, column) = tree.pair(node);
        if row < problem.supply.len() {
            shipped[row].push((column, amount));
        }
    }
    for row in &mut shipped {
        row.sort_by_key(|&(column, _)| column);
    }
    Solution { shipped, bound: value_of(problem, &prices), prices }
}

/// The lower bound of prices π ≥ 0 of the columns. O(rows · columns).
pub fn value_of(problem: &Problem, prices: &[f64]) -> f64 {
    let columns = problem.capacity.len();
    let (mut value, mut magnitude) = (0.0, 0.0);
    for (row, &supply) in problem.supply.iter().enumerate() {
        let costs = problem.cost[row * columns..(row + 1) * columns].iter().zip(prices);
        let least = costs.map(|(c, p)| c + p).fold(f64::INFINITY, f64::min);
        value += supply * least;
        magnitude += (supply * least).abs();
    }
    for (capacity, price) in problem.capacity.iter().zip(prices) {
        value -= capacity * price;
        magnitude += capacity * price;
    }
    value - rounding_margin::margin(magnitude, problem.supply.len() + columns)
}

const ROOT: usize = 0;
const NONE: usize = usize::MAX;

/// The basis. Nodes are the rows, the dummy row, then the columns.
struct Tree<'a> {
    problem: &'a Problem,
    /// Rows with the dummy.
    rows: usize,
    /// Cost of forbidden pairs.
    forbidden: f64,
    /// Reduced costs below `-near` can be improved.
    near: f64,
    parent: Vec<usize>,
    depth: Vec<u32>,
    /// The flow between a node and its parent.
    flow: Vec<f64>,
    /// u of rows, v of columns: u + v is the cost of a pair of the tree.
    potential: Vec<f64>,
    first_child: Vec<usize>,
    next: Vec<usize>,
    previous: Vec<usize>,
    stack: Vec<usize>,
}

impl<'a> Tree<'a> {
    fn new(problem: &'a Problem) -> Self {
        let (rows, columns) = (problem.supply.len() + 1, problem.capacity.len());
        let n = rows + columns;
        let largest = problem.cost.iter().filter(|c| c.is_finite()).fold(0f64, |a, c| a.max(c.abs()));
        let mut tree = Self {
            problem,
            rows,
            forbidden: FORBIDDEN * largest.max(f64::MIN_POSITIVE),
            near: NEAR * largest,
            parent: vec![NONE; n],
            depth: vec![0; n],
            flow: vec![0.0; n],
            potential: vec![0.0; n],
            first_child: vec![NONE; n],
            next: vec![NONE; n],
            previous: vec![NONE; n],
            stack: Vec::new(),
        };
        tree.lay_out();
        tree.refresh(ROOT);
        tree
    }

    /// The staircase of rows into columns; a path of the tree from row 0 on.
    fn lay_out(&mut self) {
        let supply: f64 = self.problem.supply.iter().sum();
        let capacity: f64 = self.problem.capacity.iter().sum();
        let (mut row, mut column, mut last) = (0, 0, ROOT);
        let of_row = |row: usize| *self.problem.supply.get(row).unwrap_or(&(capacity - supply).max(0.0));
        let (mut left, mut room) = (of_row(0), self.problem.capacity[0]);
        loop {
            let amount = left.min(room);
            let node = if last < self.rows { self.rows + column } else { row };
            let (row_ends, columns_left) = (left < room, column + 1 < self.problem.capacity.len());
            let amount = if amount < 0.0 { 0.0 } else { amount };
            // Each pair of the staircase joins one new node to the one before it.
            let parent = if last < self.rows { row } else { self.rows + column };
            debug_assert!(node != parent);
            self.attach(node, parent, amount);
            left -= amount;
            room -= amount;
            if (row_ends || !columns_left) && row + 1 < self.rows {
                row += 1;
                left = of_row(row);
                last = self.rows + column;
            } else if columns_left {
                column += 1;
                room = self.problem.capacity[column];
                last = row;
            } else {
                return;
            }
        }
    }

    /// The pair of a node and its parent.
    fn pair(&self, node: usize) -> (usize, usize) {
        let parent = self.parent[node];
        if node < self.rows { (node, parent - self.rows) } else { (parent, node - self.rows) }
    }

    fn cost(&self, row: usize, column: usize) -> f64 {
        if row + 1 == self.rows {
            return 0.0;
        }
        let cost = self.problem.cost(row, column);
        if cost.is_finite() { cost } else { self.forbidden }
    }

    fn attach(&mut self, node: usize, parent: usize, flow: f64) {
        self.parent[node] = parent;
        self.flow[node] = flow;
        let sibling = self.first_child[parent];
        self.next[node] = sibling;
        self.previous[node] = NONE;
        if sibling != NONE {
            self.previous[sibling] = node;
        }
        self.first_child[parent] = node;
    }

    fn detach(&mut self, node: usize) {
        let (previous, next) = (self.previous[node], self.next[node]);
        if previous == NONE {
            self.first_child[self.parent[node]] = next;
        } else {
            self.next[previous] = next;
        }
        if next != NONE {
            self.previous[next] = previous;
        }
    }

    /// Depths and potentials of a subtree from those of its top's parent.
    fn refresh(&mut self, top: usize) {
        self.stack.push(top);
        while let Some(node) = self.stack.pop() {
            if node != ROOT {
                let parent = self.parent[node];
                let (row, column) = self.pair(node);
                self.depth[node] = self.depth[parent] + 1;
                self.potential[node] = self.cost(row, column) - self.potential[parent];
            }
            let mut child = self.first_child[node];
            while child != NONE {
                self.stack.push(child);
                child = self.next[child];
            }
        }
    }

    fn optimise(&mut self) {
        let mut pivots = PIVOTS * self.parent.len();
        let (mut row, mut quiet) = (0, 0);
        while quiet < self.rows && pivots > 0 {
            match self.cheapest(row) {
                Some(column) => {
                    self.pivot(row, column);
                    pivots -= 1;
                    quiet = 0;
                }
                None => quiet += 1,
            }
            row = (row + 1) % self.rows;
        }
    }

    /// The column of the smallest reduced cost of a row, if that is negative.
    fn cheapest(&self, row: usize) -> Option<usize> {
        let columns = &self.potential[self.rows..];
        let (mut least, mut at) = (f64::INFINITY, 0);
        if row + 1 == self.rows {
            for (k, v) in columns.iter().enumerate() {
                if -v < least {
                    (least, at) = (-v, k);
                }
            }
        } else {
            let costs = &self.problem.cost[row * columns.len()..(row + 1) * columns.len()];
            for (k, (c, v)) in costs.iter().zip(columns).enumerate() {
                if c - v < least {
                    (least, at) = (c - v, k);
                }
            }
        }
        (least - self.potential[row] < -self.near).then_some(at)
    }

    /// Brings a pair into the basis.
    fn pivot(&mut self, row: usize, column: usize) {
        let column = self.rows + column;
        // Nodes whose pair with their parent loses flow: rows on the row's side, columns on the column's.
        let (mut a, mut b) = (row, column);
        let (mut theta, mut leaving, mut on_row_side) = (f64::INFINITY, NONE, true);
        let (mut theta_b, mut leaving_b) = (f64::INFINITY, NONE);
        while a != b {
            if self.depth[a] >= self.depth[b] {
                if a < self.rows && self.flow[a] < theta {
                    (theta, leaving) = (self.flow[a], a);
                }
                a = self.parent[a];
            } else {
                if b >= self.rows && self.flow[b] <= theta_b {
                    (theta_b, leaving_b) = (self.flow[b], b);
                }
                b = self.parent[b];
            }
        }
        if theta_b <= theta {
            (theta, leaving, on_row_side) = (theta_b, leaving_b, false);
        }
        let join = a;
        for (mut node, loses_rows) in [(row, true), (column, false)] {
            while node != join {
                let loses = (node < self.rows) == loses_rows;
                self.flow[node] += if loses { -theta } else { theta };
                node = self.parent[node];
            }
        }
        let (top, under) = if on_row_side { (row, column) } else { (column, row) };
        self.rehang(top, under, leaving, theta);
        self.refresh(top);
    }

    /// Makes `top` the top of the subtree cut off at `leaving`, and attaches it to `under`.
    fn rehang(&mut self, top: usize, under: usize, leaving: usize, flow: f64) {
        let (mut node, mut parent, mut carried) = (top, under, flow);
        loop {
            let (old_parent, old_flow) = (self.parent[node], self.flow[node]);
            self.detach(node);
            self.attach(node, parent, carried);
            if node == leaving {
                return;
            }
            (parent, carried, node) = (node, old_flow, old_parent);
        }
    }

    /// Prices relative to the dummy row, which uses any column for free.
    fn prices(&self) -> Vec<f64> {
        let free = self.potential[self.rows - 1];
        self.potential[self.rows..].iter().map(|v| (-v - free).max(0.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(problem: &Problem, solution: &Solution) -> f64 {
        let rows = solution.shipped.iter().enumerate();
        rows.flat_map(|(row, list)| list.iter().map(move |&(k, x)| problem.cost(row, k) * x)).sum()
    }

    /// Units of work, one by one along shortest augmenting paths (Bellman-Ford).
    fn brute(problem: &Problem) -> f64 {
        let (rows, columns) = (problem.supply.len(), problem.capacity.len());
        let mut sent = vec![vec![0i64; columns]; rows];
        let mut room: Vec<i64> = problem.capacity.iter().map(|&c| c as i64).collect();
        let mut total = 0.0;
        for row in 0..rows {
            for _ in 0..problem.supply[row] as i64 {
                let mut to_row = vec![f64::INFINITY; rows];
                let mut to_column = vec![(f64::INFINITY, usize::MAX); columns];
                let mut row_from = vec![usize::MAX; rows];
                to_row[row] = 0.0;
                for _ in 0..rows + columns {
                    for i in 0..rows {
                        for k in 0..columns {
                            let forward = to_row[i] + problem.cost(i, k);
                            if forward < to_column[k].0 - 1e-9 {
                                to_column[k] = (forward, i);
                            }
                            let back = to_column[k].0 - problem.cost(i, k);
                            if sent[i][k] > 0 && back < to_row[i] - 1e-9 {
                                to_row[i] = back;
                                row_from[i] = k;
                            }
                        }
                    }
                }
                let open = (0..columns).filter(|&k| room[k] > 0);
                let mut k = open.min_by(|&a, &b| to_column[a].0.total_cmp(&to_column[b].0)).unwrap();
                total += to_column[k].0;
                room[k] -= 1;
                loop {
                    let i = to_column[k].1;
                    sent[i][k] += 1;
                    if i == row {
                        break;
                    }
                    k = row_from[i];
                    sent[i][k] -= 1;
                }
            }
        }
        total
    }

    proptest! {
        #[test]
        fn optimal_by_duality_and_against_augmenting_paths(
            supply in prop::collection::vec(1u32..6, 1..6),
            capacity in prop::collection::vec(1u32..5, 1..8),
            costs in prop::collection::vec(0u32..20, 48),
            spare in 0u32..4,
        ) {
            let supply: Vec<f64> = supply.into_iter().map(f64::from).collect();
            let mut capacity: Vec<f64> = capacity.into_iter().map(f64::from).collect();
            let short = supply.iter().sum::<f64>() - capacity.iter().sum::<f64>();
            capacity.push(short.max(0.0) + f64::from(spare) + 1.0);
            let cost = (0..supply.len() * capacity.len()).map(|k| f64::from(costs[k % 48])).collect();
            let problem = Problem { supply, capacity, cost };
            let solution = solve(&problem);
            let cost = value(&problem, &solution);
            prop_assert!((cost - solution.bound).abs() <= 1e-7 * (1.0 + cost), "{cost} {}", solution.bound);
            prop_assert!((cost - brute(&problem)).abs() <= 1e-7 * (1.0 + cost));
            for (row, list) in solution.shipped.iter().enumerate() {
                let sent: f64 = list.iter().map(|x| x.1).sum();
                prop_assert!((sent - problem.supply[row]).abs() < 1e-9);
            }
            for (k, &room) in problem.capacity.iter().enumerate() {
                let used: f64 = solution.shipped.iter().flatten().filter(|x| x.0 == k).map(|x| x.1).sum();
                prop_assert!(used <= room + 1e-9);
            }
        }
    }

    #[test]
    fn forbidden_pairs_are_not_used() {
        let problem = Problem {
            supply: vec![2.0, 2.0],
            capacity: vec![2.0, 2.0],
            cost: vec![0.0, f64::INFINITY, 0.0, 5.0],
        };
        let solution = solve(&problem);
        assert_eq!(solution.shipped, vec![vec![(0, 2.0)], vec![(1, 2.0)]]);
        assert!((solution.bound - 10.0).abs() < 1e-5);
    }
}
