//! `sapwood top` with real processes: what is shown of hosts, of which each has files of its own,
//! and what becomes of those that hang, die or lack something.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use crate::cli::{LIMIT, assert_refused, assert_signals_end_reaching, read_until, text};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use sapwood_schema::assert_fits;
use serde_json::Value;
use tempfile::TempDir;

/// For tests in which no host is to be missing, however busy the machine is.
const PATIENT: [&str; 2] = ["--wave-timeout", "60"];

fn command(arguments: &[&str]) -> Command {
    crate::cli::on_hosts(&[&["top"], arguments].concat())
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// The files of this number of hosts: host r has a load of r, 1000 - r MiB available of 1000, has
/// received r bytes, and no pressure. Only the first has disks.
fn hosts(count: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..count {
        let proc = folder.path().join(format!("n{rank}/proc"));
        std::fs::create_dir_all(proc.join("net")).unwrap();
        let available = (1000 - rank) * 1024;
        let files = [
            ("stat", "cpu 10 0 10 80 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0\n".to_string()),
            ("loadavg", format!("{rank}.00 1.00 2.00 1/100 99\n")),
            ("meminfo", format!("MemTotal: 1024000 kB\nMemAvailable: {available} kB\n")),
            ("uptime", "500.0 1.0\n".to_string()),
            ("net/dev", received(u64::from(rank))),
        ];
        for (name, content) in files {
            std::fs::write(proc.join(name), content).unwrap();
        }
        if rank == 0 {
            std::fs::write(proc.join("diskstats"), "8 0 sda 1 0 2 0 1 0 2 0 0 5 0\n").unwrap();
        }
    }
    folder
}

fn received(bytes: u64) -> String {
    format!("Inter-|\n face |\n  eth0: {bytes} 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n")
}

fn root(folder: &TempDir) -> String {
    format!("{}/%h", folder.path().display())
}

fn metric<'a>(sample: &'a Value, name: &str) -> &'a Value {
    let metrics = sample["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap()
}

