//! What is called from outside between two inputs: by the application of this process, through one
//! handle (`application`), and by the runtime.

pub(crate) mod application;
pub(crate) mod calls;
mod files;
mod jobs;
mod membership;
mod missing;
mod status;
