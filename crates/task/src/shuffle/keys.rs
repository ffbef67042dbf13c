//! Keys of the lines of commands: their fields, their partition, and their order.
//!
//! If keys are compared by fields, a pair's key in the shuffle is a text in the order of those fields, then
//! the key itself, which breaks ties; its value begins with the length of the first part (LEB128).

use crate::base::error::TaskError;
use crate::input::fields::{number, ordered};
use crate::process::spec::Shuffle;
use crate::shuffle::pairs::{put_varint, take_varint};

/// The rule that cuts lines into keys and values.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    separator: u8,
    /// Number of fields of the key, at least 1.
    fields: usize,
    /// Number of those fields that select the partition.
    partition_fields: usize,
    order: Vec<Order>,
}

/// A field by which keys are compared, as in `sort -k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    /// From 0.
    field: usize,
    is_numeric: bool,
    is_reverse: bool,
}

/// A line of a command.
pub(crate) struct Line<'a> {
    /// The part that selects the partition.
    pub(crate) part: &'a [u8],
    /// Its key in the shuffle.
    pub(crate) key: &'a [u8],
    /// Its value in the shuffle.
    pub(crate) value: &'a [u8],
}

/// Buffers for a pair in the shuffle.
#[derive(Default)]
pub(crate) struct Scratch {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Keys {
    /// Checks the separator, the numbers of fields and the order.
    pub(crate) fn of(shuffle: &Shuffle) -> Result<Self, TaskError> {
        let wrong = |problem: String| TaskError::Job(problem);
        let separator = match shuffle.separator.as_deref().map(str::as_bytes) {
            None => b'\t',
            Some([byte]) if *byte != b'\n' => *byte,
            Some(_) => {
                let found = shuffle.separator.as_deref().unwrap_or_default();
                return Err(wrong(format!(
                    "separator: found {found:?}, expected one ASCII character other than newline"
                )));
            }
        };
        let fields = shuffle.key_fields.unwrap_or(1);
        if fields == 0 {
            return Err(wrong("key_fields: found 0, expected 1 or more".to_owned()));
        }
        let partition_fields = shuffle.partition_fields.unwrap_or(fields);
        if !(1..=fields).contains(&partition_fields) {
            return Err(wrong(format!(
                "partition_fields: found {partition_fields}, expected 1 to {fields}, the number of key fields"
            )));
        }
        let order = shuffle.order.iter().map(|text| order(text, fields)).collect::<Result<Vec<_>, _>>()?;
        Ok(Keys { separator, fields: fields as usize, partition_fields: partition_fields as usize, order })
    }

    /// The separator of the fields of a line, and of key and value.
    pub(crate) fn separator(&self) -> u8 {
        self.separator
    }

    /// Calls `take` with a line in the form of the shuffle. A line with fewer fields than the key is a key.
    #[inline]
    pub(crate) fn line<T>(&self, line: &[u8], scratch: &mut Scratch, take: impl FnOnce(Line<'_>) -> T) -> T {
        let end = self.end_of(line, self.fields);
        let (key, value) = (&line[..end], line.get(end + 1..).unwrap_or_default());
        let part = &key[..self.end_of(key, self.partition_fields)];
        if self.order.is_empty() {
            return take(Line { part, key, value });
        }
        scratch.key.clear();
        for order in &self.order {
            order.put(self.field(key, order.field), &mut scratch.key);
        }
        scratch.value.clear();
        put_varint(&mut scratch.value, scratch.key.len() as u64);
        scratch.key.extend_from_slice(key);
        scratch.value.extend_from_slice(value);
        take(Line { part, key: &scratch.key, value: &scratch.value })
    }

    /// The key and value of a command, from a pair of the shuffle.
    #[inline]
    pub(crate) fn pair<'a>(&self, key: &'a [u8], mut value: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        if self.order.is_empty() {
            return (key, value);
        }
        let begin = take_varint(&mut value).unwrap_or(0) as usize;
        (key.get(begin..).unwrap_or_default(), value)
    }

    /// The end of the first `fields` fields.
    #[inline]
    fn end_of(&self, line: &[u8], fields: usize) -> usize {
        memchr::memchr_iter(self.separator, line).nth(fields - 1).unwrap_or(line.len())
    }

    /// A field of a key; an empty one if it has fewer.
    fn field<'a>(&self, key: &'a [u8], field: usize) -> &'a [u8] {
        key.split(|&byte| byte == self.separator).nth(field).unwrap_or_default()
    }
}

