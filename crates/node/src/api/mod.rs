//! What the application of this process calls.

pub(crate) mod calls;
pub(crate) mod files;
mod jobs;
mod membership;
mod status;
