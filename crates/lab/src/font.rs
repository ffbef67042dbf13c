//! The font that pictures are measured with, so that they are the same bytes on every machine.

use std::sync::OnceLock;

use plotters::style::{FontStyle, register_font};

/// Makes the font known to the drawing library, once.
///
/// # Errors
/// If what is in the program is no font.
pub(crate) fn register() -> Result<(), String> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done =
        DONE.get_or_init(|| register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).is_ok());
    if *done { Ok(()) } else { Err("the font in the program is none".to_owned()) }
}
