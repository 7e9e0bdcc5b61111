//! Packets of where ranks stand, and the filter that merges them.
//!
//! ```text
//!  0  %ud    version, 9
//!  1  %ud    ranks of the program
//!  2  %auld  ranks, 11 words each: rank and codes; communicator; function and side; tag and
//!            request; how long; calls; polls; the function polled and blocked threads; the
//!            destination of an exchange; how long another thread has computed; how long it has
//!            not recorded
//!  3  %auld  seats, 5 words each: communicator; rank and rank there; size and number; flags and
//!            function; root and what it has locked
//!  4  %auld  collective calls on files and windows, 3 words each: rank and function; kind; number
//!  5  %auld  receives of calls that wait for several requests, 3 words each: rank, and the other
//!            requests with the lowest bit for any; communicator; side and tag
//!  6  %auld  communicators that have names, and
//!  7  %as    these
//!  8  %uld   communicators left out
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sapwood_filter::{Emitter, Filter, FilterError, WaveRef};
use sapwood_packet::{Directive, ElementType, Rank, Shape, Values, ValuesRef};

use crate::TraceError;
use crate::instance::Pattern;
use crate::standing::{
    CallKind, OPEN_RECEIVES_MAX, OpenReceive, OpenRequests, Posture, Presence, Seat, Side,
    Standing, Standpoint,
};
use crate::words::{halves, pair};

/// The name of the filter that merges where ranks stand. It takes no parameters.
pub const TRACE_STANDING: &str = "trace-standing";

const VERSION: u32 = 9;
const WORD: Directive = Directive::new(ElementType::Uint32, Shape::Scalar);
const LONG: Directive = Directive::new(ElementType::Uint64, Shape::Scalar);
const LONGS: Directive = Directive::new(ElementType::Uint64, Shape::Array);
const TEXTS: Directive = Directive::new(ElementType::String, Shape::Array);
const LAYOUT: [Directive; 9] = [WORD, WORD, LONGS, LONGS, LONGS, LONGS, LONGS, TEXTS, LONG];
const WRONG: TraceError = TraceError::Contradiction { what: "rows" };
/// Rows of one kind in a packet, at most.
const ROWS_MAX: usize = 1 << 22;

const HAS_CALL: u32 = 1;
const HAS_TAG: u32 = 2;
const IS_REQUEST_KNOWN: u32 = 4;
const IS_LOCKED: u32 = 8;
/// The call is that in which the process has ended.
const HAS_ENDED_IN: u32 = 16;
const IS_ORDER_LOST: u32 = 32;
const IS_FREED: u32 = 1;
const IS_BETWEEN: u32 = 2;
const IS_NUMBER_LOST: u32 = 4;
const HAS_ROOT: u32 = 8;
const IS_LAST_OF_NEIGHBOURS: u32 = 16;
const IS_LAST_STARTED: u32 = 32;
/// In the place of a side: none, and any. No communicator has as many processes.
const SIDE_NONE: u32 = u32::MAX;
const SIDE_ANY: u32 = u32::MAX - 1;

/// By their codes.
pub(crate) const PRESENCES: [Presence; 7] = [
    Presence::Running,
    Presence::Computing,
    Presence::Sleeping,
    Presence::Stopped,
    Presence::Lost,
    Presence::Finalizing,
    Presence::Ended,
];
/// By their codes.
const KINDS: [CallKind; 12] = [
    CallKind::Other,
    CallKind::Collective,
    CallKind::Creation,
    CallKind::File,
    CallKind::Window,
    CallKind::Receive,
    CallKind::Send,
    CallKind::Wait,
    CallKind::Poll,
    CallKind::Lock,
    CallKind::Exchange,
    CallKind::CollectiveStart,
];

const fn side_code(side: Side) -> u32 {
    match side {
        Side::None => SIDE_NONE,
        Side::Any => SIDE_ANY,
        Side::Rank(rank) => rank,
    }
}

const fn side_of(code: u32) -> Side {
    match code {
        SIDE_NONE => Side::None,
        SIDE_ANY => Side::Any,
        rank => Side::Rank(rank),
    }
}

const fn flag(is: bool, bit: u32) -> u32 {
    if is { bit } else { 0 }
}

fn push_posture(row: &mut Vec<u64>, (&rank, one): (&Rank, &Posture)) {
    let call = one.call.or(one.ended_in).unwrap_or_default();
    let flags = flag(one.call.is_some(), HAS_CALL)
        | flag(one.call.is_none() && one.ended_in.is_some(), HAS_ENDED_IN)
        | flag(call.tag.is_some(), HAS_TAG)
        | flag(call.is_request_known, IS_REQUEST_KNOWN)
        | flag(one.is_locked, IS_LOCKED)
        | flag(one.is_order_lost, IS_ORDER_LOST);
    let codes =
        one.presence as u32 | (call.kind as u32) << 8 | (call.pattern as u32) << 16 | flags << 24;
    row.extend([
        pair(rank, codes),
        call.space,
        pair(call.function, side_code(call.side)),
        pair(call.tag.unwrap_or(0).cast_unsigned(), call.request),
        one.for_ns,
        one.calls,
        one.polls,
        pair(one.polled, one.blocked_threads),
        side_code(call.destination).into(),
        one.beside_ns,
        one.unrecorded_ns,
    ]);
}

