//! Summarizes the choices of a policy that chooses between rules.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use slackline_policy::{Choice, ChosenBy};

use crate::report::number::counted;

/// The number of rules that are named individually. There may be dozens of them.
const NAMED: usize = 5;

/// The choices of a policy in words: the rules of its orders, the most frequent first (`area 12 times,
/// atc:k=2 once`), and the source of these orders. Empty for a policy that does not choose.
pub fn rules_chosen(choices: &[Choice]) -> Vec<(&'static str, String)> {
    if choices.is_empty() {
        return Vec::new();
    }
    let rules = most_often_first(choices.iter().map(|choice| &*choice.rule));
    let mut said: Vec<String> = rules.iter().take(NAMED).map(|&(rule, n)| times(rule, n)).collect();
    if let others @ 1.. = rules.len().saturating_sub(NAMED) {
        let n = rules.iter().skip(NAMED).map(|(_, n)| n).sum();
        said.push(times(&counted(others as u64, "other"), n));
    }
    let orders = most_often_first(choices.iter().map(|choice| choice.by));
    let how = |&(by, n): &(ChosenBy, u64)| match by {
        ChosenBy::Kept => times("kept", n),
        ChosenBy::Rule => times("that of the rule", n),
        ChosenBy::Search => times("found by the search", n),
    };
    let orders: Vec<String> = orders.iter().map(how).collect();
    vec![("rules", said.join(", ")), ("orders", orders.join(", "))]
}

fn times(what: &str, n: u64) -> String {
    if n == 1 { format!("{what} once") } else { format!("{what} {n} times") }
}

/// The frequency of each element, the highest first. Equal ones are in ascending order.
fn most_often_first<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Vec<(T, u64)> {
    let mut times: BTreeMap<T, u64> = BTreeMap::new();
    all.for_each(|one| *times.entry(one).or_default() += 1);
    let mut times: Vec<(T, u64)> = times.into_iter().collect();
    times.sort_by_key(|&(one, times)| (Reverse(times), one));
    times
}

#[cfg(test)]
mod tests {
    use slackline_model::Time;

    use super::*;

    fn said(chosen: &[(&str, ChosenBy)]) -> Vec<(&'static str, String)> {
        let choice = |&(rule, by): &(&str, ChosenBy)| {
            let rule = rule.into();
            Choice { at: Time::ZERO, rule, by, cost: Some(1.0), flows: 1 }
        };
        rules_chosen(&chosen.iter().map(choice).collect::<Vec<_>>())
    }

    #[test]
    fn the_most_frequent_come_first_and_the_rest_together() {
        use ChosenBy::{Kept, Rule, Search};
        assert!(said(&[]).is_empty(), "most policies do not choose");
        let few = said(&[("area", Rule), ("atc:k=2", Search), ("atc:k=2", Kept)]);
        assert_eq!(few[0], ("rules", "atc:k=2 2 times, area once".to_owned()));
        assert_eq!(
            few[1],
            ("orders", "kept once, that of the rule once, found by the search once".to_owned())
        );
        let many = ["a", "b", "c", "d", "e", "f", "g", "g"].map(|rule| (rule, Kept));
        assert_eq!(said(&many)[0].1, "g 2 times, a once, b once, c once, d once, 2 others 2 times");
        assert_eq!(said(&many)[1].1, "kept 8 times");
    }
}
