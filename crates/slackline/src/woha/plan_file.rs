//! A plan file. The submitting client creates it, and the scheduler follows its plans.
//!
//! The format: the letters `SLKPLAN`, a version byte, the policy that made the plans (with parameters) and
//! the number of plans. Then for each plan: the id of its flow, its length and its compact encoding
//! (`slackline_algo::woha::plan`). At the end: the CRC-32 of all preceding bytes, four bytes, little-endian.
//! A text is its length in bytes followed by UTF-8. A number is a varint with seven bits per byte, low bits
//! first.

use std::collections::BTreeMap;

use slackline_algo::woha::plan::Mismatch;
use slackline_algo::woha::{Plan, PlanError};
use slackline_model::names::unknown;
use slackline_model::{FlowId, Instance};

const MAGIC: &[u8] = b"SLKPLAN";
const VERSION: u8 = 1;
/// The length of the CRC at the end, bytes.
const TAIL: usize = 4;

/// Plans of flows, by the ids of the flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanFile {
    /// The policy that made them, with parameters.
    pub policy: String,
    /// A flow and its plan.
    pub plans: Vec<(String, Plan)>,
}

/// The reason why bytes are no plan file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFileError {
    /// The signature is missing.
    #[error(
        "found a file that does not begin with SLKPLAN, expected plans as slackline plan --output writes them"
    )]
    NoPlans,
    /// An unsupported version.
    #[error("found plans of version {0}, expected version {VERSION}")]
    Version(u8),
    /// The checksum is wrong.
    #[error(
        "found plans whose check sum is {found:08x}, expected {expected:08x}; the file was cut or changed"
    )]
    Sum {
        /// The checksum of the bytes.
        found: u32,
        /// The checksum in the file.
        expected: u32,
    },
    /// The file is truncated or too long, or a text is invalid.
    #[error("the plans are cut off or damaged at byte {0}")]
    Broken(usize),
    /// A plan is invalid.
    #[error("plan of flow {flow:?}: {problem}")]
    Plan {
        /// Its flow.
        flow: String,
        /// The error.
        problem: PlanError,
    },
}

/// The reason why a plan does not fit a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanMismatch {
    /// An unknown flow.
    #[error("found a plan of another workload: {}", unknown("flow", .found, .known))]
    Flow {
        /// The flow of the plan.
        found: String,
        /// The known flows.
        known: Vec<String>,
    },
    /// A second plan for a flow.
    #[error("found a second plan of flow {0:?}, expected one")]
    Twice(String),
    /// The flow differs from the one that the plan was made for.
    #[error("flow {flow:?}: {mismatch}")]
    Shape {
        /// The flow.
        flow: String,
        /// The difference.
        mismatch: Mismatch,
    },
}

impl PlanFile {
    /// Whether bytes have the signature of a plan file; they may still be invalid.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        put(&mut out, self.policy.as_bytes());
        put_number(&mut out, self.plans.len());
        for (flow, plan) in &self.plans {
            put(&mut out, flow.as_bytes());
            put(&mut out, &plan.encode());
        }
        let sum = crc32fast::hash(&out);
        out.extend(sum.to_le_bytes());
        out
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Bytes that [`Self::encode`] does not write. Memory is allocated only for data that is present.
    pub fn decode(bytes: &[u8]) -> Result<Self, PlanFileError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Err(PlanFileError::NoPlans) };
        match rest.first() {
            None => return Err(PlanFileError::Broken(bytes.len())),
            Some(&VERSION) => {}
            Some(&other) => return Err(PlanFileError::Version(other)),
        }
        let Some((body, tail)) = bytes.split_last_chunk::<TAIL>() else {
            return Err(PlanFileError::Broken(bytes.len()));
        };
        let (found, expected) = (crc32fast::hash(body), u32::from_le_bytes(*tail));
        if found != expected {
            return Err(PlanFileError::Sum { found, expected });
        }
        let mut reader = Reader { bytes: body, at: MAGIC.len() + 1 };
        let policy = reader.text()?;
        let mut plans = Vec::new();
        for _ in 0..reader.number()? {
            let flow = reader.text()?;
            let plan = Plan::decode(reader.block()?)
                .map_err(|problem| PlanFileError::Plan { flow: flow.clone(), problem })?;
            plans.push((flow, plan));
        }
        if reader.at == body.len() {
            Ok(Self { policy, plans })
        } else {
            Err(PlanFileError::Broken(reader.at))
        }
    }

    /// Adds the plans for an instance that was cut into tasks.
    ///
    /// # Errors
    /// A plan for an unknown flow, for a flow that already has one, or for a different flow of the same name.
    pub fn assign(
        &self,
        instance: &Instance,
        plans: &mut BTreeMap<FlowId, Plan>,
    ) -> Result<(), PlanMismatch> {
        let flows: BTreeMap<&str, FlowId> =
            instance.flows().iter_enumerated().map(|(id, flow)| (flow.id.as_str(), id)).collect();
        for (name, plan) in &self.plans {
            let Some(&flow) = flows.get(name.as_str()) else {
                let known = instance.flows().iter().map(|flow| flow.id.clone()).collect();
                return Err(PlanMismatch::Flow { found: name.clone(), known });
            };
            plan.fits(instance, flow)
                .map_err(|mismatch| PlanMismatch::Shape { flow: name.clone(), mismatch })?;
            if plans.insert(flow, plan.clone()).is_some() {
                return Err(PlanMismatch::Twice(name.clone()));
            }
        }
        Ok(())
    }
}

