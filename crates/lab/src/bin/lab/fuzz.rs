//! `cargo xtask fuzz`: damaged inputs for every importer.
//!
//! An input follows from the format, the seed and its number, so that one that fails is tried again by these. It is written
//! to `target/fuzz` with the files beside it. What may not happen: a panic, a message that is not for people, a workload that
//! cannot be written and read again, an input that takes more than seconds or gigabytes.
//!
//! - `damage`: damaged copies of good inputs; `corpus`: which are good;
//! - `trial`: what is done with each, and what must hold;
//! - `folders`: the same of formats that are read as folders;
//! - `guard`: panics, time and memory.

mod corpus;
mod damage;
mod folders;
mod guard;
mod trial;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use slackline_model::Seed;
use slackline_model::params::Values;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_trace::{Compression, Importer, Importers};

use corpus::Corpus;
use damage::Damage;
use folders::FolderTarget;
use guard::Guard;
use trial::{Input, Verdict};

use crate::{eprint, pages::ROOT};

/// How many inputs each target gets unless the command says.
const INPUTS: u64 = 20_000;

/// After how many inputs a line says how far it is.
const REPORTED: u64 = 50_000;

/// How many failures of a target are shown.
const SHOWN: u64 = 20;

/// The longest text of a kind of message that is shown, characters.
const KIND_MAX: usize = 150;

/// Damaged inputs for importers.
pub(crate) struct Fuzz {
    /// Formats by name, folders of them as `NAME/`; all if none is named.
    targets: Vec<String>,
    inputs: u64,
    from: u64,
    seed: u64,
    /// Whether every input is written to files before it is tried, and not only those that fail.
    keeps_all: bool,
}

/// What a format, or its folders, are tried with.
trait Target {
    /// What became of the input of that number.
    fn tried(&self, rng: &mut ChaCha8Rng) -> Verdict;

    /// Files of the input of that number, by their names.
    fn files(&self, rng: &mut ChaCha8Rng) -> Vec<(String, Vec<u8>)>;
}

impl Fuzz {
    /// From the arguments; `None` if they name no command.
    pub(crate) fn of(args: &[String], fresh: impl FnOnce() -> u32) -> Option<Self> {
        let mut numbers = BTreeMap::new();
        let (mut targets, mut keeps_all) = (Vec::new(), false);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.strip_prefix("--") {
                Some(option @ ("inputs" | "from" | "seed")) => {
                    numbers.insert(option, args.next()?.parse().ok()?);
                }
                Some("keep") => keeps_all = true,
                None if names().contains(arg) => targets.push(arg.clone()),
                Some(_) | None => return None,
            }
        }
        let number = |option: &str| numbers.get(option).copied();
        Some(Self {
            targets: if targets.is_empty() { names() } else { targets },
            inputs: number("inputs").unwrap_or(INPUTS),
            from: number("from").unwrap_or(0),
            seed: number("seed").unwrap_or_else(|| u64::from(fresh())),
            keeps_all,
        })
    }

    /// Tries all inputs; the exit code says whether all went well.
    ///
    /// # Errors
    /// No good files; files that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let seed = self.seed;
        eprint(&format!(
            "seed {seed}; to repeat one: cargo xtask fuzz FORMAT --seed {seed} --from NUMBER --inputs 1\n"
        ));
        let guard = Guard::start();
        let mut failures = 0;
        for name in &self.targets {
            failures += self.run_target(name, &guard)?;
        }
        Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Tries the inputs of a target; how many failed.
    fn run_target(&self, name: &str, guard: &Guard) -> anyhow::Result<u64> {
        let target = target(name)?;
        let mut tally = Tally::default();
        for k in self.from..self.from + self.inputs {
            let rng = || random::rng(Seed(self.seed), &format!("fuzz {name}"), k);
            if self.keeps_all {
                self.kept(name, k, &target.files(&mut rng()))?;
            }
            let verdict = guard.watch(name, k, || target.tried(&mut rng()));
            if let Verdict::Wrong(what) = &verdict
                && tally.wrong < SHOWN
            {
                let folder = self.kept(name, k, &target.files(&mut rng()))?;
                eprint(&format!("{name} {k}: {what}\n  kept in {folder}\n"));
            }
            tally.count(verdict);
            if (k + 1 - self.from).is_multiple_of(REPORTED) {
                eprint(&format!("{name} {}: {}\n", k + 1, tally.line(guard)));
            }
        }
        eprint(&format!("{name}: {}\n{}", tally.line(guard), tally.without_place()));
        Ok(tally.wrong)
    }

    /// Writes the files of an input where they can be looked at.
    fn kept(&self, name: &str, k: u64, files: &[(String, Vec<u8>)]) -> anyhow::Result<String> {
        let folder = format!("target/fuzz/{}-{}-{k}", name.trim_end_matches('/'), self.seed);
        for (name, bytes) in files {
            let path = Path::new(ROOT).join(&folder).join(name);
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(path, bytes)?;
        }
        Ok(folder)
    }
}

/// Every format, and `NAME/` of those that are read as folders.
fn names() -> Vec<String> {
    let importers = Importers::default();
    let files = importers.names().map(str::to_owned);
    let folders = importers.all().iter().filter(|known| known.folder.is_some());
    files.chain(folders.map(|known| format!("{}/", known.name))).collect()
}

