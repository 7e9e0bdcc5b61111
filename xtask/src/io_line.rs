//! The I/O line in the sources: no clock and no system above it, one owner for each way across it.
//!
//! The crates above the line are `no_std`, so the compiler already refuses most of this; a line
//! `extern crate std` would bring it all back, which is why the words are looked for as well. Only
//! code that ships is read: tests may use what they like.

use crate::files::File;
use crate::finding::Finding;
use crate::layers::{Layers, Owner};
use crate::source::{Language, is_name, mask};
use crate::test_code::{module_paths, test_modules, without_tests};

const ROOT_ATTRIBUTES: [&str; 2] = ["#![no_std]", "#![forbid(unsafe_code)]"];

/// Looks through the sources of every crate in the table.
pub fn check(layers: &Layers, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for layer in &layers.crates {
        let sources = shipping_sources(&layer.folder, files);
        if layer.above_the_line {
            findings.extend(root_attributes(&layer.folder, files));
            for (path, code) in &sources {
                findings.extend(forbidden_words(layers, path, code));
            }
        }
        for (path, code) in &sources {
            for owner in &layers.owners {
                findings.extend(borrowed_words(layers, owner, path, code));
            }
        }
    }
    findings
}

/// Path and masked code of the files below `folder/src`, without their tests.
pub fn shipping_sources(folder: &str, files: &[File]) -> Vec<(String, String)> {
    let prefix = format!("{folder}/src/");
    let sources: Vec<(&str, String)> = files
        .iter()
        .filter(|file| file.path.starts_with(&prefix) && file.path.ends_with(".rs"))
        .filter_map(|file| {
            Some((file.path.as_str(), mask(file.text.as_ref()?, Language::Rust).code))
        })
        .collect();
    let test_paths: Vec<String> = sources
        .iter()
        .flat_map(|(path, code)| {
            test_modules(code).into_iter().flat_map(|name| module_paths(path, &name))
        })
        .collect();
    sources
        .into_iter()
        .filter(|(path, _)| !test_paths.iter().any(|test| path.starts_with(test)))
        .map(|(path, code)| (path.to_owned(), without_tests(&code)))
        .collect()
}

fn root_attributes(folder: &str, files: &[File]) -> Vec<Finding> {
    let root = format!("{folder}/src/lib.rs");
    let text = files.iter().find(|file| file.path == root).and_then(|file| file.text.as_deref());
    let code = mask(text.unwrap_or(""), Language::Rust).code;
    ROOT_ATTRIBUTES
        .iter()
        .filter(|attribute| !code.lines().any(|line| line.trim() == **attribute))
        .map(|attribute| {
            Finding::new(root.as_str(), 0, format!("is above the I/O line and lacks {attribute}"))
        })
        .collect()
}

fn forbidden_words(layers: &Layers, path: &str, code: &str) -> Vec<Finding> {
    let forbidden = &layers.above_the_line.forbidden;
    holding(code, forbidden)
        .map(|(line, word)| Finding::new(path, line, format!("{word} above the I/O line")))
        .collect()
}

fn borrowed_words(layers: &Layers, owner: &Owner, path: &str, code: &str) -> Vec<Finding> {
    let is_below = |folder: &str| path == folder || path.starts_with(&format!("{folder}/"));
    let excepted = layers
        .exceptions
        .iter()
        .any(|exception| exception.what == owner.what && is_below(&exception.folder));
    if excepted || owner.folders.iter().any(|folder| is_below(folder)) {
        return Vec::new();
    }
    holding(code, &owner.words)
        .map(|(line, word)| {
            let owners = owner.folders.join(", ");
            let text = format!("{word}: only {owners} may touch {}", owner.what);
            Finding::new(path, line, text)
        })
        .collect()
}

/// The lines that hold one of `words` as a whole name.
fn holding<'a>(
    code: &'a str,
    words: &'a [String],
) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    code.lines().enumerate().flat_map(move |(index, text)| {
        words
            .iter()
            .filter(move |word| holds_word(text, word))
            .map(move |word| (index + 1, &**word))
    })
}

/// True if `text` holds `word` and neither end of it is in the middle of a longer name.
pub fn holds_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let starts_name = word.starts_with(is_name);
        let ends_name = word.ends_with(is_name);
        !(starts_name && before.is_some_and(is_name) || ends_name && after.is_some_and(is_name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "//! Packets.\n#![no_std]\n#![forbid(unsafe_code)]\n";

    fn layers() -> Layers {
        toml::from_str(
            r#"
            [[crate]]
            name = "packet"
            folder = "crates/packet"
            above_the_line = true
            uses = []
            [[crate]]
            name = "runtime"
            folder = "crates/runtime"
            uses = []
            [above_the_line]
            external = []
            forbidden = ["std::", "extern crate std", "HashMap", "Instant::now"]
            [[owner]]
            what = "sockets"
            folders = ["crates/transport"]
            words = ["TcpStream"]
            [[exception]]
            what = "sockets"
            folder = "crates/runtime/src/plain.rs"
            reason = "a sample"
            "#,
        )
        .expect("the sample table is well formed")
    }

    fn found(files: &[File]) -> Vec<String> {
        check(&layers(), files).iter().map(ToString::to_string).collect()
    }

    fn packet(code: &str) -> Vec<String> {
        let root = format!("{ROOT}{code}");
        found(&[File::sample("crates/packet/src/lib.rs", &root)])
    }

    #[test]
    fn pure_code_is_silent() {
        assert!(
            packet("// std::fs is for others\nuse core::fmt; const A: &str = \"std::\";\n")
                .is_empty()
        );
        assert!(
            packet("#[cfg(test)]\nextern crate std;\n#[cfg(test)]\nmod t { use std::fs; }")
                .is_empty()
        );
    }

    #[test]
    fn each_forbidden_word_is_found_with_its_line() {
        for code in ["use std::fs;", "extern crate std;", "HashMap", "let now = Instant::now();"] {
            let found = packet(code);
            assert_eq!(found.len(), 1, "{code}");
            assert!(found[0].starts_with("crates/packet/src/lib.rs:4: "), "{}", found[0]);
        }
    }

    #[test]
    fn a_longer_name_is_not_the_word() {
        assert!(packet("struct MyHashMapper; use my_std::x;").is_empty());
    }

    #[test]
    fn missing_attributes_are_found() {
        let bare = found(&[File::sample("crates/packet/src/lib.rs", "//! P.\n")]);
        assert_eq!(bare.len(), 2, "{bare:?}");
    }

    #[test]
    fn a_file_of_tests_is_not_read_and_its_neighbour_is() {
        let root = format!("{ROOT}#[cfg(test)]\nmod story;\nmod real;\n");
        let found = found(&[
            File::sample("crates/packet/src/lib.rs", &root),
            File::sample("crates/packet/src/real.rs", "use std::fs;"),
            File::sample("crates/packet/src/story.rs", "use std::fs;"),
        ]);
        assert_eq!(found, ["crates/packet/src/real.rs:1: std:: above the I/O line"]);
    }

    #[test]
    fn only_the_owner_and_the_exceptions_may_hold_a_word() {
        let socket = "use std::net::TcpStream;";
        let found = found(&[
            File::sample("crates/packet/src/lib.rs", ROOT),
            File::sample("crates/runtime/src/plain.rs", socket),
            File::sample("crates/runtime/src/drive.rs", socket),
            File::sample("crates/runtime/tests/drive.rs", socket),
        ]);
        assert_eq!(
            found,
            ["crates/runtime/src/drive.rs:1: TcpStream: only crates/transport may touch sockets"]
        );
    }
}
