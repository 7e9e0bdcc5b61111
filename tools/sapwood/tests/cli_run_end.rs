//! How commands of `sapwood run` end before they would by themselves, and what is told of hosts
//! whose remote shell writes something else than an answer.

use std::fs::{File, OpenOptions};
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::{
    clean_command, code, on_hosts, program, read_until, text, wait_for_end, write_program,
};

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

#[test]
fn others_are_heard_while_a_host_that_has_asked_for_a_copy_of_the_program_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let [shell, asked] = ["shell", "asked"].map(|name| folder.path().join(name));
    // It takes no byte of the copy. The others are reached once it has asked.
    let script = format!(
        "#!/bin/sh\nhost=$1; shift\nif test $host = n0\n\
         then echo sapwood-copy; echo $$ >{asked}; exec sleep 1000\nfi\n\
         until test -s {asked}; do sleep 0.05; done\nexec sh -c \"$*\"\n",
        asked = asked.display()
    );
    write_program(&shell, &script);
    let shell = shell.to_str().unwrap();
    let reach = ["run", "--cold", "-R", "ssh", "--remote-shell", shell, "-f", "3", "-t", "60"];
    let words = [&reach[..], &["-w", "n[0-2]", "echo hi; sleep 1000"]].concat();
    let mut child = on_hosts(&words).spawn().unwrap();
    let said =
        read_until(child.stdout.as_mut().unwrap(), |seen| seen.matches(": hi\n").count() == 2);
    assert!(said.contains("n1: hi\n") && said.contains("n2: hi\n"), "{said}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(143), "{}", text(&output.stderr));
    let told = "n0 (1): missing: was still being reached when the command was stopped";
    assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
    wait_for_end(std::fs::read_to_string(asked).unwrap().trim().parse().unwrap());
}

#[test]
fn a_remote_shell_that_is_named_reaches_this_machine_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let [shell, log] = ["shell", "log"].map(|name| folder.path().join(name));
    let script = format!("echo $1 >>{}; shift; exec sh -c \"$*\"", log.display());
    write_program(&shell, &format!("#!/bin/sh\n{script}\n"));
    let called = || std::fs::read_to_string(&log).unwrap_or_default();
    let words = ["--remote-shell", shell.to_str().unwrap(), "-w", "localhost", "echo here"];
    for (launcher, calls) in [("auto", ""), ("ssh", "localhost\n")] {
        let reach = ["run", "--cold", "-R", launcher];
        let output = on_hosts(&[&reach[..], &words[..]].concat()).output().unwrap();
        let said = (code(&output), text(&output.stdout), text(&output.stderr));
        assert_eq!(said, (Some(0), "localhost: here\n", ""), "{launcher}");
        assert_eq!(called(), calls, "{launcher}");
    }
}

#[test]
fn a_quiet_run_writes_no_line_about_a_command_that_fails_and_keeps_its_code() {
    let cases: [(&[&str], i32); 5] = [
        (&["exit 3"], 3),
        (&["kill -9 $$"], 137),
        (&["kill -15 $$"], 143),
        (&["-u", "0.1", "sleep 1000"], 124),
        (&["--chdir", "/no/such/folder", "true"], 126),
    ];
    for (words, expected) in cases {
        for style in ["-b", "-L", "--diff", "-N"] {
            let reach = ["run", "--cold", "-q", style, "-w", "n[0-1]"];
            let output = on_hosts(&[&reach[..], words].concat()).output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(code(&output), Some(expected), "{style} {words:?}: {said}");
            // What the host says of a command that it cannot start is the command's output.
            assert!(!said.contains("sapwood: "), "{style} {words:?}: {said}");
        }
    }
}

#[test]
fn a_program_that_cannot_be_run_without_a_shell_is_named_in_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plain"), "").unwrap();
    let place = folder.path().to_str().unwrap();
    let cases: [(&[&str], i32, &str); 4] = [
        (&["no-such-command-here"], 127, "program 'no-such-command-here' is in no folder of PATH"),
        (&["--env", "PATH=/no/such", "ls"], 127, "program 'ls' is in no folder of PATH"),
        (&["--chdir", place, "./absent"], 127, "absent' does not exist"),
        (&["--chdir", place, "./plain"], 126, "plain' cannot be run: the file is not executable"),
    ];
    for (words, expected, what) in cases {
        let split = words.len() - 1;
        let reach = ["run", "--cold", "-q", "-w", "n0"];
        let all = [&reach[..], &words[..split], &["--exec"], &words[split..]].concat();
        let output = on_hosts(&all).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(code(&output), Some(expected), "{words:?}: {said}");
        assert!(said.starts_with("n0: program '") && said.contains(what), "{words:?}: {said}");
        assert!(said.lines().count() == 1 && !said.contains("exec:"), "{words:?}: {said}");
    }
}
