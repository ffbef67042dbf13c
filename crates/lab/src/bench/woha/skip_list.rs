//! Queues on a deterministic skip list: the paper's double skip list is two of them.
//!
//! **Paper**: `woha`, section IV-B; J. I. Munro, T. Papadakis, R. Sedgewick: *Deterministic Skip Lists*, SODA
//! 1992 (the 1-2-3 skip list).
//!
//! Flows are in order at level 0; some of them also have a cell at level 1, some of these at level 2, and so
//! on. **Invariant**: between two neighbours at a level, before the first and after the last, there are one
//! to three cells of exactly the level below (at the top: none to three cells in all). A gap of four is split
//! by raising its second cell. An empty gap takes a cell from the neighbouring gap or is merged with it. A
//! merge removes a cell from the level above, where the same may follow.
//!
//! Searches, insertions and removals take O(log n) in the worst case. The head of the list is removed without
//! a search. The repairs after that are O(1) on average over any run of operations, as in a 2-3-4 tree, and
//! O(log n) at worst (the paper says O(1)).
//!
//! Cells are in one array and refer to each other by index.

use slackline_algo::woha::lag::Queue;

/// In place of a cell: the start of every level.
const HEAD: u32 = u32::MAX - 1;
/// In place of a cell: the end of every level.
const END: u32 = u32::MAX;
/// More levels than 2^32 cells can have, since each level has at most half the cells of the one below.
const LEVELS_MAX: usize = 34;
/// The last cell of each level before a position.
type Path = [u32; LEVELS_MAX];

#[derive(Clone, Copy, Debug)]
struct Cell<K> {
    entry: (K, u32),
    right: u32,
    /// The cell of the same flow one level below.
    down: u32,
}

/// A deterministic skip list.
#[derive(Clone, Debug)]
pub(super) struct SkipList<K> {
    cells: Vec<Cell<K>>,
    /// Cells for reuse.
    free: Vec<u32>,
    /// The first cell of each level; at least level 0.
    heads: Vec<u32>,
}

impl<K> Default for SkipList<K> {
    fn default() -> Self {
        Self { cells: Vec::new(), free: Vec::new(), heads: vec![END] }
    }
}

impl<K: Ord + Copy> SkipList<K> {
    fn right(&self, level: usize, cell: u32) -> u32 {
        if cell == HEAD { self.heads[level] } else { self.cells[cell as usize].right }
    }

    fn set_right(&mut self, level: usize, cell: u32, to: u32) {
        if cell == HEAD { self.heads[level] = to } else { self.cells[cell as usize].right = to }
    }

    fn down(&self, cell: u32) -> u32 {
        if cell == HEAD { HEAD } else { self.cells[cell as usize].down }
    }

    fn add(&mut self, entry: (K, u32), right: u32, down: u32) -> u32 {
        let cell = Cell { entry, right, down };
        if let Some(at) = self.free.pop() {
            self.cells[at as usize] = cell;
            return at;
        }
        self.cells.push(cell);
        (self.cells.len() - 1) as u32
    }

    /// The cell after `cell` at a level, if the list has the level; above the top there is none.
    fn next_above(&self, level: usize, cell: u32) -> u32 {
        if level < self.heads.len() { self.right(level, cell) } else { END }
    }

    /// The cells one level down that lie in the gap of `cell`, at most four.
    fn gap(&self, level: usize, cell: u32) -> usize {
        let next = self.next_above(level, cell);
        let stop = if next == END { END } else { self.cells[next as usize].down };
        let mut at = self.right(level - 1, self.down(cell));
        let mut count = 0;
        while at != stop && count < 4 {
            at = self.right(level - 1, at);
            count += 1;
        }
        count
    }

    fn search(&self, entry: (K, u32)) -> Path {
        let mut path = [HEAD; LEVELS_MAX];
        let mut cell = HEAD;
        for level in (0..self.heads.len()).rev() {
            loop {
                let next = self.right(level, cell);
                if next == END || self.cells[next as usize].entry >= entry {
                    break;
                }
                cell = next;
            }
            path[level] = cell;
            if level > 0 {
                cell = self.down(cell);
            }
        }
        path
    }

    /// Removes the entry after `path[0]` from level 0. Leaves in `path` the cell of each level whose gap now
    /// lacks a cell.
    fn unlink(&mut self, path: &mut Path) {
        let cell = self.right(0, path[0]);
        assert!(cell != END, "what is removed is in the list");
        let tall = self.heads.len() > 1 && {
            let above = self.right(1, path[1]);
            above != END && self.cells[above as usize].down == cell
        };
        if !tall {
            let next = self.cells[cell as usize].right;
            self.set_right(0, path[0], next);
            self.free.push(cell);
            return;
        }
        // The next entry has only one cell, since a gap is never empty. It takes over the cells of this
        // entry.
        let heir = self.cells[cell as usize].right;
        let Cell { entry, right, .. } = self.cells[heir as usize];
        self.cells[cell as usize].entry = entry;
        self.cells[cell as usize].right = right;
        self.free.push(heir);
        let mut below = cell;
        for (level, before) in path.iter_mut().enumerate().take(self.heads.len()).skip(1) {
            let above = self.right(level, *before);
            if above == END || self.cells[above as usize].down != below {
                break;
            }
            self.cells[above as usize].entry = entry;
            *before = above;
            below = above;
        }
    }

