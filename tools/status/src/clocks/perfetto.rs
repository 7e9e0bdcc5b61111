//! Clocks as a trace for Perfetto: snapshots that tie every process's clock to the front-end's, and
//! the offsets over time as counters.
//!
//! A trace is a sequence of packets in the encoding of Protocol Buffers, and two traces one behind
//! the other are a trace again. Traces of other processes whose packets name the clock 128 + rank
//! (`timestamp_clock_id`) thus come to one time line when they are put behind this one. Numbers of
//! fields are those of `trace_packet.proto`, `clock_snapshot.proto` and `track_descriptor.proto` of
//! Perfetto's protocol, which do not change.

use rustix::time::{ClockId, clock_gettime};
use sapwood::Clocks;

use super::role_name;

/// The clock of rank r has this number and r: those from 128 on are free for any program, and mean
/// the same in the whole trace.
pub(super) const FIRST_CLOCK: u64 = 128;

/// Perfetto's numbers of the system's clocks.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// All packets are of one writer.
const SEQUENCE: u64 = 1;
/// An event that sets a counter.
const COUNTER_EVENT: u64 = 4;

/// This host's clocks at one time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Now {
    pub(super) monotonic: u64,
    pub(super) boot: u64,
    pub(super) wall: u64,
}

impl Now {
    pub(super) fn read() -> Self {
        let read = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
        };
        Self {
            monotonic: read(ClockId::Monotonic),
            boot: read(ClockId::Boottime),
            wall: read(ClockId::Realtime),
        }
    }
}

/// The trace of what was measured, one after another.
pub(super) fn trace(measured: &[(Now, Clocks)]) -> Vec<u8> {
    let mut trace = Message::default();
    if let Some((_, last)) = measured.last() {
        for clock in &last.known {
            let name = format!("{} {} on {}", role_name(clock.role), clock.rank, clock.host);
            write_track(&mut trace, track(clock.rank, 0), None, &name);
            let parent = Some(track(clock.rank, 0));
            write_track(&mut trace, track(clock.rank, 1), parent, "clock ahead");
            write_track(&mut trace, track(clock.rank, 2), parent, "error of clock");
            write_track(&mut trace, track(clock.rank, 3), parent, "wall clock ahead");
        }
    }
    for (now, clocks) in measured {
        write_snapshot(&mut trace, *now, clocks);
        for clock in &clocks.known {
            let error = i64::try_from(clock.error).unwrap_or(i64::MAX);
            for (kind, value) in [(1, clock.ahead), (2, error), (3, clock.wall_ahead)] {
                write_counter(&mut trace, *now, track(clock.rank, kind), value);
            }
        }
    }
    trace.bytes
}

/// The number of a track: of a process itself, or of one of its three counters.
fn track(rank: u32, kind: u64) -> u64 {
    (u64::from(rank) + 1) << 2 | kind
}

fn write_packet(trace: &mut Message, now: Option<Now>, field: u32, content: &Message) {
    let mut packet = Message::default();
    if let Some(now) = now {
        packet.number(8, now.monotonic);
        packet.number(58, MONOTONIC);
    }
    packet.number(10, SEQUENCE);
    packet.message(field, content);
    trace.message(1, &packet);
}

fn write_snapshot(trace: &mut Message, now: Now, clocks: &Clocks) {
    let mut snapshot = Message::default();
    let own = [(BOOTTIME, now.boot), (MONOTONIC, now.monotonic), (REALTIME, now.wall)];
    let others = clocks.known.iter().filter_map(|clock| {
        // A clock that is further behind than it has run cannot be: it would be before its start.
        let time = now.monotonic.checked_add_signed(clock.ahead)?;
        Some((FIRST_CLOCK + u64::from(clock.rank), time))
    });
    for (number, time) in own.into_iter().chain(others) {
        let mut clock = Message::default();
        clock.number(1, number);
        clock.number(2, time);
        snapshot.message(1, &clock);
    }
    snapshot.number(2, BOOTTIME);
    write_packet(trace, Some(now), 6, &snapshot);
}

fn write_track(trace: &mut Message, number: u64, parent: Option<u64>, name: &str) {
    let mut descriptor = Message::default();
    descriptor.number(1, number);
    descriptor.text(2, name);
    if let Some(parent) = parent {
        descriptor.number(5, parent);
        let mut counter = Message::default();
        counter.text(6, "ns");
        descriptor.message(8, &counter);
    }
    write_packet(trace, None, 60, &descriptor);
}

fn write_counter(trace: &mut Message, now: Now, track: u64, value: i64) {
    let mut event = Message::default();
    event.number(9, COUNTER_EVENT);
    event.number(11, track);
    // A negative integer is written as the 64 bits that it is.
    event.number(30, value as u64);
    write_packet(trace, Some(now), 11, &event);
}

/// A message of Protocol Buffers in the making: numbers (`varint`), and what has a length.
#[derive(Debug, Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn number(&mut self, field: u32, number: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(number);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.long(field, text.as_bytes());
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.long(field, &message.bytes);
    }

    fn long(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Seven bits in a byte, the lowest first; the highest bit says that more come.
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_encoded_as_the_protocol_says() {
        let mut inner = Message::default();
        inner.number(1, 150);
        let mut message = Message::default();
        message.message(3, &inner);
        message.text(2, "testing");
        // The examples of the protocol's own description.
        assert_eq!(message.bytes, b"\x1a\x03\x08\x96\x01\x12\x07testing");
        let mut negative = Message::default();
        negative.number(1, -2_i64 as u64);
        assert_eq!(negative.bytes, b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }

    #[test]
    fn tracks_of_processes_and_their_counters_are_different() {
        let mut seen = std::collections::BTreeSet::new();
        for rank in [0, 1, 2, u32::MAX] {
            for kind in 0..4 {
                assert!(track(rank, kind) != 0 && seen.insert(track(rank, kind)));
            }
        }
    }

    #[test]
    fn the_clocks_of_this_host_can_be_read() {
        let now = Now::read();
        assert!(now.monotonic > 0 && now.boot >= now.monotonic && now.wall > now.boot);
    }
}
