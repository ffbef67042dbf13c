//! Ids: dense indices with separate types, so that a job cannot index a table of phases.
//!
//! Ids are numbered over the whole instance, in the order of the document: the jobs of a flow are
//! consecutive, and so are the phases of a job. Order by id is therefore order of appearance, and the id
//! breaks every tie in the project.

use std::fmt;

pub use typed_index_collections::{TiSlice, TiVec};

macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in tables indexed by this id.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).expect("invariant: instances have at most 2^32 of anything"))
            }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(id: $name) -> Self {
                id.index()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}#{}", stringify!($name), self.0)
            }
        }
    };
}

define_id!(
    /// A flow of the instance.
    FlowId
);
define_id!(
    /// A job, numbered over the whole instance.
    JobId
);
define_id!(
    /// A map or reduce phase that has tasks, numbered over the whole instance.
    PhaseId
);
define_id!(
    /// A group of equal machines.
    GroupId
);
define_id!(
    /// A single machine, numbered over the whole cluster, group by group.
    MachineId
);
define_id!(
    /// A pool that shares a minimum among its jobs.
    PoolId
);

crate::named_enum! {
    /// The half of a job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum PhaseKind {
        /// Reads the input; all of it ends before the reduce phase computes.
        Map = "map",
        /// Merges the output of the maps.
        Reduce = "reduce",
    }
}
