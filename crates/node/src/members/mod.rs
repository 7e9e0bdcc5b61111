//! The processes around this one: children, parent, dynamic members, and what each may say.

pub(crate) mod ancestry;
pub(crate) mod authority;
pub(crate) mod children;
pub(crate) mod dynamic;
pub(crate) mod files;
pub(crate) mod heartbeat;
mod losses;
pub(crate) mod membership;
pub(crate) mod packet_validation;
pub(crate) mod search;
pub(crate) mod superseded;
pub(crate) mod vacancy;
pub(crate) mod validation;
pub(crate) mod validation_above;
pub(crate) mod visitor;
mod welcome;
