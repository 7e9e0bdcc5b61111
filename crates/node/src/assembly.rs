//! Large packets put together again from their chunks, where a whole one is needed.

use alloc::collections::BTreeMap;

use sapwood_packet::{Chunk, Rank, RankSet, Slab, Wave};

/// What came of putting a chunk to its packet.
#[derive(Debug)]
pub(crate) enum Assembled {
    /// More chunks are to come.
    Partial,
    /// The packet's whole body, and the contributors that all its chunks agree on.
    Whole(Slab, RankSet),
    /// The chunks do not belong together: some are missing, or they stand for different back-ends.
    Torn,
}

#[derive(Debug)]
struct Assembly {
    body: Slab,
    total: u64,
    contributors: RankSet,
}

/// The packets of one link that are not whole yet, by the process that made them and their wave.
#[derive(Debug, Default)]
pub(crate) struct Assemblies {
    open: BTreeMap<(Rank, Wave), Assembly>,
    /// Memory for the next packet.
    spare: Option<Slab>,
}

impl Assemblies {
    /// The next packet is to be put together in this memory, which is there already.
    pub(crate) fn use_memory(&mut self, slab: Option<Slab>) {
        self.spare = slab;
    }

    /// Puts a chunk to its packet. Memory grows as chunks come, never by what a chunk promises.
    pub(crate) fn add(
        &mut self,
        key: (Rank, Wave),
        chunk: Chunk,
        contributors: &RankSet,
        bytes: &[u8],
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
        assembly.body.extend(bytes);
        if (assembly.body.len() as u64) < assembly.total {
            return Assembled::Partial;
        }
        match self.open.remove(&key) {
            Some(assembly) => Assembled::Whole(assembly.body, assembly.contributors),
            None => Assembled::Torn,
        }
    }

    /// Bytes that have come of packets that are not whole.
    pub(crate) fn bytes(&self) -> usize {
        self.open.values().map(|assembly| assembly.body.len()).sum()
    }

    /// Forgets what is not whole.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}
