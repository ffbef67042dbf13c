//! Converts the choices of a policy that chooses between rules to the format of documents.

use slackline_policy::{Choice, ChosenBy};
use slackline_trace::documents::schedule::{Choice as Written, ChosenBy as WrittenBy};

/// The choices of a policy, as in the schedule document.
pub fn choices(choices: &[Choice]) -> Vec<Written> {
    let choice = |choice: &Choice| Written {
        at: choice.at.seconds(),
        rule: choice.rule.to_string(),
        by: Some(match choice.by {
            ChosenBy::Kept => WrittenBy::Kept,
            ChosenBy::Rule => WrittenBy::Rule,
            ChosenBy::Search => WrittenBy::Search,
        }),
        cost: choice.cost.filter(|cost| cost.is_finite()),
        flows: choice.flows,
        bound: None,
    };
    choices.iter().map(choice).collect()
}
