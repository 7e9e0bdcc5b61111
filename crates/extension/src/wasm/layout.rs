//! The structs of `sapwood_filter.h` in the memory of WebAssembly, where pointers have 4 bytes.
//!
//! ```text
//! value     | data 4 | 0 4 | count 8 | bytes 8 | element 4 | shape 4 |                          32
//! packet    | values 4 | contributors 4 | value_count 4 | contributor_ranges 4 | tag 4 |
//!           | origin 4 | flags 4 | 0 4 |                                                        32
//! wave      | packets 4 | contributors 4 | packet_count 4 | contributor_ranges 4 | wave 8 |
//!           | stream 4 | rank 4 | is_root 4 | children 4 | back_ends 4 | 0 4 |                  48
//! arrivals  | contributors 4 | 0 4 | wave 8 | elapsed_ns 8 | contributor_ranges 4 | stream 4 |
//!           | rank 4 | is_root 4 | arrived 4 | expected 4 | back_ends 4 | 0 4 |                 56
//! filter    | name 4 | create 4 | transform 4 | destroy 4 | state_kind 4 | save 4 | merge 4 |
//!           | decide 4 |                                                                        32
//! library   | version 4 | filter_bytes 4 | filter_count 4 | filters 4 |                         16
//! ```

use sapwood_filter::{Arrivals, FilterError, WaveRef};
use sapwood_packet::{RankRange, ValuesRef, nanoseconds};

use crate::value_span::ValueSpans;

pub(super) const VALUE_BYTES: usize = 32;
const PACKET_BYTES: usize = 32;
const WAVE_BYTES: usize = 48;
const ARRIVALS_BYTES: usize = 56;
pub(super) const FILTER_BYTES: usize = 32;
pub(super) const LIBRARY_BYTES: usize = 16;

/// Where in the table of functions a filter's are; 0 for none. Its destroy function is not called:
/// an instance's memory is freed as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterEntry {
    pub(super) create: u32,
    pub(super) transform: u32,
    pub(super) state_kind: u32,
    pub(super) save: u32,
    pub(super) merge: u32,
    pub(super) decide: u32,
}

impl FilterEntry {
    pub(super) fn read(entry: &[u8]) -> Self {
        Self {
            create: u32_at(entry, 4),
            transform: u32_at(entry, 8),
            state_kind: u32_at(entry, 16),
            save: u32_at(entry, 20),
            merge: u32_at(entry, 24),
            decide: u32_at(entry, 28),
        }
    }
}

/// The four bytes at a place, which must be there.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes are four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes are eight bytes"))
}

/// How many bytes values take, with their bodies; also a multiple of 8.
pub(super) fn values_length(values: ValuesRef<'_>) -> usize {
    values.len() * VALUE_BYTES + values.body().len().next_multiple_of(8)
}

/// How many bytes a wave takes.
pub(super) fn wave_length(wave: &WaveRef<'_>) -> usize {
    let packets = wave.packets.iter().map(|packet| {
        PACKET_BYTES + values_length(packet.values()) + ranges_length(packet.contributors.ranges())
    });
    WAVE_BYTES + ranges_length(wave.contributors.ranges()) + packets.sum::<usize>()
}

pub(super) fn arrivals_length(arrivals: &Arrivals<'_>) -> usize {
    ARRIVALS_BYTES + ranges_length(arrivals.contributors.ranges())
}

fn ranges_length(ranges: &[RankRange]) -> usize {
    size_of_val(ranges)
}

/// Writes structs into the part of the memory that begins at `base`, one behind another.
pub(super) struct Writer<'a> {
    memory: &'a mut [u8],
    base: u32,
    at: usize,
}

impl<'a> Writer<'a> {
    /// `memory` is the part that is written to; its length was reckoned before.
    pub(super) fn new(memory: &'a mut [u8], base: u32) -> Self {
        Self { memory, base, at: 0 }
    }

    /// Reserves `bytes` bytes; returns their offset in the part.
    fn set_aside(&mut self, bytes: usize) -> usize {
        let at = self.at;
        self.at += bytes;
        at
    }

