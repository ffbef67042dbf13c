//! Enums whose values have names, and types that are ordered by a key.

/// Defines an enum whose values have names in documents and on the command line: `ALL`, its values in order,
/// `name`, and `Display`, which writes the name.
#[macro_export]
macro_rules! named_enum {
    ($(#[$of:meta])* $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$of])*
        $vis enum $type { $($(#[$doc])* $variant),* }

        impl $type {
            /// All values, in order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in documents and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Orders the values of a type by a key of theirs; values with equal keys are equal.
#[macro_export]
macro_rules! order_by_key {
    ($type:ty, |$value:ident| $key:expr) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for $type {}

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $type {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                let key = |$value: &Self| $key;
                key(self).cmp(&key(other))
            }
        }
    };
}
