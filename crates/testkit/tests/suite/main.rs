//! The suites over several crates, in one binary: one link step, and proptest is needed only by tests.
//!
//! In reading order:
//! - `small`: every small instance against exhaustive search;
//! - `prices`: the bound by prices against exhaustive search;
//! - `exact`: plans of `auto` against exhaustive search;
//! - `arb`: random instances with all features of workload documents;
//! - `laws`: laws that hold for every instance, checked on random ones;
//! - `no_length`: phases without length hold no slot;
//! - `toy_policies`: they show that the policy trait suits all five papers;
//! - `conformance`, `failures`: every policy of the registry on the published instances;
//! - `documents`, `claims`: cited files exist, and statements about results are true;
//! - `page_on_run`: the examples of the page on `run` can be read;
//! - `copies`: a copy of a run ends as the run does;
//! - `rollouts`: the estimates of `auto` are exact if no unannounced flow arrives;
//! - `waiting`: under `auto`, a flow that has reached its waiting limit goes first;
//! - `damaged`: damaged files of every format are read or refused;
//! - `adversary`: small workloads on which a policy was found to be worst;
//! - `groups`: the order of machines in a document does not matter;
//! - `unseen`: no policy knows flows that have not arrived;
//! - `explain`: the numbers of explanations add up;
//! - `figures`: dropped rows are judged like kept ones;
//! - `profiles`: simulated Hadoop clusters;
//! - `swarm`: cluster, workload, faults, policy and options drawn from a seed;
//! - `common`: documents that several suites read.
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
mod optimum;
mod page_on_run;
mod prices;
mod profiles;
mod rollouts;
mod small;
mod swarm;
mod toy_policies;
mod unseen;
mod waiting;
