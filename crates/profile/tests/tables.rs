//! Tables of the drawn layout are read, and no words make their reader panic.

use proptest::prelude::*;
use proptest::sample::Index;
use sapwood_profile::{
    Counters, EventKey, Function, ProfileError, RankProfile, RankState, SizeClass, TableReader,
};

const SLOTS: usize = 8;
const NAMES: usize = 256 + 64 * SLOTS;
const NAMES_BYTES: usize = 64;
const TABLE_BYTES: usize = NAMES + NAMES_BYTES;

/// A table as a shim lays it out.
struct Table {
    bytes: Vec<u8>,
    used: u32,
}

impl Table {
    fn new(mpi_rank: u32, world_size: u32) -> Self {
        let mut table = Self { bytes: vec![0; TABLE_BYTES], used: 0 };
        table.put(0, b"SWPROFIL");
        for (at, word) in [
            (8, 1),
            (12, 256),
            (16, mpi_rank),
            (20, world_size),
            (24, 4711),
            (28, 1),
            (32, 1),
            (176, SLOTS as u32),
            (184, NAMES as u32),
            (188, NAMES_BYTES as u32),
        ] {
            table.put(at, &u32::to_le_bytes(word));
        }
        table.put(40, &99_u64.to_le_bytes());
        table.put(48, b"node17");
        table.put(112, b"lmp");
        table.put(200, &3_u64.to_le_bytes());
        table.put(208, &(TABLE_BYTES as u64).to_le_bytes());
        table
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn slot(&mut self, key: u64, counters: [u64; 3]) {
        let at = 256 + 64 * self.used as usize;
        self.put(at, &key.to_le_bytes());
        for (place, counter) in counters.into_iter().enumerate() {
            self.put(at + 8 + 8 * place, &counter.to_le_bytes());
        }
        self.used += 1;
        self.put(180, &self.used.to_le_bytes());
    }

    fn words(&self) -> Vec<u64> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.iter().map(|&word| u64::from_le_bytes(word)).collect()
    }

    fn profile(&self) -> Result<RankProfile, ProfileError> {
        TableReader::new(&self.words()).map(|reader| reader.profile())
    }
}

fn region(name: &str) -> EventKey {
    EventKey::Region(name.to_string())
}

#[test]
fn a_table_is_read() {
    let mut table = Table::new(3, 8);
    let bcast = Function::named("MPI_Bcast").expect("every MPI has it").id;
    table.slot(u64::from(bcast) << 8 | 3, [10, 2000, 80]);
    table.put(NAMES, b"solve\0setup\0");
    table.slot(1 << 63 | 6, [1, 50, 0]);
    table.slot(1 << 63, [2, 70, 0]);
    table.put(32, &2_u32.to_le_bytes());

    let profile = table.profile().expect("a table");
    assert_eq!((profile.mpi_rank, profile.world_size, profile.pid), (3, 8, 4711));
    assert_eq!((profile.host.as_str(), profile.program.as_str()), ("node17", "lmp"));
    assert_eq!((profile.started_ns, profile.dropped, profile.unreadable), (99, 3, 0));
    assert_eq!(profile.state, RankState::Finalized);
    let size_class = SizeClass::from_code(3).expect("5 to 8 ranks");
    let expected = [
        (EventKey::Function { id: bcast, size_class }, [10, 2000, 80]),
        (region("setup"), [1, 50, 0]),
        (region("solve"), [2, 70, 0]),
    ];
    let expected =
        expected.map(|(key, [count, time_ns, bytes])| (key, Counters { count, time_ns, bytes }));
    assert_eq!(profile.events, expected.into());
}

#[test]
fn slots_that_make_no_sense_are_counted_and_passed_over() {
    let mut table = Table::new(0, 1);
    table.put(NAMES, b"solve\0\xff\0");
    for key in [0, 5, 1 << 8 | 99, 1 << 40, 1 << 63 | 2, 1 << 63 | 6, u64::MAX] {
        table.slot(key, [1, 1, 1]);
    }
    let profile = table.profile().expect("a table");
    assert_eq!((profile.unreadable, profile.events.len()), (7, 0));
}

#[test]
fn an_event_counts_when_its_first_call_has_returned() {
    let mut table = Table::new(0, 1);
    table.slot(1 << 8 | 255, [0, 0, 0]);
    let profile = table.profile().expect("a table");
    assert_eq!((profile.unreadable, profile.events.len()), (0, 0));
}

#[test]
fn a_header_of_something_else_is_refused_with_what_was_found() {
    let message = |at, bytes: &[u8]| {
        let mut table = Table::new(3, 8);
        table.put(at, bytes);
        table.profile().expect_err("a wrong header").to_string()
    };
    assert_eq!(
        message(8, &[2]),
        "profile table: version is 2, not 1; use shim and tree of one release"
    );
    assert_eq!(message(16, &[8]), "profile: MPI rank 8 in a program of 8 ranks");
    for (at, bytes) in [
        (0, &b"ELF"[..]),
        (12, &[1]),
        (32, &[0]),
        (32, &[4]),
        (32, &[1, 1]),
        (176, &[255, 255, 255, 255]),
        (180, &[9]),
        (184, &[0, 1]),
        (184, &[255, 255, 255, 255]),
        (188, &[65]),
        (208, &[255; 8]),
    ] {
        assert!(message(at, bytes).contains("table"), "{at}");
    }
    assert!(TableReader::new(&[]).is_err());
    assert!(TableReader::new(&Table::new(0, 1).words()[..31]).is_err());
}

proptest! {
    #[test]
    fn no_words_make_the_reader_panic(
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 0..40),
        used in 0_u32..9,
        length in any::<Index>(),
    ) {
        let mut table = Table::new(1, 2);
        table.put(180, &used.to_le_bytes());
        for (at, byte) in changes {
            *at.get_mut(&mut table.bytes) = byte;
        }
        let words = table.words();
        for words in [&words[..], &words[..length.index(words.len())]] {
            if let Ok(reader) = TableReader::new(words) {
                let profile = reader.profile();
                prop_assert!(profile.mpi_rank < profile.world_size);
                prop_assert!(profile.events.len() as u64 + profile.unreadable <= 8);
            }
        }
    }

    #[test]
    fn arbitrary_slots_make_the_reader_not_panic(
        slots in proptest::collection::vec((0_u64..40, any::<bool>(), any::<[u64; 3]>()), 0..=8),
        names in proptest::collection::vec(any::<u8>().prop_map(|byte| byte & 0x81), NAMES_BYTES),
    ) {
        let mut table = Table::new(1, 2);
        table.put(NAMES, &names);
        for (key, is_region, counters) in slots {
            table.slot(if is_region { 1 << 63 | key } else { key << 6 }, counters);
        }
        prop_assert!(table.profile().is_ok());
    }
}
