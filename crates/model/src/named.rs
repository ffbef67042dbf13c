//! Enums whose values have names.

/// Defines an enum whose values have names in documents and on the command line: `ALL`, its values in order,
/// and `name`.
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
    };
}
