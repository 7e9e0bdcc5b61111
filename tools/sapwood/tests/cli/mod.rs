//! Running the built command in a test, what every refusal has in common, and what holds for every
//! command that reaches hosts.

#![allow(dead_code, reason = "each test file uses some of these")]

pub mod benchmark;
#[path = "../../../../crates/launch/tests/surroundings/mod.rs"]
mod surroundings;
pub mod user;
#[path = "../../../../crates/launch/tests/written/mod.rs"]
mod written;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

pub use surroundings::clean_command;
pub use written::write_program;

/// What the command runs in other processes. Cargo builds only programs of the tested package
/// before its tests, so these must be there already.
const OTHERS: [(&str, &str); 2] =
    [("sapwood-node", "sapwood-node-program"), ("sapwood-bench", "sapwood-bench")];

/// The command.
pub fn program() -> &'static str {
    let program = env!("CARGO_BIN_EXE_sapwood");
    for (other, package) in OTHERS {
        let path = Path::new(program).with_file_name(other);
        assert!(path.is_file(), "there is no {}: run 'cargo build -p {package}'", path.display());
    }
    program
}

/// After this long a test gives up what it waits for.
pub const LIMIT: Duration = Duration::from_secs(120);

/// The command, which sees of the test's environment no more than where programs and files are, and
/// no network of another program: a user's own tree would carry out what is ordered here.
pub fn command() -> Command {
    let folder = Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/runtime"));
    std::fs::create_dir_all(folder).unwrap();
    let mut command = clean_command(program());
    command.env("XDG_RUNTIME_DIR", folder);
    command
}

/// Runs the command without input.
pub fn run(arguments: &[&str]) -> Output {
    command().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs the command with this input.
pub fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// A command whose hosts are all this machine, have only names, and are those that the test names.
pub fn on_hosts(arguments: &[&str]) -> Command {
    let mut command = command();
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("SAPWOOD_LAUNCHER", "local");
    command
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The one JSON document that a command which succeeded has printed.
pub fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

/// Waits until something is there.
pub fn wait_until(what: &str, mut is_there: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !is_there() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until a process has ended.
pub fn wait_for_end(pid: u32) {
    let process = Pid::from_raw(pid.cast_signed()).unwrap();
    wait_until(&format!("process {pid} is left"), || test_kill_process(process).is_err());
}

/// Reads what a program writes until that is enough, or the program has ended; gives what it read.
pub fn read_until(
    stream: &mut (impl Read + AsFd),
    mut is_enough: impl FnMut(&str) -> bool,
) -> String {
    let until = Instant::now() + LIMIT;
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !std::str::from_utf8(&seen).is_ok_and(&mut is_enough) {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).unwrap();
        let ready = poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&left));
        assert_ne!(ready, Ok(0), "only this came: {}", String::from_utf8_lossy(&seen));
        if ready.is_ok() && stream.read(&mut byte).unwrap() == 0 {
            break;
        }
        seen.extend(&byte[..ready.unwrap_or(0)]);
    }
    text(&seen).to_string()
}

/// What `sapwood run` says to the first interrupt.
const STOPS: &str = "Ctrl-C again within a second stops";

/// Interrupts `sapwood run` until it says this of the hosts that have ended.
pub fn interrupt_until(child: &mut Child, expected: &str) {
    let until = Instant::now() + LIMIT;
    loop {
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
        let line = read_until(child.stderr.as_mut().unwrap(), |seen| seen.ends_with('\n'));
        assert!(line.contains("still running on") && Instant::now() < until, "{line}");
        if line.contains(expected) {
            return;
        }
        // As a user who wants to know and not to stop: two within a second stop.
        std::thread::sleep(Duration::from_millis(1200));
    }
}

/// Interrupts `sapwood run` until it stops, which it does at the second within a second.
pub fn interrupt_until_it_stops(child: &mut Child) {
    loop {
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
        let line = read_until(child.stderr.as_mut().unwrap(), |seen| seen.ends_with('\n'));
        if !line.contains(STOPS) {
            return;
        }
    }
}

/// A command whose hosts are still being reached, by a remote shell that says nothing, ends with
/// a signal and leaves nothing running. `command` makes it, with these options.
pub fn assert_signals_end_reaching(command: impl Fn(&[&str]) -> Command) {
    let folder = tempfile::tempdir().unwrap();
    let [shell, called] = ["silent", "called"].map(|name| folder.path().join(name));
    let script = format!("#!/bin/sh\necho $$ >>{}\nexec sleep 1000\n", called.display());
    write_program(&shell, &script);
    for signal in [Signal::INT, Signal::TERM] {
        std::fs::write(&called, "").unwrap();
        let shell = shell.to_str().unwrap();
        let reach = ["--launcher", "ssh", "--remote-shell", shell, "-t", "60", "-w", "n[0-1]"];
        let child = command(&reach).spawn().unwrap();
        let clients = || std::fs::read_to_string(&called).unwrap();
        wait_until("the hosts were not called", || clients().lines().count() == 2);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), Some(128 + signal.as_raw()));
        let errors = text(&output.stderr);
        assert!(errors.contains("stopped while the hosts were being reached"), "{errors}");
        for client in clients().lines() {
            wait_for_end(client.parse().unwrap());
        }
    }
}

/// Bad input: exit code 2, nothing on standard output, and one line that says `what`.
pub fn assert_refused(output: &Output, what: &str, context: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{context:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{context:?}: {said}");
    assert!(said.starts_with("sapwood: ") && said.contains(what), "{context:?}: {said}");
    assert!(!said.contains("panicked") && !said.contains("fault in Sapwood"), "{said}");
    assert!(output.stdout.is_empty(), "{context:?}: {}", text(&output.stdout));
}
