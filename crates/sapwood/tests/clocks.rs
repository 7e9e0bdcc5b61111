//! Clocks that are known to be apart are found to be so, within the bounds that are stated.
//!
//! Each process runs in a time namespace of its own, in which the kernel shows it a clock that is
//! ahead by a known number of seconds. A user that may not make those has clocks that agree.

#[path = "../../launch/tests/written/mod.rs"]
mod written;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Links, MARK_VARIABLE, builder, new_mark, sapwood, trial};
use sapwood::{Clocks, Network, Program};
use written::write_program;

const WAIT: Duration = Duration::from_secs(60);

/// Processes are ahead by this many seconds for each number of their rank.
const SECONDS_PER_RANK: i64 = 7;

/// The most processes of a tree here.
const PROCESSES_MAX: i64 = 10;

/// Clocks that are ahead, one for each rank, and programs that run with them.
struct Clockwork {
    folder: tempfile::TempDir,
    /// Processes that do nothing but have such a clock.
    holders: Vec<Child>,
}

impl Clockwork {
    /// Nothing if the kernel does not give us clocks of our own.
    fn new() -> Option<Self> {
        let mut trial = Command::new("unshare");
        trial.args(["--time", "--monotonic", "1", "--fork", "true"]);
        if !trial.output().is_ok_and(|output| output.status.success()) {
            return None;
        }
        let mut clockwork = Self { folder: tempfile::tempdir().unwrap(), holders: Vec::new() };
        for rank in 0..PROCESSES_MAX {
            let seconds = (rank * SECONDS_PER_RANK).to_string();
            let mut holder = Command::new("unshare");
            holder.args(["--time", "--monotonic", &seconds, "--fork", "--kill-child", "cat"]);
            let holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let namespace = format!("/proc/{}/ns/time_for_children", holder.id());
            clockwork.holders.push(holder);
            clockwork.wait_for(rank as usize);
            fs::write(clockwork.folder.path().join(rank.to_string()), namespace).unwrap();
        }
        Some(clockwork)
    }

    /// The clock of a holder is right when it runs its program.
    fn wait_for(&mut self, holder: usize) {
        let holder = &mut self.holders[holder];
        holder.stdin.as_mut().unwrap().write_all(b"here\n").unwrap();
        let mut line = [0; 5];
        holder.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    }

    /// The program, run with the clock of its rank.
    fn ahead(&self, program: &Path) -> PathBuf {
        let folder = self.folder.path();
        let path = folder.join(program.file_name().unwrap());
        let (own, program) = (folder.display(), program.display());
        let text = format!(
            "#!/bin/sh\nexec nsenter --time=\"$(cat '{own}'/$SAPWOOD_RANK)\" '{program}' \"$@\"\n"
        );
        write_program(&path, &text);
        path
    }
}

impl Drop for Clockwork {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            // It ends when its input does.
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}

/// A network whose clocks are apart, and by how many nanoseconds for each number of a rank.
fn network(clockwork: Option<&Clockwork>, shape: &str, links: Links) -> (Network, i64) {
    let with_clock = |program: &Path| match clockwork {
        Some(clockwork) => clockwork.ahead(program),
        None => program.to_path_buf(),
    };
    let program = Program::new(with_clock(trial())).variable(MARK_VARIABLE, new_mark());
    let program = program.argument("back-end").argument("serve");
    let builder = builder(shape, links).node_program(with_clock(sapwood())).back_end(program);
    let apart = clockwork.map_or(0, |_| SECONDS_PER_RANK * 1_000_000_000);
    (builder.open().unwrap(), apart)
}

fn check(clocks: &Clocks, apart: i64, shape: &str) {
    assert!(clocks.unknown.is_empty(), "{shape}: {}", clocks.unknown);
    for clock in clocks.known.iter().skip(1) {
        let truth = i64::from(clock.rank) * apart;
        let wrong = clock.ahead.abs_diff(truth);
        assert!(wrong <= clock.error, "{shape}: {clock:?}, and in truth {truth}");
        // The wall clocks are the same: time namespaces do not have them.
        assert!(clock.wall_ahead.unsigned_abs() <= clock.error + 1_000_000, "{clock:?}");
    }
    assert_eq!((clocks.known[0].ahead, clocks.known[0].error), (0, 0));
}

#[test]
fn every_clock_is_found_where_it_is() {
    let clockwork = Clockwork::new();
    for (shape, processes) in [("1", 2), ("1x1x2", 5), ("2x2", 7), ("3x2", 10)] {
        for links in [Links::Unix, Links::EncryptedTcp] {
            let (mut network, apart) = network(clockwork.as_ref(), shape, links);
            let clocks = network.clocks(20, WAIT).unwrap();
            assert_eq!(clocks.known.len(), processes, "{shape}");
            check(&clocks, apart, shape);
            network.close().unwrap();
        }
    }
}

#[test]
fn clocks_of_one_machine_do_not_drift() {
    let clockwork = Clockwork::new();
    let (mut network, apart) = network(clockwork.as_ref(), "2x2", Links::Unix);
    let first = network.clocks(10, WAIT).unwrap();
    network.turn(Duration::from_millis(500)).unwrap();
    let second = network.clocks(10, WAIT).unwrap();
    check(&second, apart, "2x2");
    let drifts = second.drift_since(&first);
    assert_eq!(drifts.len(), 7);
    for drift in drifts {
        assert!(drift.rate.abs() <= drift.error, "{drift:?}");
    }
    network.close().unwrap();
}
