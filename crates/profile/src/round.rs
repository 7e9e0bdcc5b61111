//! A round: the profiles of some MPI ranks at one time, as statistics over these ranks.
//!
//! It travels as the values of one packet. E events are F functions and then R regions; the arrays
//! of statistics hold 3 E numbers, for each event its calls, time and bytes:
//!
//! ```text
//!  0  %ud    version of this format, 2
//!  1  %ud    number of MPI ranks of the program
//!  2  %uld   dropped events
//!  3  %uld   unreadable slots
//!  4  %aud   covered ranks: first and last of each range
//!  5  %aud   those that are finalized
//!  6  %aud   those that exited
//!  7  %aud   those that were lost
//!  8  %aud   F keys of functions, id << 8 | size class, increasing
//!  9  %as    R names of regions, increasing
//! 10  %aud   E numbers of ranks that have the event
//! 11  %auld  3 E sums, low halves
//! 12  %auld  their high halves; empty when all are 0
//! 13  %auld  3 E sums of squares, low halves
//! 14  %auld  their high halves; empty when all are 0
//! 15  %auld  3 E smallest values
//! 16  %auld  3 E largest values
//! 17  %aud   3 E lowest ranks that have the smallest value
//! 18  %aud   3 E lowest ranks that have the largest value
//! ```
//!
//! K kinds of activities follow, increasing:
//!
//! ```text
//! 19  %ud    1 if there were too many kinds, so that some are left out
//! 20  %aud   K numbers of functions, 0 outside of MPI
//! 21  %auc   K conditions of the processes, and 128 if it lasts long
//! 22  %as    K communicators
//! 23  %as    K regions
//! 24  %aud   K numbers of ranges of ranks
//! 25  %aud   these: first and last of each
//! 26  %aud   K numbers of ranges of peers
//! 27  %aud   these
//! 28  %auc   K times 1 if a rank takes from any source
//! 29  %auld  K longest times
//! 30  %aud   K lowest ranks with these
//! 31  %auld  K shortest times
//! ```
//!
//! How time was spent follows: wall time, time in MPI, time outside of it, and the share of MPI in
//! parts per million, four numbers in each array, or none as long as no rank has run:
//!
//! ```text
//! 32  %aud   numbers of ranks
//! 33  %auld  sums, low halves
//! 34  %auld  their high halves; empty when all are 0
//! 35  %auld  sums of squares, low halves
//! 36  %auld  their high halves; empty when all are 0
//! 37  %auld  smallest values
//! 38  %auld  largest values
//! 39  %aud   lowest ranks that have the smallest value
//! 40  %aud   lowest ranks that have the largest value
//! ```

use alloc::vec::Vec;
use core::cmp::Ordering;

use sapwood_packet::{Directive, Rank, RankSet, Values, ValuesRef};

use crate::codec::{
    BYTES, LONG, LONGS, NAMES, WORD, WORDS, Wide, check_format, column, push_ranks, push_wide,
    ranks,
};
use crate::{
    Activities, EventKey, EventStatistics, Load, Metric, MetricStatistics, ProfileError,
    RankProfile, RankState,
};
use crate::{activity_codec, load};

/// The most kinds of events that a round holds: those of all ranks together.
pub const EVENTS_MAX: usize = 65_536;

const VERSION: u32 = 2;
/// Where the activities begin.
const ACTIVITIES: usize = 19;
/// Where the division of time begins.
const LOAD: usize = 32;
const LAYOUT: [Directive; 41] = [
    WORD, WORD, LONG, LONG, WORDS, WORDS, WORDS, WORDS, WORDS, NAMES, WORDS, LONGS, LONGS, LONGS,
    LONGS, LONGS, LONGS, WORDS, WORDS, WORD, WORDS, BYTES, NAMES, NAMES, WORDS, WORDS, WORDS,
    WORDS, BYTES, LONGS, WORDS, LONGS, WORDS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, WORDS,
    WORDS,
];

/// Statistics of every event over the covered MPI ranks.
///
/// A rank that never had an event does not count in its statistics: `covered().len()` less
/// [`EventStatistics::ranks`] is how many such ranks there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    world_size: u32,
    covered: RankSet,
    /// Ranks that finalized, exited and were lost; all others run.
    ended: [RankSet; 3],
    dropped: u64,
    unreadable: u64,
    /// Sorted by key.
    events: Vec<(EventKey, EventStatistics)>,
    activities: Activities,
    load: Option<Load>,
}

