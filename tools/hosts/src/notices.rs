//! What processes of a tree have noticed that costs no answer: a line each, on standard error.

use sapwood::Event;
use sapwood_command_line::exit::complain;

/// Prints an event that is a notice.
pub fn print(event: &Event) {
    if let Event::Notice { text, .. } = event {
        complain(text);
    }
}
