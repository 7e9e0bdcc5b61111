//! `rounds.parquet`: the columns of `columns`; those with dots in their paths are groups.

use sapwood_report::RoundRecord;

use crate::columns::{self, ToldRound};
use crate::parquet_table::{GROUP_ROWS_MAX, Table};

/// The file's name.
pub(crate) const FILE: &str = "rounds.parquet";
/// Which form the file has, under the key `schema` of its metadata. In the first, numbers that
/// settings left out were 0.
const SCHEMA: &str = "sapwood.rounds/2";

pub(crate) fn encode(
    rounds: impl Iterator<Item = Result<RoundRecord, String>>,
) -> Result<Vec<u8>, String> {
    let columns = columns::all();
    let shapes = columns.iter().map(|column| (column.path.as_str(), column.kind)).collect();
    let mut table = Table::new("rounds", shapes, &[("schema", SCHEMA.to_owned())])?;
    let mut rows = Vec::new();
    for record in rounds {
        let record = record?;
        let round = ToldRound::of(&record);
        for event in &record.events {
            rows.push(columns.iter().map(|column| column.cell(&round, event)).collect());
        }
        if rows.len() >= GROUP_ROWS_MAX {
            table.write_group(&rows)?;
            rows.clear();
        }
    }
    if !rows.is_empty() {
        table.write_group(&rows)?;
    }
    table.finish()
}