impl Round {
    /// A round of a program of `world_size` MPI ranks that covers none of them yet; 0 where the
    /// size is not known.
    #[must_use]
    pub fn new(world_size: u32) -> Self {
        Self { world_size, ..Self::default() }
    }

    /// The number of MPI ranks of the program.
    #[must_use]
    pub const fn world_size(&self) -> u32 {
        self.world_size
    }

    /// The MPI ranks whose profiles are in it.
    #[must_use]
    pub const fn covered(&self) -> &RankSet {
        &self.covered
    }

    /// The MPI ranks of the program whose profiles are not in it.
    #[must_use]
    pub fn missing(&self) -> RankSet {
        match self.world_size.checked_sub(1) {
            Some(last) => RankSet::range(0, last).difference(self.covered.as_ref()),
            None => RankSet::new(),
        }
    }

    /// The covered MPI ranks that are in a state.
    #[must_use]
    pub fn ranks_in(&self, state: RankState) -> RankSet {
        match state {
            RankState::Running => self
                .ended
                .iter()
                .fold(self.covered.clone(), |left, ended| left.difference(ended.as_ref())),
            RankState::Finalized => self.ended[0].clone(),
            RankState::Exited => self.ended[1].clone(),
            RankState::Lost => self.ended[2].clone(),
        }
    }

    /// Events that the covered ranks could not count.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Slots of the covered ranks' tables that made no sense.
    #[must_use]
    pub const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// All events with their statistics, sorted by key.
    #[must_use]
    pub fn events(&self) -> &[(EventKey, EventStatistics)] {
        &self.events
    }

    /// How the covered ranks have spent their time; nothing as long as none has run.
    #[must_use]
    pub const fn load(&self) -> Option<&Load> {
        self.load.as_ref()
    }

    /// What the covered ranks do at this moment.
    #[must_use]
    pub const fn activities(&self) -> &Activities {
        &self.activities
    }

    /// The statistics of one event, if a covered rank has it.
    #[must_use]
    pub fn event(&self, key: &EventKey) -> Option<&EventStatistics> {
        let at = self.events.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        Some(&self.events[at].1)
    }

    /// Takes in the profile of one more rank. When that fails the round is as it was.
    ///
    /// # Errors
    /// [`ProfileError::Rank`], [`ProfileError::WorldSize`], [`ProfileError::CountedTwice`] or
    /// [`ProfileError::TooManyEvents`].
    pub fn add(&mut self, profile: &RankProfile) -> Result<(), ProfileError> {
        let (rank, world_size) = (profile.mpi_rank, profile.world_size);
        if rank >= world_size {
            return Err(ProfileError::Rank { rank, world_size });
        }
        let mut one = Self::new(world_size);
        one.covered.insert(rank);
        match profile.state {
            RankState::Running => {}
            RankState::Finalized => one.ended[0].insert(rank),
            RankState::Exited => one.ended[1].insert(rank),
            RankState::Lost => one.ended[2].insert(rank),
        }
        (one.dropped, one.unreadable) = (profile.dropped, profile.unreadable);
        let statistics =
            |(key, &counters): (&EventKey, _)| (key.clone(), EventStatistics::of(counters, rank));
        one.events = profile.events.iter().map(statistics).collect();
        for activity in &profile.activities {
            one.activities.add(rank, activity);
        }
        one.load = Load::of(profile.time, rank);
        self.merge(one)
    }

