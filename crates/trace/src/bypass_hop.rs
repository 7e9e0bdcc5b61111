//! One hop of a bypassed reduction; `bindings/mpi/shim/hops.h` draws it.

use sapwood_packet::Rank;

use crate::words::{halves, pair};

/// Words of 64 bits of a hop.
pub const HOP_WORDS: usize = 4;

const LATE: u8 = 1;
const TO_ALL: u8 = 2;
const ROOT: u8 = 4;
const FLAGS: u8 = LATE | TO_ALL | ROOT;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BypassHopKind {
    /// The rank has called.
    Entered = 1,
    /// The part of a child, complete with all below it, has come to its parent's place.
    Arrived = 2,
    /// The place is folded: its part goes up, or at the root the result is there.
    SentUp = 3,
    /// The rank has read the result, in an operation that gives it to all.
    ReceivedDown = 4,
    /// The rank returns from its call.
    Exit = 5,
}

impl BypassHopKind {
    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Entered,
            2 => Self::Arrived,
            3 => Self::SentUp,
            4 => Self::ReceivedDown,
            5 => Self::Exit,
            _ => return None,
        })
    }
}

/// A hop of one reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BypassHop {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub time: u64,
    /// The communicator, by a number that is the same in all its processes.
    pub communicator: u64,
    /// The low bits of the reduction's number on it.
    pub instance: u32,
    /// What has happened.
    pub kind: BypassHopKind,
    /// Ranks of the communicator.
    pub size: u16,
    /// The rank at whose place it happened, in `MPI_COMM_WORLD`.
    pub rank: Rank,
    /// Of an arrival the rank whose part came, else the same as `rank`.
    pub child: Rank,
    /// Of an arrival, whether the parent had called by then.
    pub is_late: bool,
    /// Whether all ranks read the result.
    pub is_to_all: bool,
    /// Whether the place is the tree's root.
    pub is_root: bool,
}

impl BypassHop {
    /// Reads a record; none of a kind, or with flags, that are not known.
    #[must_use]
    pub fn decode(words: [u64; HOP_WORDS]) -> Option<Self> {
        let [time, communicator, what, whom] = words;
        let [kind, flags, s0, s1, instance @ ..] = what.to_le_bytes();
        let (rank, child) = halves(whom);
        let kind = BypassHopKind::from_code(kind)?;
        let is_of_one = kind != BypassHopKind::Arrived;
        if flags & !FLAGS != 0 || is_of_one != (rank == child) {
            return None;
        }
        Some(Self {
            time,
            communicator,
            instance: u32::from_le_bytes(instance),
            kind,
            size: u16::from_le_bytes([s0, s1]),
            rank,
            child,
            is_late: flags & LATE != 0,
            is_to_all: flags & TO_ALL != 0,
            is_root: flags & ROOT != 0,
        })
    }

    /// As it was read.
    #[must_use]
    pub fn words(&self) -> [u64; HOP_WORDS] {
        let flags = (u8::from(self.is_late) * LATE)
            | (u8::from(self.is_to_all) * TO_ALL)
            | (u8::from(self.is_root) * ROOT);
        let [s0, s1] = self.size.to_le_bytes();
        let low = u32::from_le_bytes([self.kind as u8, flags, s0, s1]);
        let what = pair(low, self.instance);
        [self.time, self.communicator, what, pair(self.rank, self.child)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_is_read_as_it_is_drawn_and_written_as_it_was_read() {
        let words = [1000, 0xabc, 2 | 3 << 8 | 8 << 16 | 77 << 32, 4 | 5 << 32];
        let expected = BypassHop {
            time: 1000,
            communicator: 0xabc,
            instance: 77,
            kind: BypassHopKind::Arrived,
            size: 8,
            rank: 4,
            child: 5,
            is_late: true,
            is_to_all: true,
            is_root: false,
        };
        assert_eq!(BypassHop::decode(words), Some(expected));
        assert_eq!(expected.words(), words);
        for kind in [1, 3, 4, 5] {
            let words = [7, 8, kind | 4 << 8 | 3 << 16, 2 | 2 << 32];
            let hop = BypassHop::decode(words).expect("a known kind");
            assert!(hop.is_root && hop.words() == words, "{kind}");
        }
    }

    #[test]
    fn what_is_not_known_is_no_hop() {
        for (what, whom) in [
            (0, 0),
            (6, 0),
            (255, 0),
            // A flag that is not known, an arrival of the place itself, another rank's call.
            (1 | 8 << 8, 0),
            (2, 5 | 5 << 32),
            (1, 5 | 6 << 32),
        ] {
            assert_eq!(BypassHop::decode([1, 1, what, whom]), None, "{what:#x} {whom:#x}");
        }
    }
}
