//! What is done to members and links, and when: often while long values are under way.

use std::time::Duration;

use sapwood_command_line::exit::Failure;
use sapwood_launch::Signal;
use sapwood_random::Random;

use super::lives::{ProcessNumber, Span};
use super::order::{Order, socket_address};
use super::process::{Stage, StormedMember};
use super::report::Deed;
use super::storm::{GroupStorm, LEAVE_LIMIT};
use super::value::Ask;
use crate::chance::time;

/// What is done, each as often as it stands here.
const DEEDS: [Deed; 18] = [
    Deed::Kill,
    Deed::Kill,
    Deed::Kill,
    Deed::Stop,
    Deed::Stop,
    Deed::Stop,
    Deed::Leave,
    Deed::Leave,
    Deed::LeaveTo,
    Deed::LeaveTo,
    Deed::Reset,
    Deed::Reset,
    Deed::Reset,
    Deed::Reset,
    Deed::Reset,
    Deed::Cut,
    Deed::Cut,
    Deed::Cut,
];
/// Time between two deeds, in milliseconds.
const PAUSE_MS: (f64, f64) = (50.0, 1200.0);
/// One in this number of long values is struck this long after it was asked for, in milliseconds.
const STRUCK_LONG_VALUES: u64 = 6;
const STRIKE_MS: (f64, f64) = (1.0, 40.0);
/// How long a member is stopped, in milliseconds: to far more than what makes it count as dead.
const STOP_MS: (f64, f64) = (30.0, 6000.0);
/// How long links are cut, in milliseconds: to more than what makes a member count as dead.
const CUT_MS: (f64, f64) = (20.0, 4000.0);
/// Members may begin with a cut this much later than they are told.
const CUT_MARGIN: Duration = Duration::from_millis(500);
/// At most one in this number of virtual nodes is with an heir, but one at least may be.
const MEMBERS_PER_HEIR: usize = 6;

/// Things that are drawn in a random order, each as often as it is there before any comes again.
#[derive(Clone, Debug)]
pub(super) struct Deck<T>(Vec<T>);

impl<T> Default for Deck<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Deck<T> {
    /// The next; all of them are put in again where none is left.
    pub(super) fn draw(&mut self, random: &mut Random, all: &[T]) -> T {
        if self.0.is_empty() {
            self.0.extend_from_slice(all);
            random.shuffle(&mut self.0);
        }
        self.0.pop().unwrap_or(all[0])
    }

    /// Something that was drawn is to come later.
    fn put_back(&mut self, thing: T) {
        self.0.insert(0, thing);
    }
}

