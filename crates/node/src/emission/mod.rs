//! What goes on: waves that are complete run through their filters and are sent.

mod back_end;
mod closing;
mod handover;
mod jobs;
mod replies;
mod rule;
mod sending;
pub(crate) mod waves;
mod yielding;
