//! A round: the profiles of some MPI ranks at one time, as statistics over these ranks.
//!
//! It travels as the values of one packet. E events are F functions and then R regions; the arrays
//! of statistics hold 3 E numbers, for each event its calls, time and bytes:
//!
//! ```text
//!  0  %ud    version of this format, 4
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
//! Of a round of one rank, which most are that come from a process with one, all but the low halves
//! of the sums follow from these: 10 and 12 to 18 are empty.
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
//! How time was spent follows, as the nine columns that `columns.rs` draws: wall time, time in MPI,
//! time outside of it, and the share of MPI in parts per million, four numbers in each column, or
//! none as long as no rank has run, and behind them the same of the interval since the round
//! before. Then sizes of messages, and what is known of the processes:
//!
//! ```text
//! 32  9 columns  how time was spent
//! 41  %aud   F sets of size classes that have calls, bit i for class i
//! 42  %auld  calls of each class in these sets
//! 43  %auc   codes of figures, increasing
//! 44  9 columns  the figures
//! 53  %aud   processes that are not watched; 1 if there were too many events, so that the last
//!            ones are left out; ranges of ranks of which a tool in front of the shim takes calls
//! ```

use alloc::vec::Vec;
use core::cmp::Ordering;

use sapwood_packet::{
    DIRECTIVES_MAX, Directive, Format, IndexedValues, Rank, RankRange, RankSet, Values, ValuesRef,
};

use crate::codec::{
    BYTES, LONG, LONGS, NAMES, WORD, WORDS, Wide, check_format, column, push_ranks, push_wide,
    ranks, ranks_of,
};
use crate::sizes::Sizes;
use crate::{
    Activities, ActivityKind, Condition, EventKey, EventStatistics, Figures, Function, Load,
    Metric, MetricStatistics, ProfileError, RankProfile, RankState, SizeHistogram,
};
use crate::{activity_codec, figures, load, sizes};

/// The most kinds of events that a round holds: those of all ranks together.
pub const EVENTS_MAX: usize = 65_536;

/// An event with its statistics.
pub(crate) type Keyed = (EventKey, EventStatistics);

pub(crate) const VERSION: u32 = 4;
/// The columns of statistics that a round of one rank does without.
const OF_SEVERAL: [usize; 8] = [10, 12, 13, 14, 15, 16, 17, 18];
/// The low halves of the sums.
const SUMS: usize = 11;
/// Where the activities begin.
const ACTIVITIES: usize = 19;
/// Where the division of time begins.
const LOAD: usize = 32;
const SIZES: usize = 41;
const FIGURES: usize = 43;
const PROCESSES: usize = 53;
pub(crate) const LAYOUT: [Directive; 54] = [
    WORD, WORD, LONG, LONG, WORDS, WORDS, WORDS, WORDS, WORDS, NAMES, WORDS, LONGS, LONGS, LONGS,
    LONGS, LONGS, LONGS, WORDS, WORDS, WORD, WORDS, BYTES, NAMES, NAMES, WORDS, WORDS, WORDS,
    WORDS, BYTES, LONGS, WORDS, LONGS, WORDS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, WORDS,
    WORDS, WORDS, LONGS, BYTES, WORDS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, WORDS, WORDS,
    WORDS,
];
const _: () = assert!(LAYOUT.len() <= DIRECTIVES_MAX, "a packet holds them");

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
    interval: Option<Load>,
    sizes: Sizes,
    figures: Figures,
    unwatched: u32,
    /// Ranks of which a tool in front of the shim takes calls.
    taken: RankSet,
    has_left_out: bool,
}

impl Round {
    /// A round of a program of `world_size` MPI ranks that covers none of them yet; 0 where the
    /// size is not known.
    #[must_use]
    pub fn new(world_size: u32) -> Self {
        Self { world_size, ..Self::default() }
    }

