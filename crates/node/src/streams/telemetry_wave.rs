//! The wave that is under way on a telemetry stream.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sapwood_packet::Values;
use sapwood_wire::StreamRequest;

use crate::interface::hops::HopQuestion;
use crate::interface::record::TELEMETRY;
use crate::interface::{Instant, LinkId};
use crate::turn::counted::nanoseconds;
use crate::waves::open_wave::OpenWave;

/// The wave that is under way on a telemetry stream.
#[derive(Debug, Default)]
pub(crate) struct TelemetryWave {
    pub(crate) since: Instant,
    pub(crate) arrivals: Vec<(LinkId, Instant)>,
    /// What the request asks of events.
    pub(crate) question: Option<HopQuestion>,
    /// The complete wave, which waits for this process's own part.
    pub(crate) complete: Option<Box<OpenWave>>,
    /// This process's own part.
    pub(crate) own: Option<Values>,
}

impl TelemetryWave {
    /// What a stream needs if it is one.
    pub(crate) fn on(request: &StreamRequest) -> Option<alloc::boxed::Box<Self>> {
        let is_asked = matches!(&request.up[..], [only] if only.name == TELEMETRY);
        is_asked.then(alloc::boxed::Box::default)
    }

    /// A child's part has come.
    pub(crate) fn arrived(&mut self, link: LinkId, now: Instant) {
        self.arrivals.push((link, now));
    }

    pub(crate) fn arrival_of(&self, link: LinkId) -> Option<u64> {
        let (_, at) = self.arrivals.iter().rev().find(|(other, _)| *other == link)?;
        Some(nanoseconds(*at, self.since))
    }
}
