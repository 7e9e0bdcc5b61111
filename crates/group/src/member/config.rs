//! How a member is to be.

use alloc::string::String;

use sapwood_packet::RankSet;

use crate::identity::{MILLISECOND, MemberId, SECOND, Time};
use crate::limits::LINK_BYTES;

/// The settings of one member; spans are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its identity, drawn at random.
    pub id: MemberId,
    /// Where it can be dialled.
    pub address: String,
    /// The virtual nodes that it is to carry.
    pub names: RankSet,
    /// Virtual nodes of one living member that this one takes over when it joins, besides `names`;
    /// that member keeps others.
    pub take: RankSet,
    /// The size of the name space, the same for all: 1 to [`NAMES_MAX`]. With another one the
    /// member is refused.
    ///
    /// [`NAMES_MAX`]: crate::limits::NAMES_MAX
    pub space: u32,
    /// The cluster that its operator gave, for `static` and `list`.
    pub site: u32,
    /// Of its random choices.
    pub seed: u64,
    /// The work of one send: the o of LogP.
    pub overhead: Time,
    /// What the network card carries, in megabytes per second, while no costs are measured; only
    /// the shape of trees for values of middle length depends on it.
    pub card_rate: u64,
    /// How many interior-disjoint trees carry a bulk transfer.
    pub stripes: u8,
    /// Values of at least this many bytes travel in segments.
    pub bulk_bytes: u64,
    /// Values of at least this many bytes are shared out over the stripes on their way up, and a
    /// quarter of that on their way down, while no costs are measured.
    pub stripe_bytes: u64,
    /// The length of segments, where it is not to be chosen by the length of the value.
    pub segment_bytes: Option<u32>,
    /// How many bytes of segments and parts wait on one link; the one that reaches the bound may go
    /// beyond it.
    pub link_bytes: usize,
    /// Whether distances are measured, and clusters inferred.
    pub measures: bool,
    /// Whether the costs of messages and bytes are measured, which then decide in place of
    /// `stripe_bytes` and `card_rate`.
    pub measures_costs: bool,
    /// How often the next member on the ring is asked for a sign of life; up to four times as
    /// seldom while nothing changes.
    pub watch_period: Time,
    /// How long the answer to that may take, at least.
    pub ping_timeout: Time,
    /// How many unanswered pings make a member dead.
    pub ping_tries: u32,
    /// How long news is gathered before it is told.
    pub spread_delay: Time,
    /// How long children may be silent in a transfer, besides what distance and length take.
    pub patience: Time,
    /// How long a call that leaves a reduction early may wait for values that are almost there, as
    /// the lateness of earlier ones says; 0 if no call is to wait, and [`GRACE_MAX`] at most.
    ///
    /// [`GRACE_MAX`]: crate::limits::GRACE_MAX
    pub grace_max: Time,
    /// How long a transfer that is over is remembered, where nothing else tells its end.
    pub linger: Time,
    /// The period of the probes of the paper's rules.
    pub paper_period: Time,
    /// How many probes these rules may send after a change of the membership.
    pub paper_probes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            id: MemberId(0),
            address: String::new(),
            names: RankSet::new(),
            take: RankSet::new(),
            space: 1 << 16,
            site: 0,
            seed: 0,
            overhead: 40_000,
            card_rate: 110,
            stripes: 2,
            bulk_bytes: 32 << 10,
            stripe_bytes: 192 << 10,
            segment_bytes: None,
            link_bytes: LINK_BYTES,
            measures: true,
            measures_costs: true,
            watch_period: SECOND,
            ping_timeout: 100 * MILLISECOND,
            ping_tries: 3,
            spread_delay: 2 * MILLISECOND,
            patience: 60 * MILLISECOND,
            grace_max: MILLISECOND / 10,
            linger: 30 * SECOND,
            paper_period: 40 * MILLISECOND,
            paper_probes: 100,
        }
    }
}
