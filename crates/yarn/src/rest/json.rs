//! Reads the JSON of Hadoop's web interfaces, whose form depends on the library that wrote it.
//!
//! A list may be an array, a single object, an empty object, an empty string or `null`, and the object around
//! it may be missing. A number may be a string, and -1 means unknown. Unused fields may be anything. An
//! answer without the requested list is an error, so that it is not taken for an empty list.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// The elements of the list at `path`, such as `["apps", "app"]`; objects along the path may be missing.
pub(crate) fn list<T: DeserializeOwned>(document: &[u8], path: &[&str]) -> Result<Vec<T>, String> {
    let mut reader = serde_json::Deserializer::from_slice(document);
    let list = ListAt { path, inside: path.is_empty(), element: PhantomData }
        .deserialize(&mut reader)
        .map_err(|e| e.to_string())?;
    reader.end().map_err(|e| e.to_string())?;
    Ok(list)
}

/// The object at `key`.
pub(crate) fn object<T: DeserializeOwned>(document: &[u8], key: &str) -> Result<T, String> {
    let mut document: Value = serde_json::from_slice(document).map_err(|e| e.to_string())?;
    let inner = document.get_mut(key).map(Value::take).ok_or_else(|| format!("no `{key}` in it"))?;
    if inner.is_array() {
        return Err(format!("`{key}` is an array"));
    }
    T::deserialize(inner).map_err(|e| e.to_string())
}

/// A list below some keys.
struct ListAt<'a, T> {
    path: &'a [&'a str],
    /// Whether a key was found already: then an array is the list, without the remaining objects.
    inside: bool,
    element: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for ListAt<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for ListAt<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.path.first() {
            Some(key) => write!(f, "an object with `{key}`"),
            None => write!(f, "a list"),
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        if text.is_empty() { Ok(Vec::new()) } else { Err(E::invalid_type(de::Unexpected::Str(text), &self)) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        if !self.inside {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
        }
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        if self.path.is_empty() {
            return single(entries);
        }
        let mut found = None;
        let mut is_empty = true;
        while let Some(key) = entries.next_key::<String>()? {
            is_empty = false;
            match self.path.iter().position(|wanted| *wanted == key) {
                Some(at) => {
                    let below = ListAt { path: &self.path[at + 1..], inside: true, element: PhantomData };
                    found = Some(entries.next_value_seed(below)?);
                }
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        match found {
            Some(list) => Ok(list),
            None if is_empty => Ok(Vec::new()),
            None => Err(de::Error::custom(format_args!("no `{}` in it", self.path.join("` or `")))),
        }
    }
}

/// A list that is one object: its only element, or none if it is empty.
fn single<'de, T: DeserializeOwned, A: MapAccess<'de>>(mut entries: A) -> Result<Vec<T>, A::Error> {
    let mut object = Map::new();
    while let Some((key, value)) = entries.next_entry::<String, Value>()? {
        object.insert(key, value);
    }
    if object.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![T::deserialize(Value::Object(object)).map_err(de::Error::custom)?])
}

/// A field that is a list in any form.
pub(crate) fn many<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    ListAt { path: &[], inside: true, element: PhantomData }.deserialize(deserializer)
}

/// A number that may be a string, or unknown: missing, `null`, negative, not a number.
struct Number;

impl Visitor<'_> for Number {
    type Value = Option<f64>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<f64>, E> {
        Ok(Some(number as f64))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<f64>, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Option<f64>, E> {
        Ok(Some(number).filter(|number| number.is_finite() && *number >= 0.0))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<f64>, E> {
        text.trim().parse().map_or(Ok(None), |number| self.visit_f64(number))
    }
}

/// A field that is a number of 0 or more; `None` if it is unknown.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    deserializer.deserialize_any(Number)
}

/// The same in whole numbers (exact up to 2^53, which is more than any time in milliseconds).
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(number(deserializer)?.map(|number| number as u64))
}

/// The same, where unknown is 0.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(whole(deserializer)?.unwrap_or(0))
}

/// The same for a time in milliseconds since 1970, where 0 is unknown too.
pub(crate) fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(whole(deserializer)?.filter(|time| *time > 0))
}

/// A field that is a text, or `null`.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    de::Deserialize::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// An identifier that may be missing: an empty string, `null`, or `N/A`.
pub(crate) fn id<'de, D: Deserializer<'de>, T: std::str::FromStr>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(text(deserializer)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Thing {
        id: u32,
        #[serde(default, deserialize_with = "whole")]
        size: Option<u64>,
    }

    fn things(document: &str) -> Result<Vec<u32>, String> {
        let things: Vec<Thing> = list(document.as_bytes(), &["things", "thing"])?;
        Ok(things.iter().map(|thing| thing.id).collect())
    }

    #[test]
    fn a_list_has_many_shapes() {
        assert_eq!(things(r#"{"things":{"thing":[{"id":1},{"id":2,"more":[{}]}]}}"#), Ok(vec![1, 2]));
        assert_eq!(things(r#"{"things":{"thing":{"id":1}}}"#), Ok(vec![1]), "a single object");
        assert_eq!(things(r#"{"thing":[{"id":1}]}"#), Ok(vec![1]), "without the object around it");
        assert_eq!(things(r#"{"things":[{"id":1}]}"#), Ok(vec![1]), "without the inner object");
        for nothing in [
            r#"{"things":{}}"#,
            r#"{"things":""}"#,
            r#"{"things":null}"#,
            r#"{"things":{"thing":""}}"#,
            r#"{"things":{"thing":{}}}"#,
            r#"{"things":{"thing":[]}}"#,
            "{}",
            "\"\"",
            r#"{"also":1,"things":{}}"#,
        ] {
            assert_eq!(things(nothing), Ok(vec![]), "{nothing}");
        }
    }

    #[test]
    fn an_answer_without_the_list_is_not_an_empty_list() {
        assert!(things(r#"{"other":{}}"#).unwrap_err().contains("no `things` or `thing` in it"));
        assert!(things(r#"{"things":{"other":1}}"#).unwrap_err().contains("no `thing` in it"));
        assert!(things(r#"{"things":{"thing":[{"id":1}"#).is_err(), "cut off");
        assert!(things(r#"{"things":{"thing":[{}]}}"#).unwrap_err().contains("missing field `id`"));
        assert!(things(r#"{"things":"more"}"#).is_err());
        assert!(things("[]").is_err());
        assert!(things("{} {}").is_err());
        assert_eq!(object::<u32>(b"{\"key\":7}", "key"), Ok(7));
        assert_eq!(object::<u32>(b"{\"other\":7}", "key"), Err("no `key` in it".to_owned()));
        assert!(object::<u32>(b"[]", "key").is_err());
        assert!(object::<Thing>(b"{\"key\":[1]}", "key").is_err());
    }

    #[test]
    fn numbers_may_be_strings_or_unknown() {
        let size = |value: &str| {
            let text = format!(r#"{{"thing":[{{"id":1,"size":{value}}}]}}"#);
            list::<Thing>(text.as_bytes(), &["thing"]).unwrap()[0].size
        };
        assert_eq!(size("7"), Some(7));
        assert_eq!(size("\"7\""), Some(7));
        assert_eq!(size("7.9"), Some(7));
        assert_eq!(size("1700000000001"), Some(1_700_000_000_001));
        for unknown in ["-1", "null", "\"\"", "\"N/A\"", "-1.0", "\"NaN\""] {
            assert_eq!(size(unknown), None, "{unknown}");
        }
    }
}
