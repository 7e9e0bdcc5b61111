//! `top`: the k largest different numbers, exactly, each with how often it was sent and by which
//! back-ends.
//!
//! All back-ends send numbers of the same kind: signed integers, integers without sign, or floating
//! point; an answer holds them in 64 bits of that kind. To find the smallest, send them negated. A
//! NaN is left out. -0.0 is 0.0. The answer is the same, bit for bit, for every shape of tree.
//!
//! Parameter: k, an integer from 1 to 4096, default 10. The encoded sketch, 48 bytes, and for each
//! number 20 and 8 for every range of ranks (ranks that follow one another are one range):
//!
//! ```text
//! %ud    k                      %uld   NaN left out
//! %ald, %auld or %alf   the numbers, the largest first
//! %auld  how often each was sent
//! %aud   how many ranges of ranks each has
//! %aud   first and last rank of every range, number after number
//! ```

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::{
    Directive, ElementType, FormatRef, IntoValues, PacketRef, Rank, RankSet, RankSetRef, Values,
    ValuesRef,
};

use super::rank_sets::{RANGES_MAX, too_scattered, unite};
use super::raw::{self, Datum};
use super::{Sketch, array, failed, forged, is_same, parameter, scalar, unlike};
use crate::rank_columns::{EncodedSets, columns};
use crate::{Filter, FilterError, WaveRef};

const NAME: &str = "top";

const K: u32 = 10;
const K_BOUNDS: [u32; 2] = [1, 4096];
const TAKES_PARAMETERS: &str = "one integer, k, from 1 to 4096";

const KINDS: [ElementType; 3] = [ElementType::Int64, ElementType::Uint64, ElementType::Double];

/// A number of 64 bits, of the kind that was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TopNumber {
    /// A signed integer.
    Signed(i64),
    /// An integer without sign.
    Unsigned(u64),
    /// A floating-point number.
    Double(f64),
}

impl TopNumber {
    /// As a double, the nearest one.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Signed(number) => number as f64,
            Self::Unsigned(number) => number as f64,
            Self::Double(number) => number,
        }
    }

    fn kind(self) -> ElementType {
        match self {
            Self::Signed(_) => ElementType::Int64,
            Self::Unsigned(_) => ElementType::Uint64,
            Self::Double(_) => ElementType::Double,
        }
    }

    /// Bits that are ordered as the numbers of one kind are.
    fn key(self) -> u64 {
        match self {
            Self::Signed(number) => number as u64 ^ SIGN,
            Self::Unsigned(number) => number,
            Self::Double(number) => {
                // Adding zero makes -0.0 to 0.0.
                let bits = (number + 0.0).to_bits();
                if bits & SIGN == 0 { bits ^ SIGN } else { !bits }
            }
        }
    }

    fn of_key(kind: ElementType, key: u64) -> Self {
        match kind {
            ElementType::Int64 => Self::Signed((key ^ SIGN) as i64),
            ElementType::Uint64 => Self::Unsigned(key),
            _ => Self::Double(f64::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN })),
        }
    }
}

const SIGN: u64 = 1 << 63;

macro_rules! into_number {
    ($variant:ident $wide:ty: $($type:ty)*) => {$(
        impl From<$type> for TopNumber {
            fn from(number: $type) -> Self {
                Self::$variant(<$wide>::from(number))
            }
        }
    )*};
}

into_number! { Signed i64: i8 i16 i32 i64 }
into_number! { Unsigned u64: u8 u16 u32 u64 }
into_number! { Double f64: f32 f64 }

/// One of the largest numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct TopEntry {
    /// The number.
    pub number: TopNumber,
    /// How often it was sent.
    pub count: u64,
    /// The back-ends that sent it.
    pub ranks: RankSet,
}

/// A number by its ordered bits.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: u64,
    count: u64,
    ranks: RankSet,
}

/// The k largest different numbers with the back-ends that sent them.
///
/// ```
/// use sapwood_filter::{TopNumber, TopK};
///
/// let mut load = TopK::new(2)?;
/// for (rank, percent) in [(0, 40), (1, 95), (2, 70), (3, 95)] {
///     load.add(percent, rank)?;
/// }
/// let busiest = &load.entries()[0];
/// assert_eq!(busiest.number, TopNumber::Signed(95));
/// assert_eq!(busiest.ranks.to_string(), "1,3");
/// # Ok::<(), sapwood_filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TopK {
    k: u32,
    left_out: u64,
    /// What the numbers are, once there is one.
    kind: Option<ElementType>,
    /// The largest first.
    entries: Vec<Entry>,
}

impl TopK {
    /// The k largest of no numbers.
    ///
    /// # Errors
    /// [`FilterError::Parameters`] when k is not from 1 to 4096.
    pub fn new(k: u32) -> Result<Self, FilterError> {
        if !(K_BOUNDS[0]..=K_BOUNDS[1]).contains(&k) {
            return Err(FilterError::Parameters { name: NAME, takes: TAKES_PARAMETERS });
        }
        Ok(Self { k, left_out: 0, kind: None, entries: Vec::new() })
    }

