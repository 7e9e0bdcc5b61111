//! Any bytes as profiles: the table of an MPI rank, the rounds and rows of the tree.

use sapwood_packet::{FormatRef, Slab, Values, ValuesRef};
use sapwood_profile::{Moment, RankProfile, RankRows, Round, TableReader};

use crate::Target;
use crate::source::Source;

/// Tables, rounds and rows.
pub const TARGET: Target = Target { name: "profile", run, repair: None };

/// Lengths in a table, as `bindings/mpi/shim/table.h` draws it.
const HEADER_BYTES: usize = 512;
const SLOT_BYTES: usize = 64;

fn run(input: &[u8]) {
    let mut source = Source::new(input);
    match source.below(3) {
        0 => {
            let is_bare = source.flag();
            if let Some(profile) = table(source.rest(), is_bare) {
                check_profile(&profile);
            }
        }
        1 => try_values(&mut source),
        _ => try_changed(&mut source),
    }
}

/// The profile in a table of these bytes, or behind a header that is in order.
fn table(bytes: &[u8], is_bare: bool) -> Option<RankProfile> {
    let mut whole = Slab::default();
    if !is_bare {
        whole.extend(&[0; HEADER_BYTES]);
    }
    whole.extend(bytes);
    whole.pad();
    let length = whole.len().max(HEADER_BYTES);
    whole.set_length(length);
    if !is_bare {
        let slots = ((length - HEADER_BYTES) / SLOT_BYTES) as u32;
        let header = whole.as_mut_bytes();
        header[..8].copy_from_slice(b"SWPROFIL");
        let mut put = |at: usize, number: u32| {
            header[at..at + 4].copy_from_slice(&number.to_le_bytes());
        };
        for (at, number) in [(8, 5), (12, HEADER_BYTES as u32), (16, 1), (20, 3), (32, 1)] {
            put(at, number);
        }
        // The last places of slots hold names and, if there are three, an activity.
        let activities = u32::from(slots > 2);
        let slots = slots.saturating_sub(1 + activities);
        let names = HEADER_BYTES as u32 + slots * SLOT_BYTES as u32;
        for (at, number) in [(176, slots), (180, slots), (184, names), (208, length as u32)] {
            put(at, number);
        }
        let names_end = length as u32 - activities * SLOT_BYTES as u32;
        for (at, number) in [(188, names_end - names), (196, names_end), (216, activities)] {
            put(at, number);
        }
        // Histograms and tallies, of which there are none, come last.
        for at in [256, 268] {
            put(at, length as u32);
        }
    }
    let words = whole
        .as_bytes()
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of 8 bytes have 8 bytes")));
    let words: Vec<u64> = words.collect();
    match TableReader::new(&words) {
        Ok(table) => {
            let moment = Moment { now_ns: 1 << 40, long_ns: 1 << 30, ..Moment::default() };
            Some(RankProfile { activities: table.activities(moment), ..table.profile() })
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn check_profile(profile: &RankProfile) {
    let mut round = Round::new(profile.world_size);
    if round.add(profile).is_ok() {
        check_values(round.encode().as_ref(), true);
    }
    let profile = RankProfile { activities: Vec::new(), ..profile.clone() };
    if let Ok(rows) = RankRows::new(vec![profile]) {
        check_values(rows.encode().as_ref(), true);
    }
}

fn try_values(source: &mut Source<'_>) {
    let count = source.below(64);
    let Some(format) = FormatRef::from_codes(source.bytes(count)) else { return };
    let body = Slab::copy_of(source.rest());
    if let Ok(values) = ValuesRef::parse(format, body.as_bytes()) {
        check_values(values, false);
    }
}

/// Rounds and rows of real profiles, with some bytes changed.
fn try_changed(source: &mut Source<'_>) {
    let world_size = 1 + source.below(6) as u32;
    let mut round = Round::new(world_size);
    let mut profiles = Vec::new();
    let mut slots: &[u8] = &[];
    for _ in 0..source.below(5) {
        // Ranks of one program count much the same.
        if source.flag() || slots.is_empty() {
            slots = source.bytes(3 * SLOT_BYTES);
        }
        let mut profile = table(slots, false).expect("the header is in order");
        (profile.mpi_rank, profile.world_size) = (source.below(8) as u32, world_size);
        let _ = round.add(&profile);
        profiles.push(profile);
    }
    let values = match RankRows::new(profiles) {
        Ok(rows) if source.flag() => rows.encode(),
        _ => round.encode(),
    };
    let (format, mut body) = values.into_parts();
    while !source.is_empty() {
        let at = usize::from(source.byte()) + 256 * source.below(4);
        let byte = source.byte();
        if let Some(place) = body.as_mut_bytes().get_mut(at) {
            *place = byte;
        }
    }
    if let Ok(values) = ValuesRef::parse(format.as_ref(), body.as_bytes()) {
        check_values(values, false);
    }
}

/// What can be read is written and read again as the same.
fn check_values(values: ValuesRef<'_>, is_ours: bool) {
    let mut reads = 0;
    match Round::decode(values) {
        Ok(round) => {
            reads += 1;
            let written: Values = round.encode();
            assert_eq!(Round::decode(written.as_ref()).as_ref(), Ok(&round));
            let covered = round.events().len();
            assert!(covered <= sapwood_profile::EVENTS_MAX);
            let _ = round.missing();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match RankRows::decode(values) {
        Ok(rows) => {
            reads += 1;
            assert_eq!(RankRows::decode(rows.encode().as_ref()).as_ref(), Ok(&rows));
            let _ = (rows.rows().count(), rows.round());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    assert!(!is_ours || reads == 1, "what was written cannot be read");
}
