//! The virtual nodes whose members leave to an heir: which member is to have them, and which one
//! says that it does.
//!
//! Owns [`Estate`]. Such a virtual node has no process of its own until the member that has taken
//! it over has ended. That an heir has it is told by its answers.

use std::collections::BTreeMap;
use std::time::Duration;

use sapwood::{Rank, RankSet};

use super::lives::{ProcessNumber, Span};
use super::storm::GroupStorm;

/// After a member has left, its heir must have said by then that it carries what was left to it.
const TAKEN_LIMIT: Duration = Duration::from_secs(20);

/// The virtual nodes that were left to heirs.
#[derive(Debug, Default)]
pub(super) struct Estate(BTreeMap<Rank, Bequest>);

/// One virtual node.
#[derive(Clone, Copy, Debug)]
struct Bequest {
    giver: ProcessNumber,
    heir: ProcessNumber,
    /// When the giver was told to leave.
    told: Duration,
    /// When it had ended.
    ended: Option<Duration>,
    /// The process that has said that it carries the virtual node.
    carrier: Option<ProcessNumber>,
}

impl Estate {
    /// A process with this virtual node is told to leave all that it carries to another.
    pub(super) fn leave(
        &mut self,
        (giver, name): (ProcessNumber, Rank),
        heir: ProcessNumber,
        told: Duration,
    ) {
        let bequest = Bequest { giver, heir, told, ended: None, carrier: None };
        for inherited in self.0.values_mut().filter(|each| each.carrier == Some(giver)) {
            *inherited = bequest;
        }
        self.0.insert(name, bequest);
    }

    /// How many virtual nodes were left, and have no process of their own.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a virtual node was left to an heir, and is not free.
    pub(super) fn has(&self, name: Rank) -> bool {
        self.0.contains_key(&name)
    }

    /// A process says what it carries; gives how many of these have come to it.
    pub(super) fn note_carried(&mut self, process: ProcessNumber, names: &RankSet) -> u64 {
        let mut come = 0;
        for (name, bequest) in &mut self.0 {
            if bequest.giver != process && bequest.carrier.is_none() && names.contains(*name) {
                bequest.carrier = Some(process);
                come += 1;
            }
        }
        come
    }

    /// A process has ended; gives the virtual nodes that it carried for others, which are free.
    pub(super) fn bury(&mut self, process: ProcessNumber, now: Duration) -> Vec<Rank> {
        for bequest in self.0.values_mut().filter(|each| each.giver == process) {
            bequest.ended = Some(now);
        }
        self.take(|bequest| bequest.carrier == Some(process))
    }

    /// Those that no process has said to carry for too long are free.
    fn lapsed(&mut self, now: Duration) -> Vec<(Rank, Bequest)> {
        let is_late = |each: &Bequest| each.ended.is_some_and(|ended| ended + TAKEN_LIMIT <= now);
        let lapsed = self.0.iter().filter(|(_, each)| each.carrier.is_none() && is_late(each));
        let lapsed: Vec<(Rank, Bequest)> = lapsed.map(|(name, each)| (*name, *each)).collect();
        self.0.retain(|name, _| lapsed.iter().all(|entry| entry.0 != *name));
        lapsed
    }

    fn take(&mut self, is_free: impl Fn(&Bequest) -> bool) -> Vec<Rank> {
        let free = self.0.iter().filter(|(_, bequest)| is_free(bequest));
        let free: Vec<Rank> = free.map(|(name, _)| *name).collect();
        self.0.retain(|_, bequest| !is_free(bequest));
        free
    }
}

impl GroupStorm<'_> {
    /// Frees what no heir has taken over; one that was left alone should have.
    pub(super) fn settle_estate(&mut self) {
        let now = self.began.elapsed();
        for (name, bequest) in self.estate.lapsed(now) {
            let Bequest { giver, heir, told, .. } = bequest;
            let at_once = Span { from: told, until: told };
            let until_now = Span { from: told, until: now };
            let was_possible = self.lives.is_calm_but(giver, at_once, Some(giver))
                && self.lives.is_calm_but(heir, until_now, Some(giver));
            if was_possible {
                let heir = self.lives.name(heir);
                self.violate(format!("member {heir}: has not taken over {name}, left to it"));
            }
            self.vacate(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn set(text: &str) -> RankSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_virtual_node_is_free_when_the_last_that_has_taken_it_over_has_ended() {
        let mut estate = Estate::default();
        estate.leave((4, 4), 5, second(1));
        assert_eq!(estate.note_carried(4, &set("4")), 0, "the giver itself");
        assert_eq!(estate.bury(4, second(2)), [0; 0]);
        assert_eq!(estate.note_carried(5, &set("4-5")), 1);
        assert_eq!(estate.note_carried(5, &set("4-5")), 0, "it is known");
        estate.leave((5, 5), 6, second(3));
        assert_eq!(estate.bury(5, second(4)), [0; 0]);
        assert_eq!((estate.note_carried(6, &set("4-6")), estate.len()), (2, 2));
        assert_eq!(estate.bury(6, second(5)), [4, 5]);
        assert!(!estate.has(4) && !estate.has(5));
    }

    #[test]
    fn what_no_process_takes_over_is_free_after_a_while() {
        let mut estate = Estate::default();
        estate.leave((4, 4), 5, second(1));
        assert!(estate.lapsed(second(90)).is_empty(), "the giver has not ended");
        estate.bury(4, second(2));
        assert!(estate.lapsed(second(21)).is_empty());
        assert!(estate.has(4));
        assert_eq!(estate.lapsed(second(22)).len(), 1);
        assert!(!estate.has(4));
    }
}
