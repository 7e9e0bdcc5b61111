//! A Parquet file of rows, whose columns are named by paths: those with dots in them are groups.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::columns::{Cell, Kind};

/// Rows that are held in memory at once.
pub(crate) const GROUP_ROWS_MAX: usize = 1 << 14;

/// The schema in Parquet's own notation: columns whose paths begin alike are one group.
fn schema(name: &str, columns: &[(&str, Kind)]) -> String {
    let mut text = format!("message {name} {{\n");
    let mut open: Vec<&str> = Vec::new();
    for (path, kind) in columns {
        let mut path: Vec<&str> = path.split('.').collect();
        let name = path.pop().unwrap_or_default();
        let common = open.iter().zip(&path).take_while(|(open, wanted)| open == wanted).count();
        open.drain(common..).for_each(|_| text.push_str("}\n"));
        for group in &path[common..] {
            let _ = writeln!(text, "required group {group} {{");
            open.push(group);
        }
        let _ = match kind {
            Kind::Whole => writeln!(text, "required int64 {name} (INTEGER(64,false));"),
            Kind::OptionalWhole => writeln!(text, "optional int64 {name} (INTEGER(64,false));"),
            Kind::Number => writeln!(text, "required double {name};"),
            Kind::OptionalNumber => writeln!(text, "optional double {name};"),
            Kind::OptionalByte => writeln!(text, "optional int32 {name} (INTEGER(8,false));"),
            Kind::Text => writeln!(text, "required binary {name} (STRING);"),
            Kind::Signed => writeln!(text, "required int64 {name} (INTEGER(64,true));"),
            Kind::OptionalSigned => writeln!(text, "optional int64 {name} (INTEGER(64,true));"),
            Kind::Flag => writeln!(text, "required boolean {name};"),
        };
    }
    open.iter().for_each(|_| text.push_str("}\n"));
    text + "}"
}

/// A file whose rows come in groups.
pub(crate) struct Table<'a> {
    columns: Vec<(&'a str, Kind)>,
    writer: SerializedFileWriter<Vec<u8>>,
}

impl<'a> Table<'a> {
    /// With these columns, by their paths, and these texts in its metadata.
    ///
    /// # Errors
    /// One line, if the columns cannot be those of a file.
    pub(crate) fn new(
        name: &str,
        columns: Vec<(&'a str, Kind)>,
        metadata: &[(&str, String)],
    ) -> Result<Self, String> {
        let schema = parse_message_type(&schema(name, &columns)).map_err(told)?;
        let texts = metadata
            .iter()
            .map(|(key, text)| KeyValue::new((*key).to_owned(), text.clone()))
            .collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("sapwood ", env!("CARGO_PKG_VERSION")).to_string())
            .set_key_value_metadata(Some(texts))
            .build();
        let (schema, properties) = (Arc::new(schema), Arc::new(properties));
        let writer = SerializedFileWriter::new(Vec::new(), schema, properties).map_err(told)?;
        Ok(Self { columns, writer })
    }

    /// Adds rows, each with a cell for every column.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn write_group(&mut self, rows: &[Vec<Cell>]) -> Result<(), String> {
        self.write(rows).map_err(told)
    }

    fn write(&mut self, rows: &[Vec<Cell>]) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (at, (_, kind)) in self.columns.iter().enumerate() {
            let missing = || ParquetError::General("a column is missing".to_string());
            let mut writer = group.next_column()?.ok_or_else(missing)?;
            write_column(&mut writer, *kind, rows.iter().map(|row| &row[at]))?;
            writer.close()?;
        }
        group.close().map(|_| ())
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn finish(self) -> Result<Vec<u8>, String> {
        self.writer.into_inner().map_err(told)
    }
}

fn told(error: ParquetError) -> String {
    error.to_string()
}

/// Unsigned numbers lie in Parquet as the signed ones of the same bits. Of a column that may be
/// null, the values are those that are there and the levels say which.
fn write_column<'a>(
    writer: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<(), ParquetError> {
    let (mut longs, mut doubles, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut flags = Vec::new();
    let mut levels: Vec<i16> = Vec::new();
    for cell in cells {
        levels.push((*cell != Cell::Null).into());
        match cell {
            Cell::Null => {}
            Cell::Whole(number) => longs.push(number.cast_signed()),
            Cell::Signed(number) => longs.push(*number),
            Cell::Flag(is) => flags.push(*is),
            Cell::Number(number) => doubles.push(*number),
            Cell::Text(text) => texts.push(ByteArray::from(text.as_str())),
        }
    }
    let written = match kind {
        Kind::Whole | Kind::Signed => writer.typed::<Int64Type>().write_batch(&longs, None, None),
        Kind::OptionalWhole | Kind::OptionalSigned => {
            writer.typed::<Int64Type>().write_batch(&longs, Some(&levels), None)
        }
        Kind::Flag => writer.typed::<BoolType>().write_batch(&flags, None, None),
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
