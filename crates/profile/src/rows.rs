//! Rows: the complete profiles of MPI ranks, unreduced, as they are gathered once at the end.
//!
//! A leaf sends one packet for all its ranks; N ranks have K rows together, those of the first rank
//! first:
//!
//! ```text
//!  0  %ud    version of this format, 2
//!  1  %ud    number of MPI ranks of the program
//!  2  %aud   N MPI ranks, increasing
//!  3  %aud   N process numbers
//!  4  %auc   N states
//!  5  %auld  N times of the first count, in nanoseconds
//!  6  %auld  N numbers of dropped events
//!  7  %auld  N numbers of unreadable slots
//!  8  %as    N hosts
//!  9  %as    N programs
//! 10  %aud   N numbers of rows
//! 11  %as    names of regions, increasing
//! 12  %aud   K keys: id << 8 | size class, or 1 << 31 | place of the region's name
//! 13  %auld  K calls
//! 14  %auld  K times, in nanoseconds
//! 15  %auld  K bytes
//! 16  %auld  K bytes of these that came in point-to-point messages
//! ```

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Directive, IndexedValues, Rank, RankSet, Values, ValuesRef};

use crate::codec::{BYTES, LONGS, NAMES, WORD, WORDS, check_format, column};
use crate::{
    Class, Counters, EVENTS_MAX, EventKey, ProfileError, RankProfile, RankState, Round, SizeClass,
};

const VERSION: u32 = 2;
const LAYOUT: [Directive; 17] = [
    WORD, WORD, WORDS, WORDS, BYTES, LONGS, LONGS, LONGS, NAMES, NAMES, WORDS, NAMES, WORDS, LONGS,
    LONGS, LONGS, LONGS,
];
const REGION: u32 = 1 << 31;
/// The longest name of a host or program, in bytes; a table holds less.
const LABEL_BYTES_MAX: usize = 255;

/// The profiles of some MPI ranks of one program, sorted by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRows {
    profiles: Vec<RankProfile>,
}

/// One event of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankRow<'a> {
    /// The rank in `MPI_COMM_WORLD`.
    pub mpi_rank: Rank,
    /// The host that the rank runs on.
    pub host: &'a str,
    /// The rank's process.
    pub pid: u32,
    /// How far the rank is.
    pub state: RankState,
    /// The name of the function or region.
    pub event: Cow<'a, str>,
    /// Its function class.
    pub class: Class,
    /// The size class of the communicator.
    pub size_class: SizeClass,
    /// The counts.
    pub counters: Counters,
    /// Of their bytes, those that came in point-to-point messages.
    pub received_bytes: u64,
}

impl RankRow<'_> {
    /// Of its bytes, those that were sent in point-to-point messages.
    #[must_use]
    pub const fn sent_bytes(&self) -> u64 {
        match self.class {
            Class::PointToPoint => self.counters.bytes.saturating_sub(self.received_bytes),
            _ => 0,
        }
    }
}

impl RankRows {
    /// The rows of some profiles.
    ///
    /// # Errors
    /// [`ProfileError::CountedTwice`], [`ProfileError::WorldSize`] or [`ProfileError::Rank`] when
    /// these are not profiles of different ranks of one program.
    pub fn new(profiles: Vec<RankProfile>) -> Result<Self, ProfileError> {
        let mut rows = Self { profiles };
        rows.profiles.sort_by_key(|profile| profile.mpi_rank);
        rows.check()?;
        Ok(rows)
    }

    fn check(&self) -> Result<(), ProfileError> {
        let Some(first) = self.profiles.first() else { return Ok(()) };
        let mut ranks = RankSet::new();
        for profile in &self.profiles {
            let (rank, world_size) = (profile.mpi_rank, profile.world_size);
            if world_size != first.world_size {
                let (round, other) = (first.world_size, world_size);
                return Err(ProfileError::WorldSize { round, other });
            }
            if rank >= world_size {
                return Err(ProfileError::Rank { rank, world_size });
            }
            if ranks.contains(rank) {
                return Err(ProfileError::CountedTwice { ranks: RankSet::range(rank, rank) });
            }
            ranks.insert(rank);
        }
        Ok(())
    }

    /// The profiles, sorted by rank.
    #[must_use]
    pub fn profiles(&self) -> &[RankProfile] {
        &self.profiles
    }

    /// Takes in the rows of other ranks. When that fails the rows are as they were.
    ///
    /// # Errors
    /// As [`RankRows::new`].
    pub fn extend(&mut self, other: Self) -> Result<(), ProfileError> {
        let profiles = self.profiles.iter().cloned().chain(other.profiles).collect();
        *self = Self::new(profiles)?;
        Ok(())
    }

