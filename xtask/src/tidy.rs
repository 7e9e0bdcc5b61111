//! The house style, as far as a program can see it.
//!
//! Each rule is one function from a [`File`] to its findings; [`check`] runs them all over the
//! repository. What the rules mean and why is in `docs/STYLE.md`. Rules about which crate may touch
//! what are not here but in [`crate::layers`] and [`crate::io_line`].

mod examples;
mod links;
mod prose;
mod unlisted;
mod vague;
mod words;

use crate::files::File;
use crate::finding::Finding;
use crate::functions::functions;
use crate::source::{Language, Masked, mask};

/// A function in C or Python fits on a screen; `clippy.toml` has the same for Rust.
const FUNCTION_LINES_MAX: usize = 70;
/// A source file that is longer than this is two files.
const FILE_LINES_MAX: usize = 800;
/// A generated file says so within its first lines.
const GENERATED_LINES: usize = 6;
/// What a source file aims at; more is counted, not refused.
const FILE_LINES_AIM: usize = 400;
/// Nothing larger is kept in the repository.
const FILE_BYTES_MAX: u64 = 1_000_000;
/// Rust lines; rustfmt keeps the code to it, this check the comments.
const RUST_COLUMNS_MAX: usize = 100;

/// Extensions of files whose length is looked at.
const SOURCE_EXTENSIONS: [&str; 14] =
    ["c", "cpp", "css", "f90", "h", "hpp", "html", "inc", "js", "pl", "py", "rs", "sh", "ts"];
/// Names that say nothing about what a file or module holds.
const EMPTY_NAMES: [&str; 8] =
    ["util", "utils", "common", "helper", "helpers", "misc", "core", "manager"];
/// Files there have names that another project gave them, for its tools to find.
const NAMED_BY_OTHERS: &str = "bindings/mrnet/include/";

/// What the check found, and how many files are longer than they aim to be.
#[derive(Debug)]
pub struct Report {
    pub findings: Vec<Finding>,
    pub long_files: usize,
}

/// Runs every rule over every file.
pub fn check(files: &[File]) -> Report {
    let mut report = Report { findings: Vec::new(), long_files: 0 };
    for file in files {
        report.findings.extend(size(file));
        report.findings.extend(names(file));
        let Some(text) = &file.text else { continue };
        report.findings.extend(length(file, text));
        report.findings.extend(words::left_for_later(file, text));
        report.findings.extend(words::of_this_machine(file, text));
        report.findings.extend(words::repeated_tests(file, text));
        report.findings.extend(words::faults_of_standard_error(file, text));
        report.findings.extend(vague::words(file, text));
        report.findings.extend(links::broken(file, text, files));
        report.findings.extend(unlisted::tests(file, text, files));
        report.findings.extend(examples::run(file, text, files));
        report.long_files += usize::from(is_source(file) && lines(text) > FILE_LINES_AIM);
        let Some(language) = Language::of(file.path.as_ref(), text) else { continue };
        let masked = mask(text, language);
        report.findings.extend(long_functions(file, &masked, language));
        report.findings.extend(prose::opening(file, text, language));
        if language == Language::Rust {
            report.findings.extend(wide_comments(file, text, &masked));
            report.findings.extend(module_names(file, &masked));
        }
    }
    report
}

