//! Binary Avro as Hadoop 3 writes job histories: a line `Avro-Binary`, a line with the schema as JSON, then
//! one value of the schema after the other. It becomes the other form, `Avro-Json`, in which each value is a
//! line of JSON.
//!
//! Only the subset that Hadoop writes is needed: values by their writer's schema. The crates for Avro bring
//! codecs, big numbers and schema resolution, which have no use here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::reading::error::TraceError;
use crate::reading::place::Place;

/// The first line of the form in JSON.
pub(crate) const JSON: &str = "Avro-Json";

/// The first line of the binary form.
const BINARY: &[u8] = b"Avro-Binary\n";

/// How deeply values may be nested.
const DEPTH_MAX: usize = 64;

/// The same history as `Avro-Json`; `None` if the bytes are not in the binary form. A value that is cut short
/// is dropped, as in the history of a job that still runs.
///
/// # Errors
/// An invalid schema, or values that do not follow it, with the byte.
pub(crate) fn as_json(file: &str, bytes: &[u8]) -> Option<Result<String, TraceError>> {
    let rest = bytes.strip_prefix(BINARY)?;
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
        let what = "found the end of the file, expected the schema of a job history";
        return Some(Err(TraceError::input(file, Some(Place { line: 2, column: 1 }), what)));
    };
    Some(to_json(file, &rest[..end], &rest[end + 1..], BINARY.len() + end + 1))
}

fn to_json(file: &str, schema: &[u8], values: &[u8], start: usize) -> Result<String, TraceError> {
    let wrong = |what: String| TraceError::input(file, Some(Place { line: 2, column: 1 }), what);
    let text =
        std::str::from_utf8(schema).map_err(|_| wrong("found no text, expected a schema".to_owned()))?;
    let schema: Value = serde_json::from_str(text)
        .map_err(|error| wrong(format!("found no JSON, expected a schema: {error}")))?;
    let mut types = Types::default();
    let root = types.add(&schema, "", 0).map_err(wrong)?;
    let mut reader = Reader { types: &types, bytes: values, at: 0, budget: 64 + 4 * values.len() as u64 };
    let mut json = format!("{JSON}\n{text}\n");
    while reader.at < values.len() {
        match reader.value(root, 0) {
            Ok(value) => {
                json += &value.to_string();
                json.push('\n');
            }
            Err(DecodeError::End) => {
                // An incomplete event, which may also be the last line of the JSON form.
                json.push('{');
                break;
            }
            Err(DecodeError::Wrong(what)) => {
                let at = start + reader.at;
                return Err(TraceError::input(file, None, format!("at byte {at}: {what}")));
            }
        }
    }
    Ok(json)
}

/// A type of a schema; named types are referred to by their index in the table.
enum Type {
    Null,
    Boolean,
    /// Of 32 or 64 bits, which are written alike.
    Whole,
    Float,
    Double,
    /// Bytes, and texts, which are written alike.
    Text,
    Fixed(usize),
    Enum(Vec<String>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(String, Vec<(String, usize)>),
}

#[derive(Default)]
struct Types {
    table: Vec<Type>,
    named: BTreeMap<String, usize>,
}

impl Types {
    /// Adds a part of a schema, and returns its index.
    fn add(&mut self, schema: &Value, namespace: &str, depth: usize) -> Result<usize, String> {
        if depth > DEPTH_MAX {
            return Err(format!("found a schema that is nested more than {DEPTH_MAX} deep"));
        }
        match schema {
            Value::String(name) => self.of_name(name, namespace),
            Value::Array(branches) => {
                let branches: Result<_, String> =
                    branches.iter().map(|branch| self.add(branch, namespace, depth + 1)).collect();
                Ok(self.push(Type::Union(branches?)))
            }
            Value::Object(object) => self.of_object(object, namespace, depth),
            _ => Err(format!("found {schema} in a schema, expected a type")),
        }
    }

    fn push(&mut self, of: Type) -> usize {
        self.table.push(of);
        self.table.len() - 1
    }

