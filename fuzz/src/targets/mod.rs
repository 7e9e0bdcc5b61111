//! What is fuzzed: one module each.

use crate::Target;

pub mod control;
pub mod format;
pub mod frame;
pub mod ranks;
pub mod values;

/// All of them.
pub const ALL: [Target; 5] =
    [control::TARGET, format::TARGET, frame::TARGET, ranks::TARGET, values::TARGET];
