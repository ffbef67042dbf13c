//! Reads sizes in bytes, such as `512MiB`.

/// Bytes: a whole number above 0, with a unit if one follows it (`KiB`, `MiB`, `GiB`, `TiB`, or `kB`, `MB`,
/// `GB`, `TB`; capital and small letters are the same).
pub fn parse(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[digits..].trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn units_are_those_of_powers_of_two_and_of_ten() {
        let sizes = ["7", "7 B", "10KB", "10kB", "64MiB", "2 GB", "1tib"].map(parse);
        let expected = [7, 7, 10_000, 10_000, 64 << 20, 2_000_000_000, 1 << 40].map(Some);
        assert_eq!(sizes, expected);
        for wrong in ["", "0", "MiB", "1.5MiB", "10K", "-1", "99999999999TB"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
