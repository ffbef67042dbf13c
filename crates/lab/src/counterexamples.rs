//! Statements in the papers that are false, each with a counterexample that is computed here, and drawn.

mod dmrs;
mod drawing;
mod flex;
mod flowflex;
mod ordering;
mod woha;

/// A printed statement and its counterexample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterexampleEntry {
    /// The name of its place on the page.
    pub id: &'static str,
    /// The paper, by its key in PAPERS.md.
    pub paper: &'static str,
    pub at: &'static str,
    /// The printed statement, in our words.
    pub printed: &'static str,
    /// The instance that refutes it.
    pub example: &'static str,
    /// The results on that instance.
    pub found: Vec<String>,
    /// Whether the results contradict the statement.
    pub refuted: bool,
    /// Pictures of the counterexample, as SVG.
    pub pictures: Vec<String>,
    /// The true statement, and the behaviour of the program.
    pub instead: &'static str,
}

/// All counterexamples, computed, in the order of the papers.
///
/// # Errors
/// An invalid instance, or a picture that cannot be drawn, as a message.
pub fn printed() -> Result<Vec<CounterexampleEntry>, String> {
    Ok(vec![
        flex::packing_orders()?,
        flex::least_maximum()?,
        flex::steps_are_not_convex()?,
        flowflex::earlier_capacity()?,
        woha::smallest_cap()?,
        dmrs::oracle_key()?,
        ordering::example()?,
        ordering::lemma_2()?,
        ordering::theorem_1()?,
        ordering::theorem_4()?,
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_counterexample_contradicts_what_is_printed_and_is_drawn() {
        let all = super::printed().unwrap();
        for one in &all {
            assert!(one.refuted, "{}: {:?}", one.id, one.found);
            assert!(!one.found.is_empty() && !one.pictures.is_empty(), "{}", one.id);
            assert!(one.pictures.iter().all(|svg| svg.starts_with("<svg")), "{}", one.id);
        }
        assert_eq!(all.iter().map(|one| one.id).collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(super::printed().unwrap(), all);
    }
}
