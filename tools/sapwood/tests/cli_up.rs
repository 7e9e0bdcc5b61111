//! A tree that stays up between commands: which commands use it, what holds in it, and how it ends.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};

use crate::cli::user::{User, pid_of};
use crate::cli::{
    assert_refused, code, interrupt_until_it_stops, read_until, text, wait_for_end, wait_until,
    write_program,
};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_tree_serves_commands_on_any_of_its_hosts_and_goes_when_it_is_told() {
    let user = User::new();
    let daemon = user.up(&["-w", "n[0-5]", "-f", "2"]);
    let agents = ["n3", "n4"].map(|host| user.agent(&["-w", host]));
    assert_eq!(agents, ["n3", "n4"].map(|host| user.agent(&["-w", host])), "they stay");
    assert_ne!(agents[0], agents[1]);
    assert_ne!(user.agent(&["--cold", "-w", "n3"]), agents[0]);
    // Hosts that it does not have, and another way to reach them, need another tree.
    assert_ne!(user.agent(&["-w", "n7"]), agents[0]);
    let shown = user.say(&["status", "--network", "warm"]);
    assert!(text(&shown.stdout).contains("warm"), "{}", text(&shown.stdout));
    let dry = user.run(&["--dry-run", "-w", "n[1-2]", "true"]);
    assert!(text(&dry.stdout).contains("tree 'warm' is up"), "{}", text(&dry.stdout));
    for other in [["--remote-shell", "other"], ["--launcher", "ssh"], ["--join", "/tmp/other"]] {
        let arguments = [&["--dry-run", "-w", "n[1-2]"], &other[..], &["true"]].concat();
        let dry = user.run(&arguments);
        assert!(!text(&dry.stdout).contains("is up"), "{other:?}: {}", text(&dry.stdout));
    }
    let output = user.say(&["down"]);
    assert_eq!(text(&output.stdout), "tree 'warm' has ended: n[0-5]\n");
    assert_eq!((code(&output), text(&output.stderr)), (Some(0), ""));
    for pid in [daemon, agents[0], agents[1]] {
        wait_for_end(pid);
    }
    assert_eq!(user.left(), Vec::<PathBuf>::new());
    assert_refused(&user.say(&["down"]), "no tree of this user is up", &[]);
}

#[test]
fn a_daemon_that_is_stopped_is_named_and_its_tree_is_not_taken_for_none() {
    let user = User::new();
    let daemon = user.up(&["-w", "n0"]);
    kill_process(pid_of(daemon), Signal::STOP).unwrap();
    let commands: [&[&str]; 3] = [&["down"], &["up", "-w", "n0"], &["up", "--replace", "-w", "n0"]];
    let outputs = commands.map(|words| user.say(words));
    kill_process(pid_of(daemon), Signal::CONT).unwrap();
    let told = format!("its daemon, process {daemon}, is stopped");
    let way_out = format!("'kill -CONT {daemon}' continues it");
    for (words, output) in commands.iter().zip(&outputs) {
        let said = text(&output.stderr);
        assert_eq!((code(output), said.lines().count()), (Some(124), 1), "{words:?}: {said}");
        assert!(said.contains(&told) && said.contains(&way_out), "{words:?}: {said}");
    }
    assert_eq!(code(&user.say(&["down"])), Some(0));
    // The other way out.
    let daemon = user.up(&["-w", "n0"]);
    kill_process(pid_of(daemon), Signal::STOP).unwrap();
    kill_process(pid_of(daemon), Signal::KILL).unwrap();
    wait_for_end(daemon);
    user.up(&["-w", "n0"]);
    assert_eq!(code(&user.say(&["down"])), Some(0));
}

#[test]
fn no_command_starts_at_a_frozen_host_after_its_user_has_gone() {
    let user = User::new();
    user.up(&["-w", "n[0-1]"]);
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().display();
    let frozen = pid_of(user.agent(&["-w", "n0"]));
    kill_process(frozen, Signal::STOP).unwrap();
    let script = format!("echo >{started}/$SAPWOOD_HOST; echo $$; exec sleep 1000");
    let mut gone = user.command(&["run", "-N", "-w", "n[0-1]", &script]).spawn().unwrap();
    let said = read_until(gone.stdout.as_mut().unwrap(), |seen| seen.ends_with('\n'));
    gone.kill().unwrap();
    gone.wait().unwrap();
    // The tree has closed its streams when it has ended at the other host and serves another.
    wait_for_end(said.trim().parse().unwrap());
    assert_eq!(code(&user.run(&["-w", "n1", "true"])), Some(0));
    kill_process(frozen, Signal::CONT).unwrap();
    let output = user.run(&["-N", "-w", "n0", &format!("ls {started}")]);
    assert_eq!((text(&output.stdout), code(&output)), ("n1\n", Some(0)));
}

