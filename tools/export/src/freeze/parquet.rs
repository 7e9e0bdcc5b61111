//! A frozen job in Parquet: a row for each call, by its begin.

use std::collections::BTreeMap;

use sapwood_report::freeze::{Freeze, FreezeEvent};

use crate::columns::{Cell, Kind};
use crate::parquet_table::{GROUP_ROWS_MAX, Table};

/// Which form the file has, under the key `schema` of its metadata.
const SCHEMA: &str = "sapwood.freeze-events/1";
/// The columns, which docs/trace.md describes.
const COLUMNS: [(&str, Kind); 16] = [
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
];

/// When a process came to a collective: after how many others, and how long after the first.
struct Arrival {
    place: usize,
    late_ns: u64,
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
    let arrivals = arrivals(freeze);
    let rows: Vec<Vec<Cell>> = (freeze.events.iter().enumerate())
        .map(|(at, event)| row(freeze, event, arrivals.get(&at)))
        .collect();
    for group in rows.chunks(GROUP_ROWS_MAX) {
        table.write_group(group)?;
    }
    table.finish()
}

fn arrivals(freeze: &Freeze) -> BTreeMap<usize, Arrival> {
    let mut found = BTreeMap::new();
    for one in &freeze.collectives {
        let Some(&first) = one.arrivals.first() else { continue };
        let first = freeze.events[first].begin_ns;
        for (place, &at) in one.arrivals.iter().enumerate() {
            let late = freeze.events[at].begin_ns.saturating_sub(first);
            found.insert(at, Arrival { place, late_ns: u64::try_from(late).unwrap_or(0) });
        }
    }
    found
}

fn row(freeze: &Freeze, event: &FreezeEvent, arrival: Option<&Arrival>) -> Vec<Cell> {
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
        whole(arrival.map(|arrival| arrival.place as u64)),
        whole(arrival.map(|arrival| arrival.late_ns)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freeze::slices::tests::freeze;

    #[test]
    fn every_row_has_a_cell_for_each_column_and_each_column_is_described() {
        let freeze = freeze();
        let arrivals = arrivals(&freeze);
        for (at, event) in freeze.events.iter().enumerate() {
            assert_eq!(row(&freeze, event, arrivals.get(&at)).len(), COLUMNS.len());
        }
        assert_eq!((arrivals[&1].place, arrivals[&1].late_ns), (1, 800));
        assert_eq!(&encode(&freeze).expect("three rows")[..4], b"PAR1");
        assert!(encode(&Freeze::default()).is_ok());
        let page = include_str!("../../../../docs/trace.md");
        for (name, _) in COLUMNS {
            assert!(page.contains(&format!("`{name}`")), "{name} is not described");
        }
    }
}