    /// Adds a number of a back-end.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when it is of another kind than those before.
    pub fn add(&mut self, number: impl Into<TopNumber>, rank: Rank) -> Result<(), FilterError> {
        self.add_of(number.into(), RankSet::range(rank, rank).as_ref())
    }

    /// Takes in another sketch of the same k and of numbers of the same kind.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when either differs.
    pub fn merge(&mut self, other: &Self) -> Result<(), FilterError> {
        if self.k != other.k {
            return Err(unlike(NAME, &format!("k = {} for {}", other.k, self.k)));
        }
        if let Some(kind) = other.kind {
            self.check_kind(kind)?;
        }
        self.left_out = self.left_out.saturating_add(other.left_out);
        let mut entries = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let mut mine = core::mem::take(&mut self.entries).into_iter().peekable();
        let mut theirs = other.entries.iter().peekable();
        while entries.len() < self.k as usize {
            entries.push(match (mine.peek(), theirs.peek()) {
                (Some(a), Some(b)) if a.key == b.key => {
                    let (Some(mut entry), Some(other)) = (mine.next(), theirs.next()) else {
                        break;
                    };
                    entry.count = entry.count.saturating_add(other.count);
                    unite(&mut entry.ranks, other.ranks.as_ref());
                    entry
                }
                (a, b) => {
                    let is_mine = a.map(|a| a.key) > b.map(|b| b.key);
                    let next = if is_mine { mine.next() } else { theirs.next().cloned() };
                    let Some(entry) = next else { break };
                    entry
                }
            });
        }
        self.entries = entries;
        Ok(())
    }

    /// The numbers, the largest first; at most k, all different.
    #[must_use]
    pub fn entries(&self) -> Vec<TopEntry> {
        let Some(kind) = self.kind else { return Vec::new() };
        let entries = self.entries.iter().map(|entry| TopEntry {
            number: TopNumber::of_key(kind, entry.key),
            count: entry.count,
            ranks: entry.ranks.clone(),
        });
        entries.collect()
    }

    /// How many NaN were left out.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Reads an encoded sketch, of the filter or of [`IntoValues::into_values`].
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::read(values)
    }

    fn check_kind(&mut self, kind: ElementType) -> Result<(), FilterError> {
        match self.kind {
            Some(mine) if mine != kind => {
                let letters = [mine, kind].map(ElementType::letters);
                let reason = format!(
                    "numbers of two kinds, '%{}' and '%{}'; let all back-ends send the same",
                    letters[0], letters[1]
                );
                Err(failed(NAME, &reason))
            }
            _ => {
                self.kind = Some(kind);
                Ok(())
            }
        }
    }

    fn add_of(&mut self, number: TopNumber, ranks: RankSetRef<'_>) -> Result<(), FilterError> {
        self.check_kind(number.kind())?;
        if matches!(number, TopNumber::Double(number) if number.is_nan()) {
            self.left_out = self.left_out.saturating_add(1);
            return Ok(());
        }
        let key = number.key();
        let is_full = self.entries.len() >= self.k as usize;
        if is_full && self.entries.last().is_some_and(|least| key < least.key) {
            return Ok(());
        }
        match self.entries.binary_search_by(|entry| key.cmp(&entry.key)) {
            Ok(at) => {
                let entry = &mut self.entries[at];
                entry.count = entry.count.saturating_add(1);
                unite(&mut entry.ranks, ranks);
            }
            Err(at) => {
                self.entries.insert(at, Entry { key, count: 1, ranks: ranks.to_set() });
                self.entries.truncate(self.k as usize);
            }
        }
        Ok(())
    }
}

impl IntoValues for TopK {
    fn append_to(self, values: Values) -> Values {
        let values = values.scalar(self.k).scalar(self.left_out);
        let numbers = self.entries.iter().map(|entry| entry.key);
        let values = match self.kind {
            Some(ElementType::Int64) => {
                values.array(&numbers.map(|key| (key ^ SIGN) as i64).collect::<Vec<_>>())
            }
            Some(ElementType::Uint64) => values.array(&numbers.collect::<Vec<_>>()),
            _ => {
                let double = |key| TopNumber::of_key(ElementType::Double, key).to_f64();
                values.array(&numbers.map(double).collect::<Vec<_>>())
            }
        };
        let counts: Vec<u64> = self.entries.iter().map(|entry| entry.count).collect();
        let (sizes, ranges) = columns(self.entries.iter().map(|entry| entry.ranks.as_ref()));
        values.array(&counts).array(&sizes).array(&ranges)
    }
}

impl Sketch for TopK {
    const NAME: &'static str = NAME;
    const TAKES: &'static str = "one number, one array of numbers, or its own sketches";
    type Parameters = Self;

    fn parameters(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Self::new(parameter::only_integer(values, K, K_BOUNDS).unwrap_or(0))
    }

    fn begin(parameters: &Self, _: &WaveRef<'_>) -> Self {
        parameters.clone()
    }

    fn is_layout(format: FormatRef<'_>) -> bool {
        KINDS.iter().any(|&kind| is_same(format, &layout(kind)))
    }

