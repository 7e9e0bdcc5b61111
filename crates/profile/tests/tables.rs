//! Tables of the drawn layout are read, and no words make their reader panic.

use proptest::prelude::*;
use proptest::sample::Index;
use sapwood_profile::{
    Activity, Condition, Counters, EventKey, Figure, Function, Moment, Peer, ProfileError,
    RankProfile, RankState, SizeClass, TableReader, TallyKind, TimeShare,
};

const SLOTS: usize = 8;
const NAMES: usize = 512 + 64 * SLOTS;
const NAMES_BYTES: usize = 64;
const ACTIVITIES: usize = NAMES + NAMES_BYTES;
const THREADS: usize = 4;
const COMMUNICATORS: usize = ACTIVITIES + 64 * THREADS;
const HISTOGRAMS: usize = COMMUNICATORS + 32 * 2;
const TALLIES: usize = HISTOGRAMS + 256 * 2;
const TABLE_BYTES: usize = TALLIES + 64 * 3;
/// Handles of communicators.
const WORLD: u64 = 0x44;
const ROW: u64 = 0x84;

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
            (8, 5),
            (12, 512),
            (16, mpi_rank),
            (20, world_size),
            (24, 4711),
            (28, 1),
            (32, 1),
            (176, SLOTS as u32),
            (184, NAMES as u32),
            (188, NAMES_BYTES as u32),
            (196, ACTIVITIES as u32),
            (216, THREADS as u32),
            (220, 2),
            (256, HISTOGRAMS as u32),
            (260, 2),
            (268, TALLIES as u32),
            (272, 3),
        ] {
            table.put(at, &u32::to_le_bytes(word));
        }
        table.put(40, &99_u64.to_le_bytes());
        table.put(48, b"node17");
        table.put(112, b"lmp");
        table.put(200, &3_u64.to_le_bytes());
        table.put(208, &(TABLE_BYTES as u64).to_le_bytes());
        // Ticks of half a nanosecond, which begin at 1000 with the clock at 5000 ns.
        for (at, word) in [(224, 1000), (232, 5000), (240, 1 << 31), (248, WORLD)] {
            table.put(at, &u64::to_le_bytes(word));
        }
        table
    }

    /// A thread that entered a call, or left one (`function` 0), `since` nanoseconds after 5000.
    fn thread(&mut self, place: usize, function: u32, since: u64, handle: u64, peer: i32) {
        let at = ACTIVITIES + 64 * place;
        self.put(at, &u64::from(function).to_le_bytes());
        self.put(at + 8, &(1000 + 2 * since).to_le_bytes());
        self.put(at + 16, &handle.to_le_bytes());
        self.put(at + 24, &peer.to_le_bytes());
        self.put(at + 40, &(77 + place as u32).to_le_bytes());
        self.put(at + 60, &1_u32.to_le_bytes());
    }

    /// The second of its communicators, windows and files, with its class of sizes and its name.
    fn named(&mut self, handle: u64, size_class: u32, name: u32) {
        self.put(COMMUNICATORS + 32, &handle.to_le_bytes());
        self.put(COMMUNICATORS + 40, &size_class.to_le_bytes());
        self.put(COMMUNICATORS + 44, &name.to_le_bytes());
    }

    /// A second thread called MPI, and the last one came or ended, as nanoseconds after 5000.
    fn several(&mut self, since: u64, joined: u64) {
        self.put(432, &(1000 + 2 * since).to_le_bytes());
        self.put(440, &(1000 + 2 * joined).to_le_bytes());
        self.put(448, &2_u64.to_le_bytes());
    }

    /// Calls have returned since: that all threads were in MPI for this time.
    fn together(&mut self, ns: u64) {
        self.put(424, &ns.to_le_bytes());
        self.put(456, &1_u32.to_le_bytes());
    }

    fn activities(&self, condition: Condition) -> Vec<Activity> {
        let words = self.words();
        let reader = TableReader::new(&words).expect("a table");
        reader.activities(Moment { now_ns: 9000, long_ns: 3000, condition, ended_ns: None })
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn slot(&mut self, key: u64, counters: [u64; 3]) {
        let at = 512 + 64 * self.used as usize;
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
fn sizes_of_messages_stand_in_the_row_that_the_slot_names() {
    let mut table = Table::new(3, 8);
    let send = Function::named("MPI_Send").expect("every MPI has it").id;
    table.slot(u64::from(send) << 8 | 3, [10, 2000, 80]);
    table.put(512 + 32, &2_u32.to_le_bytes());
    table.put(HISTOGRAMS + 256 + 8 * 4, &10_u64.to_le_bytes());
    table.slot(u64::from(send) << 8 | 4, [1, 20, 8]);
    // A row that is not there.
    table.put(512 + 64 + 32, &9_u32.to_le_bytes());
    let profile = table.profile().expect("a table");
    let size_class = SizeClass::from_code(3).expect("5 to 8 ranks");
    let sizes = &profile.sizes[&EventKey::Function { id: send, size_class }];
    assert_eq!((sizes.messages(), sizes.calls()[4], profile.sizes.len()), (10, 10, 1));
}

#[test]
fn tallies_are_read_by_their_kind_and_the_same_name_twice_adds_up() {
    let mut table = Table::new(0, 1);
    table.put(NAMES, b"halo [0-3]\0/bin/solver\0");
    let function = 17_u64 << 8 | 2;
    for (place, (kind, subject, name)) in [(3, 1, 1), (3, 2, 1), (1, 0x1234, 12)].iter().enumerate()
    {
        let at = TALLIES + 64 * place;
        table.put(at, &(kind << 56 | function).to_le_bytes());
        table.put(at + 8, &u64::to_le_bytes(*subject));
        table.put(at + 16, &5_u64.to_le_bytes());
        table.put(at + 40, &u32::to_le_bytes(*name));
    }
    let words = table.words();
    let reader = TableReader::new(&words).expect("a table");
    let counters = |count| Counters { count, time_ns: 0, bytes: 0 };
    let communicators = reader.tallies(TallyKind::Communicator);
    assert_eq!(communicators, [(region("17:2:0:halo [0-3]"), counters(10))].into());
    let sites = reader.tallies(TallyKind::CallSite);
    assert_eq!(sites, [(region("17:2:1234:/bin/solver"), counters(5))].into());
    assert!(reader.tallies(TallyKind::Peer).is_empty());
}

#[test]
fn what_a_process_has_used_is_there_when_it_has_ended() {
    let mut table = Table::new(0, 1);
    table.put(304, &7_u64.to_le_bytes());
    let usage = |table: &Table| TableReader::new(&table.words()).expect("a table").usage();
    assert!(usage(&table).is_empty());
    table.put(32, &2_u32.to_le_bytes());
    assert_eq!(usage(&table)[&Figure::CpuUserNs], 7);
}

#[test]
fn sent_and_received_bytes_are_told_apart() {
    let number = |name| u64::from(Function::named(name).expect("every MPI has it").id) << 8 | 2;
    let mut table = Table::new(0, 4);
    table.slot(number("MPI_Send"), [2, 9, 100]);
    table.slot(number("MPI_Irecv"), [1, 9, 30]);
    table.slot(number("MPI_Sendrecv"), [1, 9, 12]);
    table.slot(number("MPI_Allreduce"), [1, 9, 8]);
    table.put(512 + 64 + 40, &30_u64.to_le_bytes());
    table.put(512 + 2 * 64 + 40, &5_u64.to_le_bytes());
    let transfers = |table: &Table| TableReader::new(&table.words()).expect("a table").transfers();
    let expected = [(Figure::SentBytes, 107), (Figure::ReceivedBytes, 35)];
    assert_eq!(transfers(&table), expected.into());
    table.put(368, &3_u64.to_le_bytes());
    table.put(376, &4_u64.to_le_bytes());
    let lost = [Figure::UntrackedRequests, Figure::NamesLeftOut];
    assert_eq!(lost.map(|figure| transfers(&table)[&figure]), [3, 4]);
    let received: Vec<_> = table.profile().expect("a table").received.into_values().collect();
    assert_eq!(received, [30, 5]);
}

#[test]
fn slots_that_make_no_sense_are_counted_and_passed_over() {
    let mut table = Table::new(0, 1);
    table.put(NAMES, b"solve\0\xff\0");
    for key in [0, 5, 1 << 8 | 99, 1 << 40, 1 << 63 | 2, 1 << 63 | 6, u64::MAX] {
        table.slot(key, [1, 1, 1]);
    }
    let profile = table.profile().expect("a table");
    assert_eq!((profile.unreadable, profile.events.len()), (6, 1));
    assert!(profile.events.contains_key(&region("\\xff")), "other bytes are escaped");
}

#[test]
fn names_of_any_bytes_stay_apart() {
    let mut table = Table::new(0, 1);
    table.put(NAMES, b"\xff\0\\xff\0C:\\x\0");
    for name in [0, 2, 7] {
        table.slot(1 << 63 | name, [1, 1, 1]);
    }
    let events = table.profile().expect("a table").events;
    let names: Vec<_> = ["\\xff", "\\x5cxff", "C:\\x"].map(region).to_vec();
    assert!(names.iter().all(|name| events.contains_key(name)), "{events:?}");
    assert_eq!(events.len(), 3);
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
        message(8, &[1]),
        "profile table: version is 1, not 5; use shim and tree of one release"
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
        (196, &[0, 1]),
        (216, &[5]),
        (220, &[255, 255, 255, 255]),
        (208, &[255; 8]),
    ] {
        assert!(message(at, bytes).contains("table"), "{at}");
    }
}

#[test]
fn a_table_that_is_cut_is_refused_as_such() {
    let words = Table::new(0, 1).words();
    for (count, wanted) in [(0, 512), (31, 512), (64, TABLE_BYTES), (words.len() - 1, TABLE_BYTES)]
    {
        let error = TableReader::new(&words[..count]).err();
        let (bytes, wanted) = (count as u64 * 8, wanted as u64);
        assert_eq!(error, Some(ProfileError::Cut { bytes, wanted }), "{count} words");
    }
    let error = ProfileError::Cut { bytes: 8, wanted: 512 };
    assert_eq!(error.to_string(), "profile table: it is cut: it has 8 bytes of 512");
}

fn function(name: &str) -> u32 {
    Function::named(name).expect("every MPI has it").id
}

#[test]
fn a_call_that_has_not_returned_is_told_with_communicator_peer_region_and_time() {
    let mut table = Table::new(3, 8);
    table.put(NAMES, b"solve\0row\0");
    table.named(ROW, 2, 7);
    table.thread(1, function("MPI_Recv"), 500, ROW, 2);
    table.put(ACTIVITIES + 64 + 32, &(1_u64 << 63).to_le_bytes());
    table.thread(2, function("MPI_Allreduce"), 2500, WORLD, i32::MIN);
    table.thread(3, 0, 3999, 0, i32::MIN);

    let found = table.activities(Condition::Sleeping);
    assert_eq!(found.len(), 2, "a thread outside of MPI is not what such a rank does");
    assert_eq!(found[0].kind.to_string(), "MPI_Recv on row in region solve");
    assert_eq!((found[0].peer, found[0].for_ns), (Peer::Rank(2), 3500));
    assert!(found[0].kind.is_long && !found[1].kind.is_long);
    assert_eq!(found[1].kind.to_string(), "MPI_Allreduce on MPI_COMM_WORLD");
    assert_eq!((found[1].peer, found[1].for_ns), (Peer::None, 1500));
    assert_eq!(found[1].kind.condition, Condition::Unknown, "a rank that waits in MPI may sleep");
    assert_eq!(table.activities(Condition::Stopped)[0].kind.condition, Condition::Stopped);
    // Of one with two groups, the peer is not a rank of the own one.
    table.put(COMMUNICATORS + 48, &1_u32.to_le_bytes());
    let found = table.activities(Condition::Unknown);
    let told = "MPI_Recv on row (peers are of its other group) in region solve";
    assert_eq!(found[0].kind.to_string(), told);
    table.put(COMMUNICATORS + 48, &[0; 4]);
    // Without a name it is told by its size, and without that as one.
    table.put(COMMUNICATORS + 44, &[0; 4]);
    assert!(table.activities(Condition::Unknown)[0].kind.to_string().contains("of 3-4 ranks"));
    table.put(COMMUNICATORS + 32, &[0; 8]);
    let found = table.activities(Condition::Unknown);
    assert_eq!(found[0].kind.to_string(), "MPI_Recv on a communicator in region solve");
}

#[test]
fn a_name_that_was_copied_while_another_one_took_its_place_is_not_told() {
    let mut table = Table::new(3, 8);
    table.put(NAMES, b"solve\0row\0");
    table.named(ROW, 2, 7);
    table.thread(1, function("MPI_Recv"), 500, ROW, 2);
    let mut told = |again: u64| {
        table.put(COMMUNICATORS + 32 + 24, &again.to_le_bytes());
        table.activities(Condition::Unknown)[0].kind.to_string()
    };
    assert_eq!(told(ROW), "MPI_Recv on row");
    // While it changes, and once it has.
    assert_eq!(told(u64::MAX), "MPI_Recv on a communicator");
    assert_eq!(told(ROW + 1), "MPI_Recv on a communicator");
    // Of a program whose entries never change.
    assert_eq!(told(0), "MPI_Recv on row");
}

#[test]
fn calls_on_files_and_windows_have_their_names_and_no_communicator_without() {
    let mut table = Table::new(3, 8);
    table.put(NAMES, b"solve\0out.dat\0");
    table.named(ROW, 255, 7);
    let mut told = |name: &str, handle| {
        table.thread(1, function(name), 500, handle, i32::MIN);
        table.activities(Condition::Unknown)[0].kind.to_string()
    };
    assert_eq!(told("MPI_File_write_all", ROW), "MPI_File_write_all on out.dat");
    assert_eq!(told("MPI_File_write_all", ROW + 1), "MPI_File_write_all");
    assert_eq!(told("MPI_File_open", WORLD), "MPI_File_open on MPI_COMM_WORLD");
    assert_eq!(told("MPI_Win_wait", ROW), "MPI_Win_wait on out.dat");
    assert_eq!(told("MPI_Win_wait", ROW + 1), "MPI_Win_wait on a window");
    assert_eq!(told("MPI_Win_create", WORLD), "MPI_Win_create on MPI_COMM_WORLD");
    // What makes one is called on a communicator, also on one that the table does not know.
    for maker in ["MPI_File_open", "MPI_Win_create", "MPI_Win_allocate"] {
        assert_eq!(told(maker, ROW + 1), format!("{maker} on a communicator"));
    }
}

#[test]
fn a_window_may_have_the_name_of_what_has_none() {
    let mut table = Table::new(3, 8);
    table.put(NAMES, b"a communicator\0");
    table.named(ROW, 255, 1);
    let mut told = |name: &str| {
        table.thread(1, function(name), 500, ROW, i32::MIN);
        table.activities(Condition::Unknown)[0].kind.to_string()
    };
    assert_eq!(told("MPI_Win_wait"), "MPI_Win_wait on a communicator");
    assert_eq!(told("MPI_File_write_all"), "MPI_File_write_all on a communicator");
}

#[test]
fn a_rank_outside_of_mpi_is_told_with_its_last_return() {
    let mut table = Table::new(0, 8);
    assert!(table.activities(Condition::Computing).is_empty(), "no thread has called MPI yet");
    table.thread(0, 0, 100, 0, i32::MIN);
    table.thread(1, 0, 300, 0, i32::MIN);
    let found = table.activities(Condition::Computing);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].for_ns, found[0].kind.condition), (3700, Condition::Computing));
    assert_eq!(found[0].kind.to_string(), "outside MPI");
}

