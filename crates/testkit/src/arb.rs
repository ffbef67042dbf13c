//! Random instances.
