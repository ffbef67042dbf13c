//! Every queue against an ordered set.

use std::collections::BTreeSet;

use slackline_algo::woha::lag::{Heap, Queue};

use super::Draw;
use super::btree::BTree;
use super::skip_list::SkipList;

/// Random changes to a queue and to an ordered set, with a comparison after each.
fn queue_stream<Q: Queue<u64>>(seed: u64, span: u64, mut audit: impl FnMut(&Q)) {
    let mut draw = Draw(seed);
    let (mut queue, mut model) = (Q::default(), BTreeSet::new());
    let mut key_of = vec![None; 200];
    for round in 0..3000 {
        // Grow, then shrink, so that levels come and go.
        let grow = if round < 1500 { 6 } else { 2 };
        let id = draw.below(200) as u32;
        let key = draw.below(span);
        match (key_of[id as usize], draw.below(8) < grow) {
            (None, true) => {
                queue.insert(key, id);
                model.insert((key, id));
                key_of[id as usize] = Some(key);
            }
            (Some(old), true) => {
                queue.change(old, key, id);
                model.remove(&(old, id));
                model.insert((key, id));
                key_of[id as usize] = Some(key);
            }
            (_, false) => {
                let gone = if draw.below(2) == 0 { model.first().copied() } else { None };
                let gone = gone.or_else(|| key_of[id as usize].map(|key| (key, id)));
                if let Some((key, id)) = gone {
                    queue.remove(key, id);
                    model.remove(&(key, id));
                    key_of[id as usize] = None;
                }
            }
        }
        audit(&queue);
        assert_eq!(queue.first(), model.first().copied());
        let (mut seen, most) = (Vec::new(), draw.below(12) as usize + 1);
        queue.walk(&mut |key, id| {
            seen.push((key, id));
            seen.len() < most
        });
        assert_eq!(seen, model.iter().copied().take(most).collect::<Vec<_>>());
    }
}

#[test]
fn queues_agree_with_an_ordered_set() {
    for seed in 0..8 {
        for span in [3, 1000] {
            queue_stream::<SkipList<u64>>(seed, span, SkipList::audit);
            queue_stream::<Heap<u64>>(seed, span, |_| {});
            queue_stream::<BTree<u64>>(seed, span, |_| {});
        }
    }
}