fn is_source(file: &File) -> bool {
    let extension = file.path.rsplit_once('.').map_or("", |(_, extension)| extension);
    SOURCE_EXTENSIONS.contains(&extension)
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

fn size(file: &File) -> Option<Finding> {
    (file.bytes > FILE_BYTES_MAX).then(|| {
        let text =
            format!("{} bytes, more than {FILE_BYTES_MAX}: generate or fetch it", file.bytes);
        Finding::new(file.path.as_str(), 0, text)
    })
}

/// A generated file is as long as what it is made of; that is looked at instead.
fn is_generated(text: &str) -> bool {
    text.lines().take(GENERATED_LINES).any(|line| line.contains("Generated from the "))
}

fn length(file: &File, text: &str) -> Option<Finding> {
    let lines = lines(text);
    (is_source(file) && lines > FILE_LINES_MAX && !is_generated(text)).then(|| {
        let text = format!("{lines} lines, more than {FILE_LINES_MAX}: split it by what it owns");
        Finding::new(file.path.as_str(), 0, text)
    })
}

fn long_functions(file: &File, masked: &Masked, language: Language) -> Vec<Finding> {
    functions(&masked.code, language)
        .into_iter()
        .filter(|function| function.length > FUNCTION_LINES_MAX)
        .map(|function| {
            let text = format!(
                "{} has {} lines, more than {FUNCTION_LINES_MAX}: keep the branches, move the work",
                function.name, function.length
            );
            Finding::new(file.path.as_str(), function.line, text)
        })
        .collect()
}

fn wide_comments(file: &File, text: &str, masked: &Masked) -> Vec<Finding> {
    text.lines()
        .zip(masked.comments.lines())
        .enumerate()
        .filter(|(_, (line, comment))| {
            line.chars().count() > RUST_COLUMNS_MAX
                && !comment.trim().is_empty()
                && !comment.contains("://")
        })
        .map(|(index, (line, _))| {
            let columns = line.chars().count();
            let text = format!("a comment reaches column {columns}, past {RUST_COLUMNS_MAX}");
            Finding::new(file.path.as_str(), index + 1, text)
        })
        .collect()
}

/// Files and folders with a name that says nothing.
fn names(file: &File) -> Vec<Finding> {
    if file.path.starts_with(NAMED_BY_OTHERS) {
        return Vec::new();
    }
    file.path
        .split('/')
        .filter_map(|part| {
            let stem = part.split('.').next().unwrap_or(part);
            let name = empty_name(stem)?;
            let text = format!("`{name}` names nothing: call {part} by what it holds");
            Some(Finding::new(file.path.as_str(), 0, text))
        })
        .collect()
}

fn module_names(file: &File, masked: &Masked) -> Vec<Finding> {
    masked
        .code
        .lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let (_, rest) = line.split_once("mod ")?;
            let name = rest.split([';', '{', ' ']).next().unwrap_or("");
            let name = empty_name(name)?;
            let text = format!("`{name}` names nothing: call the module by what it holds");
            Some(Finding::new(file.path.as_str(), index + 1, text))
        })
        .collect()
}

/// The empty word in a name; parts of a name count too, other than `core`, which is also a
/// processor's.
fn empty_name(name: &str) -> Option<&'static str> {
    EMPTY_NAMES.into_iter().find(|empty| {
        name == *empty || (*empty != "core" && name.split(['_', '-']).any(|part| part == *empty))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let report = check(&[File::sample(path, text)]);
        report.findings.iter().map(ToString::to_string).collect()
    }

    fn one(path: &str, text: &str) -> String {
        let mut all = found(path, text);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn a_tidy_file_is_silent() {
        assert!(found("crates/a/src/wave.rs", "//! Waves.\n\nfn wave() {}\n").is_empty());
    }

    #[test]
    fn a_function_of_71_lines_is_found_and_one_of_70_is_not() {
        let c = |lines: usize| {
            format!("/* A. */\nint f(void)\n{{\n{}}}\n", "    g();\n".repeat(lines - 3))
        };
        assert!(found("a.c", &c(70)).is_empty());
        assert!(one("a.c", &c(71)).starts_with("a.c:2: f has 71 lines"));
        let python = format!("\"\"\"A.\"\"\"\ndef f():\n{}", "    g()\n".repeat(70));
        assert!(one("a.py", &python).contains("f has 71 lines"));
    }

    #[test]
    fn a_file_of_801_lines_is_found_and_one_of_401_is_counted() {
        let text = |lines: usize| format!("//! A.\n{}", "use a;\n".repeat(lines - 1));
        assert!(one("a.rs", &text(801)).contains("801 lines"));
        let report = check(&[File::sample("a.rs", &text(401))]);
        assert!(report.findings.is_empty());
        assert_eq!(report.long_files, 1);
    }

    #[test]
    fn a_file_over_a_megabyte_is_found() {
        let file = File { path: "a.bin".into(), bytes: FILE_BYTES_MAX + 1, text: None };
        assert!(size(&file).is_some());
    }

    #[test]
    fn empty_names_are_found_in_files_folders_and_modules() {
        assert!(one("crates/util/src/a.rs", "//! A.\n").contains("`util`"));
        assert!(one("tests/test_helpers.rs", "//! A.\n").contains("`helpers`"));
        assert!(one("a.rs", "//! A.\npub mod manager;\n").starts_with("a.rs:2: `manager`"));
        assert!(found("crates/multicore/src/cpu_core.rs", "//! A.\n").is_empty());
        assert!(found("bindings/mrnet/include/xplat/xplat_utils.h", "/* A. */\n").is_empty());
    }

    #[test]
    fn a_comment_past_the_last_column_is_found() {
        let wide = format!("//! A.\n// {}\n", "word ".repeat(20));
        assert!(one("a.rs", &wide).contains("a.rs:2: a comment reaches column"));
        let code = format!("//! A.\nconst A: &str = \"{}\";\n", "word ".repeat(20));
        assert!(found("a.rs", &code).is_empty());
    }
}