    pub(crate) const fn sizes_of_events(&self) -> &Sizes {
        &self.sizes
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

    /// Whether no covered rank runs any more. A process that was killed inside `MPI_Finalize` may
    /// still be on its way out, and is not at rest: later it is one that was lost.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let finalize = Function::named("MPI_Finalize").map(|function| function.id);
        let is_inside =
            |kind: &ActivityKind| kind.function == finalize && kind.condition != Condition::Lost;
        self.ranks_in(RankState::Running).is_empty()
            && self.activities().ranks(is_inside).is_empty()
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

    /// The same since the round before, of the ranks that were covered then too.
    #[must_use]
    pub const fn interval(&self) -> Option<&Load> {
        self.interval.as_ref()
    }

    /// How many calls of an event moved how many bytes; nothing for one that moves none.
    #[must_use]
    pub fn sizes(&self, key: &EventKey) -> Option<&SizeHistogram> {
        self.sizes.get(key)
    }

    /// Figures of the covered ranks' processes.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Processes that announced themselves and are not watched: of `MPI_Comm_spawn`, or of a second
    /// program.
    #[must_use]
    pub const fn unwatched(&self) -> u32 {
        self.unwatched
    }

    /// Adds processes that are not watched.
    pub const fn add_unwatched(&mut self, processes: u32) {
        self.unwatched = self.unwatched.saturating_add(processes);
    }

    /// Ranks of which a tool in front of the shim takes calls, so that these are not counted.
    #[must_use]
    pub const fn taken(&self) -> &RankSet {
        &self.taken
    }

    /// Whether there were more than [`EVENTS_MAX`] kinds of events, of which the last ones in their
    /// order are left out.
    #[must_use]
    pub const fn has_left_out(&self) -> bool {
        self.has_left_out
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
    /// [`ProfileError::Rank`], [`ProfileError::WorldSize`], or [`ProfileError::CountedTwice`].
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
        one.interval = Load::of(profile.interval, rank);
        one.sizes = profile.sizes.clone();
        // One without calls is not sent.
        one.sizes.retain(|key, sizes| profile.events.contains_key(key) && sizes.mask() != 0);
        one.figures = figures::of(&profile.figures, rank);
        if profile.taken_functions > 0 {
            one.taken.insert(rank);
        }
        self.merge(one)
    }

    /// Takes in a round of other ranks. One of unknown size fits to any. When that fails the round
    /// is as it was.
    ///
    /// # Errors
    /// [`ProfileError::CountedTwice`] when both cover a rank, or [`ProfileError::WorldSize`].
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
        self.world_size = round.max(other_size);
        self.covered.union_with(other.covered.as_ref());
        for (mine, other) in self.ended.iter_mut().zip(&other.ended) {
            mine.union_with(other.as_ref());
        }
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.unreadable = self.unreadable.saturating_add(other.unreadable);
        self.merge_events(other.events);
        self.activities.merge(other.activities);
        for (load, other) in [(&mut self.load, other.load), (&mut self.interval, other.interval)] {
            match (load.as_mut(), other) {
                (Some(load), Some(other)) => load.merge(&other),
                (_, other) => *load = load.or(other),
            }
        }
        sizes::merge(&mut self.sizes, other.sizes);
        figures::merge(&mut self.figures, other.figures);
        self.add_unwatched(other.unwatched);
        self.taken.union_with(other.taken.as_ref());
        self.has_left_out |= other.has_left_out;
        self.leave_out();
        Ok(())
    }

    /// Keeps the first events in their order: those that a part of the ranks has left out are left
    /// out of the whole too, so that the numbers of the others stay right.
    fn leave_out(&mut self) {
        if self.events.len() > EVENTS_MAX {
            self.has_left_out = true;
            let (last, _) = &self.events[EVENTS_MAX - 1];
            self.sizes.retain(|key, _| key <= last);
            self.events.truncate(EVENTS_MAX);
        }
    }

    /// How many kinds of events there are in both together.
    fn events_with(&self, others: &[Keyed]) -> usize {
        let mut mine = self.events.iter().peekable();
        let new = others.iter().filter(|(key, _)| {
            while mine.next_if(|(known, _)| known < key).is_some() {}
            mine.peek().is_none_or(|(known, _)| known != key)
        });
        let new = new.count();
        self.events.len() + new
    }

