//! A YARN cluster as an engine of flows.
//!
//! # Modules
//!
//! In reading order:
//! - `backend`: the entry of the table of engines, and what a run needs; `mirror`: files of HDFS as a run sees them, `remote`:
//!   how they are reached; `submission`: how jobs are submitted and their output is brought to its place;
//! - `guest`: the engine, and in `guest/jars` what is different with jobs that are programs which submit their applications
//!   themselves (`program`); `books`: what slots hold and what the driver believes; `jobs`, `reports`: jobs as applications, and
//!   what their attempts say; `wishes`: what follows from decisions; `cluster`: submitting and killing;
//! - `resident`: the same for runs that come and go under one driver;
//! - `fit`: whether a cluster does what it is told;
//! - `control`: looking at the cluster, and telling it; `asking`, `count`: what ApplicationMasters say of their tasks;
//! - [`attach`]: the same for jobs that others submit.

mod asking;
pub mod attach;
mod backend;
mod books;
mod cluster;
mod control;
mod count;
mod fit;
mod guest;
mod jobs;
mod mirror;
mod program;
mod remote;
mod reports;
mod resident;
mod submission;
mod wishes;

pub use backend::ENTRY;
