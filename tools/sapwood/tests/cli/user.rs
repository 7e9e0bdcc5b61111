//! A user with trees that stay up.

use std::path::PathBuf;
use std::process::{Child, Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{code, read_until, text, wait_for_end};

/// A user with a runtime folder of its own, whose hosts are all this machine.
pub struct User {
    pub folder: TempDir,
}

impl User {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = super::on_hosts(arguments);
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    pub fn say(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.say(&[&["run"], arguments].concat())
    }

    /// A command in the background that has written this number of lines.
    pub fn begun(&self, lines: usize, arguments: &[&str]) -> Child {
        let mut child = self.command(&[&["run"], arguments].concat()).spawn().unwrap();
        read_until(child.stdout.as_mut().unwrap(), |seen| {
            seen.lines().count() == lines && seen.ends_with('\n')
        });
        child
    }

    /// Starts a tree, and gives the process of its daemon.
    pub fn up(&self, arguments: &[&str]) -> u32 {
        let output = self.say(&[&["up"], arguments].concat());
        assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(" is up: "), "{}", text(&output.stdout));
        self.daemons().pop().unwrap()
    }

    /// The processes of daemons, as the files by which their networks are found say.
    pub fn daemons(&self) -> Vec<u32> {
        let pid = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).ok()?;
            text.lines().nth(1)?.strip_prefix("pid ")?.parse().ok()
        };
        let ends = |path: &PathBuf| path.extension().is_some_and(|end| end == "network");
        self.left().iter().filter(|path| ends(path)).filter_map(pid).collect()
    }

    /// What lies in the folder.
    pub fn left(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("sapwood"));
        entries.map_or(Vec::new(), |entries| entries.flatten().map(|entry| entry.path()).collect())
    }

    /// The process of the agent of a host.
    pub fn agent(&self, arguments: &[&str]) -> u32 {
        let output = self.run(&[&["-N"], arguments, &["echo $PPID"]].concat());
        text(&output.stdout).trim().parse().unwrap()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        for pid in self.daemons() {
            // A test that has failed may have left it.
            let _ = kill_process(pid_of(pid), Signal::TERM);
            wait_for_end(pid);
        }
    }
}

pub fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed()).unwrap()
}
