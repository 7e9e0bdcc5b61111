//! Sets of host names in the language that administrators have in their fingers:
//! `node[001-128]`, `rack[1-4]n[01-32]`, `@compute!node7`.
//!
//! Owns [`NodeSet`], the reading of the language (ClusterShell's, in which what Slurm and Flux
//! print is read, too), the algebra, and folding. Names are kept by pattern, as numbers, so that a
//! set of regular names takes eight bytes a name. Groups are [`Groups`]', which the caller has.

mod fold;
mod gathering;
mod groups;
mod index;
mod parse;
mod ranges;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

pub use self::fold::Folding;
use self::gathering::{Gathering, Kept, dimensions, merge, take_apart};
pub use self::groups::{Groups, NoGroups};
use self::index::Index;
use self::parse::Reader;
use crate::error::{Error, excerpt};

/// Most names in one nodeset. A text that has more is refused before memory is taken for them.
pub const NODESET_NAMES_MAX: usize = 1 << 22;

/// Longest name, in bytes.
pub const NODESET_NAME_BYTES_MAX: usize = 255;

/// Where a number stands in a pattern. No name has this character.
const PLACE: char = '\0';

/// A set of names.
///
/// ```
/// use sapwood_topology::NodeSet;
///
/// let set: NodeSet = "node[01-04],login!node03".parse()?;
/// assert_eq!(set.len(), 4);
/// assert_eq!(set.to_string(), "login,node[01-02,04]");
/// assert_eq!(set.iter().nth(3).as_deref(), Some("node04"));
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    /// Sorted tuples of numbers by pattern, in which a zero byte stands for each number.
    patterns: BTreeMap<String, Vec<Index>>,
}

impl NodeSet {
    /// Reads a nodeset whose groups are these.
    ///
    /// # Errors
    /// [`Error::NodeSet`] with the place, [`Error::Group`].
    pub fn parse(text: &str, groups: &dyn Groups) -> Result<Self, Error> {
        Reader::new(groups).read(text)
    }

