//! Sets of free slots: a bitmap with summaries. It finds the lowest free slot in a few steps and returns
//! neighbouring slots as ranges.

use slackline_model::SlotRange;

/// A set of slots of one slot kind.
///
/// `levels[0]` has one bit per slot; each further level has one bit for each word of the level below
/// that is not zero. Space: 1 bit a slot and a 64th more.
#[derive(Clone, Debug)]
pub struct SlotSet {
    levels: Vec<Vec<u64>>,
    len: u32,
}

impl SlotSet {
    /// The empty set for slots `0..n`.
    pub fn empty(n: u32) -> Self {
        let mut levels = vec![vec![0; (n as usize).div_ceil(64).max(1)]];
        while let Some(last) = levels.last()
            && last.len() > 1
        {
            levels.push(vec![0; last.len().div_ceil(64)]);
        }
        Self { levels, len: 0 }
    }

    /// Makes room for slots `0..n`; new slots are not in the set. O(n) if it grows.
    pub fn grow(&mut self, n: u32) {
        let mut grown = Self::empty(n);
        if grown.levels[0].len() > self.levels[0].len() {
            for (word, &bits) in self.levels[0].iter().enumerate().filter(|(_, bits)| **bits != 0) {
                grown.levels[0][word] = bits;
                grown.mark(word);
            }
            *self = Self { len: self.len, ..grown };
        }
    }

