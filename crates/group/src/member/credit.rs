//! How many bytes of segments and parts wait on each link, and what waits until there is room.
//!
//! A link has credit while less than [`Config::link_bytes`](super::Config::link_bytes) wait on it.
//! What a member sends counts at once; [`Input::Drained`](super::Input::Drained) says what has
//! left.
//! Other messages do not count: they are short, and signs of life must not wait.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::ops::Bound;

use super::Member;
use crate::identity::{CastId, FoldId, MemberId};
use crate::limits::LATE_PARTS_MAX;
use crate::message::Message;
use crate::mutation::Mutation;

/// Something of which the next piece is sent when a link has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// The next segment of a stripe.
    Lane(CastId, u8),
    /// A segment of a reduction, with all that has been folded into it by then.
    Wave(FoldId, u32),
}

/// What waits, by the member at the other end of the link.
#[derive(Debug, Default)]
pub(crate) struct Credit {
    links: BTreeMap<MemberId, Account>,
}

#[derive(Debug, Default)]
struct Account {
    /// Bytes that were given to the link and, as far as is known, have not left.
    queued_bytes: usize,
    due: BTreeSet<Due>,
    /// Whose turn it was last.
    last: Option<Due>,
    /// Parts that are not folded any more on their way to the root.
    late: VecDeque<Message>,
    late_bytes: usize,
}

impl Account {
    fn is_idle(&self) -> bool {
        self.queued_bytes == 0 && self.due.is_empty() && self.late.is_empty()
    }
}

impl Credit {
    /// Bytes that wait on the link to a member.
    pub(crate) fn queued_bytes(&self, member: MemberId) -> usize {
        self.links.get(&member).map_or(0, |account| account.queued_bytes)
    }

    pub(crate) fn note_sent(&mut self, member: MemberId, bytes: usize) {
        if bytes > 0 {
            self.links.entry(member).or_default().queued_bytes += bytes;
        }
    }

    /// This many bytes wait still.
    fn note_drained(&mut self, member: MemberId, queued_bytes: usize) {
        let Some(account) = self.links.get_mut(&member) else { return };
        account.queued_bytes = account.queued_bytes.min(queued_bytes);
        self.tidy(member);
    }

    /// Has something wait for room on the link to a member.
    pub(crate) fn wait(&mut self, member: MemberId, due: Due) {
        self.links.entry(member).or_default().due.insert(due);
    }

    /// Has a part wait, unless as many bytes of such parts wait already as may wait on a link, or
    /// as many parts as may: those without a value cost memory too.
    fn wait_late(&mut self, member: MemberId, part: Message, link_bytes: usize) {
        let account = self.links.entry(member).or_default();
        if account.late_bytes < link_bytes && account.late.len() < LATE_PARTS_MAX {
            account.late_bytes += part.bulk_bytes();
            account.late.push_back(part);
        }
    }

    /// Whether a stripe waits for room on any link.
    pub(crate) fn is_waiting(&self, due: Due) -> bool {
        self.links.values().any(|account| account.due.contains(&due))
    }

    /// Whether anything waits for room on any link.
    pub(crate) fn is_any_waiting(&self) -> bool {
        self.links.values().any(|account| !(account.due.is_empty() && account.late.is_empty()))
    }

    fn next_late(&mut self, member: MemberId) -> Option<Message> {
        let account = self.links.get_mut(&member)?;
        let part = account.late.pop_front()?;
        account.late_bytes -= part.bulk_bytes();
        Some(part)
    }

    /// What has waited longest for its turn; it waits no more.
    fn next_due(&mut self, member: MemberId) -> Option<Due> {
        let account = self.links.get_mut(&member)?;
        let after = account.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = account.due.range((after, Bound::Unbounded)).next();
        let next = *next.or_else(|| account.due.first())?;
        account.due.remove(&next);
        account.last = Some(next);
        Some(next)
    }

    /// Nothing waits for a member any more. Gives what did; late parts are lost as they are on a
    /// link that breaks, and the root asks for the values again.
    pub(crate) fn forget_due(&mut self, member: MemberId) -> BTreeSet<Due> {
        let Some(account) = self.links.get_mut(&member) else { return BTreeSet::new() };
        (account.late, account.late_bytes) = (VecDeque::new(), 0);
        let due = core::mem::take(&mut account.due);
        self.tidy(member);
        due
    }

    /// The link to a member is gone with all that was on it.
    pub(crate) fn note_lost(&mut self, member: MemberId) {
        self.note_drained(member, 0);
    }

    /// The same, and nothing waits for it any more. Gives what did.
    pub(super) fn lose(&mut self, member: MemberId) -> BTreeSet<Due> {
        self.note_lost(member);
        self.forget_due(member)
    }

    fn tidy(&mut self, member: MemberId) {
        if self.links.get(&member).is_some_and(Account::is_idle) {
            self.links.remove(&member);
        }
    }
}

impl Member {
    /// Bytes of segments and parts that wait on the link to a member, as far as this one knows.
    #[must_use]
    pub fn queued_bytes(&self, member: MemberId) -> usize {
        self.credit.queued_bytes(member)
    }

    /// Whether a segment or part may be sent to a member now.
    pub(crate) fn has_credit(&self, member: MemberId) -> bool {
        self.credit.queued_bytes(member) < self.config.link_bytes
            || self.breaks(Mutation::IgnoreCredit)
    }

    /// Bytes have left on the link to a member.
    pub(super) fn drained(&mut self, member: MemberId, queued_bytes: usize) {
        self.credit.note_drained(member, queued_bytes);
        while self.has_credit(member) {
            if let Some(part) = self.credit.next_late(member) {
                self.send(member, part);
                continue;
            }
            let Some(due) = self.credit.next_due(member) else { break };
            match due {
                Due::Lane(cast, stripe) => self.feed_once((cast, stripe), member),
                Due::Wave(fold, segment) => self.send_wave(fold, segment),
            }
        }
        self.credit.tidy(member);
    }

    /// What has waited for a link that is gone goes by another, if there is one.
    pub(crate) fn redirect(&mut self, member: MemberId, due: BTreeSet<Due>) {
        for due in due {
            match due {
                Due::Lane(cast, stripe) => self.feed((cast, stripe), member),
                Due::Wave(fold, segment) => self.send_wave(fold, segment),
            }
        }
    }

    /// Sends a part that is not folded any more on its way, as soon as there is room. Where too
    /// much waits already it is dropped: the root asks for the values that it lacks, again and
    /// again.
    pub(crate) fn send_late(&mut self, to: MemberId, part: Message) {
        if to == self.me || self.has_credit(to) {
            self.send(to, part);
        } else {
            self.credit.wait_late(to, part, self.config.link_bytes);
        }
    }
}
