//! Deserialises structs from trees; errors have the path in the document and avoid the names of Rust types.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use slackline_model::names::closest;

use crate::reading::error::TraceError;
use crate::reading::tree::{Entry, Node, Value, fault};

/// A difference between a tree and a struct.
///
/// Boxed, because every value that is read passes on a result with it.
#[derive(Debug)]
pub(crate) struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    /// Its place; the innermost value sets it.
    offset: Option<usize>,
    /// Each step with its dot or brackets, the innermost first.
    path: Vec<String>,
    what: String,
}

impl Error {
    fn new(what: String) -> Self {
        Self(Box::new(Inner { offset: None, path: Vec::new(), what }))
    }

    /// At this offset, unless the place is known better.
    fn at(mut self, offset: usize) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    fn within(mut self, step: String) -> Self {
        self.0.path.push(step);
        self
    }

    /// The same of a file with that text.
    pub(crate) fn into_error(self, file: &str, text: &str) -> TraceError {
        let Inner { offset, mut path, what } = *self.0;
        path.reverse();
        let path = path.concat();
        let path = path.strip_prefix('.').unwrap_or(&path).to_owned();
        fault(file, text, offset.unwrap_or(0), path, what)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.what)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self::new(what.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("found {}, expected {expected}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        let suggestion = closest(found, known.iter().copied());
        let suggestion = suggestion.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        Self::new(format!("found {found:?}, expected {}{suggestion}", one_of(known, "")))
    }

    fn unknown_field(found: &str, known: &'static [&'static str]) -> Self {
        let suggestion = closest(found, known.iter().copied());
        let suggestion = suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        Self::new(format!("unknown field `{found}`, expected {}{suggestion}", one_of(known, "`")))
    }

    fn missing_field(field: &'static str) -> Self {
        // A user who writes a first document cannot know the expected fields.
        let hint =
            if field == "slackline" { ", expected the version of the format: slackline = 1" } else { "" };
        Self::new(format!("missing field `{field}`{hint}"))
    }
}

/// The value that a visitor refused, as [`Value`] prints it.
fn describe(found: Unexpected<'_>) -> Cow<'static, str> {
    let value = match found {
        Unexpected::Bool(is) => Value::Bool(is),
        Unexpected::Unsigned(n) => Value::Whole(n),
        Unexpected::Signed(n) => Value::Negative(n),
        Unexpected::Float(x) => Value::Real(x),
        Unexpected::Str(text) => return Value::Text(text.into()).to_string().into(),
        Unexpected::Unit | Unexpected::Option => Value::Null,
        Unexpected::Seq => Value::List(Vec::new()),
        Unexpected::Map => Value::Table(Vec::new()),
        _ => return "something else".into(),
    };
    value.to_string().into()
}

/// The names a field or value may have, each in these quotes.
fn one_of(names: &[&str], quote: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{quote}{name}{quote}")).collect();
    match quoted.as_slice() {
        [] => "none".to_owned(),
        [name] => name.clone(),
        [first, second] => format!("{first} or {second}"),
        more => format!("one of {}", more.join(", ")),
    }
}

impl Node<'_> {
    fn wrong_type(&self, expected: &str) -> Error {
        Error::new(format!("found {}, expected {expected}", self.value())).at(self.offset)
    }
}

/// Whole numbers: the type's bounds are the message's.
macro_rules! whole {
    ($($deserialize:ident, $visit:ident, $number:ty;)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let number = match *self.value() {
                Value::Whole(n) => <$number>::try_from(n).ok(),
                Value::Negative(n) => <$number>::try_from(n).ok(),
                _ => None,
            };
            let Some(number) = number else {
                let (least, most) = (<$number>::MIN, <$number>::MAX);
                return Err(self.wrong_type(&format!("a whole number from {least} to {most}")));
            };
            visitor.$visit(number).map_err(|error: Error| error.at(self.offset))
        }
    )*};
}

