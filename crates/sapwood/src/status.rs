//! The status of a network: the records of its processes in one telemetry wave, joined to the
//! present tree, beside the planned tree.
//!
//! [`Network::status`](crate::Network::status) asks; a process of another network asks through
//! [`VisibleNetwork`](crate::VisibleNetwork).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sapwood_node::{Cause, LinkRecord, Missing, NodeRecord, ProcessHops, Records};
use sapwood_packet::{
    FormatRef, PacketError, Rank, RankSet, Slab, Values, ValuesRef, nanoseconds, padded,
};
use sapwood_topology::{Role, Topology};

use crate::{Error, Result};

/// A queue that is filled to this many thousandths of its window counts as full.
const FULL: u32 = 900;

/// A link between processes that run by themselves is slow beyond this round-trip time, in
/// nanoseconds.
const SLOW: u64 = 50_000_000;

/// Columns of a process in the planned tree, as it travels: its rank; one more than its parent's,
/// or 0 for none; its role.
const PLACE_COLUMNS: usize = 3;

/// The health of a subtree, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// All of its back-ends are connected as planned.
    Full,
    /// All of its back-ends are connected, but there was a repair, a queue is full or a link is
    /// slow.
    Degraded,
    /// Some back-ends are missing.
    Partial,
    /// The process itself has not answered.
    Lost,
}

impl Health {
    /// One word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Degraded => "degraded",
            Self::Partial => "partial",
            Self::Lost => "lost",
        }
    }
}

/// One process of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its rank.
    pub rank: Rank,
    /// Its role.
    pub role: Role,
    /// Its parent, or the last known one if it is lost; none at the front-end.
    pub parent: Option<Rank>,
    /// Its parent in the planned tree.
    pub planned_parent: Option<Rank>,
    /// The name of its host in the plan; none for a process that was not planned. Its record has
    /// the name that the host gives itself.
    pub planned_host: Option<String>,
    /// Its children, by rank.
    pub children: Vec<Rank>,
    /// The health of its subtree.
    pub health: Health,
    /// Why its health is not full, as far as the process itself is the reason.
    pub why: Vec<String>,
    /// Its record of itself; none if it has not answered.
    pub record: Option<NodeRecord>,
    /// Its parent's record of the link to it.
    pub link: Option<LinkRecord>,
}

impl NodeStatus {
    /// Smoothed round-trip time to its parent: as the parent measures it, else as itself does.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        let link = self.link.map_or(0, |link| link.round_trip);
        let own = self.record.as_ref().map_or(0, |record| record.round_trip);
        let best = if link > 0 { link } else { own };
        (best > 0).then(|| Duration::from_nanos(best))
    }

    /// From the telemetry request at its parent to the arrival of its part there.
    #[must_use]
    pub fn arrived(&self) -> Option<Duration> {
        self.link.and_then(|link| link.arrived).map(Duration::from_nanos)
    }

    /// From the telemetry request at this process to the sending of its part.
    #[must_use]
    pub fn held(&self) -> Option<Duration> {
        self.record.as_ref().map(|record| Duration::from_nanos(record.held))
    }

    /// The rate of a counter, per second, since the previous record of this process.
    #[must_use]
    pub fn per_second(&self, count: impl Fn(&NodeRecord) -> u64) -> Option<f64> {
        let record = self.record.as_ref().filter(|record| record.interval > 0)?;
        Some(count(record) as f64 * 1e9 / record.interval as f64)
    }
}

/// The status of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// All processes, each before its children; the front-end is the first.
    pub nodes: Vec<NodeStatus>,
    /// The back-ends that have not answered, by reason.
    pub missing: Vec<Missing>,
    /// How long the answer took.
    pub took: Duration,
    sources: Sources,
}

/// The parts of a status that are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sources {
    records: Records,
    planned: Vec<PlannedProcess>,
}

/// A process of the planned tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlannedProcess {
    rank: Rank,
    parent: Option<Rank>,
    role: Role,
    host: String,
}

impl Status {
    /// The front-end.
    ///
    /// # Panics
    /// Never: a status has a front-end.
    #[must_use]
    pub fn root(&self) -> &NodeStatus {
        self.nodes.first().expect("a status has a front-end")
    }

    /// What processes tell of events of waves and packets, where the query asked for them.
    #[must_use]
    pub fn hops(&self) -> &[ProcessHops] {
        &self.sources.records.hops
    }

    /// A process by rank.
    #[must_use]
    pub fn node(&self, rank: Rank) -> Option<&NodeStatus> {
        self.nodes.iter().find(|node| node.rank == rank)
    }

    /// The back-ends that have answered, and those that have not.
    #[must_use]
    pub fn back_ends(&self) -> (RankSet, RankSet) {
        let leaves = || self.nodes.iter().filter(|node| node.role == Role::BackEnd);
        let of = |answered: bool| {
            leaves().filter(|n| n.record.is_some() == answered).map(|n| n.rank).collect()
        };
        (of(true), of(false))
    }

