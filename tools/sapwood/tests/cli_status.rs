//! `sapwood status` and `sapwood trace-wave` look at networks of other processes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::cli::benchmark::{Running, ask};
use crate::cli::user::{User, pid_of};
use crate::cli::{assert_refused, code, json, text, wait_until, write_program};
use rustix::process::{Signal, kill_process};
use sapwood_schema::assert_fits;
use serde_json::Value;

/// Far longer than anything here takes.
const HANG: Duration = Duration::from_secs(60);

fn node(status: &Value, rank: u64) -> &Value {
    let nodes = status["nodes"].as_array().unwrap();
    nodes.iter().find(|node| node["rank"] == rank).unwrap()
}

/// The fields of a message of Protocol Buffers: a number, and bytes where it is what has a length.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("a number");
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = varint(&mut bytes);
        assert!(matches!(key & 7, 0 | 2), "a kind that we never write: {key}");
        let length = if key & 7 == 2 { number as usize } else { 0 };
        let (content, rest) = bytes.split_at(length);
        fields.push((key >> 3, number, content));
        bytes = rest;
    }
    fields
}

#[test]
fn a_trace_ties_all_clocks_to_the_front_ends() {
    let folder = tempfile::tempdir().unwrap();
    let _running = Running::start(folder.path(), "2x2x2");
    let path = folder.path().join("clocks.pftrace");
    let arguments = ["clocks", "--samples", "3", "--json", "--perfetto", path.to_str().unwrap()];
    let output = ask(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let trace = fs::read(&path).unwrap();
    let packets: Vec<_> = fields(&trace).into_iter().map(|(_, _, packet)| fields(packet)).collect();
    let of = |kind: u64| -> Vec<Vec<(u64, u64, &[u8])>> {
        let all = packets.iter().flatten().filter(|field| field.0 == kind);
        all.map(|field| fields(field.2)).collect()
    };
    let snapshots = of(6);
    assert_eq!(snapshots.len(), 3);
    // The last one is what the report says.
    let clocks: Vec<(u64, u64)> = snapshots[2]
        .iter()
        .filter(|field| field.0 == 1)
        .map(|field| fields(field.2))
        .map(|clock| (clock[0].1, clock[1].1))
        .collect();
    let time = |number: u64| clocks.iter().find(|clock| clock.0 == number).map(|clock| clock.1);
    let own = time(3).expect("the monotonic clock");
    let known = report["clocks"].as_array().unwrap();
    for clock in known {
        let rank = clock["rank"].as_u64().unwrap();
        let ahead = clock["ahead_ns"].as_i64().unwrap();
        assert_eq!(time(128 + rank), own.checked_add_signed(ahead), "{clock}");
    }
    assert_eq!(of(60).len(), 4 * known.len(), "a track of each process, and its three counters");
    assert!(of(11).len() >= 3 * 3, "counters of all that were known each time");
    let nowhere = ["clocks", "--samples", "1", "--perfetto", "/no/such/folder/x"];
    assert_refused(&ask(folder.path(), &nowhere), "/no/such/folder/x", &nowhere);
}

#[test]
fn the_clocks_of_one_machine_agree_within_their_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "2x2x2");
    let output = ask(folder.path(), &["clocks", "--samples", "5", "--drift", "100ms", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("clocks-1", &report);
    assert_eq!(report["network"], running.name.as_str());
    let clocks = report["clocks"].as_array().unwrap();
    let unknown = report["unknown"].as_str().unwrap();
    assert!(clocks.len() == 15 || !unknown.is_empty(), "{report}");
    for clock in clocks {
        let number = |name: &str| clock[name].as_f64().unwrap();
        assert!(number("ahead_ns").abs() <= number("error_ns"), "{clock}");
        assert!(number("drift_ppm").abs() <= number("drift_error_ppm"), "{clock}");
    }
    let table = ask(folder.path(), &["clocks", "--samples", "1"]);
    let table = text(&table.stdout);
    assert!(table.contains("front-end") && table.contains("+- us"), "{table}");
    assert_refused(&ask(folder.path(), &["clocks", "--samples", "0"]), "1..=100000", &["clocks"]);
}

#[test]
fn a_running_network_is_drawn_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "2x2x2");
    let status = json(&ask(folder.path(), &["status", "--json", "--timeout", "60s"]));
    assert_fits("status-1", &status);
    assert_eq!(status["network"], running.name);
    assert_eq!(status["health"], "full");
    assert_eq!(status["back_ends"]["answered"], "0-7");
    assert_eq!(status["nodes"].as_array().unwrap().len(), 15);
    for rank in 0..15 {
        let node = node(&status, rank);
        assert_eq!(node["answered"], true, "{node}");
        assert!(node["waves_per_s"].is_number() && node["fill"].is_number(), "{node}");
    }
    let output = ask(folder.path(), &["status", "--timeout", "60s"]);
    let picture = text(&output.stdout);
    assert!(picture.contains("full, 8 of 8 back-ends answered"), "{picture}");
    assert!(picture.contains("├─ communication process 9  full"), "{picture}");
    assert!(picture.contains("└─ 2 back-ends 6-7  full"), "{picture}");
    assert!(!picture.contains('\x1b'), "no colours but on a terminal");
}

