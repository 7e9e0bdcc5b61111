//! The filters of a stream in a back-end itself, for streams that ask for them there
//! ([`StreamSpec::at_back_ends`](crate::StreamSpec::at_back_ends)) and processes that can make
//! filters.
//!
//! They run between the application and the stream, in the application's own calls: what it sends
//! passes the upward filters before it gets its wave, and what comes passes the downward ones
//! before it is delivered. So what travels and is kept is what they have made, nothing is filtered
//! again when it is sent again, and a packet that a filter makes is a wave like any that is sent.

use alloc::boxed::Box;

use sapwood_filter::{Chain, Filter, FilterError, Registry};
use sapwood_packet::{Body, Header, Packet, Slab, ValuesRef};
use sapwood_wire::StreamRequest;

use crate::transform::chain::chain;

/// Both chains, of which one may pass everything.
#[derive(Debug, Default)]
pub(crate) struct BackEndFilters {
    pub(crate) up: Chain,
    pub(crate) down: Chain,
    /// Why one of them cannot be made here.
    pub(crate) refused: Option<FilterError>,
}

impl BackEndFilters {
    /// What a request asks for in this back-end; nothing if there is nothing to be done.
    pub(crate) fn of(registry: &Registry, request: &StreamRequest) -> Option<Box<Self>> {
        if !request.at_back_ends || registry.is_empty() {
            return None;
        }
        let own = Self::make(registry, request)
            .unwrap_or_else(|error| Self { refused: Some(error), ..Self::default() });
        let is_idle = own.refused.is_none() && own.up.is_pass() && own.down.is_pass();
        (!is_idle).then(|| Box::new(own))
    }

    pub(crate) fn make(registry: &Registry, request: &StreamRequest) -> Result<Self, FilterError> {
        let made = chain(registry, &request.up)?;
        // A fold of one packet is that packet.
        let up = if made.as_fold().is_some() { Chain::default() } else { made };
        Ok(Self { up, down: chain(registry, &request.down)?, refused: None })
    }
}

pub(crate) fn packet_of(header: Header, values: ValuesRef<'_>) -> Packet {
    let body = Body::from(Slab::copy_of(values.body()));
    Packet::from_parts(header, values.format().to_format(), body)
}