#[test]
fn time_is_divided_between_mpi_and_the_rest() {
    let mut table = Table::new(0, 8);
    // It began to count at 5000, and has been in MPI for 1200 ns, MPI_Init apart.
    table.put(40, &5000_u64.to_le_bytes());
    table.slot(u64::from(function("MPI_Init")) << 8 | 255, [1, 4000, 0]);
    table.slot(u64::from(function("MPI_Bcast")) << 8 | 3, [2, 1200, 0]);
    table.put(NAMES, b"solve\0");
    table.slot(1 << 63, [1, 3000, 0]);
    table.thread(0, 0, 3000, 0, i32::MIN);
    let time = |table: &Table, ended_ns| {
        let words = table.words();
        let reader = TableReader::new(&words).expect("a table");
        let time = reader.time(Moment { now_ns: 9000, ended_ns, ..Moment::default() });
        (time.wall_ns, time.mpi_ns)
    };
    assert_eq!(time(&table, None), (4000, 1200));
    // Its process was killed while it computed, 500 ns after its last call had returned.
    assert_eq!(time(&table, Some(8500)), (3500, 1200));
    // A call that has not returned counts as far as it has come, or until the process ended.
    table.thread(0, function("MPI_Recv"), 3500, WORLD, 1);
    assert_eq!(time(&table, None), (4000, 1700));
    assert_eq!(time(&table, Some(8900)), (3900, 1600));
    // It is in MPI_Finalize, which counts as far as it has come.
    table.put(32, &2_u32.to_le_bytes());
    table.thread(0, function("MPI_Finalize"), 3800, 0, i32::MIN);
    assert_eq!(time(&table, None), (4000, 1400));
    assert_eq!(time(&table, Some(8900)), (3900, 1300));
    table.thread(0, 0, 3900, 0, i32::MIN);
    assert_eq!(time(&table, None).0, 3900, "it has returned");
    assert_eq!(time(&table, Some(8950)).0, 3900, "it has returned before its process ended");
}

