//! Parameters: declared once as data, read by name.
//!
//! Policies, workload generators and importers declare a table of [`Param`]s. Help texts, messages,
//! completions, the records in schedules and the check of a value all follow from the declaration, so they
//! cannot disagree. [`Settings`] holds a valid value for every parameter of a table.

use std::fmt;
use std::str::FromStr;

use crate::names::{did_you_mean, one_of};
use crate::{bytes, duration, shell};

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Its name on the command line and in documents.
    pub name: &'static str,
    /// Its default, in the form that a user writes.
    pub default: &'static str,
    /// The allowed values.
    pub values: Values,
    /// An additional word, such as `auto` or `none`: [`Settings::given`] is false for it.
    pub word: Option<&'static str>,
    /// Its purpose, in one line.
    pub help: &'static str,
}

/// The allowed values of a parameter. Bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// A whole number within bounds.
    Count(u64, u64),
    /// A whole number or a range of them within bounds: `7`, `5..20`.
    Counts(u64, u64),
    /// A number within bounds.
    Real(f64, f64),
    /// A number or a range within bounds: `0.5`, `1..5`.
    Reals(f64, f64),
    /// A duration within bounds, in seconds: `90`, `90s`, `1.5h`.
    Seconds(f64, f64),
    /// A duration or a range of them within bounds: `20`, `10s..1m`.
    SecondsRange(f64, f64),
    /// A size of at least one byte: `128MiB`, `2 GB`, `4096`.
    Bytes,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text, checked where it is used. Help shows the word in its place.
    Text(&'static str),
    /// The path of a file, a directory or a program. Help shows the word in its place.
    Path(&'static str),
    /// The text of a file: on a command line the parameter names the file.
    TextOfFile,
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(low, u64::MAX) => write!(f, "a whole number from {low}"),
            Self::Count(low, high) => write!(f, "a whole number from {low} to {high}"),
            Self::Counts(low, high) => {
                write!(f, "a whole number or a range such as 5..20, from {low} to {high}")
            }
            Self::Real(low, high) => write!(f, "a number from {low} to {high}"),
            Self::Reals(low, high) => write!(f, "a number or a range such as 1..5, from {low} to {high}"),
            Self::Seconds(low, high) => {
                write!(f, "{}, from {low} to {high} s", duration::EXPECTED)
            }
            Self::SecondsRange(low, high) => {
                write!(f, "seconds, a duration or a range such as 10s..1m, from {low} to {high} s")
            }
            Self::Bytes => f.write_str("a size such as 128MiB, at least 1 byte"),
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Self::Text(what) | Self::Path(what) => f.write_str(what),
            Self::TextOfFile => f.write_str("a file"),
        }
    }
}

/// Why a table of parameters refuses a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// No parameter has that name.
    #[error(
        "found parameter {found:?}, expected {}{}",
        expected(.known),
        did_you_mean(.found, .known.iter().copied())
    )]
    Unknown {
        /// What was found.
        found: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// A parameter was set twice.
    #[error("found parameter {name} a second time, expected each at most once")]
    Repeated {
        /// The parameter.
        name: &'static str,
    },
    /// The parameter does not allow the value.
    #[error("found {name}={found}, expected {expected}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What was found.
        found: String,
        /// The allowed values.
        expected: String,
    },
}

/// Splits `name=value,name=value`. A value that is a text may have commas: what follows one belongs to it if it
/// names no parameter and has no `=`, or if the text has a `=`, too.
pub fn pairs<'a>(params: &[Param], text: &'a str) -> Vec<(&'a str, &'a str)> {
    let param = |name: &str| params.iter().find(|param| param.name == name);
    let takes_commas = |name: &str, value: &str, piece: &str| {
        let is_text = param(name).is_some_and(|param| {
            matches!(param.values, Values::Text(_) | Values::Path(_) | Values::TextOfFile)
        });
        is_text && (value.contains('=') || !piece.contains('='))
    };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let (mut at, mut value_at) = (0, 0);
    for piece in text.split(',') {
        let end = at + piece.len();
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        match pairs.last_mut() {
            Some((before, said)) if param(name).is_none() && takes_commas(before, said, piece) => {
                *said = &text[value_at..end];
            }
            _ if piece.is_empty() => {}
            _ => {
                value_at = end - value.len();
                pairs.push((name, value));
            }
        }
        at = end + 1;
    }
    pairs
}

fn expected(names: &[&str]) -> String {
    if names.is_empty() { "no parameter".to_owned() } else { one_of(names) }
}

impl Param {
    /// A parameter.
    pub const fn new(name: &'static str, default: &'static str, values: Values, help: &'static str) -> Self {
        Self { name, default, values, word: None, help }
    }

