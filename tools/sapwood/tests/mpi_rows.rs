//! From the ranks' tables to the files of a report, through a real tree, without any MPI: a small
//! program stands for the ranks, so that every number is known beforehand.

mod cli;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use cli::{clean_command, read_until};
use parquet::file::reader::{FileReader, SerializedFileReader};
use sapwood_profile::Function;
use serde_json::Value;

const RANKS: u64 = 5;
/// Steps that ranks take until enough rounds are whole, and rounds for one of them, at most.
const STEPS_MAX: usize = 100;

fn barrier() -> u32 {
    Function::named("MPI_Barrier").expect("every MPI has it").id
}

/// The command that watches the standing-in program, in a mode of its own if one is given. A
/// library that is loaded anyway stands for the shim, so that something can be preloaded.
fn watching(folder: &Path, tree: &[&str], mode: Option<&str>) -> Command {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells it");
    let library = maps.split_whitespace().find(|word| word.contains("/libc.so"));
    let shim = folder.join("libsapwood-mpi-openmpi.so");
    if !shim.exists() {
        let library = library.expect("tests are linked to the C library");
        std::os::unix::fs::symlink(library, shim).expect("the folder may be written");
    }
    let out = folder.join("out");
    let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood"));
    command.args(["mpi", "--mpi", "openmpi", "--ranks", &RANKS.to_string(), "--out"]);
    command.arg(&out).args(tree).args(["--", "python3"]).arg(program()).arg(RANKS.to_string());
    if let Some(mode) = mode {
        command.arg(mode).arg(out.join("rounds.ndjson"));
    }
    command.env("SAPWOOD_LIB_DIR", folder).env("BARRIER", barrier().to_string());
    command
}

/// Runs it to its end.
fn watched(folder: &Path, tree: &[&str], mode: Option<&str>) -> Output {
    watching(folder, tree, mode).output().expect("the command was built")
}

