//! `changes`: the packets of a wave travel on as they came, unless they are those of the last wave
//! that did; then nothing does.
//!
//! Packets are the same when the child that sent them, their tag, format and bytes are. Behind
//! another filter of the same chain it works at the front-end alone and lets everything pass at the
//! nodes below: whoever adds up needs the values of all children, those that have not changed, too.
//! Parts of waves that come late pass.
//!
//! The state is rebuildable: the packets that passed last. An instance that begins anew lets one
//! wave pass that may be the same as the one before; it never holds back a change.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sapwood_packet::{Packet, PacketRef, Rank, Tag, ValuesRef};

use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, State, WaveRef, null};

const NAME: &str = "changes";

/// Keeps the packets that passed last.
#[derive(Default)]
struct Changes {
    last: Option<Vec<Packet>>,
}

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters(NAME, parameters)?;
    Ok(Box::new(Changes::default()))
}

/// What makes two packets the same.
fn identity<'a>(packet: &PacketRef<'a>) -> (Rank, Tag, ValuesRef<'a>) {
    (packet.header.origin, packet.header.tag, packet.values())
}

impl Filter for Changes {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let is_made_here = wave.packets.iter().all(|packet| packet.header.origin == wave.rank);
        let is_late = wave.packets.iter().any(|packet| packet.header.late);
        if is_made_here && !wave.is_root || is_late {
            null::pass(wave, out);
            return Ok(());
        }
        let is_same = self.last.as_ref().is_some_and(|last| {
            let last = last.iter().map(|packet| identity(&packet.as_ref()));
            last.eq(wave.packets.iter().map(identity))
        });
        if !is_same {
            self.last = Some(wave.packets.iter().map(PacketRef::to_packet).collect());
            null::pass(wave, out);
        }
        Ok(())
    }

    fn state(&self) -> State {
        State::Rebuildable
    }
}
