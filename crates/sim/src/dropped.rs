//! The processes' counts of dropped packets: a packet that is in no answer must be in one of them.

use alloc::vec::Vec;

use sapwood_node::Role;
use sapwood_packet::{Rank, StreamId};

use crate::process::Process;

/// The packets that one back-end has dropped on a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DroppedBy {
    pub(crate) rank: Rank,
    pub(crate) stream: StreamId,
    pub(crate) count: u64,
}

/// The counts of all processes of a run, including processes that have ended.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    by_back_ends: Vec<DroppedBy>,
    above: Vec<(StreamId, u64)>,
}

impl Dropped {
    /// The counts of these processes on these streams.
    pub(crate) fn of<'a>(
        processes: &[Process],
        streams: impl Iterator<Item = &'a StreamId>,
    ) -> Self {
        let mut dropped = Self::default();
        for &stream in streams {
            for one in processes {
                let count = one.node.dropped(stream);
                match (one.role, one.rank) {
                    _ if count == 0 => {}
                    (Role::BackEnd, Some(rank)) => {
                        dropped.by_back_ends.push(DroppedBy { rank, stream, count });
                    }
                    (Role::BackEnd, None) => {}
                    _ => dropped.above.push((stream, count)),
                }
            }
        }
        dropped
    }

    /// How many packets all processes of a rank have dropped on a stream, one after another.
    pub(crate) fn by(&self, rank: Rank, stream: StreamId) -> u64 {
        let of = |one: &&DroppedBy| one.rank == rank && one.stream == stream;
        self.by_back_ends.iter().filter(of).map(|one| one.count).sum()
    }

    /// How many packets and chunks the processes above the back-ends have refused on a stream.
    pub(crate) fn above(&self, stream: StreamId) -> u64 {
        self.above.iter().filter(|&&(on, _)| on == stream).map(|&(_, count)| count).sum()
    }

    /// The counts of back-ends.
    pub(crate) fn by_back_ends(&self) -> &[DroppedBy] {
        &self.by_back_ends
    }
}