/// Begins it in a mode of its own, with pipes to the ranks. No round comes by itself.
fn begun(folder: &Path, tree: &[&str], mode: &str) -> Child {
    let options = [tree, &["--interval", "1h"]].concat();
    watching(folder, &options, Some(mode))
        .env("XDG_RUNTIME_DIR", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command was built")
}

/// Asks or orders one that was begun.
fn control(folder: &Path, run: &Child, words: &[&str]) -> Output {
    clean_command(env!("CARGO_BIN_EXE_sapwood"))
        .args(["mpi", "control", "--network"])
        .arg(format!("mpi-{}", run.id()))
        .args(words)
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .expect("the command was built")
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mpi/counting_ranks.py")
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

fn expected_row(rank: u64, lost: &[u64]) -> String {
    let state = if lost.contains(&rank) { "lost" } else { "finalized" };
    let (count, time_ns, bytes) = (rank + 1, 1000 * (rank + 1) * (rank + 1), 10 * rank);
    // A collective sends and receives no messages.
    format!(
        "{rank} \"host\" \"{state}\" \"MPI_Barrier\" \"collective\" 3 {count} {time_ns} {bytes} 0 0"
    )
}

/// Checks the files of a run whose ranks have all come; gives `profile.json`.
fn checked(out: &Path, lost: &[u64]) -> Value {
    let expected: Vec<String> = (0..RANKS).map(|rank| expected_row(rank, lost)).collect();
    assert_eq!(rows(out.join("ranks.parquet")), expected);

    let json = std::fs::read_to_string(out.join("profile.json")).expect("it was left");
    let profile: Value = serde_json::from_str(&json).expect("it is JSON");
    sapwood_schema::assert_fits("profile-1", &profile);
    assert_eq!(profile["covered"], "0-4");
    assert_eq!(profile["missing"], Value::Array(Vec::new()));
    assert_eq!(profile["dropped"], (0..RANKS).sum::<u64>());
    let event = &profile["events"][0];
    assert_eq!(event["calls"]["sum"], (1..=RANKS).sum::<u64>());
    assert_eq!(event["time_ns"]["sum"], 1000 * (1..=RANKS).map(|n| n * n).sum::<u64>());
    assert_eq!(event["time_ns"]["max_rank"], RANKS - 1);
    assert_eq!(event["bytes"]["max"], 10 * (RANKS - 1));
    assert_eq!(event["bytes"]["mean"], 20.0);
    check_time(&profile["time"], lost);
    profile
}

/// Compares the division of time and the efficiencies with those of the ranks, one by one: lost
/// ranks were inside of their last call for 5 ms.
fn check_time(time: &Value, lost: &[u64]) {
    let waited = |rank: u64| if lost.contains(&rank) { 5_000_000 } else { 0 };
    let wall: Vec<u64> = (0..RANKS).map(|rank| (10 + rank) * 1_000_000).collect();
    let mpi: Vec<u64> =
        (0..RANKS).map(|rank| 1000 * (rank + 1) * (rank + 1) + waited(rank)).collect();
    let compute: Vec<u64> = wall.iter().zip(&mpi).map(|(wall, mpi)| wall - mpi).collect();
    let share: Vec<u64> = wall.iter().zip(&mpi).map(|(wall, mpi)| mpi * 1_000_000 / wall).collect();
    for (name, values) in
        [("wall_ns", &wall), ("mpi_ns", &mpi), ("compute_ns", &compute), ("mpi_ppm", &share)]
    {
        let metric = &time[name];
        assert_eq!(metric["sum"], values.iter().sum::<u64>(), "{name}");
        assert_eq!(metric["min"].as_u64(), values.iter().copied().min(), "{name}");
        assert_eq!(metric["max"].as_u64(), values.iter().copied().max(), "{name}");
    }
    let largest = |values: &[u64]| values.iter().copied().max().expect("a rank") as f64;
    let mean = compute.iter().sum::<u64>() as f64 / RANKS as f64;
    let (load_balance, communication) =
        (mean / largest(&compute), largest(&compute) / largest(&wall));
    for (name, expected) in [
        ("load_balance", load_balance),
        ("communication", communication),
        ("parallel", load_balance * communication),
    ] {
        let found = time["efficiency"][name].as_f64().expect("a number");
        assert!((found - expected).abs() < 1e-12, "{name}: {found}, not {expected}");
    }
}

#[test]
fn what_ranks_have_counted_arrives_whatever_the_tree() {
    for tree in [&["--topology", "1x1x1"], &["--topology", "2^2"], &["--ranks-per-leaf", "1"]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = watched(folder.path(), tree, None);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "the program's own code; {errors}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text, "all ranks have counted\n");
        assert!(errors.contains("MPI_Barrier (5-8)"), "{errors}");

        let profile = checked(&folder.path().join("out"), &[RANKS - 1]);
        assert_eq!(profile["states"]["finalized"], "0-3");
        assert_eq!(profile["states"]["lost"], "4");
    }
}

#[test]
fn ranks_that_die_hang_and_come_late_have_their_own_times_and_counts_whatever_the_tree() {
    for tree in [&["--topology", "1x1x1"], &["--topology", "2^2"], &["--ranks-per-leaf", "1"]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = [&tree[..], &["--interval", "500ms"]].concat();
        let output = watched(folder.path(), &options, Some("fail"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "the program's own code; {errors}");

        let profile = checked(&folder.path().join("out"), &[2, 3]);
        assert_eq!(profile["states"]["finalized"], "0-1,4", "{errors}");
        assert_eq!(profile["states"]["lost"], "2-3", "{errors}");
    }
}

#[test]
fn a_process_that_sends_wrong_hellos_without_an_end_keeps_no_rank_away() {
    for tree in [&["--topology", "1x1x1"], &["--ranks-per-leaf", "1"]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = [&tree[..], &["--interval", "500ms"]].concat();
        let output = watched(folder.path(), &options, Some("flood"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "the program's own code; {errors}");
        checked(&folder.path().join("out"), &[RANKS - 1]);
        // Thousands were sent, and the leaf tells of the first only.
        let told = errors.matches(" is not observed: ").count();
        assert!((1..=16).contains(&told), "{errors}");
    }
}

#[test]
fn connections_that_announce_no_rank_keep_none_away() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = ["--topology", "1x1x1", "--interval", "500ms"];
    let output = watched(folder.path(), &options, Some("silent"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "the program's own code; {errors}");
    checked(&folder.path().join("out"), &[RANKS - 1]);
    let told: Vec<&str> =
        errors.split("sapwood: no rank was announced within 10 s by ").skip(1).collect();
    let [told] = told[..] else { panic!("not once: {errors}") };
    // On a busy machine some of those that have a place have come later than the first.
    let (closed, rest) = told.split_once(" of 256 connections, the first of ").expect("numbers");
    let closed: usize = closed.parse().expect("a number");
    assert!((1..=256).contains(&closed) && rest.starts_with("them of process "), "{errors}");
}

#[test]
fn a_change_waits_for_no_rank_that_has_finalized_and_lives_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut run = begun(folder.path(), &["--topology", "1x1x1"], "finalized");
    let mut said = run.stdout.take().expect("it is a pipe");
    let counted = read_until(&mut said, |line| line.ends_with('\n'));
    assert_eq!(counted, "all ranks have counted\n");
    let change = || {
        let words = ["--groups", "calls", "--timeout", "1s"];
        let output = control(folder.path(), &run, &words);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // Rank 4 runs and makes no call. Until the leaf has reported its ranks, none is named.
    let mut answers = (0..STEPS_MAX).map(|_| change());
    let named = answers.find(|errors| errors.contains("not applied the change yet"));
    let named = named.expect("a rank that is late");
    assert!(named.starts_with("sapwood: rank 4 has not applied the change yet: "), "{named}");
    drop(run.stdin.take());
    assert_eq!(run.wait().expect("it was started").code(), Some(3));
}

/// Asks a run for a round, and gives whether all ranks were in it.
fn is_whole_round(folder: &Path, run: &Child) -> bool {
    let output = control(folder, run, &["--flush", "--json", "--timeout", "100s"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reply: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    reply["running"] == "0-4"
}

/// Has the ranks take steps, with a round behind each, until there are as many steps whose round
/// had all ranks; gives `profile.json`.
fn steps_of_all(folder: &Path, tree: &[&str], wanted: usize) -> Value {
    let mut run = begun(folder, tree, "steps");
    let mut orders = run.stdin.take().expect("it is a pipe");
    let mut said = run.stdout.take().expect("it is a pipe");
    let mut hear = |expected: &str| {
        assert_eq!(read_until(&mut said, |line| line.ends_with('\n')), expected);
    };
    hear("all ranks have counted\n");
    let mut whole = 0;
    for _ in 0..STEPS_MAX {
        // What a leaf answers too late is of no interval: it must have answered before the step.
        let is_level = (0..STEPS_MAX).any(|_| is_whole_round(folder, &run));
        assert!(is_level, "no round of all ranks");
        if whole == wanted {
            break;
        }
        orders.write_all(b"\n").expect("it reads");
        hear("a step\n");
        whole += usize::from(is_whole_round(folder, &run));
    }
    drop(orders);
    assert_eq!(run.wait().expect("it was started").code(), Some(3));
    assert_eq!(whole, wanted);
    let json = std::fs::read_to_string(folder.join("out/profile.json")).expect("it was left");
    serde_json::from_str(&json).expect("it is JSON")
}

#[test]
fn the_efficiencies_of_an_interval_are_those_of_what_each_rank_did_in_it() {
    // In a step rank r runs for 10 + 2 r ms, of which r + 1 ms are in MPI.
    let share = (0..RANKS).map(|rank| (rank + 1) * 1_000_000 / (10 + 2 * rank)).sum::<u64>();
    let (load_balance, communication) = (11.0 / 13.0, 13.0 / 18.0);
    let expected = [
        ("mpi_share", share as f64 / RANKS as f64 / 1e6),
        ("load_balance", load_balance),
        ("communication", communication),
        ("parallel", load_balance * communication),
    ];
    for tree in [&["--topology", "1x1x1"], &["--topology", "2^2"], &["--ranks-per-leaf", "1"]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let profile = steps_of_all(folder.path(), tree, 3);
        let intervals = profile["intervals"].as_array().expect("a list");
        let is_expected = |interval: &&Value| {
            expected.iter().all(|&(name, expected)| {
                let found = interval[name].as_f64().expect("a number");
                (found - expected).abs() < 1e-12
            })
        };
        // Another one is of a step whose round lacked ranks.
        let found = intervals.iter().filter(is_expected).count();
        assert_eq!(found, 3, "{intervals:?}, not {expected:?}");
    }
}

#[test]
fn ranks_that_are_on_other_hosts_are_named_by_the_one_that_attaches() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rank = clean_command("python3")
        .arg(program())
        .args([RANKS.to_string().as_str(), "alone"])
        .env("BARRIER", barrier().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it is installed");
    let mut said = rank.stdout.take().expect("it is a pipe");
    assert_eq!(read_until(&mut said, |line| line.ends_with('\n')), "rank 0 has counted\n");

    let out = folder.path().join("out");
    let mut watcher = clean_command(env!("CARGO_BIN_EXE_sapwood"))
        .args(["mpi", "attach", rank.id().to_string().as_str(), "--quiet", "--out"])
        .arg(&out)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    let mut errors = watcher.stderr.take().expect("it is a pipe");
    let mut told = read_until(&mut errors, |told| told.contains("not found on this host"));
    // What ends the rank, and with it the watch.
    drop(rank.stdin.take());
    told += &read_until(&mut errors, |_| false);
    let code = watcher.wait().expect("it was started").code();
    assert_eq!(rank.wait().expect("it was started").code(), Some(0));
    let lacking = "sapwood: not found on this host: ranks 1-4 of 5; they have ended, have not ";
    assert_eq!(told.matches(lacking).count(), 1, "{told}");
    assert_eq!(code, Some(0), "{told}");
    let profile = std::fs::read_to_string(out.join("profile.json")).expect("a report");
    let profile: Value = serde_json::from_str(&profile).expect("JSON");
    assert_eq!(profile["covered"], "0");
    assert_eq!(profile["missing"][0]["ranks"], "1-4", "{told}");
}

#[test]
fn a_wrong_number_of_ranks_is_corrected_by_the_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let output = clean_command(env!("CARGO_BIN_EXE_sapwood"))
        .args(["mpi", "--mpi", "openmpi", "--ranks", "4", "--out"])
        .arg(&out)
        .args(["--", "python3"])
        .arg(program())
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
