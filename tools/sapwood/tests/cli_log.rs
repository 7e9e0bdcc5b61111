//! `SAPWOOD_LOG`: what the processes of a tree write about themselves, and nothing where it is not
//! set.

use std::fs;
use std::path::Path;

use crate::cli::{assert_refused, on_hosts, text};

/// Four hosts below two communication processes.
const TREE: [&str; 6] = ["run", "--new-tree", "--shape", "2x2", "-w", "n[0-3]"];

/// The lines of a file that have all of these words.
fn lines_with(log: &str, words: &[&str]) -> usize {
    log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
}

fn run_logged(asked: &str, file: &Path, command: &str) -> String {
    let mut call = on_hosts(&[&TREE[..], &[command]].concat());
    call.env("SAPWOOD_LOG", asked).env("SAPWOOD_LOG_FILE", file);
    let output = call.output().unwrap();
    assert_eq!(crate::cli::code(&output), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "events go to the file alone");
    fs::read_to_string(file).unwrap()
}

#[test]
fn nothing_is_written_unless_it_is_asked_for() {
    for asked in [None, Some(""), Some("off")] {
        let mut call = on_hosts(&[&TREE[..], &["true"]].concat());
        asked.map(|asked| call.env("SAPWOOD_LOG", asked));
        let output = call.output().unwrap();
        assert_eq!(crate::cli::code(&output), Some(0));
        assert_eq!(text(&output.stderr), "", "{asked:?}");
    }
}

#[test]
fn starts_links_streams_and_the_adoption_of_orphans_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.log");
    // The parent of rank 0's back-end is a communication process; the command goes on until its
    // orphans are adopted.
    let command = format!(
        "if [ $SAPWOOD_RANK = 0 ]; then kill -9 $(ps -o ppid= -p $PPID); \
         timeout 100 sh -c 'until grep -q adopted {}; do sleep 0.05; done'; fi",
        file.display()
    );
    let log = run_logged("debug", &file, &command);
    assert_eq!(lines_with(&log, &["INFO sapwood::launch: started rank="]), 6, "{log}");
    assert_eq!(lines_with(&log, &["INFO sapwood::member: ready", "back_ends=0-3"]), 1, "{log}");
    let lost = ["WARN sapwood::member: lost, orphans wait", "rank=5 back_ends=0-1"];
    assert_eq!(lines_with(&log, &lost), 1, "{log}");
    assert!(lines_with(&log, &["INFO sapwood::member: adopted", "rank=5 adopter=4"]) >= 1, "{log}");
    assert_eq!(lines_with(&log, &["has a new parent"]), 2, "{log}");
    // Both ends of six links, and of two more after the adoption, but for the end that was killed.
    assert!(lines_with(&log, &["DEBUG sapwood::link: up link="]) >= 12, "{log}");
    assert!(lines_with(&log, &["DEBUG sapwood::link: down link="]) >= 6, "{log}");
    assert!(lines_with(&log, &["sapwood::stream: opened stream=", "members=0-3"]) >= 1, "{log}");
    assert!(lines_with(&log, &["sapwood::stream: closed stream="]) >= 1, "{log}");
    // A line is of one process: time, host and number, level, part.
    for line in log.lines() {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        assert!(words[0].ends_with('Z') && words[1].ends_with(']'), "{line}");
        assert!(["INFO", "WARN", "DEBUG"].contains(&words[2]), "{line}");
        assert!(words[3].starts_with("sapwood::") && words[3].ends_with(':'), "{line}");
    }
}

#[test]
fn no_line_holds_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let log = run_logged("trace", &folder.path().join("tree.log"), "true");
    assert!(lines_with(&log, &["DEBUG sapwood::link: up link="]) >= 6, "{log}");
    // As text a key of 32 bytes is 64 digits, as a list 32 numbers.
    let digits = log.split(|letter: char| !letter.is_ascii_hexdigit()).map(str::len).max();
    assert!(digits < Some(64), "{log}");
    let is_of_list = |letter: char| letter.is_ascii_digit() || ", ".contains(letter);
    let numbers = |text: &str| text.split(", ").filter(|number| !number.is_empty()).count();
    let longest = log.split(|letter: char| !is_of_list(letter)).map(numbers).max();
    assert!(longest < Some(32), "{log}");
}

#[test]
fn parts_are_chosen_and_each_process_can_have_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut call = on_hosts(&[&TREE[..], &["true"]].concat());
    call.env("SAPWOOD_LOG", "off,sapwood::link=debug");
    call.env("SAPWOOD_LOG_FILE", folder.path().join("%p.log"));
    assert_eq!(crate::cli::code(&call.output().unwrap()), Some(0));
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap()).collect();
    assert_eq!(files.len(), 7, "a front-end, two communication processes, four back-ends");
    for file in files {
        let name = file.file_name().into_string().unwrap();
        let process = format!("[{}] ", name.trim_end_matches(".log"));
        let log = fs::read_to_string(file.path()).unwrap();
        assert!(!log.is_empty(), "{name}");
        assert_eq!(lines_with(&log, &[&process, "DEBUG sapwood::link: "]), log.lines().count());
    }
}

#[test]
fn what_cannot_be_followed_is_refused_in_one_line() {
    let call = |asked: &str, file: &str| {
        let mut command = crate::cli::command();
        command.args(["nodeset", "count", "n[0-3]"]);
        command.env("SAPWOOD_LOG", asked).env("SAPWOOD_LOG_FILE", file).output().unwrap()
    };
    for asked in ["inof", "sapwood::link", "sapwood::lnk=debug", "info,", "link=4"] {
        assert_refused(&call(asked, ""), "SAPWOOD_LOG has '", &[asked]);
    }
    assert_refused(&call("info", "/proc/none/file"), "SAPWOOD_LOG_FILE: cannot write", &["file"]);
    assert_eq!(crate::cli::code(&call("info", "")), Some(0));
}