    fn is_raw(format: FormatRef<'_>) -> bool {
        raw::is_numbers(format)
    }

    fn add_raw(&mut self, packet: &PacketRef<'_>) -> Result<(), FilterError> {
        if packet.contributors.is_empty() {
            return Err(failed(NAME, "a packet has no contributors; use it on the way up"));
        }
        let mut sent = Self { left_out: 0, kind: None, entries: Vec::new(), ..*self };
        let mut keys = Vec::new();
        raw::each_datum(packet.values(), |datum| {
            let number = match datum {
                Datum::Signed(number) => TopNumber::Signed(number),
                Datum::Unsigned(number) => TopNumber::Unsigned(number),
                Datum::Double(number) => TopNumber::Double(number),
                Datum::Text(_) => return,
            };
            sent.kind = Some(number.kind());
            if matches!(number, TopNumber::Double(number) if number.is_nan()) {
                sent.left_out += 1;
            } else {
                keys.push(number.key());
            }
        })?;
        // All at once: numbers that come in rising order would each move all those before.
        keys.sort_unstable_by_key(|&key| Reverse(key));
        let different = keys.chunk_by(|a, b| a == b).take(self.k as usize);
        let ranges = packet.contributors.ranges().len();
        if different.clone().count().saturating_mul(ranges) > RANGES_MAX {
            return Err(too_scattered(NAME));
        }
        sent.entries.extend(different.map(|same| Entry {
            key: same[0],
            count: same.len() as u64,
            ranks: packet.contributors.to_set(),
        }));
        self.merge(&sent)
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let mut sketch =
            Self::new(values.scalar(0)?).map_err(|_| forged(NAME, "a k that is out of range"))?;
        sketch.left_out = values.scalar(1)?;
        let (directive, _) = values.encoded(2)?;
        let keys: Vec<u64> = match directive.element {
            ElementType::Int64 => keys_of(values.array::<i64>(2)?),
            ElementType::Uint64 => keys_of(values.array::<u64>(2)?),
            _ => {
                let numbers = values.array::<f64>(2)?;
                if numbers.iter().any(|number| number.is_nan()) {
                    return Err(forged(NAME, "a NaN"));
                }
                keys_of(numbers)
            }
        };
        let counts = values.array::<u64>(3)?;
        let is_sorted = keys.windows(2).all(|pair| pair[0] > pair[1]);
        if keys.len() != counts.len() || keys.len() > sketch.k as usize || !is_sorted {
            return Err(forged(NAME, "too many numbers, or numbers out of order"));
        }
        // An empty sketch of integers is encoded like one of doubles and fits any kind.
        sketch.kind = (!keys.is_empty()).then_some(directive.element);
        let mut sets = EncodedSets::read(values, 4, keys.len(), |what| forged(NAME, what))?;
        for (&key, &count) in keys.iter().zip(counts) {
            sketch.entries.push(Entry { key, count, ranks: sets.next()?.to_set() });
        }
        Ok(sketch)
    }

    fn absorb(&mut self, other: Self) -> Result<(), FilterError> {
        self.merge(&other)
    }
}

fn keys_of<T: Copy + Into<TopNumber>>(numbers: &[T]) -> Vec<u64> {
    numbers.iter().map(|&number| number.into().key()).collect()
}

const fn layout(kind: ElementType) -> [Directive; 6] {
    [
        scalar(ElementType::Uint32),
        scalar(ElementType::Uint64),
        array(kind),
        array(ElementType::Uint64),
        array(ElementType::Uint32),
        array(ElementType::Uint32),
    ]
}

/// Makes the filter; its parameter is k.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    super::make::<TopK>(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_doubles_are_ordered_with_infinities_and_zeros() {
        let mut top = TopK::new(4).expect("k");
        let numbers = [f64::NAN, -0.0, f64::NEG_INFINITY, 1e-300, 0.0, f64::INFINITY, -1.0];
        for (rank, number) in (0..).zip(numbers) {
            top.add(number, rank).expect("doubles");
        }
        let text =
            |entry: &TopEntry| format!("{} {} {}", entry.number.to_f64(), entry.count, entry.ranks);
        let found: Vec<_> = top.entries().iter().map(text).collect();
        assert_eq!(found[..2], ["inf 1 5", &format!("{} 1 3", 1e-300)]);
        assert_eq!(found[2..], ["0 2 1,4", "-1 1 6"]);
        assert_eq!(top.left_out(), 1);
    }

    #[test]
    fn integers_keep_all_their_bits() {
        let large = [i64::MAX, i64::MAX - 1, i64::MIN, -1];
        let mut top = TopK::new(2).expect("k");
        large.into_iter().for_each(|number| top.add(number, 0).expect("integers"));
        let numbers: Vec<_> = top.entries().iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, [TopNumber::Signed(i64::MAX), TopNumber::Signed(i64::MAX - 1)]);
        let error = top.add(1_u64, 0).expect_err("another kind");
        assert_eq!(
            std::string::ToString::to_string(&error),
            "filter 'top': numbers of two kinds, '%ld' and '%uld'; let all back-ends send the same"
        );
    }
}
