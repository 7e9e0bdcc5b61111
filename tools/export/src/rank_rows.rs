//! Reads `ranks.parquet`: every event of every rank.

use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

/// The file's name in the folder of a report.
pub(crate) const FILE: &str = "ranks.parquet";

/// One event of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRow {
    /// The rank in `MPI_COMM_WORLD`.
    pub mpi_rank: u32,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// The event's name.
    pub event: String,
    /// Its function class.
    pub class: String,
    /// Size class of the communicator.
    pub communicator_size_class: Option<u8>,
    /// Calls that returned.
    pub count: u64,
    /// Inclusive time.
    pub time_ns: u64,
    /// Bytes.
    pub bytes: u64,
}

/// All rows of a file, in their order: those of one rank are together.
pub(crate) fn read(file: &Path) -> Result<Vec<RankRow>, String> {
    let told = |error: &dyn std::fmt::Display| format!("'{}': {error}", file.display());
    let opened = File::open(file).map_err(|error| told(&error))?;
    let reader = SerializedFileReader::new(opened).map_err(|error| told(&error))?;
    let rows = reader.get_row_iter(None).map_err(|error| told(&error))?;
    rows.map(|row| row.map(|row| row_of(&row)).map_err(|error| told(&error))).collect()
}

fn row_of(row: &Row) -> RankRow {
    let mut read = RankRow::default();
    for (name, field) in row.get_column_iter() {
        match name.as_str() {
            "mpi_rank" => read.mpi_rank = u32::try_from(whole(field)).unwrap_or(u32::MAX),
            "host" => read.host = text(field),
            "pid" => read.pid = u32::try_from(whole(field)).unwrap_or(u32::MAX),
            "event" => read.event = text(field),
            "class" => read.class = text(field),
            "communicator_size_class" if *field != Field::Null => {
                read.communicator_size_class = u8::try_from(whole(field)).ok();
            }
            // The second name is that of `sapwood.ranks/1`.
            "calls" | "count" => read.count = whole(field),
            "time_ns" => read.time_ns = whole(field),
            "bytes" => read.bytes = whole(field),
            // Columns of later releases.
            _ => {}
        }
    }
    read
}

fn whole(field: &Field) -> u64 {
    match *field {
        Field::UByte(number) => number.into(),
        Field::UInt(number) => number.into(),
        Field::ULong(number) => number,
        _ => 0,
    }
}

fn text(field: &Field) -> String {
    match field {
        Field::Str(text) => text.clone(),
        _ => String::new(),
    }
}
