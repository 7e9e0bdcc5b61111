//! The newest table of clusters, ready for look-ups.

use alloc::collections::BTreeMap;

use super::costs::is_news;
use crate::identity::{MemberId, Time};
use crate::members::View;
use crate::message::Table;

/// The cluster of each member, and the round trips between clusters.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    table: Table,
    labels: BTreeMap<MemberId, u16>,
    distances: BTreeMap<(u16, u16), Time>,
    longest: Time,
}

/// What a table that came has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// Nothing: it is not newer.
    Nothing,
    /// What messages and bytes cost; the clusters and the distances between them are as before.
    Costs,
    /// The clusters, or the distances between them.
    Clusters,
}

impl Clusters {
    /// Takes a table over if it is newer; gives what that has changed.
    pub fn adopt(&mut self, table: Table, view: &View) -> Adopted {
        let rank = |table: &Table| (table.version, u64::MAX - table.author.0);
        if rank(&table) <= rank(&self.table) {
            return Adopted::Nothing;
        }
        let adopted = if self.differ_from(&table) { Adopted::Clusters } else { Adopted::Costs };
        self.labels.clear();
        for (index, (_, names)) in (0..).zip(&table.labels) {
            for (owner, _) in view.owners(names.as_set()).0 {
                self.labels.insert(owner, index);
            }
        }
        self.distances =
            table.distances.iter().map(|&(from, to, time)| ((from, to), time)).collect();
        self.longest = self.distances.values().copied().max().unwrap_or(0);
        self.table = table;
        adopted
    }

    /// Whether a table has other clusters than these, or news of the distances between them.
    pub(super) fn differ_from(&self, table: &Table) -> bool {
        let last = &self.table;
        let mut distances = table.distances.iter().zip(&last.distances);
        table.labels != last.labels
            || table.distances.len() != last.distances.len()
            || distances.any(|(new, old)| is_news(new.2, old.2))
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The index of a member's cluster.
    #[must_use]
    pub fn label(&self, member: MemberId) -> Option<u16> {
        self.labels.get(&member).copied()
    }

    /// The member after which a cluster is named.
    #[must_use]
    pub fn representative(&self, label: u16) -> Option<MemberId> {
        self.table.labels.get(usize::from(label)).map(|entry| entry.0)
    }

    /// How many virtual nodes a cluster has.
    #[must_use]
    pub fn size(&self, label: u16) -> u64 {
        self.table.labels.get(usize::from(label)).map_or(0, |entry| entry.1.as_set().len())
    }

    /// How many clusters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.labels.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.labels.is_empty()
    }

    /// The round trip between two clusters, or within one.
    #[must_use]
    pub fn round_trip(&self, from: u16, to: u16) -> Option<Time> {
        self.distances.get(&(from, to)).or_else(|| self.distances.get(&(to, from))).copied()
    }

    /// The longest known round trip.
    #[must_use]
    pub fn longest(&self) -> Time {
        self.longest
    }
}
