//! `changes`: the packets of a wave travel on as they came, unless each is the same as the one that
//! its back-end sent in the last wave that it sent in; then nothing does.
//!
//! Packets are the same when their tags, formats and bytes are. They are compared where they leave
//! the back-ends: at the nodes above, a wave that has passed a node below has changed. Behind
//! another filter of the same chain it compares at the front-end alone and lets everything pass at
//! the nodes below: a sum needs the values of all children, also of those that have not changed.
//! Parts of waves that arrive late pass.
//!
//! The state is rebuildable: the last packets. An instance that begins anew lets one wave pass that
//! may be the same as the one before; it never holds back a change.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{Packet, PacketRef, Rank, Tag, ValuesRef};

use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, State, WaveRef, null};

const NAME: &str = "changes";

/// Most senders whose packets are kept; with more, all are forgotten and kept anew.
const SENDERS_MAX: usize = 1 << 16;

/// Keeps the last packets of each sender.
#[derive(Default)]
struct Changes {
    last: BTreeMap<Rank, Vec<Packet>>,
}

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters(NAME, parameters)?;
    Ok(Box::new(Changes::default()))
}

/// What makes two packets of a sender the same.
fn identity<'a>(packet: &PacketRef<'a>) -> (Tag, ValuesRef<'a>) {
    (packet.header.tag, packet.values())
}

impl Changes {
    /// Keeps the packets of one sender; whether they are others than before.
    fn note(&mut self, sender: Rank, packets: &[&PacketRef<'_>]) -> Result<bool, FilterError> {
        if let Some(last) = self.last.get(&sender)
            && last.len() == packets.len()
            && last.iter().zip(packets).all(|(last, now)| identity(&last.as_ref()) == identity(now))
        {
            return Ok(false);
        }
        if self.last.len() >= SENDERS_MAX {
            self.last.clear();
        }
        let copies = packets.iter().map(|packet| packet.try_to_packet());
        self.last.insert(sender, copies.collect::<Result<_, _>>()?);
        Ok(true)
    }
}

impl Filter for Changes {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let is_made_here = |packet: &PacketRef<'_>| packet.header.origin == wave.rank;
        let is_compared = |packet: &&PacketRef<'_>| {
            let is_final = wave.is_root && is_made_here(packet);
            (is_final || !packet.header.filtered) && !packet.header.late
        };
        let mut senders: BTreeMap<Rank, Vec<&PacketRef<'_>>> = BTreeMap::new();
        let mut compared = 0;
        for packet in wave.packets.iter().filter(is_compared) {
            senders.entry(packet.header.origin).or_default().push(packet);
            compared += 1;
        }
        let mut has_changed = compared < wave.packets.len();
        for (sender, packets) in senders {
            has_changed |= self.note(sender, &packets)?;
        }
        if has_changed {
            null::pass(wave, out);
        }
        Ok(())
    }

    fn state(&self) -> State {
        State::Rebuildable
    }
}
