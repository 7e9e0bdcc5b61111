//! News of members: down a tree to all at once, and by comparing views for those that it missed.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::RankSetRef;

use crate::error::Reason;
use crate::identity::{MemberId, SECOND, Time};
use crate::member::{Event, Member, Phase, Timer};
use crate::message::{Life, Message, Ranges, Record};
use crate::status::ChangeKind;
use crate::trees::TreeKind;

/// How many neighbours on the ring tell others that a member is dead.
const WATCHERS: usize = 3;

/// After this many delays news is told a second time.
const AGAIN: u64 = 15;

/// After a death, news that was told less long ago is told once more: members that were to hear of
/// it by the dead one may not have. A death is found within this time.
const TOLD_AGAIN: Time = 2 * SECOND;

/// Most records that are kept for that.
const TOLD_MAX: usize = 256;

/// News that is still to be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    news: BTreeMap<MemberId, Record>,
    again: BTreeMap<MemberId, Record>,
    /// What was told, and when at first.
    told: BTreeMap<MemberId, (Record, Time)>,
    is_timed: bool,
}

impl Spread {
    fn note_told(&mut self, news: &BTreeMap<MemberId, Record>, now: Time) {
        self.forget_told(now);
        for (id, record) in news {
            let known = self.told.get(id).map(|told| &told.0);
            let has_room = known.is_some() || self.told.len() < TOLD_MAX;
            if has_room && known != Some(record) {
                self.told.insert(*id, (record.clone(), now));
            }
        }
    }

    fn forget_told(&mut self, now: Time) {
        self.told.retain(|_, told| told.1 + TOLD_AGAIN > now);
    }
}

impl Member {
    /// Learns of a member at first hand: all are told.
    pub(crate) fn learn(&mut self, record: Record) {
        if self.accept(record.clone()) {
            self.tell_all(record);
        }
    }

    /// Tells all of a member with the next news.
    pub(super) fn tell_all(&mut self, record: Record) {
        let is_first = self.spread.news.is_empty();
        self.spread.news.insert(record.id, record);
        if !self.spread.is_timed || is_first {
            self.spread.is_timed = true;
            self.wake_at(self.now + self.config.spread_delay, Timer::Spread);
        }
    }

    /// A member was found dead: it may not have passed on what was told last.
    fn tell_again(&mut self) {
        self.spread.forget_told(self.now);
        let told: Vec<Record> = self.spread.told.values().map(|told| told.0.clone()).collect();
        for record in told {
            if self.view.record(record.id) == Some(&record) {
                self.tell_all(record);
            }
        }
    }

    /// Tells what was gathered, each member once.
    pub(crate) fn spread_news(&mut self) {
        self.spread.is_timed = false;
        // What was told once is told again a while later: by then it is known which of those that
        // were to pass it on are gone.
        let mut records: Vec<Record> =
            core::mem::take(&mut self.spread.again).into_values().collect();
        let news = core::mem::take(&mut self.spread.news);
        records.extend(news.values().cloned());
        if !records.is_empty() {
            let targets = self.others();
            self.pass_news(targets.as_ref(), &records);
        }
        if !news.is_empty() {
            self.spread.note_told(&news, self.now);
            self.spread.again = news;
            self.spread.is_timed = true;
            self.wake_at(self.now + AGAIN * self.config.spread_delay, Timer::Spread);
        }
    }

    fn pass_news(&mut self, targets: RankSetRef<'_>, records: &[Record]) {
        self.pass(targets, |targets| Message::Update { targets, records: records.to_vec() });
    }

    /// Sends a notice down a tree, without acknowledgement.
    pub(crate) fn pass(&mut self, targets: RankSetRef<'_>, message: impl Fn(Ranges) -> Message) {
        let (branches, _) = self.terrain().split(TreeKind::Adaptive, self.me, targets);
        for branch in branches {
            let below = branch.names.difference(self.view.names_of(branch.child).as_ref());
            self.send(branch.child, message((&below).into()));
        }
    }

    pub(crate) fn update(&mut self, from: MemberId, targets: &Ranges, mut records: Vec<Record>) {
        if self.phase == Phase::Outside {
            return;
        }
        self.pass_news(targets.as_set(), &records);
        // A member that has taken names over comes before the one that gave them away.
        records.sort_by_cached_key(|record| {
            (record.life != Life::Alive, !self.has_more_names(record))
        });
        for record in records {
            if record.id == self.me {
                self.refute(from, &record);
            } else {
                self.accept(record);
            }
        }
    }