    /// The round that these rows amount to, computed without a tree.
    ///
    /// # Errors
    /// [`ProfileError::TooManyEvents`].
    pub fn round(&self) -> Result<Round, ProfileError> {
        let mut round = Round::new(self.profiles.first().map_or(0, |first| first.world_size));
        self.profiles.iter().try_for_each(|profile| round.add(profile))?;
        Ok(round)
    }

    /// All rows, sorted by rank and event.
    pub fn rows(&self) -> impl Iterator<Item = RankRow<'_>> {
        self.profiles.iter().flat_map(|profile| {
            profile.events.iter().map(|(key, &counters)| RankRow {
                mpi_rank: profile.mpi_rank,
                host: &profile.host,
                pid: profile.pid,
                state: profile.state,
                event: key.name(),
                class: key.class(),
                size_class: key.size_class(),
                counters,
                received_bytes: profile.received.get(key).copied().unwrap_or(0),
            })
        })
    }

    /// The rows as the values of a packet.
    #[must_use]
    pub fn encode(&self) -> Values {
        let profiles = &self.profiles;
        let names = self.region_names();
        let counters = || profiles.iter().flat_map(|profile| profile.events.values());
        Values::new()
            .scalar(VERSION)
            .scalar(profiles.first().map_or(0, |first| first.world_size))
            .array::<u32>(&each(profiles, |profile| profile.mpi_rank))
            .array::<u32>(&each(profiles, |profile| profile.pid))
            .array::<u8>(&each(profiles, |profile| profile.state.code()))
            .array::<u64>(&each(profiles, |profile| profile.started_ns))
            .array::<u64>(&each(profiles, |profile| profile.dropped))
            .array::<u64>(&each(profiles, |profile| profile.unreadable))
            .strings::<&str>(&each(profiles, |profile| label(&profile.host)))
            .strings::<&str>(&each(profiles, |profile| label(&profile.program)))
            .array::<u32>(&each(profiles, |profile| length(profile.events.len())))
            .strings(&names)
            .array(&self.keys(&names))
            .array::<u64>(&counters().map(|counters| counters.count).collect::<Vec<_>>())
            .array::<u64>(&counters().map(|counters| counters.time_ns).collect::<Vec<_>>())
            .array::<u64>(&counters().map(|counters| counters.bytes).collect::<Vec<_>>())
            .array(&self.received())
    }

    /// The names of all regions, sorted.
    fn region_names(&self) -> Vec<&str> {
        let keys = self.profiles.iter().flat_map(|profile| profile.events.keys());
        let names: BTreeSet<&str> = keys
            .filter_map(|key| match key {
                EventKey::Region(name) => Some(name.as_str()),
                EventKey::Function { .. } => None,
            })
            .collect();
        names.into_iter().collect()
    }

    fn received(&self) -> Vec<u64> {
        let each = self.profiles.iter().flat_map(|profile| {
            let of = |key| profile.received.get(key).copied().unwrap_or(0);
            profile.events.keys().map(of)
        });
        each.collect()
    }

    fn keys(&self, names: &[&str]) -> Vec<u32> {
        let keys = self.profiles.iter().flat_map(|profile| profile.events.keys());
        let word = |key: &EventKey| match key {
            EventKey::Function { id, size_class } => EventKey::to_word(*id, *size_class),
            EventKey::Region(name) => {
                let place = names.binary_search(&name.as_str());
                REGION | length(place.expect("all regions' names were collected"))
            }
        };
        keys.map(word).collect()
    }

    /// Reads the values of a packet.
    ///
    /// # Errors
    /// [`ProfileError::Format`] when they are no rows, else what is wrong with them.
    pub fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &LAYOUT, VERSION, "rows of profiles")?;
        let world_size = values.scalar(1)?;
        let ranks: &[Rank] = values.array(2)?;
        let count = ranks.len();
        let mut events = Events::read(values)?;
        let states: &[u8] = column(values, 4, count)?;
        let (pids, started): (&[u32], &[u64]) =
            (column(values, 3, count)?, column(values, 5, count)?);
        let (dropped, unreadable): (&[u64], &[u64]) =
            (column(values, 6, count)?, column(values, 7, count)?);
        let (hosts, programs) = (labels(values, 8, count)?, labels(values, 9, count)?);
        let lengths: &[u32] = column(values, 10, count)?;
        let mut profiles = Vec::with_capacity(count);
        for (at, (host, program)) in hosts.into_iter().zip(programs).enumerate() {
            let state = RankState::from_code(states[at])
                .ok_or(ProfileError::Contradiction { what: "states of ranks" })?;
            profiles.push(RankProfile {
                pid: pids[at],
                state,
                started_ns: started[at],
                host,
                program,
                dropped: dropped[at],
                unreadable: unreadable[at],
                received: events.received(lengths[at])?,
                events: events.next(lengths[at])?,
                ..RankProfile::new(ranks[at], world_size)
            });
        }
        if ranks.windows(2).any(|pair| pair[0] >= pair[1]) || !events.keys.is_empty() {
            return Err(ProfileError::Contradiction { what: "rows" });
        }
        Self::new(profiles)
    }
}

