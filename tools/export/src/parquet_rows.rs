//! `rounds.parquet`: the columns of `columns`; those with dots in their paths are groups.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use sapwood_report::RoundRecord;

use crate::columns::{self, Cell, Column, Kind};

/// The file's name.
pub(crate) const FILE: &str = "rounds.parquet";
/// Which form the file has, under the key `schema` of its metadata.
const SCHEMA: &str = "sapwood.rounds/1";
/// Rows that are held in memory at once.
const GROUP_ROWS_MAX: usize = 1 << 14;

pub(crate) fn encode(
    rounds: impl Iterator<Item = Result<RoundRecord, String>>,
) -> Result<Vec<u8>, String> {
    let columns = columns::all();
    let mut file = Rows::new(&columns).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for record in rounds {
        let record = record?;
        for event in &record.events {
            rows.push(columns.iter().map(|column| column.cell(&record, event)).collect());
        }
        if rows.len() >= GROUP_ROWS_MAX {
            file.write_group(&columns, &rows).map_err(|error| error.to_string())?;
            rows.clear();
        }
    }
    if !rows.is_empty() {
        file.write_group(&columns, &rows).map_err(|error| error.to_string())?;
    }
    file.writer.into_inner().map_err(|error| error.to_string())
}

/// The schema in Parquet's own notation: columns whose paths begin alike are one group.
fn schema(columns: &[Column]) -> String {
    let mut text = "message rounds {\n".to_owned();
    let mut open: Vec<&str> = Vec::new();
    for column in columns {
        let mut path: Vec<&str> = column.path.split('.').collect();
        let name = path.pop().unwrap_or_default();
        let common = open.iter().zip(&path).take_while(|(open, wanted)| open == wanted).count();
        open.drain(common..).for_each(|_| text.push_str("}\n"));
        for group in &path[common..] {
            let _ = writeln!(text, "required group {group} {{");
            open.push(group);
        }
        let _ = match column.kind {
            Kind::Whole => writeln!(text, "required int64 {name} (INTEGER(64,false));"),
            Kind::OptionalWhole => writeln!(text, "optional int64 {name} (INTEGER(64,false));"),
            Kind::Number => writeln!(text, "required double {name};"),
            Kind::OptionalNumber => writeln!(text, "optional double {name};"),
            Kind::OptionalByte => writeln!(text, "optional int32 {name} (INTEGER(8,false));"),
            Kind::Text => writeln!(text, "required binary {name} (STRING);"),
        };
    }
    open.iter().for_each(|_| text.push_str("}\n"));
    text + "}"
}

struct Rows {
    writer: SerializedFileWriter<Vec<u8>>,
}

impl Rows {
    fn new(columns: &[Column]) -> Result<Self, ParquetError> {
        let schema = Arc::new(parse_message_type(&schema(columns))?);
        let form = KeyValue::new("schema".to_string(), SCHEMA.to_string());
        let properties = WriterProperties::builder()
            .set_created_by(concat!("sapwood ", env!("CARGO_PKG_VERSION")).to_string())
            .set_key_value_metadata(Some(vec![form]))
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
        Ok(Self { writer })
    }

    fn write_group(&mut self, columns: &[Column], rows: &[Vec<Cell>]) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (at, column) in columns.iter().enumerate() {
            let missing = || ParquetError::General("a column is missing".to_string());
            let mut writer = group.next_column()?.ok_or_else(missing)?;
            write_column(&mut writer, column.kind, rows.iter().map(|row| &row[at]))?;
            writer.close()?;
        }
        group.close().map(|_| ())
    }
}

/// Unsigned numbers lie in Parquet as the signed ones of the same bits. Of a column that may be
/// null, the values are those that are there and the levels say which.
fn write_column<'a>(
    writer: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<(), ParquetError> {
    let (mut longs, mut doubles, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut levels: Vec<i16> = Vec::new();
    for cell in cells {
        levels.push((*cell != Cell::Null).into());
        match cell {
            Cell::Null => {}
            Cell::Whole(number) => longs.push(number.cast_signed()),
            Cell::Number(number) => doubles.push(*number),
            Cell::Text(text) => texts.push(ByteArray::from(text.as_str())),
        }
    }
    let written = match kind {
        Kind::Whole => writer.typed::<Int64Type>().write_batch(&longs, None, None),
        Kind::OptionalWhole => writer.typed::<Int64Type>().write_batch(&longs, Some(&levels), None),
        Kind::Number => writer.typed::<DoubleType>().write_batch(&doubles, None, None),
        Kind::OptionalNumber => {
            writer.typed::<DoubleType>().write_batch(&doubles, Some(&levels), None)
        }
        Kind::OptionalByte => {
            let bytes: Vec<i32> = longs.iter().map(|&byte| byte as i32).collect();
            writer.typed::<Int32Type>().write_batch(&bytes, Some(&levels), None)
        }
        Kind::Text => writer.typed::<ByteArrayType>().write_batch(&texts, None, None),
    };
    written.map(|_| ())
}