fn put_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put(out: &mut Vec<u8>, block: &[u8]) {
    put_number(out, block.len());
    out.extend(block);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn broken(&self) -> PlanFileError {
        PlanFileError::Broken(self.at)
    }

    fn number(&mut self) -> Result<usize, PlanFileError> {
        let mut number = 0usize;
        for shift in (0..63).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or_else(|| self.broken())?;
            self.at += 1;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.broken())
    }

    fn block(&mut self) -> Result<&'a [u8], PlanFileError> {
        let length = self.number()?;
        let end = self.at.checked_add(length).filter(|&end| end <= self.bytes.len());
        let block = &self.bytes[self.at..end.ok_or_else(|| self.broken())?];
        self.at += length;
        Ok(block)
    }

    fn text(&mut self) -> Result<String, PlanFileError> {
        let block = self.block()?;
        Ok(std::str::from_utf8(block).map_err(|_| self.broken())?.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use slackline_algo::woha::Step;
    use slackline_model::Span;

    use super::*;

    fn file() -> PlanFile {
        let plan = |n: u64| {
            let steps = vec![Step { ttd: Span(9), req: n }, Step { ttd: Span(4), req: 2 * n }];
            Plan::new(3, Span(9), vec![1, 0], steps).unwrap()
        };
        let plans = vec![("a".to_owned(), plan(5)), ("ü#3".to_owned(), plan(700))];
        PlanFile { policy: "woha-lpf:cap=none".to_owned(), plans }
    }

    #[test]
    fn only_complete_unchanged_files_are_read() {
        let bytes = file().encode();
        assert_eq!(PlanFile::decode(&bytes), Ok(file()));
        assert_eq!(PlanFile::decode(b"flows = 3"), Err(PlanFileError::NoPlans));
        for end in 0..bytes.len() {
            assert!(PlanFile::decode(&bytes[..end]).is_err(), "cut at {end}");
            let mut other = bytes.clone();
            other[end] ^= 0x11;
            assert!(PlanFile::decode(&other).is_err(), "changed at {end}");
        }
        let mut newer = bytes;
        newer[MAGIC.len()] = 2;
        let error = PlanFile::decode(&newer).unwrap_err();
        assert_eq!(error.to_string(), "found plans of version 2, expected version 1");
    }

    /// Arbitrary bytes between the signature and a correct checksum.
    #[test]
    fn bytes_with_a_right_sum_are_survived() {
        let good = file().encode();
        for at in MAGIC.len() + 1..good.len() - TAIL {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = good[..good.len() - TAIL].to_vec();
                bytes[at] = byte;
                let sum = crc32fast::hash(&bytes);
                bytes.extend(sum.to_le_bytes());
                let _ = PlanFile::decode(&bytes);
            }
        }
    }
}