    fn merge_events(&mut self, others: Vec<Keyed>) {
        if self.events.is_empty() {
            self.events = others;
            return;
        }
        // Ranks of most programs have the same events: to compare for equality is cheaper than to
        // compare for order, and nothing is moved.
        let pairs = || self.events.iter().zip(&others);
        if self.events.len() == others.len() && pairs().all(|((mine, _), (key, _))| mine == key) {
            for ((_, mine), (_, statistics)) in self.events.iter_mut().zip(others) {
                mine.merge(&statistics);
            }
            return;
        }
        let count = self.events_with(&others);
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
        self.encode_events(&self.events, &self.events)
    }

    /// The same with these events in the place of its own, of which the keys of some are sent.
    pub(crate) fn encode_events(&self, events: &[Keyed], announced: &[Keyed]) -> Values {
        let mut words = Vec::with_capacity(announced.len());
        let mut names = Vec::new();
        for (key, _) in announced {
            match key {
                EventKey::Function { id, size_class } => {
                    words.push(EventKey::to_word(*id, *size_class));
                }
                EventKey::Region(name) => names.push(name.as_str()),
            }
        }
        let mut values = Values::new()
            .scalar(VERSION)
            .scalar(self.world_size)
            .scalar(self.dropped)
            .scalar(self.unreadable);
        values = push_ranks(values, &self.covered);
        for ended in &self.ended {
            values = push_ranks(values, ended);
        }
        values = push_statistics(values.array(&words).strings(&names), events, &self.covered);
        values = activity_codec::push(values, &self.activities);
        values = load::push(values, self.load.as_ref(), self.interval.as_ref());
        values = sizes::push(values, &self.sizes, functions(events));
        let mut processes = alloc::vec![self.unwatched, u32::from(self.has_left_out)];
        processes.extend(bytemuck::cast_slice::<RankRange, u32>(self.taken.as_ref().ranges()));
        figures::push(values, &self.figures).array(&processes)
    }

    /// The format of its packets.
    pub(crate) fn format() -> Format {
        LAYOUT.into_iter().collect()
    }

