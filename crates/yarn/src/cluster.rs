//! The shared parts of the two engines: reading the state of a cluster, writing decisions to it, and the
//! ledger of which slots hold which tasks.
//!
//! In reading order:
//! - `observer`: the changes since the last poll; `fair_polling`, `am_polling`: how often to ask for what;
//! - `control`: observer, table and priorities of one cluster;
//! - `container_ledger`: containers on the slots of the driver; `task_inference`: which containers finished a
//!   task;
//! - `desired_state`: from the plans of a policy to rows and priorities; `table`, `table_location`: the
//!   plug-in's table;
//! - `checks`: whether a cluster follows the table and the priorities; `capacity`: machines and limits.

pub(crate) mod am_polling;
pub(crate) mod capacity;
pub(crate) mod checks;
pub(crate) mod container_ledger;
pub(crate) mod control;
pub(crate) mod desired_state;
pub(crate) mod fair_polling;
pub mod observer;
pub mod table;
pub(crate) mod table_location;
pub(crate) mod task_inference;