#[test]
fn the_way_of_a_wave_is_told_hop_by_hop() {
    let folder = tempfile::tempdir().unwrap();
    let _running = Running::start(folder.path(), "2x2x2");
    let trace = json(&ask(folder.path(), &["trace-wave", "--json", "--timeout", "60s"]));
    assert_fits("trace-wave-1", &trace);
    let hops = trace["hops"].as_array().unwrap();
    assert_eq!(hops.len(), 15);
    assert!(hops.iter().all(|hop| hop["at_parent_us"].is_number() || hop["rank"] == 8));
    let path: Vec<u64> =
        trace["slowest_path"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert_eq!((path.len(), path[0]), (4, 8), "one process of each level: {path:?}");
    let output = ask(folder.path(), &["trace-wave", "--timeout", "60s"]);
    let picture = text(&output.stdout);
    assert_eq!(picture.matches('*').count(), 5, "{picture}");
}

#[test]
fn colours_are_there_where_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let _running = Running::start(folder.path(), "2");
    for command in ["status", "trace-wave"] {
        let coloured = |words: &[&str]| {
            let output = ask(folder.path(), &[&[command, "--timeout", "60s"], words].concat());
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            text(&output.stdout).contains("\x1b[")
        };
        assert!(coloured(&["--color", "always"]), "{command}");
        assert!(!coloured(&["--color=never"]) && !coloured(&["--color=auto"]), "{command}");
        assert!(!coloured(&["--json", "--color=always"]), "{command}: JSON has none");
        let output = ask(folder.path(), &[command, "--color", "often"]);
        assert_refused(&output, "invalid value 'often' for '--color", &[command]);
    }
}

#[test]
fn an_inner_process_is_killed_and_the_repair_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let _running = Running::start(folder.path(), "2x2x2");
    let ask_json = |timeout: &str| -> Value {
        let output = ask(folder.path(), &["status", "--json", "--timeout", timeout]);
        let status: Value = serde_json::from_slice(&output.stdout).expect("a status");
        let is_whole = status["back_ends"]["missing"] == "";
        assert_eq!(code(&output), Some(if is_whole { 0 } else { 255 }), "{status}");
        status
    };
    let before = ask_json("60s");
    let pid = node(&before, 9)["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let begin = Instant::now();
    let after = loop {
        let status = ask_json("10s");
        let is_whole = status["back_ends"]["answered"] == "0-7";
        if is_whole && node(&status, 8)["orphans_adopted"] == 2 {
            break status;
        }
        assert!(begin.elapsed() < HANG, "{status}");
    };
    assert_fits("status-1", &after);
    assert_eq!(after["health"], "degraded");
    assert_eq!(node(&after, 8)["children_gone"], 1);
    assert_eq!(node(&after, 9)["answered"], false);
    assert_eq!(node(&after, 9)["health"], "lost");
    for orphan in [11, 12] {
        assert_eq!(node(&after, orphan)["parent"], 8);
        assert_eq!(node(&after, orphan)["planned_parent"], 9);
    }
}

#[test]
fn back_ends_that_are_missing_are_named_with_their_hosts_and_change_the_exit_code() {
    let user = User::new();
    // All of them are this machine.
    let shell = user.folder.path().join("shell");
    write_program(&shell, "#!/bin/sh\nshift; exec sh -c \"$*\"\n");
    let reach = ["-R", "ssh", "--remote-shell", shell.to_str().unwrap(), "--return-after", "0"];
    user.up(&[&reach[..], &["-w", "n[0-3]", "-f", "4"]].concat());
    let shown = user.say(&["status", "--timeout", "60s"]);
    let own = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    let said = text(&shown.stdout);
    assert_eq!(code(&shown), Some(0), "{said}");
    assert!(said.contains(&format!("4 back-ends 0-3  full  n[0-3] ({own})")), "{said}");
    let agents = ["n1", "n2"].map(|host| user.agent(&["--network", "warm", "-w", host]));
    for agent in agents {
        kill_process(pid_of(agent), Signal::KILL).unwrap();
    }
    let words = ["status", "--json", "--tree", "warm", "--timeout", "60s"];
    let mut shown = user.say(&words);
    let read = |shown: &Output| -> Value { serde_json::from_slice(&shown.stdout).unwrap() };
    wait_until("the tree has not noticed", || {
        shown = user.say(&words);
        read(&shown)["back_ends"]["missing"] == "1-2"
    });
    assert_eq!(code(&shown), Some(255));
    let status = read(&shown);
    assert_fits("status-1", &status);
    for (rank, is_there) in [(0, true), (1, false), (2, false), (3, true)] {
        let node = node(&status, rank);
        assert_eq!(node["planned_host"], format!("n{rank}"));
        assert_eq!(node["answered"], is_there, "{node}");
    }
    assert_eq!(node(&status, 0)["host"], own);
    let shown = user.say(&["status", "--timeout", "60s"]);
    let said = text(&shown.stdout);
    assert_eq!(code(&shown), Some(255), "{said}");
    let is_told =
        |line: &str| ["lost  n1: ", "lost  n[1-2]: "].iter().any(|row| line.contains(row));
    assert!(said.lines().any(is_told), "{said}");
}

