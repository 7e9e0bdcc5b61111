//! What the application of this process calls.

pub(crate) mod calls;
mod files;
mod jobs;
mod membership;
mod status;