fn posture(words: &[u64]) -> Result<(Rank, Posture), TraceError> {
    let (rank, codes) = halves(words[0]);
    let [presence, kind, pattern, flags] = codes.to_le_bytes();
    let (function, side) = halves(words[2]);
    let (tag, request) = halves(words[3]);
    let has = |bit| u32::from(flags) & bit != 0;
    let call = Standpoint {
        function,
        kind: *KINDS.get(usize::from(kind)).ok_or(WRONG)?,
        pattern: Pattern::from_code(pattern.into()).ok_or(WRONG)?,
        space: words[1],
        side: side_of(side),
        destination: side_of(u32::try_from(words[8]).map_err(|_| WRONG)?),
        tag: has(HAS_TAG).then_some(tag.cast_signed()),
        request,
        is_request_known: has(IS_REQUEST_KNOWN),
    };
    let (polled, blocked_threads) = halves(words[7]);
    let one = Posture {
        presence: *PRESENCES.get(usize::from(presence)).ok_or(WRONG)?,
        call: has(HAS_CALL).then_some(call),
        ended_in: (has(HAS_ENDED_IN) && !has(HAS_CALL)).then_some(call),
        for_ns: words[4],
        calls: words[5],
        polls: words[6],
        polled,
        beside_ns: words[9],
        blocked_threads,
        is_locked: has(IS_LOCKED),
        is_polling: false,
        unrecorded_ns: words[10],
        is_order_lost: has(IS_ORDER_LOST),
    };
    Ok((rank, one))
}

fn push_seat(row: &mut Vec<u64>, (&(space, rank), one): (&(u64, Rank), &Seat)) {
    let flags = flag(one.is_freed, IS_FREED)
        | flag(one.is_between, IS_BETWEEN)
        | flag(one.is_number_lost, IS_NUMBER_LOST)
        | flag(one.is_last_of_neighbours, IS_LAST_OF_NEIGHBOURS)
        | flag(one.is_last_started, IS_LAST_STARTED)
        | flag(one.last_root.is_some(), HAS_ROOT);
    row.extend([
        space,
        pair(rank, one.rank),
        pair(one.size, one.made),
        pair(flags, one.last_function),
        pair(one.last_root.unwrap_or(0), side_code(one.held)),
    ]);
}

fn seat(words: &[u64]) -> ((u64, Rank), Seat) {
    let ((world, rank), (size, made)) = (halves(words[1]), halves(words[2]));
    let (flags, last_function) = halves(words[3]);
    let (root, held) = halves(words[4]);
    let has = |bit| flags & bit != 0;
    let one = Seat {
        rank,
        size,
        made,
        last_function,
        last_root: has(HAS_ROOT).then_some(root),
        held: side_of(held),
        is_freed: has(IS_FREED),
        is_between: has(IS_BETWEEN),
        is_number_lost: has(IS_NUMBER_LOST),
        is_last_of_neighbours: has(IS_LAST_OF_NEIGHBOURS),
        is_last_started: has(IS_LAST_STARTED),
    };
    ((words[0], world), one)
}

fn push_open(row: &mut Vec<u64>, (&rank, one): (&Rank, &OpenRequests)) {
    let others = one.others.min(u32::MAX >> 1) << 1 | u32::from(one.is_any);
    for receive in one.receives.iter().take(OPEN_RECEIVES_MAX) {
        let side_and_tag = pair(side_code(receive.side), receive.tag.cast_unsigned());
        row.extend([pair(rank, others), receive.space, side_and_tag]);
    }
}

/// Adds a receive to those of its rank.
fn add_open(open: &mut BTreeMap<Rank, OpenRequests>, words: &[u64]) {
    let (rank, others) = halves(words[0]);
    let (side, tag) = halves(words[2]);
    let one = open.entry(rank).or_default();
    (one.others, one.is_any) = (others >> 1, others & 1 != 0);
    let (space, side, tag) = (words[1], side_of(side), tag.cast_signed());
    one.receives.push(OpenReceive { space, side, tag });
}

impl Standing {
    /// Words of a row of each array, from the array of postures on.
    pub const ROW_WORDS: [usize; 4] = [11, 5, 3, 3];