    /// The parameter with an additional word.
    #[must_use]
    pub const fn or_word(self, word: &'static str) -> Self {
        Self { word: Some(word), ..self }
    }

    /// The allowed values, as text.
    pub fn expected(&self) -> String {
        match self.word {
            Some(word) => format!("{word} or {}", self.values),
            None => self.values.to_string(),
        }
    }

    /// The allowed words, for completions and tests, the default first. For a number, only the default.
    pub fn words(&self) -> Vec<&'static str> {
        let others = self.choices().filter(|word| *word != self.default);
        std::iter::once(self.default).chain(others).collect()
    }

    /// The allowed words besides the default.
    fn choices(&self) -> impl Iterator<Item = &'static str> {
        let choices: &[&'static str] = if let Values::Choice(words) = self.values { words } else { &[] };
        choices.iter().copied().chain(self.word)
    }

    /// Values for tests: the default first, the other words, the limits of a number.
    pub fn samples(&self) -> Vec<String> {
        let ends = match self.values {
            Values::Count(low, high) | Values::Counts(low, high) => vec![low.to_string(), high.to_string()],
            Values::Real(low, high)
            | Values::Reals(low, high)
            | Values::Seconds(low, high)
            | Values::SecondsRange(low, high) => vec![low.to_string(), high.to_string()],
            _ => Vec::new(),
        };
        let mut samples: Vec<String> = self.words().into_iter().map(str::to_owned).collect();
        for end in ends {
            let is_new = samples.iter().all(|sample| self.read(sample) != self.read(&end));
            if is_new {
                samples.push(end);
            }
        }
        samples
    }

    fn read(&self, text: &str) -> Result<Value, ParamError> {
        if self.word == Some(text) {
            return Ok(Value::Word);
        }
        let value = match self.values {
            Values::Count(low, high) => {
                number(text).filter(|n| (low..=high).contains(n)).map(|n| Value::Counts(n, n))
            }
            Values::Counts(low, high) => {
                within(ends(text, number), low, high).map(|(a, b)| Value::Counts(a, b))
            }
            // Comparisons with NaN are false, so NaN and infinities are out of range.
            Values::Real(low, high) => {
                number(text).filter(|x| (low..=high).contains(x)).map(|x| Value::Reals(x, x))
            }
            Values::Reals(low, high) => {
                within(ends(text, number), low, high).map(|(a, b)| Value::Reals(a, b))
            }
            Values::Seconds(low, high) => {
                seconds(text).filter(|x| (low..=high).contains(x)).map(|x| Value::Reals(x, x))
            }
            Values::SecondsRange(low, high) => {
                within(ends(text, seconds), low, high).map(|(a, b)| Value::Reals(a, b))
            }
            Values::Bytes => bytes::parse(text).map(|n| Value::Counts(n, n)),
            Values::Choice(words) => words.iter().copied().find(|w| *w == text).map(Value::Choice),
            Values::Path(_) => match shell::check_path(text) {
                Ok(()) => Some(Value::Text(text.to_owned())),
                Err(expected) => {
                    return Err(ParamError::Value { name: self.name, found: text.to_owned(), expected });
                }
            },
            Values::Text(_) | Values::TextOfFile => Some(Value::Text(text.to_owned())),
        };
        value.ok_or_else(|| ParamError::Value {
            name: self.name,
            found: text.to_owned(),
            expected: self.expected() + &did_you_mean(text, self.choices()),
        })
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn seconds(text: &str) -> Option<f64> {
    duration::parse_option(text).ok()
}

/// `a..b`, or `a` for `a..a`.
fn ends<T: Copy>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<(T, T)> {
    if let Some((a, b)) = text.split_once("..") {
        Some((read(a)?, read(b)?))
    } else {
        let a = read(text)?;
        Some((a, a))
    }
}

/// A range, if it is valid and within bounds.
fn within<T: PartialOrd + Copy>(ends: Option<(T, T)>, low: T, high: T) -> Option<(T, T)> {
    ends.filter(|&(a, b)| low <= a && a <= b && b <= high)
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Word,
    Counts(u64, u64),
    Reals(f64, f64),
    Choice(&'static str),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word => Ok(()),
            Self::Counts(a, b) if a == b => write!(f, "{a}"),
            Self::Counts(a, b) => write!(f, "{a}..{b}"),
            Self::Reals(a, b) if a == b => write!(f, "{a}"),
            Self::Reals(a, b) => write!(f, "{a}..{b}"),
            Self::Choice(word) => f.write_str(word),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A valid value for every parameter of a table.
///
/// A getter panics if the table has no parameter of that name and kind: the code that declares a parameter
/// also reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    params: &'static [Param],
    /// In the order of the parameters.
    values: Vec<Value>,
}

impl Settings {
    /// The defaults.
    ///
    /// # Panics
    /// If a parameter does not allow its declared default.
    pub fn defaults(params: &'static [Param]) -> Self {
        let value = |param: &Param| param.read(param.default).expect("invariant: defaults are valid");
        Self { params, values: params.iter().map(value).collect() }
    }

    /// The defaults, changed by `(name, value)` settings.
    ///
    /// # Errors
    /// An unknown or repeated name, or a value that the parameter does not allow.
    pub fn parse<'a>(
        params: &'static [Param],
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ParamError> {
        let mut parsed = Self::defaults(params);
        let mut seen = vec![false; params.len()];
        for (name, text) in settings {
            let at = parsed.set(name, text)?;
            if std::mem::replace(&mut seen[at], true) {
                return Err(ParamError::Repeated { name: params[at].name });
            }
        }
        Ok(parsed)
    }

    /// Changes one value. Returns the index of the parameter in the table.
    fn set(&mut self, name: &str, text: &str) -> Result<usize, ParamError> {
        let at = self.params.iter().position(|p| p.name == name).ok_or_else(|| ParamError::Unknown {
            found: name.to_owned(),
            known: self.params.iter().map(|p| p.name).collect(),
        })?;
        self.values[at] = self.params[at].read(text)?;
        Ok(at)
    }

    /// The table.
    pub fn params(&self) -> &'static [Param] {
        self.params
    }

    /// Every parameter with its value as a text that [`Settings::parse`] reads as the same value.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let text = |(param, value): (&Param, &Value)| match value {
            Value::Word => param.word.unwrap_or_default().to_owned(),
            value => value.to_string(),
        };
        self.params.iter().zip(&self.values).map(move |(param, value)| (param.name, text((param, value))))
    }

    fn value(&self, name: &str) -> &Value {
        let at = self.params.iter().position(|p| p.name == name);
        &self.values[at.expect("invariant: only parameters that were declared are asked for")]
    }

    /// Whether the parameter is a value, not its word ([`Param::word`]).
    pub fn given(&self, name: &str) -> bool {
        *self.value(name) != Value::Word
    }

    /// The whole number (or the bytes) called `name`.
    pub fn count(&self, name: &str) -> u64 {
        self.counts(name).0
    }

    /// Both ends of the range of whole numbers called `name`.
    pub fn counts(&self, name: &str) -> (u64, u64) {
        let Value::Counts(low, high) = *self.value(name) else { panic!("{name} is no whole number") };
        (low, high)
    }

    /// The number called `name`; of a duration, its seconds.
    pub fn real(&self, name: &str) -> f64 {
        self.reals(name).0
    }

    /// Both ends of the range called `name`.
    pub fn reals(&self, name: &str) -> (f64, f64) {
        let Value::Reals(low, high) = *self.value(name) else { panic!("{name} is no number") };
        (low, high)
    }

    /// The word called `name`, of a choice.
    pub fn choice(&self, name: &str) -> &'static str {
        let Value::Choice(word) = *self.value(name) else { panic!("{name} is no choice") };
        word
    }

    /// The text called `name`.
    pub fn text(&self, name: &str) -> &str {
        let Value::Text(text) = self.value(name) else { panic!("{name} is no text") };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Param] = &[
        Param::new("jobs", "10", Values::Counts(1, 99), "how many"),
        Param::new("split", "128MiB", Values::Bytes, "bytes a map reads"),
        Param::new("most", "1000", Values::Count(1, u64::MAX), "most reduces").or_word("none"),
        Param::new("epoch", "0.5", Values::Real(0.0, 86_400.0), "seconds"),
        Param::new("wait", "5", Values::Seconds(0.0, 86_400.0), "how long"),
        Param::new("gap", "10..60", Values::SecondsRange(0.0, 1e6), "a range of durations"),
        Param::new("spread", "1..5", Values::Reals(0.0, 9.0), "a range"),
        Param::new("by", "job", Values::Choice(&["job", "flow"]), "who queues"),
        Param::new("cases", "", Values::Text("decision=target after commas"), "which way to go"),
        Param::new("hosts", "none", Values::Path("FILE"), "the machines").or_word("none"),
    ];

    fn error(name: &str, value: &str) -> String {
        Settings::parse(TABLE, [(name, value)]).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_values() {
        let settings = Settings::defaults(TABLE);
        assert_eq!((settings.counts("jobs"), settings.count("split")), ((10, 10), 128 << 20));
        assert_eq!((settings.real("epoch"), settings.reals("spread")), (0.5, (1.0, 5.0)));
        assert_eq!((settings.choice("by"), settings.text("cases")), ("job", ""));
        assert!(settings.given("most"));
    }

    #[test]
    fn pairs_are_read_as_the_same_settings() {
        let given = [("jobs", "5..20"), ("most", "none"), ("epoch", "0.1"), ("by", "flow"), ("cases", "a=b")];
        let settings = Settings::parse(TABLE, given).unwrap();
        assert!(!settings.given("most"));
        let pairs: Vec<(&str, String)> = settings.pairs().collect();
        let again = Settings::parse(TABLE, pairs.iter().map(|(name, text)| (*name, text.as_str())));
        assert_eq!(again, Ok(settings));
    }

    #[test]
    fn errors_say_what_is_valid() {
        assert_eq!(
            error("job", "1"),
            r#"found parameter "job", expected one of jobs, split, most, epoch, wait, gap, spread, by, cases, hosts; did you mean "jobs"?"#
        );
        assert_eq!(error("by", "user"), "found by=user, expected one of job, flow");
        assert_eq!(error("by", "Flow"), r#"found by=Flow, expected one of job, flow; did you mean "flow"?"#);
        assert_eq!(error("most", "0"), "found most=0, expected none or a whole number from 1");
        for value in ["-1", "1e9", "NaN", "soon", ""] {
            assert_eq!(
                error("epoch", value),
                format!("found epoch={value}, expected a number from 0 to 86400")
            );
        }
        for value in ["5..4", "0", "1..100", "x"] {
            assert!(error("jobs", value).contains("a range such as 5..20, from 1 to 99"), "{value}");
        }
        assert!(error("split", "5 miles").contains("a size such as 128MiB"));
        assert!(error("hosts", "~/hosts").starts_with("found hosts=~/hosts, expected the full path"));
        let twice = Settings::parse(TABLE, [("by", "job"), ("by", "flow")]).unwrap_err().to_string();
        assert_eq!(twice, "found parameter by a second time, expected each at most once");
        assert!(Settings::parse(&[], [("by", "job")]).unwrap_err().to_string().ends_with("no parameter"));
    }

    #[test]
    fn durations_are_numbers_of_seconds_or_texts_with_units() {
        let read = |wait, gap| Settings::parse(TABLE, [("wait", wait), ("gap", gap)]).unwrap();
        let settings = read("1m30s", "10s..1.5h");
        assert_eq!(settings, read("90", "10..5400"));
        assert_eq!((settings.real("wait"), settings.reals("gap")), (90.0, (10.0, 5400.0)));
        assert!(settings.pairs().any(|pair| pair == ("gap", "10..5400".to_owned())), "numbers are recorded");
        assert_eq!(
            error("wait", "2d"),
            "found wait=2d, expected seconds or a duration such as 90s, 1.5h or 2d, from 0 to 86400 s"
        );
        for value in ["-1s", "1mo", "06:00", "", "soon", "NaN"] {
            assert!(error("wait", value).contains("from 0 to 86400 s"), "{value}");
        }
        assert!(error("gap", "1h..1m").contains("a range such as 10s..1m"));
    }

    #[test]
    fn samples_are_valid_and_differ() {
        let samples = |name: &str| TABLE.iter().find(|p| p.name == name).unwrap().samples();
        assert_eq!(samples("epoch"), ["0.5", "0", "86400"]);
        assert_eq!(samples("jobs"), ["10", "1", "99"]);
        assert_eq!(samples("most"), ["1000", "none", "1", "18446744073709551615"]);
        for param in TABLE {
            for sample in param.samples() {
                assert!(Settings::parse(TABLE, [(param.name, sample.as_str())]).is_ok(), "{sample}");
            }
        }
    }

    #[test]
    fn words_begin_with_the_default() {
        let words = |name: &str| TABLE.iter().find(|p| p.name == name).unwrap().words();
        assert_eq!(
            (words("by"), words("most"), words("epoch")),
            (vec!["job", "flow"], vec!["1000", "none"], vec!["0.5"])
        );
    }

    #[test]
    fn only_texts_have_commas() {
        let params = [
            Param::new("text", "", Values::Text("a text"), ""),
            Param::new("n", "1", Values::Count(1, 9), ""),
        ];
        assert_eq!(pairs(&params, "n=1,text=a,b,n=2"), [("n", "1"), ("text", "a,b"), ("n", "2")]);
        assert_eq!(pairs(&params, "text=a=b,c=d,n=3"), [("text", "a=b,c=d"), ("n", "3")]);
        // A name that is misspelt is not part of a text.
        assert_eq!(pairs(&params, "text=a,m=2"), [("text", "a"), ("m", "2")]);
        assert_eq!(pairs(&params, "n=1,x"), [("n", "1"), ("x", "")]);
        assert_eq!(pairs(&params, ""), []);
    }
}
