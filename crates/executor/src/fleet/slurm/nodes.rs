//! Lists of nodes and of their processors, as Slurm writes them: `n[1-3,7],gpu01` and `2(x3),4`.

/// More than this is no list of nodes.
const MOST: usize = 100_000;

/// The nodes of a list. O(nodes).
///
/// # Errors
/// What was found and what was expected.
pub(crate) fn names(list: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("found the list of nodes {list:?}, expected one such as n[1-3,7],gpu01");
    let mut all = Vec::new();
    for item in items(list).ok_or_else(wrong)? {
        all.extend(expanded(item).ok_or_else(wrong)?);
        if item.is_empty() || all.len() > MOST {
            return Err(wrong());
        }
    }
    Ok(all)
}

/// What is between commas that are in no brackets; nothing if brackets do not close.
fn items(list: &str) -> Option<Vec<&str>> {
    let (mut items, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '[' if !is_inside => is_inside = true,
            ']' if is_inside => is_inside = false,
            '[' | ']' => return None,
            ',' if !is_inside => {
                items.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[begin..]);
    (!is_inside).then_some(items)
}

/// The names that an item with brackets stands for.
fn expanded(item: &str) -> Option<Vec<String>> {
    let Some((head, rest)) = item.split_once('[') else { return Some(vec![item.to_owned()]) };
    let (numbers, tail) = rest.split_once(']')?;
    let tails = expanded(tail)?;
    let mut all = Vec::new();
    for range in numbers.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u32>().ok())?;
        let (low, high) = (number(first)?, number(last)?);
        if low > high || (high - low) as usize >= MOST {
            return None;
        }
        for n in low..=high {
            // Zeros in front stay.
            let width = first.len();
            all.extend(tails.iter().map(|tail| format!("{head}{n:0width$}{tail}")));
        }
        if all.len() > MOST {
            return None;
        }
    }
    Some(all)
}

/// How many processors each node has, in the order of the nodes.
///
/// # Errors
/// What was found and what was expected.
pub(crate) fn processors(list: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("found the processors {list:?}, expected a list such as 2(x3),4");
    let mut all = Vec::new();
    for item in list.split(',') {
        let (each, times) = match item.strip_suffix(')').and_then(|item| item.split_once("(x")) {
            Some((each, times)) => {
                (each, times.parse().ok().filter(|&times| times <= MOST).ok_or_else(wrong)?)
            }
            None => (item, 1),
        };
        let each = each.parse::<u32>().ok().filter(|&each| each > 0).ok_or_else(wrong)?;
        all.extend(std::iter::repeat_n(each, times));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_those_that_slurm_writes() {
        assert_eq!(names("n[1-3]").unwrap(), ["n1", "n2", "n3"]);
        assert_eq!(names("n[008-010,7],gpu01").unwrap(), ["n008", "n009", "n010", "n7", "gpu01"]);
        assert_eq!(names("r[0-1]n[1,3]x").unwrap(), ["r0n1x", "r0n3x", "r1n1x", "r1n3x"]);
        for wrong in
            ["", "n[1-3", "n1-3]", "n[3-1]", "n[a]", "n[1-]", "a,,b", "n[[1]]", "n[0-4294967295]", "n[+1]"]
        {
            assert!(names(wrong).unwrap_err().contains("expected one such as n[1-3,7]"), "{wrong}");
        }
    }

    #[test]
    fn processors_are_repeated_by_their_count() {
        assert_eq!(processors("2(x3),4").unwrap(), [2, 2, 2, 4]);
        assert_eq!(processors("16").unwrap(), [16]);
        for wrong in ["", "2(x)", "0", "2(3)", "x", "2(x99999999)"] {
            assert!(processors(wrong).unwrap_err().contains("expected a list such as 2(x3),4"), "{wrong}");
        }
    }
}
