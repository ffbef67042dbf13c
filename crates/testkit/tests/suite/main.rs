//! The suites over several crates, in one binary: one link step, and nothing but tests needs proptest.
//!
//! In reading order:
//! - `small`: every small instance against exhaustive search;
//! - `prices`: the bound by prices against exhaustive search;
//! - `exact`: plans of `auto` against exhaustive search;
//! - `arb`: random instances with everything a workload document can say;
//! - `laws`: what holds for every instance, checked on random ones;
//! - `no_length`: phases without length hold no slot;
//! - `seam`: toy policies that show that the papers fit the seam;
//! - `conformance`, `failures`: every policy of the registry on the published instances;
//! - `documents`, `claims`: what the documents cite exists, and what they say of results is so;
//! - `page_on_run`: what the page on `run` shows can be read;
//! - `copies`: a copy of a run ends as the run does;
//! - `rollouts`: what `auto` believes is what happens, where nothing arrives that was not announced;
//! - `waiting`: under `auto`, who has waited long enough goes first;
//! - `damaged`: damaged files of every format are read or refused;
//! - `adversary`: small workloads on which a policy was found to be worst;
//! - `groups`: it does not matter in which order machines are listed;
//! - `unseen`: no policy knows flows that have not arrived;
//! - `explain`: explanations add up;
//! - `figures`: what is not kept is judged as what is;
//! - `profiles`: clusters that do not do everything at once;
//! - `swarm`: cluster, workload, faults, policy and options drawn from a seed;
//! - `common`: what several of them read.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod adversary;
mod arb;
mod claims;
mod common;
mod conformance;
mod copies;
mod damaged;
mod documents;
mod exact;
mod explain;
mod failures;
mod figures;
mod groups;
mod known;
mod laws;
mod no_length;
mod page_on_run;
mod prices;
mod profiles;
mod rollouts;
mod seam;
mod small;
mod swarm;
mod unseen;
mod waiting;
