//! What a call of MPI is called, wherever calls are told.

use sapwood_profile::Function;
use sapwood_trace::EventKind;

/// The name of a function.
pub(crate) fn function_name(function: u32) -> String {
    Function::of(function)
        .map_or_else(|| format!("MPI function {function}"), |function| function.name.to_owned())
}

/// What a kind of event is called.
#[must_use]
pub const fn kind_word(kind: Option<EventKind>) -> &'static str {
    match kind {
        Some(EventKind::Collective) => "collective",
        Some(EventKind::CollectiveStarted) => "collective_started",
        Some(EventKind::CollectiveCompleted) => "collective_completed",
        Some(EventKind::Send) => "send",
        Some(EventKind::SendStarted) => "send_started",
        Some(EventKind::Receive) => "receive",
        Some(EventKind::ReceiveCompleted) => "receive_completed",
        None => "other",
    }
}
