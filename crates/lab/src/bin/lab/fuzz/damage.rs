//! Damaged copies of good inputs, with enough of their structure left to get beyond the first line.
//!
//! An input is cut into tokens (words, quoted texts, marks, white space), which is what all formats of text have in common.
//! Tokens, lines, and whole blocks between brackets or tags are removed, doubled, moved and put in from other good inputs;
//! numbers become others that are near, huge, negative or none. Then bytes are changed as a disk would, so that binary
//! forms are damaged too.

use std::borrow::Cow;
use std::collections::BTreeSet;

use slackline_model::random::{self, ChaCha8Rng};

/// Words that are trouble in some format.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "1",
    "2",
    "9",
    "1e18",
    "-0",
    "0.5",
    "1e-9",
    "1e308",
    "NaN",
    "inf",
    "4294967295",
    "4294967296",
    "65536",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "10000000",
    "253402300800000",
    "null",
    "true",
    "\"\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\u{feff}",
    "\u{202e}",
    "\u{1f4a9}",
    "é",
    "\u{0}",
    "[]",
    "{}",
    "[[",
    "<!--",
    "]]>",
    "&amp;",
    "&#0;",
    "|",
    ",",
    ":",
    "=",
    "..",
    "2026-02-30",
    "24:00",
    "1h",
    "06:00",
    "*",
    "# ",
    "'",
    "\"",
    "\\",
    "%",
    "${a}",
    "\r\n",
    "\t",
];

/// How deep a nest of brackets is made.
const NEST: u64 = 20_000;

/// The largest quoted text that is one token, bytes.
const QUOTED_MAX: usize = 4096;

/// The longest word that is kept to be put in elsewhere, bytes.
const WORD_MAX: usize = 64;

/// An input does not grow beyond this many times a good one, and then some.
const GROWTH: usize = 8;

/// Makes damaged inputs of good ones.
pub(super) struct Damage {
    good: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

type Tokens<'a> = Vec<Cow<'a, [u8]>>;

impl Damage {
    /// Of at least one good input.
    pub(super) fn of(good: Vec<Vec<u8>>) -> Self {
        let mut words: BTreeSet<Vec<u8>> = WORDS.iter().map(|word| word.as_bytes().to_vec()).collect();
        for text in &good {
            let known = tokens(text).into_iter().filter(|token| token.len() <= WORD_MAX && !is_space(token));
            words.extend(known.map(Cow::into_owned));
        }
        Self { good, words: words.into_iter().collect() }
    }

    /// A damaged copy of one of them.
    pub(super) fn input(&self, rng: &mut ChaCha8Rng) -> Vec<u8> {
        let (one, other) = (self.any(rng), self.any(rng));
        // Small inputs are read faster and say as much.
        let base = if one.len() <= other.len() || random::chance(rng, 0.25) { one } else { other };
        let mut tokens = tokens(base);
        for _ in 0..changes(rng) {
            self.change(&mut tokens, rng);
            if tokens.iter().map(|token| token.len()).sum::<usize>() > GROWTH * (base.len() + 1000) {
                break;
            }
        }
        let mut bytes = tokens.concat();
        if random::chance(rng, 0.1) {
            self.damage_bytes(&mut bytes, rng);
        }
        bytes
    }

    fn any(&self, rng: &mut ChaCha8Rng) -> &[u8] {
        &self.good[below(rng, self.good.len())]
    }

