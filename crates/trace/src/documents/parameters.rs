//! Values for the parameters that a document declares (`--set`, `--for`): one value instead of the default,
//! or several values of one parameter, each for a copy of the flow.

use std::collections::BTreeMap;

use slackline_model::calendar;

/// The most values that a parameter takes at a time.
const VALUES_MAX: u64 = 10_000;

/// Values of parameters that documents declare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    set: BTreeMap<String, String>,
    each: Option<(String, Vec<String>)>,
}

/// The reason why a text is not a value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParameterError(String);

impl Parameters {
    /// The parameter has this value instead of its default.
    ///
    /// # Errors
    /// A parameter that has a value already, or a value with a NUL or the end of a line in it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParameterError> {
        self.refuse_known(name)?;
        check_value(value).map_err(ParameterError)?;
        self.set.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// Every flow that uses the parameter becomes one for each of these values; flows that do not use it stay
    /// as they are. Values are a list such as `north,south`, whole numbers such as `1..24` or days such as
    /// `2026-03-01..2026-03-07`, ends included, or several of these with commas between them.
    ///
    /// # Errors
    /// As of [`Self::set`]; a second parameter; invalid or duplicate values.
    pub fn for_each(&mut self, name: &str, values: &str) -> Result<(), ParameterError> {
        if let Some((other, _)) = self.each.as_ref().filter(|(other, _)| other != name) {
            let what =
                format!("found values for each flow of {other:?} and {name:?}, expected one such parameter");
            return Err(ParameterError(what));
        }
        self.refuse_known(name)?;
        self.each = Some((name.to_owned(), parse_values(values).map_err(ParameterError)?));
        Ok(())
    }

    /// Whether no value was given.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.each.is_none()
    }

    /// The values that were set, by name.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.set
    }

    /// The parameter with a value a flow, and its values.
    pub fn each(&self) -> Option<(&str, &[String])> {
        self.each.as_ref().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// The given values by the names of the program's options: `set` and `for`.
    pub fn options(&self) -> BTreeMap<String, String> {
        let set: Vec<String> = self.set.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let set = (!set.is_empty()).then(|| ("set".to_owned(), set.join(" ")));
        let each = self.each.iter().map(|(name, values)| ("for".to_owned(), format!("{name}={values:?}")));
        set.into_iter().chain(each).collect()
    }

    fn refuse_known(&self, name: &str) -> Result<(), ParameterError> {
        let is_known =
            self.set.contains_key(name) || self.each.as_ref().is_some_and(|(known, _)| known == name);
        if is_known {
            return Err(ParameterError(format!("found the parameter {name:?} a second time")));
        }
        Ok(())
    }
}

/// Refuses values that no command, path or variable can have.
pub(crate) fn check_value(value: &str) -> Result<(), String> {
    if value.contains(['\0', '\n', '\r']) {
        return Err(format!("found {value:?}, expected a text without NUL and line breaks"));
    }
    Ok(())
}

/// The values of a list of values and ranges of such.
fn parse_values(text: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = Vec::new();
    for item in text.split(',') {
        check_value(item)?;
        if item.is_empty() || item.trim() != item {
            return Err(format!("found {item:?} among the values, expected a text without space around it"));
        }
        match item.split_once("..") {
            Some((first, last)) => values.extend(range(first, last)?),
            None => values.push(item.to_owned()),
        }
        if values.len() as u64 > VALUES_MAX {
            return Err(too_many());
        }
    }
    let mut sorted: Vec<&String> = values.iter().collect();
    sorted.sort();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("found the value {:?} a second time", pair[0])),
        None => Ok(values),
    }
}

fn too_many() -> String {
    format!("found too many values, expected at most {VALUES_MAX}")
}

