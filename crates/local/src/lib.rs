//! The local engine: map and reduce tasks that really run, as processes of this machine.
//!
//! [`task`] is what one attempt of one task does; [`worker`] is the process it does it in.

pub mod task;
pub mod worker;
