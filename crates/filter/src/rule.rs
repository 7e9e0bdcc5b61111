//! The filter interface: the input of a filter, and what it may emit.

use alloc::vec::Vec;
use core::ops::Range;

use sapwood_packet::{
    Format, FormatRef, IntoValues, OutOfMemory, PacketRef, Rank, RankSetRef, Slab, StreamId, Tag,
    Values, ValuesRef, Wave,
};

use crate::FilterError;

/// When the packets of a wave are given to the stream's filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaveRule {
    /// When every child that leads to a member of the stream has sent or is known to be lost.
    #[default]
    All,
    /// As [`WaveRule::All`], but no later than this many milliseconds after the first packet.
    Timeout {
        /// The wait, in milliseconds.
        milliseconds: u32,
    },
    /// At once: every packet is a wave of its own.
    Immediate,
}

/// One wave at one node, lent to a filter.
#[derive(Clone, Copy, Debug)]
pub struct WaveRef<'a> {
    /// The stream.
    pub stream: StreamId,
    /// The wave's number; 0 on the way down.
    pub wave: Wave,
    /// The packets, in the order of the children that sent them; at least one.
    pub packets: &'a [PacketRef<'a>],
    /// The back-ends that these packets stand for.
    pub contributors: RankSetRef<'a>,
    /// The node where the filter runs.
    pub rank: Rank,
    /// Whether that node is the front-end, whose output is the answer.
    pub is_root: bool,
    /// How many children of that node lead to members of the stream, or did.
    pub children: u32,
    /// How many members of the stream are below that node, or were.
    pub back_ends: u32,
}

/// What a filter keeps from wave to wave, and what becomes of it when its process dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing: its output depends only on the present wave.
    #[default]
    None,
    /// Something that an instance which begins anew makes again by itself; nothing is handed over.
    Rebuildable,
    /// Something that would be lost, and that the instance at the parent can take over. The node
    /// hands a copy to the parent from time to time ([`Filter::save`]), and the parent merges the
    /// last of them into its own instance when the process is lost ([`Filter::absorb`]).
    Composable,
}

/// A computation on the packets of a wave. One instance serves one stream at one node, and is
/// called for its waves in order.
pub trait Filter: Send {
    /// Turns the packets of one wave into packets that travel on or back.
    ///
    /// # Errors
    /// A [`FilterError`] fails this wave: the front-end receives it in the place of the answer, and
    /// what was emitted before the error counts for nothing.
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError>;

    /// The filter as a fold of pairs, if it is one. The node then folds in place, and large packets
    /// chunk by chunk while later chunks are still on their way.
    fn as_fold(&self) -> Option<&dyn Fold> {
        None
    }

    /// Whether the filter emits every packet as it came. The node then lets the packets travel on
    /// with their own origins and contributors, which an [`Emission`] does not carry.
    fn is_pass(&self) -> bool {
        false
    }

    /// Whether it must not be called in the event loop: foreign code that may run for any time, or
    /// never return. It is then offloaded to a thread of its own, from its first wave to its end:
    /// [`Filter::transform`], [`Filter::save`], [`Filter::absorb`] and what happens when it is
    /// dropped. Asked once, when it has been made, as is [`Filter::state`].
    fn is_offloaded(&self) -> bool {
        false
    }

    /// The state that it has from wave to wave. The same for all instances made of the same
    /// parameters.
    fn state(&self) -> State {
        State::None
    }

    /// A copy of a [`State::Composable`] state, or `None` when there is nothing in it.
    fn save(&self) -> Option<Values> {
        None
    }

    /// Merges the copy of another instance's [`State::Composable`] state into this one: from now on
    /// this instance gives what both would have given. An instance never absorbs a state twice.
    ///
    /// # Errors
    /// A [`FilterError`] when the two do not fit together; the copy is lost then.
    fn absorb(&mut self, state: ValuesRef<'_>) -> Result<(), FilterError> {
        let _ = state;
        Ok(())
    }
}

/// A filter that combines two packets of the same format and length into one of the same.
///
/// [`Fold::fold`] and [`Fold::fold_chunk`] must give the same bits however the values are cut into
/// chunks.
pub trait Fold {
    /// The filter's name, for messages.
    fn name(&self) -> &'static str;

    /// Refuses a format on which the operation is not defined, so that a wave of one packet, which
    /// needs no folding, is refused as well.
    ///
    /// # Errors
    /// [`FilterError::Format`].
    fn check(&self, format: FormatRef<'_>) -> Result<(), FilterError> {
        let _ = format;
        Ok(())
    }

    /// Folds the values `other` into `accumulator`; both are whole bodies of `format`.
    ///
    /// # Errors
    /// [`FilterError::Mixed`] when lengths differ, [`FilterError::Format`] when the format has no
    /// such operation.
    fn fold(
        &self,
        format: FormatRef<'_>,
        accumulator: &mut [u8],
        other: &[u8],
    ) -> Result<(), FilterError>;

    /// Folds the bodies of several waves in a row, all of `stride` bytes, each into its own. Only
    /// called when `format` is one numeric directive.
    ///
    /// # Errors
    /// As [`Fold::fold`]; nothing has been folded then.
    fn fold_run(
        &self,
        format: FormatRef<'_>,
        stride: usize,
        accumulators: &mut [u8],
        others: &[u8],
    ) -> Result<(), FilterError>;

