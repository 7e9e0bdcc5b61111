//! A frozen job ([`sapwood_report::freeze::Freeze`]) as a trace for Perfetto, as rows in Parquet,
//! and as a picture. What is missing from the window is said in each of them.

pub mod parquet;
pub mod perfetto;
mod slices;
pub mod svg;
