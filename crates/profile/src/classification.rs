//! Rank classes (functional classes of ToM): ranks with the same events, of those that a scheme
//! chooses.
//!
//! As in TAUoverMRNet a class is told by a hash of the chosen names, so that it is the same in
//! every process, round and run. A class holds its ranks and a [`Round`] over them: statistics of
//! all their events, and how their time is divided.
//!
//! At most [`CLASSES_MAX`] classes are kept, those with the smallest numbers: a class that is among
//! them over all ranks is among them in every part of the tree, so that the same classes are kept,
//! each with all of its ranks, whatever the tree's shape. The ranks of the others are named, and
//! their classes are counted up to [`LEFT_OUT_MAX`].
//!
//! ```text
//!  0  %ud    version, 1
//!  1  %aud   covered ranks
//!  2  %uld   bytes of the ranks' profiles, were they sent as rows
//!  3  %auld  C classes, increasing
//!  4  %aud   C numbers of chosen names
//!  5  %as    these, increasing, class after class
//!  6  %as    C rounds, each the bytes of `Round`
//!  7  %aud   ranks of other classes
//!  8  %auld  numbers of other classes, increasing
//! ```

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Directive, IndexedValues, RankSet, Values, ValuesRef};
use sapwood_random::fnv1a;

use crate::codec::{
    LONG, LONGS, NAMES, WORD, WORDS, check_format, column, embedded, push_embedded, push_ranks,
    ranks,
};
use crate::{EventKey, Part, ProfileError, RankProfile, Round};

/// The most classes that are kept.
pub const CLASSES_MAX: usize = 128;
/// The most other classes that are counted.
pub const LEFT_OUT_MAX: usize = 4096;

const VERSION: u32 = 1;
const LAYOUT: [Directive; 9] = [WORD, WORDS, LONG, LONGS, WORDS, NAMES, NAMES, WORDS, LONGS];
const WRONG: ProfileError = ProfileError::Contradiction { what: "classes of ranks" };
/// Bytes of one event of one rank in rows: its key and three counters.
const ROW_BYTES: u64 = 28;

/// The number of a class: 53 bits, so that every reader of JSON keeps it, and never 0.
pub type ClassId = u64;

/// What a scheme makes of an event: the name that counts, or nothing if the event does not.
type Choice = dyn Fn(&EventKey) -> Option<Cow<'_, str>> + Send;

/// Which events decide about the class of a rank.
pub struct Scheme {
    name: String,
    choice: Box<Choice>,
}

impl Scheme {
    /// By all events.
    #[must_use]
    pub fn all() -> Self {
        Self::by("all", |event| Some(event.name()))
    }

    /// By the functions of MPI, without regions.
    #[must_use]
    pub fn mpi() -> Self {
        Self::by("mpi", |event| match event {
            EventKey::Function { .. } => Some(event.name()),
            EventKey::Region(_) => None,
        })
    }

    /// By regions, of whose names the first `depth` levels count; levels are divided by `/`.
    #[must_use]
    pub fn depth(depth: usize) -> Self {
        Self::by(format!("depth:{depth}"), move |event| match event {
            EventKey::Region(name) => {
                let end = name.match_indices('/').nth(depth.max(1) - 1).map(|(end, _)| end);
                Some(Cow::Borrowed(&name[..end.unwrap_or(name.len())]))
            }
            EventKey::Function { .. } => None,
        })
    }

    /// By the names that a function gives. It must give the same in every process.
    #[must_use]
    pub fn by(
        name: impl Into<String>,
        choice: impl Fn(&EventKey) -> Option<Cow<'_, str>> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), choice: Box::new(choice) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The chosen names of a rank's events.
    fn names(&self, profile: &RankProfile) -> Vec<String> {
        let chosen = profile.events.keys().filter_map(|event| (self.choice)(event));
        let names: BTreeSet<Cow<'_, str>> = chosen.collect();
        names.into_iter().map(Cow::into_owned).collect()
    }

    /// The class of a rank.
    #[must_use]
    pub fn class(&self, profile: &RankProfile) -> ClassId {
        class_of(&self.names(profile))
    }
}

impl core::fmt::Debug for Scheme {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Scheme").field("name", &self.name).finish_non_exhaustive()
    }
}

/// FNV-1a of the names, each with a byte that no name has after it; mixed, since the upper bits of
/// FNV depend little on the last bytes.
fn class_of(names: &[String]) -> ClassId {
    let hash = fnv1a(names.iter().flat_map(|name| name.bytes().chain([0xff])));
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((mixed ^ (mixed >> 32)) >> 11).max(1)
}