    fn address(&self, at: usize) -> u32 {
        self.base + at as u32
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn put_words<const N: usize>(&mut self, at: usize, words: [u32; N]) {
        let part = &mut self.memory[at..at + 4 * N];
        for (place, word) in part.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn put_ranges(&mut self, ranges: &[RankRange]) -> u32 {
        let at = self.set_aside(ranges_length(ranges));
        for (index, range) in ranges.iter().enumerate() {
            self.put_words(at + 8 * index, *range);
        }
        self.address(at)
    }

    /// Writes values and gives where they are.
    pub(super) fn put_values(&mut self, values: ValuesRef<'_>) -> Result<u32, FilterError> {
        let table = self.set_aside(values.len() * VALUE_BYTES);
        self.put_values_at(table, values)?;
        Ok(self.address(table))
    }

    fn put_values_at(&mut self, table: usize, values: ValuesRef<'_>) -> Result<(), FilterError> {
        let length = values.body().len();
        let body = self.set_aside(length.next_multiple_of(8));
        self.put(body, values.body());
        for (index, place) in ValueSpans::of(values).enumerate() {
            let place = place?;
            let at = table + index * VALUE_BYTES;
            let data = self.address(body + place.bytes.start);
            self.put_words(at, [data, 0]);
            self.put(at + 8, &place.count.to_le_bytes());
            self.put(at + 16, &(place.bytes.len() as u64).to_le_bytes());
            let directive = place.directive;
            self.put_words(at + 24, [directive.element as u32, directive.shape as u32]);
        }
        Ok(())
    }

    /// Writes a wave and gives where it is.
    pub(super) fn put_wave(&mut self, wave: &WaveRef<'_>) -> Result<u32, FilterError> {
        let head = self.set_aside(WAVE_BYTES);
        let packets = self.set_aside(wave.packets.len() * PACKET_BYTES);
        let ranges = wave.contributors.ranges();
        let contributors = self.put_ranges(ranges);
        let counts = [wave.packets.len() as u32, ranges.len() as u32];
        let packets_address = self.address(packets);
        self.put_words(head, [packets_address, contributors, counts[0], counts[1]]);
        self.put(head + 16, &wave.wave.to_le_bytes());
        let facts = [wave.stream, wave.rank, u32::from(wave.is_root), wave.children];
        self.put_words(head + 24, facts);
        self.put_words(head + 40, [wave.back_ends, 0]);
        for (index, packet) in wave.packets.iter().enumerate() {
            let values = self.put_values(packet.values())?;
            let ranges = packet.contributors.ranges();
            let contributors = self.put_ranges(ranges);
            let header = &packet.header;
            let at = packets + index * PACKET_BYTES;
            let counts = [packet.format.len() as u32, ranges.len() as u32];
            self.put_words(at, [values, contributors, counts[0], counts[1]]);
            let flags = u32::from(header.filtered) + 2 * u32::from(header.late);
            self.put_words(at + 16, [header.tag.cast_unsigned(), header.origin, flags, 0]);
        }
        Ok(self.address(head))
    }

    /// Writes what has arrived and gives where it is.
    pub(super) fn put_arrivals(&mut self, arrivals: &Arrivals<'_>) -> u32 {
        let head = self.set_aside(ARRIVALS_BYTES);
        let ranges = arrivals.contributors.ranges();
        let contributors = self.put_ranges(ranges);
        let elapsed = nanoseconds(arrivals.elapsed);
        self.put_words(head, [contributors, 0]);
        self.put(head + 8, &arrivals.wave.to_le_bytes());
        self.put(head + 16, &elapsed.to_le_bytes());
        let facts = [ranges.len() as u32, arrivals.stream, arrivals.rank];
        self.put_words(head + 24, facts);
        let counts = [u32::from(arrivals.is_root), arrivals.arrived, arrivals.expected];
        self.put_words(head + 36, counts);
        self.put_words(head + 48, [arrivals.back_ends, 0]);
        self.address(head)
    }
}
