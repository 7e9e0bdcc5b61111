//! What one turn of the node shares between all stages: time, links, memory and outputs.

mod actions;
pub(crate) mod clock_skew;
pub(crate) mod counted;
pub(crate) mod hops;
pub(crate) mod links;
pub(crate) mod losses;
mod reclaim;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_filter::Emitter;
use sapwood_link::Pool;
use sapwood_packet::{OutOfMemory, Rank, RankSet, Slab, StreamId, Values};
use sapwood_wire::limits::CHUNK_BYTES;

use crate::interface::work::Work;
use crate::interface::{Delivery, Instant, LinkId, Mutation, Output, Settings};
use crate::turn::counted::Counted;
use crate::turn::hops::Hops;
use crate::turn::links::Links;
use crate::turn::losses::Losses;

/// Outputs that most back-ends have at a time, and a tree may have a million of them.
const OUTPUTS: usize = 2;

/// What all stages of a turn share. A stage takes it beside its own state.
#[derive(Debug)]
pub(crate) struct Turn {
    /// How the node began; the terms of recovery are those of the front-end once it is known.
    pub(crate) settings: Settings,
    /// The process's rank, once it has one.
    pub(crate) rank: Option<Rank>,
    /// The link to the parent, while there is one.
    pub(crate) parent: Option<LinkId>,
    /// Whether the network has ended for this process.
    pub(crate) has_ended: bool,
    /// When memory that is not needed is given back next.
    pub(crate) reclaim_due: Instant,
    /// The time of this turn.
    pub(crate) now: Instant,
    /// All links, and the peer at the other end of each.
    pub(crate) links: Links,
    /// Memory for large frames.
    pub(crate) pool: Pool,
    /// What the driver is to do.
    pub(crate) outputs: VecDeque<Output>,
    /// What the application is to get.
    pub(crate) deliveries: VecDeque<Delivery>,
    /// The allocation that failed for a packet to this back-end.
    pub(crate) undelivered: Option<OutOfMemory>,
    /// What the filter that runs now has made.
    pub(crate) emitter: Emitter,
    /// Memory for a packet that is put together for a moment.
    pub(crate) scratch: Slab,
    /// Memory in which a back-end's next small packet is built.
    pub(crate) built: Values,
    /// Length of the last packet's values, if they went away with the memory of `built`.
    pub(crate) large_bytes: usize,
    /// What the node has counted of its work.
    pub(crate) counted: Counted,
    /// Events of waves and packets, while they are asked for.
    pub(crate) hops: Hops,
    /// A rule that this node breaks, in tests.
    pub(crate) mutation: Option<Mutation>,
    /// A longer body is cut into chunks of this length.
    pub(crate) chunk_bytes: usize,
    /// See [`Node::set_wall`](crate::Node::set_wall).
    pub(crate) wall: i64,
    /// Its host, for people.
    pub(crate) host: String,
    /// The back-ends that are known to be gone.
    pub(crate) losses: Losses,
    /// The stream whose filters ran last in this turn, and for how many waves.
    pub(crate) transformed: Option<(StreamId, u32)>,
    /// When the front-end tells its children what is safe.
    pub(crate) acknowledgement_due: Option<Instant>,
    /// Until when this back-end, which leaves, waits for what it has sent to be safe.
    pub(crate) departs_until: Option<Instant>,
    /// Telemetry streams with a complete wave, to which this process adds its own part.
    pub(crate) records_wanted: Vec<StreamId>,
    /// Streams with something that is to run in a job.
    pub(crate) jobs_wanted: VecDeque<(StreamId, Work)>,
    /// Set when streams let others have their turn: they go on at the next wake-up.
    pub(crate) yields_until: Option<Instant>,
    /// Processes that must not come back with their filters' states, which others have taken over,
    /// here or below.
    pub(crate) absorbed: RankSet,
    /// When the next probes are sent.
    pub(crate) heartbeat_due: Option<Instant>,
}

impl Turn {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            rank: settings.rank,
            parent: None,
            has_ended: false,
            reclaim_due: Instant::default(),
            settings,
            now: Instant::default(),
            links: Links::default(),
            pool: Pool::default(),
            outputs: VecDeque::with_capacity(OUTPUTS),
            deliveries: VecDeque::new(),
            undelivered: None,
            emitter: Emitter::new(),
            scratch: Slab::default(),
            built: Values::new(),
            large_bytes: 0,
            counted: Counted::default(),
            hops: Hops::default(),
            mutation: None,
            chunk_bytes: CHUNK_BYTES,
            wall: 0,
            host: String::new(),
            losses: Losses::default(),
            transformed: None,
            acknowledgement_due: None,
            departs_until: None,
            records_wanted: Vec::new(),
            jobs_wanted: VecDeque::new(),
            yields_until: None,
            absorbed: RankSet::new(),
            heartbeat_due: None,
        }
    }

    /// The rank of this process.
    ///
    /// # Panics
    /// Before the process has one. A process that comes by itself has it from the welcome on, and
    /// `members::validation_above` lets nothing else of the parent pass before that; children and
    /// streams come behind it.
    #[inline]
    pub(crate) fn rank(&self) -> Rank {
        self.rank.expect("the welcome comes before streams and children")
    }
}
