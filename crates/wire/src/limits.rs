//! Every limit of the wire, with its unit. Longer input is refused before memory is allocated.

/// Longest frame, in bytes, its prefix included.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// Longest control message, in bytes. A plan for a subtree of 100,000 processes fits.
pub const CONTROL_BYTES_MAX: usize = 8 << 20;

/// Most ranges in one rank set.
pub const RANGES_MAX: usize = 1 << 19;

/// Longest body of a whole packet, in bytes, when its chunks are put together again.
pub const PACKET_BYTES_MAX: u64 = 1 << 30;

/// A body longer than this many bytes is cut into chunks of this length; a multiple of 8. There
/// is room for counts and a few scalars, so that an array whose length is a power of two leaves no
/// chunk of a few bytes behind.
pub const CHUNK_BYTES: usize = (128 << 10) + 256;

/// Most waves in one run; a power of two. A run never crosses a multiple of its greatest length, so
/// that the runs of different back-ends begin and end at the same waves.
pub const RUN_WAVES_MAX: u32 = 64;

/// Longest body of a run, in bytes.
pub const RUN_BYTES_MAX: usize = 8 << 10;

/// Bytes that may be under way on one stream over one link before the receiver has to grant more.
pub const WINDOW_BYTES: u32 = 256 << 10;

/// Longest reason or other text in a control message, in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;

/// Most filters of one stream in one direction.
pub const FILTERS_MAX: usize = 64;

/// Most attach points in one message.
pub const ATTACH_POINTS_MAX: usize = 1 << 17;

/// Most ancestors of a process: the greatest depth of a tree.
pub const ANCESTORS_MAX: usize = 64;

/// Most orphans in one message.
pub const ORPHANS_MAX: usize = 1 << 17;

/// Most streams with held-back waves in one message.
pub const AFFECTED_MAX: usize = 4096;

/// Longest state of one filter that is handed over to the parent, in bytes.
pub const STATE_BYTES_MAX: usize = 1 << 20;

/// Bytes in the retransmit buffer of one stream and direction, besides one packet; beyond that the
/// stream's policy decides.
pub const KEPT_BYTES: usize = 1 << 20;

/// Longest file that is shipped through the tree, in bytes.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// Longest part of such a file in one message, in bytes.
pub const FILE_PART_BYTES_MAX: usize = 64 << 10;

/// Most such files in one network.
pub const FILES_MAX: usize = 64;

/// Most bytes of all such files of a network together.
pub const FILES_BYTES_MAX: usize = 64 << 20;

/// Longest name of such a file, in bytes.
pub const FILE_NAME_BYTES_MAX: usize = 255;

/// Longest question of a visitor, in bytes.
pub const QUESTION_BYTES_MAX: usize = 1024;

/// Longest part of an answer to a visitor, in bytes; longer answers are sent in several.
pub const REPLY_BYTES_MAX: usize = 1 << 20;