    /// Fills empty gaps, from below, and drops empty levels.
    fn repair(&mut self, path: &Path) {
        for level in 1..self.heads.len() {
            if self.gap(level, path[level]) > 0 || !self.fill(level, path[level], path[level + 1]) {
                break;
            }
        }
        while self.heads.len() > 1 && self.heads.last() == Some(&END) {
            self.heads.pop();
        }
    }

    /// Fills the empty gap of `cell`, itself in the gap of `parent`; true if a cell of this level had
    /// to go.
    fn fill(&mut self, level: usize, cell: u32, parent: u32) -> bool {
        let next_parent = self.next_above(level + 1, parent);
        let stop = if next_parent == END { END } else { self.cells[next_parent as usize].down };
        let right = self.right(level, cell);
        if right != stop {
            if self.gap(level, right) > 1 {
                let raised = self.right(level - 1, self.down(right));
                self.relabel(right, raised);
                return false;
            }
            self.drop_after(level, cell);
            return true;
        }
        // The last of its parent's gap is not the first: there is a cell to the left.
        let mut left = self.down(parent);
        while self.right(level, left) != cell {
            left = self.right(level, left);
        }
        if self.gap(level, left) > 1 {
            let mut raised = self.right(level - 1, self.down(left));
            while self.right(level - 1, raised) != self.down(cell) {
                raised = self.right(level - 1, raised);
            }
            self.relabel(cell, raised);
            return false;
        }
        self.drop_after(level, left);
        true
    }

    /// Makes `cell` the upper cell of another flow, whose cell one level down is `down`.
    fn relabel(&mut self, cell: u32, down: u32) {
        self.cells[cell as usize].entry = self.cells[down as usize].entry;
        self.cells[cell as usize].down = down;
    }

    fn drop_after(&mut self, level: usize, cell: u32) {
        let gone = self.right(level, cell);
        let next = self.cells[gone as usize].right;
        self.set_right(level, cell, next);
        self.free.push(gone);
    }
}

impl<K: Ord + Copy> Queue<K> for SkipList<K> {
    fn insert(&mut self, key: K, id: u32) {
        let path = self.search((key, id));
        let new = self.add((key, id), self.right(0, path[0]), END);
        self.set_right(0, path[0], new);
        for (level, &owner) in path.iter().enumerate().skip(1) {
            if level > self.heads.len() || self.gap(level, owner) <= 3 {
                break;
            }
            if level == self.heads.len() {
                self.heads.push(END);
            }
            let second = self.right(level - 1, self.right(level - 1, self.down(owner)));
            let raised = self.add(self.cells[second as usize].entry, self.right(level, owner), second);
            self.set_right(level, owner, raised);
        }
    }

    fn remove(&mut self, key: K, id: u32) {
        let is_head = self.first() == Some((key, id));
        let mut path = if is_head { [HEAD; LEVELS_MAX] } else { self.search((key, id)) };
        self.unlink(&mut path);
        self.repair(&path);
    }

    fn first(&self) -> Option<(K, u32)> {
        self.cells.get(self.heads[0] as usize).map(|cell| cell.entry)
    }

    fn walk(&self, visit: &mut dyn FnMut(K, u32) -> bool) {
        let mut at = self.heads[0];
        while at != END {
            let Cell { entry: (key, id), right, .. } = self.cells[at as usize];
            if !visit(key, id) {
                return;
            }
            at = right;
        }
    }
}

#[cfg(test)]
impl<K: Ord + Copy> SkipList<K> {
    /// Panics unless the list is a 1-2-3 skip list of exactly the cells in use.
    pub(super) fn audit(&self) {
        let top = self.heads.len();
        let mut used = 0;
        for level in 0..top {
            let mut at = self.heads[level];
            assert!(at != END || top == 1, "no empty level above the lowest");
            while at != END {
                let cell = &self.cells[at as usize];
                assert!(level == 0 || cell.entry.1 == self.cells[cell.down as usize].entry.1, "towers");
                assert!(cell.right == END || cell.entry < self.cells[cell.right as usize].entry, "order");
                used += 1;
                at = cell.right;
            }
        }
        for level in 1..=top {
            let mut at = HEAD;
            while at != END {
                let gap = self.gap(level, at);
                assert!(gap <= 3 && (gap >= 1 || level == top), "a gap of {gap} at level {level} of {top}");
                at = self.next_above(level, at);
            }
        }
        assert_eq!(used + self.free.len(), self.cells.len(), "no cell is lost");
    }
}
