use super::*;

fn source(path: &str, text: &str) -> Source {
    Source::of(path, text).unwrap()
}

fn layers(text: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    toml::from_str(text).unwrap()
}

/// Cycles and upward imports of small crates, as paths.
fn imports(files: &[(&str, &str)]) -> (Vec<Vec<String>>, Vec<(String, String)>) {
    let sources: Vec<_> = files.iter().map(|(path, text)| source(path, text)).collect();
    let path = |index: usize| sources[index].path.clone();
    let edges = imports::edges(&sources);
    let cycles = imports::cycles(&edges).into_iter();
    let layers = layers("x = [['a'], ['b', 'c']]");
    let upwards = imports::upwards(&sources, &edges, &layers).into_iter();
    (
        cycles.map(|files| files.into_iter().map(path).collect()).collect(),
        upwards.map(|(from, to)| (path(from), path(to))).collect(),
    )
}

#[test]
fn a_cycle_of_three_files_is_one_and_a_chain_is_none() {
    let (a, b, c) = ("crates/x/src/a.rs", "crates/x/src/b.rs", "crates/x/src/c.rs");
    let (cycles, upwards) = imports(&[
        ("crates/x/src/lib.rs", "mod a; mod b; mod c; mod d;"),
        (a, "use crate::{b::B, d};"),
        (b, "use super::c::{C, *};"),
        (c, "pub mod inner { use super::super::a::A; }"),
        ("crates/x/src/d.rs", "use std::fmt; #[cfg(test)] mod tests { use crate::a::A; }"),
        // Another crate's file of the same name.
        ("crates/y/src/a.rs", "use crate::d;"),
        ("crates/y/src/d.rs", ""),
    ]);
    assert_eq!(cycles, [[a, b, c]]);
    assert_eq!(upwards, [(a.to_owned(), b.to_owned())]);
}

#[test]
fn a_module_and_its_folder_are_different_files() {
    let (a, inner) = ("crates/x/src/a.rs", "crates/x/src/a/inner.rs");
    let text = "mod inner; use self::inner::Inner;";
    assert_eq!(imports(&[(a, text), (inner, "")]).0, Vec::<Vec<String>>::new());
    assert_eq!(imports(&[(a, text), (inner, "use super::Outer;")]).0, [[a, inner]]);
}

#[test]
fn tuple_parameters_are_those_of_all_functions_but_not_of_closures() {
    let text = "
        fn a((x, y): (u8, u8), z: &mut (u8, u8), u: (), p: (u8), f: impl Fn((u8, u8))) -> (u8, u8) {
            (|q: (u8, u8)| q)((x, y))
        }
        trait T { fn b(&self, x: &'static (u8,)); }
        #[cfg(test)]
        fn c(x: (u8, u8)) {}";
    let found = source("crates/x/src/a.rs", text);
    let found: Vec<_> = found
        .functions
        .iter()
        .map(|function| (function.name.as_str(), function.line, function.tuples))
        .collect();
    assert_eq!(found, [("a", 2, 2), ("b", 5, 1)]);
}

#[test]
fn lines_of_code_have_no_blanks_comments_or_tests() {
    let text = "//! Comment.

use a::{b}; // Code.
// Comment
// of two lines.
/// Comment.
#[derive(Debug)]
struct S {
    /// Comment.
    field: u8,
}
const TEXT: &str = \"// no comment

    and one line more\";
/// Comment.
#[cfg(test)]
use c::{d};
fn f() -> u8 { 1 / 2 }
#[cfg(all(test, unix))]
mod tests {
    fn g() {}
}
#[cfg(not(test))]
fn h() {}
#[cfg(test)]
mod more;
";
    let found = source("crates/x/src/a.rs", text);
    assert_eq!((found.all_lines, found.lines, found.code), (26, 18, 10));
    assert_eq!(found.test_modules().collect::<Vec<_>>(), ["crates/x/src/a/more"]);
    let names: Vec<_> = found.functions.iter().map(|function| &function.name).collect();
    assert_eq!(names, ["f", "h"]);
    let test = source("crates/x/tests/a.rs", text);
    assert_eq!((test.all_lines, test.lines, test.code), (26, 0, 0));
}

#[test]
fn a_counter_above_its_limit_names_its_largest_place() {
    let places = || [(2, "a.rs:1 f".to_owned()), (5, "b.rs:7 g".to_owned()), (0, "c.rs".to_owned())];
    let (sum, largest) = (Counter::sum("total", places()), Counter::largest("longest", places()));
    assert_eq!((sum.value, sum.places.len(), largest.value), (7, 2, 5));
    assert_eq!(sum.line(9), "total = 7 # limit 9; b.rs:7 g: 5\n");
    assert_eq!(sum.excess(7), None);
    let text = largest.excess(4).unwrap();
    assert!(
        text.starts_with("longest is 5, above its limit of 4 in record/limits.toml; the largest: b.rs:7 g;")
    );
}

#[test]
fn words_are_found_in_names_and_over_lines() {
    let count = |phrase, text| words::split(text).matches(&words::phrase(phrase)).count();
    assert_eq!(count("red", "red Red, RED redo hundred \u{e9}red"), 3);
    assert_eq!(count("red", "RedHTTP HTTPRed is_red red_2 isRed RED"), 6);
    assert_eq!(count("red sky", "/// Red\n    /// sky, RedSky. red_sky; red. Sky"), 3);
}

#[test]
fn words_are_within_their_limits() {
    let root = Path::new(ROOT);
    let limits: Limits = toml::from_str(&read(root, LIMITS).unwrap()).unwrap();
    let mut files = Vec::new();
    find(root, "", &mut files).unwrap();
    let counters = ruled_out(root, &files, &limits).unwrap();
    assert!(counters.iter().map(|counter| counter.places.len()).sum::<usize>() > 0, "no file was read");
    let excess: Vec<_> =
        counters.iter().filter_map(|counter| counter.excess(limits.words[&counter.name])).collect();
    assert!(excess.is_empty(), "{}", excess.join("\n"));
}
