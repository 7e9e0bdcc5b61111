//! The members as one member knows them, and which virtual node is carried by which.
//!
//! Records are merged by incarnation and life, so that all members come to the same view in
//! whatever order news arrives. Of two members that claim one name the higher epoch has it, and of
//! one epoch the smaller member.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet, RankSetRef};
use sapwood_random::mix;

use super::owners::Owners;
use crate::identity::MemberId;
use crate::message::{Life, Record};

/// All members, past ones included until they are forgotten.
#[derive(Clone, Debug, Default)]
pub struct View {
    records: BTreeMap<MemberId, Record>,
    owners: Owners,
    everyone: RankSet,
    /// Virtual nodes that two living members have ever claimed at once.
    contested: RankSet,
    digest: u64,
    version: u64,
    alive: usize,
}

impl View {
    /// Takes a record over if it is newer than what is known; gives whether it is.
    pub fn merge(&mut self, record: Record) -> bool {
        let known = self.records.get(&record.id);
        if known.is_some_and(|known| age(known) >= age(&record)) {
            return false;
        }
        let id = record.id;
        let mut lost = self.names_of(id);
        self.owners.remove(lost.as_ref());
        self.everyone.subtract(lost.as_ref());
        if let Some(known) = self.records.remove(&id).filter(|known| known.life == Life::Alive) {
            self.digest ^= stamp(&known);
            self.alive -= 1;
        }
        if record.life == Life::Alive {
            self.digest ^= stamp(&record);
            self.alive += 1;
            self.contest(id, record.names.as_set());
            self.owners.claim(record.names.as_set(), id, record.epoch);
            self.everyone.union_with(record.names.as_set());
            lost.subtract(record.names.as_set());
        }
        self.records.insert(id, record);
        self.hand_back(&lost);
        self.version += 1;
        true
    }

    /// Forgets a member that is gone: older news could bring it back from then on.
    pub fn forget(&mut self, id: MemberId) {
        if self.records.get(&id).is_some_and(|record| record.life != Life::Alive) {
            self.records.remove(&id);
            self.version += 1;
        }
    }

    /// Notes which of these virtual nodes another member carries.
    fn contest(&mut self, id: MemberId, names: RankSetRef<'_>) {
        for range in self.owners.of(names).filter(|range| range.owner != id) {
            self.contested.insert_range(range.first, range.last);
        }
    }

    /// Virtual nodes that a member carries no longer go to others that claim them, too.
    fn hand_back(&mut self, lost: &RankSet) {
        let mut lost = lost.clone();
        lost.intersect_with(self.contested.as_ref());
        if lost.is_empty() {
            return;
        }
        let claims: Vec<_> = self.claims(Life::Alive, lost.as_ref()).collect();
        for (id, claimed) in claims {
            let epoch = self.records.get(&id).map_or(0, |record| record.epoch);
            self.owners.claim(claimed.as_ref(), id, epoch);
            self.everyone.union_with(claimed.as_ref());
        }
    }