/// One class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankClass {
    /// The chosen names that its ranks have, in order.
    pub names: Vec<String>,
    /// The statistics over its ranks, which are the covered ones.
    pub round: Round,
}

/// Ranks in classes by one scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classification {
    covered: RankSet,
    profile_bytes: u64,
    classes: BTreeMap<ClassId, RankClass>,
    left_out_ranks: RankSet,
    left_out: BTreeSet<ClassId>,
}

impl Classification {
    /// Of the ranks of one leaf. A rank whose profile is of another program is left out.
    #[must_use]
    pub fn of(profiles: &[RankProfile], scheme: &Scheme) -> Self {
        let mut classification = Self::default();
        for profile in profiles {
            let names = scheme.names(profile);
            let mut round = Round::new(profile.world_size);
            if round.add(profile).is_err() {
                continue;
            }
            let id = class_of(&names);
            let mut one = Self {
                covered: RankSet::range(profile.mpi_rank, profile.mpi_rank),
                profile_bytes: profile_bytes(profile),
                ..Self::default()
            };
            one.classes.insert(id, RankClass { names, round });
            // Only a second table of the same rank fails, and a leaf has one of each.
            let _ = classification.merge(one);
        }
        classification
    }

    /// The classes, by number.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &RankClass)> {
        self.classes.iter().map(|(&id, class)| (id, class))
    }

    /// Bytes of the ranks' profiles, were they sent as rows.
    #[must_use]
    pub const fn profile_bytes(&self) -> u64 {
        self.profile_bytes
    }

    /// Ranks of classes that were not kept.
    #[must_use]
    pub const fn left_out_ranks(&self) -> &RankSet {
        &self.left_out_ranks
    }

    /// How many classes were not kept; [`LEFT_OUT_MAX`] also stands for more.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// Leaves out the classes with the largest numbers.
    fn cut(&mut self) {
        while self.classes.len() > CLASSES_MAX {
            let Some((id, class)) = self.classes.pop_last() else { return };
            self.left_out_ranks.union_with(class.round.covered().as_ref());
            self.left_out.insert(id);
        }
        while self.left_out.len() > LEFT_OUT_MAX {
            self.left_out.pop_last();
        }
    }
}

/// What a rank's events take in rows; names of regions in full, as in the packet of one rank.
fn profile_bytes(profile: &RankProfile) -> u64 {
    let names = profile.events.keys().map(|event| match event {
        EventKey::Region(name) => name.len() as u64,
        EventKey::Function { .. } => 0,
    });
    profile.events.len() as u64 * ROW_BYTES + names.sum::<u64>()
}

impl Part for Classification {
    const FILTER: &'static str = "profile-classes";

    fn covered(&self) -> &RankSet {
        &self.covered
    }

    fn absorb(&mut self, other: Self) -> Result<(), ProfileError> {
        self.covered.union_with(other.covered.as_ref());
        self.profile_bytes = self.profile_bytes.saturating_add(other.profile_bytes);
        self.left_out_ranks.union_with(other.left_out_ranks.as_ref());
        self.left_out.extend(other.left_out);
        for (id, class) in other.classes {
            match self.classes.get_mut(&id) {
                None => {
                    self.classes.insert(id, class);
                }
                // Of two sets of names with the same number the first in order stays whole.
                Some(own) => {
                    if class.names < own.names {
                        own.names = class.names;
                    }
                    own.round.merge(class.round)?;
                }
            }
        }
        self.cut();
        Ok(())
    }

