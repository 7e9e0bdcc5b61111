//! An event file: its header, its communicators, and where its rings lie. The file is written by
//! another process at any moment, so that every number of it is checked before it is used.

use alloc::vec::Vec;
use core::ops::Range;

use sapwood_packet::Rank;

use crate::TraceError;
use crate::event::RECORD_WORDS;
use crate::standing::Side;

/// Words of the header.
pub const HEADER_WORDS: usize = 32;
/// Words of a communicator's space.
const SPACE_WORDS: usize = 8;
/// In a space, since when the communicator may have it.
const SINCE_WORD: usize = 7;
/// Words before the records of a ring.
const RING_WORDS: usize = 8;

const MAGIC: u64 = u64::from_le_bytes(*b"SWEVENTS");
const VERSION: u64 = 1;
const SPACES_MAX: u64 = 1 << 16;
const RINGS_MAX: u64 = 64;
const RECORDS_MAX: u64 = 1 << 24;

const CYCLES: u64 = 1;
const RECORDING: u64 = 1;
const ORDER_LOST: u64 = 4;
const MESSAGES_LOST: u64 = 8;
const FINALIZED: u64 = 16;
const BETWEEN: u64 = 1;
const WINDOW: u64 = 2;
const NUMBER_LOST: u64 = 4;
const REQUEST: u64 = 8;
/// In the place of the process whose part of a window is locked: all of them.
const HELD_ALL: u32 = u32::MAX;

/// The clock of a file: one moment by it and by `CLOCK_MONOTONIC`, and its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileClock {
    /// The moment in ticks.
    pub ticks: u64,
    /// The same in nanoseconds.
    pub ns: u64,
    /// Nanoseconds per tick, in 1 / 2^32.
    pub scale: u64,
    /// Whether the ticks are those of the processor, which all processes of a host share.
    pub is_cycles: bool,
}

/// A communicator of a process, a window, or the request of a persistent collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// The same in all its processes.
    pub identity: u64,
    /// Processes of the local group.
    pub size: u32,
    /// This process in it.
    pub rank: Rank,
    /// Whether it joins two groups.
    pub is_between: bool,
    /// Whether a collective has failed on it here, or it was made behind a call that failed: `made`
    /// may not be what others count.
    pub is_number_lost: bool,
    /// Whether it is a window, with the processes of the communicator on which it was made.
    pub is_window: bool,
    /// Whether it is the request of a persistent collective.
    pub is_request: bool,
    /// Of a window, the process whose part this one has locked: the latest, [`Side::Any`] for all.
    pub held: Side,
    /// Its handle in this process, or of a request a number that no handle is; 0 once it is freed.
    pub handle: u64,
    /// Where its name stands among those of its process's table, from 1; 0 for none.
    pub name: u32,
    /// Collectives on it that have returned, or were started; of a request, its starts.
    pub made: u32,
    /// The function of the last one; 0 for none.
    pub last_function: u32,
    /// The root of the last one, as the program gave it; negative for none.
    pub last_root: i32,
    /// When the communicator that had this space before had left it, by the clock of the records:
    /// what was recorded earlier is of that one. 0 for the first; [`u64::MAX`] while the space is
    /// changed.
    pub since: u64,
}

/// What the header of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFile {
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: Rank,
    /// The size of `MPI_COMM_WORLD`.
    pub world_size: u32,
    /// The clock of the records.
    pub clock: FileClock,
    /// Whether records are written at this moment.
    pub is_recording: bool,
    /// Whether collectives were called unseen, so that their numbers mean nothing.
    pub is_order_lost: bool,
    /// The same of messages.
    pub is_messages_lost: bool,
    /// Whether the rank is in `MPI_Finalize`, or behind it, so that no collective follows.
    pub is_finalized: bool,
    /// Records of threads that have no ring.
    pub without_ring: u64,
    /// Calls on communicators for which there was no room.
    pub without_space: u64,
    /// Receives of which it is not known which message they took.
    pub unsure: u64,
    /// When recording was last switched off, by `CLOCK_MONOTONIC`; 0 while it is on, and before it
    /// was on first.
    pub paused_ns: u64,
    /// Hops of bypassed reductions of threads that have no ring of hops.
    pub without_hop_ring: u64,
    spaces: usize,
    rings: usize,
    hop_rings: usize,
    ring_records: usize,
    rings_begin: usize,
}

