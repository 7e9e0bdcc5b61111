//! `rounds.csv`: the columns of `columns`, as RFC 4180 has it, with a header.
//!
//! An event's name is written as it is; quotes, commas and line ends in it are quoted. What is
//! missing is an empty field.

use sapwood_report::RoundRecord;

use crate::columns::{self, Cell, ToldRound};

/// The file's name.
pub(crate) const FILE: &str = "rounds.csv";

pub(crate) fn encode(
    rounds: impl Iterator<Item = Result<RoundRecord, String>>,
) -> Result<Vec<u8>, String> {
    let columns = columns::all();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let told = |error: csv::Error| error.to_string();
    writer.write_record(columns.iter().map(|column| &column.path)).map_err(told)?;
    for record in rounds {
        let record = record?;
        let round = ToldRound::of(&record);
        for event in &record.events {
            let cells = columns.iter().map(|column| match column.cell(&round, event) {
                Cell::Null => String::new(),
                Cell::Whole(number) => number.to_string(),
                Cell::Number(number) => number.to_string(),
                Cell::Text(text) => text,
                Cell::Signed(number) => number.to_string(),
                Cell::Flag(is) => is.to_string(),
            });
            writer.write_record(cells).map_err(told)?;
        }
    }
    writer.into_inner().map_err(|error| error.to_string())
}
