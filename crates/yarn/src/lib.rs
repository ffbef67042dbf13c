#![doc = include_str!("../README.md")]
//!
//! Read first: `rest/resource_manager.rs` (the documents), `cluster/observer.rs` (the changes since the last
//! poll), and `flows/engine.rs` (the loop that connects them to a policy).
//!
//! # Folders
//!
//! A folder imports only those above it; `flows` and `attach` do not know each other:
//! - [`rest`]: Hadoop's web interfaces as types: requests, identifiers, ResourceManager, MapReduce jobs;
//! - [`submitter`]: the Java process that submits jobs and reads and writes HDFS;
//! - [`cluster`]: the observer of a cluster, the writer of table and priorities, and the ledger of
//!   containers;
//! - [`flows`]: the engine that submits jobs itself, for `slackline run` and `slackline serve`;
//! - [`attach`]: the engine that drives jobs of other users, for `slackline hadoop attach`;
//! - `mock`: a Hadoop cluster for tests (feature `mock`).

pub mod attach;
pub mod cluster;
pub mod flows;
#[cfg(feature = "mock")]
pub mod mock;
pub mod rest;
pub mod submitter;

pub use cluster::observer::{Change, Observer, Snapshot, WatchedApp};
pub use cluster::table::{Hosts, Row, Table};
pub use rest::http::{Address, AddressError, HttpError, Settings};
pub use rest::id::{AppAttemptId, AppId, ContainerId, TaskAttemptId, TaskId};
pub use rest::mapreduce::MapReduce;
pub use rest::resource_manager::{
    App, AppFilter, AppState, Container, FinalStatus, Node, Pending, Purpose, ResourceManager,
};
pub use submitter::Submitter;

use slackline_task::base::clock;
