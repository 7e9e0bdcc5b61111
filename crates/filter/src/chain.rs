//! An ordered list of filters: the packets that one emits are the wave of the next.
//!
//! A [`Chain`] is itself a [`Filter`]; a stream has one for the way up and one for the way down.
//! The packets between two filters stand for the contributors of the whole wave, keep the tag that
//! they were emitted with, and are marked as filtered. A filter that emits nothing ends the wave
//! there. Replies of any filter of the chain travel back at once; later filters do not see them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::mem;

use sapwood_packet::{Header, PacketRef, Values, ValuesRef};

use crate::{Emitter, Filter, FilterError, FilterSpec, Fold, Registry, State, WaveRef, null};

/// Filters that run one after another. An empty chain passes every packet as it came.
#[derive(Default)]
pub struct Chain {
    filters: Vec<Box<dyn Filter>>,
    /// What the filters before the last emitted, for its memory only.
    between: [Emitter; 2],
    /// Which filters have a composable state.
    composable: Vec<usize>,
    /// Whether one of those emitted in the last wave.
    has_released: bool,
    is_offloaded: bool,
}

impl Chain {
    /// Makes the filters in the order in which packets meet them.
    ///
    /// # Errors
    /// As [`Registry::make`], for the first filter that cannot be made.
    pub fn new(registry: &Registry, specs: &[FilterSpec]) -> Result<Self, FilterError> {
        let mut filters = Vec::with_capacity(specs.len());
        for spec in specs {
            let filter = registry.make(&spec.name, spec.parameters.as_ref())?;
            // Left out, because a packet that passes keeps its own contributors in this way.
            if !filter.is_pass() {
                filters.push(filter);
            }
        }
        let is_composable = |&index: &usize| filters[index].state() == State::Composable;
        let composable = (0..filters.len()).filter(is_composable).collect();
        let is_offloaded = filters.iter().any(|filter| filter.is_offloaded());
        Ok(Self { filters, composable, is_offloaded, ..Self::default() })
    }

    /// The positions of the filters with a [`State::Composable`] state.
    #[must_use]
    pub fn composable(&self) -> &[usize] {
        &self.composable
    }

    /// Whether one of those emitted in the last wave: what it emitted may have left its state, and
    /// earlier copies of that must not be used any more.
    #[must_use]
    pub fn has_released(&self) -> bool {
        self.has_released
    }

    /// [`Filter::save`] of the filter at a position.
    #[must_use]
    pub fn save_filter(&self, index: usize) -> Option<Values> {
        self.filters.get(index)?.save()
    }

    /// [`Filter::absorb`] of the filter at a position.
    ///
    /// # Errors
    /// As the filter's; [`FilterError::Failed`] when there is none that absorbs.
    pub fn absorb_into(&mut self, index: usize, state: ValuesRef<'_>) -> Result<(), FilterError> {
        match self.filters.get_mut(index) {
            Some(filter) if self.composable.contains(&index) => filter.absorb(state),
            _ => {
                let reason = alloc::format!("filter {index} of the stream takes no state over");
                Err(FilterError::Failed(reason))
            }
        }
    }
}

impl Filter for Chain {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        self.has_released = false;
        let (before, last) = match &mut self.filters[..] {
            [] => {
                null::pass(wave, out);
                return Ok(());
            }
            [only] => {
                only.transform(wave, out)?;
                self.has_released = !out.is_empty() && !self.composable.is_empty();
                return Ok(());
            }
            [before @ .., last] => (before, last),
        };
        let last_index = before.len();
        let [input, output] = &mut self.between;
        for (index, filter) in before.iter_mut().enumerate() {
            mem::swap(input, output);
            output.clear();
            let packets = if index == 0 { Vec::new() } else { packets_of(input, wave) };
            let step = WaveRef { packets: &packets, ..*wave };
            filter.transform(if index == 0 { wave } else { &step }, output)?;
            self.has_released |= !output.is_empty() && self.composable.contains(&index);
            let replies = output.emissions().filter(|(emission, _)| emission.is_reply);
            replies.for_each(|(emission, values)| out.reply_encoded(emission.tag, values));
            if output.emissions().all(|(emission, _)| emission.is_reply) {
                return Ok(());
            }
        }
        let packets = packets_of(output, wave);
        last.transform(&WaveRef { packets: &packets, ..*wave }, out)?;
        self.has_released |= !out.is_empty() && self.composable.contains(&last_index);
        Ok(())
    }

    fn as_fold(&self) -> Option<&dyn Fold> {
        match &self.filters[..] {
            [only] => only.as_fold(),
            _ => None,
        }
    }

    fn is_pass(&self) -> bool {
        self.filters.is_empty()
    }

    fn is_offloaded(&self) -> bool {
        self.is_offloaded
    }

    fn state(&self) -> State {
        match self.filters.iter().any(|filter| filter.state() == State::Rebuildable) {
            _ if !self.composable.is_empty() => State::Composable,
            true => State::Rebuildable,
            false => State::None,
        }
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({} filters)", self.filters.len())
    }
}

/// The packets that travel on from one filter of a chain to the next.
fn packets_of<'a>(emitted: &'a Emitter, wave: &WaveRef<'a>) -> Vec<PacketRef<'a>> {
    let header = Header {
        stream: wave.stream,
        wave: wave.wave,
        origin: wave.rank,
        filtered: true,
        late: wave.packets.iter().any(|packet| packet.header.late),
        ..Header::default()
    };
    let destinations = wave.packets.first().map(|packet| packet.destinations).unwrap_or_default();
    let onwards = emitted.emissions().filter(|(emission, _)| !emission.is_reply);
    let mut packets: Vec<_> = onwards
        .map(|(emission, values)| PacketRef {
            header: Header { tag: emission.tag, ..header },
            format: values.format(),
            contributors: wave.contributors,
            destinations,
            chunk: None,
            more_waves: 0,
            body: values.body(),
        })
        .collect();
    if let Some(last) = packets.last_mut() {
        last.header.ends_wave = true;
    }
    packets
}