    /// Assembles a status from a telemetry wave.
    pub(crate) fn new(
        topology: &Topology,
        records: Records,
        missing: Vec<Missing>,
        took: Duration,
    ) -> Self {
        let process = |node: sapwood_topology::Node<'_>| PlannedProcess {
            rank: node.rank(),
            parent: node.parent(),
            role: node.role(),
            host: node.host().to_string(),
        };
        let mut planned: Vec<PlannedProcess> = topology.nodes().map(process).collect();
        planned.sort_unstable_by_key(|process| process.rank);
        Self::assemble(Sources { records, planned }, missing, took)
    }

    fn assemble(sources: Sources, missing: Vec<Missing>, took: Duration) -> Self {
        let mut nodes = joined(&sources, &missing);
        let root = sources.planned.iter().find(|process| process.parent.is_none()).map(|p| p.rank);
        let order = in_order(&mut nodes, root);
        for &rank in order.iter().rev() {
            let worst = nodes[&rank].children.iter().filter_map(|child| nodes.get(child));
            let worst = worst.map(as_seen_above).max().unwrap_or(Health::Full);
            if let Some(node) = nodes.get_mut(&rank)
                && node.health != Health::Lost
            {
                node.health = node.health.max(worst);
            }
        }
        let nodes = order.iter().filter_map(|rank| nodes.remove(rank)).collect();
        Self { nodes, missing, took, sources }
    }

    /// As it travels.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let ranks: Vec<String> = self.missing.iter().map(|m| m.ranks.to_string()).collect();
        let reasons: Vec<&str> = self.missing.iter().map(|m| m.reason.as_str()).collect();
        let of_process = |process: &PlannedProcess| {
            let parent = process.parent.map_or(0, |parent| u64::from(parent) + 1);
            [u64::from(process.rank), parent, process.role as u64]
        };
        let planned: Vec<u64> = self.sources.planned.iter().flat_map(of_process).collect();
        let records = self.sources.records.to_values();
        let took = nanoseconds(self.took);
        let causes = self.missing.iter().flat_map(|m| [m.cause.code(), m.cause.detail()]);
        let causes: Vec<u32> = causes.collect();
        let mut all = Values::new().scalar(took).strings(&ranks).strings(&reasons);
        let hosts: Vec<&str> = self.sources.planned.iter().map(|one| one.host.as_str()).collect();
        all = all.large_array(&planned).array(&causes).large_strings(&hosts);
        let mut bytes = Vec::new();
        for part in [all, records] {
            let (format, body) = part.into_parts();
            let codes = format.as_ref().codes();
            bytes.extend((codes.len() as u64).to_le_bytes());
            bytes.extend((body.len() as u64).to_le_bytes());
            bytes.extend(codes);
            bytes.resize(padded(bytes.len()), 0);
            bytes.extend(body.as_bytes());
        }
        bytes
    }

    /// Decodes it.
    ///
    /// # Errors
    /// [`Error::Packet`] when the bytes are no status.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let slab = Slab::copy_of(bytes);
        let (own, rest) = values_of(slab.as_bytes())?;
        let (records, _) = values_of(rest)?;
        let records = Records::from_values(records)?;
        let (ranks, reasons) = (own.strings(1)?, own.strings(2)?);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let causes = own.array::<u32>(4)?.as_chunks::<2>().0;
        let missing = ranks.zip(reasons).zip(causes).map(|((ranks, reason), &[code, detail])| {
            Ok(Missing::new(text(ranks).parse()?, Cause::of(code, detail), text(reason)))
        });
        let missing = missing.collect::<std::result::Result<_, PacketError>>()?;
        let process = |(row, host): (&[u64; PLACE_COLUMNS], &[u8])| {
            let rank = |number: u64| Rank::try_from(number).ok();
            let role = [Role::FrontEnd, Role::Comm, Role::BackEnd]
                .into_iter()
                .find(|&role| role as u64 == row[2])?;
            let parent = if row[1] == 0 { None } else { Some(rank(row[1] - 1)?) };
            Some(PlannedProcess { rank: rank(row[0])?, parent, role, host: text(host) })
        };
        let rows = own.array::<u64>(3)?.as_chunks::<PLACE_COLUMNS>().0;
        let hosts = own.strings(5).map_err(|_| no_status())?;
        let planned: Option<Vec<PlannedProcess>> = rows.iter().zip(hosts).map(process).collect();
        let sources = Sources { records, planned: planned.unwrap_or_default() };
        let took = Duration::from_nanos(own.scalar::<u64>(0)?);
        let status = Self::assemble(sources, missing, took);
        if status.nodes.is_empty() { Err(no_status()) } else { Ok(status) }
    }
}

/// Cuts off the values that bytes begin with.
fn values_of(bytes: &[u8]) -> Result<(ValuesRef<'_>, &[u8])> {
    let number = |at: usize| {
        let word: [u8; 8] = bytes.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(word)).ok()
    };
    let cut = || {
        let (codes, body) = (number(0)?, number(8)?);
        let end = 16_usize.checked_add(codes)?;
        let format = FormatRef::from_codes(bytes.get(16..end)?)?;
        let start = end.checked_next_multiple_of(8)?;
        let (body, rest) = bytes.get(start..)?.split_at_checked(body)?;
        Some((ValuesRef::parse(format, body).ok()?, rest))
    };
    cut().ok_or_else(no_status)
}