    /// The number of slots in the set.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `slot` is in the set.
    pub fn contains(&self, slot: u32) -> bool {
        self.levels[0][slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    /// Adds slots that are not in the set. O(words touched).
    pub fn insert(&mut self, range: SlotRange) {
        self.len += range.len;
        each_word(range, |word, mask| {
            debug_assert_eq!(self.levels[0][word] & mask, 0, "slot freed twice");
            self.levels[0][word] |= mask;
            self.mark(word);
        });
    }

    /// Removes the slots of `range` that are in the set.
    pub fn remove(&mut self, range: SlotRange) {
        each_word(range, |word, mask| {
            self.len -= (self.levels[0][word] & mask).count_ones();
            self.levels[0][word] &= !mask;
            if self.levels[0][word] == 0 {
                self.unmark(word);
            }
        });
    }

    /// The number of slots of `range` in the set. O(words touched).
    pub fn count_in(&self, range: SlotRange) -> u32 {
        let mut count = 0;
        each_word(range, |word, mask| count += (self.levels[0][word] & mask).count_ones());
        count
    }

    /// Takes the `n` lowest slots of the set (fewer if there are fewer) and appends them to `out` as
    /// ranges, neighbours merged. O(ranges · levels).
    pub fn take_lowest(&mut self, n: u32, out: &mut Vec<SlotRange>) {
        let mut left = n.min(self.len);
        while left > 0 {
            let word = self.first_word();
            left -= self.take_from(word, u64::MAX, left, out);
        }
    }

    /// Takes the `n` lowest slots of the set within `range`, likewise. Returns how many.
    pub fn take_in(&mut self, range: SlotRange, n: u32, out: &mut Vec<SlotRange>) -> u32 {
        let mut left = n;
        while left > 0
            && let Some(slot) = self.first_from(range.first).filter(|&slot| slot < range.end())
        {
            let in_word = ones(range.end().min(slot / 64 * 64 + 64) - slot) << (slot % 64);
            left -= self.take_from(slot as usize / 64, in_word, left, out);
        }
        n - left
    }

    /// The lowest slot of the set that is `slot` or higher. O(levels).
    fn first_from(&self, slot: u32) -> Option<u32> {
        let mut at = slot as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let bits = level.get(at / 64)? & (u64::MAX << (at % 64));
            if bits != 0 {
                at = at / 64 * 64 + bits.trailing_zeros() as usize;
                for below in self.levels[..height].iter().rev() {
                    at = at * 64 + below[at].trailing_zeros() as usize;
                }
                return Some(at as u32);
            }
            at = at / 64 + 1;
        }
        None
    }

    /// Takes the first run of set bits of a word within `mask`, at most `most`. Returns how many.
    fn take_from(&mut self, word: usize, mask: u64, most: u32, out: &mut Vec<SlotRange>) -> u32 {
        let bits = self.levels[0][word] & mask;
        let at = bits.trailing_zeros();
        let run = (bits >> at).trailing_ones().min(most);
        self.levels[0][word] &= !(ones(run) << at);
        self.len -= run;
        if self.levels[0][word] == 0 {
            self.unmark(word);
        }
        let first = word as u32 * 64 + at;
        match out.last_mut() {
            Some(last) if last.end() == first => last.len += run,
            _ => out.push(SlotRange { first, len: run }),
        }
        run
    }

    /// The first word that is not zero; the set is not empty.
    fn first_word(&self) -> usize {
        let mut at = 0;
        for level in self.levels.iter().skip(1).rev() {
            at = at * 64 + level[at].trailing_zeros() as usize;
        }
        at
    }

    fn mark(&mut self, mut word: usize) {
        for level in self.levels.iter_mut().skip(1) {
            let bit = 1 << (word % 64);
            word /= 64;
            if level[word] & bit != 0 {
                return;
            }
            level[word] |= bit;
        }
    }

    fn unmark(&mut self, mut word: usize) {
        for level in self.levels.iter_mut().skip(1) {
            level[word / 64] &= !(1 << (word % 64));
            word /= 64;
            if level[word] != 0 {
                return;
            }
        }
    }
}

/// The lowest `n` bits.
fn ones(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Calls `f` with each word of the bitmap that `range` touches and the touched bits.
fn each_word(range: SlotRange, mut f: impl FnMut(usize, u64)) {
    let mut at = range.first;
    while at < range.end() {
        let bit = at % 64;
        let n = (64 - bit).min(range.end() - at);
        f(at as usize / 64, ones(n) << bit);
        at += n;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn range(first: u32, len: u32) -> SlotRange {
        SlotRange { first, len }
    }

    #[test]
    fn lowest_slots_come_out_as_merged_ranges() {
        let mut set = SlotSet::empty(300);
        set.insert(range(60, 10));
        set.insert(range(250, 50));
        set.insert(range(3, 1));
        let mut out = Vec::new();
        set.take_lowest(15, &mut out);
        assert_eq!(out, [range(3, 1), range(60, 10), range(250, 4)]);
        assert_eq!(set.len(), 46);
    }

    #[test]
    fn agrees_with_an_ordered_set() {
        let n = 10_000;
        let mut set = SlotSet::empty(n);
        let mut model = BTreeSet::new();
        let mut x = 7u64;
        let mut draw = |below: u32| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((x >> 33) % u64::from(below)) as u32
        };
        for _ in 0..3000 {
            let first = draw(n);
            let r = range(first, 1 + draw(200.min(n - first)));
            match draw(4) {
                0 => {
                    for slot in r.first..r.end() {
                        if model.insert(slot) {
                            set.insert(range(slot, 1));
                        }
                    }
                }
                1 => {
                    set.remove(r);
                    model.retain(|s| !(r.first..r.end()).contains(s));
                }
                2 => {
                    let (mut out, k) = (Vec::new(), draw(150));
                    set.take_lowest(k, &mut out);
                    let taken: Vec<u32> = out.iter().flat_map(|r| r.first..r.end()).collect();
                    let expected: Vec<u32> = model.iter().copied().take(k as usize).collect();
                    assert_eq!(taken, expected);
                    model.retain(|s| !taken.contains(s));
                }
                _ => {
                    assert_eq!(set.count_in(r) as usize, model.range(r.first..r.end()).count());
                    let (mut out, k) = (Vec::new(), draw(20));
                    set.take_in(r, k, &mut out);
                    let taken: Vec<u32> = out.iter().flat_map(|r| r.first..r.end()).collect();
                    let expected: Vec<u32> =
                        model.range(r.first..r.end()).copied().take(k as usize).collect();
                    assert_eq!(taken, expected);
                    model.retain(|s| !taken.contains(s));
                }
            }
            assert_eq!(set.len() as usize, model.len());
        }
    }
}
