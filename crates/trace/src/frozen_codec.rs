//! Packets of frozen events, and the filter that puts them side by side.
//!
//! ```text
//!  0  %ud    version, 3
//!  1  %ud    ranks of the program
//!  2  %auld  ranks, 6 words each: rank and presence, flags, clock; moment; error; calls without a
//!            ring; calls without a space; 0
//!  3  %auld  rings, 6 words each: rank and number; written; overwritten; oldest; left out; damaged
//!  4  %auld  seats, 4 words each: communicator; rank and rank there; size and flags; collectives
//!  5  %auld  events, 6 words each: begin; span; rank and codes; communicator; sequence and peer;
//!            tag and receives
//!  6  %auld  communicators that have names, and
//!  7  %as    these
//! ```
//!
//! The codes of an event are its function in 16 bits, its kind in 4, its pattern in 2, whether it
//! is open in bit 23, and its thread in 8.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sapwood_filter::{Emitter, Filter, FilterError, WaveRef};
use sapwood_packet::{Directive, ElementType, Rank, Shape, Values, ValuesRef};

use crate::TraceError;
use crate::event::EventKind;
use crate::frozen::{FROZEN_EVENTS_MAX, Frozen, FrozenEvent, FrozenRank, FrozenRing, FrozenSeat};
use crate::instance::Pattern;
use crate::standing_codec::{PRESENCES, rows};
use crate::words::{halves, pair};

/// The name of the filter that puts frozen events side by side. It takes no parameters.
pub const TRACE_FREEZE: &str = "trace-freeze";

const VERSION: u32 = 3;
const WORD: Directive = Directive::new(ElementType::Uint32, Shape::Scalar);
const LONGS: Directive = Directive::new(ElementType::Uint64, Shape::Array);
const TEXTS: Directive = Directive::new(ElementType::String, Shape::Array);
const LAYOUT: [Directive; 8] = [WORD, WORD, LONGS, LONGS, LONGS, LONGS, LONGS, TEXTS];
const WRONG: TraceError = TraceError::Contradiction { what: "rows" };

const IS_RECORDING: u32 = 1 << 8;
const IS_ORDER_LOST: u32 = 1 << 9;
const CLOCK_SHIFT: u32 = 16;
const IS_BETWEEN: u32 = 1;
const IS_NUMBER_LOST: u32 = 2;
const KIND_SHIFT: u32 = 16;
const PATTERN_SHIFT: u32 = 20;
const IS_OPEN: u32 = 1 << 23;
const THREAD_SHIFT: u32 = 24;

const fn flag(is: bool, bit: u32) -> u32 {
    if is { bit } else { 0 }
}

fn push_rank(row: &mut Vec<u64>, rank: Rank, one: &FrozenRank) {
    let codes = one.presence as u32
        | flag(one.is_recording, IS_RECORDING)
        | flag(one.is_order_lost, IS_ORDER_LOST)
        | one.clock.min(u32::from(u16::MAX)) << CLOCK_SHIFT;
    let now = one.now.cast_unsigned();
    row.extend([pair(rank, codes), now, one.error, one.without_ring, one.without_space, 0]);
}

fn frozen_rank(words: &[u64]) -> Result<(Rank, FrozenRank), TraceError> {
    let (rank, codes) = halves(words[0]);
    let [presence, ..] = codes.to_le_bytes();
    let one = FrozenRank {
        presence: *PRESENCES.get(usize::from(presence)).ok_or(WRONG)?,
        is_recording: codes & IS_RECORDING != 0,
        is_order_lost: codes & IS_ORDER_LOST != 0,
        now: words[1].cast_signed(),
        clock: codes >> CLOCK_SHIFT,
        error: words[2],
        without_ring: words[3],
        without_space: words[4],
    };
    Ok((rank, one))
}

fn ring(words: &[u64]) -> Result<((Rank, u8), FrozenRing), TraceError> {
    let (rank, number) = halves(words[0]);
    let one = FrozenRing {
        written: words[1],
        overwritten: words[2],
        oldest: words[3].cast_signed(),
        left_out: words[4],
        damaged: words[5],
    };
    Ok(((rank, u8::try_from(number).map_err(|_| WRONG)?), one))
}