    /// Takes in a round of other ranks. One of unknown size fits to any. When that fails the round
    /// is as it was.
    ///
    /// # Errors
    /// [`ProfileError::CountedTwice`] when both cover a rank, [`ProfileError::WorldSize`] or
    /// [`ProfileError::TooManyEvents`].
    pub fn merge(&mut self, other: Self) -> Result<(), ProfileError> {
        let (round, other_size) = (self.world_size, other.world_size);
        if round != other_size && round != 0 && other_size != 0 {
            return Err(ProfileError::WorldSize { round, other: other_size });
        }
        if self.covered.as_ref().intersects(other.covered.as_ref()) {
            let mut ranks = self.covered.clone();
            ranks.intersect_with(other.covered.as_ref());
            return Err(ProfileError::CountedTwice { ranks });
        }
        let count = self.events_with(&other);
        if count > EVENTS_MAX {
            return Err(ProfileError::TooManyEvents { count });
        }
        self.world_size = round.max(other_size);
        self.covered.union_with(other.covered.as_ref());
        for (mine, other) in self.ended.iter_mut().zip(&other.ended) {
            mine.union_with(other.as_ref());
        }
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.unreadable = self.unreadable.saturating_add(other.unreadable);
        self.merge_events(other.events, count);
        self.activities.merge(other.activities);
        match (&mut self.load, other.load) {
            (Some(load), Some(other)) => load.merge(&other),
            (load, other) => *load = load.or(other),
        }
        Ok(())
    }

    /// How many kinds of events both rounds have together.
    fn events_with(&self, other: &Self) -> usize {
        let mut mine = self.events.iter().peekable();
        let new = other.events.iter().filter(|(key, _)| {
            while mine.next_if(|(known, _)| known < key).is_some() {}
            mine.peek().is_none_or(|(known, _)| known != key)
        });
        let new = new.count();
        self.events.len() + new
    }

    fn merge_events(&mut self, others: Vec<(EventKey, EventStatistics)>, count: usize) {
        let known = self.events.len();
        self.events.reserve_exact(count - known);
        let mut at = 0;
        for (key, statistics) in others {
            let order = loop {
                match self.events[..known].get(at).map(|(mine, _)| mine.cmp(&key)) {
                    Some(Ordering::Less) => at += 1,
                    order => break order,
                }
            };
            if order == Some(Ordering::Equal) {
                self.events[at].1.merge(&statistics);
            } else {
                self.events.push((key, statistics));
            }
        }
        if self.events.len() > known {
            // Two sorted runs: the stable sort merges them in linear time.
            self.events.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
    }

    /// The round as the values of a packet.
    #[must_use]
    pub fn encode(&self) -> Values {
        let mut words = Vec::with_capacity(self.events.len());
        let mut names = Vec::new();
        for (key, _) in &self.events {
            match key {
                EventKey::Function { id, size_class } => {
                    words.push(EventKey::to_word(*id, *size_class));
                }
                EventKey::Region(name) => names.push(name.as_str()),
            }
        }
        let ranks: Vec<u32> = self.events.iter().map(|(_, event)| event.ranks()).collect();
        let longs = |of: fn(&MetricStatistics) -> u64| self.column(of);
        let places = |of: fn(&MetricStatistics) -> Rank| self.column(of);
        let mut values = Values::new()
            .scalar(VERSION)
            .scalar(self.world_size)
            .scalar(self.dropped)
            .scalar(self.unreadable);
        values = push_ranks(values, &self.covered);
        for ended in &self.ended {
            values = push_ranks(values, ended);
        }
        values = values.array(&words).strings(&names).array(&ranks);
        values = push_wide(values, &self.column(|metric| metric.sum));
        values = push_wide(values, &self.column(|metric| metric.squares));
        values = values
            .array(&longs(|metric| metric.min))
            .array(&longs(|metric| metric.max))
            .array(&places(|metric| metric.min_rank))
            .array(&places(|metric| metric.max_rank));
        load::push(activity_codec::push(values, &self.activities), self.load.as_ref())
    }

    /// One number of all metrics of all events.
    fn column<T>(&self, of: fn(&MetricStatistics) -> T) -> Vec<T> {
        let mut column = Vec::with_capacity(3 * self.events.len());
        for (_, event) in &self.events {
            column.extend(Metric::ALL.map(|metric| of(event.metric(metric))));
        }
        column
    }

    /// Reads the values of a packet.
    ///
    /// # Errors
    /// [`ProfileError::Format`] when they are no round, [`ProfileError::Contradiction`],
    /// [`ProfileError::Values`] or [`ProfileError::TooManyEvents`] when they are a forged one.
    pub fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        check_format(values, &LAYOUT, VERSION, "round of profiles")?;
        let mut round = Self {
            world_size: values.scalar(1)?,
            covered: ranks(values, 4)?,
            ended: [ranks(values, 5)?, ranks(values, 6)?, ranks(values, 7)?],
            dropped: values.scalar(2)?,
            unreadable: values.scalar(3)?,
            events: Vec::new(),
            activities: Activities::default(),
            load: None,
        };
        round.check_ranks()?;
        round.activities = activity_codec::read(values, ACTIVITIES, &round.covered)?;
        round.load = load::read(values, LOAD, &round.covered)?;
        let keys = keys(values)?;
        round.events = Columns::read(values, keys.len())?.events(keys, &round.covered)?;
        Ok(round)
    }

