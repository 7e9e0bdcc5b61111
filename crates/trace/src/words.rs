//! Two numbers in one word, as packets and records have them.

/// Two numbers of 32 bits in one word.
pub(crate) fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// These two.
#[allow(clippy::cast_possible_truncation, reason = "the halves are what is taken")]
pub(crate) const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}
