//! What a run has left, in the formats of other tools; one file of this crate for each.
//!
//! [`Run`] is the folder of a run, read: `profile.json`, `rounds.ndjson` and, once the program has
//! ended, `ranks.parquet`. [`Run::export`] writes [`Format`]s beside these. [`difference`] compares
//! two runs. [`freeze`] writes a frozen job. Formats are described in docs/monitor-outputs.md.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod caliper;
pub mod columns;
mod csv_rows;
pub mod difference;
mod event_names;
pub mod freeze;
mod html;
pub mod openmetrics;
#[cfg(feature = "otlp")]
mod otlp;
mod parquet_rows;
mod parquet_table;
mod perfetto;
mod perfetto_messages;
mod rank_rows;
mod run;
mod tau;

pub use rank_rows::RankRow;
pub use run::{ExportError, Run};

/// A format in which a run can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for Prometheus: the last round.
    OpenMetrics,
    /// `rounds.parquet`: a row for each event in each round.
    Parquet,
    /// `rounds.csv`: the same rows.
    Csv,
    /// `caliper.json`: every rank, for Hatchet and what else reads Caliper's JSON.
    Caliper,
    /// `trace.perfetto-trace`: rounds, regions and events over time.
    Perfetto,
    /// `metrics.otlp`: the last round as a request of OpenTelemetry's protocol.
    Otlp,
    /// `report.html`: a page to attach to a ticket.
    Html,
    /// `tau/profile.N.0.0`: every rank, as TAU leaves it.
    Tau,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::OpenMetrics,
        Self::Parquet,
        Self::Csv,
        Self::Caliper,
        Self::Perfetto,
        Self::Otlp,
        Self::Html,
        Self::Tau,
    ];

    /// The files that they leave in a folder, those of TAU apart, which lie in `tau`.
    pub const FILES: [&str; 7] = [
        openmetrics::FILE,
        parquet_rows::FILE,
        csv_rows::FILE,
        caliper::FILE,
        perfetto::FILE,
        "metrics.otlp",
        html::FILE,
    ];

    /// The file that it leaves in a folder; none of TAU's, which lie in `tau`.
    #[must_use]
    pub const fn file(self) -> Option<&'static str> {
        match self {
            Self::OpenMetrics => Some(openmetrics::FILE),
            Self::Parquet => Some(parquet_rows::FILE),
            Self::Csv => Some(csv_rows::FILE),
            Self::Caliper => Some(caliper::FILE),
            Self::Perfetto => Some(perfetto::FILE),
            Self::Otlp => Some("metrics.otlp"),
            Self::Html => Some(html::FILE),
            Self::Tau => None,
        }
    }

    /// The name by which it is asked for.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMetrics => "openmetrics",
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Caliper => "caliper",
            Self::Perfetto => "perfetto",
            Self::Otlp => "otlp",
            Self::Html => "html",
            Self::Tau => "tau",
        }
    }

    /// The format of a name; `hatchet` is another name of `caliper`.
    ///
    /// # Errors
    /// One line with all names.
    pub fn named(name: &str) -> Result<Self, String> {
        let wanted = if name == "hatchet" { "caliper" } else { name };
        let found = Self::ALL.into_iter().find(|format| format.name() == wanted);
        let found = found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no format '{name}'; choose from {names}")
        })?;
        if found == Self::Otlp && !cfg!(feature = "otlp") {
            return Err(
                "this program was built without 'otlp'; build it with --features otlp".into()
            );
        }
        Ok(found)
    }
}
