//! The checksums by which both ends of a copy know that they mean the same bytes.
//!
//! A file's data is what stands in it outside of holes, one extent after another. It is cut into
//! blocks of [`BLOCK_BYTES`]. Each block has a digest, which travels with it; the digest of a file,
//! or of its beginning, is that of its blocks' digests in a row. So every byte is read by the hash
//! function once at each end, and a beginning that is already there is compared by one digest.

/// Bytes of a block; the last one of a file may be shorter. A process passes a block on when it has
/// it whole, so that short ones are sooner at the end of a long chain: no more than 1 MiB is under
/// way at a time, and 32 blocks of it keep all of a chain's links busy.
pub(super) const BLOCK_BYTES: usize = 32 << 10;

/// BLAKE3 of a block, or of the digests of blocks.
pub(super) type Digest = [u8; 32];

/// The digest of one block.
pub(super) fn block_digest(block: &[u8]) -> Digest {
    *blake3::hash(block).as_bytes()
}

/// The digest of the blocks so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginning(blake3::Hasher);

impl Beginning {
    /// Adds the next block's digest.
    pub(super) fn add(&mut self, block: &Digest) {
        self.0.update(block);
    }

    /// The digest of all that was added.
    pub(super) fn digest(&self) -> Digest {
        *self.0.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_grows_to_the_digest_of_the_whole() {
        let (mut one, mut other) = (Beginning::default(), Beginning::default());
        one.add(&block_digest(b"a"));
        let begun = one.clone();
        one.add(&block_digest(b"b"));
        other.add(&block_digest(b"a"));
        assert_eq!(begun.digest(), other.digest());
        other.add(&block_digest(b"b"));
        assert_eq!(one.digest(), other.digest());
        assert_ne!(one.digest(), begun.digest());
    }
}