fn seat(words: &[u64]) -> ((u64, Rank), FrozenSeat) {
    let ((world, rank), (size, flags)) = (halves(words[1]), halves(words[2]));
    let (made, _) = halves(words[3]);
    let has = |bit| flags & bit != 0;
    let (is_between, is_number_lost) = (has(IS_BETWEEN), has(IS_NUMBER_LOST));
    ((words[0], world), FrozenSeat { rank, size, is_between, is_number_lost, made })
}

fn push_event(row: &mut Vec<u64>, one: &FrozenEvent) {
    let codes = (one.function & 0xffff)
        | one.kind.map_or(0, |kind| kind as u32) << KIND_SHIFT
        | (one.pattern as u32) << PATTERN_SHIFT
        | flag(one.is_open, IS_OPEN)
        | u32::from(one.thread) << THREAD_SHIFT;
    row.extend([
        one.begin.cast_unsigned(),
        one.span,
        pair(one.rank, codes),
        one.communicator,
        pair(one.sequence, one.peer.cast_unsigned()),
        pair(one.tag.cast_unsigned(), one.members.into()),
    ]);
}

fn event(words: &[u64]) -> Result<FrozenEvent, TraceError> {
    let (rank, codes) = halves(words[2]);
    let (sequence, peer) = halves(words[4]);
    let (tag, members) = halves(words[5]);
    let [.., thread] = codes.to_le_bytes();
    let [members, ..] = members.to_le_bytes();
    let kind = match (codes >> KIND_SHIFT).to_le_bytes()[0] & 0xf {
        0 => None,
        code => Some(EventKind::from_code(code).ok_or(WRONG)?),
    };
    Ok(FrozenEvent {
        rank,
        thread,
        function: codes & 0xffff,
        kind,
        pattern: Pattern::from_code(u64::from(codes >> PATTERN_SHIFT & 3)).ok_or(WRONG)?,
        is_open: codes & IS_OPEN != 0,
        communicator: words[3],
        sequence,
        peer: peer.cast_signed(),
        tag: tag.cast_signed(),
        members,
        begin: words[0].cast_signed(),
        span: words[1],
    })
}

impl Frozen {
    /// Words of a row in each of a packet's lists: ranks, rings, seats, events.
    pub const ROW_WORDS: [usize; 4] = [6, 6, 4, 6];

    /// As the values of a packet.
    #[must_use]
    pub fn encode(&self) -> Values {
        let mut rows: [Vec<u64>; 4] = Default::default();
        self.ranks.iter().for_each(|(&rank, one)| push_rank(&mut rows[0], rank, one));
        for (&(rank, number), one) in &self.rings {
            let key = pair(rank, number.into());
            let oldest = one.oldest.cast_unsigned();
            rows[1].extend([key, one.written, one.overwritten, oldest, one.left_out, one.damaged]);
        }
        for (&(communicator, rank), one) in &self.seats {
            let flags = flag(one.is_between, IS_BETWEEN) | flag(one.is_number_lost, IS_NUMBER_LOST);
            let sizes = pair(one.size, flags);
            rows[2].extend([communicator, pair(rank, one.rank), sizes, pair(one.made, 0)]);
        }
        self.events.iter().for_each(|one| push_event(&mut rows[3], one));
        let named: Vec<u64> = self.names.keys().copied().collect();
        let names: Vec<&str> = self.names.values().map(String::as_str).collect();
        let head = Values::new().scalar(VERSION).scalar(self.world_size);
        let body = rows.iter().fold(head, |values, rows| values.array(rows));
        body.array(&named).strings(&names)
    }

    /// Reads the values of a packet.
    ///
    /// # Errors
    /// [`TraceError::Format`] when they are another thing, else what is wrong with them.
    pub fn decode(values: ValuesRef<'_>) -> Result<Self, TraceError> {
        let fits = values.format().directives().eq(LAYOUT);
        if !fits || values.scalar::<u32>(0)? != VERSION {
            return Err(TraceError::Format { format: values.format().to_string() });
        }
        let mut read = Self { world_size: values.scalar(1)?, ..Self::default() };
        let [ranks, rings, seats, events] = Self::ROW_WORDS;
        for words in rows(values, 2, ranks)? {
            let (rank, one) = frozen_rank(words)?;
            read.ranks.insert(rank, one);
        }
        for words in rows(values, 3, rings)? {
            let (key, one) = ring(words)?;
            read.rings.insert(key, one);
        }
        read.seats.extend(rows(values, 4, seats)?.map(seat));
        read.events = rows(values, 5, events)?.map(event).collect::<Result<_, _>>()?;
        let named: &[u64] = values.array(6)?;
        for (&identity, name) in named.iter().zip(values.strings(7)?) {
            read.names.insert(identity, String::from_utf8_lossy(name).into_owned());
        }
        Ok(read)
    }
}

pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::new(TraceFreeze))
    } else {
        Err(FilterError::Parameters { name: TRACE_FREEZE, takes: "no parameters" })
    }
}

struct TraceFreeze;

impl Filter for TraceFreeze {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        if others.is_empty() {
            out.emit_encoded(first.header.tag, first.values());
            return Ok(());
        }
        let mut all = Frozen::decode(first.values()).map_err(failed)?;
        for other in others {
            all.merge(Frozen::decode(other.values()).map_err(failed)?);
        }
        all.bound(FROZEN_EVENTS_MAX);
        out.emit(first.header.tag, all.encode());
        Ok(())
    }
}

#[cold]
fn failed(error: TraceError) -> FilterError {
    FilterError::Failed(format!("filter '{TRACE_FREEZE}': {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standing::Presence;

    fn frozen() -> Frozen {
        let event = FrozenEvent {
            rank: 7,
            thread: 63,
            function: 0xffff,
            kind: Some(EventKind::ReceiveCompleted),
            pattern: Pattern::ToRoot,
            is_open: true,
            communicator: u64::MAX,
            sequence: 9,
            peer: -2,
            tag: i32::MIN,
            members: 255,
            begin: -5,
            span: 1 << 40,
        };
        let rank = FrozenRank {
            presence: Presence::Ended,
            is_recording: true,
            is_order_lost: true,
            now: -1,
            clock: 3,
            error: 9,
            without_ring: 1,
            without_space: 2,
        };
        let ring = FrozenRing { written: 9, overwritten: 4, oldest: -9, left_out: 2, damaged: 1 };
        let seat = FrozenSeat { rank: 1, size: 2, is_between: true, is_number_lost: true, made: 7 };
        Frozen {
            world_size: 8,
            ranks: [(7, rank), (1, FrozenRank::default())].into(),
            rings: [((7, 63), ring)].into(),
            seats: [((5, 7), seat), ((5, 1), FrozenSeat::default())].into(),
            names: [(5, "high".into())].into(),
            events: [event, FrozenEvent::default()].into(),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let read = Frozen::decode(frozen().encode().as_ref()).expect("it was just written");
        assert_eq!(read, frozen());
    }

    /// The packet of one array in place of the one that it should have.
    fn forged(place: usize, words: &[u64]) -> Values {
        let head = Values::new().scalar(VERSION).scalar(1_u32);
        let arrays = (2..=6)
            .fold(head, |values, at| values.array::<u64>(if at == place { words } else { &[] }));
        arrays.strings::<&str>(&[])
    }

    #[test]
    fn a_packet_that_is_cut_or_forged_is_refused() {
        assert!(Frozen::decode(Values::new().scalar(1_u32).as_ref()).is_err());
        assert!(Frozen::decode(forged(2, &[]).as_ref()).is_ok());
        for (place, words) in (2..).zip(Frozen::ROW_WORDS) {
            let cut = [0_u64; 16];
            assert!(Frozen::decode(forged(place, &cut[..words]).as_ref()).is_ok(), "{place}");
            assert!(Frozen::decode(forged(place, &cut[..words + 1]).as_ref()).is_err(), "{place}");
        }
        // A presence, a ring's number and a kind that there are not.
        for (place, words) in [
            (2, [pair(0, 99), 0, 0, 0, 0, 0]),
            (3, [pair(0, 256), 0, 0, 0, 0, 0]),
            (5, [0, 0, pair(0, 15 << KIND_SHIFT), 0, 0, 0]),
        ] {
            assert!(Frozen::decode(forged(place, &words).as_ref()).is_err(), "{place}: {words:?}");
        }
    }
}