/// The values from one to another, both included: days, or whole numbers, which are as wide as the first.
fn range(first: &str, last: &str) -> Result<Vec<String>, String> {
    let (count, value): (u64, Box<dyn Fn(u64) -> Option<String>>) = if let Some((days, first)) =
        calendar::days_until(first, last).zip(calendar::day(first))
    {
        (days, Box::new(move |k| calendar::day_after(first, k)))
    } else if let (Some(from), Some(to)) = (parse_whole(first), parse_whole(last)) {
        let width = first.len();
        (to.checked_sub(from).map_or(0, |n| n + 1), Box::new(move |k| Some(format!("{:0width$}", from + k))))
    } else {
        return Err(format!(
            "found the range {first}..{last}, expected days such as 2026-03-01..2026-03-07 or whole numbers such as 1..24"
        ));
    };
    match count {
        0 => Err(format!("found the range {first}..{last}, expected the first no later than the last")),
        n if n > VALUES_MAX => Err(too_many()),
        n => Ok((0..n).filter_map(value).collect()),
    }
}

fn parse_whole(text: &str) -> Option<u64> {
    let is_whole = !text.is_empty() && text.len() < 19 && text.bytes().all(|b| b.is_ascii_digit());
    is_whole.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Result<Vec<String>, String> {
        let mut parameters = Parameters::default();
        parameters.for_each("p", text).map_err(|error| error.to_string())?;
        Ok(parameters.each().unwrap().1.to_vec())
    }

    #[test]
    fn values_are_lists_days_and_numbers() {
        assert_eq!(values("b,a").unwrap(), ["b", "a"]);
        assert_eq!(values("9..11").unwrap(), ["9", "10", "11"]);
        assert_eq!(values("09..11").unwrap(), ["09", "10", "11"]);
        assert_eq!(values("2024-02-28..2024-03-01").unwrap(), ["2024-02-28", "2024-02-29", "2024-03-01"]);
        assert_eq!(values("2026-12-31..2027-01-01,x,7..7").unwrap(), ["2026-12-31", "2027-01-01", "x", "7"]);
        assert_eq!(values("0001..10000").unwrap().len(), 10_000);
    }

    #[test]
    fn invalid_lists_of_values_are_refused() {
        for (text, expected) in [
            ("", "found \"\" among the values"),
            ("a,,b", "found \"\" among the values"),
            ("a, b", "found \" b\" among the values"),
            ("a,b,a", "found the value \"a\" a second time"),
            ("1..3,2", "found the value \"2\" a second time"),
            ("3..1", "expected the first no later than the last"),
            ("2026-03-02..2026-03-01", "expected the first no later than the last"),
            ("2026-02-30..2026-03-01", "found the range 2026-02-30..2026-03-01, expected days"),
            ("2026-03-01..7", "expected days such as"),
            ("a..b", "expected days such as"),
            ("-1..3", "expected days such as"),
            ("1..10001", "found too many values, expected at most 10000"),
            ("0001-01-01..9999-12-31", "found too many values, expected at most 10000"),
            ("0..999999999999999999", "found too many values, expected at most 10000"),
            ("a\nb", "expected a text without NUL and line breaks"),
        ] {
            let found = values(text).unwrap_err();
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn a_parameter_has_one_value_or_one_list_of_them() {
        let mut parameters = Parameters::default();
        parameters.set("a", "1 $(x); 'y'").unwrap();
        assert!(parameters.set("a", "2").unwrap_err().to_string().contains("\"a\" a second time"));
        assert!(parameters.for_each("a", "2").is_err());
        parameters.for_each("b", "2").unwrap();
        assert!(parameters.for_each("b", "3").unwrap_err().to_string().contains("\"b\" a second time"));
        assert!(
            parameters.for_each("c", "3").unwrap_err().to_string().contains("expected one such parameter")
        );
        assert!(parameters.set("b", "2").is_err());
        assert!(parameters.set("d", "x\0").is_err());
        assert_eq!(parameters.values()["a"], "1 $(x); 'y'");
        let options = [("for", "b=[\"2\"]"), ("set", "a=\"1 $(x); 'y'\"")];
        assert_eq!(
            parameters.options(),
            options.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
        );
    }
}
