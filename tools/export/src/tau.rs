//! `tau/profile.N.0.0`: the profile of each rank in the layout of TAU's files.
//!
//! A file has a line for each event: `"name" calls subroutines exclusive inclusive 0
//! GROUP="group"`, times in microseconds, first `.TAU application`, and each event once more below
//! it, as call path, which is what readers of call trees look for. Bytes are user events: one for
//! each event, whose one value is the sum. MPI functions call nothing that is counted, so that
//! their exclusive time is the inclusive one; what a region holds is not known, so that its
//! exclusive time is 0.
//!
//! `bindings/mpi/shim/transport/files.c` writes the same without a tree.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sapwood_report::{Profile, write_whole};

use crate::event_names::{full_name, visible};
use crate::rank_rows::RankRow;

/// The folder's name.
const FOLDER: &str = "tau";
const ROOT: &str = ".TAU application";

pub(crate) fn write(
    rows: &[RankRow],
    profile: &Profile,
    to: &Path,
) -> Result<Vec<PathBuf>, String> {
    let folder = to.join(FOLDER);
    let failed = |error| format!("cannot make the folder '{}': {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut files = Vec::new();
    for rank in rows.chunk_by(|one, next| one.mpi_rank == next.mpi_rank) {
        let file = folder.join(format!("profile.{}.0.0", rank[0].mpi_rank));
        write_whole(&file, text(rank, profile).as_bytes()).map_err(|error| error.to_string())?;
        files.push(file);
    }
    Ok(files)
}

/// The file of one rank.
fn text(rows: &[RankRow], profile: &Profile) -> String {
    let mut text = String::new();
    let is_call = |row: &&RankRow| row.class != "region";
    let mpi_us: u64 = rows.iter().filter(is_call).map(|row| row.time_ns / 1000).sum();
    // The report says how long the program ran, not how long each rank.
    let wall_us = ((profile.elapsed_s * 1e6) as u64).max(mpi_us);
    let calls = rows.len();
    let _ = writeln!(text, "{} templated_functions_MULTI_TIME", 1 + 2 * calls);
    let _ = writeln!(text, "# Name Calls Subrs Excl Incl ProfileCalls # {}", metadata(&rows[0]));
    let _ = writeln!(
        text,
        "\"{ROOT}\" 1 {calls} {} {wall_us} 0 GROUP=\"TAU_DEFAULT\"",
        wall_us - mpi_us
    );
    for row in rows {
        let _ = writeln!(text, "\"{}\" {}", name(row), numbers(row, ""));
    }
    for row in rows {
        let _ = writeln!(text, "\"{ROOT} => {}\" {}", name(row), numbers(row, "|TAU_CALLPATH"));
    }
    let _ = writeln!(text, "0 aggregates");
    let with_bytes: Vec<&RankRow> = rows.iter().filter(|row| row.bytes > 0).collect();
    let _ = writeln!(text, "{} userevents", with_bytes.len());
    let _ = writeln!(text, "# eventname numevents max min mean sumsqr");
    for row in with_bytes {
        let bytes = row.bytes;
        let squared = bytes as f64 * bytes as f64;
        let _ = writeln!(text, "\"Bytes of {}\" 1 {bytes} {bytes} {bytes} {squared:e}", name(row));
    }
    text
}

fn numbers(row: &RankRow, more: &str) -> String {
    let us = row.time_ns / 1000;
    let (exclusive, group) = match row.class.as_str() {
        "region" => (0, "TAU_USER"),
        _ => (us, "MPI"),
    };
    format!("{} 0 {exclusive} {us} 0 GROUP=\"{group}{more}\"", row.count)
}

fn metadata(row: &RankRow) -> String {
    let attribute = |name: &str, value: &str| {
        format!("<attribute><name>{name}</name><value>{value}</value></attribute>")
    };
    let host: String = visible(&row.host).replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<metadata>{}{}{}</metadata>",
        attribute("Metric Name", "TIME"),
        attribute("Hostname", &host),
        attribute("pid", &row.pid.to_string())
    )
}

/// A name in which readers find no quote, and none of the signs by which they divide it.
fn name(row: &RankRow) -> String {
    let name = visible(&full_name(&row.event, row.communicator_size_class)).replace('"', "\\x22");
    [("=>", "=\\x3e"), ("[{", "[\\x7b"), ("[@", "[\\x40"), (" C ", " \\x43 ")]
        .iter()
        .fold(name, |name, (sign, instead)| name.replace(sign, instead))
}
