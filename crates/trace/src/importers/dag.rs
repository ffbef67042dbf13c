//! Dependencies between nodes if some nodes are omitted, or if only start and end times are known.

use std::collections::{BTreeSet, VecDeque};

/// Start and end of an activity, in milliseconds; `None` where unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

/// The predecessors of each kept node, ascending; an omitted node is replaced by its own predecessors. Nodes
/// are numbers, and cycles are allowed.
pub(super) fn bridge(after: &[Vec<usize>], is_kept: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let of_node = |node: usize| {
        if !is_kept(node) {
            return Vec::new();
        }
        let (mut found, mut open) = (Vec::new(), after[node].clone());
        let mut seen = BTreeSet::new();
        while let Some(before) = open.pop() {
            if is_kept(before) {
                found.push(before);
            } else if seen.insert(before) {
                open.extend(&after[before]);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    };
    (0..after.len()).map(of_node).collect()
}

/// Which nodes can never begin, because they wait for each other or for such nodes. `before` has the nodes
/// that each waits for.
pub(super) fn never_ready(before: &[Vec<usize>]) -> Vec<bool> {
    let mut waits: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut next = vec![Vec::new(); before.len()];
    for (k, before) in before.iter().enumerate() {
        for &other in before {
            next[other].push(k);
        }
    }
    let mut ready: Vec<usize> = (0..before.len()).filter(|&k| waits[k] == 0).collect();
    while let Some(k) = ready.pop() {
        for &other in &next[k] {
            waits[other] -= 1;
            if waits[other] == 0 {
                ready.push(other);
            }
        }
    }
    waits.into_iter().map(|waits| waits > 0).collect()
}

/// For each span, the spans that had ended at its start, except those for which one of them had already
/// waited. O(n log n + result).
pub(super) fn infer_dependencies(spans: &[Span]) -> Vec<Vec<usize>> {
    let mut order: Vec<(i64, usize)> = Vec::new();
    let mut ends: Vec<(i64, usize)> = Vec::new();
    for (k, span) in spans.iter().enumerate() {
        order.extend(span.start.map(|start| (start, k)));
        // After a clock was set back, a span may end before it begins.
        ends.extend(span.start.zip(span.end).filter(|(start, end)| start <= end).map(|(_, end)| (end, k)));
    }
    order.sort_unstable();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut finished: VecDeque<(i64, usize)> = VecDeque::new();
    // When the latest of the finished spans began.
    let mut latest = i64::MIN;
    let mut found = vec![Vec::new(); spans.len()];
    for (start, k) in order {
        while let Some(next) = ends.next_if(|&(end, other)| end <= start && other != k) {
            latest = latest.max(spans[next.1].start.unwrap_or(latest));
            finished.push_back(next);
        }
        while finished.front().is_some_and(|&(end, _)| end < latest) {
            finished.pop_front();
        }
        let is_last = |(end, other): &&(i64, usize)| *end > latest || spans[*other].start == Some(latest);
        found[k] =
            finished.iter().filter(is_last).map(|&(_, other)| other).filter(|&other| other != k).collect();
        found[k].sort_unstable();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comes_after_those_that_were_over_when_it_began() {
        let span = |start, end| Span { start: Some(start), end: Some(end) };
        // 0 and 1 together, 2 after both, 3 and the long 4 after 2, 5 after 3.
        let spans = [
            span(0, 10),
            span(1, 12),
            span(12, 20),
            span(21, 30),
            span(22, 90),
            span(31, 40),
            Span { start: None, end: None },
        ];
        let expected: [&[usize]; 7] = [&[], &[], &[0, 1], &[2], &[2], &[3], &[]];
        assert_eq!(infer_dependencies(&spans), expected);
        let back = infer_dependencies(&[span(5, 3), span(6, 7)]);
        assert!(back.iter().all(Vec::is_empty), "a clock was set back: {back:?}");
    }

    #[test]
    fn tasks_of_length_zero_make_no_cycles() {
        let span = |start, end| Span { start: Some(start), end: Some(end) };
        let found = infer_dependencies(&[span(0, 5), span(5, 5), span(5, 5), span(6, 9)]);
        for (k, after) in found.iter().enumerate() {
            assert!(after.iter().all(|&before| !found[before].contains(&k)), "{found:?}");
        }
    }

    #[test]
    fn omitted_nodes_are_replaced_by_their_predecessors() {
        // 0 → 1 → 3, 0 → 2 → 3 → 4, and a cycle of 5 and 6 before 4.
        let after = [vec![], vec![0], vec![0], vec![1, 2], vec![3, 5], vec![6], vec![5]];
        assert_eq!(bridge(&after, |_| true)[4], [3, 5]);
        let kept = bridge(&after, |node| matches!(node, 0 | 2 | 4));
        assert_eq!(kept, [vec![], vec![], vec![0], vec![], vec![0, 2], vec![], vec![]]);
    }
}