impl<'de> Deserializer<'de> for &Node<'de> {
    type Error = Error;

    whole! {
        deserialize_u8, visit_u8, u8;
        deserialize_u16, visit_u16, u16;
        deserialize_u32, visit_u32, u32;
        deserialize_u64, visit_u64, u64;
        deserialize_i8, visit_i8, i8;
        deserialize_i16, visit_i16, i16;
        deserialize_i32, visit_i32, i32;
        deserialize_i64, visit_i64, i64;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let read = match self.value() {
            Value::Null => visitor.visit_unit(),
            Value::Bool(is) => visitor.visit_bool(*is),
            Value::Whole(n) => visitor.visit_u64(*n),
            Value::Negative(n) => visitor.visit_i64(*n),
            Value::Real(x) => visitor.visit_f64(*x),
            Value::Text(_) => return self.deserialize_str(visitor),
            Value::List(_) => return self.deserialize_seq(visitor),
            Value::Table(_) => return self.deserialize_map(visitor),
            Value::Shared(node) => return node.deserialize_any(visitor),
        };
        read.map_err(|error: Error| error.at(self.offset))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value() {
            Value::Bool(is) => visitor.visit_bool(*is).map_err(|error: Error| error.at(self.offset)),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let number = match *self.value() {
            Value::Whole(n) => n as f64,
            Value::Negative(n) => n as f64,
            Value::Real(x) => x,
            _ => return Err(self.wrong_type("a number")),
        };
        visitor.visit_f64(number).map_err(|error: Error| error.at(self.offset))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value() {
            Value::Text(text) => visit_text(text, visitor).map_err(|error| error.at(self.offset)),
            _ => Err(self.wrong_type("text")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value() {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value() {
            Value::List(list) => {
                visitor.visit_seq(Items { all: list, next: 0 }).map_err(|error| error.at(self.offset))
            }
            _ => Err(self.wrong_type("a list")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        match self.value() {
            Value::List(list) if list.len() == len => self.deserialize_seq(visitor),
            Value::List(list) => {
                let what = format!("found a list of {}, expected one of {len}", list.len());
                Err(Error::new(what).at(self.offset))
            }
            _ => Err(self.wrong_type(&format!("a list of {len}"))),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value() {
            Value::Table(table) => {
                visitor.visit_map(Entries { all: table, next: 0 }).map_err(|error| error.at(self.offset))
            }
            _ => Err(self.wrong_type("a table")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    /// Only of variants without content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Value::Text(text) = self.value() else { return Err(self.wrong_type(&one_of(known, ""))) };
        let variant: StrDeserializer<'_, Error> = (**text).into_deserializer();
        visitor.visit_enum(variant).map_err(|error| error.at(self.offset))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { char bytes byte_buf unit unit_struct tuple_struct identifier }
}

fn visit_text<'de, V: Visitor<'de>>(text: &Cow<'de, str>, visitor: V) -> Result<V::Value, Error> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_str(text),
    }
}

struct Items<'n, 'de> {
    all: &'n [Node<'de>],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(node) = self.all.get(self.next) else { return Ok(None) };
        self.next += 1;
        let read = seed.deserialize(node);
        read.map(Some).map_err(|error| error.at(node.offset).within(format!("[{}]", self.next - 1)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.all.len() - self.next)
    }
}

struct Entries<'n, 'de> {
    all: &'n [Entry<'de>],
    next: usize,
}

impl<'de> de::MapAccess<'de> for Entries<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.all.get(self.next) else { return Ok(None) };
        seed.deserialize(Key(&entry.key)).map(Some).map_err(|error| error.at(entry.key_offset))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let entry = &self.all[self.next];
        self.next += 1;
        let read = seed.deserialize(&entry.value);
        read.map_err(|error| error.at(entry.value.offset).within(format!(".{}", entry.key)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.all.len() - self.next)
    }
}

struct Key<'n, 'de>(&'n Cow<'de, str>);

impl<'de> Deserializer<'de> for Key<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visit_text(self.0, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
