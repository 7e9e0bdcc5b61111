//! `sapwood run` with real processes: every style of output, every exit code, and what goes wrong.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::cli::{
    assert_refused, assert_signals_end_reaching, code, interrupt_until, interrupt_until_it_stops,
    read_until, text, wait_for_end, wait_until, write_program,
};
use rustix::process::{Pid, Signal, kill_process};
use sapwood_schema::assert_fits;
use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    // Whatever tree the user of the tests has up.
    crate::cli::on_hosts(&[&["run", "--cold"], arguments].concat())
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    })
}

fn block(nodes: &str, count: usize, content: &str) -> String {
    format!("---------------\n{nodes} ({count})\n---------------\n{content}")
}

/// Waits until this has been written this number of times, or everything was.
fn wait_for(child: &mut Child, what: &str, times: usize) -> String {
    read_until(child.stdout.as_mut().unwrap(), |seen| seen.matches(what).count() == times)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn lines_come_with_the_name_of_their_host_and_apart_by_stream() {
    for fan_out in ["1", "2", "16"] {
        let output =
            run(&["-f", fan_out, "-w", "n[0-4]", "echo out $SAPWOOD_HOST; echo err >&2; echo two"]);
        let lines: BTreeSet<&str> = text(&output.stdout).lines().collect();
        let expected: BTreeSet<String> =
            (0..5).flat_map(|n| [format!("n{n}: out n{n}"), format!("n{n}: two")]).collect();
        assert_eq!(lines, expected.iter().map(String::as_str).collect(), "{fan_out}");
        assert_eq!(text(&output.stderr).lines().filter(|line| line.ends_with(": err")).count(), 5);
        assert_eq!(code(&output), Some(0));
    }
}

#[test]
fn equal_answers_are_written_once_at_every_fan_out() {
    for fan_out in ["1", "2", "3", "64"] {
        let script = "test $SAPWOOD_RANK -ne 3 || exit 4; echo hello";
        let output = run(&["-f", fan_out, "-b", "-w", "n[00-16]", script]);
        assert_eq!(text(&output.stdout), block("n[00-02,04-16]", 16, "hello\n"), "{fan_out}");
        assert_eq!(text(&output.stderr), "sapwood: n03 (1): exited with status 4\n");
        assert_eq!(code(&output), Some(4));
    }
}

#[test]
fn equal_outputs_with_other_codes_are_other_answers() {
    let output = run(&["-b", "-w", "n[0-2]", "echo same; exit $((SAPWOOD_RANK / 2))"]);
    let expected = block("n[0-1]", 2, "same\n") + &block("n2", 1, "same\n");
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(code(&output), Some(1));
    assert_eq!(code(&run(&["--no-rc", "-w", "n[0-2]", "exit 3"])), Some(0));
}

#[test]
fn equal_outputs_are_equal_where_no_host_has_room_to_keep_them() {
    // As on a full disk, and with no memory that can be paged out in its place.
    let script = "ulimit -f 8; exec \"$0\" run --cold -b -w 'n[0-2]' \
                  'head -c 300000 /dev/zero | tr \"\\0\" x'";
    let output = crate::cli::clean_command("sh")
        .args(["-c", script, crate::cli::program()])
        .env("SAPWOOD_LAUNCHER", "local")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (written, said) = (text(&output.stdout), text(&output.stderr));
    assert!(written.starts_with(&block("n[0-2]", 3, "")), "{written}");
    assert_eq!(written.matches("---").count(), block("n0", 1, "").matches("---").count());
    let (begin, end) = ("sapwood: n[0-2]: output cut: ", " of 300000 bytes kept, since neither");
    assert!(said.starts_with(begin) && said.contains(end), "{said}");
    assert!(said.contains("the disk of TMPDIR") && said.lines().count() == 1, "{said}");
    assert_eq!(code(&output), Some(125));
}

/// Three hosts, of which n1 has no room to keep what a command writes; this is printed in a style.
fn run_with_a_full_host(words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("shell");
    let script = "#!/bin/sh\nhost=$1; shift\ntest $host != n1 || ulimit -f 8\nexec sh -c \"$*\"\n";
    write_program(&shell, script);
    let reach = ["run", "--cold", "--launcher", "ssh", "--remote-shell", shell.to_str().unwrap()];
    let mut command = crate::cli::command();
    command.args(reach).args(["-w", "n[0-2]"]).args(words).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn equal_outputs_are_equal_and_whole_where_one_host_has_no_room_to_keep_them() {
    let script = "head -c 300000 /dev/zero | tr '\\0' x";
    let whole = "x".repeat(300_000);
    for style in ["-b", "--diff"] {
        let output = run_with_a_full_host(&[style, script]);
        let written = text(&output.stdout) == block("n[0-2]", 3, &whole) + "\n";
        assert!(written, "{style}: {:.100}", text(&output.stdout));
        assert_eq!((text(&output.stderr), code(&output)), ("", Some(0)), "{style}");
    }
    let output = run_with_a_full_host(&["--json", script]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["classes"].as_array().unwrap().len(), 1);
    assert_eq!(report["classes"][0]["nodes"], "n[0-2]");
    assert!(report["classes"][0]["stdout"]["content"] == whole);
    assert_eq!((text(&output.stderr), code(&output)), ("", Some(0)));
}

#[test]
fn what_a_host_without_room_alone_has_written_is_said_to_be_cut_in_every_style() {
    let script = "test $SAPWOOD_HOST = n1 && c=y || c=x; seq 20000 | tr 0 $c";
    let cut = "sapwood: n1: output cut: ";
    for style in ["-b", "-L", "--diff", "--json"] {
        let output = run_with_a_full_host(&[style, script]);
        let said = text(&output.stderr);
        assert!(said.starts_with(cut) && said.contains("the disk of TMPDIR"), "{style}: {said}");
        assert_eq!((said.lines().count(), code(&output)), (1, Some(125)), "{style}: {said}");
        if style == "--json" {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_fits("run-1", &report);
            let classes = report["classes"].as_array().unwrap();
            let wholes: Vec<_> = classes.iter().map(|one| &one["stdout"]["is_whole"]).collect();
            assert_eq!(wholes, [true, false]);
            assert_eq!(report["exit_code"], 125);
        }
    }
    let output = run_with_a_full_host(&["-b", "--no-rc", script]);
    assert_eq!(code(&output), Some(125), "the hosts' codes are not meant");
    let output = run_with_a_full_host(&["-b", &format!("{script}; exit 126")]);
    assert_eq!(code(&output), Some(126));
}

#[test]
fn standard_error_is_folded_by_itself() {
    let script =
        "echo same; test $SAPWOOD_RANK -lt 3 || echo other >&2; exit $((SAPWOOD_RANK / 3))";
    let output = run(&["-b", "-w", "n[0-3]", "echo same; echo $SAPWOOD_HOST >&2"]);
    assert_eq!(text(&output.stdout), block("n[0-3]", 4, "same\n"));
    let errors: String = (0..4).map(|n| block(&format!("n{n}"), 1, &format!("n{n}\n"))).collect();
    assert_eq!(text(&output.stderr), errors);
    let output = run(&["-b", "-L", "-w", "n[0-4]", script]);
    assert_eq!(text(&output.stdout), "n[0-2]: same\nn[3-4]: same\n");
    assert!(text(&output.stderr).starts_with("n[3-4]: other\n"), "{}", text(&output.stderr));
    let output = run(&["--json", "-w", "n[0-4]", script]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["classes"].as_array().unwrap().len(), 2);
}

#[test]
fn a_signal_ends_a_command_whose_hosts_are_still_being_reached() {
    assert_signals_end_reaching(|reach| command(&[reach, &["true"]].concat()));
}

#[test]
fn a_signal_stops_the_writing_of_a_long_output() {
    let length = 8 << 20;
    let script = format!("head -c {length} /dev/zero | tr '\\0' y");
    let mut child = command(&["-b", "-w", "n[0-1]", &script]).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    // It is being written, and has no room.
    stdout.read_exact(&mut [0]).unwrap();
    signal(&child, Signal::TERM);
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(143), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the output is incomplete: the command was interrupted"));
    assert!(rest.len() < length, "{}", rest.len());
}

#[test]
fn lines_are_written_in_the_order_of_hosts_or_folded() {
    let output = run(&["-L", "-w", "n[0-1]", "seq 2"]);
    assert_eq!(text(&output.stdout), "n0: 1\nn0: 2\nn1: 1\nn1: 2\n");
    let output = run(&["-b", "-L", "-w", "n[0-1]", "seq 2"]);
    assert_eq!(text(&output.stdout), "n[0-1]: 1\nn[0-1]: 2\n");
    let output = run(&["-b", "--live", "-w", "n[0-1]", "echo a"]);
    let said = text(&output.stdout);
    assert!(said.contains("n0: a\n") && said.contains("n1: a\n"), "{said}");
    assert!(said.ends_with(&block("n[0-1]", 2, "a\n")), "{said}");
    let output = run(&["-N", "-w", "n0", "echo plain"]);
    assert_eq!(text(&output.stdout), "plain\n");
}

#[test]
fn the_others_are_shown_by_how_they_differ_from_most() {
    let output = run(&["--diff", "-w", "n[0-3]", "seq $((SAPWOOD_RANK / 3 + 2))"]);
    let expected =
        block("n[0-2]", 3, "1\n2\n") + "--- n[0-2]\n+++ n3\n@@ -1,2 +1,3 @@\n 1\n 2\n+3\n";
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn a_program_reads_one_object() {
    let script = "case $SAPWOOD_RANK in 3) kill -9 $$;; 4) sleep 1000;; *) echo ok;; esac";
    // Long enough for the others, on a machine with other work, too.
    let output = run(&["--json", "-u", "20", "-w", "n[0-4]", script]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("run-1", &report);
    assert_eq!((&report["nodes"], &report["count"]), (&"n[0-4]".into(), &5.into()));
    let classes = report["classes"].as_array().unwrap();
    assert_eq!(classes[0]["nodes"], "n[0-2]");
    assert_eq!(classes[0]["stdout"]["content"], "ok\n");
    assert_eq!(classes[0]["state"], "exited");
    assert_eq!(report["failed"]["nodes"], "n[3-4]");
    assert_eq!(report["timed_out"]["nodes"], "n4");
    assert_eq!(report["missing"].as_array().unwrap().len(), 0);
    assert_eq!(report["exit_code"], 137);
    assert_eq!(code(&output), Some(137));
    let output = run(&["--json", "-w", "n0", "printf '\\377\\0'"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("run-1", &report);
    let stdout = &report["classes"][0]["stdout"];
    assert_eq!((&stdout["encoding"], &stdout["content"]), (&"base64".into(), &"/wA=".into()));
}

#[test]
fn standard_input_reaches_every_host_whole() {
    // More than any window of the tree holds.
    let input: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    for fan_out in ["1", "2", "16"] {
        let output = run_with_input(&["-f", fan_out, "-b", "-w", "n[0-4]", "cksum"], &input);
        let said = text(&output.stdout);
        assert!(said.contains("n[0-4] (5)") && said.contains(" 3000000"), "{fan_out}: {said}");
    }
    let output =
        run_with_input(&["-b", "-w", "n[0-2]", "test $SAPWOOD_RANK -eq 1 || wc -c"], &input);
    assert!(text(&output.stdout).contains("3000000"), "one host that reads nothing stops no other");
    let output = run_with_input(&["-n", "-b", "-w", "n[0-1]", "wc -c"], &input);
    assert_eq!(text(&output.stdout), block("n[0-1]", 2, "0\n"));
}

#[test]
fn any_bytes_pass() {
    let output = run(&["-w", "n0", "printf 'a\\0\\377\\nend'"]);
    assert_eq!(output.stdout, b"n0: a\0\xff\nn0: end\n");
    let output = run(&["-b", "-w", "n[0-1]", "printf 'a\\0\\377\\nend'"]);
    assert_eq!(output.stdout, [block("n[0-1]", 2, "").as_bytes(), b"a\0\xff\nend\n"].concat());
}

#[test]
fn a_line_without_end_takes_bounded_parts_and_is_folded_whole() {
    let script = "head -c 5000000 /dev/zero | tr '\\0' x";
    let output = run(&["-w", "n0", script]);
    let lines: Vec<&[u8]> = output.stdout.split(|&byte| byte == b'\n').collect();
    assert!(lines.iter().all(|line| line.len() < 100_000));
    assert_eq!(output.stdout.iter().filter(|&&byte| byte == b'x').count(), 5_000_000);
    let output = run(&["-b", "-f", "2", "-w", "n[0-3]", script]);
    let header = block("n[0-3]", 4, "");
    assert!(output.stdout.starts_with(header.as_bytes()));
    assert_eq!(output.stdout.len(), header.len() + 5_000_001);
}

#[test]
fn what_takes_too_long_is_ended_with_all_that_it_started() {
    let script = "test $SAPWOOD_RANK -eq 0 && exit; sleep 1000 & echo $!; sleep 1000";
    let output = run(&["-b", "-u", "20", "-w", "n[0-2]", script]);
    assert_eq!(code(&output), Some(124), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "sapwood: n[1-2] (2): timed out\n");
    let left: Vec<u32> =
        text(&output.stdout).lines().filter_map(|line| line.trim().parse().ok()).collect();
    assert_eq!(left.len(), 2, "{}", text(&output.stdout));
    left.into_iter().for_each(wait_for_end);
}

#[test]
fn what_a_command_leaves_behind_goes_on_when_it_has_ended_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    // With and without a session of its own; each begins only after its command has ended, and
    // goes on until a file is there.
    let left = |begin: &str| {
        format!(
            "{begin} sh -c 'while ! test -e {path}/go-on && test -d {path}; do sleep 0.02; done; \
             echo >{path}/$SAPWOOD_RANK' >/dev/null 2>&1 </dev/null & echo started"
        )
    };
    for begin in ["", "setsid", "nohup"] {
        let output = run(&["-b", "-w", "n[0-4]", &left(begin)]);
        assert_eq!(text(&output.stdout), block("n[0-4]", 5, "started\n"));
        assert_eq!((code(&output), text(&output.stderr)), (Some(0), ""));
        std::fs::write(folder.path().join("go-on"), "").unwrap();
        for rank in 0..5 {
            let file = folder.path().join(rank.to_string());
            wait_until("what was left behind", || file.exists());
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::remove_file(folder.path().join("go-on")).unwrap();
    }
}

#[test]
fn a_host_that_is_lost_is_named_and_may_be_accepted() {
    // The command kills its agent.
    let script = "sleep 1000 & test $SAPWOOD_RANK -ne 2 || kill -9 $PPID; kill $!; echo here";
    for fan_out in ["1", "2", "16"] {
        let output = run(&["-f", fan_out, "-b", "-w", "n[0-3]", script]);
        assert_eq!(text(&output.stdout), block("n[0-1,3]", 3, "here\n"), "{fan_out}");
        let said = text(&output.stderr);
        assert!(said.starts_with("sapwood: n2 (1): missing: "), "{said}");
        assert_eq!(code(&output), Some(255), "{fan_out}");
    }
    assert_eq!(code(&run(&["--missing-max", "1", "-w", "n[0-3]", script])), Some(0));
}

#[test]
fn nothing_outlives_a_front_end_that_is_killed() {
    let mut child = command(&["-w", "n[0-1]", "sleep 1000 & echo $!; wait"]).spawn().unwrap();
    let first = wait_for(&mut child, "\n", 1);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let pid = first.trim().rsplit(' ').next().unwrap().to_string();
    wait_for_end(pid.trim().parse().unwrap());
}

#[test]
fn the_first_interrupt_tells_who_runs_and_the_command_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = folder.path().join("go-on");
    let script = format!(
        "test $SAPWOOD_RANK -ne 1 || until test -e {}; do sleep 0.05; done; echo late",
        go_on.display()
    );
    let mut child = command(&["-w", "n[0-2]", &script]).spawn().unwrap();
    let seen = wait_for(&mut child, "late\n", 2);
    interrupt_until(&mut child, "2 of 3 hosts have ended; still running on n1 (1)");
    std::fs::write(&go_on, "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(0));
    assert_eq!(text(&output.stdout), "n1: late\n", "{seen}");
}

/// More questions than a window of 1024 bytes holds.
const WINDOW_QUESTIONS: u64 = 40;

/// How often a process has waited and gone on.
fn wakes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

#[test]
fn a_host_that_hangs_keeps_neither_the_others_nor_the_user_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = folder.path().join("go-on");
    // One has ended and answers at once, so that many questions are asked in a short time. The
    // narrow window is full soon.
    let script = format!(
        "echo agent $PPID; test $SAPWOOD_RANK -ne 0 || exit 0; until test -e {}; do sleep 0.05; \
         done",
        go_on.display()
    );
    let flow = ["--window-bytes", "1024", "--wave-milliseconds", "50"];
    let mut child = command(&[&flow[..], &["-w", "n[0-2]", &script]].concat()).spawn().unwrap();
    let lines = wait_for(&mut child, "\n", 3);
    let agent = |host: &str| -> u32 {
        let line = lines.lines().find_map(|line| line.strip_prefix(&format!("{host}: agent ")));
        line.unwrap().parse().unwrap()
    };
    let (hung, asked) = (agent("n1"), agent("n0"));
    kill_process(Pid::from_raw(hung.cast_signed()).unwrap(), Signal::STOP).unwrap();
    // Each question wakes an agent at least once.
    let enough = wakes(asked) + 2 * WINDOW_QUESTIONS;
    wait_until("the others are not asked", || wakes(asked) >= enough);
    std::fs::write(&go_on, "").unwrap();
    interrupt_until(&mut child, "2 of 3 hosts have ended; still running on n1 (1)");
    signal(&child, Signal::TERM);
    assert_eq!(code(&child.wait_with_output().unwrap()), Some(143));
    wait_for_end(hung);
}

#[test]
fn the_second_interrupt_stops_and_keeps_what_came() {
    let script = "test $SAPWOOD_RANK -eq 0 && echo kept || { echo begun; sleep 1000; }";
    let mut child = command(&["-b", "--live", "-w", "n[0-2]", script]).spawn().unwrap();
    // Also what is to be kept.
    wait_for(&mut child, "\n", 3);
    interrupt_until_it_stops(&mut child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(130), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains(&block("n0", 1, "kept\n")), "{said}");
}

#[test]
fn a_wish_to_end_is_passed_on_to_the_commands() {
    let script = "trap 'echo told; exit 3' TERM; echo begun; while :; do sleep 0.05; done";
    let mut child = command(&["-w", "n[0-1]", script]).spawn().unwrap();
    wait_for(&mut child, "begun\n", 2);
    signal(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(143));
    let said = text(&output.stderr);
    assert!(said.contains("n[0-1] (2): exited with status 3"), "{said}");
}

#[test]
fn commands_that_cannot_run_have_the_codes_of_a_shell() {
    let output = run(&["-b", "-w", "n[0-1]", "no-such-command-here"]);
    assert_eq!(code(&output), Some(127));
    assert_eq!(code(&run(&["-w", "n0", "kill -9 $$"])), Some(137));
    let output = run(&["-w", "n0", "--chdir", "/no/such/folder", "true"]);
    assert_eq!(code(&output), Some(126));
    let said = text(&output.stderr);
    assert!(said.contains("/no/such/folder") && said.contains("could not start"), "{said}");
}

#[test]
fn hosts_that_cannot_be_reached_are_missing() {
    let output = command(&["-f", "1", "-b", "-w", "n[0-1]", "true"])
        .env("SAPWOOD_NODE", "/bin/false")
        .output()
        .unwrap();
    assert_eq!(code(&output), Some(255), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("n[0-1] (2): missing: could not be reached"));
}

#[test]
fn the_command_is_told_what_the_user_says() {
    let output = run(&["-b", "-w", "n[0-1]", "--env", "A=b c", "--chdir", "/", "pwd; echo $A"]);
    assert_eq!(text(&output.stdout), block("n[0-1]", 2, "/\nb c\n"));
    let output = run(&["-L", "-w", "n[3-4]", "--substitute", "echo %h-%n %% %host"]);
    assert_eq!(text(&output.stdout), "n3: n3-0 % n3\nn4: n4-1 % n4\n");
    let output = run(&["-b", "-w", "n0", "echo %h"]);
    assert_eq!(text(&output.stdout), block("n0", 1, "%h\n"));
    let output = run(&["-b", "-w", "n0", "--exec", "echo", "a  b;", "$HOME"]);
    assert_eq!(text(&output.stdout), block("n0", 1, "a  b; $HOME\n"));
    let output = run(&["-b", "-w", "n0", "env | grep -c SAPWOOD_KEY"]);
    assert_eq!(text(&output.stdout), block("n0", 1, "0\n"));
}

#[test]
fn each_host_may_have_files_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let [out, err] = ["out", "err"].map(|name| folder.path().join(name).display().to_string());
    let script = "test $SAPWOOD_RANK -eq 2 || printf 'a\\0b'; echo c >&2";
    let output = run(&["--outdir", &out, "--errdir", &err, "-w", "n[0-2]", script]);
    assert_eq!((code(&output), output.stdout.len()), (Some(0), 0));
    let read = |folder: &str, name: &str| std::fs::read(format!("{folder}/{name}")).unwrap();
    assert_eq!((read(&out, "n0"), read(&out, "n1")), (b"a\0b".to_vec(), b"a\0b".to_vec()));
    assert_eq!((read(&out, "n2"), read(&err, "n2")), (Vec::new(), b"c\n".to_vec()));
    let same = format!("{out}/../out");
    let output = run(&["--outdir", &out, "--errdir", &same, "-w", "n[0-2]", script]);
    assert_eq!(code(&output), Some(2));
    assert!(text(&output.stderr).contains("is named by --outdir and --errdir: name two folders"));
    assert_eq!(read(&out, "n0"), b"a\0b", "what was there is kept");
}

#[test]
fn a_pipe_in_the_place_of_a_hosts_file_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("n1");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for option in ["--outdir", "--errdir"] {
        let output = run(&[option, folder.path().to_str().unwrap(), "-w", "n[0-1]", "echo a"]);
        assert_eq!(code(&output), Some(125), "{}", text(&output.stderr));
        let line = format!("cannot write to {}: it is a pipe; remove it", pipe.display());
        assert!(text(&output.stderr).contains(&line), "{}", text(&output.stderr));
    }
}

#[test]
fn a_host_that_asks_for_a_copy_of_the_program_and_then_hangs_is_given_up_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("shell");
    // It takes all bytes, or none.
    let script = "#!/bin/sh\nhost=$1; shift\ncase $host in\n\
                  far1) echo sapwood-copy; cat >/dev/null; exec sleep 100;;\n\
                  far2) echo sapwood-copy; exec sleep 100;;\n\
                  *) exec sh -c \"$*\";;\nesac\n";
    write_program(&shell, script);
    let shell = shell.to_str().unwrap();
    let words = ["run", "--new-tree", "--remote-shell", shell, "-t", "20", "-w", "far[1-3]"];
    let output = crate::cli::run(&[&words[..], &["echo hi"]].concat());
    assert_eq!(code(&output), Some(255), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "far3: hi\n");
    let errors = text(&output.stderr);
    let told: Vec<u64> = errors
        .split("no answer within ")
        .skip(1)
        .filter_map(|rest| rest.split(' ').next()?.parse().ok())
        .collect();
    // Not after the minute that a copy on its way may take.
    assert!(!told.is_empty() && told.iter().all(|&ms| ms < 60_000), "{errors}");
    assert!(errors.contains("far[1-2] (2): ") || told.len() == 2, "{errors}");
}

/// A remote shell in this folder that reaches the host `far1` once there is the file `open`, `away`
/// never, and any other host at once. Its process for `far1` is in the file `called`.
fn shell_with_a_late_host(folder: &Path) -> String {
    let [shell, open, called] = ["shell", "open", "called"].map(|name| folder.join(name));
    let (open, called) = (open.display(), called.display());
    let script = format!(
        "#!/bin/sh\nhost=$1; shift\ncase $host in\n\
         far1) echo $$ >{called}; until test -e {open}; do sleep 0.05; done;;\n\
         away) echo no way >&2; exit 1;;\nesac\n\
         exec sh -c \"$*\"\n"
    );
    write_program(&shell, &script);
    shell.to_str().unwrap().to_owned()
}

/// A command over such a shell, which runs.
fn begin_with_a_late_host(folder: &Path, hosts: &str, script: &str) -> Child {
    let shell = shell_with_a_late_host(folder);
    let words = ["run", "--new-tree", "--remote-shell", &shell, "-t", "60", "-f", "8"];
    let mut command = crate::cli::command();
    command.args(words).args(["-w", hosts, script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn hosts_begin_while_others_are_still_being_reached_and_all_have_the_whole_input() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = begin_with_a_late_host(folder.path(), "far[1-3]", "echo hi; cat");
    let first = wait_for(&mut child, ": hi\n", 2);
    let lines: BTreeSet<&str> = first.lines().collect();
    assert_eq!(lines, BTreeSet::from(["far2: hi", "far3: hi"]));
    child.stdin.take().unwrap().write_all(b"in\n").unwrap();
    std::fs::write(folder.path().join("open"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
    let lines: BTreeSet<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines, BTreeSet::from(["far1: hi", "far1: in", "far2: in", "far3: in"]));
}

#[test]
fn a_host_that_is_still_being_reached_is_named_and_does_not_begin_a_command_that_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = begin_with_a_late_host(folder.path(), "away,far[1-2]", "echo hi; sleep 1000");
    wait_for(&mut child, "far2: hi\n", 1);
    let said = "0 of 3 hosts have ended; still running on far2 (1); still reaching far1 (1)";
    interrupt_until(&mut child, said);
    signal(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(143), "{}", text(&output.stderr));
    for missing in [
        "far1 (1): missing: was still being reached when the command was stopped",
        "away (1): missing: could not be reached: ",
    ] {
        assert!(text(&output.stderr).contains(missing), "{}", text(&output.stderr));
    }
    let called = std::fs::read_to_string(folder.path().join("called")).unwrap();
    wait_for_end(called.trim().parse().unwrap());
}

#[test]
fn targets_come_from_files_and_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    std::fs::write(&path, "# all\nn1 slots=2\nn[2-3]:4\n").unwrap();
    let path = path.to_str().unwrap();
    let expected = block("n[1-3]", 3, "x\n");
    let output = run(&["-b", "--machinefile", path, "echo x"]);
    assert_eq!(text(&output.stdout), expected);
    for variable in ["WCOLL", "SAPWOOD_HOSTFILE", "PBS_NODEFILE"] {
        let output = command(&["-b", "echo x"]).env(variable, path).output().unwrap();
        assert_eq!(text(&output.stdout), expected, "{variable}");
    }
    let mut slurm = command(&["-b", "-x", "n4", "echo x"]);
    slurm.env("SLURM_JOB_NODELIST", "n[1-4]").env("SLURM_TASKS_PER_NODE", "2(x3),1");
    assert_eq!(text(&slurm.output().unwrap().stdout), expected);
    let output = run(&["-b", "--pick", "2", "-w", "n[1-9]", "echo x"]);
    assert!(text(&output.stdout).contains(" (2)\n"));
    let groups = folder.path().join("site.yaml");
    std::fs::write(&groups, "racks:\n  r1: n[1-3]\n  r2: n4\n").unwrap();
    let output = command(&["-b", "-g", "r1", "echo x"]).env("SAPWOOD_GROUPS", &groups).output();
    assert_eq!(text(&output.unwrap().stdout), expected);
}

#[test]
fn habits_of_other_tools_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let [list, site] = ["list", "site.yaml"].map(|name| folder.path().join(name));
    std::fs::write(&list, "n1\nn2 n3\n").unwrap();
    std::fs::write(&site, "racks:\n  r1: n[1-4]\n").unwrap();
    let from_list = format!("^{}", list.display());
    let table: [(&[&str], &str); 8] = [
        (&["-w", &from_list], "n[1-3]"),
        (&["-w", "n[1-5]", "-x", &from_list], "n[4-5]"),
        (&["-w", "n[1-5],-n2"], "n[1,3-5]"),
        (&["-w", "n[1-5]", "--nodes=-n[2-3]"], "n[1,4-5]"),
        (&["-a", "-s", "racks"], "n[1-4]"),
        (&["-g", "r1", "-s", "racks", "-x", "n2"], "n[1,3-4]"),
        (&["-R", "local", "-S", "-w", "n1"], "n1"),
        (&["-w", "-"], "n[7-8]"),
    ];
    for (arguments, hosts) in table {
        let mut child = command(&[&["-B"], arguments, &["echo x; exit 3"]].concat())
            .env("SAPWOOD_GROUPS", &site)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // Only one of them reads it to its end.
        let _ = child.stdin.take().unwrap().write_all(b"n7 n8\n");
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stdout);
        assert!(said.contains(&format!("\n{hosts} (")), "{arguments:?}: {said}");
        assert_eq!(code(&output), Some(3), "{arguments:?}");
    }
    // An option is no set of hosts to leave out, as where the variable behind -w is empty.
    for option in ["-b", "--json"] {
        let output = command(&["-w", option, "echo x"]).env("WCOLL", &list).output().unwrap();
        assert_eq!((code(&output), text(&output.stdout)), (Some(2), ""), "{option}");
    }
    let output = crate::cli::command()
        .args(["run", "--cold", "-o", "-p 2222", "-w", "far[1-2]", "--dry-run", "true"])
        .output()
        .unwrap();
    assert!(text(&output.stdout).contains("\nssh -p 2222 -T "), "{}", text(&output.stdout));
}

#[test]
fn what_other_tools_have_and_this_has_not_is_refused_with_what_to_use() {
    let table: [(&[&str], &str); 16] = [
        (&["-v"], "set SAPWOOD_LOG=info"),
        (&["-b", "-N", "true"], "-N is for lines with a host in front"),
        (&["--diff", "-N", "true"], "-N is for lines with a host in front"),
        (&["--prompt", "--exec"], "--exec is for the words of a command"),
        (&["--no-rc", "--missing-max", "1", "true"], "cannot be used with"),
        (&["-X", "true"], "unexpected argument '-X' found; see 'sapwood run --help'"),
        (&["-bd"], "set SAPWOOD_LOG=info"),
        (&["-r"], "nodeset regroup"),
        (&["-c", "file"], "'sapwood copy'"),
        (&["--rcopy", "file"], "--gather"),
        (&["-R", "exec"], "auto, local, ssh, slurm or attach"),
        (&["-o", "-p 22", "true"], "omit -o"),
        (&["-N", "--json", "true"], "'-N (--no-label)'"),
        (&["--json", "-b", "true"], "'-b (--fold)'"),
        (&["--dry-run", "--json", "true"], "--json"),
        (&["--join-timeout", "3", "true"], "--join"),
    ];
    for (arguments, what) in table {
        assert_refused(&run(&[&["-w", "n1"], arguments].concat()), what, arguments);
    }
    let arguments = ["run", "--tree", "t", "-f", "2", "true"];
    assert_refused(&crate::cli::run(&arguments), "--tree (--network) <NAME>", &arguments);
    assert_refused(&crate::cli::run(&arguments), "-f (--fan-out) <", &arguments);
    let arguments = ["run", "--tree", "t", "--interfaces", "lo", "true"];
    assert_refused(&crate::cli::run(&arguments), "--interfaces is for a new tree", &arguments);
    // What the environment says is not meant for this command alone.
    let output =
        crate::cli::command().args(arguments).env("SAPWOOD_INTERFACES", "lo").output().unwrap();
    assert_refused(&output, "no tree", &arguments);
}

#[test]
fn hosts_that_fail_for_one_cause_are_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let refuses = folder.path().join("refuses");
    let words = "ssh: connect to host $1 port 22: Connection refused";
    write_program(&refuses, &format!("#!/bin/sh\necho \"{words}\" >&2; exit 255\n"));
    let output = |shape: &str| {
        let mut command = command(&["--remote-shell", refuses.to_str().unwrap(), "--shape", shape]);
        command.args(["-R", "ssh", "-w", "n[1-12]", "true"]).output().unwrap()
    };
    let line = "sapwood: n[1-12] (12): missing: could not be reached: ssh: connect to port 22: \
                Connection refused\n";
    let flat = output("12");
    assert_eq!((text(&flat.stderr), code(&flat)), (line, Some(255)));
    // Two communication processes, each of which is tried on two hosts before it is started here.
    let deep = output("2x6");
    let said = text(&deep.stderr);
    let told = "sapwood: hosts n[1-2,7-8] (4): ssh: connect to port 22: Connection refused; \
                communication processes ";
    assert!(said.starts_with(told), "{said}");
    assert_eq!(said.split_once(" are started here\n").map(|(_, rest)| rest), Some(line), "{said}");
    assert_eq!(code(&deep), Some(255));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    std::fs::write(&path, "n1\nn2 slots=many\n").unwrap();
    let path = path.to_str().unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["true"], "no hosts are given"),
        (&["-t", "-1", "-w", "n1", "true"], "a negative number has no meaning here"),
        (&["--outdir", path, "-w", "n1", "true"], "is no folder: give --outdir a folder"),
        (&["-w", "n[1-", "true"], "this bracket is not closed"),
        (&["-w", "n[1-1000000000]", "true"], "more than 4194304 names"),
        (&["-w", "n1", "-x", "n1", "true"], "no host"),
        (&["-w", "@unknown", "true"], "there is no such group"),
        (&["--hostfile", path, "true"], "line 2: \"n2 slots=many\""),
        (&["-w", "n1"], "COMMAND"),
        (&["-w", "n1", "-j", "77", "true"], "only the launcher slurm knows jobs"),
        (&["-w", "n1", "--env", "nonsense", "true"], "NAME=VALUE"),
    ];
    for (arguments, what) in cases {
        assert_refused(&run(arguments), what, arguments);
    }
}

#[test]
fn a_dry_run_shows_the_tree_and_runs_nothing() {
    let output = run(&["--dry-run", "-f", "2", "-w", "n[0-3]", "exit 9"]);
    let said = text(&output.stdout);
    assert!(said.contains("4 hosts: n[0-3]") && said.contains("command: exit 9"), "{said}");
    let one = run(&["--dry-run", "-w", "n0", "true"]);
    assert!(text(&one.stdout).starts_with("1 host: n0\n"), "{}", text(&one.stdout));
    assert_eq!(code(&output), Some(0));
}