    /// Which of some virtual nodes the members in this state claim, by member.
    fn claims<'a>(
        &'a self,
        life: Life,
        wanted: RankSetRef<'a>,
    ) -> impl Iterator<Item = (MemberId, RankSet)> + 'a {
        let records = self.records.values().filter(move |record| record.life == life);
        records.filter(move |record| record.names.as_set().intersects(wanted)).map(move |record| {
            let mut claimed = record.names.as_set().to_set();
            claimed.intersect_with(wanted);
            (record.id, claimed)
        })
    }

    /// What is known of a member.
    #[must_use]
    pub fn record(&self, id: MemberId) -> Option<&Record> {
        self.records.get(&id)
    }

    /// All records, those of past members included.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// The members that take part, in the order of their identities.
    pub fn alive(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.records.values().filter(|record| record.life == Life::Alive).map(|record| record.id)
    }

    /// How many take part.
    #[must_use]
    pub fn len(&self) -> usize {
        self.alive
    }

    /// Whether none takes part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.alive == 0
    }

    /// Whether a member takes part.
    #[must_use]
    pub fn is_alive(&self, id: MemberId) -> bool {
        self.records.get(&id).is_some_and(|record| record.life == Life::Alive)
    }

    /// The member that carries a virtual node.
    #[must_use]
    pub fn owner(&self, name: Rank) -> Option<MemberId> {
        self.owners.owner(name)
    }

    /// The virtual nodes that are carried by members.
    #[must_use]
    pub fn everyone(&self) -> &RankSet {
        &self.everyone
    }

    /// The virtual nodes that a member carries, other claims aside.
    #[must_use]
    pub fn names_of(&self, id: MemberId) -> RankSet {
        let Some(record) = self.records.get(&id).filter(|record| record.life == Life::Alive) else {
            return RankSet::new();
        };
        let mut names = RankSet::new();
        for range in self.owners.of(record.names.as_set()).filter(|range| range.owner == id) {
            names.insert_range(range.first, range.last);
        }
        names
    }

    /// The members that carry these virtual nodes, in the order of their first one, and the
    /// virtual nodes that no member carries.
    #[must_use]
    pub fn owners(&self, names: RankSetRef<'_>) -> (Vec<(MemberId, RankSet)>, RankSet) {
        let mut found: Vec<(MemberId, RankSet)> = Vec::new();
        let mut at: BTreeMap<MemberId, usize> = BTreeMap::new();
        for range in self.owners.of(names) {
            let index = *at.entry(range.owner).or_insert_with(|| {
                found.push((range.owner, RankSet::new()));
                found.len() - 1
            });
            found[index].1.insert_range(range.first, range.last);
        }
        let mut unassigned = names.to_set();
        unassigned.subtract(self.everyone.as_ref());
        (found, unassigned)
    }

    /// Whether another member than this one carries some of these virtual nodes.
    #[must_use]
    pub fn is_carried_beside(&self, id: MemberId, names: RankSetRef<'_>) -> bool {
        self.owners.of(names).any(|range| range.owner != id)
    }

    /// Those of some virtual nodes that members once claimed which are in this state.
    #[must_use]
    pub fn names_in(&self, life: Life, wanted: RankSetRef<'_>) -> RankSet {
        let mut names = RankSet::new();
        self.claims(life, wanted).for_each(|(_, claimed)| names.union_with(claimed.as_ref()));
        names
    }

    /// A number that is the same for views with the same living members, and almost surely for no
    /// others. Members that are gone do not count: they are not forgotten everywhere at once.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Counts the changes of this view.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The member that computes the clusters: the smallest.
    #[must_use]
    pub fn registrar(&self) -> Option<MemberId> {
        self.alive().next()
    }

    /// The members that follow one on the ring of identities, nearest first.
    pub fn after(&self, id: MemberId) -> impl Iterator<Item = MemberId> + '_ {
        let later = self.records.range(id..).skip_while(move |entry| *entry.0 == id);
        let earlier = self.records.range(..id);
        later
            .chain(earlier)
            .filter(|(_, record)| record.life == Life::Alive)
            .map(|(member, _)| *member)
    }

    /// The members before one on the ring of identities, nearest first.
    pub fn before(&self, id: MemberId) -> impl Iterator<Item = MemberId> + '_ {
        let earlier = self.records.range(..id).rev();
        let later = self.records.range(id..).rev().filter(move |entry| *entry.0 != id);
        earlier
            .chain(later)
            .filter(|(_, record)| record.life == Life::Alive)
            .map(|(member, _)| *member)
    }
}

fn age(record: &Record) -> (u32, Life) {
    (record.incarnation, record.life)
}

fn stamp(record: &Record) -> u64 {
    mix(record.id.0 ^ (u64::from(record.incarnation) << 2 | 1).rotate_left(40))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn record(id: u64, names: &str, incarnation: u32, life: Life) -> Record {
        let names = names.parse().unwrap();
        Record { incarnation, life, ..Record::new(MemberId(id), &names) }
    }

    #[test]
    fn news_in_any_order_gives_one_view() {
        let news = [
            record(1, "0", 0, Life::Alive),
            record(2, "1-2", 0, Life::Alive),
            record(2, "1-2", 0, Life::Dead),
            record(2, "1", 1, Life::Alive),
        ];
        let mut forward = View::default();
        let mut backward = View::default();
        for one in &news {
            forward.merge(one.clone());
        }
        for one in news.iter().rev() {
            backward.merge(one.clone());
        }
        assert_eq!(forward.digest(), backward.digest());
        assert_eq!(forward.everyone().to_string(), "0-1");
        assert_eq!(backward.owner(1), Some(MemberId(2)));
    }

    #[test]
    fn of_two_claims_the_smaller_member_keeps_the_name() {
        let mut view = View::default();
        view.merge(record(7, "0-3", 0, Life::Alive));
        view.merge(record(3, "2", 0, Life::Alive));
        assert_eq!(view.owner(2), Some(MemberId(3)));
        assert_eq!(view.names_of(MemberId(7)).to_string(), "0-1,3");
        // Once the smaller one is gone, the other has it.
        view.merge(record(3, "2", 0, Life::Dead));
        assert_eq!(view.owner(2), Some(MemberId(7)));
        assert_eq!(view.everyone().to_string(), "0-3");
        view.merge(record(7, "0-3", 0, Life::Dead));
        assert_eq!((view.owner(2), view.everyone().is_empty()), (None, true));
    }

    #[test]
    fn the_ring_goes_round() {
        let mut view = View::default();
        for id in [1, 4, 9] {
            view.merge(record(id, "", 0, Life::Alive));
        }
        assert_eq!(view.after(MemberId(4)).collect::<Vec<_>>(), [MemberId(9), MemberId(1)]);
        assert_eq!(view.before(MemberId(4)).collect::<Vec<_>>(), [MemberId(1), MemberId(9)]);
    }
}
