//! Members of a group that are processes of their own, for the tests of `sapwood group`.

#![allow(dead_code, reason = "each test program uses some of this")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::clean_command;

/// Far longer than anything here takes.
pub const HANG: Duration = Duration::from_secs(90);

pub fn sapwood(arguments: &[&str]) -> Command {
    let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood"));
    command.arg("group").args(arguments).stdin(Stdio::null());
    command
}

pub fn output(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = sapwood(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A member; killed when dropped.
pub struct Member {
    pub child: Child,
    lines: Receiver<String>,
    pub address: String,
}

impl Member {
    pub fn start(key: &Path, how: &[&str]) -> Self {
        let mut child = sapwood(how)
            .arg("--key")
            .arg(key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut member = Self { child, lines, address: String::new() };
        member.address = member.answer()["address"].as_str().unwrap().to_string();
        member
    }

    pub fn ask(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The answer to the oldest line that was asked.
    pub fn answer(&mut self) -> Value {
        let line = self.lines.recv_timeout(HANG).expect("an answer of the member");
        serde_json::from_str(&line).unwrap()
    }

    pub fn call(&mut self, line: &str) -> Value {
        self.ask(line);
        self.answer()
    }

    /// Waits until it knows exactly these virtual nodes.
    pub fn wait_for(&mut self, everyone: &str) {
        let begun = Instant::now();
        loop {
            let known = self.call("members")["everyone"].clone();
            if known == everyone {
                return;
            }
            assert!(begun.elapsed() < HANG, "{known} instead of {everyone}");
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Leaves its virtual nodes to the member that carries another one.
    pub fn leave_to(mut self, heir: u32) {
        self.call(&format!("leave to={heir}"));
        assert!(self.child.wait().unwrap().success());
    }

    /// Waits until this member knows one that carries just these virtual nodes.
    pub fn wait_for_member(&mut self, names: &str) {
        let begun = Instant::now();
        let told = format!("\"{names}\"");
        loop {
            let known = self.call("members")["members"].to_string();
            if known.contains(&told) {
                return;
            }
            assert!(begun.elapsed() < HANG, "no member has {names}: {known}");
        }
    }

    pub fn leave(mut self) {
        self.call("leave");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with a key.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn key(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A group whose members carry the virtual nodes from 0 on, in three given clusters.
pub fn group(folder: &Folder, count: usize) -> Vec<Member> {
    let key = folder.key("key");
    let mut members = vec![Member::start(&key, &["create", "--names", "0"])];
    for name in 1..count {
        // By any member, not always by the first.
        let at = members[name / 2].address.clone();
        let (name, site) = (name.to_string(), (name % 3).to_string());
        let how = ["join", &at, "--names", &name, "--site", &site];
        members.push(Member::start(&key, &how));
    }
    let everyone = format!("0-{}", count - 1);
    members.iter_mut().for_each(|member| member.wait_for(&everyone));
    members
}
