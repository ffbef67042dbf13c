#![doc = include_str!("../README.md")]

pub mod engine;
pub mod fleet;
pub mod run;
pub mod spec;
pub mod store;
