//! A wave as a filter in C sees it: pointers to where the values lie. The tables of pointers are
//! kept from wave to wave, so that showing one asks for no memory.

use std::ptr;

use sapwood_filter::{FilterError, WaveRef};
use sapwood_packet::ValuesRef;

use super::interface::{FILTERED, LATE, RawPacket, RawValue, RawWave};
use crate::value_span::ValueSpans;

/// The tables.
#[derive(Default)]
pub(super) struct View {
    values: Vec<RawValue>,
    packets: Vec<RawPacket>,
}

impl View {
    /// Shows a wave; what is given points into it and into this view.
    pub(super) fn show(&mut self, wave: &WaveRef<'_>) -> Result<RawWave, FilterError> {
        self.values.clear();
        self.packets.clear();
        for packet in wave.packets {
            let values = packet.values();
            push_values(&mut self.values, values)?;
            let header = &packet.header;
            let contributors = packet.contributors.ranges();
            self.packets.push(RawPacket {
                values: ptr::null(),
                contributors: contributors.as_ptr(),
                value_count: values.len() as u32,
                contributor_ranges: contributors.len() as u32,
                tag: header.tag,
                origin: header.origin,
                flags: u32::from(header.filtered) * FILTERED + u32::from(header.late) * LATE,
                reserved: 0,
            });
        }
        // Only now does the table stay where it is.
        let mut rest = &self.values[..];
        for packet in &mut self.packets {
            packet.values = rest.as_ptr();
            rest = &rest[packet.value_count as usize..];
        }
        let contributors = wave.contributors.ranges();
        Ok(RawWave {
            packets: self.packets.as_ptr(),
            contributors: contributors.as_ptr(),
            packet_count: self.packets.len() as u32,
            contributor_ranges: contributors.len() as u32,
            wave: wave.wave,
            stream: wave.stream,
            rank: wave.rank,
            is_root: u32::from(wave.is_root),
            children: wave.children,
            back_ends: wave.back_ends,
            reserved: 0,
        })
    }
}

/// Adds where each value lies.
pub(super) fn push_values(
    into: &mut Vec<RawValue>,
    values: ValuesRef<'_>,
) -> Result<(), FilterError> {
    let body = values.body();
    if body.as_ptr().align_offset(8) != 0 {
        return Err(FilterError::Failed(String::from("values do not lie at a multiple of 8")));
    }
    for place in ValueSpans::of(values) {
        let place = place?;
        into.push(RawValue {
            data: body[place.bytes.clone()].as_ptr().cast(),
            count: place.count,
            bytes: place.bytes.len() as u64,
            element: place.directive.element as u32,
            shape: place.directive.shape as u32,
        });
    }
    Ok(())
}
