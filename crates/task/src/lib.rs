#![doc = include_str!("../README.md")]

pub mod attempt;
pub mod base;
pub mod container;
pub mod input;
pub mod process;
pub mod programs;
pub mod shuffle;
pub mod worker;
