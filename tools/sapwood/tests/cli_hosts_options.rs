//! Options about hosts and trees over them, which all commands over hosts share: in each of these
//! commands they have their effect, or are refused.

use crate::cli::{assert_refused, code, command, run, text};

/// A file that can be copied.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

/// The commands, with what stands behind their options.
const COMMANDS: [(&[&str], &[&str]); 5] = [
    (&["run", "--new-tree"], &["true"]),
    (&["copy"], &[FILE, "/tmp/no-such-folder/"]),
    (&["top"], &[]),
    (&["up"], &[]),
    (&["doctor"], &[]),
];

/// How a command names its hosts.
fn hosts_of(words: &[&str]) -> &'static str {
    if words == ["doctor"] { "--hosts" } else { "-w" }
}

#[test]
fn what_would_have_no_effect_on_a_tree_is_refused_by_every_command() {
    let table: [(&[&str], &str); 10] = [
        (&["--communication-hosts", "c1", "--launcher", "local"], "--communication-hosts: "),
        (&["--switches", "/nowhere", "--launcher", "local"], "--switches: "),
        (&["--switches", "/nowhere", "-f", "2"], "cannot be used with"),
        (&["--switches", "/nowhere", "--shape", "4"], "cannot be used with"),
        (&["--shape", "9x9", "--launcher", "ssh"], "81 back-ends"),
        (&["--jobid", "5", "--launcher", "ssh"], "only the launcher slurm knows jobs"),
        (&["--concurrent", "0"], "--concurrent"),
        (&["--join-port", "5000"], "--join-key"),
        (&["--join-key", "key"], "--join-port"),
        (&["--join-timeout", "5"], "--join"),
    ];
    for (words, operands) in COMMANDS {
        for (options, what) in table {
            let all = [words, &[hosts_of(words), "n[1-4]"], options, operands].concat();
            assert_refused(&run(&all), what, &all);
        }
    }
}

#[test]
fn interfaces_that_are_not_there_are_named_by_every_command() {
    let reach = ["--launcher", "ssh", "--remote-shell", "false", "--interfaces", "nosuch0"];
    // A tree that another test starts has the same name.
    let folder = tempfile::tempdir().unwrap();
    for (words, operands) in COMMANDS {
        let mut asked = command();
        asked.args([words, &reach, &[hosts_of(words), "n1"], operands].concat());
        let output = asked.env("XDG_RUNTIME_DIR", folder.path()).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!((code(&output), said.lines().count()), (Some(125), 1), "{words:?}: {said}");
        assert!(
            said.contains("no interface of this host is one of 'nosuch0'"),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn a_dry_run_has_the_tree_and_the_remote_shell_that_options_ask_for() {
    let table: [(&[&str], &str); 3] = [
        (&["--shape", "2x2"], "\u{20}communication process 5 n1:0\n"),
        (&["-f", "2", "--communication-hosts", "c[1-2]"], "\u{20}communication process 5 c1:0\n"),
        (&["-o", "-p 2222"], "\nssh -p 2222 "),
    ];
    for (words, operands) in COMMANDS.into_iter().filter(|(words, _)| *words != ["up"]) {
        for (options, what) in table {
            let reach = ["--launcher", "ssh", "--dry-run", hosts_of(words), "n[1-4]"];
            let output = run(&[words, &reach, options, operands].concat());
            let said = text(&output.stdout);
            assert_eq!((code(&output), said.contains(what)), (Some(0), true), "{words:?}: {said}");
        }
    }
}

#[test]
fn hosts_are_chosen_in_the_same_way_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let [list, site] = ["list", "site.yaml"].map(|name| folder.path().join(name));
    std::fs::write(&list, "n7\nn8\n").unwrap();
    std::fs::write(&site, "racks:\n  r1: n[1-4]\n  all: n[1-9]\n").unwrap();
    let list = list.to_str().unwrap();
    let table: [(&[&str], &str); 6] = [
        (&["-w", "n[1-4]", "--exclude", "n4"], "3 hosts: n[1-3]\n"),
        (&["--hostfile", list], "2 hosts: n[7-8]\n"),
        (&["--group", "r1", "--source", "racks"], "4 hosts: n[1-4]\n"),
        (&["--all", "--source", "racks"], "9 hosts: n[1-9]\n"),
        (&["-w", "n[1-4]", "--pick", "2"], "2 hosts: n["),
        (&["-w", "n1", "--user", "bob"], "\nssh -l bob "),
    ];
    for (words, operands) in COMMANDS {
        if !["run", "copy", "top"].contains(&words[0]) {
            continue;
        }
        for (options, what) in table {
            let mut asked = command();
            asked.args(words).args(["--launcher", "ssh", "--dry-run"]).args(options).args(operands);
            let output = asked.env("SAPWOOD_GROUPS", &site).output().unwrap();
            let said = format!("\n{}", text(&output.stdout));
            assert_eq!((code(&output), said.contains(what)), (Some(0), true), "{words:?}: {said}");
        }
    }
}
