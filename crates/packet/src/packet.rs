//! The unit of data: typed values with what the tree must know to carry and combine them.

use crate::{
    Body, Format, FormatRef, IntoValues, Order, OutOfMemory, Rank, RankSet, RankSetRef, Slab,
    StreamId, Tag, ValuesRef, Wave,
};

/// What the tree knows of a packet besides its values and sets of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The stream that it travels on.
    pub stream: StreamId,
    /// The application's tag.
    pub tag: Tag,
    /// Up, the wave that it belongs to; down, its number on the stream.
    pub wave: Wave,
    /// The process that made it: the sender, or the node whose filter emitted it.
    pub origin: Rank,
    /// The order in which it has its place.
    pub order: Order,
    /// Set when a filter has made it out of others: its values are a partial result.
    pub filtered: bool,
    /// Set on the last packet of its wave on this link; exactly one is sent for each wave.
    pub ends_wave: bool,
    /// Set when its wave had been answered before it came.
    pub late: bool,
    /// Set when it has no value and only ends its wave: a filter chose to send nothing, or failed.
    pub void: bool,
}

/// Which part of a large packet a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where in the whole body the chunk's bytes belong; a multiple of 8.
    pub offset: u64,
    /// Length of the whole body in bytes.
    pub total: u64,
}

/// A packet that owns its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// What the tree knows of it.
    pub header: Header,
    /// The back-ends whose data its values stand for; empty in packets that go down.
    pub contributors: RankSet,
    /// The back-ends that it is for; empty means all members of the stream.
    pub destinations: RankSet,
    format: Format,
    body: Body,
}

impl Packet {
    /// A packet on a stream; origin, wave and contributors are set when it is sent.
    #[must_use]
    pub fn new(stream: StreamId, tag: Tag, values: impl IntoValues) -> Self {
        let (format, slab) = values.into_values().into_parts();
        Self::from_parts(Header { stream, tag, ..Header::default() }, format, Body::from(slab))
    }

    /// A packet of parts that are known to fit: `body` holds values of `format`.
    #[must_use]
    pub fn from_parts(header: Header, format: Format, body: Body) -> Self {
        Self { header, format, body, ..Self::default() }
    }

    /// Its tag.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.header.tag
    }

    /// What its values are.
    #[must_use]
    pub fn format(&self) -> FormatRef<'_> {
        self.format.as_ref()
    }

    /// Its values, read in place.
    #[must_use]
    pub fn values(&self) -> ValuesRef<'_> {
        ValuesRef::new(self.format.as_ref(), self.body.as_bytes())
    }

    /// The encoded values.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Takes the body out.
    #[must_use]
    pub fn into_body(self) -> Body {
        self.body
    }

    /// Lends it.
    #[must_use]
    pub fn as_ref(&self) -> PacketRef<'_> {
        PacketRef {
            header: self.header,
            format: self.format.as_ref(),
            contributors: self.contributors.as_ref(),
            destinations: self.destinations.as_ref(),
            chunk: None,
            more_waves: 0,
            body: self.body.as_bytes(),
        }
    }
}

/// A packet, or a chunk of one, lent from a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRef<'a> {
    /// What the tree knows of it.
    pub header: Header,
    /// What its values are.
    pub format: FormatRef<'a>,
    /// The back-ends whose data its values stand for.
    pub contributors: RankSetRef<'a>,
    /// The back-ends that it is for; empty means all members of the stream.
    pub destinations: RankSetRef<'a>,
    /// Set when `body` is only a part of the values.
    pub chunk: Option<Chunk>,
    /// How many waves follow the first one in this run: `body` then holds the values of each in
    /// order, all of the same length.
    pub more_waves: u32,
    /// The encoded values, or the chunk's part of them; 8-aligned.
    pub body: &'a [u8],
}

impl Header {
    /// Whether it is outside of every order.
    #[must_use]
    #[inline]
    pub fn is_direct(&self) -> bool {
        self.order == Order::Direct
    }

    /// Whether it says that nothing more is sent.
    #[must_use]
    #[inline]
    pub fn is_last(&self) -> bool {
        self.order == Order::Last
    }
}

impl<'a> PacketRef<'a> {
    /// Its values, read in place. Meaningless on a chunk, which holds only a part of them.
    #[must_use]
    #[inline]
    pub fn values(&self) -> ValuesRef<'a> {
        ValuesRef::new(self.format, self.body)
    }

    /// `waves` waves of a run, from the wave with the index `first`: at least one, all inside the
    /// run.
    #[must_use]
    #[inline]
    pub fn part_of_run(&self, first: u32, waves: u32) -> Self {
        let stride = self.body.len() / (self.more_waves as usize + 1);
        let start = stride * first as usize;
        let mut packet = *self;
        packet.header.wave += u64::from(first);
        packet.more_waves = waves - 1;
        packet.body = &self.body[start..start + stride * waves as usize];
        packet
    }

    /// A copy that owns its values.
    #[must_use]
    pub fn to_packet(&self) -> Packet {
        self.with_body(Slab::copy_of(self.body))
    }

    /// A copy that owns its values, which may be many.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn try_to_packet(&self) -> Result<Packet, OutOfMemory> {
        Ok(self.with_body(Slab::try_copy_of(self.body)?))
    }

    fn with_body(&self, body: Slab) -> Packet {
        Packet {
            header: self.header,
            contributors: self.contributors.to_set(),
            destinations: self.destinations.to_set(),
            format: self.format.to_format(),
            body: Body::from(body),
        }
    }
}