impl EventFile {
    /// Reads the header of a file that has this many words.
    ///
    /// # Errors
    /// [`TraceError::File`] that names what is wrong, [`TraceError::Cut`] where its end is missing.
    pub fn read(header: &[u64], words: usize) -> Result<Self, TraceError> {
        let wrong = |what, found, wanted| Err(TraceError::File { what, found, wanted });
        let cut = |words: usize, wanted: u64| {
            Err(TraceError::Cut { bytes: words as u64 * 8, wanted: wanted * 8 })
        };
        let Some(header) = header.first_chunk::<HEADER_WORDS>() else {
            return cut(header.len(), HEADER_WORDS as u64);
        };
        if header[0] != MAGIC {
            return wrong("first word", header[0], MAGIC);
        }
        if low(header[1]) != VERSION {
            return wrong("version", low(header[1]), VERSION);
        }
        let (rank, world_size) = (word(header[2]), word(header[2] >> 32));
        if rank >= world_size {
            return wrong("rank", rank.into(), world_size.into());
        }
        let spaces_capacity = header[8] >> 32;
        let (spaces, rings) = (low(header[9]), header[9] >> 32);
        let (records, rings_begin) = (low(header[10]), header[10] >> 32);
        let hop_rings = low(header[16]);
        for (what, found, limit) in [
            ("number of communicators", spaces_capacity, SPACES_MAX),
            ("number of communicators in use", spaces, spaces_capacity),
            ("number of rings", rings, RINGS_MAX),
            ("number of rings of hops", hop_rings, RINGS_MAX),
            ("number of records", records, RECORDS_MAX),
        ] {
            if found > limit {
                return wrong(what, found, limit);
            }
        }
        let ring_words = RING_WORDS as u64 + records * RECORD_WORDS as u64;
        let end = rings_begin / 8 + (rings + hop_rings) * ring_words;
        let spaces_end = (HEADER_WORDS as u64 + spaces * SPACE_WORDS as u64) * 8;
        if !records.is_power_of_two() || spaces_end > rings_begin {
            return wrong("begin of the rings", rings_begin, spaces_end);
        }
        if end > words as u64 {
            return cut(words, end);
        }
        let state = low(header[8]);
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            rank,
            world_size,
            clock: FileClock {
                ticks: header[5],
                ns: header[6],
                scale: header[7],
                is_cycles: header[3] >> 32 & CYCLES != 0,
            },
            is_recording: state & RECORDING != 0,
            is_order_lost: state & ORDER_LOST != 0,
            is_messages_lost: state & MESSAGES_LOST != 0,
            is_finalized: state & FINALIZED != 0,
            without_ring: header[11],
            without_space: header[12],
            unsure: header[13],
            paused_ns: header[14],
            without_hop_ring: header[15],
            spaces: place(spaces),
            rings: place(rings),
            hop_rings: place(hop_rings),
            ring_records: place(records),
            rings_begin: place(rings_begin / 8),
        })
    }

    /// Where the communicators are, in words.
    #[must_use]
    pub const fn spaces(&self) -> Range<usize> {
        HEADER_WORDS..HEADER_WORDS + self.spaces * SPACE_WORDS
    }

    /// Where those from this number on are, in words; nowhere if there are not as many.
    #[must_use]
    pub const fn spaces_from(&self, number: usize) -> Range<usize> {
        let number = if number < self.spaces { number } else { self.spaces };
        HEADER_WORDS + number * SPACE_WORDS..HEADER_WORDS + self.spaces * SPACE_WORDS
    }

    /// Where the communicator of a number is, in words; nowhere if there is none.
    #[must_use]
    pub const fn space(&self, number: usize) -> Range<usize> {
        let all = self.spaces_from(number);
        let end = all.start + SPACE_WORDS;
        all.start..if end < all.end { end } else { all.end }
    }

    /// The number of rings.
    #[must_use]
    pub const fn rings(&self) -> usize {
        self.rings
    }

    /// The rings of hops of bypassed reductions, which have the numbers behind those of the others.
    #[must_use]
    pub const fn hop_rings(&self) -> Range<usize> {
        self.rings..self.rings + self.hop_rings
    }

    /// Records of each ring, a power of two.
    #[must_use]
    pub const fn ring_records(&self) -> usize {
        self.ring_records
    }

    /// The word that says how many records a ring has had.
    #[must_use]
    pub const fn head(&self, ring: usize) -> usize {
        self.rings_begin + ring * (RING_WORDS + self.ring_records * RECORD_WORDS)
    }

    /// Where the record of a number is in a ring, in words.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "a place in a ring is smaller than it")]
    pub const fn record(&self, ring: usize, number: u64) -> Range<usize> {
        let place = number as usize & (self.ring_records - 1);
        let begin = self.head(ring) + RING_WORDS + place * RECORD_WORDS;
        begin..begin + RECORD_WORDS
    }
}