    fn of_name(&mut self, name: &str, namespace: &str) -> Result<usize, String> {
        let plain = match name {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "int" | "long" => Type::Whole,
            "float" => Type::Float,
            "double" => Type::Double,
            "string" | "bytes" => Type::Text,
            name => {
                let known = self.named.get(&full(name, namespace)).or_else(|| self.named.get(name));
                return known
                    .copied()
                    .ok_or_else(|| format!("found type {name:?} in a schema, which does not define it"));
            }
        };
        Ok(self.push(plain))
    }

    fn of_object(
        &mut self,
        object: &Map<String, Value>,
        namespace: &str,
        depth: usize,
    ) -> Result<usize, String> {
        let kind = object.get("type").ok_or("found a schema without a type")?;
        let within =
            |key: &str| object.get(key).ok_or_else(|| format!("found a schema of {kind} without {key}"));
        let Some(kind) = kind.as_str() else { return self.add(kind, namespace, depth + 1) };
        match kind {
            "array" => {
                let items = self.add(within("items")?, namespace, depth + 1)?;
                Ok(self.push(Type::Array(items)))
            }
            "map" => {
                let values = self.add(within("values")?, namespace, depth + 1)?;
                Ok(self.push(Type::Map(values)))
            }
            "record" | "enum" | "fixed" => {
                let name = within("name")?.as_str().unwrap_or_default();
                let own = object.get("namespace").and_then(Value::as_str);
                let name = full(name, own.unwrap_or(namespace));
                let namespace = name.rsplit_once('.').map_or("", |(namespace, _)| namespace).to_owned();
                // Its index is known before its fields, which may be of the same type.
                let place = self.push(Type::Null);
                self.named.insert(name.clone(), place);
                self.table[place] = match kind {
                    "enum" => Type::Enum(texts(within("symbols")?)),
                    "fixed" => Type::Fixed(within("size")?.as_u64().unwrap_or(0) as usize),
                    _ => Type::Record(name, self.fields(within("fields")?, &namespace, depth)?),
                };
                Ok(place)
            }
            name => self.of_name(name, namespace),
        }
    }

