//! Any bytes as events: the event file of an MPI rank, and what the tree makes of events.

use sapwood_packet::{FormatRef, Slab, Values, ValuesRef};
use sapwood_trace::{
    BypassHop, COUNTERS, EventFile, Frozen, Gathered, HEADER_WORDS, HostClock, Ledger,
    RECORD_WORDS, Record, Relations, RingCursor, SCOPE_COUNTERS, Scope, ScopeFigures, Standing,
    TraceError, Verdict, spaces,
};

use crate::Target;
use crate::source::Source;

/// Event files and packets of events.
pub const TARGET: Target = Target { name: "trace", run, repair: None };

/// Words of an event file that is tried.
const FILE_WORDS: usize = 1024;
/// Rows of one array of a packet that is tried.
const ROWS_MAX: usize = 6;
/// From when on an activity is long, in nanoseconds.
const LONG_NS: u64 = 1_000;

fn run(input: &[u8]) {
    let mut source = Source::new(input);
    match source.below(4) {
        0 => try_file(&mut source),
        1 => {
            let count = source.below(64);
            let Some(format) = FormatRef::from_codes(source.bytes(count)) else { return };
            let body = Slab::copy_of(source.rest());
            if let Ok(values) = ValuesRef::parse(format, body.as_bytes()) {
                check_values(values);
            }
        }
        _ => {
            let values = rows(&mut source);
            check_values(values.as_ref());
        }
    }
}

/// The header of a file with some words changed, and rings of any words.
fn try_file(source: &mut Source<'_>) {
    let mut words = vec![0_u64; FILE_WORDS];
    let ring_records = 1 << source.below(5);
    let rings_begin = HEADER_WORDS + 8 * source.below(9);
    words[0] = u64::from_le_bytes(*b"SWEVENTS");
    words[1] = 1 | 256 << 32;
    words[2] = source.below(4) as u64 | 4 << 32;
    (words[5], words[6], words[7]) = (source.number(), source.number(), source.number());
    words[8] = source.number() & 0xf | 8 << 32;
    words[9] = source.below(9) as u64 | (source.below(4) as u64) << 32;
    words[10] = ring_records | ((rings_begin * 8) as u64) << 32;
    for _ in 0..source.below(8) {
        let at = source.below(FILE_WORDS);
        words[at] = source.number();
    }
    while !source.is_empty() {
        let at = HEADER_WORDS + source.below(FILE_WORDS - HEADER_WORDS);
        words[at] = source.number();
    }
    match EventFile::read(&words[..HEADER_WORDS], words.len()) {
        Ok(file) => read_all(&file, &words),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What a leaf does with a file: it takes no word beyond its end, and each record is read once.
fn read_all(file: &EventFile, words: &[u64]) {
    let _ = spaces(&words[file.spaces()]);
    let mut clock = HostClock::shared(file.clock);
    for ring in 0..file.hop_rings().end {
        let head = words[file.head(ring)];
        let mut cursor = RingCursor::default();
        for _ in 0..4 {
            let plan = cursor.plan(head, file.ring_records(), 16);
            assert!(plan.end - plan.start <= 16);
            for number in plan.clone() {
                let record = &words[file.record(ring, number)];
                let record: [u64; RECORD_WORDS] = record.try_into().expect("words of a record");
                if let Some(hop) = BypassHop::decode(record) {
                    assert_eq!(hop.words(), record);
                }
                match Record::decode(record) {
                    Some(Record::Clock(ticks, ns)) => clock.note(ticks, ns),
                    Some(Record::Event(event)) => {
                        let _ = (clock.time(event.time), clock.span(event.span));
                    }
                    None => {}
                }
            }
            let (good, _) = cursor.take(plan.clone(), head, file.ring_records());
            assert!(good.start >= plan.start && good.end == plan.end);
        }
    }
}

/// A packet of one of the kinds, with rows of any words.
fn rows(source: &mut Source<'_>) -> Values {
    let mut words = |length: usize| -> Vec<u64> {
        let count = source.below(ROWS_MAX) * length;
        (0..count).map(|_| source.number()).collect()
    };
    let names = ["a", "\u{1b}b", ""];
    match words(1).len() {
        0 => {
            let head = Values::new().scalar(version(&Gathered::default().encode()));
            let head = head.array(&[0_u64; 0]).array(&[1_u64; COUNTERS]);
            let lengths = Gathered::ROW_WORDS;
            let body = lengths.iter().fold(head, |values, length| values.array(&words(*length)));
            body.scalar(1_u64)
        }
        1 => {
            let head = Values::new().scalar(version(&Standing::default().encode())).scalar(4_u32);
            let lengths = Standing::ROW_WORDS;
            let body = lengths.iter().fold(head, |values, length| values.array(&words(*length)));
            body.array(&words(1)).strings(&names).scalar(1_u64)
        }
        2 => {
            let head = Values::new().scalar(version(&Frozen::default().encode())).scalar(4_u32);
            let lengths = Frozen::ROW_WORDS;
            let body = lengths.iter().fold(head, |values, length| values.array(&words(*length)));
            body.array(&words(1)).strings(&names)
        }
        _ => {
            let head = Values::new().scalar(version(&ScopeFigures::default().encode()));
            let head = head.array(&[1_u64; SCOPE_COUNTERS]);
            let head = head.array(&words(9)).array(&words(2)).array(&words(1)).strings(&names);
            head.array(&words(2))
        }
    }
}

/// The version that a packet of this kind has.
fn version(values: &Values) -> u32 {
    values.as_ref().scalar(0).expect("the version is the first value")
}

fn known<T>(read: Result<T, TraceError>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// What can be read is written and read again as the same, and can be merged and judged.
fn check_values(values: ValuesRef<'_>) {
    if let Some(gathered) = known(Gathered::decode(values)) {
        assert_eq!(Gathered::decode(gathered.encode().as_ref()).as_ref(), Ok(&gathered));
        let mut whole = gathered.clone();
        whole.merge(gathered);
        whole.bound();
        let mut ledger = Ledger::default();
        ledger.absorb(whole);
        let _ = ledger.take_settled(4);
    }
    if let Some(standing) = known(Standing::decode(values)) {
        assert_eq!(Standing::decode(standing.encode().as_ref()).as_ref(), Ok(&standing));
        let _ = Verdict::of(&standing, LONG_NS);
    }
    if let Some(mut frozen) = known(Frozen::decode(values)) {
        assert_eq!(Frozen::decode(frozen.encode().as_ref()).as_ref(), Ok(&frozen));
        frozen.bound(4);
        let (begin, _) = frozen.cut(LONG_NS);
        assert!(frozen.events.iter().all(|event| event.end() >= begin));
        let relations = Relations::of(&frozen);
        assert_eq!(relations.waits.len(), frozen.events.len());
    }
    if let Some(figures) = known(ScopeFigures::decode(values)) {
        assert_eq!(ScopeFigures::decode(figures.encode().as_ref()).as_ref(), Ok(&figures));
        let mut whole = figures.clone();
        whole.merge(&figures);
        let medians = whole.groups.values().map(|one| one.quantile(500)).collect::<Vec<_>>();
        assert_eq!(medians.len(), whole.groups.len());
        whole.bound(256);
    }
    if let Ok(scope) = Scope::decode(values, 0) {
        let written = scope.encode(Values::new());
        assert_eq!(Scope::decode(written.as_ref(), 0), Ok(scope));
    }
}