    fn check_ranks(&self) -> Result<(), ProfileError> {
        if let Some(rank) = self.covered.as_ref().last()
            && rank >= self.world_size
        {
            return Err(ProfileError::Rank { rank, world_size: self.world_size });
        }
        let mut left = self.covered.clone();
        for ended in &self.ended {
            let before = left.len();
            left.subtract(ended.as_ref());
            if before - left.len() != ended.len() {
                return Err(ProfileError::Contradiction { what: "states of ranks" });
            }
        }
        Ok(())
    }
}

/// The keys of a packet's events, which must be in order.
fn keys(values: ValuesRef<'_>) -> Result<Vec<EventKey>, ProfileError> {
    let words: &[u32] = values.array(8)?;
    let names = values.strings(9)?;
    let count = words.len().saturating_add(names.len());
    if count > EVENTS_MAX {
        return Err(ProfileError::TooManyEvents { count });
    }
    let functions = words.iter().map(|&word| EventKey::from_word(word));
    let regions = names.map(EventKey::from_name);
    let keys: Option<Vec<_>> = functions.chain(regions).collect();
    let ordered = |keys: &Vec<EventKey>| keys.windows(2).all(|pair| pair[0] < pair[1]);
    let wrong = ProfileError::Contradiction { what: "keys of events" };
    keys.filter(ordered).filter(|keys| keys.len() == count).ok_or(wrong)
}

/// The arrays of statistics where they lie.
struct Columns<'a> {
    ranks: &'a [u32],
    sums: Wide<'a>,
    squares: Wide<'a>,
    mins: &'a [u64],
    maxs: &'a [u64],
    min_ranks: &'a [Rank],
    max_ranks: &'a [Rank],
}

impl<'a> Columns<'a> {
    fn read(values: ValuesRef<'a>, events: usize) -> Result<Self, ProfileError> {
        let count = Metric::ALL.len() * events;
        Ok(Self {
            ranks: column(values, 10, events)?,
            sums: Wide::read(values, 11, count)?,
            squares: Wide::read(values, 13, count)?,
            mins: column(values, 15, count)?,
            maxs: column(values, 16, count)?,
            min_ranks: column(values, 17, count)?,
            max_ranks: column(values, 18, count)?,
        })
    }

    /// The statistics of every key, checked as far as is easily seen.
    fn events(
        &self,
        keys: Vec<EventKey>,
        covered: &RankSet,
    ) -> Result<Vec<(EventKey, EventStatistics)>, ProfileError> {
        let mut events = Vec::with_capacity(keys.len());
        for (event, key) in keys.into_iter().enumerate() {
            let metric = |metric| self.metric(event, metric, covered);
            let statistics =
                EventStatistics { count: metric(0)?, time_ns: metric(1)?, bytes: metric(2)? };
            events.push((key, statistics));
        }
        Ok(events)
    }

    fn metric(
        &self,
        event: usize,
        metric: usize,
        covered: &RankSet,
    ) -> Result<MetricStatistics, ProfileError> {
        let at = Metric::ALL.len() * event + metric;
        let statistics = MetricStatistics {
            ranks: self.ranks[event],
            sum: self.sums.at(at),
            squares: self.squares.at(at),
            min: self.mins[at],
            min_rank: self.min_ranks[at],
            max: self.maxs[at],
            max_rank: self.max_ranks[at],
        };
        let inside = u64::from(statistics.ranks) <= covered.len()
            && covered.contains(statistics.min_rank)
            && covered.contains(statistics.max_rank);
        if inside && statistics.is_plausible() {
            Ok(statistics)
        } else {
            Err(ProfileError::Contradiction { what: "statistics of an event" })
        }
    }
}
