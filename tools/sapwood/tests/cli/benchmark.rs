//! Benchmarks that run in processes of their own: as networks to ask, and to see that they leave
//! nothing when they are killed.

use std::path::Path;
use std::process::{Child, Output, Stdio};

use super::{command, wait_until};

/// A network that runs in a process of its own until this is dropped.
pub struct Running {
    pub child: Child,
    pub name: String,
}

impl Running {
    /// A network of this shape, visible in this folder, with waves that pass on it all the time.
    pub fn start(folder: &Path, shape: &str) -> Self {
        let child = command()
            .args(["bench", "tree", "--rounds", "1000000", "--runs", "1", "--only", "round_trip"])
            .args(["--topology", shape])
            .env("XDG_RUNTIME_DIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let name = format!("bench-{}", child.id());
        let running = Self { child, name };
        let file = folder.join("sapwood").join(format!("{}.network", running.name));
        wait_until("the network does not become visible", || file.exists());
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the command, which sees the networks of this folder only.
pub fn ask(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = command();
    command.args(arguments).env("XDG_RUNTIME_DIR", folder).stdin(Stdio::null()).output().unwrap()
}

/// A benchmark that is killed once it has this number of processes, itself among them, leaves none.
pub fn assert_leaves_no_process(benchmark: &[&str], processes: usize) {
    // A mark in the environment that every process of the benchmark inherits.
    let mark = format!("SAPWOOD_TEST_MARK={}-{}", benchmark[0], std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let mut bench = command()
        .arg("bench")
        .args(benchmark)
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the benchmark's processes never came up", || marked(&mark) >= processes);
    bench.kill().unwrap();
    bench.wait().unwrap();
    wait_until("processes outlived the benchmark", || marked(&mark) == 0);
}

/// How many processes have this in their environment.
fn marked(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let environments =
        processes.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments
        .filter(|environment| environment.split(|byte| *byte == 0).any(|of| of == mark.as_bytes()))
        .count()
}