    /// As the values of a packet.
    #[must_use]
    pub fn encode(&self) -> Values {
        let mut rows: [Vec<u64>; 4] = Default::default();
        self.postures.iter().for_each(|one| push_posture(&mut rows[0], one));
        self.seats.iter().for_each(|one| push_seat(&mut rows[1], one));
        for (&(rank, function), &(kind, calls)) in &self.shared {
            rows[2].extend([pair(rank, function), kind as u64, calls]);
        }
        self.open.iter().for_each(|one| push_open(&mut rows[3], one));
        let named: Vec<u64> = self.names.keys().copied().collect();
        let names: Vec<&str> = self.names.values().map(String::as_str).collect();
        let head = Values::new().scalar(VERSION).scalar(self.world_size);
        let body = rows.iter().fold(head, |values, rows| values.array(rows));
        body.array(&named).strings(&names).scalar(self.left_out)
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
        let (world_size, left_out) = (values.scalar(1)?, values.scalar(8)?);
        let mut read = Self { world_size, left_out, ..Self::default() };
        for words in rows(values, 2, Self::ROW_WORDS[0])? {
            let (rank, one) = posture(words)?;
            read.postures.insert(rank, one);
        }
        for words in rows(values, 3, Self::ROW_WORDS[1])? {
            let (key, one) = seat(words);
            read.seats.insert(key, one);
        }
        for words in rows(values, 4, Self::ROW_WORDS[2])? {
            let kind = usize::try_from(words[1]).ok().and_then(|kind| KINDS.get(kind));
            read.shared.insert(halves(words[0]), (*kind.ok_or(WRONG)?, words[2]));
        }
        for words in rows(values, 5, Self::ROW_WORDS[3])? {
            add_open(&mut read.open, words);
        }
        let named: &[u64] = values.array(6)?;
        for (&identity, name) in named.iter().zip(values.strings(7)?) {
            read.names.insert(identity, String::from_utf8_lossy(name).into_owned());
        }
        Ok(read)
    }
}

/// The rows of one array.
pub(crate) fn rows(
    values: ValuesRef<'_>,
    index: usize,
    words: usize,
) -> Result<core::slice::ChunksExact<'_, u64>, TraceError> {
    let all: &[u64] = values.array(index)?;
    if !all.len().is_multiple_of(words) || all.len() / words > ROWS_MAX {
        return Err(WRONG);
    }
    Ok(all.chunks_exact(words))
}

pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::new(TraceStanding))
    } else {
        Err(FilterError::Parameters { name: TRACE_STANDING, takes: "no parameters" })
    }
}

struct TraceStanding;

impl Filter for TraceStanding {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        if others.is_empty() {
            out.emit_encoded(first.header.tag, first.values());
            return Ok(());
        }
        let mut all = Standing::decode(first.values()).map_err(failed)?;
        for other in others {
            all.merge(Standing::decode(other.values()).map_err(failed)?);
        }
        out.emit(first.header.tag, all.encode());
        Ok(())
    }
}

#[cold]
fn failed(error: TraceError) -> FilterError {
    FilterError::Failed(format!("filter '{TRACE_STANDING}': {error}"))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let call = Standpoint {
            function: 17,
            kind: CallKind::Wait,
            pattern: Pattern::ToRoot,
            space: u64::MAX,
            side: Side::Any,
            destination: Side::Rank(6),
            tag: Some(-4),
            request: 9,
            is_request_known: true,
        };
        let posture = Posture {
            presence: Presence::Ended,
            call: Some(call),
            ended_in: None,
            for_ns: 1 << 40,
            calls: 6,
            polls: 5,
            polled: 3,
            beside_ns: 7,
            blocked_threads: 2,
            is_locked: true,
            is_polling: false,
            unrecorded_ns: 5,
            is_order_lost: true,
        };
        let start = Standpoint { kind: CallKind::CollectiveStart, ..call };
        let aborted = Posture { call: None, ended_in: Some(start), ..posture };
        let seat = Seat {
            rank: 2,
            size: 3,
            made: 40,
            last_function: 36,
            last_root: Some(1),
            held: Side::Rank(2),
            is_freed: true,
            is_between: false,
            is_number_lost: true,
            is_last_of_neighbours: true,
            is_last_started: true,
        };
        let receive = |side, tag| OpenReceive { space: 5, side, tag };
        let receives = vec![receive(Side::Rank(1), 7), receive(Side::Any, -1)];
        let open = OpenRequests { receives, others: 3, is_any: true };
        let standing = Standing {
            world_size: 8,
            postures: [(7, posture), (1, Posture::default()), (2, aborted)].into(),
            seats: [((5, 7), seat), ((5, 1), Seat::default())].into(),
            names: [(5, "high".into())].into(),
            shared: [((7, 188), (CallKind::File, 29))].into(),
            open: [(7, open)].into(),
            left_out: 3,
            source: crate::standing::Source::Tree,
        };
        let read = Standing::decode(standing.encode().as_ref()).expect("it was just written");
        assert_eq!(read, standing);
    }

    #[test]
    fn another_packet_is_refused() {
        let values = Values::new().scalar(1_u32);
        assert!(Standing::decode(values.as_ref()).is_err());
    }
}