    fn word<'a>(&'a self, rng: &mut ChaCha8Rng) -> Cow<'a, [u8]> {
        Cow::Borrowed(&self.words[below(rng, self.words.len())])
    }

    /// One change of the tokens.
    fn change<'a>(&'a self, tokens: &mut Tokens<'a>, rng: &mut ChaCha8Rng) {
        let at = below(rng, tokens.len() + 1);
        let end = (at + 1 + below(rng, 8)).min(tokens.len());
        let Some(here) = tokens.get(at) else {
            tokens.push(self.word(rng));
            return;
        };
        match below(rng, 20) {
            0..=3 => tokens[at] = self.replaced(here, rng),
            4..=6 => self.change_number(tokens, at, rng),
            7 => drop(tokens.drain(at..end)),
            8 => {
                let copy = tokens[at..end].to_vec();
                tokens.splice(at..at, copy);
            }
            9 => {
                let other = below(rng, tokens.len());
                tokens.swap(at, other);
            }
            10 => tokens.insert(at, self.word(rng)),
            11 | 12 => change_lines(tokens, at, rng),
            13..=16 => self.change_block(tokens, at, rng),
            17 => {
                let other = tokens_of_tail(self.any(rng), rng);
                tokens.truncate(at);
                tokens.extend(other);
            }
            18 => tokens.truncate(at),
            _ if random::chance(rng, 0.02) => nest(tokens, at, rng),
            _ => tokens[at] = self.replaced(here, rng),
        }
    }

    /// Something else in the place of a token: of the same kind as a rule.
    fn replaced<'a>(&'a self, token: &[u8], rng: &mut ChaCha8Rng) -> Cow<'a, [u8]> {
        let word = self.word(rng);
        match token.first() {
            Some(quote @ (b'"' | b'\'')) if random::chance(rng, 0.8) => {
                let inner = word.iter().filter(|byte| *byte != quote && **byte != b'\n');
                let quoted = [*quote].into_iter().chain(inner.copied()).chain([*quote]);
                Cow::Owned(quoted.collect())
            }
            _ => word,
        }
    }

    /// Changes the nearest number at or after a place.
    fn change_number<'a>(&'a self, tokens: &mut Tokens<'a>, at: usize, rng: &mut ChaCha8Rng) {
        let Some(at) = (at..tokens.len()).find(|at| tokens[*at].first().is_some_and(u8::is_ascii_digit))
        else {
            return;
        };
        let text = String::from_utf8_lossy(&tokens[at]).into_owned();
        let Ok(number) = text.parse::<f64>() else {
            tokens[at] = self.word(rng);
            return;
        };
        let changed = match below(rng, 8) {
            0 => number + 1.0,
            1 => number - 1.0,
            2 => -number,
            3 => number * 10.0,
            4 => number * 1e6,
            5 => number / 2.0,
            6 => 0.0,
            _ => number + random::integer(rng, 0, 100_000) as f64,
        };
        tokens[at] = Cow::Owned(changed.to_string().into_bytes());
    }

    /// Removes, doubles or replaces a block: what stands between a bracket or tag and its partner.
    fn change_block<'a>(&'a self, tokens: &mut Tokens<'a>, at: usize, rng: &mut ChaCha8Rng) {
        let Some((from, to)) = (at..tokens.len()).find_map(|at| Some((at, block_end(tokens, at)?))) else {
            return;
        };
        match below(rng, 4) {
            0 => drop(tokens.drain(from..to)),
            1 => {
                let mut copy = tokens[from..to].to_vec();
                if tokens[from].first() != Some(&b'<') {
                    copy.push(Cow::Borrowed(b","));
                }
                tokens.splice(from..from, copy);
            }
            2 => drop(tokens.splice(from..to, [self.word(rng)])),
            _ => {
                let other = crate::fuzz::damage::tokens(self.any(rng));
                let start = below(rng, other.len().max(1));
                let found = (start..other.len()).find_map(|at| Some((at, block_end(&other, at)?)));
                if let Some((start, end)) = found {
                    tokens.splice(from..to, other[start..end].to_vec());
                }
            }
        }
    }

    /// Replaces, removes or doubles bytes wherever they are.
    fn damage_bytes(&self, bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
        for _ in 0..=below(rng, 4) {
            let at = below(rng, bytes.len() + 1);
            let end = (at + below(rng, 20)).min(bytes.len());
            match below(rng, 6) {
                0 => bytes.truncate(at),
                1 => drop(bytes.splice(at..end, [])),
                2 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                3 => drop(bytes.splice(at..end, self.word(rng).into_owned())),
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = random::integer(rng, 0, 255) as u8;
                    }
                }
            }
        }
    }
}

/// How many changes are made: a few, seldom many.
fn changes(rng: &mut ChaCha8Rng) -> usize {
    let mut n = 1;
    while n < 6 && random::chance(rng, 0.4) {
        n += 1;
    }
    if random::chance(rng, 0.03) { n + 20 } else { n }
}

/// A number below another; 0 if that is 0.
fn below(rng: &mut ChaCha8Rng, n: usize) -> usize {
    random::integer(rng, 0, n.saturating_sub(1) as u64) as usize
}

/// Removes, doubles or moves the line of a token.
fn change_lines(tokens: &mut Tokens<'_>, at: usize, rng: &mut ChaCha8Rng) {
    let ends = |token: &Cow<'_, [u8]>| **token == *b"\n";
    let from = tokens[..at].iter().rposition(ends).map_or(0, |at| at + 1);
    let to = (at..tokens.len()).find(|at| ends(&tokens[*at])).map_or(tokens.len(), |at| at + 1);
    match below(rng, 3) {
        0 => drop(tokens.drain(from..to)),
        1 => {
            let copy = tokens[from..to].to_vec();
            tokens.splice(from..from, copy);
        }
        _ => {
            let line: Vec<_> = tokens.drain(from..to).collect();
            let lines: Vec<usize> =
                (0..tokens.len()).filter(|at| ends(&tokens[*at])).map(|at| at + 1).collect();
            let place = if lines.is_empty() { 0 } else { lines[below(rng, lines.len())] };
            tokens.splice(place..place, line);
        }
    }
}

/// Very many open brackets or tags.
fn nest(tokens: &mut Tokens<'_>, at: usize, rng: &mut ChaCha8Rng) {
    const OPEN: [&[u8]; 6] = [b"[", b"{\"a\":", b"<a>", b"- ", b"(", b"[{\"a\":"];
    let (open, depth) = (OPEN[below(rng, OPEN.len())], random::integer(rng, 1, NEST) as usize);
    tokens.splice(at..at, std::iter::repeat_n(Cow::Borrowed(open), depth));
}

