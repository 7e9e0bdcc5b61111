//! How commands of `sapwood run` end before they would by themselves, and what is told of hosts
//! whose remote shell writes something else than an answer.

use std::fs::{File, OpenOptions};
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::{clean_command, code, on_hosts, program, read_until, text, write_program};

#[test]
fn no_process_of_a_command_is_left_when_its_front_end_or_agent_is_killed_as_it_begins() {
    // The number of the shell is that of the front-end; the agent is the command's parent.
    let front_end = "exec \"$0\" run --cold -n --env FRONT=$$ -w 'n[0-7]' \"$1\"";
    for target in ["$FRONT", "$PPID"] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(clean_command("mkfifo").arg(&pipe).status().unwrap().success());
        // With a writer the opening for reading waits for none.
        let writer = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let mut reader = File::open(&pipe).unwrap();
        // Each process of the command holds the pipe open.
        let script = format!(
            "exec 3>{}; sleep 1000 & echo begun >&3; kill -9 {target}; wait",
            pipe.display()
        );
        let mut child = clean_command("sh")
            .args(["-c", front_end, program(), script.as_str()])
            .env("SAPWOOD_LAUNCHER", "local")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(read_until(&mut reader, |seen| seen.ends_with('\n')), "begun\n");
        child.wait().unwrap();
        drop(writer);
        read_until(&mut reader, |_| false);
    }
}

#[test]
fn commands_that_heed_no_signal_are_told_alike_whatever_the_signal_was() {
    let script = "trap '' TERM HUP INT; echo begun; while :; do sleep 0.05; done";
    let children = [Signal::TERM, Signal::HUP].map(|signal| {
        let mut child = on_hosts(&["run", "--cold", "-w", "n[0-1]", script]).spawn().unwrap();
        read_until(child.stdout.as_mut().unwrap(), |seen| seen.matches("begun").count() == 2);
        kill_process(Pid::from_child(&child), signal).unwrap();
        (signal, child)
    });
    for (signal, child) in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), Some(128 + signal.as_raw()));
        let errors = text(&output.stderr);
        let told = "n[0-1] (2): was interrupted before the command ended";
        assert!(errors.contains(told), "{signal:?}: {errors}");
    }
}

/// Runs a command on three hosts that are reached by this script, each within these seconds.
fn run_through(seconds: &str, script: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("noisy");
    write_program(&shell, &format!("#!/bin/sh\n{script}\n"));
    let shell = shell.to_str().unwrap();
    let reach = ["run", "--cold", "-R", "ssh", "--remote-shell", shell, "-f", "3", "-t", seconds];
    let output = on_hosts(&[&reach[..], &["-w", "n[0-2]", "true"]].concat()).output().unwrap();
    assert_eq!(code(&output), Some(255), "{}", text(&output.stderr));
    output
}

#[test]
fn hosts_whose_remote_shell_repeats_itself_and_gives_no_answer_are_told_in_one_short_line() {
    // The noise of each comes well within this time.
    let output = run_through("4", "yes noise | head -n 1000 >&2; exec sleep 1000");
    let errors = text(&output.stderr);
    let line = "sapwood: n[0-2] (3): missing: could not be reached: no answer within ";
    assert!(errors.starts_with(line) && errors.ends_with(" ms: noise\n"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn a_remote_shell_that_writes_no_answer_is_not_said_to_have_written_nothing() {
    let output = run_through("60", "head -c 3000000 /dev/zero | tr '\\0' x");
    let errors = text(&output.stderr);
    let told = "noisy exited with status 0; what it wrote to standard output is no answer of \
                sapwood-node, and it wrote nothing to standard error\n";
    assert!(errors.ends_with(told) && errors.lines().count() == 1, "{errors}");
}
