//! A packet without its values, kept while its values lie elsewhere.

use sapwood_packet::{Chunk, Format, Header, PacketRef, RankSet};

/// Everything of a packet but its body.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) header: Header,
    pub(crate) format: Format,
    pub(crate) contributors: RankSet,
    pub(crate) destinations: RankSet,
    pub(crate) chunk: Option<Chunk>,
    pub(crate) more_waves: u32,
}

impl Head {
    pub(crate) fn of(packet: &PacketRef<'_>) -> Self {
        Self {
            header: packet.header,
            format: packet.format.to_format(),
            contributors: packet.contributors.to_set(),
            destinations: packet.destinations.to_set(),
            chunk: packet.chunk,
            more_waves: packet.more_waves,
        }
    }

    /// The packet, with these bytes as its body.
    pub(crate) fn with_body<'a>(&'a self, body: &'a [u8]) -> PacketRef<'a> {
        PacketRef {
            header: self.header,
            format: self.format.as_ref(),
            contributors: self.contributors.as_ref(),
            destinations: self.destinations.as_ref(),
            chunk: self.chunk,
            more_waves: self.more_waves,
            body,
        }
    }
}
