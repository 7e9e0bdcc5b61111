//! The limits of a tree. Each is checked once, where text or bytes become a type.

/// Most nodes (processes of every role, attaching back-ends included) in one tree.
///
/// All sums over a tree's nodes therefore fit in 32 bits.
pub const NODES_MAX: u32 = 1 << 20;

/// Most levels below the front-end.
///
/// It bounds every recursion over a tree, also over a tree that a peer describes.
pub const DEPTH_MAX: u32 = 64;

/// Most children of one node. One process cannot usefully hold more links.
pub const FAN_OUT_MAX: u32 = 1 << 16;

/// Longest host name in bytes, the limit of the domain name system.
pub const HOST_NAME_BYTES_MAX: usize = 255;

/// Most bytes of outside text that an error quotes.
pub(crate) const EXCERPT_BYTES_MAX: usize = 60;

/// Most nodes of a cycle that an error names.
pub(crate) const CYCLE_NAMED_MAX: usize = 8;

/// Largest index of a node on its host. Attaching back-ends are named after all others on their
/// host, so as many indices as a tree has nodes stay free.
pub const HOST_INDEX_MAX: u32 = u32::MAX - NODES_MAX;