/// How a rank has spent its time until this one.
fn share(table: &Table, now_ns: u64) -> TimeShare {
    let words = table.words();
    let reader = TableReader::new(&words).expect("a table");
    reader.time(Moment { now_ns, ..Moment::default() })
}

#[test]
fn clocks_that_jump_give_no_time_below_zero_and_no_other_counts() {
    let mut table = Table::new(0, 8);
    table.put(40, &5000_u64.to_le_bytes());
    table.slot(u64::from(function("MPI_Bcast")) << 8 | 3, [2, 1200, 7]);
    table.thread(0, function("MPI_Recv"), 3500, WORLD, 1);
    let before = share(&table, 9000);
    assert_eq!((before.wall_ns, before.mpi_ns), (4000, 1700));
    // The leaf's clock is before the begin of the call, then before that of the counts.
    for now_ns in [8000, 4000, 0] {
        let after = share(&table, now_ns);
        assert_eq!((after.wall_ns, after.mpi_ns), (3500, 1200), "at {now_ns}");
        let interval = after.since(before);
        assert_eq!((interval.wall_ns, interval.mpi_ns), (0, 0), "at {now_ns}");
    }
    // The rank's own clock was set back before its first tick, and before its begin.
    table.put(ACTIVITIES + 8, &1_u64.to_le_bytes());
    assert_eq!(share(&table, 9000).wall_ns, 4000);
    table.put(40, &u64::MAX.to_le_bytes());
    assert_eq!(share(&table, 9000).wall_ns, 0);
    let profile = table.profile().expect("a table");
    let counts: Vec<_> = profile.events.values().map(|one| (one.count, one.bytes)).collect();
    assert_eq!((counts, profile.unreadable), (vec![(2, 7)], 0));
}

