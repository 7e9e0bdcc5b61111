//! The filter `profile-changes`: many rounds become one, and only what has changed travels.
//!
//! Each process of the tree remembers the rounds of its children and the one that it has sent, by
//! wave. The base of a change is a wave that the front-end has seen whole; it names the base in its
//! question. When the tree has changed since, a child's base is not here: its ranks are then left
//! out of this round, which the front-end sees by the ranks that are covered, and asks for whole
//! rounds. A rank is in no case counted twice, and no change is applied to another round than its
//! own base.

use alloc::boxed::Box;

use sapwood_filter::{Emitter, Filter, FilterError, WaveRef};
use sapwood_packet::ValuesRef;

use crate::filter::{failed, join};
use crate::{Round, RoundHistory};

/// The filter's name.
pub const PROFILE_CHANGES: &str = "profile-changes";

/// It takes no parameters. Its packets are rounds and changes of rounds ([`RoundHistory::encode`])
/// on their way in and on their way out; at the front-end, whole rounds come out.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::<ProfileChanges>::default())
    } else {
        Err(FilterError::Parameters { name: PROFILE_CHANGES, takes: "no parameters" })
    }
}

#[derive(Default)]
struct ProfileChanges {
    received: RoundHistory,
    sent: RoundHistory,
}

impl Filter for ProfileChanges {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let mut round: Option<Round> = None;
        let mut base = None;
        for packet in wave.packets {
            let (whole, its_base) = self.received.decode(packet.values()).map_err(failed)?;
            base = base.max(its_base);
            let Some(whole) = whole else { continue };
            self.received.keep(wave.wave, its_base, whole.clone());
            match &mut round {
                Some(round) => join(round, whole)?,
                None => round = Some(whole),
            }
        }
        // All of them had been children of others: the wave goes on, and covers nothing.
        let round = round.unwrap_or_default();
        let values = match wave.is_root {
            true => round.encode(),
            false => self.sent.encode(&round, base),
        };
        out.emit(first.header.tag, values);
        if !wave.is_root {
            self.sent.keep(wave.wave, base, round);
        }
        Ok(())
    }
}