/// Reads communicators, out of the words where they are.
#[must_use]
pub fn spaces(words: &[u64]) -> Vec<Space> {
    let space = |words: &[u64]| Space {
        identity: words[1],
        size: word(words[2] >> 32),
        rank: word(words[3]),
        is_between: words[3] >> 32 & BETWEEN != 0,
        is_number_lost: words[3] >> 32 & NUMBER_LOST != 0,
        is_window: words[3] >> 32 & WINDOW != 0,
        is_request: words[3] >> 32 & REQUEST != 0,
        held: match word(words[6]) {
            0 => Side::None,
            HELD_ALL => Side::Any,
            target => Side::Rank(target - 1),
        },
        handle: words[0],
        name: word(words[6] >> 32),
        made: word(words[2]),
        last_function: word(words[5]),
        last_root: word(words[5] >> 32).cast_signed(),
        since: words[SINCE_WORD],
    };
    words.chunks_exact(SPACE_WORDS).map(space).collect()
}

/// The words that say since when communicators may have their spaces, which are in these words.
pub fn since_words(spaces: Range<usize>) -> impl Iterator<Item = usize> {
    spaces.skip(SINCE_WORD).step_by(SPACE_WORDS)
}

/// Reads communicators whose spaces other ones may have got meanwhile. `before` and `after` are
/// what stood in [`since_words`] before the words were copied and behind: where they differ the
/// words may be of two communicators, so that the space is empty but for a `since` behind all
/// records.
#[must_use]
pub fn settled_spaces(before: &[u64], words: &[u64], after: &[u64]) -> Vec<Space> {
    let settled = |(number, space): (usize, Space)| match (before.get(number), after.get(number)) {
        (Some(&before), Some(&after))
            if before == space.since && after == space.since && after != u64::MAX =>
        {
            space
        }
        _ => Space { since: u64::MAX, ..Space::default() },
    };
    spaces(words).into_iter().enumerate().map(settled).collect()
}

const fn low(word: u64) -> u64 {
    word & 0xffff_ffff
}