impl Order {
    /// Appends bytes in the order of the field, which no following bytes can change.
    fn put(self, field: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        if self.is_numeric {
            out.extend_from_slice(&number(field).map_or([0; 8], ordered));
        } else {
            for &byte in field {
                out.push(byte);
                if byte == 0 {
                    out.push(0xff);
                }
            }
            out.extend_from_slice(&[0, 0]);
        }
        if self.is_reverse {
            out[begin..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// Reads a field of an order, such as `2nr`.
fn order(text: &str, fields: u32) -> Result<Order, TaskError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (field, flags) = text.split_at(digits);
    let is_known = flags.chars().all(|flag| matches!(flag, 'n' | 'r'));
    match field.parse::<u32>() {
        Ok(field) if is_known && (1..=fields).contains(&field) => Ok(Order {
            field: field as usize - 1,
            is_numeric: flags.contains('n'),
            is_reverse: flags.contains('r'),
        }),
        _ => Err(TaskError::Job(format!(
            "order: found {text:?}, expected the number of a field of the key, 1 to {fields}, then n to sort by number and r to reverse the order, such as \"2nr\""
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(shuffle: &serde_json::Value) -> Result<Keys, String> {
        Keys::of(&serde_json::from_value(shuffle.clone()).unwrap()).map_err(|e| e.to_string())
    }

    fn cut(keys: &Keys, line: &str) -> [String; 3] {
        keys.line(line.as_bytes(), &mut Scratch::default(), |line| {
            let (key, value) = keys.pair(line.key, line.value);
            [line.part, key, value].map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
        })
    }

    #[test]
    fn keys_are_the_first_fields_and_partitions_the_first_of_them() {
        let shuffle =
            serde_json::json!({ "key_fields": 2, "separator": ",", "partition_fields": 1, "order": ["2nr"] });
        let found = keys(&shuffle).unwrap();
        assert_eq!(cut(&found, "a,2,x,y"), ["a", "a,2", "x,y"]);
        assert_eq!(cut(&found, "a,2"), ["a", "a,2", ""]);
        assert_eq!(cut(&found, "a"), ["a", "a", ""]);
        assert_eq!(cut(&found, ""), ["", "", ""]);
        let plain = keys(&serde_json::json!({})).unwrap();
        assert_eq!(cut(&plain, "a\tb\tc"), ["a", "a", "b\tc"]);
        assert_eq!(cut(&plain, "\t"), ["", "", ""]);
    }

    #[test]
    fn errors_of_orders_and_separators_name_the_right_ones() {
        for (shuffle, problem) in [
            (
                serde_json::json!({ "separator": "::" }),
                "separator: found \"::\", expected one ASCII character",
            ),
            (serde_json::json!({ "separator": "" }), "separator: found \"\", expected one ASCII character"),
            (serde_json::json!({ "key_fields": 0 }), "key_fields: found 0, expected 1 or more"),
            (serde_json::json!({ "partition_fields": 2 }), "partition_fields: found 2, expected 1 to 1"),
            (serde_json::json!({ "order": ["2"] }), "order: found \"2\", expected the number of a field"),
            (serde_json::json!({ "order": ["1x"] }), "order: found \"1x\", expected"),
            (serde_json::json!({ "order": [""] }), "order: found \"\", expected"),
        ] {
            let found = keys(&shuffle).unwrap_err();
            assert!(found.starts_with(problem), "{found}");
        }
    }

    proptest! {
        #[test]
        fn keys_in_the_shuffle_compare_like_their_fields(
            lines in proptest::collection::vec("[ab\u{0}]{0,2},-?[0-9x]{0,3},[a]?", 2..6),
            reverse: bool, numeric: bool,
        ) {
            let flags = format!("2{}{}", if numeric { "n" } else { "" }, if reverse { "r" } else { "" });
            let shuffle = serde_json::json!({ "key_fields": 3, "separator": ",", "order": [flags, "1r"] });
            let keys = keys(&shuffle).unwrap();
            let mut found: Vec<(Vec<u8>, String)> = lines
                .iter()
                .map(|line| (keys.line(line.as_bytes(), &mut Scratch::default(), |l| l.key.to_vec()), line.clone()))
                .collect();
            found.sort();
            let mut expected = lines;
            let field = |line: &str, n: usize| line.split(',').nth(n).unwrap().to_owned();
            expected.sort_by(|a, b| {
                let (x, y) = (field(a, 1), field(b, 1));
                let second = if numeric {
                    let value = |text: &str| text.parse::<f64>().map_or([0; 8], ordered);
                    value(&x).cmp(&value(&y))
                } else {
                    x.cmp(&y)
                };
                let second = if reverse { second.reverse() } else { second };
                second.then_with(|| field(b, 0).cmp(&field(a, 0))).then_with(|| a.cmp(b))
            });
            prop_assert_eq!(found.into_iter().map(|(_, line)| line).collect::<Vec<_>>(), expected);
        }
    }
}
