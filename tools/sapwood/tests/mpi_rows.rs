//! From the ranks' tables to the files of a report, through a real tree, without any MPI: a small
//! program stands for the ranks, so that every number is known beforehand.

#[path = "../../../crates/launch/tests/surroundings/mod.rs"]
mod surroundings;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Output;

use parquet::file::reader::{FileReader, SerializedFileReader};
use sapwood_profile::Function;
use serde_json::Value;
use surroundings::clean_command;

const RANKS: u64 = 5;

fn barrier() -> u32 {
    Function::named("MPI_Barrier").expect("every MPI has it").id
}

/// Runs the standing-in program under observation. A library that is loaded anyway stands for the
/// shim, so that something can be preloaded.
fn watched(folder: &Path, tree: &[&str]) -> Output {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells it");
    let library = maps.split_whitespace().find(|word| word.contains("/libc.so"));
    let shim = folder.join("libsapwood-mpi-openmpi.so");
    if !shim.exists() {
        let library = library.expect("tests are linked to the C library");
        std::os::unix::fs::symlink(library, shim).expect("the folder may be written");
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mpi/counting_ranks.py");
    clean_command(env!("CARGO_BIN_EXE_sapwood"))
        .args(["mpi", "--mpi", "openmpi", "--ranks", &RANKS.to_string(), "--out"])
        .arg(folder.join("out"))
        .args(tree)
        .args(["--", "python3"])
        .arg(program)
        .arg(RANKS.to_string())
        .env("SAPWOOD_LIB_DIR", folder)
        .env("BARRIER", barrier().to_string())
        .output()
        .expect("the command was built")
}

/// The rows of the file as text, without the columns that differ from run to run.
fn rows(file: PathBuf) -> Vec<String> {
    let file = File::open(file).expect("the report has its rows");
    let reader = SerializedFileReader::new(file).expect("it is a Parquet file");
    let rows = reader.get_row_iter(None).expect("it has rows");
    rows.map(|row| {
        let row = row.expect("a row that can be read");
        let columns = row.get_column_iter().filter(|(name, _)| name.as_str() != "pid");
        let cells: Vec<String> = columns.map(|(_, cell)| cell.to_string()).collect();
        cells.join(" ")
    })
    .collect()
}

fn expected_row(rank: u64) -> String {
    let state = if rank == RANKS - 1 { "lost" } else { "finalized" };
    let (count, time_ns, bytes) = (rank + 1, 1000 * (rank + 1) * (rank + 1), 10 * rank);
    // A collective sends and receives no messages.
    format!(
        "{rank} \"host\" \"{state}\" \"MPI_Barrier\" \"collective\" 3 {count} {time_ns} {bytes} 0 0"
    )
}

#[test]
fn what_ranks_have_counted_arrives_whatever_the_tree() {
    for tree in [&["--topology", "1x1x1"], &["--topology", "2^2"], &["--ranks-per-leaf", "1"]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = watched(folder.path(), tree);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "the program's own code; {errors}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text, "all ranks have counted\n");
        assert!(errors.contains("MPI_Barrier (5-8)"), "{errors}");

        let out = folder.path().join("out");
        let expected: Vec<String> = (0..RANKS).map(expected_row).collect();
        assert_eq!(rows(out.join("ranks.parquet")), expected);

        let json = std::fs::read_to_string(out.join("profile.json")).expect("it was left");
        let profile: Value = serde_json::from_str(&json).expect("it is JSON");
        sapwood_schema::assert_fits("profile-1", &profile);
        assert_eq!(profile["covered"], "0-4");
        assert_eq!(profile["states"]["finalized"], "0-3");
        assert_eq!(profile["states"]["lost"], "4");
        assert_eq!(profile["dropped"], (0..RANKS).sum::<u64>());
        let event = &profile["events"][0];
        assert_eq!(event["calls"]["sum"], (1..=RANKS).sum::<u64>());
        assert_eq!(event["time_ns"]["sum"], 1000 * (1..=RANKS).map(|n| n * n).sum::<u64>());
        assert_eq!(event["time_ns"]["max_rank"], RANKS - 1);
        assert_eq!(event["bytes"]["max"], 10 * (RANKS - 1));
        assert_eq!(event["bytes"]["mean"], 20.0);
    }
}

#[test]
fn a_wrong_number_of_ranks_is_corrected_by_the_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let output = clean_command(env!("CARGO_BIN_EXE_sapwood"))
        .args(["mpi", "--mpi", "openmpi", "--ranks", "4", "--out"])
        .arg(&out)
        .args(["--", "python3"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mpi/counting_ranks.py"))
        .arg(RANKS.to_string())
        .env("SAPWOOD_LIB_DIR", shim_folder(folder.path()))
        .env("BARRIER", barrier().to_string())
        .output()
        .expect("the command was built");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let profile = std::fs::read_to_string(out.join("profile.json")).expect("a report");
    let profile: Value = serde_json::from_str(&profile).expect("JSON");
    assert_eq!((&profile["world_size"], &profile["ranks_covered"]), (&5.into(), &5.into()));
    assert_eq!(profile["missing"], Value::Array(Vec::new()), "{errors}");
}

fn shim_folder(folder: &Path) -> &Path {
    std::fs::write(folder.join("libsapwood-mpi-openmpi.so"), "").expect("it may be written");
    folder
}