#[test]
fn what_holds_for_a_command_holds_in_a_tree_that_is_up() {
    let user = User::new();
    let folder = tempfile::tempdir().unwrap();
    user.up(&["-w", "n[00-11]", "-f", "3"]);
    let script = "case $SAPWOOD_RANK in 0) exit 3;; 1) kill -9 $$;; 2) sleep 100;; *) pwd;; esac";
    let cases: [&[&str]; 14] = [
        &["-b", "-w", "n[03-05,08]", "echo $SAPWOOD_HOST >&2; echo $SAPWOOD_RANK; exit 2"],
        &["-L", "-w", "n[03-05,08]", "echo $SAPWOOD_HOST $SAPWOOD_RANK"],
        &["-b", "-L", "-w", "n[03-05,08]", "seq 3"],
        &["--json", "-u", "20", "-w", "n[06-10]", script],
        &["--diff", "-w", "n[07-11]", "seq $((SAPWOOD_RANK / 4 + 2))"],
        &["-b", "-w", "n[07-08]", "--substitute", "--env", "A=%h", "echo %n %host $A"],
        &["-b", "-w", "n07", "--chdir", "..", "pwd"],
        &["-b", "-w", "n07", "--chdir", "/no/such/folder", "pwd"],
        &["-b", "-w", "n[00-11]", "pwd; env | grep -c SAPWOOD_KEY"],
        &["-w", "n07", "--exec", "printf", "%s|", "a  b;", "$HOME"],
        &["-N", "-w", "n07", "head -c 300000 /dev/zero | tr '\\0' x"],
        &["-b", "-w", "n[00-11]", "head -c 3000000 /dev/zero | tr '\\0' y"],
        &["-b", "--no-rc", "-w", "n[00-11]", "no-such-command-here"],
        &["-b", "-n", "-w", "n[00-01]", "wc -c"],
    ];
    for case in cases {
        let outputs = [vec!["--cold"], vec![]].map(|first| {
            let arguments = [&["run"], &first[..], case].concat();
            user.command(&arguments).current_dir(folder.path()).output().unwrap()
        });
        let [cold, warm] = &outputs;
        assert_eq!(code(warm), code(cold), "{case:?}");
        assert_eq!(text(&warm.stderr), text(&cold.stderr), "{case:?}");
        assert!(warm.stdout == cold.stdout, "{case:?}: {}", text(&warm.stdout));
    }
}