#[test]
fn a_rank_is_in_mpi_while_all_its_threads_are() {
    let mut table = Table::new(0, 8);
    table.put(40, &5000_u64.to_le_bytes());
    table.several(200, 200);
    // One receives since 6000, the other computes.
    table.thread(0, function("MPI_Recv"), 1000, WORLD, 1);
    table.thread(1, 0, 500, 0, i32::MIN);
    assert_eq!(share(&table, 9000), TimeShare { wall_ns: 4000, mpi_ns: 0 });
    // Until it comes as well, at 8500. Until it ends, what is after that counts.
    table.thread(1, function("MPI_Barrier"), 3500, WORLD, i32::MIN);
    assert_eq!(share(&table, 9000).mpi_ns, 500);
    table.put(ACTIVITIES + 64 + 40, &[0; 4]);
    table.several(200, 3800);
    assert_eq!(share(&table, 9000).mpi_ns, 200);
    // What a thread does that has only opened a region is not asked.
    table.thread(2, 0, 500, 0, i32::MIN);
    table.put(ACTIVITIES + 2 * 64 + 60, &[0; 4]);
    assert_eq!(share(&table, 9000).mpi_ns, 200);
    // The sum of all calls is not the time of the rank.
    table.slot(u64::from(function("MPI_Recv")) << 8 | 3, [3, 3000, 0]);
    table.together(700);
    assert_eq!(share(&table, 9000).mpi_ns, 700 + 200);
    let words = table.words();
    let threads = TableReader::new(&words).expect("a table").threads();
    assert_eq!(threads, Some((Figure::MpiThreads, 2)));
}