    fn encode(&self) -> Values {
        let classes = || self.classes.values();
        let ids: Vec<ClassId> = self.classes.keys().copied().collect();
        let lengths = classes().map(|class| u32::try_from(class.names.len()).unwrap_or(u32::MAX));
        let names: Vec<&String> = classes().flat_map(|class| &class.names).collect();
        let values = push_ranks(Values::new().scalar(VERSION), &self.covered)
            .scalar(self.profile_bytes)
            .array(&ids)
            .array::<u32>(&lengths.collect::<Vec<_>>())
            .strings(&names);
        let values = push_embedded(values, classes().map(|class| class.round.encode()).collect());
        push_ranks(values, &self.left_out_ranks)
            .array::<u64>(&self.left_out.iter().copied().collect::<Vec<_>>())
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &LAYOUT, VERSION, "classes of ranks")?;
        let ids: &[ClassId] = values.array(3)?;
        let count = ids.len();
        let others: &[ClassId] = values.array(8)?;
        if count > CLASSES_MAX || others.len() > LEFT_OUT_MAX {
            return Err(WRONG);
        }
        let lengths: &[u32] = column(values, 4, count)?;
        let mut names = values.strings(5)?;
        let format = Round::format();
        let rounds = embedded(values, 6, count, format.as_ref(), Round::decode)?;
        let mut classification = Self {
            covered: ranks(values, 1)?,
            profile_bytes: values.scalar(2)?,
            classes: BTreeMap::new(),
            left_out_ranks: ranks(values, 7)?,
            left_out: others.iter().copied().collect(),
        };
        // Every covered rank is in one class, or left out.
        let mut left = classification.covered.clone();
        for ((&id, &length), round) in ids.iter().zip(lengths).zip(rounds) {
            let own = names.by_ref().take(length as usize);
            let own: Option<Vec<String>> =
                own.map(|name| core::str::from_utf8(name).ok().map(str::to_owned)).collect();
            let own = own.filter(|own| own.len() == length as usize).ok_or(WRONG)?;
            let before = left.len();
            left.subtract(round.covered().as_ref());
            if before - left.len() != round.covered().len() {
                return Err(WRONG);
            }
            classification.classes.insert(id, RankClass { names: own, round });
        }
        let is_whole = left == classification.left_out_ranks
            && classification.classes.len() == count
            && names.next().is_none();
        if is_whole { Ok(classification) } else { Err(WRONG) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counters, Function, SizeClass};

    fn profile(rank: u32, regions: &[&str], functions: &[&str]) -> RankProfile {
        let mut profile = RankProfile::new(rank, 8);
        for region in regions {
            profile.events.insert(EventKey::Region((*region).to_owned()), Counters::default());
        }
        for function in functions {
            let id = Function::named(function).expect("a function of MPI").id;
            let size_class = SizeClass::NONE;
            profile.events.insert(EventKey::Function { id, size_class }, Counters::default());
        }
        profile
    }

    #[test]
    fn a_scheme_says_which_events_count() {
        let one = profile(0, &["solve/halo", "io"], &["MPI_Send"]);
        let other = profile(1, &["solve/norm", "io"], &["MPI_Recv"]);
        assert_ne!(Scheme::all().class(&one), Scheme::all().class(&other));
        assert_ne!(Scheme::mpi().class(&one), Scheme::mpi().class(&other));
        assert_eq!(Scheme::depth(1).class(&one), Scheme::depth(1).class(&other));
        assert_ne!(Scheme::depth(2).class(&one), Scheme::depth(2).class(&other));
        let has_io = Scheme::by("io", |event| (event.name() == "io").then(|| event.name()));
        assert_eq!(has_io.class(&one), has_io.class(&other));
        assert_ne!(has_io.class(&one), has_io.class(&profile(2, &["solve"], &[])));
    }

    #[test]
    fn the_number_of_a_class_is_the_same_in_every_release() {
        assert_eq!(class_of(&[]), class_of(&[]));
        assert_eq!(class_of(&["MPI_Send".to_owned()]), 1_619_769_996_659_505);
        assert_ne!(class_of(&["ab".to_owned()]), class_of(&["a".to_owned(), "b".to_owned()]));
        assert!(class_of(&["x".to_owned()]) < 1 << 53, "JSON keeps it");
    }

    #[test]
    fn of_too_many_classes_the_same_are_kept_in_every_order_and_the_others_are_named() {
        let ranks = 3 * CLASSES_MAX as u32;
        let each: Vec<Classification> = (0..ranks)
            .map(|rank| {
                let region = format!("only {rank}");
                let mut profile = profile(rank, &[&region], &[]);
                profile.world_size = ranks;
                Classification::of(&[profile], &Scheme::all())
            })
            .collect();
        let merge = |all: Vec<Classification>| {
            let mut all = all.into_iter();
            let mut first = all.next().expect("some ranks");
            all.for_each(|other| first.merge(other).expect("other ranks"));
            first
        };
        let forward = merge(each.clone());
        let halves = each.chunks(100).map(|chunk| merge(chunk.to_vec())).rev().collect();
        assert_eq!(merge(halves), forward);
        assert_eq!((forward.classes().count(), forward.left_out()), (CLASSES_MAX, 2 * CLASSES_MAX));
        assert_eq!(forward.left_out_ranks().len(), 2 * CLASSES_MAX as u64);
        assert_eq!(Classification::decode(forward.encode().as_ref()), Ok(forward));
    }

    #[test]
    fn a_profile_is_not_said_to_be_larger_than_it_is() {
        let one = profile(0, &["solve/halo", "io"], &["MPI_Send"]);
        let sent = crate::RankRows::new(alloc::vec![one.clone()]).expect("one rank").encode();
        assert!(profile_bytes(&one) < sent.as_ref().body().len() as u64);
    }
}