#[test]
fn standard_input_reaches_every_host_whole_and_nobody_waits_for_another() {
    let user = User::new();
    user.up(&["-w", "n[0-3]"]);
    // A command that does not read, whose caller has more than any window holds.
    let mut deaf = user.command(&["run", "-w", "n[0-3]", "echo here; sleep 1000"]);
    let mut deaf = deaf.stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = deaf.stdin.take().unwrap();
    let full = std::thread::spawn(move || pipe.write_all(&vec![b'x'; 16 << 20]));
    let input: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let mut child = user
        .command(&["run", "-b", "-w", "n[1-3]", "wc -c"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(text(&output.stdout).contains("n[1-3] (3)"), "{}", text(&output.stdout));
    assert!(text(&output.stdout).ends_with("\n3000000\n"), "{}", text(&output.stdout));
    // It hears a signal though its input is full.
    kill_process(Pid::from_child(&deaf), Signal::TERM).unwrap();
    assert_eq!(code(&deaf.wait_with_output().unwrap()), Some(143));
    assert!(full.join().unwrap().is_err());
}

#[test]
fn several_commands_run_at_the_same_time() {
    let user = User::new();
    user.up(&["-w", "n[0-7]", "-f", "2"]);
    let commands: Vec<Child> = (0..6)
        .map(|number| {
            let script = format!("seq {number}000; echo end {number}");
            user.command(&["run", "-b", "-w", "n[0-7]", &script]).spawn().unwrap()
        })
        .collect();
    for (number, command) in (0..).zip(commands) {
        let output = command.wait_with_output().unwrap();
        assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(
            said.contains("n[0-7] (8)") && said.ends_with(&format!("end {number}\n")),
            "{said}"
        );
        assert_eq!(said.lines().count(), 3 + number * 1000 + 1);
    }
}

#[test]
fn a_caller_that_stops_or_dies_takes_its_command_with_it_and_no_other() {
    let user = User::new();
    user.up(&["-w", "n[0-1]"]);
    let script = "trap 'echo told; exit 3' TERM; echo begun; while :; do sleep 0.05; done";
    let child = user.begun(2, &["-w", "n[0-1]", script]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(143));
    assert!(text(&output.stderr).contains("n[0-1] (2): exited with status 3"));

    let mut child = user.begun(2, &["-b", "--live", "-w", "n[0-1]", "echo kept; sleep 1000"]);
    interrupt_until_it_stops(&mut child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("n[0-1] (2)\n"), "{}", text(&output.stdout));

    let folder = tempfile::tempdir().unwrap();
    let noted = folder.path().join("pid");
    let script = format!("echo $$ >{}; echo begun; sleep 1000", noted.display());
    let mut child = user.begun(1, &["-w", "n0", &script]);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for_end(std::fs::read_to_string(noted).unwrap().trim().parse().unwrap());
    assert_eq!(code(&user.run(&["-w", "n[0-1]", "true"])), Some(0));
}

#[test]
fn a_host_that_was_lost_is_missing_from_then_on_where_none_is_to_come_back() {
    let user = User::new();
    user.up(&["-w", "n[0-3]", "-f", "2", "--return-after", "0"]);
    let agent = user.agent(&["-w", "n2"]);
    let child = user.begun(1, &["-b", "--live", "-w", "n[0-3]", "echo here; sleep 10"]);
    kill_process(pid_of(agent), Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(255), "{}", text(&output.stderr));
    for _ in 0..2 {
        let output = user.run(&["-b", "-w", "n[1-3]", "echo here"]);
        let said = text(&output.stdout);
        assert!(said.contains("n[1,3] (2)\n"), "{said}");
        let said = text(&output.stderr);
        let again = "for all commands: sapwood up --replace '--nodes=n[0-3]' --fan-out=2 \
                     --return-after=0\n";
        assert!(said.starts_with("sapwood: n2 (1): missing: ") && said.ends_with(again), "{said}");
        assert_eq!(code(&output), Some(255));
    }
    assert_eq!(code(&user.run(&["--quorum", "1", "-w", "n[1-3]", "true"])), Some(0));
    assert_eq!(code(&user.run(&["-w", "n3", "true"])), Some(0));
    assert_eq!(code(&user.run(&["-w", "n2", "true"])), Some(255));
    assert_eq!(code(&user.run(&["--cold", "-w", "n2", "true"])), Some(0));
    // The status names the host, and the command that has it back.
    let shown = user.say(&["status"]);
    let said = text(&shown.stdout);
    let again = "to include hosts that are reachable again: sapwood up --replace \
                 '--nodes=n[0-3]' --fan-out=2 --return-after=0\n";
    assert!(said.contains("\nn2 (1): missing: ") && said.ends_with(again), "{said}");
    let before = user.agent(&["-w", "n3"]);
    user.up(&["--replace", "-w", "n[0-3]", "-f", "2"]);
    assert_ne!(user.agent(&["-w", "n3"]), before);
    assert_eq!(code(&user.run(&["-w", "n[0-3]", "true"])), Some(0));
    assert!(!text(&user.say(&["status"]).stdout).contains("missing"));
}

#[test]
fn it_is_told_when_a_host_that_was_lost_is_asked_again() {
    let user = User::new();
    user.up(&["-w", "n[0-1]", "--return-after", "3600"]);
    let agent = pid_of(user.agent(&["-w", "n1"]));
    kill_process(agent, Signal::KILL).unwrap();
    wait_until("the tree has not noticed", || {
        text(&user.say(&["status"]).stdout).contains("\nn1 (1): missing: ")
    });
    let shown = user.say(&["status"]);
    let (said, itself) =
        (text(&shown.stdout), "come back into the tree by themselves: they are asked");
    assert!(said.contains(&format!("{itself} in ")), "{said}");
    assert!(said.contains(" s, then at intervals of up to 3600 s\nto start it anew"), "{said}");
    let output = user.run(&["-w", "n1", "true"]);
    let said = text(&output.stderr);
    assert!(said.contains(&format!("{itself} at intervals of up to 3600 s")), "{said}");
    assert_eq!(code(&output), Some(255));
}

/// Waits until the status of the tree tells that a host has come back.
fn wait_for_return(user: &User, host: &str) {
    let told = format!("\nhost {host} came back at ");
    wait_until("the host has not come back", || {
        text(&user.say(&["status", "--network", "warm"]).stdout).contains(&told)
    });
}

#[test]
fn a_host_that_answers_again_comes_back_and_disturbs_no_command() {
    let user = User::new();
    let daemon = user.up(&["-w", "n[0-3]", "-f", "2", "--return-after", "0.2"]);
    let before = user.agent(&["-w", "n3"]);
    let script = "echo begun; read line; echo $line";
    let mut running = user.command(&["run", "-N", "-w", "n[0,3]", script]);
    let mut running = running.stdin(Stdio::piped()).spawn().unwrap();
    read_until(running.stdout.as_mut().unwrap(), |seen| seen == "begun\nbegun\n");
    kill_process(pid_of(user.agent(&["-w", "n2"])), Signal::KILL).unwrap();
    wait_for_return(&user, "n2");
    let output = user.run(&["-b", "-w", "n[0-3]", "echo here"]);
    assert!(text(&output.stdout).contains("n[0-3] (4)\n"), "{}", text(&output.stderr));
    assert_eq!((text(&output.stderr), code(&output)), ("", Some(0)));
    assert_ne!(user.agent(&["-w", "n3"]), before, "new commands use another tree");
    assert!(!text(&user.say(&["status"]).stdout).contains("missing"));
    // The one that was running has lost nothing, and takes its tree with it.
    running.stdin.take().unwrap().write_all(b"end\n").unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout), code(&output)), ("end\nend\n", Some(0)));
    wait_for_end(before);
    assert_eq!(user.daemons(), [daemon]);
    let output = user.say(&["down"]);
    assert_eq!(text(&output.stdout), "tree 'warm' has ended: n[0-3]\n");
    wait_for_end(daemon);
    assert_eq!(user.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_keeper_that_ends_or_is_killed_takes_earlier_trees_with_it() {
    for signal in [Signal::TERM, Signal::KILL] {
        let user = User::new();
        let daemon = user.up(&["-w", "n[0-1]", "--return-after", "0.2"]);
        let running = user.begun(1, &["-w", "n0", "echo $$; sleep 1000"]);
        let before = user.agent(&["-w", "n0"]);
        kill_process(pid_of(user.agent(&["-w", "n1"])), Signal::KILL).unwrap();
        wait_for_return(&user, "n1");
        let after = user.agent(&["-w", "n0"]);
        assert_ne!(after, before);
        kill_process(pid_of(daemon), signal).unwrap();
        let output = running.wait_with_output().unwrap();
        assert_eq!(code(&output), Some(255), "{}", text(&output.stderr));
        for pid in [daemon, before, after] {
            wait_for_end(pid);
        }
        // What a process that was killed has left is removed by the next search.
        assert_refused(&user.say(&["down"]), "no tree of this user is up", &[]);
        assert_eq!(user.say(&["status"]).stdout, b"");
        assert_eq!(user.left(), Vec::<PathBuf>::new(), "{signal:?}");
    }
}

#[test]
fn commands_that_are_read_one_after_another_have_hosts_again_that_have_come_back() {
    let user = User::new();
    user.up(&["-w", "n[0-1]", "--return-after", "0.2"]);
    let mut child = user.command(&["run", "--prompt", "-b", "-L", "-w", "n[0-1]"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = child.stdin.take().unwrap();
    lines.write_all(b"echo one\n").unwrap();
    read_until(child.stdout.as_mut().unwrap(), |seen| seen == "n[0-1]: one\n");
    kill_process(pid_of(user.agent(&["-w", "n1"])), Signal::KILL).unwrap();
    wait_for_return(&user, "n1");
    lines.write_all(b"echo two\n").unwrap();
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "n[0-1]: two\n", "{}", text(&output.stderr));
    assert_eq!(code(&output), Some(0));
}

/// Starts a tree over `far[1-2]` by a remote shell that does this first, with the host in `$host`.
/// Missing hosts are soon looked for.
fn up_by_shell(user: &User, first: &str) {
    let shell = user.folder.path().join("shell");
    let script = format!("#!/bin/sh\nhost=$1; shift\n{first}\nexec sh -c \"$*\"\n");
    write_program(&shell, &script);
    let shell = shell.to_str().unwrap();
    let reach = ["--launcher", "ssh", "--remote-shell", shell, "-t", "60", "-f", "2"];
    user.up(&[&reach[..], &["-w", "far[1-2]", "--return-after", "0.1"]].concat());
}

#[test]
fn a_new_tree_that_lacks_a_host_of_the_one_that_stands_is_not_taken() {
    let user = User::new();
    let [called, refuses] = ["called", "far2"].map(|name| user.folder.path().join(name));
    let folder = user.folder.path().display();
    let script = format!("echo $host >>{folder}/called\n[ -e {folder}/$host ] && exit 255");
    up_by_shell(&user, &script);
    let agent = |host: &str| user.agent(&["--tree", "warm", "-w", host]);
    let before = agent("far2");
    let calls = || std::fs::read_to_string(&called).unwrap().matches("far2").count();
    let first = calls();
    std::fs::write(&refuses, "").unwrap();
    kill_process(pid_of(agent("far1")), Signal::KILL).unwrap();
    // A second whole tree is begun when nothing is left of the first one.
    wait_until("no whole tree was begun again", || calls() >= first + 2);
    assert_eq!(agent("far2"), before);
    let shown = user.say(&["status", "--network", "warm"]);
    let said = text(&shown.stdout);
    assert!(said.contains("\nfar1 (1): missing: ") && !said.contains("came back"), "{said}");
    std::fs::remove_file(&refuses).unwrap();
    wait_for_return(&user, "far1");
    let output = user.run(&["--tree", "warm", "-b", "echo here"]);
    assert!(text(&output.stdout).contains("far[1-2] (2)\n"), "{}", text(&output.stderr));
}

#[test]
fn a_tree_that_is_told_to_end_while_a_host_is_looked_for_leaves_nothing() {
    let user = User::new();
    let [called, silent] = ["called", "silent"].map(|name| user.folder.path().join(name));
    let folder = user.folder.path().display();
    let hangs = format!("{{ echo $$ >{folder}/called; exec sleep 1000; }}");
    let script = format!("[ -e {folder}/silent ] && {hangs}");
    up_by_shell(&user, &script);
    let agents = ["far1", "far2"].map(|host| user.agent(&["--tree", "warm", "-w", host]));
    std::fs::write(&silent, "").unwrap();
    kill_process(pid_of(agents[0]), Signal::KILL).unwrap();
    let pid = || std::fs::read_to_string(&called).ok()?.trim().parse::<u32>().ok();
    wait_until("the host was not called", || pid().is_some());
    // Commands go on meanwhile.
    assert_eq!(user.agent(&["--tree", "warm", "-w", "far2"]), agents[1]);
    let output = user.say(&["down"]);
    assert_eq!(text(&output.stdout), "tree 'warm' has ended: far[1-2]\n");
    wait_for_end(pid().unwrap());
    wait_for_end(agents[1]);
    assert_eq!(user.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_host_that_was_silent_in_one_command_is_waited_for_briefly_in_the_next() {
    let user = User::new();
    user.up(&["-w", "n[0-2]"]);
    let agent = pid_of(user.agent(&["-w", "n1"]));
    kill_process(agent, Signal::STOP).unwrap();
    for reason in ["gave no answer for 15 s", "for 2 s, and none in the last command"] {
        let output = user.run(&["-b", "-w", "n[0-2]", "echo here"]);
        assert!(text(&output.stdout).contains("n[0,2] (2)"), "{}", text(&output.stdout));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
        assert_eq!(code(&output), Some(255));
    }
    kill_process(agent, Signal::CONT).unwrap();
    for _ in 0..2 {
        let output = user.run(&["-b", "-w", "n[0-2]", "echo here"]);
        assert!(text(&output.stdout).contains("n[0-2] (3)"), "{}", text(&output.stderr));
        assert_eq!(code(&output), Some(0));
    }
}

#[test]
fn a_tree_is_had_again_with_the_hosts_that_it_had_wherever_they_were_named() {
    let user = User::new();
    let mut up = user.command(&["up", "--return-after", "0"]);
    let up = up.env("SLURM_JOB_NODELIST", "n[0-1]").output().unwrap();
    assert_eq!(code(&up), Some(0), "{}", text(&up.stderr));
    assert_had_again(&user, "n[0-1]", "--return-after=0 '--nodes=n[0-1]'");
}

/// A host of these is lost, and the status ends with the options that have the tree again.
fn assert_had_again(user: &User, hosts: &str, options: &str) {
    let agent = user.agent(&["-w", hosts, "--pick", "1"]);
    kill_process(pid_of(agent), Signal::KILL).unwrap();
    // A command hears of it before any question.
    let output = user.run(&["-w", hosts, "sleep 0.1"]);
    assert_eq!(code(&output), Some(255), "{hosts}: {}", text(&output.stderr));
    let shown = user.say(&["status"]);
    let said = text(&shown.stdout);
    assert!(said.ends_with(&format!("sapwood up --replace {options}\n")), "{hosts}: {said}");
}

#[test]
fn a_tree_is_had_again_with_the_hosts_that_were_read() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("hosts");
    std::fs::write(&list, "n1\nn2\n").unwrap();
    let listed = format!("^{}", list.display());
    let table: [(&[&str], &str); 4] = [
        (&["-w", "n1,-"], "n[1-3]"),
        (&["-w", "^-"], "n[2-3]"),
        (&["-w", "n[1-4]", "-x", "-"], "n[1,4]"),
        (&["-w", &listed], "n[1-2]"),
    ];
    for (words, hosts) in table {
        let user = User::new();
        let arguments = [&["up", "-f", "2", "--return-after", "0"], words].concat();
        let mut up = user.command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
        up.stdin.take().unwrap().write_all(b"n2\nn3\n").unwrap();
        let up = up.wait_with_output().unwrap();
        assert_eq!(code(&up), Some(0), "{words:?}: {}", text(&up.stderr));
        let again = format!("--fan-out=2 --return-after=0 '--nodes={hosts}'");
        assert_had_again(&user, hosts, &again);
    }
}

#[test]
fn a_tree_ends_when_nobody_uses_it() {
    let user = User::new();
    let daemon = user.up(&["-w", "n0", "--idle", "10"]);
    // A command that takes longer than that is a use. One that names the tree starts no other.
    let output = user.run(&["--network", "warm", "-N", "-w", "n0", "sleep 12; echo $PPID"]);
    assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
    wait_for_end(daemon);
    wait_for_end(text(&output.stdout).trim().parse().unwrap());
    assert_eq!(user.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_keeper_that_ends_or_is_killed_leaves_nothing_that_stands_in_the_way() {
    let user = User::new();
    for signal in [Signal::TERM, Signal::KILL] {
        let daemon = user.up(&["-w", "n[0-1]"]);
        let agent = user.agent(&["-w", "n1"]);
        let child = user.begun(2, &["-w", "n[0-1]", "echo begun; sleep 1000"]);
        kill_process(pid_of(daemon), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), Some(255), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("n[0-1] (2): missing: "), "{signal:?}");
        wait_for_end(daemon);
        wait_for_end(agent);
        assert_eq!(code(&user.run(&["-w", "n1", "true"])), Some(0), "a tree of its own serves");
        assert_eq!(user.left(), Vec::<PathBuf>::new(), "{signal:?}");
    }
}

#[test]
fn a_tree_without_hosts_ends_and_whoever_looks_for_it_is_told_why() {
    let user = User::new();
    end_by_loss(&user, "warm");
    let output = user.say(&["down"]);
    let said = text(&output.stderr);
    assert_eq!(code(&output), Some(2));
    assert!(said.contains("starts one; tree 'warm' has ended: no host is left: "), "{said}");
    assert_eq!(said.lines().count(), 1);
    user.up(&["-w", "n[0-1]"]);
    user.say(&["down"]);
    let output = user.say(&["down"]);
    assert!(text(&output.stderr).ends_with("'sapwood up' starts one\n"));
    assert_eq!(user.left(), Vec::<PathBuf>::new());
}

/// Starts a tree of this name over `n[0-1]`, which then loses both and ends.
fn end_by_loss(user: &User, name: &str) {
    let others = user.daemons();
    user.up(&["--name", name, "-w", "n[0-1]", "--return-after", "0"]);
    let daemon = user.daemons().into_iter().find(|pid| !others.contains(pid)).unwrap();
    for host in ["n0", "n1"] {
        let agent = user.agent(&["--tree", name, "-w", host]);
        kill_process(pid_of(agent), Signal::KILL).unwrap();
    }
    wait_for_end(daemon);
}

#[test]
fn why_a_tree_has_ended_is_told_once_where_it_was_named_or_would_have_been_used() {
    let user = User::new();
    let told = |output: &Output| text(&output.stderr).matches(" has ended: ").count();
    end_by_loss(&user, "gone");
    user.up(&["-w", "n5"]);
    let others: [&[&str]; 4] =
        [&["-w", "n5"], &["-w", "n[1-2]"], &["--new-tree", "-w", "n0"], &["--tree", "warm"]];
    for other in others {
        let output = user.run(&[other, &["true"]].concat());
        assert_eq!((code(&output), told(&output)), (Some(0), 0), "{}", text(&output.stderr));
    }
    // It runs all the same, in a tree of its own.
    let output = user.run(&["-N", "-w", "n1", "echo here"]);
    let said = text(&output.stderr);
    assert!(said.starts_with("sapwood: tree 'gone' has ended: no host is left: "), "{said}");
    assert_eq!((text(&output.stdout), code(&output)), ("here\n", Some(0)));
    assert_eq!(told(&user.run(&["-w", "n1", "true"])), 0, "it was told");
    let named: [&[&str]; 2] = [&["run", "--tree", "gone", "true"], &["down", "gone"]];
    for arguments in named {
        end_by_loss(&user, "gone");
        let why = "no tree is called 'gone'; up: warm; tree 'gone' has ended: no host is left: ";
        assert_refused(&user.say(arguments), why, arguments);
        assert_eq!(told(&user.say(arguments)), 0, "{arguments:?}");
    }
    for arguments in [&["up", "--name", "gone", "-w", "n0"][..], &["down", "--all"]] {
        end_by_loss(&user, "gone");
        let output = user.say(arguments);
        assert_eq!((code(&output), told(&output)), (Some(0), 1), "{}", text(&output.stderr));
        user.say(&["down", "gone"]);
    }
    assert_eq!(user.left(), Vec::<PathBuf>::new());
}

#[test]
fn of_a_tree_whose_keeper_was_killed_that_is_told_and_no_other_reason() {
    let user = User::new();
    end_by_loss(&user, "two");
    let daemon = user.up(&["-w", "n0"]);
    kill_process(pid_of(daemon), Signal::KILL).unwrap();
    wait_for_end(daemon);
    let output = user.run(&["--tree", "warm", "true"]);
    assert_refused(&output, "starts one; tree 'warm' has ended: its daemon was killed", &[]);
    assert!(!text(&output.stderr).contains("'two'"), "{}", text(&output.stderr));
    let output = user.run(&["--tree", "warm", "true"]);
    assert!(text(&output.stderr).ends_with("'sapwood up' starts one\n"));
    assert_refused(&user.say(&["down"]), "starts one; tree 'two' has ended: no host", &[]);
    assert_eq!(user.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_running_command_ends_with_its_tree() {
    let user = User::new();
    user.up(&["-w", "n[0-1]"]);
    let child = user.begun(2, &["-w", "n[0-1]", "echo begun; sleep 1000"]);
    let output = user.say(&["down"]);
    assert_eq!(text(&output.stdout), "tree 'warm' has ended: n[0-1]; a command was running\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(255));
    assert!(text(&output.stderr).contains("the tree 'warm' was ended"), "{}", text(&output.stderr));
}

#[test]
fn trees_have_names() {
    let user = User::new();
    user.up(&["-w", "n[0-1]", "--name", "one"]);
    user.up(&["-w", "n[0-3]", "--name", "two"]);
    assert_refused(&user.say(&["up", "-w", "n0", "--name", "one"]), "'one' is up already", &[]);
    assert_refused(&user.say(&["down"]), "several trees are up: one, two", &[]);
    assert_refused(&user.say(&["down", "three"]), "no tree is called 'three'; up: one, two", &[]);
    let of = |name: &str| user.agent(&["-w", "n0", "--tree", name]);
    assert_ne!(of("one"), of("two"));
    assert_eq!(user.agent(&["-w", "n0"]), of("one"));
    let output = user.run(&["--tree", "two", "-b", "echo x"]);
    assert!(text(&output.stdout).contains("n[0-3] (4)"), "{}", text(&output.stdout));
    let output = user.run(&["--tree", "one", "-w", "n[1-2]", "true"]);
    assert_refused(&output, "tree 'one' does not have n2; it has n[0-1]", &[]);
    for way in [["-l", "another"], ["-o", "-p 22"]] {
        let output = user.run(&[&["--tree", "one"], &way[..], &["true"]].concat());
        assert_refused(&output, "tree 'one' reaches its hosts by launcher local", &way);
    }
    let output = user.say(&["down", "--all"]);
    let said = text(&output.stdout);
    assert!(said.contains("'one' has ended") && said.contains("'two' has ended"), "{said}");
    assert_eq!(user.left(), Vec::<PathBuf>::new());
}

#[test]
fn of_several_trees_that_one_is_used_in_which_the_fewest_hosts_are_missing() {
    let user = User::new();
    for name in ["aa", "zz"] {
        user.up(&["--name", name, "-w", "n[0-1]", "--return-after", "0"]);
    }
    let agent = |name: &str, host: &str| user.agent(&["--tree", name, "-w", host]);
    let lose = |name: &str, host: &str| {
        kill_process(pid_of(agent(name, host)), Signal::KILL).unwrap();
        // A command hears of it before any question.
        let output = user.run(&["--tree", name, "sleep 0.1"]);
        assert_eq!(code(&output), Some(255), "{name}: {}", text(&output.stderr));
    };
    lose("aa", "n1");
    assert_eq!(user.agent(&["-w", "n1"]), agent("zz", "n1"));
    assert_eq!(user.agent(&["-w", "n0"]), agent("aa", "n0"), "the first of two that have it");
    assert_eq!(code(&user.run(&["-w", "n[0-1]", "true"])), Some(0));
    // Each lacks one now.
    lose("zz", "n0");
    let output = user.run(&["-w", "n[0-1]", "true"]);
    assert!(text(&output.stderr).contains("n1 (1): missing: "), "{}", text(&output.stderr));
    assert_eq!(code(&output), Some(255));
}

#[test]
fn bad_input_and_hosts_that_cannot_be_reached_leave_no_tree() {
    let user = User::new();
    assert_refused(&user.say(&["up"]), "no hosts are given", &[]);
    assert_refused(&user.say(&["up", "-w", "n[0-"]), "this bracket is not closed", &[]);
    let output = user.say(&["up", "-s", "nosuch", "-w", "n0"]);
    assert_refused(&output, "no source of groups named \"nosuch\"", &[]);
    let output =
        user.command(&["up", "-f", "1", "-w", "n[0-1]"]).env("SAPWOOD_NODE", "/bin/false").output();
    let output = output.unwrap();
    assert_eq!(code(&output), Some(255), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("n[0-1] (2): missing: could not be reached"));
    assert_eq!(user.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_tree_of_which_its_user_cannot_be_told_does_not_stay() {
    let user = User::new();
    let up = |to: &str| {
        let mut shell = crate::cli::clean_command("sh");
        shell.arg("-c").arg(format!("exec '{}' up -w n0 {to}", crate::cli::program()));
        shell.env("SAPWOOD_LAUNCHER", "local").env("XDG_RUNTIME_DIR", user.folder.path());
        shell.output().unwrap()
    };
    for to in [">&-", ">/dev/full"] {
        let output = up(to);
        assert_eq!(code(&output), Some(125), "{to}: {}", text(&output.stderr));
        assert_eq!(user.left(), Vec::<PathBuf>::new(), "{to}");
    }
    assert_eq!(code(&up("")), Some(0), "nothing stands in the way of a second try");
}

#[test]
fn a_folder_that_others_may_enter_is_not_trusted() {
    let user = User::new();
    let folder = user.folder.path().join("sapwood");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_refused(&user.say(&["up", "-w", "n0"]), "others may enter it", &[]);
    assert_eq!(code(&user.run(&["-w", "n0", "true"])), Some(0), "a tree of its own needs it not");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    user.up(&["-w", "n0"]);
    let socket = folder.join("warm.tree");
    assert_eq!(std::fs::metadata(socket).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn commands_are_read_one_after_another() {
    let user = User::new();
    let lines = b"echo $PPID $SAPWOOD_HOST\n\n:help\nexit 3\n:quit\necho never\n";
    for is_up in [false, true] {
        if is_up {
            user.up(&["-w", "n[0-1]"]);
        }
        let mut child = user.command(&["run", "--prompt", "-L", "-w", "n[0-1]"]);
        let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stdout);
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(said.lines().zip(["n0", "n1"]).all(|(line, host)| line.ends_with(host)), "{said}");
        let errors = text(&output.stderr);
        assert!(errors.contains("there is no :help"), "{errors}");
        assert!(errors.contains("n[0-1] (2): exited with status 3"), "{errors}");
        assert_eq!(code(&output), Some(3));
    }
    let mut child = user.command(&["run", "--prompt", "-w", "n[0-1]"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"echo same\n").unwrap();
    let said = child.wait_with_output().unwrap();
    assert!(text(&said.stdout).contains("n[0-1] (2)"), "folded: {}", text(&said.stdout));
}

#[test]
fn commands_that_cannot_be_read_are_not_passed_over_in_silence() {
    let user = User::new();
    let mut child = user.command(&["run", "--prompt", "-L", "-w", "n0"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"echo one\necho \xff\necho two\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "n0: one\n");
    assert_eq!(code(&output), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("the next command cannot be read"), "{errors}");
}

#[test]
fn who_comes_by_himself_finds_the_join_file_where_the_tree_was_asked_for() {
    let user = User::new();
    let folder = tempfile::tempdir().unwrap();
    let say = |arguments: &[&str]| {
        let mut command = user.command(arguments);
        command.env_remove("SAPWOOD_LAUNCHER").env("HOME", user.folder.path());
        command.current_dir(folder.path()).output().unwrap()
    };
    let mut agent = user.command(&["node", "agent"]);
    agent.env("SAPWOOD_JOIN", folder.path().join("join")).env("SAPWOOD_RANK", "0");
    let agent = agent.spawn().unwrap();
    let output = say(&["up", "--join", "join", "-w", "n0"]);
    assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
    let is_up = |arguments: &[&str]| {
        let dry = say(&[&["run", "--dry-run", "-w", "n0"], arguments, &["true"]].concat());
        text(&dry.stdout).contains("tree 'warm' is up")
    };
    assert!(is_up(&["--join", "join"]) && is_up(&["--tree", "warm"]));
    assert!(!is_up(&[]), "names of hosts that come are only labels");
    assert!(!is_up(&["--join", "another"]));
    assert_eq!(code(&user.say(&["down"])), Some(0));
    assert_eq!(code(&agent.wait_with_output().unwrap()), Some(0));
}
