//! The samples that figures are averaged over: files, and pieces of a workload such as its days, or else seeds.
//! Each is simulated by itself, from an empty cluster.

use slackline::import::{ImportError, Loaded, PieceSpan, Source, WorkloadOptions};
use slackline::report::number::counted;
use slackline::report::spread;
use slackline::simulate::QuickBound;
use slackline_trace::sha256;

/// The samples that are asked for.
pub(super) struct Samples<'a> {
    pub(super) sources: &'a [Source],
    /// How workloads are cut, if they are.
    pub(super) every: Option<PieceSpan>,
}

/// A workload, or a piece of one. Samples that differ only in the seed of the simulation share it.
pub(super) struct Sample {
    /// The name of the piece, where workloads are cut.
    piece: Option<String>,
    pub(super) loaded: Loaded,
    /// The bound of the prepared workload.
    pub(super) bound: QuickBound,
}

impl Samples<'_> {
    /// Whether there are others than seeds.
    pub(super) fn are_named(&self) -> bool {
        self.sources.len() > 1 || self.every.is_some()
    }

    /// What one of them is called.
    pub(super) fn word(&self) -> &'static str {
        match (self.sources, self.every) {
            ([_], Some(every)) => every.word(),
            ([_], None) => spread::SEED,
            (_, None) => "file",
            _ => "sample",
        }
    }

    /// Those of a file with a seed on that cluster, not prepared.
    pub(super) fn of(
        &self,
        source: &Source,
        shape: &WorkloadOptions,
        seed: u64,
    ) -> Result<Vec<Sample>, ImportError> {
        let shaped = source.shape(&WorkloadOptions { seed: Some(seed), ..shape.clone() })?;
        shaped.refuse_waiting()?;
        let pieces = match self.every {
            None => vec![(None, shaped)],
            Some(every) => {
                shaped.pieces(every)?.into_iter().map(|(name, piece)| (Some(name), piece)).collect()
            }
        };
        let sample = |(piece, shaped): (Option<String>, slackline::import::Shaped)| {
            Ok(Sample { piece, loaded: shaped.into_loaded()?, bound: QuickBound::default() })
        };
        pieces.into_iter().map(sample).collect()
    }

    /// The file or the piece, where there are several.
    pub(super) fn name(&self, source: &Source, sample: &Sample) -> Option<String> {
        let file = (self.sources.len() > 1).then(|| source.short_name().to_owned());
        let parts: Vec<String> = [file, sample.piece.clone()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// What all of them are of, for headlines: the name of the file, or of the first and the last.
    pub(super) fn title(&self) -> String {
        match self.sources {
            [only] => only.short_name().to_owned(),
            [first, .., last] => {
                format!(
                    "{} from {} to {}",
                    counted(self.sources.len() as u64, "file"),
                    first.short_name(),
                    last.short_name()
                )
            }
            [] => String::new(),
        }
    }

    /// The hash of the file, or of the hashes and names of all.
    pub(super) fn sha256(&self) -> String {
        match self.sources {
            [only] => sha256(&only.bytes),
            several => {
                let line = |source: &Source| format!("{}  {}\n", sha256(&source.bytes), source.short_name());
                sha256(several.iter().map(line).collect::<String>().as_bytes())
            }
        }
    }
}
