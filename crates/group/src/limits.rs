//! Every limit of a group, with its unit. What is longer is refused before memory is allocated.

/// Longest encoded message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 20 << 20;

/// Longest payload of one message, in bytes; longer ones travel as segments.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// Longest value of one operation, in bytes.
pub const VALUE_BYTES_MAX: u64 = 1 << 32;

/// Longest round trip that counts, in nanoseconds. What a member says beyond it, which may have
/// been stopped meanwhile, is taken for this. Three pings without an answer make a death, and each
/// is waited for four times as long: it is seen within two minutes, whatever members say.
pub const ROUND_TRIP_MAX: u64 = 10 * 1_000_000_000;

/// Longest time that a message may state for a round trip or a distance, in nanoseconds: a year,
/// which no member has waited for. A message with a longer one is refused.
pub const STATED_TIME_MAX: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// Most work of one message, in nanoseconds. What a member says beyond it is taken for this.
pub const WORK_MAX: u64 = 1_000_000_000;

/// Most time of one byte, in picoseconds: 1 kB/s.
pub const BYTE_PS_MAX: u64 = 1_000_000_000;

/// Shortest segment of a bulk transfer, in bytes.
pub const SEGMENT_BYTES_MIN: u32 = 4 << 10;

/// Longest segment of a bulk transfer, in bytes.
pub const SEGMENT_BYTES_MAX: u32 = 256 << 10;

/// Most bytes of segments and parts that wait on one link, unless the configuration says otherwise;
/// the last one may go beyond it.
pub const LINK_BYTES: usize = 4 << 20;

/// What has left on a link is told in this part of [`LINK_BYTES`], or of what replaces it.
pub const DRAINED_PART: usize = 8;

/// Most parts that wait for one link to go to the root past the tree, of whatever length: those of
/// a barrier have none.
pub const LATE_PARTS_MAX: usize = 1 << 12;

/// Longest time for which a call that leaves a reduction early waits for values that are almost
/// there, in nanoseconds, whatever the configuration says.
pub const GRACE_MAX: u64 = 10_000_000;

/// Most segments of one value.
pub const SEGMENTS_MAX: u64 = VALUE_BYTES_MAX / SEGMENT_BYTES_MIN as u64;

/// Most members of one group.
pub const MEMBERS_MAX: usize = 1 << 17;

/// Largest name space, in virtual nodes.
pub const NAMES_MAX: u32 = 1 << 24;

/// Longest address of a member, in bytes.
pub const ADDRESS_BYTES_MAX: usize = 255;

/// Most interior-disjoint trees of one bulk transfer.
pub const STRIPES_MAX: u8 = 8;

/// Most labels (inferred clusters) in a table.
pub const LABELS_MAX: usize = 4096;

/// Most measured distances in one message.
pub const DISTANCES_MAX: usize = 1 << 16;

/// Most reasons in one acknowledgement.
pub const REASONS_MAX: usize = 64;

/// Longest text of a reason, in bytes.
pub const TEXT_BYTES_MAX: usize = 512;

/// Most transfers that a member holds at once; beyond it new requests are refused.
pub const TRANSFERS_MAX: usize = 1 << 14;

/// Highest epoch of a record, which is that of a member whose names have been handed over as often.
/// A record with a higher one is refused.
pub const EPOCH_MAX: u32 = 1 << 30;

/// Most trees of each of the paper's two rules that a member takes part in; those of further roots
/// are flat.
pub const PAPER_TREES_MAX: usize = 1 << 10;

/// Most ancestors in the answer to one probe, in the trees of all roots together; trees for which
/// there is no room are in the answers to later probes.
pub const PAPER_ANCESTORS_MAX: usize = 1 << 15;

/// Bytes of the long probe, which measures a bandwidth.
pub const PROBE_BYTES: usize = 128 << 10;
