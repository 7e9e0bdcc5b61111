//! The tables of a leaf's MPI ranks: taking them in as ranks come, reading them when asked.
//!
//! A rank hands its table over once and keeps the connection open as long as it lives. The table
//! stays mapped when the rank is gone, so that what it counted survives it.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use sapwood_profile::{Condition, Moment, RankProfile, RankRows, RankState, Round, TableReader};
use sapwood_transport::{
    SharedTable, TableAccepted, TableListener, TableOffer, TablePeer, monotonic_clock,
};

use super::condition::condition;

/// Connections that have not offered a table yet; others wait until these have.
const ARRIVING_MAX: usize = 1024;
/// What a leaf says of ranks that it cannot take in, at most; the rest is counted by the front-end
/// as missing.
const NOTES_MAX: usize = 16;

/// All tables of one leaf.
pub(crate) struct Tables {
    listener: Option<TableListener>,
    arriving: Vec<TablePeer>,
    ranks: BTreeMap<u32, RankTable>,
    notes: usize,
}

/// The table of one rank.
struct RankTable {
    /// The connection to its process; none when that has ended.
    peer: Option<TablePeer>,
    table: SharedTable,
    world_size: u32,
    is_noted: bool,
}

/// What a rank says of itself and its table; `bindings/mpi/shim/handover.h` draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hello {
    world_rank: u32,
    world_size: u32,
    pid: u32,
    table_bytes: u64,
}

impl Hello {
    fn parse(bytes: &[u8; 64]) -> Result<Self, String> {
        let word = |at: usize| bytes[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        if bytes[..8] != *b"SWHELLO1" || word(8) != 1 {
            return Err(
                "MPI shim and sapwood are of different releases; rebuild the shim with 'make shim'"
                    .to_string(),
            );
        }
        let table_bytes = bytes[24..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let hello = Self { world_rank: word(12), world_size: word(16), pid: word(20), table_bytes };
        if hello.world_rank >= hello.world_size {
            return Err(format!("the shim announced rank {} of {} ranks", word(12), word(16)));
        }
        Ok(hello)
    }
}

impl Tables {
    /// Waits for ranks under an abstract name.
    ///
    /// # Errors
    /// When the name is taken.
    pub(crate) fn bind(name: &str) -> sapwood_transport::Result<Self> {
        let listener = Some(TableListener::bind(name)?);
        Ok(Self { listener, arriving: Vec::new(), ranks: BTreeMap::new(), notes: 0 })
    }

    /// Where ranks come.
    pub(crate) fn listener(&self) -> Option<&TableListener> {
        self.listener.as_ref()
    }

    /// Takes in who has come and notices who has gone. `watch` is told of each new connection.
    pub(crate) fn look(&mut self, mut watch: impl FnMut(&dyn AsFd)) {
        self.accept(&mut watch);
        let mut waiting = Vec::new();
        for mut peer in std::mem::take(&mut self.arriving) {
            match peer.receive() {
                Ok(None) => waiting.push(peer),
                Ok(Some(offer)) => self.admit(peer, offer),
                Err(error) => {
                    let pid = peer.credentials().process;
                    self.note(&format!("process {pid} is not observed: {error}"));
                }
            }
        }
        self.arriving.extend(waiting);
        for rank in self.ranks.values_mut() {
            if rank.peer.as_mut().is_some_and(TablePeer::is_closed) {
                rank.peer = None;
            }
        }
    }

    fn accept(&mut self, watch: &mut impl FnMut(&dyn AsFd)) {
        while self.arriving.len() < ARRIVING_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok(TableAccepted::Peer(peer)) => {
                    watch(&peer);
                    self.arriving.push(peer);
                }
                Ok(TableAccepted::Empty) => return,
                Ok(TableAccepted::ForeignUser(_)) => {}
                Ok(TableAccepted::Exhausted) => {
                    self.listener = None;
                    self.note(
                        "too many open files; further ranks are not observed; raise 'ulimit -n'",
                    );
                }
                Err(error) => {
                    self.listener = None;
                    self.note(&format!("further ranks are not observed: {error}"));
                }
            }
        }
    }

    fn admit(&mut self, peer: TablePeer, offer: TableOffer) {
        let hello = match Hello::parse(&offer.hello) {
            Ok(hello) => hello,
            Err(reason) => {
                let pid = peer.credentials().process;
                return self.note(&format!("process {pid} is not observed: {reason}"));
            }
        };
        let Hello { world_rank, world_size, pid, table_bytes } = hello;
        if self.ranks.contains_key(&world_rank) {
            return self.note(&format!(
                "process {pid} is not observed: rank {world_rank} is already observed, so it is of a \
                 second program or of MPI_Comm_spawn"
            ));
        }
        // A size beyond this machine's memory is refused as any other that is too large.
        match SharedTable::map(offer.descriptor, usize::try_from(table_bytes).unwrap_or(usize::MAX))
        {
            Ok(table) => {
                let rank = RankTable { peer: Some(peer), table, world_size, is_noted: false };
                self.ranks.insert(world_rank, rank);
            }
            Err(error) => self.note(&format!("rank {world_rank} is not observed: {error}")),
        }
    }

