//! The types of the two ways in and out of a node.

mod delivery;
mod error;
mod input;
mod link_id;
mod mutation;
mod output;
mod plan;
mod recovery;
mod settings;
mod spec;
mod time;

pub use delivery::{Answer, Delivery, Missing};
pub use error::NodeError;
pub use input::Input;
pub use link_id::LinkId;
pub use mutation::Mutation;
pub use output::{AffectedWaves, Event, Output};
pub use plan::{AttachPoint, ChildPlan};
pub use recovery::Recovery;
pub use settings::{Role, Settings};
pub use spec::{Direction, StreamSpec};
pub use time::Instant;