    /// Folds a chunk of the body of one numeric array; `offset` is where in the body both begin, a
    /// multiple of 8. Only called when `format` is one directive, an array of numbers.
    ///
    /// # Errors
    /// As [`Fold::fold`].
    fn fold_chunk(
        &self,
        format: FormatRef<'_>,
        offset: u64,
        accumulator: &mut [u8],
        other: &[u8],
    ) -> Result<(), FilterError>;
}

/// One packet that a filter made.
#[derive(Clone, Debug)]
pub struct Emission {
    /// Whether it goes back where the wave came from, instead of on.
    pub is_reply: bool,
    /// Its tag.
    pub tag: Tag,
    /// What its values are.
    pub format: Format,
    /// Where in the emitter's bytes its values lie.
    bytes: Range<usize>,
}

/// The output of a filter. Its memory is reused from wave to wave.
#[derive(Debug, Default)]
pub struct Emitter {
    bytes: Slab,
    emissions: Vec<Emission>,
    /// What the system had no memory for: a packet is missing then.
    lacking: Option<OutOfMemory>,
}

/// Where a packet of a filter travels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In the wave's direction.
    On,
    Back,
}

impl Emitter {
    /// An emitter without packets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet that travels on in the wave's direction.
    pub fn emit(&mut self, tag: Tag, values: impl IntoValues) {
        self.push_built(Way::On, tag, &values.into_values());
    }

    /// Emits a packet with encoded values in the direction of the wave.
    pub fn emit_encoded(&mut self, tag: Tag, values: ValuesRef<'_>) {
        self.push(Way::On, tag, values);
    }

    /// A packet that travels back: down from an upward filter, up from a downward one.
    pub fn reply(&mut self, tag: Tag, values: impl IntoValues) {
        self.push_built(Way::Back, tag, &values.into_values());
    }

    /// Emits a packet with encoded values in the opposite direction.
    pub fn reply_encoded(&mut self, tag: Tag, values: ValuesRef<'_>) {
        self.push(Way::Back, tag, values);
    }

    /// A packet that travels on and whose body, of about `length` bytes, `build` appends to the
    /// bytes, which begin for it at the slab's length. When `build` fails there is no packet.
    pub(crate) fn emit_built(
        &mut self,
        tag: Tag,
        format: Format,
        length: usize,
        build: impl FnOnce(&mut Slab) -> Result<(), FilterError>,
    ) -> Result<(), FilterError> {
        self.build(false, tag, format, length, build)
    }

    /// A packet that travels on, or back as a reply, and whose body, of about `length` bytes,
    /// `build` appends to the bytes, which begin for it at the slab's length, a multiple of 8. It
    /// must be a body of that format, each value at a multiple of 8 from its beginning.
    ///
    /// # Errors
    /// [`FilterError::Memory`], and those of `build`; there is no packet then.
    pub fn build(
        &mut self,
        is_reply: bool,
        tag: Tag,
        format: Format,
        length: usize,
        build: impl FnOnce(&mut Slab) -> Result<(), FilterError>,
    ) -> Result<(), FilterError> {
        self.bytes.try_reserve(length)?;
        let start = self.bytes.len();
        let built = build(&mut self.bytes);
        if built.is_err() {
            self.bytes.set_length(start);
            return built;
        }
        self.bytes.pad();
        let bytes = start..self.bytes.len();
        self.emissions.push(Emission { is_reply, tag, format, bytes });
        Ok(())
    }

    fn push_built(&mut self, way: Way, tag: Tag, values: &Values) {
        match values.check_memory() {
            Ok(()) => self.push(way, tag, values.as_ref()),
            Err(lacking) => self.lacking = Some(lacking),
        }
    }

    fn push(&mut self, way: Way, tag: Tag, values: ValuesRef<'_>) {
        if let Err(lacking) = self.bytes.try_reserve(values.body().len()) {
            self.lacking = Some(lacking);
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend(values.body());
        self.bytes.pad();
        let bytes = start..start + values.body().len();
        let (is_reply, format) = (way == Way::Back, values.format().to_format());
        self.emissions.push(Emission { is_reply, tag, format, bytes });
    }

    /// The packets made so far, with their values.
    pub fn emissions(&self) -> impl Iterator<Item = (&Emission, ValuesRef<'_>)> {
        self.emissions_from(0)
    }

    /// The same without the first `first` ones.
    pub fn emissions_from(&self, first: usize) -> impl Iterator<Item = (&Emission, ValuesRef<'_>)> {
        self.emissions.get(first..).unwrap_or_default().iter().map(|emission| {
            let body = &self.bytes.as_bytes()[emission.bytes.clone()];
            (emission, ValuesRef::new(emission.format.as_ref(), body))
        })
    }

    /// That all packets are there: the system had memory for each.
    ///
    /// # Errors
    /// [`OutOfMemory`] with the bytes that were asked for when it had none.
    pub fn check_memory(&self) -> Result<(), OutOfMemory> {
        self.lacking.map_or(Ok(()), Err)
    }

    /// Whether nothing was made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.emissions.is_empty()
    }

    /// Forgets the packets, keeping the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.emissions.clear();
        self.lacking = None;
    }
}