    /// Reads the values of a packet.
    ///
    /// # Errors
    /// [`ProfileError::Format`] when they are no round, [`ProfileError::Contradiction`],
    /// [`ProfileError::Values`] or [`ProfileError::TooManyEvents`] when they are a forged one.
    pub fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &LAYOUT, VERSION, "round of profiles")?;
        let mut round = Self::decode_head(values)?;
        let keys = keys(values)?;
        round.events = statistics(values, keys, &round.covered)?;
        round.sizes = sizes_of(values, &round.events)?;
        Ok(round)
    }

    /// All of it but the events.
    pub(crate) fn decode_head(values: &IndexedValues<'_>) -> Result<Self, ProfileError> {
        let [unwatched, has_left_out, taken @ ..] = values.array::<u32>(PROCESSES)? else {
            return Err(ProfileError::Contradiction { what: "lengths" });
        };
        let (unwatched, has_left_out) = (*unwatched, *has_left_out);
        let mut round = Self {
            world_size: values.scalar(1)?,
            covered: ranks(values, 4)?,
            ended: [ranks(values, 5)?, ranks(values, 6)?, ranks(values, 7)?],
            dropped: values.scalar(2)?,
            unreadable: values.scalar(3)?,
            unwatched,
            taken: ranks_of(taken)?,
            has_left_out: has_left_out != 0,
            ..Self::default()
        };
        round.check_ranks()?;
        round.activities = activity_codec::read(values, ACTIVITIES, &round.covered)?;
        (round.load, round.interval) = load::read(values, LOAD, &round.covered)?;
        round.figures = figures::read(values, FIGURES, &round.covered)?;
        Ok(round)
    }

    /// All of another one but the events and their sizes.
    pub(crate) fn with_events(self, events: Vec<Keyed>, sizes: Sizes) -> Self {
        Self { events, sizes, ..self }
    }

    fn check_ranks(&self) -> Result<(), ProfileError> {
        if let Some(rank) = self.covered.as_ref().last()
            && rank >= self.world_size
        {
            return Err(ProfileError::Rank { rank, world_size: self.world_size });
        }
        if !self.taken.difference(self.covered.as_ref()).is_empty() {
            return Err(ProfileError::Contradiction { what: "ranks of which calls are taken" });
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

/// The columns of the statistics of events.
fn push_statistics(values: Values, events: &[Keyed], covered: &RankSet) -> Values {
    let longs = |of: fn(&MetricStatistics) -> u64| column_of(events, of);
    let places = |of: fn(&MetricStatistics) -> Rank| column_of(events, of);
    if covered.len() == 1 {
        let values = values.array::<u32>(&[]).array(&longs(|metric| metric.min));
        let values = values.array::<u64>(&[]).array::<u64>(&[]).array::<u64>(&[]);
        let values = values.array::<u64>(&[]).array::<u64>(&[]);
        return values.array::<Rank>(&[]).array::<Rank>(&[]);
    }
    let ranks: Vec<u32> = events.iter().map(|(_, event)| event.ranks()).collect();
    let values = push_wide(values.array(&ranks), &column_of(events, |metric| metric.sum));
    push_wide(values, &column_of(events, |metric| metric.squares))
        .array(&longs(|metric| metric.min))
        .array(&longs(|metric| metric.max))
        .array(&places(|metric| metric.min_rank))
        .array(&places(|metric| metric.max_rank))
}

/// One number of all metrics of all events.
fn column_of<T>(events: &[Keyed], of: fn(&MetricStatistics) -> T) -> Vec<T> {
    let mut column = Vec::with_capacity(Metric::ALL.len() * events.len());
    for (_, event) in events {
        column.extend(Metric::ALL.map(|metric| of(event.metric(metric))));
    }
    column
}

/// The statistics of a packet for these keys.
pub(crate) fn statistics(
    values: &IndexedValues<'_>,
    keys: Vec<EventKey>,
    covered: &RankSet,
) -> Result<Vec<Keyed>, ProfileError> {
    match covered.as_ref().first() {
        Some(rank) if covered.len() == 1 => statistics_of_one(values, keys, rank),
        _ => Columns::read(values, keys.len())?.events(keys, covered),
    }
}

/// The same of a packet of one rank, where each statistic is that of one value.
fn statistics_of_one(
    values: &IndexedValues<'_>,
    keys: Vec<EventKey>,
    rank: Rank,
) -> Result<Vec<Keyed>, ProfileError> {
    let sums: &[u64] = column(values, SUMS, Metric::ALL.len() * keys.len())?;
    for index in OF_SEVERAL {
        let is_empty = if LAYOUT[index] == LONGS {
            values.array::<u64>(index)?.is_empty()
        } else {
            values.array::<u32>(index)?.is_empty()
        };
        if !is_empty {
            return Err(ProfileError::Contradiction { what: "statistics of one rank" });
        }
    }
    let events = keys.into_iter().zip(sums.as_chunks().0);
    let events = events.map(|(key, &[count, time_ns, bytes])| {
        let of = |value| MetricStatistics::of(value, rank);
        (key, EventStatistics { count: of(count), time_ns: of(time_ns), bytes: of(bytes) })
    });
    Ok(events.collect())
}

/// The sizes of messages of a packet for these events.
pub(crate) fn sizes_of(
    values: &IndexedValues<'_>,
    events: &[Keyed],
) -> Result<Sizes, ProfileError> {
    sizes::read(values, SIZES, functions(events))
}

/// The keys of those events that are functions.
fn functions(events: &[Keyed]) -> impl Iterator<Item = &EventKey> {
    events.iter().map(|(key, _)| key).filter(|key| matches!(key, EventKey::Function { .. }))
}

/// The keys of a packet's events, which must be in order.
pub(crate) fn keys(values: &IndexedValues<'_>) -> Result<Vec<EventKey>, ProfileError> {
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
    fn read(values: &IndexedValues<'a>, events: usize) -> Result<Self, ProfileError> {
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
