//! A frozen job in Parquet: a row for each call, by its begin.

use std::collections::BTreeMap;

use sapwood_report::freeze::{Freeze, FreezeEvent};

use crate::columns::{Cell, Kind};
use crate::parquet_table::{GROUP_ROWS_MAX, Table};

/// Which form the file has, under the key `schema` of its metadata.
const SCHEMA: &str = "sapwood.freeze-events/1";
/// The columns, which docs/trace.md describes.
const COLUMNS: [(&str, Kind); 20] = [
    ("rank", Kind::Whole),
    ("thread", Kind::Whole),
    ("function", Kind::Text),
    ("kind", Kind::Text),
    ("communicator", Kind::Text),
    ("communicator_identity", Kind::Text),
    ("communicator_size", Kind::OptionalWhole),
    ("sequence", Kind::OptionalWhole),
    ("peer", Kind::OptionalWhole),
    ("tag", Kind::OptionalSigned),
    ("begin_ns", Kind::Signed),
    ("end_ns", Kind::Signed),
    ("is_open", Kind::Flag),
    ("wait_ns", Kind::OptionalWhole),
    ("place", Kind::OptionalWhole),
    ("late_ns", Kind::OptionalWhole),
    ("arrival_wait_ns", Kind::OptionalWhole),
    ("departure_place", Kind::OptionalWhole),
    ("departure_wait_ns", Kind::OptionalSigned),
    ("elapsed_ns", Kind::OptionalWhole),
];

/// When a process came to a collective and left it.
#[derive(Default)]
struct Attendance {
    /// If it came by this call, after how many others.
    place: Option<u64>,
    /// How long after the first.
    late_ns: Option<u64>,
    /// How long before the last.
    arrival_wait_ns: Option<u64>,
    /// If it left by this call, after how many others.
    departure_place: Option<u32>,
    /// How long after the last had come.
    departure_wait_ns: Option<i64>,
    /// From the first arrival to the last departure.
    elapsed_ns: Option<u64>,
}

/// The bytes of the file.
///
/// # Errors
/// One line, if the format cannot hold it.
pub fn encode(freeze: &Freeze) -> Result<Vec<u8>, String> {
    let metadata = [
        ("schema", SCHEMA.to_owned()),
        ("program", freeze.program.clone()),
        ("reason", freeze.reason.text().to_owned()),
        ("statement", freeze.statement.clone()),
        ("begin_ns", freeze.begin_ns.to_string()),
        ("end_ns", freeze.end_ns.to_string()),
        ("clock_error_ns", freeze.clock_error_ns.to_string()),
        ("dropped", freeze.dropped().to_string()),
        ("unknown", freeze.unknown.join("\n")),
    ];
    let mut table = Table::new("events", COLUMNS.to_vec(), &metadata)?;
    let attendances = attendances(freeze);
    let none = Attendance::default();
    let rows: Vec<Vec<Cell>> = (freeze.events.iter().enumerate())
        .map(|(at, event)| row(freeze, event, attendances.get(&at).unwrap_or(&none)))
        .collect();
    for group in rows.chunks(GROUP_ROWS_MAX) {
        table.write_group(group)?;
    }
    table.finish()
}

/// Of each event of a collective.
fn attendances(freeze: &Freeze) -> BTreeMap<usize, Attendance> {
    let mut found: BTreeMap<usize, Attendance> = BTreeMap::new();
    for one in &freeze.collectives {
        let Some(&first) = one.arrivals.first() else { continue };
        let first = freeze.events[first].begin_ns;
        for (place, &at) in one.arrivals.iter().enumerate() {
            let late = freeze.events[at].begin_ns.saturating_sub(first);
            let mine = found.entry(at).or_default();
            mine.place = Some(place as u64);
            mine.late_ns = Some(u64::try_from(late).unwrap_or(0));
            mine.arrival_wait_ns = one.arrival_waits_ns.get(place).copied().flatten();
            mine.elapsed_ns = one.elapsed_ns;
        }
        for left in &one.departures {
            let mine = found.entry(left.event).or_default();
            mine.departure_place = left.place;
            mine.departure_wait_ns = left.wait_ns;
            mine.elapsed_ns = one.elapsed_ns;
        }
    }
    found
}

fn row(freeze: &Freeze, event: &FreezeEvent, attendance: &Attendance) -> Vec<Cell> {
    let whole = |number: Option<u64>| number.map_or(Cell::Null, Cell::Whole);
    let communicator = event.communicator.and_then(|at| freeze.communicators.get(at));
    let text = |text: Option<&String>| Cell::Text(text.cloned().unwrap_or_default());
    vec![
        Cell::Whole(event.rank.into()),
        Cell::Whole(event.thread.into()),
        Cell::Text(event.function.clone()),
        Cell::Text(event.kind.clone()),
        text(communicator.map(|one| &one.name)),
        text(communicator.map(|one| &one.identity)),
        whole(communicator.map(|one| one.size.into())),
        whole(event.sequence.map(u64::from)),
        whole(event.peer.map(u64::from)),
        event.tag.map_or(Cell::Null, |tag| Cell::Signed(tag.into())),
        Cell::Signed(event.begin_ns),
        Cell::Signed(event.end_ns),
        Cell::Flag(event.is_open),
        whole(event.wait_ns),
        whole(attendance.place),
        whole(attendance.late_ns),
        whole(attendance.arrival_wait_ns),
        whole(attendance.departure_place.map(u64::from)),
        attendance.departure_wait_ns.map_or(Cell::Null, Cell::Signed),
        whole(attendance.elapsed_ns),
    ]
}

#[cfg(test)]
mod tests {
    use sapwood_report::freeze::FreezeDeparture;

    use super::*;
    use crate::freeze::slices::tests::freeze;

    #[test]
    fn every_row_has_a_cell_for_each_column_and_each_column_is_described() {
        let freeze = freeze();
        let attendances = attendances(&freeze);
        let none = Attendance::default();
        for (at, event) in freeze.events.iter().enumerate() {
            let attendance = attendances.get(&at).unwrap_or(&none);
            assert_eq!(row(&freeze, event, attendance).len(), COLUMNS.len());
        }
        assert_eq!((attendances[&1].place, attendances[&1].late_ns), (Some(1), Some(800)));
        assert_eq!(&encode(&freeze).expect("three rows")[..4], b"PAR1");
        assert!(encode(&Freeze::default()).is_ok());
        let page = include_str!("../../../../docs/trace.md");
        for (name, _) in COLUMNS {
            assert!(page.contains(&format!("`{name}`")), "{name} is not described");
        }
    }

    #[test]
    fn the_call_by_which_a_process_left_has_its_departure() {
        let mut freeze = freeze();
        freeze.collectives.truncate(1);
        let one = &mut freeze.collectives[0];
        one.arrival_waits_ns = vec![Some(800), None];
        one.elapsed_ns = Some(901);
        // Rank 1 has started it by event 1, and completed it by event 2.
        let left = |event, place, wait_ns| FreezeDeparture { event, place, wait_ns };
        one.departures = vec![left(0, Some(0), Some(-3)), left(2, None, None)];
        let found = attendances(&freeze);
        let of = |at: usize| {
            let one = &found[&at];
            (one.arrival_wait_ns, one.departure_place, one.departure_wait_ns, one.elapsed_ns)
        };
        assert_eq!(of(0), (Some(800), Some(0), Some(-3), Some(901)));
        assert_eq!(of(1), (None, None, None, Some(901)));
        assert_eq!(of(2), (None, None, None, Some(901)));
    }
}