    /// A set of names as they are: nothing in them is an operator, a range or a group.
    ///
    /// # Errors
    /// [`Error::NodeSet`] for a name that cannot be one, and for too many.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let fault =
            |name: &str, problem| Err(Error::NodeSet { text: excerpt(name), column: 1, problem });
        let mut gathering = Gathering::default();
        let (mut pattern, mut numbers) = (String::new(), Vec::new());
        for name in names {
            if !is_name(name) {
                return fault(name, "this is no name of 1 to 255 bytes without ,!&^[]@ and blanks");
            }
            pattern.clear();
            numbers.clear();
            take_apart(name, &mut pattern, &mut numbers);
            if !gathering.add(&pattern, &numbers) {
                return fault(name, ranges::TOO_MANY);
            }
        }
        match gathering.finish() {
            Some(set) => Ok(set),
            None => fault("", ranges::TOO_MANY),
        }
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let count = |(pattern, numbers): (&String, &Vec<Index>)| {
            numbers.len().checked_div(dimensions(pattern)).unwrap_or(1)
        };
        self.patterns.iter().map(count).sum()
    }

    /// The most numbers that one of the names has: 2 for `r[1-2]n[1-4],login`.
    #[must_use]
    pub fn numbers_max(&self) -> usize {
        self.patterns.keys().map(|pattern| dimensions(pattern)).max().unwrap_or(0)
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The names: by pattern, then by number.
    pub fn iter(&self) -> impl Iterator<Item = String> + '_ {
        self.patterns.iter().flat_map(|(pattern, numbers)| {
            let dimensions = dimensions(pattern);
            let count = numbers.len().checked_div(dimensions).unwrap_or(1);
            (0..count).map(move |at| name(pattern, &numbers[at * dimensions..][..dimensions]))
        })
    }

    /// Whether the name is in it.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        let (mut pattern, mut wanted) = (String::new(), Vec::new());
        take_apart(name, &mut pattern, &mut wanted);
        self.patterns.get(&pattern).is_some_and(|numbers| {
            wanted.is_empty()
                || numbers.chunks_exact(wanted.len()).any(|tuple| tuple == wanted.as_slice())
        })
    }

    /// The names of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combined(other, Kept { first: true, both: true, second: true })
    }

    /// The names that the other set does not have.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combined(other, Kept { first: true, both: false, second: false })
    }

    /// The names of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combined(other, Kept { first: false, both: true, second: false })
    }

    /// The names of exactly one of the sets.
    #[must_use]
    pub fn symmetric_difference(&self, other: &Self) -> Self {
        self.combined(other, Kept { first: true, both: false, second: true })
    }

    /// The names at these positions, counted from 0: ranges as between brackets. Positions beyond
    /// the end are empty.
    ///
    /// # Errors
    /// [`Error::NodeSet`] for ranges that are none.
    pub fn slice(&self, places: &str) -> Result<Self, Error> {
        let places = ranges::parse(places).map_err(|(at, problem)| Error::NodeSet {
            text: excerpt(places),
            column: at as u32 + 1,
            problem,
        })?;
        let mut places: Vec<u64> = places.iter().map(|place| place.value()).collect();
        places.sort_unstable();
        let mut places = places.into_iter().peekable();
        let is_wanted = |at: u64| {
            while places.next_if(|&place| place < at).is_some() {}
            places.peek() == Some(&at)
        };
        let mut is_wanted = is_wanted;
        Ok((0..).zip(self.iter()).filter(|(at, _)| is_wanted(*at)).map(|(_, name)| name).collect())
    }

    /// At most this many sets whose sizes differ by at most one, in the order of the names.
    #[must_use]
    pub fn split(&self, parts: usize) -> Vec<Self> {
        let count = self.len();
        let parts = parts.clamp(1, count.max(1));
        let mut names = self.iter();
        (0..parts)
            .map(|part| {
                let size = count / parts + usize::from(part < count % parts);
                names.by_ref().take(size).collect()
            })
            .collect()
    }

    /// Merges two sets name by name.
    fn combined(&self, other: &Self, kept: Kept) -> Self {
        let mut patterns = BTreeMap::new();
        for (pattern, numbers) in &self.patterns {
            match other.patterns.get(pattern) {
                Some(others) => {
                    let dimensions = dimensions(pattern);
                    let merged = match dimensions {
                        0 => Vec::new(),
                        _ => merge(numbers, others, dimensions, kept),
                    };
                    if !merged.is_empty() || dimensions == 0 && kept.both {
                        patterns.insert(pattern.clone(), merged);
                    }
                }
                None if kept.first => {
                    patterns.insert(pattern.clone(), numbers.clone());
                }
                None => {}
            }
        }
        if kept.second {
            for (pattern, numbers) in &other.patterns {
                if !self.patterns.contains_key(pattern) {
                    patterns.insert(pattern.clone(), numbers.clone());
                }
            }
        }
        Self { patterns }
    }
}

/// Whether a text can be a name: nothing in it means something in the language.
fn is_name(text: &str) -> bool {
    let is_sign = |c: char| c.is_control() || c.is_whitespace() || ",!&^[]@".contains(c);
    (1..=NODESET_NAME_BYTES_MAX).contains(&text.len()) && !text.contains(is_sign)
}

fn name(pattern: &str, numbers: &[Index]) -> String {
    use fmt::Write;
    let mut name = String::with_capacity(pattern.len() + 4 * numbers.len());
    let mut numbers = numbers.iter();
    for part in pattern.split_inclusive(PLACE) {
        match part.strip_suffix(PLACE) {
            Some(text) => {
                name.push_str(text);
                if let Some(number) = numbers.next() {
                    // Writing to a string cannot fail.
                    let _ = write!(name, "{number}");
                }
            }
            None => name.push_str(part),
        }
    }
    name
}

/// Of names; a text that is none is left out.
impl FromIterator<String> for NodeSet {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        let mut gathering = Gathering::default();
        let (mut pattern, mut numbers) = (String::new(), Vec::new());
        for name in names {
            pattern.clear();
            numbers.clear();
            take_apart(&name, &mut pattern, &mut numbers);
            if is_name(&name) && !gathering.add(&pattern, &numbers) {
                break;
            }
        }
        gathering.finish().unwrap_or_default()
    }
}

impl FromStr for NodeSet {
    type Err = Error;

    /// Reads a nodeset without groups.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text, &NoGroups)
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fold(&Folding::default()))
    }
}
