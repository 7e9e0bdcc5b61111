//! Rounds as changes: what differs from a round of the same ranks that the receiver has.
//!
//! A changed round is the values of a round ([`Round`]) with the events that have changed only,
//! and two more values. Events that the round before had already are named by their place in it,
//! so that the key or name of an event travels once:
//!
//! ```text
//!  8, 9       keys and names of the new events only
//! 10 .. 18    statistics of the known events that changed, then of the new ones
//! 41, 42      sizes of messages of these
//!  last but 1 %uld  wave of the round before, the base
//!  last       %aud  places of the known events that changed, increasing
//! ```
//!
//! A sender remembers what it has sent, a receiver what has come ([`RoundHistory`]). Base and
//! change belong together when they are of the same wave and cover the same ranks; statistics are
//! sent whole, never as differences, so that a change applied twice is no error either.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sapwood_packet::{Directive, IndexedValues, Values, ValuesRef, Wave};

use crate::codec::{LONG, WORDS, check_format};
use crate::round::{Keyed, LAYOUT, VERSION, keys, sizes_of, statistics};
use crate::{EVENTS_MAX, ProfileError, Round};

const EXTRA: usize = 2;
const FULL: usize = LAYOUT.len();
/// Waves whose rounds are kept beside the base.
const WAVES_MAX: usize = 8;
/// Rounds that are kept of one wave: those of the children of a process, and parts that come late.
const ROUNDS_MAX: usize = 4096;

/// The form of a change.
const fn layout() -> [Directive; FULL + EXTRA] {
    let mut layout = [LONG; FULL + EXTRA];
    let mut at = 0;
    while at < FULL {
        layout[at] = LAYOUT[at];
        at += 1;
    }
    layout[FULL + 1] = WORDS;
    layout
}

/// Rounds by their waves: those that were sent, or those that came from the children.
#[derive(Clone, Debug, Default)]
pub struct RoundHistory {
    waves: VecDeque<(Wave, Vec<Round>)>,
}

impl RoundHistory {
    /// A history without rounds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers a round. Older waves than the base are needed no more.
    pub fn keep(&mut self, wave: Wave, base: Option<Wave>, round: Round) {
        let oldest = base.unwrap_or(wave);
        self.waves.retain(|(known, _)| *known >= oldest);
        match self.waves.iter_mut().find(|(known, _)| *known == wave) {
            Some((_, rounds)) if rounds.len() < ROUNDS_MAX => rounds.push(round),
            Some(_) => {}
            None => self.waves.push_back((wave, Vec::from([round]))),
        }
        while self.waves.len() > WAVES_MAX {
            // The base is the first one, and the next question may have it again.
            self.waves.remove(1);
        }
    }

    /// The round of that wave that covers the same ranks.
    fn like(&self, wave: Wave, round: &Round) -> Option<&Round> {
        let (_, rounds) = self.waves.iter().find(|(known, _)| *known == wave)?;
        let is_like = |known: &&Round| {
            known.covered() == round.covered() && known.world_size() == round.world_size()
        };
        rounds.iter().find(is_like)
    }

    /// A round as the values of a packet: as a change of the base, if that was kept, else whole.
    #[must_use]
    pub fn encode(&self, round: &Round, base: Option<Wave>) -> Values {
        let known = base.and_then(|wave| Some((wave, self.like(wave, round)?)));
        let change = known.and_then(|(wave, before)| encode_change(round, wave, before));
        change.unwrap_or_else(|| round.encode())
    }

    /// The whole round of a packet, and the base if it was a change; no round if its base did not
    /// come here: the sender was another process's child then.
    ///
    /// # Errors
    /// As [`Round::decode`].
    pub fn decode(
        &self,
        values: ValuesRef<'_>,
    ) -> Result<(Option<Round>, Option<Wave>), ProfileError> {
        let Some(base) = delta_base(values) else {
            return Ok((Some(Round::decode(values)?), None));
        };
        let values = &IndexedValues::new(values)?;
        check_format(values, &layout(), VERSION, "round of profiles")?;
        let head = Round::decode_head(values)?;
        let Some(before) = self.like(base, &head) else { return Ok((None, Some(base))) };
        let changed: &[u32] = values.array(FULL + 1)?;
        let mut events = before.events().to_vec();
        let wrong = ProfileError::Contradiction { what: "places of events" };
        if changed.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(wrong);
        }
        let known = changed.iter().map(|&at| events.get(at as usize).map(|(key, _)| key.clone()));
        let mut all: Vec<_> = known.collect::<Option<_>>().ok_or(wrong.clone())?;
        all.extend(keys(values)?);
        let mut new = statistics(values, all, head.covered())?;
        let mut all_sizes = before.sizes_of_events().clone();
        all_sizes.extend(sizes_of(values, &new)?);
        let announced = new.split_off(changed.len());
        for (&at, event) in changed.iter().zip(new) {
            events[at as usize] = event;
        }
        events.extend(announced);
        // Two sorted runs: the stable sort merges them in linear time.
        events.sort_by(|(one, _), (other, _)| one.cmp(other));
        if events.len() > EVENTS_MAX || events.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(wrong);
        }
        Ok((Some(head.with_events(events, all_sizes)), Some(base)))
    }
}

/// The base of a change; none if the values are no change.
#[must_use]
pub fn delta_base(values: ValuesRef<'_>) -> Option<Wave> {
    let is_change = values.format().directives().count() == FULL + EXTRA;
    if is_change { values.scalar(FULL).ok() } else { None }
}

/// Nothing if an event of the round before is gone, which no counter does.
fn encode_change(round: &Round, wave: Wave, before: &Round) -> Option<Values> {
    let (mut places, mut changed): (Vec<u32>, Vec<Keyed>) = (Vec::new(), Vec::new());
    let mut announced = Vec::new();
    let mut known = before.events().iter().enumerate().peekable();
    for event in round.events() {
        match known.next_if(|(_, (key, _))| *key == event.0) {
            Some((_, (_, statistics))) if *statistics == event.1 => {}
            Some((at, _)) => {
                places.push(u32::try_from(at).ok()?);
                changed.push(event.clone());
            }
            None => announced.push(event.clone()),
        }
    }
    if known.next().is_some() {
        return None;
    }
    changed.extend_from_slice(&announced);
    Some(round.encode_events(&changed, &announced).scalar(wave).array(&places))
}
