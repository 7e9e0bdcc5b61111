//! The newest table of clusters, ready for look-ups.

use alloc::collections::BTreeMap;

use crate::identity::{MemberId, Time};
use crate::members::View;
use crate::message::Table;

/// The cluster of each member, and the round trips between clusters.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    table: Table,
    labels: BTreeMap<MemberId, u16>,
    distances: BTreeMap<(u16, u16), Time>,
}

impl Clusters {
    /// Takes a table over if it is newer; gives whether it is.
    pub fn adopt(&mut self, table: Table, view: &View) -> bool {
        let rank = |table: &Table| (table.version, u64::MAX - table.author.0);
        if rank(&table) <= rank(&self.table) {
            return false;
        }
        self.labels.clear();
        for (index, (_, names)) in (0..).zip(&table.labels) {
            for (owner, _) in view.owners(names.as_set()).0 {
                self.labels.insert(owner, index);
            }
        }
        self.distances =
            table.distances.iter().map(|&(from, to, time)| ((from, to), time)).collect();
        self.table = table;
        true
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
        self.distances.values().copied().max().unwrap_or(0)
    }
}
