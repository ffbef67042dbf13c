//! Parses numbers of all three forms and the plain scalars of YAML.

use std::borrow::Cow;

use super::Value;

/// A decimal number; `Err` has the reason why it cannot be used.
pub(super) fn decimal(token: &str) -> Result<Value<'static>, String> {
    if let Ok(n) = token.parse() {
        return Ok(Value::Whole(n));
    }
    match token.parse::<i64>() {
        Ok(0) => Ok(Value::Whole(0)),
        Ok(n) => Ok(Value::Negative(n)),
        Err(_) => match token.parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(Value::Real(x)),
            _ => Err(out_of_range(token)),
        },
    }
}

/// A whole number of another base than ten, its digits without the mark of the base.
pub(super) fn based(digits: &str, base: u32) -> Result<Value<'static>, String> {
    u64::from_str_radix(digits, base).map(Value::Whole).map_err(|_| out_of_range(digits))
}

fn out_of_range(token: &str) -> String {
    format!("found {token}, a number out of range")
}

/// The value of a plain YAML scalar: the core schema of YAML 1.2, section 10.3.2.
pub(super) fn plain(token: Cow<'_, str>) -> Result<Value<'_>, String> {
    Ok(match &*token {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Value::Real(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Value::Real(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Value::Real(f64::NAN),
        token if is_decimal(token) => return decimal(token),
        _ => match based_digits(&token) {
            Some((digits, base)) => return based(digits, base),
            None => Value::Text(token),
        },
    })
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_decimal(token: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = token.strip_prefix(['-', '+']).unwrap_or(token);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_exponent = |text: &str| {
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        !text.is_empty() && digits(text)
    };
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(is_exponent)
}

/// The digits after `0o` or `0x`, and the base.
fn based_digits(token: &str) -> Option<(&str, u32)> {
    let (digits, base) = match token.get(..2)? {
        "0o" => (&token[2..], 8),
        "0x" => (&token[2..], 16),
        _ => return None,
    };
    (!digits.is_empty() && digits.chars().all(|c| c.is_digit(base))).then_some((digits, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let cases = [
            ("", "Null"),
            ("~", "Null"),
            ("True", "Bool(true)"),
            ("yes", "Text(\"yes\")"),
            ("tRue", "Text(\"tRue\")"),
            ("012", "Whole(12)"),
            ("+7", "Whole(7)"),
            ("-0", "Whole(0)"),
            ("-7", "Negative(-7)"),
            ("0o17", "Whole(15)"),
            ("0xfF", "Whole(255)"),
            ("0x", "Text(\"0x\")"),
            ("0b1", "Text(\"0b1\")"),
            ("1_000", "Text(\"1_000\")"),
            ("1.", "Real(1.0)"),
            (".5e1", "Real(5.0)"),
            (".", "Text(\".\")"),
            ("-", "Text(\"-\")"),
            ("1e", "Text(\"1e\")"),
            ("-.inf", "Real(-inf)"),
            (".NaN", "Real(NaN)"),
            ("inf", "Text(\"inf\")"),
            ("nan", "Text(\"nan\")"),
            ("06:00", "Text(\"06:00\")"),
            ("18446744073709551615", "Whole(18446744073709551615)"),
            ("18446744073709551616", "Real(1.8446744073709552e19)"),
        ];
        for (token, expected) in cases {
            assert_eq!(format!("{:?}", plain(token.into()).unwrap()), expected, "{token}");
        }
        assert_eq!(plain("1e999".into()).unwrap_err(), "found 1e999, a number out of range");
        assert!(plain("0xfffffffffffffffff".into()).is_err());
    }
}
