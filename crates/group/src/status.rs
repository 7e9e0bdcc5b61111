//! How a group is, as one of its members sees it: for people who ask from outside.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::error::{GroupError, Reason};
use crate::identity::{MemberId, Time};
use crate::member::Member;
use crate::message::{Life, Ranges};
use crate::operations::ReduceCounts;
use crate::trees::{Choice, Step, TreeKind};

/// How many changes are remembered.
const CHANGES_MAX: usize = 256;

/// What one member knows of its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The member that answers.
    pub member: MemberId,
    /// The size of the name space.
    pub space: u32,
    /// All members, those included that have gone within the last hour, in the order of their
    /// identities.
    pub members: Vec<MemberStatus>,
    /// The inferred clusters: each one's first member, and its virtual nodes that are carried. One
    /// whose members have all gone has none.
    pub clusters: Vec<(MemberId, Ranges)>,
    /// Measured round trips between clusters by index, or within one, in nanoseconds.
    pub distances: Vec<(u16, u16, Time)>,
    /// The version of the table of clusters.
    pub table: u64,
    /// How many probes the member has sent that measure distances.
    pub probes: u64,
    /// How many transfers, reductions and calls it holds any state of.
    pub held: u64,
    /// What has changed, the newest last.
    pub changes: Vec<Change>,
    /// The tree that was asked for, and why each parent is one.
    pub tree: TreeStatus,
    /// What the member has done with the parts of reductions that came to it.
    pub reductions: ReduceCounts,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its identity.
    pub id: MemberId,
    /// Where it can be dialled.
    pub address: String,
    /// The virtual nodes that it carries.
    pub names: Ranges,
    /// The cluster that its operator gave.
    pub site: u32,
    /// Whether it takes part.
    pub life: Life,
    /// The index of its inferred cluster.
    pub cluster: Option<u16>,
}

/// A change that the member has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// How long ago, in nanoseconds.
    pub age: Time,
    /// What.
    pub what: ChangeKind,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    /// A member takes part.
    Joined(MemberId),
    /// A member is gone.
    Gone(MemberId, Reason),
    /// The clusters or the distances between them are others: the table's version, and how many
    /// clusters it has.
    Clusters(u64, u32),
}

/// A tree by which a transfer would go now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeStatus {
    /// By which rule.
    pub kind: TreeKind,
    /// The virtual node at its root.
    pub root: u32,
    /// The length of the value, in bytes.
    pub bytes: u64,
    /// Each member below the root, parents before children; for each stripe its own.
    pub steps: Vec<Step>,
    /// Which of its trees `adaptive` takes for this length, and from which figures.
    pub choice: Option<Choice>,
}

/// The changes that a member remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(VecDeque<(Time, ChangeKind)>);

impl History {
    pub(crate) fn note(&mut self, now: Time, what: ChangeKind) {
        if self.0.len() == CHANGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now, what));
    }
}

impl Status {
    /// As bytes.
    ///
    /// # Errors
    /// [`GroupError::Message`] if there is no memory.
    pub fn encode(&self) -> Result<Vec<u8>, GroupError> {
        postcard::to_allocvec(self).map_err(|error| GroupError::Message(error.to_string()))
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`GroupError::Message`] for what is no status.
    pub fn decode(bytes: &[u8]) -> Result<Self, GroupError> {
        postcard::from_bytes(bytes).map_err(|error| GroupError::Message(error.to_string()))
    }
}

impl Member {
    /// How the group is, with the tree from a virtual node (or else from this member) for a value
    /// of a length.
    #[must_use]
    pub fn status(&self, kind: TreeKind, root: Option<u32>, bytes: u64) -> Status {
        let own = self.names().as_ref().first();
        let root = root.or(own).unwrap_or(0);
        let member = |record: &crate::message::Record| MemberStatus {
            id: record.id,
            address: record.address.clone(),
            names: record.names.clone(),
            site: record.site,
            life: record.life,
            cluster: self.clusters().label(record.id),
        };
        let table = self.clusters().table();
        // The table may be older than the last that have gone.
        let cluster = |(first, names): &(MemberId, Ranges)| {
            let mut names = names.as_set().to_set();
            names.intersect_with(self.view().everyone().as_ref());
            (*first, Ranges::from(&names))
        };
        let age = |(time, what): &(Time, ChangeKind)| Change {
            age: self.now.saturating_sub(*time),
            what: what.clone(),
        };
        Status {
            member: self.id(),
            space: self.config.space,
            members: self.view().records().map(member).collect(),
            clusters: table.labels.iter().map(cluster).collect(),
            distances: table.distances.clone(),
            table: table.version,
            probes: self.probes(),
            held: self.held() as u64,
            changes: self.history.0.iter().map(age).collect(),
            tree: self.tree_status(kind, root, bytes),
            reductions: self.reduce_counts(),
        }
    }

    fn tree_status(&self, kind: TreeKind, root: u32, bytes: u64) -> TreeStatus {
        let mut tree = TreeStatus { kind, root, bytes, steps: Vec::new(), choice: None };
        let Some(at) = self.view().owner(root) else { return tree };
        let mut targets = self.view().everyone().clone();
        targets.subtract(self.view().names_of(at).as_ref());
        let above = crate::trees::Terrain { me: at, ..self.terrain_for(bytes) };
        tree.choice = self.choice(bytes, kind, at, targets.as_ref());
        tree.steps = match tree.choice.and_then(|choice| choice.stripes) {
            Some(count) => above.explain_stripes(count, targets.as_ref()),
            None => above.explain(kind, targets.as_ref()),
        };
        tree
    }
}

/// The parent of each member in a tree, for programs that draw it.
impl TreeStatus {
    /// How many members each one has below it directly.
    #[must_use]
    pub fn fan_out(&self) -> BTreeMap<MemberId, usize> {
        let mut count = BTreeMap::new();
        for step in &self.steps {
            *count.entry(step.parent).or_insert(0) += 1;
        }
        count
    }
}
