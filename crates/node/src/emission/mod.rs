//! What goes on: waves that are complete run through their filters and are sent.

mod back_end;
mod closing;
mod fairness;
mod handover;
mod offload;
mod replies;
mod synchronisation;
pub(crate) mod waves;