fn target(name: &str) -> anyhow::Result<Box<dyn Target>> {
    let importers = Importers::default();
    let importer = *importers.get(name.trim_end_matches('/')).expect("names are of importers");
    Ok(if name.ends_with('/') {
        Box::new(FolderTarget::of(importer)?)
    } else {
        Box::new(FileTarget::of(importer)?)
    })
}

/// Files of a format, and texts beside them.
struct FileTarget {
    importer: Importer,
    files: Damage,
    beside: BTreeMap<&'static str, (Vec<String>, Damage)>,
}

impl FileTarget {
    fn of(importer: Importer) -> anyhow::Result<Self> {
        let corpus = Corpus::of(&importer)?;
        let texts =
            |texts: &[Vec<u8>]| texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        let beside = corpus.beside.into_iter().map(|(name, good)| (name, (texts(&good), Damage::of(good))));
        Ok(Self { importer, files: Damage::of(corpus.good), beside: beside.collect() })
    }

    fn input(&self, rng: &mut ChaCha8Rng) -> Input {
        let mut file = self.files.input(rng);
        if random::chance(rng, 0.01) {
            file = compressed(&file, rng);
        }
        let mut beside = BTreeMap::new();
        for param in self.importer.params {
            if random::chance(rng, 0.6) {
                continue;
            }
            let any = |rng: &mut ChaCha8Rng, n: usize| random::integer(rng, 0, n as u64 - 1) as usize;
            if let Values::Choice(words) = param.values {
                beside.insert(param.name, words[any(rng, words.len())].to_owned());
            }
            if let Some((good, damage)) = self.beside.get(param.name) {
                let is_good = random::chance(rng, 0.5);
                let text =
                    if is_good { good[any(rng, good.len())].clone() } else { lossy(&damage.input(rng)) };
                beside.insert(param.name, text);
            }
        }
        Input {
            file,
            beside,
            is_named: random::chance(rng, 0.9),
            has_cluster: random::chance(rng, 0.3),
            is_simulated: random::chance(rng, 0.25),
        }
    }
}

impl Target for FileTarget {
    fn tried(&self, rng: &mut ChaCha8Rng) -> Verdict {
        trial::tried(&self.importer, &self.input(rng))
    }

    fn files(&self, rng: &mut ChaCha8Rng) -> Vec<(String, Vec<u8>)> {
        let Input { file, beside, .. } = self.input(rng);
        let ending = self.importer.endings.first().map_or(String::new(), |ending| format!(".{ending}"));
        let beside = beside.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes()));
        [(format!("input{ending}"), file)].into_iter().chain(beside).collect()
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The bytes compressed, and damaged once more.
fn compressed(bytes: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    const WAYS: [Compression; 3] = [Compression::Gzip, Compression::Zstd, Compression::Lz4];
    let way = WAYS[random::integer(rng, 0, 2) as usize];
    let mut out = Vec::new();
    way.write(&mut out, |out| out.write_all(bytes)).expect("memory can be written");
    if random::chance(rng, 0.5) {
        let at = random::integer(rng, 0, out.len() as u64 - 1) as usize;
        out[at] = random::integer(rng, 0, 255) as u8;
    }
    out
}

/// What became of the inputs of a target.
#[derive(Default)]
struct Tally {
    read: u64,
    refused: u64,
    wrong: u64,
    /// Messages without a place, numbers and quoted words left out, with counts.
    without_place: BTreeMap<String, u64>,
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Read => self.read += 1,
            Verdict::Wrong(_) => self.wrong += 1,
            Verdict::Refused(text, is_placed) => {
                self.refused += 1;
                if !is_placed {
                    *self.without_place.entry(kind(&text)).or_default() += 1;
                }
            }
        }
    }

    fn line(&self, guard: &Guard) -> String {
        let without: u64 = self.without_place.values().sum();
        format!(
            "{} read, {} refused ({without} of them without a place), {} wrong; the slowest took {:.2} s, at most {} MiB",
            self.read,
            self.refused,
            self.wrong,
            guard.slowest_seconds(),
            guard::peak_mebibytes()
        )
    }

    /// The messages without a place, the most frequent first.
    fn without_place(&self) -> String {
        let mut kinds: Vec<_> = self.without_place.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let lines =
            kinds.into_iter().take(SHOWN as usize).map(|(kind, count)| format!("  {count} × {kind}\n"));
        lines.collect::<Vec<_>>().concat()
    }
}

/// A message without numbers and quoted words.
fn kind(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let unquoted = first.split('"').step_by(2).flat_map(str::chars);
    unquoted.filter(|c| !c.is_ascii_digit()).take(KIND_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_importer_survives_damage() {
        let guard = Guard::start();
        for name in names() {
            let fuzz = Fuzz { targets: vec![], inputs: 150, from: 0, seed: 1, keeps_all: false };
            assert_eq!(fuzz.run_target(&name, &guard).unwrap(), 0, "{name}");
        }
    }

    #[test]
    fn arguments_name_formats_folders_and_numbers() {
        let of =
            |args: &[&str]| Fuzz::of(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), || 5);
        let fuzz = of(&["jhist/", "--inputs", "7", "swf"]).unwrap();
        assert_eq!(
            (fuzz.targets.as_slice(), fuzz.inputs, fuzz.seed),
            (["jhist/".to_owned(), "swf".into()].as_slice(), 7, 5)
        );
        assert!(of(&["--inputs"]).is_none() && of(&["word"]).is_none() && of(&["--word", "1"]).is_none());
        assert!(of(&[]).unwrap().targets.len() > 18);
    }
}
