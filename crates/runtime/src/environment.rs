//! The environment variables by which a process learns its place in the tree.

/// Names the parent's address.
pub const PARENT_VARIABLE: &str = "SAPWOOD_PARENT";
/// Names the process's own rank; may be missing for a back-end that attaches by itself.
pub const RANK_VARIABLE: &str = "SAPWOOD_RANK";
/// Names where the network's key is: `fd:N`, an inherited descriptor, or `file:PATH`, a file of
/// mode 0600. Never the key itself.
pub const KEY_VARIABLE: &str = "SAPWOOD_KEY";
/// `on` or `off`: whether the link to the parent is encrypted; its default depends on the address.
pub const ENCRYPTION_VARIABLE: &str = "SAPWOOD_ENCRYPTION";
/// Set for processes that their parent has started, rather than that attach by themselves.
pub(crate) const STARTED_VARIABLE: &str = "SAPWOOD_STARTED";

/// Which events the programs of a tree write: directives such as `info` or `sapwood::link=debug`.
pub const LOG_VARIABLE: &str = "SAPWOOD_LOG";
/// The file to which they write them, in the place of standard error; `%p` is the process's number.
pub const LOG_FILE_VARIABLE: &str = "SAPWOOD_LOG_FILE";

/// Names the address of this machine that this process listens at for TCP, in the place of the one
/// that the whole tree was given: for machines that do not all have that address.
pub const INTERFACE_VARIABLE: &str = "SAPWOOD_INTERFACE";