    fn fields(
        &mut self,
        fields: &Value,
        namespace: &str,
        depth: usize,
    ) -> Result<Vec<(String, usize)>, String> {
        let field = |field: &Value| -> Result<(String, usize), String> {
            let name = field.get("name").and_then(Value::as_str).ok_or("found a field without a name")?;
            let of = field.get("type").ok_or_else(|| format!("found field {name:?} without a type"))?;
            Ok((name.to_owned(), self.add(of, namespace, depth + 1)?))
        };
        fields.as_array().into_iter().flatten().map(field).collect()
    }
}

fn full(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}

/// Why a value cannot be decoded.
enum DecodeError {
    /// The bytes end before it does.
    End,
    /// The value is not of its type.
    Wrong(String),
}

struct Reader<'a> {
    types: &'a Types,
    bytes: &'a [u8],
    at: usize,
    /// The limit on further values: values of zero bytes could be without end.
    budget: u64,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], DecodeError> {
        let end =
            self.at.checked_add(count).filter(|end| *end <= self.bytes.len()).ok_or(DecodeError::End)?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// A whole number: seven bits a byte, the lowest first, the sign in the lowest bit of all.
    fn read_integer(&mut self) -> Result<i64, DecodeError> {
        let mut bits = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = u64::from(self.take(1)?[0]);
            bits |= (byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
            }
        }
        Err(DecodeError::Wrong("found a number of more than 10 bytes".to_owned()))
    }

    fn length(&mut self) -> Result<usize, DecodeError> {
        let length = self.read_integer()?;
        usize::try_from(length).map_err(|_| DecodeError::Wrong(format!("found a length of {length}")))
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        let length = self.length()?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// How many items the next block of a list has; 0 at its end. A negative number is followed by the bytes
    /// of the block.
    fn block(&mut self) -> Result<u64, DecodeError> {
        let count = self.read_integer()?;
        if count < 0 {
            self.read_integer()?;
        }
        Ok(count.unsigned_abs())
    }

    fn value(&mut self, of: usize, depth: usize) -> Result<Value, DecodeError> {
        self.budget = self
            .budget
            .checked_sub(1)
            .ok_or_else(|| DecodeError::Wrong("found values without end".to_owned()))?;
        if depth > DEPTH_MAX {
            return Err(DecodeError::Wrong(format!("found values nested more than {DEPTH_MAX} deep")));
        }
        let types = self.types;
        let none = |what: &str, number: i64| {
            DecodeError::Wrong(format!("found {what} {number}, which its type does not have"))
        };
        Ok(match &types.table[of] {
            Type::Null => Value::Null,
            Type::Boolean => Value::Bool(self.take(1)?[0] != 0),
            Type::Whole => self.read_integer()?.into(),
            Type::Float => real(f32::from_le_bytes(self.array()?).into()),
            Type::Double => real(f64::from_le_bytes(self.array()?)),
            Type::Text => self.text()?.into(),
            Type::Fixed(size) => String::from_utf8_lossy(self.take(*size)?).into_owned().into(),
            Type::Enum(symbols) => {
                let number = self.read_integer()?;
                let symbol = usize::try_from(number).ok().and_then(|number| symbols.get(number));
                symbol.ok_or_else(|| none("symbol", number))?.as_str().into()
            }
            Type::Array(items) => {
                let mut list = Vec::new();
                loop {
                    let count = self.block()?;
                    if count == 0 {
                        break Value::Array(list);
                    }
                    for _ in 0..count {
                        list.push(self.value(*items, depth + 1)?);
                    }
                }
            }
            Type::Map(values) => {
                let mut map = Map::new();
                loop {
                    let count = self.block()?;
                    if count == 0 {
                        break Value::Object(map);
                    }
                    for _ in 0..count {
                        map.insert(self.text()?, self.value(*values, depth + 1)?);
                    }
                }
            }
            Type::Union(branches) => {
                let number = self.read_integer()?;
                let branch = usize::try_from(number).ok().and_then(|number| branches.get(number));
                let branch = *branch.ok_or_else(|| none("branch", number))?;
                let value = self.value(branch, depth + 1)?;
                match &types.table[branch] {
                    // As the form in JSON has it.
                    Type::Record(name, _) => Value::Object(Map::from_iter([(name.clone(), value)])),
                    _ => value,
                }
            }
            Type::Record(_, fields) => {
                let mut record = Map::new();
                for (name, of) in fields {
                    record.insert(name.clone(), self.value(*of, depth + 1)?);
                }
                Value::Object(record)
            }
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.take(N)?.try_into().map_err(|_| DecodeError::End)
    }
}

/// A number; any other value is null, as in JSON.
fn real(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Writes values by their schema, for tests alone: the other way round.
    pub(crate) fn binary(json: &str) -> Vec<u8> {
        let mut lines = json.lines();
        assert_eq!(lines.next(), Some(JSON));
        let text = lines.next().expect("a schema");
        let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
        let mut types = Types::default();
        let root = types.add(&schema, "", 0).expect("a schema");
        let mut bytes = [BINARY, text.as_bytes(), b"\n"].concat();
        for line in lines.filter(|line| !line.trim().is_empty()) {
            put(&types, root, &serde_json::from_str(line).expect("a value"), &mut bytes);
        }
        bytes
    }

    fn put_integer(number: i64, out: &mut Vec<u8>) {
        let mut bits = (number << 1) as u64 ^ (number >> 63) as u64;
        while bits > 0x7f {
            out.push((bits & 0x7f) as u8 | 0x80);
            bits >>= 7;
        }
        out.push(bits as u8);
    }

    fn put_text(text: &str, out: &mut Vec<u8>) {
        put_integer(i64::try_from(text.len()).unwrap(), out);
        out.extend(text.as_bytes());
    }

    fn put(types: &Types, of: usize, value: &Value, out: &mut Vec<u8>) {
        match &types.table[of] {
            Type::Null => {}
            Type::Boolean => out.push(u8::from(value.as_bool().expect("a truth value"))),
            Type::Whole => put_integer(value.as_i64().expect("a whole number"), out),
            Type::Float => out.extend((value.as_f64().expect("a number") as f32).to_le_bytes()),
            Type::Double => out.extend(value.as_f64().expect("a number").to_le_bytes()),
            Type::Text => put_text(value.as_str().expect("a text"), out),
            Type::Fixed(_) => out.extend(value.as_str().expect("a text").as_bytes()),
            Type::Enum(symbols) => {
                let symbol = symbols.iter().position(|symbol| Some(symbol.as_str()) == value.as_str());
                put_integer(i64::try_from(symbol.expect("a symbol")).unwrap(), out);
            }
            Type::Array(items) => {
                for item in value.as_array().expect("a list") {
                    put_integer(1, out);
                    put(types, *items, item, out);
                }
                out.push(0);
            }
            Type::Map(values) => {
                for (key, value) in value.as_object().expect("a map") {
                    put_integer(1, out);
                    put_text(key, out);
                    put(types, *values, value, out);
                }
                out.push(0);
            }
            Type::Union(branches) => {
                let only = value.as_object().and_then(|object| object.iter().next());
                let fits = |branch: &&usize| match (&types.table[**branch], value) {
                    (Type::Null, Value::Null) | (Type::Text, Value::String(_)) => true,
                    (Type::Record(name, _), _) => only.is_some_and(|(key, _)| key == name),
                    (Type::Text, _) => only.is_some_and(|(key, _)| key == "string"),
                    (Type::Whole, _) => value.is_i64(),
                    (Type::Array(_), _) => value.is_array() || only.is_some_and(|(key, _)| key == "array"),
                    _ => false,
                };
                let branch = branches.iter().position(|branch| fits(&branch)).expect("a branch");
                put_integer(i64::try_from(branch).unwrap(), out);
                let is_wrapped = value.is_object();
                put(types, branches[branch], if is_wrapped { only.expect("a value").1 } else { value }, out);
            }
            Type::Record(_, fields) => {
                for (name, of) in fields {
                    put(types, *of, &value[name], out);
                }
            }
        }
    }

    const SCHEMA: &str = r#"{"type":"record","name":"E","namespace":"n","fields":[
        {"name":"k","type":{"type":"enum","name":"K","symbols":["A","B"]}},
        {"name":"l","type":{"type":"array","items":"long"}},{"name":"m","type":{"type":"map","values":"E"}},
        {"name":"u","type":["null","string",{"type":"record","name":"R","fields":[{"name":"d","type":"double"}]}]}]}"#;

    #[test]
    fn values_are_read_by_their_schema() {
        let schema = SCHEMA.replace('\n', "");
        let rows = [
            r#"{"k":"B","l":[0,-1,64,9223372036854775807,-9223372036854775808],"m":{},"u":null}"#,
            r#"{"k":"A","l":[],"m":{"x":{"k":"A","l":[],"m":{},"u":"é"}},"u":{"n.R":{"d":0.5}}}"#,
        ];
        let json = format!("{JSON}\n{schema}\n{}\n{}\n", rows[0], rows[1]);
        let bytes = binary(&json);
        assert_eq!(as_json("f", &bytes).unwrap().unwrap(), json);
        // The end of a file that is still written is like the end of one in JSON.
        let cut = as_json("f", &bytes[..bytes.len() - 3]).unwrap().unwrap();
        assert_eq!(cut, format!("{JSON}\n{schema}\n{}\n{{", rows[0]));
        assert!(as_json("f", json.as_bytes()).is_none());
    }

    #[test]
    fn invalid_values_are_refused_with_their_byte() {
        let error = |schema: &str, values: &[u8]| {
            let bytes = [BINARY, schema.as_bytes(), b"\n", values].concat();
            as_json("f", &bytes).unwrap().unwrap_err().to_string()
        };
        let symbols = r#"{"type":"enum","name":"K","symbols":["A"]}"#;
        assert_eq!(error(symbols, &[0, 2]), "f: at byte 57: found symbol 1, which its type does not have");
        assert!(
            error(r#"{"type":"array","items":"null"}"#, &[0xfe, 0xff, 0xff, 0xff, 0x0f, 0])
                .contains("without end")
        );
        assert!(error("\"K\"", &[]).starts_with("f:2:1: found type \"K\" in a schema"));
        assert!(error("[", &[]).starts_with("f:2:1: found no JSON"));
        assert!(error("\"string\"", &[1, 0]).contains("found a length of -1"));
        let nested = r#"{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}"#;
        assert!(error(nested, &[0]).contains("nested more than 64 deep"));
        assert!(as_json("f", b"Avro-Binary\n{").unwrap().is_err());
    }
}
