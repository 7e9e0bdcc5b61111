//! The number in a name: its value and how many digits it was written with.
//!
//! `1`, `01` and `001` are three different numbers here, since they make three different names.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Most digits of a number in a name; a longer run of digits is text, in which nothing is folded.
pub(super) const DIGITS_MAX: usize = 17;

const VALUE_BITS: u32 = 58;
const VALUE_MASK: u64 = (1 << VALUE_BITS) - 1;

/// A number in a name. The order is by the count of digits, then by value, so that numbers without
/// leading zeros are in the order of their values.
///
/// ```text
/// | digits, 6 bits | value, 58 bits |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Index(u64);

impl Index {
    /// A number with at least this many digits.
    pub(super) fn new(value: u64, digits_min: usize) -> Self {
        let digits = digits_of(value).max(digits_min) as u64;
        Self(digits << VALUE_BITS | value & VALUE_MASK)
    }

    /// Reads digits; `None` if there are none, too many, or something else among them.
    pub(super) fn parse(digits: &str) -> Option<Self> {
        if digits.is_empty() || digits.len() > DIGITS_MAX {
            return None;
        }
        let mut value = 0_u64;
        for byte in digits.bytes() {
            value = value * 10 + u64::from(byte.is_ascii_digit().then(|| byte - b'0')?);
        }
        Some(Self::new(value, digits.len()))
    }

    pub(super) fn value(self) -> u64 {
        self.0 & VALUE_MASK
    }

    pub(super) fn digits(self) -> usize {
        (self.0 >> VALUE_BITS) as usize
    }

    /// Whether it is written with zeros before it.
    pub(super) fn is_padded(self) -> bool {
        self.digits() > digits_of(self.value())
    }

    /// This number with another behind it: 1 and 07 make 107.
    pub(super) fn joined(self, behind: Self) -> Option<Self> {
        let digits = self.digits() + behind.digits();
        if digits > DIGITS_MAX {
            return None;
        }
        let power = 10_u64.pow(behind.digits() as u32);
        Some(Self::new(self.value() * power + behind.value(), digits))
    }

    /// Whether a range `first-last` may hold both: equally many digits, or no zeros before.
    fn is_of_one_range(first: Self, last: Self) -> bool {
        first.digits() == last.digits() || !first.is_padded() && !last.is_padded()
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0width$}", self.value(), width = self.digits())
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn digits_of(value: u64) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Writes sorted numbers as they stand between brackets: `1-3,7`, with steps for at least
/// `step_count_min` numbers if that is given.
pub(super) fn write_ranges(numbers: &[Index], step_count_min: Option<usize>, text: &mut String) {
    use fmt::Write;
    let mut rest = numbers;
    let mut separator = "";
    while let Some(&first) = rest.first() {
        let distances = if step_count_min.is_some() { Distances::Any } else { Distances::One };
        let (count, step) = longest_run(rest, distances);
        let last = rest[count - 1];
        let is_stepped = step > 1 && step_count_min.is_some_and(|least| count >= least.max(3));
        // Writing to a string cannot fail. The last number of a short run may begin another.
        let written = if is_stepped {
            let _ = write!(text, "{separator}{first}-{last}/{step}");
            count
        } else if step == 1 && count > 1 {
            let _ = write!(text, "{separator}{first}-{last}");
            count
        } else {
            let _ = write!(text, "{separator}{first}");
            1
        };
        separator = ",";
        rest = &rest[written..];
        let alone =
            if is_stepped || step == 1 { 0 } else { count.saturating_sub(2).min(rest.len()) };
        for number in &rest[..alone] {
            let _ = write!(text, ",{number}");
        }
        rest = &rest[alone..];
    }
}

/// How far the numbers of a run may be from one another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Distances {
    /// Only neighbours count: a number whose next is farther away is alone.
    One,
    Any,
}

/// How many numbers at the beginning have one distance, and which.
pub(super) fn longest_run(numbers: &[Index], distances: Distances) -> (usize, u64) {
    let [first, second, ..] = numbers else { return (numbers.len(), 1) };
    let step = second.value().wrapping_sub(first.value());
    if step != 1 && distances == Distances::One || step > VALUE_MASK {
        return (1, 1);
    }
    let fits = |pair: &[Index]| {
        pair[1].value().wrapping_sub(pair[0].value()) == step
            && Index::is_of_one_range(*first, pair[1])
    };
    let more = numbers.windows(2).take_while(|pair| fits(pair)).count();
    if more == 0 { (1, 1) } else { (more + 1, step) }
}

/// Sorts, and leaves each number once.
pub(super) fn sort(numbers: &mut Vec<Index>) {
    numbers.sort_unstable();
    numbers.dedup();
}
