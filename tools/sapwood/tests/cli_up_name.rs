//! Names of trees that stay up: which are refused before any host is called.

use std::path::PathBuf;

use crate::cli::user::User;
use crate::cli::{assert_refused, code, text, wait_until, write_program};
use rustix::process::{Pid, Signal, kill_process};

/// A remote shell that gives no answer, and counts how often it is called.
struct SilentShell {
    folder: tempfile::TempDir,
    path: String,
}

impl SilentShell {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [shell, called] = ["silent", "called"].map(|name| folder.path().join(name));
        let script = format!("#!/bin/sh\necho $$ >>{}\nexec sleep 1000\n", called.display());
        write_program(&shell, &script);
        std::fs::write(&called, "").unwrap();
        Self { path: shell.to_str().unwrap().to_owned(), folder }
    }

    /// The words that bring a host up over it.
    fn up(&self) -> [&str; 9] {
        ["up", "--launcher", "ssh", "--remote-shell", &self.path, "-t", "60", "-w", "n0"]
    }

    fn log_ins(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("called")).unwrap().lines().count()
    }
}

#[test]
fn a_name_that_no_tree_may_have_is_refused_before_any_host_is_called() {
    let (user, shell) = (User::new(), SilentShell::new());
    let long = "n".repeat(65);
    for name in ["a/b", "/tmp/a", "..", "", "a b", long.as_str()] {
        for more in [&[][..], &["--replace"], &["--foreground"]] {
            let output = user.say(&[&shell.up()[..], more, &["--name", name]].concat());
            assert_refused(&output, "is no name", &[name]);
        }
    }
    assert_eq!(shell.log_ins(), 0);
    assert_eq!(user.left(), Vec::<PathBuf>::new());
    // It counts the calls of a name that a tree may have.
    let named = user.command(&[&shell.up()[..], &["--name", "a-b"]].concat()).spawn().unwrap();
    wait_until("the host was not called", || shell.log_ins() == 1);
    kill_process(Pid::from_child(&named), Signal::TERM).unwrap();
    assert_eq!(code(&named.wait_with_output().unwrap()), Some(143));
}

#[test]
fn a_tree_that_is_just_being_started_is_started_by_no_other_process() {
    let (user, shell) = (User::new(), SilentShell::new());
    let up = shell.up();
    let first = user.command(&up).spawn().unwrap();
    wait_until("the host was not called", || shell.log_ins() == 1);
    for more in [&[][..], &["--replace"], &["--foreground"]] {
        let second = user.say(&[&up[..], more].concat());
        assert_refused(&second, "a tree 'warm' is just being started, by process ", more);
    }
    assert_eq!(shell.log_ins(), 1, "the others have called no host");
    kill_process(Pid::from_child(&first), Signal::TERM).unwrap();
    assert_eq!(code(&first.wait_with_output().unwrap()), Some(143));
    assert_eq!(user.left(), Vec::<PathBuf>::new());
    user.up(&["-w", "n0"]);
}

#[test]
fn a_tree_is_named_by_the_same_option_in_every_command_and_by_those_of_before() {
    let user = User::new();
    for (option, name) in [("--network", "one"), ("--tree", "two"), ("--name", "three")] {
        user.up(&[option, name, "-w", "n0"]);
    }
    let asked: [&[&str]; 5] = [&["run"], &["status"], &["trace-wave"], &["clocks"], &["down"]];
    for (option, name) in [("--network", "one"), ("--tree", "two")] {
        for words in asked {
            let more: &[&str] = match words[0] {
                "run" => &["true"],
                "clocks" => &["--samples", "1", "--timeout", "60s"],
                "down" => &[],
                _ => &["--timeout", "60s"],
            };
            let words = [words, &[option, name], more].concat();
            let output = user.say(&words);
            assert_eq!(code(&output), Some(0), "{words:?}: {}", text(&output.stderr));
        }
    }
    assert_refused(&user.say(&["down", "three", "--network", "three"]), "--network", &[]);
    assert_refused(&user.say(&["down", "--all", "--network", "three"]), "--network", &[]);
    let output = user.say(&["down", "three"]);
    assert_eq!((code(&output), text(&output.stdout)), (Some(0), "tree 'three' has ended: n0\n"));
}
