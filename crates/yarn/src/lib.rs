#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`id`]: Hadoop's identifiers; [`http`]: requests, and what goes wrong with them; `shape`: the shapes of its JSON;
//! - [`rest`]: the ResourceManager; [`mapreduce`]: jobs and tasks, by an ApplicationMaster or the history;
//! - [`observe`]: what changed on the cluster since the last look; `round`: asking many in the time that a look has;
//! - [`table`]: the table of the plug-in; [`submitter`]: the process that submits jobs;
//! - [`engine`]: a cluster that runs flows; [`engine::attach`]: one whose jobs others submit;
//! - `mock` (with the feature of that name): a cluster for tests.

pub mod engine;
pub mod http;
pub mod id;
pub mod mapreduce;
#[cfg(feature = "mock")]
pub mod mock;
pub mod observe;
pub mod rest;
mod round;
mod shape;
pub mod submitter;
pub mod table;

pub use http::{Address, AddressError, HttpError, Settings};
pub use id::{AppAttemptId, AppId, ContainerId, TaskAttemptId, TaskId, TaskKind};
pub use mapreduce::MapReduce;
pub use observe::{Change, Observer, Snapshot, Watched};
pub use rest::{App, AppState, Container, FinalStatus, Node, Pending, Purpose, ResourceManager, Which};
pub use submitter::Submitter;
pub use table::{Hosts, Row, Table};

use slackline_task::base::clock;
