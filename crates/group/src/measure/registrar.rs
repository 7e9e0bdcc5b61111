//! The smallest member computes the clusters from what all have measured, and tells all.
//!
//! Two members are near if their round trip is below three times the lower quartile of the members'
//! smallest round trips. A cluster is what near members make up; its label is its smallest member.
//! Where the registrar dies, the next smallest goes on from the table that all have.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::RankSet;

use super::clusters::Adopted;
use super::costs::{Costs, median};
use crate::identity::{MILLISECOND, MemberId, SECOND, Time};
use crate::limits::LABELS_MAX;
use crate::member::{Member, Phase};
use crate::message::{Message, Ranges, Table};
use crate::status::ChangeKind;

/// How long reports are gathered.
const GATHER: Time = 20 * MILLISECOND;
/// Of several measurements between two clusters, those count that are this much older at most.
const FRESH: Time = SECOND;
/// A member is near below this many times the lower quartile.
const NEAR: u64 = 3;

/// All reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registrar {
    pairs: BTreeMap<(MemberId, MemberId), Distance>,
    is_timed: bool,
}

/// A round trip, when it was reported, and by which end.
#[derive(Clone, Copy, Debug)]
struct Distance {
    round_trip: Time,
    at: Time,
    by: MemberId,
}

impl Member {
    pub(crate) fn reported(&mut self, from: MemberId, distances: &[(MemberId, Time)]) {
        for &(other, round_trip) in distances {
            if other != from && round_trip > 0 {
                let pair = (from.min(other), from.max(other));
                // Of what both ends say at the same time the less counts: the other end was late.
                let is_known = self.registrar.pairs.get(&pair).is_some_and(|known| {
                    known.by != from && known.round_trip < round_trip && known.at + FRESH > self.now
                });
                if !is_known {
                    let distance = Distance { round_trip, at: self.now, by: from };
                    self.registrar.pairs.insert(pair, distance);
                }
            }
        }
        self.gather_reports();
    }

    /// Computes the table in a moment, when others have reported too.
    pub(super) fn gather_reports(&mut self) {
        if !self.registrar.is_timed && !self.registrar.pairs.is_empty() {
            self.registrar.is_timed = true;
            self.need_clusters(GATHER);
        }
    }

    pub(crate) fn compute_clusters(&mut self) {
        self.registrar.is_timed = false;
        if self.phase != Phase::Joined || self.view.registrar() != Some(self.me) {
            return;
        }
        let view = &self.view;
        self.registrar.pairs.retain(|pair, _| view.is_alive(pair.0) && view.is_alive(pair.1));
        let Some(near) = self.near_limit() else { return };
        let groups = self.groups(near);
        let costs = self.gathered_costs();
        let table = self.table(&groups, near, costs);
        if !self.is_news(&table) {
            return;
        }
        let targets = self.others();
        self.pass(targets.as_ref(), |targets| Message::Clusters { targets, table: table.clone() });
        if self.adopt_table(table) == Adopted::Clusters {
            self.probe_soon();
        }
    }

    /// Takes a table over if it is newer; gives what that has changed.
    pub(crate) fn adopt_table(&mut self, table: Table) -> Adopted {
        let (version, count) = (table.version, table.labels.len() as u32);
        let adopted = self.clusters.adopt(table, &self.view);
        if adopted == Adopted::Clusters {
            self.history.note(self.now, ChangeKind::Clusters(version, count));
        }
        adopted
    }

    /// The round trip below which members are near.
    fn near_limit(&self) -> Option<Time> {
        let mut least: BTreeMap<MemberId, Time> = BTreeMap::new();
        for (&(one, other), &Distance { round_trip, .. }) in &self.registrar.pairs {
            for member in [one, other] {
                let entry = least.entry(member).or_insert(round_trip);
                *entry = round_trip.min(*entry);
            }
        }
        if 2 * least.len() < self.view.len() {
            return None;
        }
        let mut least: Vec<Time> = least.into_values().collect();
        least.sort_unstable();
        least.get(least.len() / 4).map(|quartile| NEAR * quartile)
    }

