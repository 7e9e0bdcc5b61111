//! What the application of a back-end sends: through its own filters if it has some, then up.

use sapwood_link::SHARED_BODY_BYTES;
use sapwood_packet::{Body, Header, IntoValues, StreamId, Tag, Wave, unasked_wave};

use crate::interface::{NodeError, Role};
use crate::outbound::sending::{check_count, check_length};
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    pub(crate) fn send_values(
        &mut self,
        stream: StreamId,
        tag: Tag,
        values: impl IntoValues,
        wave: Option<Wave>,
        turn: &mut Turn,
    ) -> Result<usize, NodeError> {
        if turn.settings.role != Role::BackEnd {
            return Err(NodeError::NotBackEnd);
        }
        let rank = turn.rank.ok_or(NodeError::NotConnected)?;
        let at = self.find(stream).ok_or(NodeError::Stream { stream })?;
        let open = self.at(at);
        let next = open.next_wave;
        let wave = wave.unwrap_or_else(|| unasked_wave(next));
        // The last wave that there is stands for the end of a stream.
        if wave < next || wave == sapwood_link::END.wave {
            return Err(NodeError::WavePassed { wave, next });
        }
        if let Some(error) = open.refusal() {
            return Err(NodeError::Filter(error.clone()));
        }
        let has_filters = open.filters_sent();
        let built = turn.build(values);
        built.check_memory()?;
        check_count(built.as_ref().len())?;
        let header =
            Header { stream, tag, wave, origin: rank, ends_wave: true, ..Header::default() };
        let values = built.as_ref();
        let length = values.body().len();
        if turn.hops.is_on() {
            open.note_own_sent(wave, turn);
        }
        if has_filters {
            let sent = self.at(at).send_filtered(header, values, turn);
            turn.built = built;
            return Ok(sent);
        }
        if length < SHARED_BODY_BYTES {
            self.at(at).send_in_wave(header, values, turn);
            turn.built = built;
            return Ok(length);
        }
        let (format, slab) = built.into_parts();
        let body = Body::from(slab);
        // The outbox and the retransmit buffer hold this body, so that the memory cannot be built
        // in again before both have let it go.
        turn.retain_large(&body);
        check_length(&body)?;
        self.at(at).send_large(header, format.as_ref(), body, turn);
        Ok(length)
    }
}
