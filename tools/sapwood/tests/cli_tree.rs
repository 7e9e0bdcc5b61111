//! Which tree `sapwood run` has over its hosts, as `--dry-run` says: chosen, asked for, or refused.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::cli::{assert_refused, text};

/// A run over 64 hosts that starts nothing, with a cache folder of its own.
fn dry_run(cache: &Path, arguments: &[&str]) -> Output {
    let mut command = crate::cli::command();
    command.args(["run", "--dry-run", "--launcher", "ssh", "-w", "n[0-63]"]).args(arguments);
    command.arg("true").env("XDG_CACHE_HOME", cache);
    command.output().unwrap()
}

/// The line about the tree.
fn why(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let line = text(&output.stdout).lines().find(|line| line.starts_with("tree: "));
    line.expect("a line about the tree").to_string()
}

#[test]
fn the_tree_is_chosen_by_an_estimate_or_by_what_was_measured() {
    let cache = tempfile::tempdir().unwrap();
    let guess = why(&dry_run(cache.path(), &[]));
    // How much a flat one would take depends on the processors on which its clients run.
    assert!(guess.contains(" ms to start instead of "), "{guess}");
    assert!(guess.contains(" flat, estimated"), "{guess}");
    let folder = cache.path().join("sapwood");
    fs::create_dir(&folder).unwrap();
    // Log-ins that take long, and cost the caller nothing: the flatter the better.
    let links = r#"{"schema":"sapwood.links/2","measured":[{"date":1,"hosts":"n[3-9]","road":"ssh",
        "latency_us":9,"overhead_us":1,"gap_us":1,"gap_per_byte_us":0,
        "log_in_us":1000000,"log_in_gap_us":10,
        "machines":7,"processors":2}]}"#;
    fs::write(folder.join("links.json"), links).unwrap();
    let measured = why(&dry_run(cache.path(), &["--concurrent", "1000"]));
    assert!(measured.starts_with("tree: flat: "), "{measured}");
    assert!(measured.contains("days ago on 7 hosts"), "{measured}");
    fs::write(folder.join("links.json"), &links[..100]).unwrap();
    assert_eq!(why(&dry_run(cache.path(), &[])), guess, "a damaged cache is none");
}

#[test]
fn hosts_of_one_switch_are_grouped() {
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("topology.conf");
    let switches = "SwitchName=a Nodes=n[0-11]\nSwitchName=b Nodes=n[12-27]\n\
                    SwitchName=c Nodes=n[28-47]\nSwitchName=d Nodes=n[48-63]\n\
                    SwitchName=top Switches=a,b,c,d\n";
    fs::write(&file, switches).unwrap();
    let file = file.to_str().unwrap();
    let line = why(&dry_run(cache.path(), &["--switches", file]));
    assert!(line.contains("g:4:12,16,20,16 by switch: "), "{line}");
    fs::write(file, "SwitchName=a Nodes=n[0-").unwrap();
    assert_refused(&dry_run(cache.path(), &["--switches", file]), "n[0-", &[]);
    assert_refused(&dry_run(cache.path(), &["--switches", "/nowhere"]), "/nowhere", &[]);
}

#[test]
fn what_is_asked_for_is_what_is_taken() {
    let cache = tempfile::tempdir().unwrap();
    assert_eq!(why(&dry_run(cache.path(), &["-f", "8"])), "tree: fan-out 8, as given");
    assert_eq!(why(&dry_run(cache.path(), &["--shape", "k:2@128"])), "tree: k:2@128, as given");
    let output = dry_run(cache.path(), &["--shape", "4x16", "--communication-hosts", "c[0-1]"]);
    let clients = text(&output.stdout).lines().filter(|line| line.contains(" -- c")).count();
    assert_eq!(clients, 4, "two on each");
    assert!(why(&output).contains("4x16"));
}

#[test]
fn a_launcher_that_is_named_reaches_this_machine_as_well() {
    let commands = |words: &[&str]| {
        let hosts = ["run", "--new-tree", "--dry-run", "-w", "localhost"];
        let output = crate::cli::command().args(hosts).args(words).arg("true").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout).to_owned();
        said.lines().filter(|line| line.contains(" -- localhost ")).count()
    };
    assert_eq!(commands(&[]), 0, "it is this machine");
    for named in [&["-R", "ssh"][..], &["-l", "another"], &["-o", "-p 22"]] {
        assert_eq!(commands(named), 1, "{named:?}");
    }
}

#[test]
fn a_tree_that_cannot_be_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], what: &str| {
        assert_refused(&dry_run(cache.path(), arguments), what, arguments);
    };
    refused(&["--shape", "4x4"], "16 back-ends");
    refused(&["--shape", "8^2", "-f", "8"], "cannot be used with");
    refused(&["--communication-hosts", "c["], "c[");
    refused(&["-f", "0"], "0");
}
