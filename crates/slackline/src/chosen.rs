//! What a policy chose that chooses between rules, as documents have it.

use slackline_policy::{Choice, ChosenBy};
use slackline_trace::documents::schedule::{Choice as Written, ChosenBy as WrittenBy};

/// What a policy chose, as the schedule document has it.
pub fn choices(choices: &[Choice]) -> Vec<Written> {
    let choice = |choice: &Choice| Written {
        at: choice.at.seconds(),
        rule: choice.rule.to_string(),
        by: Some(match choice.by {
            ChosenBy::Kept => WrittenBy::Kept,
            ChosenBy::Rule => WrittenBy::Rule,
            ChosenBy::Search => WrittenBy::Search,
        }),
        cost: Some(choice.cost).filter(|cost| cost.is_finite()),
        flows: choice.flows,
        bound: None,
    };
    choices.iter().map(choice).collect()
}