#[allow(clippy::cast_possible_truncation, reason = "the low half is what is taken")]
const fn word(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> [u64; HEADER_WORDS] {
        let mut header = [0; HEADER_WORDS];
        header[0] = MAGIC;
        header[1] = 1 | 256 << 32;
        header[2] = 3 | 8 << 32;
        header[3] = 77 | 1 << 32;
        header[8] = 3 | 16 | 4 << 32;
        header[9] = 2 | 2 << 32;
        header[10] = 16 | (256 + 4 * 64) << 32;
        header[14] = 99;
        header
    }

    const WORDS: usize = 32 + 4 * 8 + 2 * (8 + 16 * 4);

    #[test]
    fn a_header_is_read_as_it_is_drawn() {
        let file = EventFile::read(&header(), WORDS).expect("a whole file");
        assert_eq!((file.rank, file.world_size, file.is_recording), (3, 8, true));
        assert!(file.clock.is_cycles && !file.is_order_lost && file.is_finalized);
        assert_eq!(file.paused_ns, 99);
        assert_eq!(file.spaces(), 32..48);
        assert_eq!((file.head(0), file.head(1)), (64, 64 + 72));
        assert_eq!(file.record(1, 17), 64 + 72 + 8 + 4..64 + 72 + 8 + 8);
    }

    #[test]
    fn rings_of_hops_lie_behind_those_of_calls() {
        let mut header = header();
        assert!(EventFile::read(&header, WORDS).expect("a whole file").hop_rings().is_empty());
        (header[15], header[16]) = (9, 2);
        let words = WORDS + 2 * 72;
        let file = EventFile::read(&header, words).expect("a whole file");
        assert_eq!((file.rings(), file.hop_rings(), file.without_hop_ring), (2, 2..4, 9));
        assert_eq!((file.head(2), file.head(3) + 72), (WORDS, words));
        assert!(EventFile::read(&header, words - 1).is_err(), "a word is missing");
        header[16] = RINGS_MAX + 1;
        let error = EventFile::read(&header, usize::MAX).expect_err("too many");
        assert!(error.to_string().contains("number of rings of hops"), "{error}");
    }

    #[test]
    fn a_file_that_is_cut_or_forged_is_refused() {
        let error = EventFile::read(&header(), WORDS - 1).expect_err("a word is missing");
        assert_eq!(error.to_string(), "event file: it is cut: it has 1656 bytes of 1664");
        for (place, value) in [
            (0, 1),
            (1, 2 | 256 << 32),
            (2, 8 | 8 << 32),
            (9, 5 | 2 << 32),
            (9, 2 | 1 << 63),
            (10, 15 | 512 << 32),
            (10, 16 | 8 << 32),
            (10, u64::MAX),
        ] {
            let mut forged = header();
            forged[place] = value;
            assert!(EventFile::read(&forged, WORDS).is_err(), "word {place}: {value:#x}");
        }
        let error = EventFile::read(&header()[..31], 31).expect_err("a word is missing");
        assert_eq!(error, TraceError::Cut { bytes: 248, wanted: 256 });
    }

    #[test]
    fn communicators_are_read_as_they_are_drawn() {
        let words = [1, 0xabc, 7 | 4 << 32, 2 | 15 << 32, 0, 36 | 3 << 32, 5 | 9 << 32, 88];
        let expected = Space {
            identity: 0xabc,
            size: 4,
            rank: 2,
            is_between: true,
            is_number_lost: true,
            is_window: true,
            is_request: true,
            held: Side::Rank(4),
            handle: 1,
            name: 9,
            made: 7,
            last_function: 36,
            last_root: 3,
            since: 88,
        };
        assert_eq!(spaces(&words), [expected]);
        assert_eq!(settled_spaces(&[88], &words, &[88]), [expected]);
    }

    #[test]
    fn a_space_that_another_communicator_got_meanwhile_is_empty() {
        let words = [1, 0xabc, 0, 0, 0, 0, 0, 88];
        let empty = [Space { since: u64::MAX, ..Space::default() }];
        for (before, after) in [(0, 88), (88, 99), (88, u64::MAX), (u64::MAX, 88), (99, 99)] {
            assert_eq!(settled_spaces(&[before], &words, &[after]), empty, "{before} {after}");
        }
        assert_eq!(settled_spaces(&[], &words, &[88]), empty);
    }

    #[test]
    fn the_words_of_one_communicator_are_found() {
        let file = EventFile::read(&header(), WORDS).expect("a whole file");
        assert_eq!((file.space(0), file.space(1)), (32..40, 40..48));
        assert!(file.space(2).is_empty() && file.space(usize::MAX).is_empty());
        assert_eq!((file.spaces_from(1), file.spaces_from(7)), (40..48, 48..48));
        assert!(since_words(file.spaces()).eq([39, 47]));
    }

    use std::string::ToString;
}
