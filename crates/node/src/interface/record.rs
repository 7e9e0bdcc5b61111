//! What processes of a tree tell of themselves, as it travels: fixed columns of numbers, and the
//! filter that puts what several processes tell one behind another.
//!
//! ```text
//! %Auld  one row of NODE_COLUMNS numbers for each process
//! %As    the name of its host, in the same order
//! %Auld  one row of LINK_COLUMNS numbers for each link from a process to a child of its
//! ```
//!
//! Where a request asks for events, the columns of [`hops`](crate::interface::hops) follow.
//!
//! The columns of a row are the fields of [`NodeRecord`] and [`LinkRecord`] in their order, each as
//! an unsigned number, or one of 64 bits that may be negative. Times are nanoseconds; each is a
//! difference on one clock but for the last two of a link. A time that is not known is 0.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_filter::{Emitter, Filter, FilterError, WaveRef};
use sapwood_packet::{Rank, Values, ValuesRef};

use crate::interface::Role;
use crate::interface::hops::{HopParts, ProcessHops, append};

/// The name of the filter that makes a stream one on which all processes tell of themselves.
pub const TELEMETRY: &str = "telemetry";

/// Numbers in a process's row.
pub const NODE_COLUMNS: usize = 23;

/// Numbers in a link's row.
pub const LINK_COLUMNS: usize = 8;

/// What a process tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its rank.
    pub rank: Rank,
    /// Its parent's, as it knows it; none at the front-end. One more than that in its column, and
    /// 0 for none.
    pub parent: Option<Rank>,
    /// What it is: 0 front-end, 1 communication process, 2 back-end.
    pub role: Role,
    /// Its process id on its host.
    pub pid: u32,
    /// Back-ends that are to be below it.
    pub expected: u32,
    /// Back-ends that are connected below it.
    pub connected: u32,
    /// Back-ends below it that are gone.
    pub lost: u32,
    /// Back-ends below it whose parent is gone and that have not come back yet.
    pub awaited: u32,
    /// Smoothed round-trip time to its parent.
    pub round_trip: u64,
    /// Bytes that it holds for others, of all streams and links.
    pub queued_bytes: u64,
    /// The windows of its streams and links, together, in bytes.
    pub window_bytes: u64,
    /// The fullest of its queues, in thousandths of its window; more than 1000 when a packet is
    /// longer than the window.
    pub fill: u32,
    /// Bytes that it keeps until they are acknowledged.
    pub kept_bytes: u64,
    /// Packets that it has dropped, of the streams that are open.
    pub dropped: u64,
    /// Waves that have gone on since it told of itself last; of a back-end, sent.
    pub waves: u64,
    /// Packets that have come in that time, telemetry aside; of a back-end, also sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// That time.
    pub interval: u64,
    /// Orphans that it has taken in.
    pub adopted: u32,
    /// Children that it has lost.
    pub gone: u32,
    /// From the request to the sending of this: what its part of this very wave took.
    pub held: u64,
    /// Streams that are open, telemetry aside.
    pub streams: u32,
    /// By how much the wall clock of its host is ahead of the process's own.
    pub wall: i64,
    /// Its host.
    pub host: String,
}

/// What a process tells of a link to a child of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    /// The process.
    pub parent: Rank,
    /// The child.
    pub child: Rank,
    /// Back-ends that are connected through it.
    pub connected: u32,
    /// Smoothed round-trip time.
    pub round_trip: u64,
    /// Bytes that wait to be written to it.
    pub unwritten: u64,
    /// From the request to the arrival of the child's part of this very wave; none if it has not
    /// come. One more than that in its column, and 0 for none.
    pub arrived: Option<u64>,
    /// By how much the child's clock is ahead of the process's, and by how much that may be wrong
    /// either way; the latter is 0 in its column where neither is known.
    pub skew: Option<(i64, u64)>,
}

/// What processes tell, as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Of themselves.
    pub nodes: Vec<NodeRecord>,
    /// Of their links.
    pub links: Vec<LinkRecord>,
    /// Of their events, where the request asks for them.
    pub hops: Vec<ProcessHops>,
}

impl NodeRecord {
    fn to_row(&self) -> [u64; NODE_COLUMNS] {
        let role = match self.role {
            Role::FrontEnd => 0,
            Role::Communication => 1,
            Role::BackEnd => 2,
        };
        [
            self.rank.into(),
            self.parent.map_or(0, |parent| u64::from(parent) + 1),
            role,
            self.pid.into(),
            self.expected.into(),
            self.connected.into(),
            self.lost.into(),
            self.awaited.into(),
            self.round_trip,
            self.queued_bytes,
            self.window_bytes,
            self.fill.into(),
            self.kept_bytes,
            self.dropped,
            self.waves,
            self.packets,
            self.bytes,
            self.interval,
            self.adopted.into(),
            self.gone.into(),
            self.held,
            self.streams.into(),
            self.wall as u64,
        ]
    }