fn no_status() -> Error {
    Error::Runtime(sapwood_runtime::RuntimeError::Visit {
        reason: "its answer is no status; ask with the release that the network runs".into(),
    })
}

/// The effect of a process on its ancestors' health: a lost communication process alone makes no
/// ancestor partial, a lost back-end does.
fn as_seen_above(node: &NodeStatus) -> Health {
    match (node.health, node.role) {
        (Health::Lost, Role::BackEnd) => Health::Partial,
        (Health::Lost, _) if node.children.is_empty() => Health::Degraded,
        (Health::Lost, _) => Health::Partial,
        (health, _) => health,
    }
}

/// All processes, of the plan and of the answer.
fn joined(sources: &Sources, missing: &[Missing]) -> BTreeMap<Rank, NodeStatus> {
    let mut nodes = BTreeMap::new();
    let empty = |rank: Rank, role: Role, parent: Option<Rank>| NodeStatus {
        rank,
        role,
        parent,
        planned_parent: parent,
        planned_host: None,
        children: Vec::new(),
        health: Health::Lost,
        why: Vec::new(),
        record: None,
        link: None,
    };
    for process in &sources.planned {
        let PlannedProcess { rank, parent, role, ref host } = *process;
        let planned_host = Some(host.clone());
        nodes.insert(rank, NodeStatus { planned_host, ..empty(rank, role, parent) });
    }
    for record in &sources.records.nodes {
        let role = match record.role {
            sapwood_node::Role::FrontEnd => Role::FrontEnd,
            sapwood_node::Role::Communication => Role::Comm,
            sapwood_node::Role::BackEnd => Role::BackEnd,
        };
        let unplanned = || NodeStatus { planned_parent: None, ..empty(record.rank, role, None) };
        let node = nodes.entry(record.rank).or_insert_with(unplanned);
        node.parent = record.parent.or(node.parent);
        node.record = Some(record.clone());
    }
    for link in &sources.records.links {
        if let Some(node) = nodes.get_mut(&link.child) {
            node.parent = Some(link.parent);
            node.link = Some(*link);
        }
    }
    for node in nodes.values_mut() {
        judge(node, missing);
    }
    nodes
}

/// The health of a process by itself.
fn judge(node: &mut NodeStatus, missing: &[Missing]) {
    let Some(record) = &node.record else {
        let reason = missing.iter().find(|missing| missing.ranks.contains(node.rank));
        let reason = reason.map(|missing| missing.reason.clone());
        let silent = if node.link.is_some() { "connected, but silent" } else { "gone" };
        node.why.push(reason.unwrap_or_else(|| silent.to_string()));
        return;
    };
    if record.adopted > 0 {
        node.why.push(format!("has adopted {} orphans", record.adopted));
    }
    if record.awaited > 0 {
        node.why.push(format!("waits for {} back-ends to reconnect", record.awaited));
    }
    if node.planned_parent.is_some() && node.parent != node.planned_parent {
        let planned = node.planned_parent.unwrap_or_default();
        node.why.push(format!("was planned below {planned}"));
    }
    if record.fill >= FULL {
        node.why.push(format!("a queue is filled to {} %", record.fill / 10));
    }
    let runs_itself = record.role == sapwood_node::Role::Communication;
    let link = node.link.map_or(0, |link| link.round_trip);
    if runs_itself && link > SLOW {
        node.why.push(format!("its link takes {} ms", link / 1_000_000));
    }
    node.health = if node.why.is_empty() { Health::Full } else { Health::Degraded };
}

/// Fills in every process's children, and returns all ranks, each before its children's.
fn in_order(nodes: &mut BTreeMap<Rank, NodeStatus>, root: Option<Rank>) -> Vec<Rank> {
    let front_end = |node: &&NodeStatus| node.role == Role::FrontEnd;
    let Some(root) = root.or_else(|| nodes.values().find(front_end).map(|node| node.rank)) else {
        return Vec::new();
    };
    let parents: Vec<(Rank, Option<Rank>)> =
        nodes.values().map(|node| (node.rank, node.parent)).collect();
    for (rank, parent) in parents.into_iter().filter(|&(rank, _)| rank != root) {
        let parent = parent.filter(|parent| *parent != rank).unwrap_or(root);
        let known = if nodes.contains_key(&parent) { parent } else { root };
        if let Some(node) = nodes.get_mut(&known) {
            node.children.push(rank);
        }
    }
    let mut seen = BTreeSet::new();
    let mut order = Vec::new();
    let mut waiting = vec![root];
    while let Some(rank) = waiting.pop() {
        let Some(node) = nodes.get(&rank).filter(|_| seen.insert(rank)) else { continue };
        order.push(rank);
        waiting.extend(node.children.iter().rev());
    }
    order
}
