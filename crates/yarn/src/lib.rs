#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`id`]: Hadoop's identifiers; [`http`]: requests, and what goes wrong with them; `shape`: the shapes of its JSON;
//! - [`rest`]: the ResourceManager; [`mapreduce`]: jobs and tasks, by an ApplicationMaster or the history.

mod clock;
pub mod http;
pub mod id;
pub mod mapreduce;
pub mod rest;
mod shape;

pub use http::{Address, AddressError, HttpError, Settings};
pub use id::{AppAttemptId, AppId, ContainerId, TaskAttemptId, TaskId, TaskKind};
pub use mapreduce::MapReduce;
pub use rest::{App, AppState, Container, FinalStatus, Node, Pending, Purpose, ResourceManager, Which};
