//! Keeps the names in `docs/packet-path.md` true.
//!
//! Two kinds of name are read. A path that begins with a folder of the repository and ends in a
//! file name must exist. A name in backticks belongs to the last `.rs` or `.c` file that was named
//! before it: `flush`, `flush()` and `Node::flush` need a function `flush` in that file, and a name
//! that begins with a capital must stand somewhere in that file's code. Other text in backticks,
//! such as a format string or a shell command, is not a name and is left alone. Tables of limits
//! are read by `limit_values`, too.

use crate::files::File;
use crate::finding::Finding;
use crate::io_line::holds_word;
use crate::limit_values;
use crate::source::{Language, is_name, mask};

pub const PAGE: &str = "docs/packet-path.md";
const FOLDERS: [&str; 8] =
    ["crates/", "tools/", "bindings/", "labs/", "conformance/", "docs/", "fuzz/", "testbed/"];

/// Compares the page with the sources.
pub fn check(files: &[File]) -> Vec<Finding> {
    let page = files.iter().find(|file| file.path == PAGE).and_then(|file| file.text.as_deref());
    let Some(page) = page else {
        return vec![Finding::new(PAGE, 0, "is missing: write one packet's way, file by file")];
    };
    let mut findings = Vec::new();
    let mut current: Option<&File> = None;
    for (index, line) in page.lines().enumerate() {
        for name in names(line) {
            let wrong = match name {
                Name::Path(path) => match files.iter().find(|file| file.path == path) {
                    None => Some(format!("there is no file {path}")),
                    Some(file) => {
                        if Language::of(path.as_ref(), "").is_some() {
                            current = Some(file);
                        }
                        None
                    }
                },
                Name::Item(item) => current.and_then(|file| missing_item(file, &item)),
            };
            findings.extend(wrong.map(|text| Finding::new(PAGE, index + 1, text)));
        }
        let wrong = limit_values::wrong_row(line, files);
        findings.extend(wrong.map(|text| Finding::new(PAGE, index + 1, text)));
    }
    findings
}

#[derive(Debug, PartialEq, Eq)]
enum Name {
    Path(String),
    Item(String),
}

/// The names of one line, from left to right.
fn names(line: &str) -> Vec<Name> {
    line.split('`')
        .enumerate()
        .flat_map(|(index, piece)| {
            let quoted = index % 2 == 1;
            match item(piece) {
                Some(item) if quoted => vec![Name::Item(item)],
                _ => paths(piece),
            }
        })
        .collect()
}

fn paths(piece: &str) -> Vec<Name> {
    piece
        .split(|character: char| !(is_name(character) || "./-".contains(character)))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| word.rsplit('/').next().is_some_and(|name| name.contains('.')))
        .map(|word| Name::Path(word.to_owned()))
        .collect()
}

/// The last segment of `name`, `name()` or `Type::name`; `None` for anything else.
fn item(quoted: &str) -> Option<String> {
    let path = quoted.strip_suffix("()").unwrap_or(quoted);
    let segments: Vec<&str> = path.split("::").collect();
    let well_formed = segments.iter().all(|segment| {
        segment.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && segment.chars().all(is_name)
    });
    if well_formed { segments.last().map(|last| (*last).to_owned()) } else { None }
}

fn missing_item(file: &File, item: &str) -> Option<String> {
    let text = file.text.as_deref().unwrap_or("");
    let language = Language::of(file.path.as_ref(), text)?;
    let code = mask(text, language).code;
    let is_type = item.starts_with(char::is_uppercase);
    let stands = match language {
        Language::Rust if !is_type => {
            let definition = format!("fn {item}");
            code.lines().any(|line| holds_word(line, &definition))
        }
        _ => code.lines().any(|line| holds_word(line, item)),
    };
    let kind = if is_type { "name" } else { "function" };
    (!stands).then(|| format!("there is no {kind} {item} in {}", file.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let source = "//! fn ghost\nstruct Node;\nimpl Node { pub fn flush(&mut self) {} }\n";
        let files = [File::sample("crates/node/src/node.rs", source), File::sample(PAGE, page)];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn true_names_are_silent() {
        let page = "`crates/node/src/node.rs`: `Node::flush`, `flush()`, `flush` of `Node`.\n\
                    Then `%d %s` and `cargo xtask check`, see [code](crates/node/src/node.rs).\n";
        assert!(found(page).is_empty(), "{:?}", found(page));
    }

    #[test]
    fn a_missing_page_is_found() {
        assert!(check(&[])[0].to_string().contains("is missing"));
    }

    #[test]
    fn a_missing_file_is_found() {
        assert_eq!(
            found("First.\nSee `crates/node/src/gone.rs`.\n"),
            ["docs/packet-path.md:2: there is no file crates/node/src/gone.rs"]
        );
    }

    #[test]
    fn a_missing_function_or_type_is_found() {
        for name in ["ghost", "ghost()", "Node::ghost", "Wave", "Output::Wave"] {
            let page = format!("crates/node/src/node.rs does it in `{name}`.\n");
            assert_eq!(found(&page).len(), 1, "{name}");
        }
    }

    #[test]
    fn paths_end_before_the_punctuation() {
        assert_eq!(names("in docs/a.md."), [Name::Path("docs/a.md".into())]);
        assert_eq!(names("in crates/node and and/or"), []);
    }
}