impl GroupStorm<'_> {
    /// Does something to a member, when it is time.
    pub(super) fn strike(&mut self) -> Result<(), Failure> {
        let now = self.began.elapsed();
        if now < self.next.deed {
            return Ok(());
        }
        self.next.deed = now + time(&mut self.random, PAUSE_MS.0, PAUSE_MS.1);
        let deed = self.deeds.draw(&mut self.random, &DEEDS);
        let mut joined = self.in_stage(Stage::Joined);
        self.random.shuffle(&mut joined);
        let (Some(&process), other) = (joined.first(), joined.get(1).copied()) else {
            return Ok(());
        };
        let needs_other = matches!(deed, Deed::LeaveTo | Deed::Cut);
        if !self.is_allowed(deed) || needs_other && other.is_none() {
            self.deeds.put_back(deed);
            return Ok(());
        }
        let other = other.filter(|_| needs_other);
        let is_amid = self.note_struck(process, other);
        let name = self.lives.name(process);
        match (deed, other) {
            (Deed::LeaveTo, Some(heir)) => self.leave_to(process, heir),
            (Deed::Cut, Some(other)) => self.cut(process, other),
            _ => self.strike_one(deed, process)?,
        }
        let names = match other {
            Some(other) => format!("{name} {}", self.lives.name(other)),
            None => name.to_string(),
        };
        self.note_deed(deed, is_amid, &names);
        Ok(())
    }

    /// One in some long values is struck at once.
    pub(super) fn strike_soon(&mut self, ask: &Ask) {
        if ask.has_several_segments() && self.random.one_in(STRUCK_LONG_VALUES) {
            let soon = self.began.elapsed() + time(&mut self.random, STRIKE_MS.0, STRIKE_MS.1);
            self.next.deed = self.next.deed.min(soon);
        }
    }

    /// Two thirds of the members stay, so that there is something to see.
    fn is_allowed(&self, deed: Deed) -> bool {
        let members = self.plan.members as usize;
        let asked = self.members.values().filter(|member| member.is_asked()).count();
        match deed {
            Deed::Stop | Deed::Reset | Deed::Cut => true,
            Deed::LeaveTo if self.estate.len() >= (members / MEMBERS_PER_HEIR).max(1) => false,
            Deed::Kill | Deed::Leave | Deed::LeaveTo | Deed::Join => asked * 3 > members * 2,
        }
    }

    /// Notes the operations in whose midst these are struck; says whether one is of several
    /// segments.
    fn note_struck(&mut self, process: ProcessNumber, other: Option<ProcessNumber>) -> bool {
        let mut is_amid = false;
        for operation in self.open.values_mut() {
            let is_open = |process: ProcessNumber| {
                operation.asked.contains(&process) && !operation.answers.contains_key(&process)
            };
            if is_open(process) || other.is_some_and(is_open) {
                operation.is_struck = true;
                is_amid |= operation.ask.has_several_segments();
            }
        }
        is_amid
    }

    fn strike_one(&mut self, deed: Deed, process: ProcessNumber) -> Result<(), Failure> {
        let (now, choice) = (self.began.elapsed(), self.random.next_u64());
        let outage = time(&mut self.random, STOP_MS.0, STOP_MS.1);
        let Some(member) = self.members.get_mut(&process) else { return Ok(()) };
        // What was sent is sent again by a new link: that excuses nothing.
        if deed == Deed::Reset {
            member.tell(&Order::Reset { choice }.line());
            return Ok(());
        }
        self.lives.disturb(process, now);
        match deed {
            Deed::Stop => {
                member.stage = Stage::Stopped { until: now + outage };
                member.signal(Signal::STOP)
            }
            Deed::Leave => {
                member.stage = Stage::Leaving { until: now + LEAVE_LIMIT };
                member.tell(&Order::Leave { heir: None }.line());
                Ok(())
            }
            _ => {
                member.stage = Stage::Killed;
                member.signal(Signal::KILL)
            }
        }
    }

    fn leave_to(&mut self, giver: ProcessNumber, heir: ProcessNumber) {
        let now = self.began.elapsed();
        self.lives.hand_over(giver, heir, now);
        self.estate.leave((giver, self.lives.name(giver)), heir, now);
        if let Some(member) = self.members.get_mut(&giver) {
            member.stage = Stage::Leaving { until: now + LEAVE_LIMIT };
            member.tell(&Order::Leave { heir: Some(self.lives.name(heir)) }.line());
        }
    }

    /// Both ends break what leads to the other, since either may have dialled.
    fn cut(&mut self, process: ProcessNumber, other: ProcessNumber) {
        let length = time(&mut self.random, CUT_MS.0, CUT_MS.1);
        let from = self.began.elapsed();
        let span = Span { from, until: from + length + CUT_MARGIN };
        for (end, peer) in [(process, other), (other, process)] {
            self.lives.cut(end, span);
            let address = |member: &StormedMember| socket_address(&member.address);
            let peer = self.members.get(&peer).and_then(address);
            if let (Some(peer), Some(member)) = (peer, self.members.get_mut(&end)) {
                member.tell(&Order::Cut { peer, time: length }.line());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deck_gives_each_as_often_as_it_is_in_it_and_what_was_put_back_later() {
        let mut random = Random::new(3);
        let mut deck = Deck::default();
        let all = [1, 1, 2, 3];
        for _ in 0..5 {
            let mut drawn: Vec<i32> = (0..4).map(|_| deck.draw(&mut random, &all)).collect();
            drawn.sort_unstable();
            assert_eq!(drawn, all);
        }
        let first = deck.draw(&mut random, &all);
        deck.put_back(first);
        let mut rest: Vec<i32> = (0..4).map(|_| deck.draw(&mut random, &all)).collect();
        assert_eq!(rest.last(), Some(&first));
        rest.sort_unstable();
        assert_eq!(rest, all);
    }
}