#[test]
fn of_a_call_in_which_the_first_thread_was_alone_the_part_before_the_second_came_counts() {
    let mut table = Table::new(0, 8);
    table.put(40, &5000_u64.to_le_bytes());
    table.slot(u64::from(function("MPI_Bcast")) << 8 | 3, [2, 800, 0]);
    table.thread(0, function("MPI_Recv"), 1000, WORLD, 1);
    assert_eq!(share(&table, 9000).mpi_ns, 800 + 3000);
    table.thread(1, 0, 3000, 0, i32::MIN);
    table.several(3000, 3000);
    assert_eq!(share(&table, 9000).mpi_ns, 800 + 2000);
    table.thread(1, function("MPI_Barrier"), 3600, WORLD, i32::MIN);
    assert_eq!(share(&table, 9000).mpi_ns, 800 + 2000 + 400);
}

#[test]
fn a_first_call_that_began_before_its_thread_was_one_of_several_counts_for_the_other_one_alone() {
    let mut table = Table::new(0, 8);
    table.put(40, &5000_u64.to_le_bytes());
    table.slot(u64::from(function("MPI_Bcast")) << 8 | 3, [2, 800, 0]);
    table.thread(0, 0, 1000, 0, i32::MIN);
    // It began at 7000, and came beside the first one at 8000, which is outside since 6000.
    table.thread(1, function("MPI_Recv"), 2000, WORLD, 1);
    table.put(ACTIVITIES + 64 + 60, &2_u32.to_le_bytes());
    table.several(3000, 3000);
    assert_eq!(share(&table, 9000).mpi_ns, 800);
    // As well as one that is in a call.
    table.thread(0, function("MPI_Barrier"), 2500, WORLD, i32::MIN);
    assert_eq!(share(&table, 9000).mpi_ns, 800 + 500 + 1000);
}