    /// Whether a member carries names by a record that it did not carry before.
    fn has_more_names(&self, record: &Record) -> bool {
        let known = self.view.record(record.id).map(|known| known.names.as_set());
        known.is_some_and(|known| !record.names.as_set().is_within(known))
    }

    /// What others say of this member is overruled. While it was taken for dead it was told no
    /// news: a ping has the views compared.
    fn refute(&mut self, from: MemberId, said: &Record) {
        let mut record = self.own_record();
        if self.phase == Phase::Joined
            && said.life != Life::Alive
            && said.incarnation >= record.incarnation
        {
            record.incarnation = said.incarnation.saturating_add(1);
            record.life = Life::Alive;
            self.learn(record);
            self.attach_again(|_| true);
            self.suspect(from);
        }
    }

    /// Takes a record over, with what follows from it.
    pub(crate) fn accept(&mut self, record: Record) -> bool {
        let (id, life) = (record.id, record.life);
        let was_alive = self.view.is_alive(id);
        if !self.merge(record) {
            return false;
        }
        match life {
            Life::Alive if !was_alive && id != self.me => {
                self.history.note(self.now, ChangeKind::Joined(id));
                self.tell(Event::MemberJoined(id));
                self.member_back(id);
                self.attach_again(|parent| parent == id);
            }
            Life::Alive => {}
            Life::Dead | Life::Left => {
                let reason = if life == Life::Dead { Reason::Dead } else { Reason::Left };
                if was_alive && id != self.me {
                    if life == Life::Dead {
                        // Its link is closed.
                        self.credit.note_lost(id);
                        self.tell_again();
                    }
                    self.history.note(self.now, ChangeKind::Gone(id, reason));
                    self.tell(Event::MemberGone(id, reason));
                }
                if life == Life::Dead {
                    self.links.forget_pause(id);
                }
                self.member_gone(id);
            }
        }
        if life == Life::Alive && id != self.me {
            self.yield_names();
            self.folds_after_news();
        }
        self.papers_changed();
        self.forget_past();
        self.check_giving();
        true
    }

    /// Whether a record has virtual nodes of this group's name space only, as every honest one has.
    pub(super) fn is_of_space(&self, record: &Record) -> bool {
        record.names.as_set().last().is_none_or(|last| last < self.config.space)
    }

    /// This member has seen that another is gone. Its neighbours on the ring tell all others; a
    /// member farther off waits for them.
    pub(crate) fn bury(&mut self, id: MemberId, life: Life) {
        let Some(mut record) = self.view.record(id).cloned() else { return };
        if record.life != Life::Alive {
            return;
        }
        record.life = life;
        let is_watcher = self.view.before(id).take(WATCHERS).any(|member| member == self.me);
        if is_watcher {
            self.learn(record);
        } else {
            self.accept(record);
        }
    }

    /// Two views differ: both sides tell each other all.
    pub(crate) fn compare(&mut self, from: MemberId, digest: u64) {
        if digest != self.view.digest() && self.detector.may_compare(from, self.now) {
            let records = self.records_to_tell();
            let targets = (&sapwood_packet::RankSet::new()).into();
            self.send(from, Message::Update { targets, records });
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_packet::RankSet;

    use super::*;

    #[test]
    fn what_was_told_last_of_a_member_is_kept_also_where_there_is_room_for_no_other() {
        let record = |id: u64| Record::new(MemberId(id), &RankSet::new());
        let mut spread = Spread::default();
        let all: BTreeMap<MemberId, Record> =
            (0..TOLD_MAX as u64).map(|id| (MemberId(id), record(id))).collect();
        spread.note_told(&all, SECOND);
        let newer = Record { epoch: 1, ..record(7) };
        let other = record(u64::MAX);
        let news = BTreeMap::from([(newer.id, newer.clone()), (other.id, other)]);
        spread.note_told(&news, SECOND);
        assert_eq!(spread.told.len(), TOLD_MAX);
        assert_eq!(spread.told[&newer.id].0, newer);
    }
}
