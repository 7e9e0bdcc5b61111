//! `sapwood doctor` on this machine: every check is there, and small trees work.

use crate::cli::{assert_refused, code, on_hosts, run, text, write_program};
use sapwood_schema::assert_fits;
use serde_json::Value;

const CHECKS: [&str; 11] = [
    "sapwood",
    "unix sockets",
    "loopback TCP",
    "host name",
    "open files",
    "processes",
    "clock",
    "call stacks",
    "tree over unix",
    "tree over TCP",
    "cost of a message",
];

#[test]
fn each_check_is_one_line_with_a_verdict() {
    let output = run(&["doctor"]);
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}");
    for check in CHECKS {
        assert!(lines.lines().any(|line| line[9..].starts_with(check)), "{check} in {lines}");
    }
    for line in lines.lines() {
        let verdict = line.split_whitespace().next();
        assert!(matches!(verdict, Some("ok" | "warning")), "{line}");
    }
}

#[test]
fn the_report_for_programs_has_the_same_checks() {
    let output = run(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("doctor-1", &report);
    let checks = report["checks"].as_array().unwrap();
    for name in CHECKS {
        let check = checks.iter().find(|check| check["check"] == name);
        let check = check.unwrap_or_else(|| panic!("{name} in {report}"));
        assert_eq!(check["advice"] == "", check["verdict"] == "ok", "{check}");
    }
}

#[test]
fn a_tree_beyond_the_limits_is_a_warning_with_the_cure() {
    let output = run(&["doctor", "--json", "--topology", "60000"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let files = checks.iter().find(|check| check["check"] == "open files").unwrap();
    let found = files["found"].as_str().unwrap();
    assert!(found.contains("60000 needs 300080"), "{found}");
    if files["verdict"] == "warning" {
        assert!(files["advice"].as_str().unwrap().contains("ulimit -n 300080"));
    }
}

#[test]
fn what_is_for_hosts_is_refused_without_them() {
    let table: [(&[&str], &str); 4] = [
        (&["doctor", "-f", "3"], "--hosts"),
        (&["doctor", "-t", "3"], "--hosts"),
        (&["doctor", "--hosts", "n1", "--topology", "4"], "--topology"),
        (&["doctor", "--hosts", "n1", "--json", "--dry-run"], "--json"),
    ];
    for (arguments, what) in table {
        assert_refused(&run(arguments), what, arguments);
    }
}

#[test]
fn where_no_host_is_reached_each_is_told_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refuses = folder.path().join("refuses");
    write_program(&refuses, "#!/bin/sh\necho \"$1 refuses\" >&2; exit 255\n");
    let shell = refuses.to_str().unwrap();
    let words = ["doctor", "--remote-shell", shell, "--hosts", "far[1-2]", "--json"];
    let output = run(&words);
    assert_eq!(code(&output), Some(255));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("doctor-hosts-1", &report);
    for (host, name) in report["hosts"].as_array().unwrap().iter().zip(["far1", "far2"]) {
        assert_eq!((&host["host"], &host["state"]), (&name.into(), &"missing".into()));
        assert!(host["reason"].as_str().unwrap().contains("refuses"), "{host}");
    }
}

#[test]
fn the_report_of_hosts_names_those_that_are_there_and_what_links_cost() {
    let cache = tempfile::tempdir().unwrap();
    let mut command = on_hosts(&["doctor", "--hosts", "n[0-2]", "--json"]);
    let output = command.env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("doctor-hosts-1", &report);
    let hosts = report["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 3);
    for (host, name) in hosts.iter().zip(["n0", "n1", "n2"]) {
        assert_eq!(host["host"], name);
        assert_eq!(host["state"], "ok", "{host}");
    }
}

#[test]
fn where_all_hosts_are_this_machine_the_table_says_that_no_link_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("shell");
    write_program(&shell, "#!/bin/sh\nshift; exec sh -c \"$*\"\n");
    let shell = shell.to_str().unwrap();
    let words = ["doctor", "-R", "ssh", "--remote-shell", shell, "--hosts", "localhost"];
    let output = on_hosts(&words).env("XDG_CACHE_HOME", folder.path()).output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.ends_with("\nlinks: not measured: all hosts are this machine\n"), "{said}");
}