#[test]
fn calls_of_several_threads_count_in_the_interval_in_which_they_lie() {
    let mut table = Table::new(0, 8);
    table.put(40, &5000_u64.to_le_bytes());
    // Three threads enter at 6000.
    (0..3).for_each(|place| table.thread(place, function("MPI_Recv"), 1000, WORLD, 1));
    table.several(900, 950);
    let before = share(&table, 8000);
    assert_eq!((before.wall_ns, before.mpi_ns), (3000, 2000));
    // They return at 9000: of the calls 1000 ns lie behind the round at 8000.
    table.slot(u64::from(function("MPI_Recv")) << 8 | 3, [3, 3 * 3000, 0]);
    table.together(3000);
    (0..3).for_each(|place| table.thread(place, 0, 4000, 0, i32::MIN));
    let interval = share(&table, 14_000).since(before);
    assert_eq!((interval.wall_ns, interval.mpi_ns), (6000, 1000));
}

#[test]
fn a_call_lasts_until_its_process_has_ended() {
    let mut table = Table::new(0, 8);
    table.thread(0, function("MPI_Recv"), 3500, WORLD, 1);
    let words = table.words();
    let reader = TableReader::new(&words).expect("a table");
    let lost = Moment { now_ns: 9_000_000, ended_ns: Some(8900), ..Moment::default() };
    assert_eq!(reader.activities(lost)[0].for_ns, 400);
}

