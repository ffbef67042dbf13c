//! Parses TOML into a tree. The parser refuses deep nesting itself.

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::{Entry, Node, ParseError, Value, scalar};

pub(super) fn read(text: &str) -> Result<Node<'_>, ParseError> {
    let root = DeTable::parse(text).map_err(|error| parse_error(text, &error))?;
    let offset = root.span().start;
    Ok(Node::new(offset, table(root.into_inner())?))
}

fn parse_error(text: &str, error: &Error) -> ParseError {
    let span = error.span().unwrap_or_default();
    match error.message() {
        "duplicate key" => ParseError::repeated_key(span.start, text.get(span.clone()).unwrap_or_default()),
        message => ParseError::new(span.start, message.trim_end().replace('\n', ", ")),
    }
}

fn value(value: Spanned<DeValue<'_>>) -> Result<Node<'_>, ParseError> {
    let offset = value.span().start;
    let at = |what| ParseError::new(offset, what);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text),
        DeValue::Integer(n) if n.radix() == 10 => scalar::decimal(n.as_str()).map_err(at)?,
        DeValue::Integer(n) => scalar::based(n.as_str(), n.radix()).map_err(at)?,
        DeValue::Float(x) if x.as_str().ends_with(['f', 'n']) => {
            Value::Real(x.as_str().parse().map_err(|_| at(format!("found {x}, expected a number")))?)
        }
        DeValue::Float(x) => scalar::decimal(x.as_str()).map_err(at)?,
        DeValue::Boolean(is) => Value::Bool(is),
        DeValue::Datetime(time) => Value::Text(time.to_string().into()),
        DeValue::Array(list) => Value::List(list.into_iter().map(self::value).collect::<Result<_, _>>()?),
        DeValue::Table(inner) => table(inner)?,
    };
    Ok(Node::new(offset, value))
}

fn table(table: DeTable<'_>) -> Result<Value<'_>, ParseError> {
    let entry = |(key, inner): (Spanned<_>, _)| {
        Ok(Entry { key_offset: key.span().start, key: key.into_inner(), value: value(inner)? })
    };
    let mut entries = table.into_iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    // The parser sorts them by name.
    entries.sort_by_key(|entry| entry.key_offset);
    Ok(Value::Table(entries))
}
