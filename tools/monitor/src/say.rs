//! Lines for the user on standard error, which may be closed: that is no reason to end.

use std::fmt::Display;
use std::io::Write as _;

/// Says one line.
pub(crate) fn say(text: impl Display) {
    let line = format!("sapwood: {text}\n");
    // A closed standard error leaves no place to say so.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
