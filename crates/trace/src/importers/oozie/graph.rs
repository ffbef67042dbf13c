//! Converts nodes and transitions into jobs and their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::names::{did_you_mean, one_of};

use super::{Item, Kind, Transition};
use crate::importers::dag::never_ready;
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::xml::Xml;

/// Deepest nesting of forks; real workflows are far below.
const DEPTH_MAX: usize = 100;

/// An action by its place among the items, and the actions it comes after.
pub(super) type Order = Vec<(usize, Vec<usize>)>;

/// The actions on the way from start to end, each after its predecessors.
///
/// # Errors
/// Transitions to unknown nodes, cycles, forks and joins that are not paired, unknown cases; each with
/// its line.
pub(super) fn order(
    items: &[Item<'_, '_>],
    cases: &BTreeMap<String, String>,
    xml: &Xml<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Order, TraceError> {
    let index: BTreeMap<&str, usize> =
        items.iter().enumerate().skip(1).map(|(k, i)| (i.name.as_str(), k)).collect();
    for (item, (target, node)) in items.iter().flat_map(|item| targets(item, true).map(move |t| (item, t))) {
        if !index.contains_key(target.as_str()) {
            let from = if item.name.is_empty() { "start".to_owned() } else { format!("{:?}", item.name) };
            let known = did_you_mean(target, index.keys().copied());
            let what =
                format!("found a transition from {from} to {target:?}, expected the name of a node{known}");
            return Err(xml.error(*node, what));
        }
    }
    for (decision, case) in cases {
        check_case(items, &index, &Case { decision, target: case }, xml)?;
    }
    refuse_cycles(items, &index, xml)?;
    let mut walk = Walk { items, index, cases, xml, reached: BTreeSet::new(), order: Vec::new() };
    let start = &items[0];
    let (end, _) = walk.path(0, BTreeSet::new(), 0)?;
    if let Some(join) = end {
        let what =
            format!("found join {:?} on the path from start, expected a fork before it", items[join].name);
        return Err(xml.error(items[join].node, what));
    }
    let Walk { reached, order, .. } = walk;
    for (k, item) in items.iter().enumerate() {
        if matches!(item.kind, Kind::Action { .. }) && !reached.contains(&k) {
            diagnostics.add(
                xml.place(item.node.range().start).line,
                "action that is not on the chosen path, left out",
            );
        }
    }
    debug_assert!(matches!(start.kind, Kind::Start(_)), "the first item is the start");
    Ok(order)
}

/// The transitions of a node, with those of failure on request.
fn targets<'i, 'a, 'd>(
    item: &'i Item<'a, 'd>,
    failure: bool,
) -> impl Iterator<Item = &'i Transition<'a, 'd>> + use<'i, 'a, 'd> {
    let (list, more): (&[_], [Option<&Transition<'_, '_>>; 2]) = match &item.kind {
        Kind::Start(to) | Kind::Join(to) => (&[], [Some(to), None]),
        Kind::End | Kind::Kill => (&[], [None, None]),
        Kind::Action { ok, error, .. } => (&[], [Some(ok), Some(error).filter(|_| failure)]),
        Kind::Fork(paths) => (paths, [None, None]),
        Kind::Decision { cases, default } => (cases, [Some(default), None]),
    };
    list.iter().chain(more.into_iter().flatten())
}

/// The branch of a decision, according to the options.
struct Case<'c> {
    decision: &'c str,
    target: &'c str,
}

fn check_case(
    items: &[Item<'_, '_>],
    index: &BTreeMap<&str, usize>,
    case: &Case<'_>,
    xml: &Xml<'_>,
) -> Result<(), TraceError> {
    let Case { decision, target: case } = *case;
    let found = index.get(decision).map(|&k| &items[k]);
    let Some(item @ Item { kind: Kind::Decision { .. }, .. }) = found else {
        let known = items.iter().filter(|i| matches!(i.kind, Kind::Decision { .. })).map(|i| i.name.as_str());
        let known = did_you_mean(decision, known);
        let what =
            format!("found cases = {decision}={case}, expected the name of a decision before ={known}");
        return Err(xml.error(items[0].node, what));
    };
    if targets(item, false).any(|(target, _)| target == case) {
        return Ok(());
    }
    let known: Vec<&str> = targets(item, false).map(|(target, _)| target.as_str()).collect();
    let meant = did_you_mean(case, known.iter().copied());
    let what = format!("found cases = {decision}={case}, expected {}{meant}", one_of(&known));
    Err(xml.error(item.node, what))
}

