//! Prints a `ranks.parquet` as text: one line per row, columns divided by tabs, empty where there
//! is no value. A reader that shares nothing with the writer but the file's format.
//!
//!     cargo run --example rank_rows -- demo-out/ranks.parquet

use std::fs::File;
use std::io::{BufWriter, Write};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: rank_rows FILE")?;
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let mut output = BufWriter::new(std::io::stdout().lock());
    for row in reader.get_row_iter(None)? {
        let row = row?;
        let cells: Vec<String> = row.get_column_iter().map(|(_, field)| text(field)).collect();
        writeln!(output, "{}", cells.join("\t"))?;
    }
    Ok(output.flush()?)
}

fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    }
}