/// What an input ends in, from some token on.
fn tokens_of_tail<'a>(input: &'a [u8], rng: &mut ChaCha8Rng) -> Tokens<'a> {
    let mut tail = tokens(input);
    tail.drain(..below(rng, tail.len() + 1));
    tail
}

/// Where the block that begins at a token ends, if one does: behind the bracket or the closing tag that goes with it.
fn block_end(tokens: &[Cow<'_, [u8]>], at: usize) -> Option<usize> {
    let close: &[u8] = match &*tokens[at] {
        b"{" => b"}",
        b"[" => b"]",
        b"(" => b")",
        b"<" => return tag_end(tokens, at),
        _ => return None,
    };
    let mut depth = 0_usize;
    for (k, token) in tokens.iter().enumerate().skip(at) {
        if *token == tokens[at] {
            depth += 1;
        } else if **token == *close {
            depth -= 1;
            if depth == 0 {
                return Some(k + 1);
            }
        }
    }
    None
}

/// Where the element that begins at `<` ends: behind its closing tag, or behind its own if it is empty.
fn tag_end(tokens: &[Cow<'_, [u8]>], at: usize) -> Option<usize> {
    let name = tokens.get(at + 1).filter(|name| name.first().is_some_and(u8::is_ascii_alphabetic))?;
    let own = (at..tokens.len()).find(|k| *tokens[*k] == *b">")?;
    if *tokens[own - 1] == *b"/" {
        return Some(own + 1);
    }
    let is_close = |k: &usize| tokens[*k..].starts_with(&[b"<".into(), b"/".into(), name.clone()]);
    let close = (own..tokens.len()).find(is_close)?;
    Some((close + 4).min(tokens.len()))
}

/// Cuts a text into tokens.
fn tokens(text: &[u8]) -> Tokens<'_> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = token_end(text, at);
        tokens.push(Cow::Borrowed(&text[at..end]));
        at = end;
    }
    tokens
}

fn token_end(text: &[u8], at: usize) -> usize {
    let while_is = |is: fn(u8) -> bool| at + text[at..].iter().take_while(|byte| is(**byte)).count();
    match text[at] {
        quote @ (b'"' | b'\'') => quoted_end(text, at, quote),
        b' ' | b'\t' | b'\r' => while_is(|byte| matches!(byte, b' ' | b'\t' | b'\r')),
        byte if is_of_word(byte) => while_is(is_of_word),
        byte if byte >= 0x80 => while_is(|byte| byte >= 0x80),
        _ => at + 1,
    }
}

/// Behind the quote that ends a text on its line; the quote alone if none does.
fn quoted_end(text: &[u8], at: usize, quote: u8) -> usize {
    let mut k = at + 1;
    while k < text.len().min(at + QUOTED_MAX) && text[k] != b'\n' {
        match text[k] {
            b'\\' => k += 2,
            byte if byte == quote => return k + 1,
            _ => k += 1,
        }
    }
    at + 1
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-')
}

fn is_space(token: &[u8]) -> bool {
    token.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use slackline_model::Seed;

    use super::*;

    fn texts<'a>(tokens: &'a [Cow<'_, [u8]>]) -> Vec<&'a str> {
        tokens.iter().map(|token| std::str::from_utf8(token).unwrap()).collect()
    }

    #[test]
    fn a_text_is_its_tokens() {
        let json = "{\"a b\\\"\": [-1.5e3,\n  'x']}";
        let found = tokens(json.as_bytes());
        let expected = ["{", "\"a b\\\"\"", ":", " ", "[", "-1.5e3", ",", "\n", "  ", "'x'", "]", "}"];
        assert_eq!(texts(&found), expected);
        assert_eq!(found.concat(), json.as_bytes());
        assert_eq!(texts(&tokens(b"it's \"\n")), ["it", "'", "s", " ", "\"", "\n"]);
    }

    #[test]
    fn blocks_end_where_their_partner_is() {
        let found = tokens(b"{[{}]}<a b='c'><d/>x</a>{");
        let end = |at: usize| block_end(&found, at).map(|end| texts(&found[at..end]).concat());
        assert_eq!(end(0).unwrap(), "{[{}]}");
        assert_eq!(end(1).unwrap(), "[{}]");
        assert_eq!(end(6).unwrap(), "<a b='c'><d/>x</a>");
        assert_eq!(end(13).unwrap(), "<d/>");
        assert_eq!((end(4), end(found.len() - 1)), (None, None));
    }

    #[test]
    fn every_input_is_another_one_and_comes_back_by_its_number() {
        let damage =
            Damage::of(vec![b"{\"jobs\": [{\"id\": 1}, {\"id\": 2}]}\n".to_vec(), b"a,1\nb,2\n".to_vec()]);
        let input = |k| damage.input(&mut random::rng(Seed(3), "test", k));
        let all: BTreeSet<Vec<u8>> = (0..10_000).map(input).collect();
        assert!(all.len() > 500, "{}", all.len());
        assert_eq!(input(17), input(17));
        assert!(all.iter().any(|input| input.starts_with(b"{\"jobs\": [{\"id\": 1}, {\"id\": 1}")));
    }
}