    fn from_row(row: &[u64; NODE_COLUMNS], host: &[u8]) -> Option<Self> {
        let short = |column: usize| u32::try_from(row[column]).ok();
        Some(Self {
            rank: short(0)?,
            parent: match row[1] {
                0 => None,
                more => Some(Rank::try_from(more - 1).ok()?),
            },
            role: match row[2] {
                0 => Role::FrontEnd,
                1 => Role::Communication,
                2 => Role::BackEnd,
                _ => return None,
            },
            pid: short(3)?,
            expected: short(4)?,
            connected: short(5)?,
            lost: short(6)?,
            awaited: short(7)?,
            round_trip: row[8],
            queued_bytes: row[9],
            window_bytes: row[10],
            fill: short(11)?,
            kept_bytes: row[12],
            dropped: row[13],
            waves: row[14],
            packets: row[15],
            bytes: row[16],
            interval: row[17],
            adopted: short(18)?,
            gone: short(19)?,
            held: row[20],
            streams: short(21)?,
            wall: row[22] as i64,
            host: String::from_utf8_lossy(host).into_owned(),
        })
    }
}

impl LinkRecord {
    fn to_row(self) -> [u64; LINK_COLUMNS] {
        [
            self.parent.into(),
            self.child.into(),
            self.connected.into(),
            self.round_trip,
            self.unwritten,
            self.arrived.map_or(0, |arrived| arrived.saturating_add(1)),
            self.skew.map_or(0, |(ahead, _)| ahead as u64),
            self.skew.map_or(0, |(_, error)| error),
        ]
    }

    fn from_row(row: &[u64; LINK_COLUMNS]) -> Option<Self> {
        Some(Self {
            parent: Rank::try_from(row[0]).ok()?,
            child: Rank::try_from(row[1]).ok()?,
            connected: u32::try_from(row[2]).ok()?,
            round_trip: row[3],
            unwritten: row[4],
            arrived: row[5].checked_sub(1),
            skew: (row[7] > 0).then_some((row[6] as i64, row[7])),
        })
    }
}

impl Records {
    /// As the values of a packet.
    #[must_use]
    pub fn to_values(&self) -> Values {
        let nodes: Vec<u64> = self.nodes.iter().flat_map(NodeRecord::to_row).collect();
        let hosts: Vec<&str> = self.nodes.iter().map(|node| node.host.as_str()).collect();
        let links: Vec<u64> = self.links.iter().flat_map(|link| link.to_row()).collect();
        let values = Values::new().large_array(&nodes).large_strings(&hosts).large_array(&links);
        if self.hops.is_empty() { values } else { append(&self.hops, values) }
    }

    /// Out of a packet's values.
    ///
    /// # Errors
    /// [`FilterError`] when these are not the values of such a packet.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let parts = Parts::read(values)?;
        let rows = parts.nodes.as_chunks::<NODE_COLUMNS>().0.iter();
        let nodes = rows.zip(parts.hosts).map(|(row, host)| NodeRecord::from_row(row, host));
        let links = parts.links.as_chunks::<LINK_COLUMNS>().0.iter().map(LinkRecord::from_row);
        let all = (nodes.collect::<Option<Vec<_>>>(), links.collect::<Option<Vec<_>>>());
        let hops = parts.hops.map_or(Some(Vec::new()), HopParts::to_hops);
        let ((Some(nodes), Some(links)), Some(hops)) = (all, hops) else {
            return Err(wrong("a column is out of range"));
        };
        Ok(Self { nodes, links, hops })
    }
}

/// Values of a packet that tells nothing of events, and of one that does.
const WITHOUT_HOPS: usize = 3;
const WITH_HOPS: usize = 7;

/// The values of one packet, checked in their lengths.
struct Parts<'a> {
    nodes: &'a [u64],
    hosts: Vec<&'a [u8]>,
    links: &'a [u64],
    hops: Option<HopParts<'a>>,
}

impl<'a> Parts<'a> {
    fn read(values: ValuesRef<'a>) -> Result<Self, FilterError> {
        let (nodes, links) = (values.array::<u64>(0)?, values.array::<u64>(2)?);
        let hosts: Vec<&[u8]> = values.strings(1)?.collect();
        let is_whole = nodes.len() == hosts.len() * NODE_COLUMNS
            && links.len().is_multiple_of(LINK_COLUMNS)
            && matches!(values.len(), WITHOUT_HOPS | WITH_HOPS);
        if !is_whole {
            return Err(wrong("rows are not whole"));
        }
        let has_hops = values.len() == WITH_HOPS;
        let hops = has_hops.then(|| HopParts::read(values, WITHOUT_HOPS)).transpose()?;
        Ok(Self { nodes, hosts, links, hops })
    }
}

/// The filter: rows one behind another.
struct Telemetry;

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if !parameters.is_empty() {
        return Err(FilterError::Parameters { name: TELEMETRY, takes: "no parameters" });
    }
    Ok(Box::new(Telemetry))
}

impl Filter for Telemetry {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let (mut nodes, mut hosts, mut links) = (Vec::new(), Vec::new(), Vec::new());
        let mut hops = Vec::new();
        for packet in wave.packets {
            let parts = Parts::read(packet.values())?;
            nodes.extend_from_slice(parts.nodes);
            hosts.extend(parts.hosts);
            links.extend_from_slice(parts.links);
            hops.extend(parts.hops);
        }
        let values = Values::new().large_array(&nodes).large_strings(&hosts).large_array(&links);
        let values = if hops.is_empty() { values } else { HopParts::gather(&hops, values) };
        out.emit(first.header.tag, values);
        Ok(())
    }
}

#[cold]
pub(crate) fn wrong(why: &str) -> FilterError {
    FilterError::Failed(alloc::format!("filter '{TELEMETRY}': {why}"))
}
