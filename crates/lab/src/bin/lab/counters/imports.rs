//! Imports between the files of a crate: `use crate::…`, `use super::…` and `use self::…`.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;

/// For each file the files that it imports.
pub(super) type Edges = Vec<BTreeSet<usize>>;

/// An import leads to the innermost module that its path names and that has a file.
pub(super) fn edges(sources: &[Source]) -> Edges {
    let files: BTreeMap<_, usize> =
        sources.iter().enumerate().filter_map(|(index, source)| Some((source.module()?, index))).collect();
    let imported = |index: usize, source: &Source| {
        let Some((root, _)) = source.module() else { return BTreeSet::new() };
        let file = |import: &Vec<String>| {
            (0..=import.len())
                .rev()
                .find_map(|end| files.get(&(root.clone(), import[..end].to_vec())).copied())
        };
        source.imports.iter().filter_map(file).filter(|file| *file != index).collect()
    };
    sources.iter().enumerate().map(|(index, source)| imported(index, source)).collect()
}

/// Groups of files that all import one another, directly or indirectly.
pub(super) fn cycles(edges: &Edges) -> Vec<Vec<usize>> {
    let reached: Vec<_> = (0..edges.len()).map(|file| reached(edges, file)).collect();
    let cycle = |file: usize| -> Vec<usize> {
        reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect()
    };
    // Each cycle once, by its first file.
    (0..edges.len())
        .map(|file| (file, cycle(file)))
        .filter(|(file, cycle)| cycle.first() == Some(file))
        .map(|(_, cycle)| cycle)
        .collect()
}

/// The files that a file imports, directly or indirectly.
fn reached(edges: &Edges, file: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        open.extend(edges[file].iter().filter(|other| reached.insert(**other)));
    }
    reached
}

/// Imports from a file of a lower layer to a file of a higher one.
pub(super) fn upwards(
    sources: &[Source],
    edges: &Edges,
    layers: &BTreeMap<String, Vec<Vec<String>>>,
) -> Vec<(usize, usize)> {
    let layer = |file: usize| {
        let (_, module) = sources[file].module()?;
        let top = module.first()?;
        layers.get(sources[file].crate_name())?.iter().position(|layer| layer.contains(top))
    };
    let is_upward = |from, to| layer(from).zip(layer(to)).is_some_and(|(from, to)| from < to);
    let all = edges.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |to| (from, *to)));
    all.filter(|(from, to)| is_upward(*from, *to)).collect()
}