    /// The label of each member.
    fn groups(&self, near: Time) -> BTreeMap<MemberId, MemberId> {
        let mut above: BTreeMap<MemberId, MemberId> =
            self.view.alive().map(|member| (member, member)).collect();
        // A new registrar has few measurements of its own, and goes on from its predecessor's.
        if self.clusters.table().author != self.me {
            for (_, names) in &self.clusters.table().labels {
                let (owners, _) = self.view.owners(names.as_set());
                for pair in owners.windows(2) {
                    join(&mut above, pair[0].0, pair[1].0);
                }
            }
        }
        for (&(one, other), &Distance { round_trip, .. }) in &self.registrar.pairs {
            if round_trip < near {
                join(&mut above, one, other);
            }
        }
        let members: Vec<MemberId> = above.keys().copied().collect();
        members.into_iter().map(|member| (member, top(&above, member))).collect()
    }

    fn table(&self, groups: &BTreeMap<MemberId, MemberId>, near: Time, costs: Costs) -> Table {
        let mut names: BTreeMap<MemberId, RankSet> = BTreeMap::new();
        for (owner, carried) in self.view.owners(self.view.everyone().as_ref()).0 {
            if let Some(label) = groups.get(&owner) {
                names.entry(*label).or_default().union_with(carried.as_ref());
            }
        }
        let index: BTreeMap<MemberId, u16> = names.keys().copied().zip(0..).collect();
        let labels = names
            .into_iter()
            .take(LABELS_MAX)
            .map(|(label, names)| (label, Ranges::from(&names)))
            .collect();
        let mut samples: BTreeMap<(u16, u16), Vec<(Time, Time)>> = BTreeMap::new();
        for (&(one, other), &Distance { round_trip, at, .. }) in &self.registrar.pairs {
            let ends = groups.get(&one).zip(groups.get(&other));
            let Some((from, to)) =
                ends.and_then(|(from, to)| Some((*index.get(from)?, *index.get(to)?)))
            else {
                continue;
            };
            if from != to || round_trip < near {
                samples.entry((from.min(to), from.max(to))).or_default().push((at, round_trip));
            }
        }
        let mut distances = self.inherited(&index);
        distances.extend(samples.into_iter().map(|(pair, samples)| (pair, fresh_median(samples))));
        Table {
            version: self.clusters.table().version.saturating_add(1),
            author: self.me,
            labels,
            distances: distances.into_iter().map(|((from, to), time)| (from, to, time)).collect(),
            costs,
        }
    }

    /// Distances of the last table between clusters that are still there.
    fn inherited(&self, index: &BTreeMap<MemberId, u16>) -> BTreeMap<(u16, u16), Time> {
        let table = self.clusters.table();
        let of = |old: u16| {
            let label = table.labels.get(usize::from(old)).map(|entry| entry.0)?;
            index.get(&label).copied()
        };
        let entries = table.distances.iter().filter_map(|&(from, to, time)| {
            let (from, to) = (of(from)?, of(to)?);
            Some(((from.min(to), from.max(to)), time))
        });
        entries.collect()
    }

    /// Whether a table says something that the last did not.
    fn is_news(&self, table: &Table) -> bool {
        let last = self.clusters.table();
        table.costs.is_news_after(&last.costs) || self.clusters.differ_from(table)
    }

    pub(crate) fn clusters_came(&mut self, targets: &Ranges, table: Table) {
        if self.phase == Phase::Outside {
            return;
        }
        self.pass(targets.as_set(), |targets| Message::Clusters { targets, table: table.clone() });
        if self.adopt_table(table) == Adopted::Clusters {
            self.probe_soon();
        }
    }

    /// A peer has an older table.
    pub(crate) fn offer_table(&mut self, from: MemberId, version: u64) {
        if version < self.clusters.table().version && self.detector.may_compare(from, self.now) {
            let targets = (&RankSet::new()).into();
            let table = self.clusters.table().clone();
            self.send(from, Message::Clusters { targets, table });
        }
    }
}

/// The median of the newest measurements.
fn fresh_median(samples: Vec<(Time, Time)>) -> Time {
    let newest = samples.iter().map(|sample| sample.0).max().unwrap_or(0);
    let mut fresh: Vec<Time> =
        samples.into_iter().filter(|sample| sample.0 + FRESH > newest).map(|s| s.1).collect();
    median(&mut fresh).unwrap_or(0)
}

fn top(above: &BTreeMap<MemberId, MemberId>, mut member: MemberId) -> MemberId {
    while let Some(&next) = above.get(&member).filter(|next| **next != member) {
        member = next;
    }
    member
}

fn join(above: &mut BTreeMap<MemberId, MemberId>, one: MemberId, other: MemberId) {
    let (one, other) = (top(above, one), top(above, other));
    let (low, high) = (one.min(other), one.max(other));
    if above.contains_key(&high) && above.contains_key(&low) {
        above.insert(high, low);
    }
}
