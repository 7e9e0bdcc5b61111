//! Words and names that no file of the repository may hold.
//!
//! The words are spelled in two halves here, so that this file does not hold them either.

use crate::files::File;
use crate::finding::Finding;
use crate::io_line::holds_word;
use crate::source::is_name;

/// Marks of work that is left for later: it is done, or written down where work is planned.
const LEFT_FOR_LATER: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
];
/// Skipped tests of other languages.
const SKIPPED_TESTS: [&str; 2] = [concat!("mark.", "skip"), concat!("unittest.", "skip")];
/// Folders of one developer's machine.
const MACHINE_FOLDERS: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
/// Registries: a build takes them from its configuration, never from a file of ours.
const REGISTRY_HOSTS: [&str; 6] = [
    concat!("crates", ".io/api"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("registry.", "npmjs.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("deb.", "debian.org"),
];
/// The one source that Cargo.lock may name.
const LOCK_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
/// Ways to run a failed test again until it passes.
const REPEATED_TESTS: [&str; 5] = [
    concat!("ret", "ries"),
    concat!("re", "runs"),
    concat!("--ret", "ry"),
    concat!("--re", "try-failed"),
    concat!("flaky", "-"),
];
/// They end a program whose standard error takes no more: a line on it is `exit::complain`'s.
const FAULTS_OF_STANDARD_ERROR: [&str; 2] = [concat!("eprint", "!("), concat!("eprintln", "!(")];
const CONFIGURATION_EXTENSIONS: [&str; 6] = ["cfg", "ini", "json", "toml", "yaml", "yml"];

pub fn left_for_later(file: &File, text: &str) -> Vec<Finding> {
    let words = LEFT_FOR_LATER.iter().chain(&SKIPPED_TESTS);
    search(file, text, words, holds_word, "does or records the work, and runs the test")
}

pub fn of_this_machine(file: &File, text: &str) -> Vec<Finding> {
    let mut findings =
        search(file, text, &MACHINE_FOLDERS, holds_root_folder, "is a folder of one machine");
    findings.extend(search(
        file,
        text,
        &REGISTRY_HOSTS,
        |line, word| line.contains(word),
        "is a registry's host",
    ));
    if file.path.ends_with("Cargo.lock") {
        findings.extend(foreign_sources(file, text));
    }
    findings
}

/// Retries hide races; they are looked for where test runners are configured.
pub fn repeated_tests(file: &File, text: &str) -> Vec<Finding> {
    let name = file.path.rsplit('/').next().unwrap_or("");
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let configures = CONFIGURATION_EXTENSIONS.contains(&extension)
        || name == "Makefile"
        || file.path.starts_with(".ci/");
    if !configures {
        return Vec::new();
    }
    search(file, text, &REPEATED_TESTS, holds_word, "runs a test again: find the race instead")
}

/// A program that people run keeps its exit code and its output whatever becomes of standard error.
pub fn faults_of_standard_error(file: &File, text: &str) -> Vec<Finding> {
    if !file.path.starts_with("tools/") || !file.path.contains("/src/") {
        return Vec::new();
    }
    let why = "ends the program where standard error takes no more: use exit::complain";
    search(file, text, &FAULTS_OF_STANDARD_ERROR, holds_word, why)
}

fn search<'a>(
    file: &File,
    text: &str,
    words: impl IntoIterator<Item = &'a &'a str> + Clone,
    holds: fn(&str, &str) -> bool,
    why: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in words.clone() {
            if holds(line, word) {
                let text = format!("`{word}`: {why}");
                findings.push(Finding::new(file.path.as_str(), index + 1, text));
            }
        }
    }
    findings
}

/// True if `folder` starts a path, rather than standing inside a longer one.
fn holds_root_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|character| is_name(character) || ".}>$)".contains(character))
    })
}

fn foreign_sources(file: &File, text: &str) -> Vec<Finding> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("source = ") && *line != LOCK_SOURCE)
        .map(|(index, line)| Finding::new(file.path.as_str(), index + 1, format!("foreign {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(rule: fn(&File, &str) -> Vec<Finding>, path: &str, text: &str) -> usize {
        rule(&File::sample(path, text), text).len()
    }

    #[test]
    fn each_mark_of_unfinished_work_is_found() {
        for word in LEFT_FOR_LATER.iter().chain(&SKIPPED_TESTS) {
            let text = format!("a\n// {word} later\n");
            assert_eq!(count(left_for_later, "a.rs", &text), 1, "{word}");
        }
        let longer = format!("mktemp {}", "X".repeat(6));
        assert_eq!(count(left_for_later, "a.sh", &longer), 0);
    }

    #[test]
    fn a_folder_of_the_machine_is_found_at_the_start_of_a_path_only() {
        for folder in MACHINE_FOLDERS {
            assert_eq!(count(of_this_machine, "a.md", &format!("see {folder}x")), 1, "{folder}");
            assert_eq!(count(of_this_machine, "a.md", &format!("see frame{folder}x")), 0);
        }
    }

    #[test]
    fn each_registry_host_is_found() {
        for host in REGISTRY_HOSTS {
            assert_eq!(count(of_this_machine, "a.toml", &format!("https://{host}/x")), 1, "{host}");
        }
    }

    #[test]
    fn a_lock_file_with_another_source_is_found() {
        let text = format!("{LOCK_SOURCE}\nsource = \"git+https://example.org/x\"\n");
        assert_eq!(count(of_this_machine, "Cargo.lock", &text), 1);
    }

    #[test]
    fn a_line_that_may_end_a_program_is_found_in_tools() {
        for word in FAULTS_OF_STANDARD_ERROR {
            let text = format!("    {word}\"x\");\n");
            let found = |path| count(faults_of_standard_error, path, &text);
            assert_eq!(found("tools/run/src/lib.rs"), 1, "{word}");
            assert_eq!((found("tools/run/tests/a.rs"), found("labs/a/src/lib.rs")), (0, 0));
        }
    }

    #[test]
    fn a_test_runner_that_tries_again_is_found() {
        for word in &REPEATED_TESTS[..3] {
            let text = format!("{word} = 2\n");
            assert_eq!(count(repeated_tests, ".config/nextest.toml", &text), 1, "{word}");
            assert_eq!(count(repeated_tests, "docs/a.md", &text), 0);
        }
    }
}