#[test]
fn a_finalization_counts_when_it_has_returned() {
    let mut table = Table::new(0, 8);
    table.put(32, &2_u32.to_le_bytes());
    table.slot(u64::from(function("MPI_Finalize")) << 8 | 255, [1, 0, 0]);
    table.thread(0, function("MPI_Finalize"), 3500, 0, i32::MIN);
    let is_finalizing =
        |table: &Table| TableReader::new(&table.words()).expect("a table").is_finalizing();
    assert!(is_finalizing(&table));
    assert_eq!(table.profile().expect("a table").events.len(), 0);
    table.thread(0, 0, 3600, 0, i32::MIN);
    assert!(!is_finalizing(&table));
    table.used = 0;
    table.slot(u64::from(function("MPI_Finalize")) << 8 | 255, [1, 100, 0]);
    assert_eq!(table.profile().expect("a table").events.len(), 1);
}

#[test]
fn a_call_that_sends_and_receives_has_a_source_and_a_destination() {
    let mut table = Table::new(3, 8);
    table.thread(0, function("MPI_Sendrecv"), 0, WORLD, 2);
    table.put(ACTIVITIES + 44, &4_i32.to_le_bytes());
    let words = table.words();
    let reader = TableReader::new(&words).expect("a table");
    let moment =
        Moment { now_ns: 9000, long_ns: 3000, condition: Condition::Unknown, ended_ns: None };
    let [call] = &reader.calls(moment)[..] else { panic!("one thread is in a call") };
    assert_eq!((call.peer, call.destination, call.for_ns), (Peer::Rank(2), Peer::Rank(4), 4000));
}

#[test]
fn a_call_that_waits_for_several_requests_has_its_open_receives() {
    let mut table = Table::new(3, 8);
    let lists = table.bytes.len();
    table.bytes.resize(lists + 512 * THREADS, 0);
    table.put(208, &((lists + 512 * THREADS) as u64).to_le_bytes());
    table.put(460, &(lists as u32).to_le_bytes());
    table.thread(1, function("MPI_Waitall"), 0, 0, i32::MIN);
    let list = lists + 512;
    for (at, word) in [(0, 2), (4, 3), (16, 4), (20, 7), (32, -1), (36, -1)] {
        table.put(list + at, &i32::to_le_bytes(word));
    }
    table.put(list + 8, &ROW.to_le_bytes());
    table.put(list + 24, &WORLD.to_le_bytes());
    let call = |table: &Table| {
        let words = table.words();
        let reader = TableReader::new(&words).expect("a table");
        let moment = Moment { now_ns: 9000, long_ns: 3000, ..Moment::default() };
        let [call] = &reader.calls(moment)[..] else { panic!("one thread is in a call") };
        call.clone()
    };
    assert_eq!((call(&table).open.len(), call(&table).others), (0, 0), "it is of another call");
    table.put(list + 504, &1000_u64.to_le_bytes());
    let open: Vec<_> =
        call(&table).open.iter().map(|one| (one.handle, one.peer, one.tag)).collect();
    assert_eq!(open, [(ROW, Peer::Rank(4), 7), (WORLD, Peer::Any, -1)]);
    assert_eq!(call(&table).others, 3);
    // There is no more than the list has room for.
    table.put(list, &u32::MAX.to_le_bytes());
    assert_eq!(call(&table).open.len(), 31);
    table.put(460, &(lists as u32 + 1).to_le_bytes());
    assert!(TableReader::new(&table.words()).is_err(), "it ends behind the table");
}

