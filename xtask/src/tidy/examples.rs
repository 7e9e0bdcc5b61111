//! Libraries without an example in their documentation.
//!
//! `cargo test` has rustdoc read each library again for its examples, one after another, whether it
//! has any or not. A library that has none says so in its manifest; one that has some must not.

use crate::files::File;
use crate::finding::Finding;

const SWITCHED_OFF: &str = "doctest = false";

/// Looks at the library of the crate of a manifest.
pub fn run(file: &File, text: &str, files: &[File]) -> Vec<Finding> {
    let Some(folder) = file.path.strip_suffix("Cargo.toml") else { return Vec::new() };
    let sources = format!("{folder}src/");
    let library = format!("{sources}lib.rs");
    if !files.iter().any(|other| other.path == library) {
        return Vec::new();
    }
    let has_examples = files
        .iter()
        .filter(|other| other.path.starts_with(&sources))
        .filter_map(|other| other.text.as_deref())
        .any(has_example);
    let are_run = !text.lines().any(|line| line.trim() == SWITCHED_OFF);
    let fault = match (has_examples, are_run) {
        (true, false) => "the library has examples that no test runs: drop `doctest = false`",
        (false, true) => "the library has no examples: add `doctest = false` below `[lib]`",
        (true, true) | (false, false) => return Vec::new(),
    };
    vec![Finding::new(file.path.as_str(), 0, fault)]
}

/// Whether a comment of documentation opens a block of Rust.
fn has_example(source: &str) -> bool {
    let mut is_open = false;
    source.lines().any(|line| {
        let line = line.trim_start();
        let text = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
        let Some(language) = text.and_then(|text| text.trim_start().strip_prefix("```")) else {
            return false;
        };
        is_open = !is_open;
        is_open && matches!(language, "" | "rust" | "no_run" | "should_panic" | "compile_fail")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "//! Doubles:\n//!\n//! ```\n//! a::double(1);\n//! ```\n";
    const PICTURE: &str = "//! ```text\n//! a -> b\n//! ```\n";

    fn is_found(manifest: &str, source: &str) -> bool {
        let files = [
            File::sample("crates/a/Cargo.toml", manifest),
            File::sample("crates/a/src/lib.rs", source),
        ];
        !run(&files[0], manifest, &files).is_empty()
    }

    #[test]
    fn a_library_without_examples_says_so() {
        assert!(is_found("[package]\n", PICTURE));
        assert!(!is_found("[package]\n[lib]\ndoctest = false\n", PICTURE));
    }

    #[test]
    fn examples_are_run() {
        assert!(is_found("[package]\n[lib]\ndoctest = false\n", EXAMPLE));
        assert!(!is_found("[package]\n", EXAMPLE));
    }

    #[test]
    fn a_crate_without_a_library_has_no_documentation_to_read() {
        let files = [File::sample("tools/a/Cargo.toml", "[package]\n")];
        assert!(run(&files[0], "[package]\n", &files).is_empty());
    }
}
