#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//!   policy      what should run where, in which order      events in, decisions out
//!   ─────────────────────────────────────────────────────────────────────────────
//!   driver      state of every phase, assignment layer      this crate
//!   ─────────────────────────────────────────────────────────────────────────────
//!   engine      runs tasks on slots                         orders in, reports out
//! ```
//!
//! In reading order:
//! - [`event`]: what a policy learns;
//! - [`policy`]: the [`Policy`] trait and its decisions;
//! - [`engine`]: the [`Engine`] trait, its orders and reports;
//! - [`state`]: how far every phase, job and flow is;
//! - [`view`]: what a policy may look at;
//! - [`busy_slots`]: what holds slots now, and which are free;
//! - `machine_expiry`: machines that are there until a known time;
//! - [`learning`]: estimates from finished tasks and a history;
//! - [`slots`]: sets of free slots;
//! - [`minima`]: the guarantees in force at an instant;
//! - [`log`]: what runs and ran, and where it goes when it is finished;
//! - [`assign`]: the assignment layer: a free slot gets a task;
//! - [`driver`]: the loop, and the schedule it leaves behind;
//! - [`unfinished`]: why flows never finish;
//! - [`ready`]: a queue of runnable phases for policies that order them;
//! - [`IdHeap`]: ids in the order of keys that change;
//! - [`IdTable`]: tables that grow with the ids that arrive.
#![warn(missing_docs)]
#![deny(clippy::unwrap_used)]

pub mod assign;
mod audit;
pub mod busy_slots;
pub mod driver;
pub mod engine;
pub mod event;
mod id_heap;
mod id_table;
pub mod learning;
mod ledger;
mod locality;
pub mod log;
mod machine_expiry;
pub mod minima;
mod pending;
pub mod plans;
pub mod policy;
pub mod ready;
mod row_collector;
mod slot_scope;
pub mod slots;
mod speed_order;
pub mod state;
#[cfg(test)]
mod testing;
pub mod unfinished;
pub mod view;

pub use busy_slots::{BusySlots, Holding};
pub use driver::{Config, Driver, Figures, Heir, Run, run, run_unless};
pub use engine::Engine;
pub use event::Event;
pub use id_heap::IdHeap;
pub use id_table::IdTable;
pub use learning::Learning;
pub use log::{FlowEnd, Sink};
pub use policy::{Action, Admission, Ask, Choice, ChosenBy, Grant, Policy, Style};
pub use ready::ReadyQueue;
pub use speed_order::SpeedClass;
pub use state::{PhaseState, State};
pub use view::{Estimates, View};
