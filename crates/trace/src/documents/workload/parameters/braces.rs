//! Replaces names in braces by their values.

use std::collections::BTreeMap;

/// Values by name.
#[derive(Debug)]
pub(super) struct Braces(BTreeMap<String, String>);

impl Braces {
    pub(super) fn new(values: BTreeMap<String, String>) -> Self {
        Self(values)
    }

    /// Whether a name has a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Another value for a name.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// Replaces each known name in braces by its value, unchanged. Other text stays, and values are not
    /// searched again. O(bytes).
    pub(super) fn fill(&self, text: &mut String) {
        let mut filled = String::new();
        let mut rest = text.as_str();
        while let Some((before, name, after)) = next(rest, |name| self.0.contains_key(name)) {
            filled.push_str(before);
            filled.push_str(&self.0[name]);
            rest = after;
        }
        if !filled.is_empty() || rest.len() < text.len() {
            filled.push_str(rest);
            *text = filled;
        }
    }

    /// The first known name in braces after a dollar.
    pub(super) fn after_a_dollar<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut rest = text;
        while let Some((before, name, after)) = next(rest, |name| self.0.contains_key(name)) {
            if before.ends_with('$') {
                return Some(name);
            }
            rest = after;
        }
        None
    }
}

/// Whether a text has the name in braces.
pub(super) fn names(text: &str, name: &str) -> bool {
    next(text, |found| found == name).is_some()
}

/// The first matching name in braces, with the text before and after it.
fn next(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let close = text[open..].find('}').map(|at| open + at)?;
        // Of nested braces the inner ones hold a name.
        let open = text[..close].rfind('{').unwrap_or(open);
        if is_wanted(&text[open + 1..close]) {
            return Some((&text[..open], &text[open + 1..close], &text[close + 1..]));
        }
        from = close + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let values = [("a", "1"), ("b", ""), ("c", "{a}"), ("n-1", "$x'")];
        let braces = Braces::new(values.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let mut text = text.to_owned();
        braces.fill(&mut text);
        text
    }

    #[test]
    fn only_known_names_in_braces_are_replaced_and_once() {
        for (text, expected) in [
            ("", ""),
            ("a", "a"),
            ("{a}", "1"),
            ("{b}", ""),
            ("x{a}y{a}{b}z", "x1y1z"),
            ("{c}", "{a}"),
            ("{n-1}", "$x'"),
            ("{ a } {aa} {} {a", "{ a } {aa} {} {a"),
            ("{{a}}", "{1}"),
            ("awk '{ print $1 }' {x{a}", "awk '{ print $1 }' {x1"),
            ("awk '{ if (x) { y } }' } {a}", "awk '{ if (x) { y } }' } 1"),
            ("ä{a}ß", "ä1ß"),
        ] {
            assert_eq!(filled(text), expected, "{text}");
        }
    }
}
