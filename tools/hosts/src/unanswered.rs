//! Which hosts are asked: those that have not left too many questions unanswered.
//!
//! A host that hangs reads nothing, so that questions would pile up on their way to it until no
//! host can be asked any more. It has some to answer when it goes on, and is asked again from
//! then on; and now and then before, in case that those have been lost.

use std::collections::BTreeMap;

use sapwood::{Error, Rank, RankSet, Recipients};

/// A host that has left this number of questions unanswered is asked one question in [`SELDOM`].
const UNANSWERED_MAX: u32 = 8;
const SELDOM: u64 = 32;

/// Whether there was room for a question. Where all have gone no host lacks it; the events say so,
/// too.
///
/// # Errors
/// When it could not be sent for another reason.
pub fn had_room(sent: Result<(), Error>) -> Result<bool, Error> {
    match sent {
        Ok(()) | Err(Error::Misuse(_) | Error::NoMemberLeft { .. }) => Ok(true),
        Err(Error::WouldWait { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sends something to hosts. Where all have gone no host lacks it, as in [`had_room`].
///
/// # Errors
/// When it could not be sent for another reason.
pub fn said(sent: Result<(), Error>) -> Result<(), Error> {
    match sent {
        Err(Error::NoMemberLeft { .. }) => Ok(()),
        sent => sent,
    }
}

/// Questions that hosts have been asked since they last answered any.
#[derive(Debug, Default)]
pub struct Unanswered {
    counts: BTreeMap<Rank, u32>,
    questions: u64,
}

impl Unanswered {
    /// These hosts have answered.
    pub fn hear(&mut self, ranks: &RankSet) {
        self.counts.retain(|&rank, _| !ranks.contains(rank));
    }

    /// Of these hosts, those that do not hang.
    pub fn audience(&self, hosts: &RankSet) -> RankSet {
        let hangs = |(&rank, &count): (&Rank, &u32)| (count >= UNANSWERED_MAX).then_some(rank);
        let hanging: RankSet = self.counts.iter().filter_map(hangs).collect();
        hosts.difference(hanging.as_ref())
    }

    /// Asks those of these hosts that are to be asked. `send` is given them, and says whether
    /// there was room for it. Gives whether a question has gone.
    ///
    /// # Errors
    /// What `send` says.
    pub fn ask<E>(
        &mut self,
        hosts: &RankSet,
        mut send: impl FnMut(&Recipients) -> Result<bool, E>,
    ) -> Result<bool, E> {
        self.questions += 1;
        let audience = self.audience(hosts);
        let is_for_all = audience == *hosts || self.questions.is_multiple_of(SELDOM);
        let asked = match () {
            () if is_for_all && send(&Recipients::All)? => hosts,
            () if !audience.is_empty() && audience != *hosts && send(&(&audience).into())? => {
                &audience
            }
            () => return Ok(false),
        };
        for rank in asked.iter() {
            *self.counts.entry(rank).or_default() += 1;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Asks, where there is room on the way to `open`; gives the hosts that were asked.
    fn ask(unanswered: &mut Unanswered, hosts: &RankSet, open: &RankSet) -> Option<RankSet> {
        let mut asked = None;
        let mut send = |to: &Recipients| {
            let to = match to {
                Recipients::All => hosts,
                Recipients::Only(some) => some,
            };
            let has_room = to.difference(open.as_ref()).is_empty();
            asked = has_room.then(|| to.clone());
            Ok::<bool, Infallible>(has_room)
        };
        let Ok(has_asked) = unanswered.ask(hosts, &mut send);
        assert_eq!(has_asked, asked.is_some());
        asked
    }

    #[test]
    fn who_hangs_is_asked_a_few_times_and_again_when_it_goes_on() {
        let (hosts, others) = (RankSet::range(3, 5), RankSet::range(4, 5));
        let mut unanswered = Unanswered::default();
        let mut asked_all = Vec::new();
        for number in 1..=u64::from(UNANSWERED_MAX) + 2 * SELDOM {
            let asked = ask(&mut unanswered, &hosts, &hosts).unwrap();
            unanswered.hear(&others);
            if asked == hosts {
                asked_all.push(number);
            } else {
                assert_eq!(asked, others);
            }
        }
        assert_eq!(asked_all, [1, 2, 3, 4, 5, 6, 7, 8, 32, 64]);
        unanswered.hear(&RankSet::range(3, 3));
        assert_eq!(ask(&mut unanswered, &hosts, &hosts), Some(hosts));
    }

    #[test]
    fn where_there_is_no_room_for_who_hangs_the_others_are_asked() {
        let (hosts, others) = (RankSet::range(0, 2), RankSet::range(0, 1));
        let mut unanswered = Unanswered::default();
        for _ in 0..u64::from(UNANSWERED_MAX) {
            ask(&mut unanswered, &hosts, &hosts);
            unanswered.hear(&others);
        }
        for _ in 0..SELDOM {
            assert_eq!(ask(&mut unanswered, &hosts, &others), Some(others.clone()));
            unanswered.hear(&others);
        }
    }

    #[test]
    fn where_all_hang_nobody_is_asked_but_seldom() {
        let hosts = RankSet::range(0, 1);
        let mut unanswered = Unanswered::default();
        let asked = (0..2 * SELDOM).filter(|_| ask(&mut unanswered, &hosts, &hosts).is_some());
        assert_eq!(asked.count() as u64, u64::from(UNANSWERED_MAX) + 2);
    }
}
