//! What processes of a tree have noticed that costs no answer: a line each, on standard error.

use std::io::Write as _;

use sapwood::Event;

/// Prints an event that is a notice.
pub fn print(event: &Event) {
    if let Event::Notice { text, .. } = event {
        // A closed standard error leaves no place to say so.
        let _ = writeln!(std::io::stderr(), "sapwood: {text}");
    }
}
