//! Large packets put together again from their chunks, where a whole one is needed.

use alloc::collections::BTreeMap;

use sapwood_packet::{Chunk, OutOfMemory, Rank, RankSet, Slab, Wave};

use crate::inbox::Pool;

/// Memory for a packet that is announced with at most this length is asked for at once; for a
/// longer one it is doubled as chunks come. In bytes.
const RESERVED_BYTES_MAX: usize = 2 << 20;

/// What came of putting a chunk to its packet.
#[derive(Debug)]
pub enum Assembled {
    /// More chunks are to come.
    Partial,
    /// The packet's whole body, and the contributors that all its chunks agree on.
    Whole(Slab, RankSet),
    /// The chunks do not belong together: some are missing, or they stand for different back-ends.
    Torn,
    /// The process has no memory for the packet; its further chunks will be torn.
    Lacking(OutOfMemory),
}

#[derive(Debug)]
struct Assembly {
    body: Slab,
    total: u64,
    contributors: RankSet,
}

impl Assembly {
    /// Asks for memory for `needed` bytes, and more.
    #[cold]
    fn grow(&mut self, needed: usize) -> Result<(), OutOfMemory> {
        let total = usize::try_from(self.total).unwrap_or(usize::MAX);
        let length = total.min((2 * needed).max(RESERVED_BYTES_MAX));
        let reserved = self.body.try_reserve(length.saturating_sub(self.body.len()));
        reserved.map_err(|_| OutOfMemory { bytes: total })
    }
}

/// The packets of one link that are not whole yet, by the process that made them and their wave.
#[derive(Debug, Default)]
pub struct Assemblies {
    open: BTreeMap<(Rank, Wave), Assembly>,
    /// Memory for the next packet.
    spare: Option<Slab>,
}

impl Assemblies {
    /// The next packet is to be put together in this memory, which is there already.
    pub fn use_memory(&mut self, slab: Option<Slab>) {
        self.spare = slab;
    }

    /// Puts a chunk to its packet. Memory grows as chunks come: never beyond what they promise, and
    /// by that at once only where it is little.
    pub fn add(
        &mut self,
        key: (Rank, Wave),
        chunk: Chunk,
        contributors: &RankSet,
        bytes: &[u8],
        pool: &Pool,
    ) -> Assembled {
        if chunk.offset == 0 {
            let mut body = self.spare.take().unwrap_or_default();
            body.clear();
            let assembly =
                Assembly { body, total: chunk.total, contributors: contributors.clone() };
            // A process sends one packet after another: an older one of it will not become whole.
            self.open.retain(|other, _| other.0 != key.0);
            self.open.insert(key, assembly);
        }
        let Some(assembly) = self.open.get_mut(&key) else {
            return Assembled::Torn;
        };
        let fits = assembly.body.len() as u64 == chunk.offset
            && assembly.total == chunk.total
            && assembly.contributors == *contributors;
        if !fits {
            self.open.remove(&key);
            return Assembled::Torn;
        }
        let needed = assembly.body.len() + bytes.len();
        if needed > assembly.body.capacity()
            && let Err(lacking) = assembly.grow(needed)
        {
            self.open.remove(&key);
            return Assembled::Lacking(lacking);
        }
        pool.advise(&mut assembly.body, bytes.len());
        assembly.body.extend(bytes);
        if (assembly.body.len() as u64) < assembly.total {
            return Assembled::Partial;
        }
        match self.open.remove(&key) {
            Some(assembly) => Assembled::Whole(assembly.body, assembly.contributors),
            None => Assembled::Torn,
        }
    }

    /// How many packets are not whole.
    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// Bytes that have come of packets that are not whole.
    pub fn bytes(&self) -> usize {
        self.open.values().map(|assembly| assembly.body.len()).sum()
    }

    /// Forgets what is not whole.
    pub fn clear(&mut self) {
        self.open.clear();
    }
}
