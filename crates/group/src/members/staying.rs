//! The member that gives a part of its virtual nodes to one that joins, and stays.
//!
//! It goes on with what it does. Only its own calls to reductions wait from the message on that
//! gives them until the receiver carries them: their values would count for virtual nodes that are
//! not its own any more.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::RankSet;

use super::giving::{AGAIN, Giving};
use crate::error::Reason;
use crate::identity::{MemberId, Request, Time};
use crate::limits::EPOCH_MAX;
use crate::member::{Answer, Call, Event, Member, Phase, Timer};
use crate::message::Ranges;
use crate::trees::TreeKind;

/// What a giver does when the hand-over has ended.
#[derive(Clone, Debug)]
pub(super) enum Afterwards {
    /// It leaves.
    Leave {
        /// The members that were asked, the last of which is the receiver.
        asked: Vec<MemberId>,
    },
    /// It stays.
    Stay(Staying),
}

/// What a giver that stays has put off.
#[derive(Clone, Debug, Default)]
pub(super) struct Staying {
    calls: BTreeMap<Request, LaterCall>,
    /// Its application wants it to leave.
    departure: Option<Departure>,
}

/// How a member leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Departure {
    /// Its virtual nodes go with it.
    Alone,
    /// It hands them to this member, or to the next one on the ring.
    To(Option<MemberId>),
}

#[derive(Clone, Debug)]
struct LaterCall {
    tree: TreeKind,
    deadline: Time,
    call: Call,
}

impl Afterwards {
    pub(super) fn staying() -> Self {
        Self::Stay(Staying::default())
    }
}

impl Giving {
    /// Whether the giver leaves, so that it takes nothing over any more.
    pub(crate) fn leaves(&self) -> bool {
        match &self.afterwards {
            Afterwards::Leave { .. } => true,
            Afterwards::Stay(staying) => staying.departure.is_some(),
        }
    }

    /// Its application wants it to leave; the first wish counts.
    pub(super) fn leave_afterwards(&mut self, departure: Departure) {
        if let Afterwards::Stay(staying) = &mut self.afterwards {
            staying.departure.get_or_insert(departure);
        }
    }
}

impl Member {
    /// Whether a member that joins may have these virtual nodes. All of them it may not: a member
    /// without any hears no news.
    pub(super) fn may_give_a_part(&self, to: MemberId, names: &Ranges) -> bool {
        let (own, names) = (self.names(), names.as_set());
        self.phase == Phase::Joined
            && !self.is_taking()
            && self.view.is_alive(to)
            && self.own_record().epoch < EPOCH_MAX
            && !names.is_empty()
            && names.is_within(own.as_ref())
            && own.as_ref() != names
    }

    /// What was begun ends first.
    pub(super) fn give_a_part(&mut self, to: MemberId, names: &Ranges) {
        self.giving = Some(Giving::of_a_part(to, names.as_set().to_set(), self.now));
        self.wake_at(self.now + AGAIN, Timer::Giving);
    }

    /// Whether virtual nodes of this member, which stays, are another one's that may not know it.
    pub(super) fn is_giving_a_part(&self) -> bool {
        self.giving.as_ref().is_some_and(|giving| giving.is_given() && !giving.leaves())
    }

    /// Puts a call off, unless it can be started now.
    pub(crate) fn call_later(
        &mut self,
        request: Request,
        tree: TreeKind,
        deadline: Time,
        call: Call,
    ) -> Option<Call> {
        let is_reduction = matches!(call, Call::Reduce { .. });
        let giving = self.giving.as_mut().filter(|giving| giving.is_given() && is_reduction);
        match giving.map(|giving| &mut giving.afterwards) {
            Some(Afterwards::Stay(staying)) => {
                staying.calls.insert(request, LaterCall { tree, deadline, call });
                None
            }
            _ => Some(call),
        }
    }

    fn staying(&self) -> Option<&Staying> {
        match &self.giving.as_ref()?.afterwards {
            Afterwards::Stay(staying) => Some(staying),
            Afterwards::Leave { .. } => None,
        }
    }

    /// How many calls are put off.
    pub(crate) fn put_off(&self) -> usize {
        self.staying().map_or(0, |staying| staying.calls.len())
    }

    /// Whether a call is put off.
    pub(crate) fn has_put_off(&self, request: Request) -> bool {
        self.staying().is_some_and(|staying| staying.calls.contains_key(&request))
    }

    /// The deadline of a call that is put off has passed: it has no part in its reduction.
    pub(crate) fn drop_later_call(&mut self, request: Request) {
        let Some(giving) = &mut self.giving else { return };
        let given = giving.names.clone();
        let Afterwards::Stay(staying) = &mut giving.afterwards else { return };
        if staying.calls.remove(&request).is_none() {
            return;
        }
        let own = self.view.names_of(self.me).difference(given.as_ref());
        let missing = Vec::from([(own, Reason::Deadline)]);
        let answer = Answer { value: None, contributors: RankSet::new(), missing };
        self.tell(Event::Answered(request, answer));
    }

    /// Does what it has put off.
    pub(super) fn go_on(&mut self, staying: Staying) {
        for (request, LaterCall { tree, deadline, call }) in staying.calls {
            self.call(request, tree, deadline, call);
        }
        match staying.departure {
            Some(Departure::Alone) => self.leave(),
            Some(Departure::To(heir)) => self.leave_to_member(heir),
            None => {}
        }
    }
}