/// Refuses cycles of transitions, without those of failure.
fn refuse_cycles(
    items: &[Item<'_, '_>],
    index: &BTreeMap<&str, usize>,
    xml: &Xml<'_>,
) -> Result<(), TraceError> {
    let next = |k: usize| targets(&items[k], false).map(|(target, node)| (index[target.as_str()], node));
    let mut before = vec![Vec::new(); items.len()];
    for from in 0..items.len() {
        for (to, _) in next(from) {
            before[to].push(from);
        }
    }
    let is_left = never_ready(&before);
    if !is_left.contains(&true) {
        return Ok(());
    }
    // Every remaining node has a remaining predecessor: a walk backwards finds a cycle.
    let mut back: BTreeMap<usize, usize> = BTreeMap::new();
    for k in (0..items.len()).filter(|&k| is_left[k]) {
        for (to, _) in next(k) {
            back.insert(to, k);
        }
    }
    let mut at = back.iter().find(|&(to, _)| is_left[*to]).map_or(0, |(&to, _)| to);
    for _ in 0..items.len() {
        at = back.get(&at).copied().unwrap_or(at);
    }
    let from = back.get(&at).copied().unwrap_or(at);
    let node = next(from).find(|&(to, _)| to == at).map_or(items[at].node, |(_, node)| *node);
    let what = format!("found a cycle: {:?} leads back to {:?}", items[from].name, items[at].name);
    Err(xml.error(node, what))
}

struct Walk<'i, 'a, 'd> {
    items: &'i [Item<'a, 'd>],
    index: BTreeMap<&'i str, usize>,
    cases: &'i BTreeMap<String, String>,
    xml: &'i Xml<'i>,
    reached: BTreeSet<usize>,
    order: Order,
}

impl Walk<'_, '_, '_> {
    /// Follows a path from a node until a join, which is returned, or the end. `after` are the actions before
    /// the path; the returned actions are those before its end. There are no cycles.
    fn path(
        &mut self,
        from: usize,
        after: BTreeSet<usize>,
        depth: usize,
    ) -> Result<(Option<usize>, BTreeSet<usize>), TraceError> {
        let (mut at, mut after) = (from, after);
        loop {
            let items = self.items;
            let item = &items[at];
            let next = match &item.kind {
                Kind::End | Kind::Kill => return Ok((None, after)),
                Kind::Join(_) => return Ok((Some(at), after)),
                _ if !self.reached.insert(at) => {
                    let what =
                        format!("found {:?} on two paths of a fork, expected a join before it", item.name);
                    return Err(self.xml.error(item.node, what));
                }
                Kind::Start((to, _)) => to,
                Kind::Action { ok: (to, _), .. } => {
                    let before = std::mem::replace(&mut after, BTreeSet::from([at]));
                    self.order.push((at, before.into_iter().collect()));
                    to
                }
                Kind::Decision { cases, default } => self.choose(item, cases, default),
                Kind::Fork(paths) => {
                    let join = self.fork(at, paths, &mut after, depth)?;
                    let Kind::Join((to, _)) = &items[join].kind else { return Ok((Some(join), after)) };
                    to
                }
            };
            at = self.index[next.as_str()];
        }
    }

    /// Follows the paths of a fork to their join.
    fn fork(
        &mut self,
        fork: usize,
        paths: &[Transition<'_, '_>],
        after: &mut BTreeSet<usize>,
        depth: usize,
    ) -> Result<usize, TraceError> {
        let item = &self.items[fork];
        if depth == DEPTH_MAX {
            return Err(self.xml.error(item.node, format!("found forks nested deeper than {DEPTH_MAX}")));
        }
        let mut ends = BTreeSet::new();
        let mut join: Option<usize> = None;
        for (to, node) in paths {
            let (end, before) = self.path(self.index[to.as_str()], after.clone(), depth + 1)?;
            ends.extend(before);
            match (end, join) {
                (None, _) => {
                    let what = format!(
                        "found a path of fork {:?} that ends without a join, expected one",
                        item.name
                    );
                    return Err(self.xml.error(*node, what));
                }
                (Some(end), Some(first)) if end != first => {
                    let (end, first) = (&self.items[end].name, &self.items[first].name);
                    let what = format!(
                        "found a path of fork {:?} that ends at {end:?}, expected join {first:?}",
                        item.name
                    );
                    return Err(self.xml.error(*node, what));
                }
                (Some(end), _) => join = Some(end),
            }
        }
        let join = join.expect("invariant: a fork has paths");
        if !self.reached.insert(join) {
            let what = format!("found join {:?} of two forks, expected one", self.items[join].name);
            return Err(self.xml.error(self.items[join].node, what));
        }
        *after = ends;
        Ok(join)
    }

    /// The case that is taken.
    fn choose<'t>(
        &self,
        item: &Item<'_, '_>,
        cases: &'t [Transition<'_, '_>],
        default: &'t Transition<'_, '_>,
    ) -> &'t String {
        let (default, _) = default;
        let targets = || cases.iter().map(|(target, _)| target).chain([default]);
        if let Some(case) = self.cases.get(&item.name)
            && let Some(target) = targets().find(|target| *target == case)
        {
            return target;
        }
        let kills = |target: &String| matches!(self.items[self.index[target.as_str()]].kind, Kind::Kill);
        if kills(default) { targets().find(|target| !kills(target)).unwrap_or(default) } else { default }
    }
}
