//! `generate-text`: lines of random words whose frequencies follow Zipf's law.

use rand_chacha::rand_core::Rng;

use crate::base::error::TaskError;
use crate::programs::arguments::Argument;
use crate::programs::contract::{Generator, Info, Make};
use crate::programs::generator::{maps, rng, share};
use crate::shuffle::part::Part;

pub(crate) const INFO: Info = Info {
    name: "generate-text",
    about: "generates text: lines of 5 to 15 words, whose frequencies follow Zipf's law; one part per map",
    arguments: &[
        Argument {
            name: "bytes",
            about: "size of the text, such as 64MiB; the last line of each part may exceed it",
        },
        Argument { name: "maps", about: "number of maps (one for every 64 MiB)" },
        Argument { name: "words", about: "number of distinct words (50000)" },
        Argument { name: "exponent", about: "the exponent of Zipf's law (1)" },
        Argument { name: "seed", about: "the seed of the random numbers (0)" },
    ],
    inputs: 0..=0,
    make: Make::Generator(|arguments| {
        let bytes = arguments.required("bytes", arguments.bytes("bytes")?)?;
        let words = arguments.whole("words")?.unwrap_or(50_000);
        if !(1..=1_000_000).contains(&words) {
            return Err(arguments.problem("words", &format!("found {words}, expected 1 to 1000000")));
        }
        Ok(Box::new(GenerateText {
            bytes,
            maps: maps(arguments, bytes.div_ceil(64 << 20))?,
            words: words as u32,
            exponent: arguments.positive("exponent")?.unwrap_or(1.0),
            seed: arguments.whole("seed")?.unwrap_or(0),
        }))
    }),
};

struct GenerateText {
    bytes: u64,
    maps: u32,
    words: u32,
    exponent: f64,
    seed: u64,
}

impl Generator for GenerateText {
    fn maps(&self) -> u32 {
        self.maps
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn generate(&self, index: u32, maps: u32, part: &mut Part) -> Result<(), TaskError> {
        let zipf = Zipf::new(self.words, self.exponent);
        let words: Vec<Vec<u8>> = (0..self.words).map(word).collect();
        let mut rng = rng(self.seed, index);
        let share = share(self.bytes, index, maps);
        let mut left = share.end - share.start;
        let mut line = Vec::new();
        while left > 0 {
            line.clear();
            let mut bits = rng.next_u64();
            for nth in 0..5 + bits % 11 {
                if nth > 0 {
                    line.push(b' ');
                }
                bits = rng.next_u64();
                line.extend_from_slice(&words[zipf.draw(bits) as usize]);
            }
            part.line(&line)?;
            left = left.saturating_sub(line.len() as u64 + 1);
        }
        Ok(())
    }
}

/// The word of a rank: a bijection of numbers to syllables, so that frequent words are short.
fn word(rank: u32) -> Vec<u8> {
    const CONSONANTS: &[u8; 16] = b"tnsrlhdcmpgbfvkw";
    const VOWELS: &[u8; 5] = b"eaoiu";
    let mut rest = rank;
    let mut word = Vec::new();
    loop {
        let syllable = (rest % 80) as usize;
        word.extend_from_slice(&[CONSONANTS[syllable / 5], VOWELS[syllable % 5]]);
        if rest < 80 {
            return word;
        }
        rest = rest / 80 - 1;
    }
}

/// Ranks with probabilities proportional to 1 / (rank + 1)^exponent, drawn in constant time by
/// Walker's alias method (Walker 1977; the tables as Vose 1991 makes them).
struct Zipf {
    /// For each rank: the probability that it keeps its column (of 2^32), and the rank of the rest.
    columns: Vec<(u64, u32)>,
}

impl Zipf {
    fn new(n: u32, exponent: f64) -> Self {
        let weights: Vec<f64> = (1..=n).map(|rank| libm::pow(f64::from(rank), -exponent)).collect();
        let mean = weights.iter().sum::<f64>() / f64::from(n);
        let mut heights: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut columns: Vec<(u64, u32)> = (0..n).map(|rank| (1 << 32, rank)).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n).partition(|&rank| heights[rank as usize] < 1.0);
        while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
            let height = heights[low as usize];
            columns[low as usize] = ((height * (1u64 << 32) as f64) as u64, high);
            heights[high as usize] -= 1.0 - height;
            if heights[high as usize] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Zipf { columns }
    }

    fn draw(&self, bits: u64) -> u32 {
        let rank = ((bits >> 32) * self.columns.len() as u64) >> 32;
        let (kept, other) = self.columns[rank as usize];
        if bits & 0xffff_ffff < kept { rank as u32 } else { other }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_differ() {
        let words: BTreeSet<_> = (0..100_000).map(word).collect();
        assert_eq!(words.len(), 100_000);
        assert_eq!(word(0), b"te");
    }

    #[test]
    fn frequencies_follow_zipf() {
        let zipf = Zipf::new(100, 1.0);
        let mut rng = rng(1, 0);
        let mut counts = [0u32; 100];
        for _ in 0..200_000 {
            counts[zipf.draw(rng.next_u64()) as usize] += 1;
        }
        let harmonic: f64 = (1..=100).map(|rank| 1.0 / f64::from(rank)).sum();
        for rank in [0, 1, 9, 49] {
            let expected = 200_000.0 / harmonic / (rank + 1) as f64;
            let found = f64::from(counts[rank]);
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {found}, not {expected}");
        }
    }
}
