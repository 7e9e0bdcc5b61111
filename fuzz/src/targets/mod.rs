//! What is fuzzed: one module each.

use crate::Target;

pub mod control;
pub mod filter;
pub mod format;
pub mod frame;
pub mod group;
pub mod handshake;
pub mod message;
pub mod node;
pub mod nodeset;
mod packets;
pub mod plan;
pub mod profile;
pub mod ranks;
pub mod scope;
pub mod shm_ring;
pub mod sketch;
pub mod specification;
pub mod topology_file;
pub mod trace;
pub mod tree;
pub mod values;
mod world;

/// All of them.
pub const ALL: [Target; 20] = [
    control::TARGET,
    filter::TARGET,
    format::TARGET,
    frame::TARGET,
    group::TARGET,
    handshake::TARGET,
    message::TARGET,
    node::TARGET,
    nodeset::TARGET,
    plan::TARGET,
    profile::TARGET,
    ranks::TARGET,
    scope::TARGET,
    shm_ring::TARGET,
    sketch::TARGET,
    specification::TARGET,
    topology_file::TARGET,
    trace::TARGET,
    tree::TARGET,
    values::TARGET,
];