/// A watch that writes lines of JSON until it is ended.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child =
            command(&[&["--json", "--interval", "0.4"], arguments].concat()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// The first sample that is such.
    fn next_where(&mut self, is_such: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + LIMIT;
        loop {
            let sample = self.next();
            if is_such(&sample) {
                return sample;
            }
            assert!(Instant::now() < until, "the last sample: {sample}");
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn end(mut self, signal: Signal) -> Output {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.lines.by_ref().for_each(drop);
        self.child.wait_with_output().unwrap()
    }
}

/// The agents below a process.
fn agents(pid: u32) -> Vec<Pid> {
    let children = |pid: u32| -> Vec<u32> {
        let path = format!("/proc/{pid}/task/{pid}/children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    let mut left = vec![pid];
    let mut found = Vec::new();
    while let Some(pid) = left.pop() {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if line.split(|&byte| byte == 0).any(|word| word == b"top-agent") {
            found.extend(Pid::from_raw(pid as i32));
        }
        left.extend(children(pid));
    }
    found
}

#[test]
fn statistics_and_the_worst_hosts_are_the_same_for_every_tree() {
    let folder = hosts(9);
    for fan_out in ["1", "2", "16"] {
        let output = run(&[
            PATIENT[0],
            PATIENT[1],
            "--json",
            "--once",
            "--interval",
            "0.3",
            "--worst",
            "2",
            "-f",
            fan_out,
            "--root",
            &root(&folder),
            "-w",
            "n[0-8]",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let sample: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_fits("top-1", &sample);
        assert_eq!(sample["count"], 9);
        assert_eq!(sample["answered"]["nodes"], "n[0-8]");
        let load = metric(&sample, "load.1");
        assert_eq!((&load["mean"], &load["sum"]), (&4.0.into(), &36.0.into()), "{fan_out}");
        assert_eq!(load["max"]["host"], "n8");
        let worst: Vec<&Value> =
            load["worst"].as_array().unwrap().iter().map(|worst| &worst["host"]).collect();
        assert_eq!(worst, ["n8", "n7"]);
        // The lowest is the worst of what should be plenty.
        assert_eq!(metric(&sample, "memory.available")["worst"][0]["host"], "n8");
        let deviation = load["standard_deviation"].as_f64().unwrap();
        assert!((deviation - (60.0_f64 / 9.0).sqrt()).abs() < 1e-9, "{deviation}");
    }
}

#[test]
fn what_a_host_does_not_tell_is_absent_and_named() {
    let folder = hosts(4);
    let root = root(&folder);
    let arguments = ["--once", "--interval", "0.3", "--root", &root, "-w", "n[0-3]"];
    let arguments = [&PATIENT[..], &arguments[..]].concat();
    let output = run(&arguments);
    let said = text(&output.stdout);
    assert!(said.starts_with("4 of 4 hosts in "), "{said}");
    let absent = "absent: pressure.cpu, pressure.memory, pressure.io on n[0-3] (4)";
    assert!(said.contains(absent) || said.contains(", pressure.cpu, pressure.memory"), "{said}");
    assert!(said.contains("absent: disk.read, disk.written, disk.busy on n[1-3] (3)"), "{said}");
    assert!(
        said.contains("worst by cpu.busy: \n") || said.contains("worst by cpu.busy:\n"),
        "{said}"
    );
    let json = run(&[&["--json"], &arguments[..]].concat());
    let sample: Value = serde_json::from_slice(&json.stdout).unwrap();
    let disk = metric(&sample, "disk.read");
    assert_eq!((&disk["count"], &disk["mean"]), (&1.into(), &0.0.into()));
    assert_eq!(disk["lacking"]["nodes"], "n[1-3]");
    assert!(metric(&sample, "pressure.io").get("mean").is_none());
}

#[test]
fn this_machine_is_shown_as_it_is() {
    let output =
        run(&[&PATIENT[..], &["--json", "--count", "2", "--interval", "0.3", "-w", "n[0-1]"]]
            .concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let samples: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(samples.len(), 2);
    for sample in &samples {
        let busy = metric(sample, "cpu.busy")["mean"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&busy), "{busy}");
        let total = metric(sample, "memory.total")["sum"].as_f64().unwrap();
        assert!(total > 1e8, "both stand on a machine that has memory");
    }
}

#[test]
fn a_rate_is_what_was_added_in_the_time_between() {
    let folder = hosts(3);
    let mut running =
        Running::start(&[&PATIENT[..], &["--root", &root(&folder), "-w", "n[0-2]"]].concat());
    let first = running.next();
    assert_eq!(metric(&first, "net.received")["max"]["value"], 0.0);
    std::fs::write(folder.path().join("n1/proc/net/dev"), received(1_000_000_000)).unwrap();
    let sample = running
        .next_where(|sample| metric(sample, "net.received")["max"]["value"].as_f64() > Some(0.0));
    let received = metric(&sample, "net.received");
    assert_eq!(received["worst"][0]["host"], "n1");
    // All of it in one interval of the agent's.
    assert!(received["sum"].as_f64().unwrap() > 1e8, "{received}");
    assert_eq!(running.end(Signal::INT).status.code(), Some(130));
}

#[test]
fn a_host_that_hangs_is_named_and_comes_back_and_one_that_dies_stays_away() {
    let folder = hosts(6);
    let mut running = Running::start(&["-f", "2", "--root", &root(&folder), "-w", "n[0-5]"]);
    running.next();
    let agents = agents(running.pid());
    assert_eq!(agents.len(), 6);
    kill_process(agents[0], Signal::STOP).unwrap();
    let sample = running.next_where(|sample| sample["answered"]["count"] == 5);
    assert_eq!(sample["missing"][0]["count"], 1);
    let reason = &sample["missing"][0]["reason"];
    assert_eq!(reason, "no answer within 200 ms, shared out among 3 levels");
    assert_eq!(metric(&sample, "load.1")["count"], 5);
    kill_process(agents[0], Signal::CONT).unwrap();
    running.next_where(|sample| sample["answered"]["count"] == 6);
    kill_process(agents[1], Signal::KILL).unwrap();
    let gone = |sample: &Value| {
        let reason = sample["missing"][0]["reason"].as_str().unwrap_or_default();
        // In an earlier one others may be late, too.
        let is_alone = sample["answered"]["count"] == 5;
        is_alone && !reason.is_empty() && !reason.starts_with("no answer")
    };
    let sample = running.next_where(gone);
    assert_eq!(sample["missing"][0]["count"], 1);
    let others: Vec<Pid> = agents.into_iter().skip(2).collect();
    let output = running.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
    let until = Instant::now() + LIMIT;
    while others.iter().any(|agent| test_kill_process(*agent).is_ok()) {
        assert!(Instant::now() < until, "agents are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn missing_hosts_decide_the_exit_code_unless_they_are_accepted() {
    let lost = |quorum: &str| {
        let mut command = command(
            &[
                &PATIENT[..],
                &["--count", "1", "--interval", "10", "--missing-max", quorum, "--listen", "0"],
                &["-w", "n[0-1]"],
            ]
            .concat(),
        );
        let mut child = command.spawn().unwrap();
        // It serves once all have joined, and asks them after an interval.
        served_at(&mut child);
        kill_process(agents(child.id())[0], Signal::KILL).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = lost("0");
    assert_eq!(output.status.code(), Some(255), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("1 of 2 hosts in "), "{}", text(&output.stdout));
    assert_eq!(lost("1").status.code(), Some(0));
    let output = command(&["--once", "-w", "n[0-1]"]).env("SAPWOOD_NODE", "/bin/false").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(text(&output.stderr).contains("could not be reached"), "{}", text(&output.stderr));
}

#[test]
fn where_no_host_is_reached_one_object_names_all_as_missing() {
    let mut command = command(&["--json", "--once", "-w", "n[0-1]"]);
    let output = command.env("SAPWOOD_NODE", "/bin/false").output().unwrap();
    assert_eq!(output.status.code(), Some(255), "{}", text(&output.stderr));
    let sample: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("top-1", &sample);
    assert_eq!((&sample["count"], &sample["answered"]["count"]), (&2.into(), &0.into()));
    let missing = sample["missing"].as_array().unwrap();
    let count = missing.iter().map(|missing| missing["count"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(count, 2, "{sample}");
    assert!(missing.iter().all(|missing| missing["reason"] != ""), "{sample}");
}

/// The address that a watch serves at, once it has said so.
fn served_at(child: &mut Child) -> String {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("sapwood: metrics at http://").expect("an address");
    address.strip_suffix("/metrics").unwrap().to_string()
}

fn get(address: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_last_wave_is_served_within_the_bound_on_series() {
    let folder = hosts(5);
    let root = root(&folder);
    let arguments = [
        "-q",
        "--listen",
        "0",
        "--series-max",
        "300",
        "--interval",
        "0.3",
        "--root",
        &root,
        "-w",
        "n[0-4]",
    ];
    let mut child = command(&[&PATIENT[..], &arguments[..]].concat()).spawn().unwrap();
    let address = served_at(&mut child);
    assert!(address.starts_with("127.0.0.1:"), "the loopback unless it is told: {address}");
    let until = Instant::now() + LIMIT;
    let answer = loop {
        let answer = get(&address, "/metrics");
        if !answer.contains("\nsapwood_top_waves 0\n") {
            break answer;
        }
        assert!(Instant::now() < until, "no wave comes");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("Content-Type: application/openmetrics-text; version=1.0.0"),
        "{answer}"
    );
    assert!(answer.contains("\nsapwood_load1{statistic=\"mean\"} 2\n"), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let series = body.lines().filter(|line| !line.starts_with('#')).count();
    let left_out = body.lines().find_map(|line| line.strip_prefix("sapwood_top_series_left_out "));
    assert!(series <= 300, "{series}");
    assert_eq!(
        left_out.and_then(|count| count.parse::<u32>().ok()).is_some_and(|n| n > 0),
        series == 300
    );
    assert!(get(&address, "/other").starts_with("HTTP/1.1 404 "));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0));
    assert!(TcpStream::connect(&address).is_err(), "the port is still open");
}

/// A terminal: what the program has, and what is seen of it.
fn terminal(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let seen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&seen).unwrap();
    unlockpt(&seen).unwrap();
    let name = ptsname(&seen, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let program = rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).unwrap();
    resize(&program, columns, rows);
    (seen, program)
}

fn resize(terminal: &OwnedFd, columns: u16, rows: u16) {
    let size =
        rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(terminal, size).unwrap();
}

#[test]
fn a_terminal_has_a_view_with_keys_and_is_given_back() {
    let folder = hosts(3);
    let (seen, program) = terminal(100, 30);
    let before = rustix::termios::tcgetattr(&program).unwrap();
    let mut command = command(
        &[&PATIENT[..], &["--interval", "0.3", "--root", &root(&folder), "-w", "n[0-2]"]].concat(),
    );
    command.env("NO_COLOR", "1");
    command.stdin(program.try_clone().unwrap()).stdout(program.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let mut seen = std::fs::File::from(seen);
    let first = read_until(&mut seen, |seen| seen.ends_with("q quit"));
    assert!(first.contains("\x1b[?1049h") && first.contains("3 of 3 hosts"), "{first:?}");
    assert!(!first.contains("\x1b[0;31m"), "colours are not wanted");
    seen.write_all(b"s").unwrap();
    read_until(&mut seen, |seen| seen.ends_with("spread"));
    resize(&program, 100, 45);
    read_until(&mut seen, |seen| seen.ends_with("\x1b[45;1H"));
    seen.write_all(b"q").unwrap();
    read_until(&mut seen, |seen| seen.ends_with("\x1b[?1049l"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let after = rustix::termios::tcgetattr(&program).unwrap();
    assert_eq!(before.local_modes, after.local_modes);
}

#[test]
fn a_signal_ends_a_watch_whose_hosts_are_still_being_reached() {
    assert_signals_end_reaching(|reach| command(&[reach, &["--once"]].concat()));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let cases: [(&[&str], &str); 11] = [
        (&[], "no hosts are given"),
        (&["-w", "n1", "-q", "--metric", "memory.used"], "--metric"),
        (&["-w", "n1", "--color", "sometimes"], "[possible values: "),
        (&["-w", "n[1-"], "this bracket is not closed"),
        (&["-w", "n1", "--metric", "cpu"], "choose from cpu.busy"),
        (&["-w", "n1", "--interval", "0"], "from 100ms to 1h"),
        (&["-w", "n1", "--listen", "host:1"], "give ADDRESS:PORT"),
        (&["-w", "n1", "--series-max", "3"], "--series-max"),
        (&["-w", "n1", "--worst", "101"], "--worst"),
        (&["-w", "n1", "--once", "--count", "2"], "--count"),
        (&["-w", "n1", "--json", "-q"], "--quiet"),
    ];
    for (arguments, what) in cases {
        assert_refused(&run(arguments), what, arguments);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["-w", "n1", "--listen", &address]);
    assert_refused(&output, "cannot listen at", &["--listen", &address]);
}

#[test]
fn a_dry_run_shows_the_tree_and_runs_nothing() {
    let output = run(&["--dry-run", "-f", "2", "-w", "n[0-3]"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("4 hosts: n[0-3]\n"));
}
