//! What never starts says why: the limit, the machine or the attempts that keep it from ending.
