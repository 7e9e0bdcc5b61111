//! The types of the two ways in and out of a node.

pub(crate) mod breach;
mod delivery;
mod error;
pub(crate) mod hop_waves;
pub(crate) mod hops;
mod input;
mod link_id;
mod mutation;
mod output;
mod plan;
pub(crate) mod record;
mod recovery;
mod settings;
mod spec;
mod time;
pub(crate) mod work;

pub(crate) use delivery::Reason;
pub use delivery::{Answer, Delivery, Missing};
pub use error::NodeError;
pub use input::Input;
pub use link_id::LinkId;
pub use mutation::Mutation;
pub use output::{AffectedWaves, Event, Output};
pub use plan::{AttachPoint, ChildPlan, DYNAMIC_RANKS_BEGIN, DYNAMIC_RANKS_PER_PROCESS};
pub use recovery::Recovery;
pub use settings::{Role, Settings};
pub use spec::{Direction, StreamSpec};
pub use time::Instant;