    /// The size of the program: as the front-end knows it, or as the first rank here says; 0 before
    /// that has come.
    fn world_size(&self, known: u32) -> u32 {
        let first = || self.ranks.values().next().map_or(0, |rank| rank.world_size);
        if known == 0 { first() } else { known }
    }

    /// The statistics over all ranks that have come, as they are now. `world_size` is 0 as long as
    /// the front-end does not know it.
    pub(crate) fn round(&mut self, world_size: u32, long_ns: u64) -> Round {
        let world_size = self.world_size(world_size);
        let mut round = Round::new(world_size);
        for profile in self.profiles(world_size, long_ns) {
            if let Err(error) = round.add(&profile) {
                self.note(&format!("rank {} is left out: {error}", profile.mpi_rank));
            }
        }
        round
    }

    /// The profiles of all ranks that have come.
    pub(crate) fn rows(&mut self, world_size: u32, long_ns: u64) -> RankRows {
        let profiles = self.profiles(world_size, long_ns);
        RankRows::new(profiles).unwrap_or_else(|error| {
            self.note(&format!("no rows: {error}"));
            RankRows::default()
        })
    }

    fn profiles(&mut self, world_size: u32, long_ns: u64) -> Vec<RankProfile> {
        let mut notes = Vec::new();
        let mut profiles = Vec::new();
        for (number, rank) in &mut self.ranks {
            let read = rank.profile(world_size, long_ns).map(|profile| RankProfile {
                // The rank under which it came is the one that no other rank has.
                mpi_rank: *number,
                ..profile
            });
            match read {
                Ok(profile) => profiles.push(profile),
                Err(reason) if !std::mem::replace(&mut rank.is_noted, true) => {
                    notes.push(format!("rank {number} is left out: {reason}"));
                }
                Err(_) => {}
            }
        }
        notes.iter().for_each(|note| self.note(note));
        profiles
    }

    /// Standard error of a leaf goes up the tree, to where the user looks.
    fn note(&mut self, text: &str) {
        self.notes += 1;
        if self.notes <= NOTES_MAX {
            eprintln!("sapwood: {text}");
        }
    }
}

impl RankTable {
    /// What the rank has counted. Whether it lives was seen before its table is read, so that a
    /// table that says "running" behind a closed connection is of a rank that was killed.
    fn profile(&self, world_size: u32, long_ns: u64) -> Result<RankProfile, String> {
        if self.world_size != world_size {
            return Err(format!(
                "its program has {} ranks, and one with {world_size} is watched; watch one program \
                 at a time",
                self.world_size
            ));
        }
        let condition = self.peer.as_ref().map(|peer| condition(peer.credentials().process));
        // Before the copy, so that no activity seems to last longer than it does.
        let now_ns = u64::try_from(monotonic_clock()).unwrap_or(0);
        let words = self.table.copy_words(0..self.table.words());
        let words = words.map_err(|error| error.to_string())?;
        let table = TableReader::new(&words).map_err(|error| error.to_string())?;
        let mut profile = table.profile();
        if self.peer.is_none() && profile.state == RankState::Running {
            profile.state = RankState::Lost;
        }
        let condition = match (profile.state, condition) {
            (RankState::Lost, _) => Some(Condition::Lost),
            // The process is on its way out.
            (RankState::Exited, _) => None,
            (RankState::Running | RankState::Finalized, condition) => condition,
        };
        let moment = Moment { now_ns, long_ns, condition: condition.unwrap_or(Condition::Unknown) };
        profile.time = table.time(moment);
        if condition.is_some() {
            profile.activities = table.activities(moment);
        }
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(rank: u32, size: u32) -> [u8; 64] {
        let mut bytes = [0_u8; 64];
        bytes[..8].copy_from_slice(b"SWHELLO1");
        for (at, word) in [(8, 1), (12, rank), (16, size), (20, 77)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[24..32].copy_from_slice(&4096_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn a_hello_is_read_as_it_is_drawn() {
        let expected = Hello { world_rank: 3, world_size: 8, pid: 77, table_bytes: 4096 };
        assert_eq!(Hello::parse(&hello(3, 8)), Ok(expected));
    }

    #[test]
    fn a_hello_of_another_release_or_of_no_rank_is_refused() {
        let mut other = hello(3, 8);
        other[8] = 2;
        assert!(Hello::parse(&other).unwrap_err().contains("different releases"));
        assert!(Hello::parse(&hello(8, 8)).unwrap_err().contains("rank 8 of 8"));
        assert!(Hello::parse(&[0; 64]).is_err());
    }
}
