//! The words that docs/words.md rules out, in names, comments, texts and documents.

/// The words of a text in lower case, each between its own spaces, and `|` where a phrase ends. Names are
/// split at `_` and at capitals.
pub(super) fn split(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let goes_up = c.is_uppercase()
            && (before.is_lowercase() || chars.peek().is_some_and(|next| next.is_lowercase()));
        if before.is_alphabetic() && (goes_up || !c.is_alphabetic()) {
            out.push(' ');
        }
        if c.is_alphabetic() {
            if goes_up || !before.is_alphabetic() {
                out.push(' ');
            }
            out.extend(c.to_lowercase());
        } else if !c.is_whitespace() && !"_-/\\*#>!`".contains(c) {
            out.push('|');
        }
        before = c;
    }
    if before.is_alphabetic() {
        out.push(' ');
    }
    out
}

/// A phrase as it is in the result of [`split`].
pub(super) fn phrase(words: &str) -> String {
    format!(" {} ", words.replace(' ', "  "))
}
