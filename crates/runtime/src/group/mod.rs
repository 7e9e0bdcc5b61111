//! One thread and one loop that drive one member of a group.
//!
//! The principal type is [`GroupDriver`]: it gives the member the time and what has come, and
//! carries out what the member decides. `entrance` takes connections in, `dials` makes them by one
//! of the `ways`, `peers` holds those that are up, with what waits to leave. A link's first frame
//! is a greeting: it says which member of which group is at the other end, or asks how the group
//! is.

mod dials;
mod driver;
mod entrance;
mod peers;
mod token;
mod visit;
mod ways;

pub use driver::{GroupDriver, GroupEvent, GroupOptions};
pub use visit::{GroupQuestion, TracedMember, ask_group, trace_member};
