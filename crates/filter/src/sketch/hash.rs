//! The hash of `distinct`: XXH64 with seed 0, as in the "xxHash fast digest algorithm"
//! specification, version 0.1.1, section "XXH64". It is spread well enough for HyperLogLog and
//! exists in every language, so that a hash made elsewhere counts the same.

use xxhash_rust::xxh64::xxh64;

/// The hash of bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    xxh64(bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn the_hash_is_that_of_other_implementations() {
        assert_eq!(hash(b""), 0xEF46_DB37_51D8_E999);
        assert_eq!(hash(b"a"), 0xD24E_C4F1_A98C_6E5B);
        assert_eq!(hash(b"abc"), 0x44BC_2CF5_AD77_0999);
        let opening = b"Call me Ishmael. Some years ago--never mind how long precisely-";
        assert_eq!(hash(opening), 0x02A2_E854_70D6_FD96);
    }
}