#[test]
fn of_several_networks_one_has_to_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) =
        (Running::start(folder.path(), "2x2x2"), Running::start(folder.path(), "2x2x2"));
    let unnamed = ask(folder.path(), &["status"]);
    assert_refused(&unnamed, "choose one with --network", &["status"]);
    for running in [&one, &two] {
        let arguments = ["status", "--json", "--timeout", "60s", "--network", &running.name];
        assert_eq!(json(&ask(folder.path(), &arguments))["network"], running.name);
    }
    let unknown = ask(folder.path(), &["trace-wave", "--network", "unknown"]);
    assert_refused(&unknown, "no visible network is called 'unknown'", &["trace-wave"]);
    let clocks = ["clocks", "--json", "--samples", "1", "--timeout", "60s", "--network", &two.name];
    assert_eq!(json(&ask(folder.path(), &clocks))["network"], two.name);
}

#[test]
fn what_a_killed_process_has_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    drop(Running::start(folder.path(), "2x2x2"));
    let inside = || -> BTreeSet<String> {
        let entries = fs::read_dir(folder.path().join("sapwood")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(inside().len(), 2);
    assert_refused(&ask(folder.path(), &["status"]), "no visible network", &["status"]);
    assert_eq!(inside(), BTreeSet::new());
    fs::write(folder.path().join("sapwood/odd.network"), "sapwood-network 1\npid x\n").unwrap();
    assert_refused(&ask(folder.path(), &["status"]), "no visible network", &["status"]);
}

#[test]
fn a_network_that_ends_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut running = Running::start(folder.path(), "2x2x2");
        let pid = i32::try_from(running.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        // Once it answers, it waits for signals.
        let answer = ask(folder.path(), &["status", "--timeout", "60s"]);
        assert!(answer.status.success(), "{}", text(&answer.stderr));
        rustix::process::kill_process(pid, signal).unwrap();
        let status = running.child.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()));
        assert_eq!(fs::read_dir(folder.path().join("sapwood")).unwrap().count(), 0);
    }
    let arguments = [
        "bench",
        "tree",
        "--topology",
        "2",
        "--runs",
        "1",
        "--only",
        "round_trip",
        "--rounds",
        "3",
    ];
    assert!(ask(folder.path(), &arguments).status.success());
    assert_eq!(fs::read_dir(folder.path().join("sapwood")).unwrap().count(), 0);
    let mode = fs::metadata(folder.path().join("sapwood")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn watching_ends_with_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "2x2x2");
    let mut watching = crate::cli::command()
        .args(["status", "--json", "--watch", "100ms"])
        .env("XDG_RUNTIME_DIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It ends once it has seen the network.
    let mut said = BufReader::new(watching.stdout.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    drop(running);
    let rest: Vec<String> = said.map(Result::unwrap).collect();
    let output = watching.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in std::iter::once(&first).chain(&rest) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_fits("status-1", &line);
    }
}

#[test]
fn a_busy_front_end_is_not_waited_for_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "2x2x2");
    let pid = rustix::process::Pid::from_raw(i32::try_from(running.child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let process = format!("is process {}", running.child.id());
    for command in ["status", "trace-wave", "clocks"] {
        let output = ask(folder.path(), &[command, "--timeout", "100ms"]);
        assert_eq!(output.status.code(), Some(124), "{command}");
        let said = text(&output.stderr);
        let is_one_line = said.lines().count() == 1;
        assert!(is_one_line && said.contains("no answer from the front-end"), "{command}: {said}");
        assert!(said.contains(&process), "{command}: {said}");
    }
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, what) in [
        (&["status", "--timeout", "0ms"][..], "from 1ms to 60s"),
        (&["status", "--timeout", "soon"], "not a time"),
        (&["status", "--watch", "1ms"], "100ms"),
        (&["trace-wave", "--watch"], "--watch"),
        (&["status", "here"], "here"),
    ] {
        assert_refused(&ask(folder.path(), arguments), what, arguments);
    }
    let open = folder.path().join("sapwood");
    fs::create_dir_all(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    assert_refused(&ask(folder.path(), &["status"]), "others may enter it", &["status"]);
}
