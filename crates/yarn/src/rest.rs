//! Hadoop's web interfaces as types: requests, identifiers, and the documents of the ResourceManager and of
//! MapReduce jobs.

pub mod http;
pub mod id;
pub(crate) mod json;
pub mod mapreduce;
pub mod resource_manager;