#[test]
fn a_wait_for_a_persistent_collective_has_its_communicator_and_what_has_made_the_request() {
    let mut table = Table::new(3, 8);
    let lists = TABLE_BYTES;
    table.bytes.resize(lists + 512 * THREADS, 0);
    table.put(208, &((lists + 512 * THREADS) as u64).to_le_bytes());
    table.put(460, &(lists as u32).to_le_bytes());
    table.put(NAMES, b"solve\0row\0");
    // The number of the request, of which the table tells nothing, and the root.
    table.thread(1, function("MPI_Wait"), 500, 1 << 63 | 1, 2);
    let list = lists + 512;
    for (at, word) in [(8, function("MPI_Bcast_init")), (12, 2), (16, 7)] {
        table.put(list + at, &word.to_le_bytes());
    }
    let told = |table: &Table| table.activities(Condition::Unknown)[0].kind.to_string();
    assert_eq!(told(&table), "MPI_Wait on a communicator", "the list is of another call");
    table.put(list + 504, &2000_u64.to_le_bytes());
    assert_eq!(told(&table), "MPI_Wait on a communicator", "the call waits for several requests");
    table.put(ACTIVITIES + 64 + 48, &2000_u64.to_le_bytes());
    assert_eq!(told(&table), "MPI_Wait on row (for MPI_Bcast_init)");
    // For which ranks it waits is another question, which needs the number.
    let words = table.words();
    let reader = TableReader::new(&words).expect("a table");
    let [call] = &reader.calls(Moment { now_ns: 9000, ..Moment::default() })[..] else {
        panic!("one thread is in a call")
    };
    assert_eq!((call.handle, call.open.len(), call.others), (1 << 63 | 1, 0, 0));
    table.put(list + 20, &1_u32.to_le_bytes());
    let between = "MPI_Wait on row (peers are of its other group) (for MPI_Bcast_init)";
    assert_eq!(told(&table), between);
    table.put(list + 16, &[0; 8]);
    assert_eq!(told(&table), "MPI_Wait on a communicator of 3-4 ranks (for MPI_Bcast_init)");
    table.put(list + 12, &255_u32.to_le_bytes());
    assert_eq!(told(&table), "MPI_Wait on a communicator (for MPI_Bcast_init)");
    // What has made the request is not known, as of a list that is copied while it changes.
    table.put(list + 8, &u32::MAX.to_le_bytes());
    assert_eq!(told(&table), "MPI_Wait on a communicator");
    // A list of open receives.
    table.put(list + 8, &function("MPI_Bcast_init").to_le_bytes());
    table.put(list, &1_u32.to_le_bytes());
    assert_eq!(told(&table), "MPI_Wait on a communicator");
}

#[test]
fn any_source_has_another_number_in_each_mpi() {
    let mut table = Table::new(0, 8);
    for (abi, number, peer) in [
        (1_u32, -1, Peer::Any),
        (1, -2, Peer::None),
        (2, -2, Peer::Any),
        (2, -1, Peer::None),
        (3, -1, Peer::Any),
        (3, -3, Peer::None),
    ] {
        table.put(28, &abi.to_le_bytes());
        table.thread(0, function("MPI_Recv"), 0, WORLD, number);
        assert_eq!(table.activities(Condition::Unknown)[0].peer, peer, "{abi} {number}");
    }
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
                prop_assert!(reader.activities(Moment::default()).len() <= THREADS.max(1) * 64);
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
