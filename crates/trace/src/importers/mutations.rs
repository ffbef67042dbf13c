//! Damaged files: every importer says what is wrong with them, and where, or makes a workload that can be written and read
//! again. `SLACKLINE_SCALE` multiplies how many are tried.

use slackline_model::Seed;

use crate::Format;
use crate::import::read_workload;
use crate::options::ImportOptions;
use crate::random;
use crate::workload::write_workload;

/// How many damaged files a test tries of each format.
const TRIED: u64 = 2_000;

/// Bytes that mean something in most formats.
const MARKS: &[u8] = b"{}[]\"\\:,.-0919eE \n\t\x00\xff";

/// Reads damaged copies of a file in a format; `words` are put in at random too.
///
/// # Panics
/// If one of them is refused without saying in which file, or made into what is no document of ours.
pub(super) fn survives(format: &str, good: &[u8], words: &[&str]) {
    let name = "damaged";
    let options = ImportOptions::default();
    read_workload(name, good, Some(format), &options).expect("the file is good before it is damaged");
    let scale: u64 = std::env::var("SLACKLINE_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    for k in 0..TRIED * scale {
        let mut rng = random::rng(Seed(7), "damaged files", k);
        let bytes = damaged(good, words, |n| random::integer(&mut rng, 0, n - 1) as usize);
        match read_workload(name, &bytes, Some(format), &options) {
            Err(error) => assert!(error.to_string().starts_with(name), "{k}: {error}"),
            Ok(imported) => {
                let text = write_workload(&imported.draft, Format::Json);
                let again = read_workload("again.json", text.as_bytes(), Some("json"), &options);
                assert_eq!(again.map(|read| read.draft), Ok(imported.draft), "{k}");
            }
        }
    }
}

/// A copy with a few changes: bytes replaced, removed, doubled, words put in, the end cut off. `below` draws a number below
/// another.
fn damaged(good: &[u8], words: &[&str], mut below: impl FnMut(u64) -> usize) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=below(3) {
        let at = below(bytes.len() as u64 + 1);
        let end = (at + below(20)).min(bytes.len());
        match below(12) {
            0 => bytes.truncate(at),
            1 | 2 => drop(bytes.splice(at..end, [])),
            3 | 4 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            5..8 => {
                let word = words[below(words.len() as u64)];
                bytes.splice(at..end, word.bytes());
            }
            _ => {
                let mark = MARKS[below(MARKS.len() as u64)];
                bytes.splice(at..(at + 1).min(bytes.len()), [mark]);
            }
        }
    }
    bytes
}
