//! Mistyped names.

/// The name that was probably meant, where one is close or begins so.
pub fn closest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long texts are no typing mistakes, and the distance is quadratic.
    if found.is_empty() || found.len() > 64 {
        return None;
    }
    let distance = |name: &str| {
        if name.starts_with(found) { 0 } else { strsim::damerau_levenshtein(found, name) }
    };
    let close = names.into_iter().map(|name| (distance(name), name));
    let close = close.filter(|&(far, name)| far <= (name.len() / 3).max(1));
    close.min_by_key(|&(far, _)| far).map(|(_, name)| name)
}

/// `; did you mean "…"?` where a name is close; nothing otherwise.
pub fn did_you_mean<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    closest(found, names).map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn typing_mistakes_and_beginnings_are_recognised() {
        let names = ["fifo", "fair", "flowflex", "woha-lpf"];
        assert_eq!(did_you_mean("fiffo", names), r#"; did you mean "fifo"?"#);
        assert_eq!(did_you_mean("flow", names), r#"; did you mean "flowflex"?"#);
        assert_eq!(did_you_mean("wohalpf", names), r#"; did you mean "woha-lpf"?"#);
        assert_eq!(did_you_mean("sjf", names) + &did_you_mean("", names), "");
        assert_eq!(did_you_mean(&"f".repeat(65), names), "");
    }
}