fn each<'a, T>(profiles: &'a [RankProfile], of: impl Fn(&'a RankProfile) -> T) -> Vec<T> {
    profiles.iter().map(of).collect()
}

/// A host's or program's name, cut to what a reader accepts.
fn label(text: &str) -> &str {
    &text[..text.floor_char_boundary(LABEL_BYTES_MAX)]
}

/// A length or place as it is sent; a rank's events are bounded by [`EVENTS_MAX`].
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn labels(
    values: &IndexedValues<'_>,
    index: usize,
    count: usize,
) -> Result<Vec<String>, ProfileError> {
    let strings = values.strings(index)?;
    let labels: Vec<String> = strings
        .filter_map(|bytes| core::str::from_utf8(bytes).ok())
        .filter(|text| text.len() <= LABEL_BYTES_MAX)
        .map(ToOwned::to_owned)
        .collect();
    if labels.len() == count {
        Ok(labels)
    } else {
        Err(ProfileError::Contradiction { what: "names of hosts and programs" })
    }
}

/// The rows of all ranks that were not taken yet, where they lie.
struct Events<'a> {
    names: Vec<EventKey>,
    keys: &'a [u32],
    counts: &'a [u64],
    times_ns: &'a [u64],
    bytes: &'a [u64],
    received: &'a [u64],
}

impl<'a> Events<'a> {
    fn read(values: &IndexedValues<'a>) -> Result<Self, ProfileError> {
        let strings = values.strings(11)?;
        let count = strings.len();
        if count > EVENTS_MAX {
            return Err(ProfileError::TooManyEvents { count });
        }
        let names: Vec<EventKey> = strings.filter_map(EventKey::from_name).collect();
        if names.len() != count {
            return Err(ProfileError::Contradiction { what: "names of regions" });
        }
        let keys: &[u32] = values.array(12)?;
        let rows = keys.len();
        let counts = column(values, 13, rows)?;
        let times_ns = column(values, 14, rows)?;
        let (bytes, received) = (column(values, 15, rows)?, column(values, 16, rows)?);
        Ok(Self { names, keys, counts, times_ns, bytes, received })
    }

    /// Takes the rows of the next rank.
    fn next(&mut self, rows: u32) -> Result<BTreeMap<EventKey, Counters>, ProfileError> {
        let wrong = || ProfileError::Contradiction { what: "keys of events" };
        let rows = usize::try_from(rows).map_err(|_| wrong())?;
        if rows > self.keys.len() || rows > EVENTS_MAX {
            return Err(wrong());
        }
        let mut events = BTreeMap::new();
        for at in 0..rows {
            let key = self.key(self.keys[at]).ok_or_else(wrong)?;
            let (count, time_ns, bytes) = (self.counts[at], self.times_ns[at], self.bytes[at]);
            if events.insert(key, Counters { count, time_ns, bytes }).is_some() {
                return Err(wrong());
            }
        }
        self.keys = &self.keys[rows..];
        self.counts = &self.counts[rows..];
        self.times_ns = &self.times_ns[rows..];
        self.bytes = &self.bytes[rows..];
        self.received = &self.received[rows..];
        Ok(events)
    }

    /// Of the rows of the next rank, the bytes that came in messages.
    fn received(&self, rows: u32) -> Result<BTreeMap<EventKey, u64>, ProfileError> {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX).min(self.keys.len());
        let rows = self.keys[..rows].iter().zip(self.received).filter(|&(_, &bytes)| bytes > 0);
        let keyed = rows.map(|(&word, &bytes)| Some((self.key(word)?, bytes)));
        keyed.collect::<Option<_>>().ok_or(ProfileError::Contradiction { what: "keys of events" })
    }

    fn key(&self, word: u32) -> Option<EventKey> {
        match word & REGION {
            0 => EventKey::from_word(word),
            _ => self.names.get(usize::try_from(word & !REGION).ok()?).cloned(),
        }
    }
}
