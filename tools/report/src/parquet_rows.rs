//! `ranks.parquet`: every event of every rank as one row, columns by name.
//!
//! Columns are written uncompressed; those that repeat (ranks, hosts, events) are kept as
//! dictionaries, which leaves little to compress.

use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::parser::parse_message_type;
use sapwood_profile::{RankRow, RankRows, SizeClass};

use crate::record::{Counting, Settings};

/// The columns. A size class is null where there is no communicator, and a number where settings
/// left it out.
const COLUMNS: &str = "message ranks {
    required int32 mpi_rank (INTEGER(32,false));
    required binary host (STRING);
    required int32 pid (INTEGER(32,false));
    required binary state (STRING);
    required binary event (STRING);
    required binary class (STRING);
    optional int32 communicator_size_class (INTEGER(8,false));
    optional int64 calls (INTEGER(64,false));
    optional int64 time_ns (INTEGER(64,false));
    optional int64 bytes (INTEGER(64,false));
    optional int64 sent_bytes (INTEGER(64,false));
    optional int64 received_bytes (INTEGER(64,false));
}";
/// Which form the file has, under the key `schema` of its metadata. In the first `calls` was called
/// `count`; before the third, numbers that settings left out were 0.
const SCHEMA: &str = "sapwood.ranks/3";
/// Rows that are held in memory as columns at once.
const GROUP_ROWS_MAX: usize = 1 << 18;

/// The rows as the bytes of a Parquet file. The settings are those that the ranks obeyed at last.
pub(crate) fn encode(rows: &RankRows, settings: Option<&Settings>) -> Result<Vec<u8>, String> {
    encoded(rows, settings).map_err(|error| error.to_string())
}

fn encoded(rows: &RankRows, settings: Option<&Settings>) -> Result<Vec<u8>, ParquetError> {
    let schema = Arc::new(parse_message_type(COLUMNS)?);
    let form = KeyValue::new("schema".to_string(), SCHEMA.to_string());
    let properties = WriterProperties::builder()
        .set_created_by(concat!("sapwood ", env!("CARGO_PKG_VERSION")).to_string())
        .set_key_value_metadata(Some(vec![form]))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let counting = Counting::of(settings);
    let mut rows = rows.rows().peekable();
    while rows.peek().is_some() {
        let group: Vec<RankRow<'_>> = rows.by_ref().take(GROUP_ROWS_MAX).collect();
        let mut columns = writer.next_row_group()?;
        write_group(&mut columns, &group, &counting)?;
        columns.close()?;
    }
    writer.into_inner()
}

type Columns<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// Writes the columns in the order of the schema.
fn write_group(
    columns: &mut Columns<'_>,
    rows: &[RankRow<'_>],
    counting: &Counting<'_>,
) -> Result<(), ParquetError> {
    let is_left_out = |row: &RankRow<'_>, group: &str| {
        counting.of_rank(row.mpi_rank).has(row.class.name(), group)
    };
    let calls = |row: &RankRow<'_>| is_left_out(row, "calls");
    let time = |row: &RankRow<'_>| is_left_out(row, "time");
    let bytes = |row: &RankRow<'_>| is_left_out(row, "bytes");
    words(columns, rows, |row| row.mpi_rank)?;
    texts(columns, rows, |row| row.host)?;
    words(columns, rows, |row| row.pid)?;
    texts(columns, rows, |row| row.state.name())?;
    texts(columns, rows, |row| &row.event)?;
    texts(columns, rows, |row| row.class.name())?;
    size_classes(columns, rows)?;
    longs(columns, rows, |row| row.counters.count, calls)?;
    longs(columns, rows, |row| row.counters.time_ns, time)?;
    longs(columns, rows, |row| row.counters.bytes, bytes)?;
    longs(columns, rows, RankRow::sent_bytes, bytes)?;
    longs(columns, rows, |row| row.received_bytes, bytes)
}

/// Unsigned numbers lie in Parquet as the signed ones of the same bits.
fn words<'a>(
    columns: &mut Columns<'_>,
    rows: &[RankRow<'a>],
    of: impl Fn(&RankRow<'a>) -> u32,
) -> Result<(), ParquetError> {
    let words: Vec<i32> = rows.iter().map(|row| of(row).cast_signed()).collect();
    let mut column = next(columns)?;
    column.typed::<Int32Type>().write_batch(&words, None, None)?;
    column.close()
}

/// Numbers, which are null where they are 0 because they are left out.
fn longs<'a>(
    columns: &mut Columns<'_>,
    rows: &[RankRow<'a>],
    of: impl Fn(&RankRow<'a>) -> u64,
    is_left_out: impl Fn(&RankRow<'a>) -> bool,
) -> Result<(), ParquetError> {
    let number = |row: &RankRow<'a>| Some(of(row)).filter(|&long| long > 0 || !is_left_out(row));
    let numbers: Vec<Option<u64>> = rows.iter().map(number).collect();
    let levels: Vec<i16> = numbers.iter().map(|number| number.is_some().into()).collect();
    let longs: Vec<i64> = numbers.into_iter().flatten().map(u64::cast_signed).collect();
    let mut column = next(columns)?;
    column.typed::<Int64Type>().write_batch(&longs, Some(&levels), None)?;
    column.close()
}

fn texts<'a>(
    columns: &mut Columns<'_>,
    rows: &'a [RankRow<'a>],
    of: impl Fn(&'a RankRow<'a>) -> &'a str,
) -> Result<(), ParquetError> {
    let texts: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(of(row))).collect();
    let mut column = next(columns)?;
    column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
    column.close()
}

/// A column that may be null: its values are those that are there, its levels say which.
fn size_classes(columns: &mut Columns<'_>, rows: &[RankRow<'_>]) -> Result<(), ParquetError> {
    let is_there = |row: &&RankRow<'_>| row.size_class != SizeClass::NONE;
    let codes: Vec<i32> =
        rows.iter().filter(is_there).map(|row| row.size_class.code().into()).collect();
    let levels: Vec<i16> = rows.iter().map(|row| is_there(&row).into()).collect();
    let mut column = next(columns)?;
    column.typed::<Int32Type>().write_batch(&codes, Some(&levels), None)?;
    column.close()
}

fn next<'a>(columns: &'a mut Columns<'_>) -> Result<SerializedColumnWriter<'a>, ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than a row".to_string());
    columns.next_column()?.ok_or_else(missing)
}
