//! Tests that no program holds.
//!
//! A crate with `autotests = false` names its test programs itself; cargo says nothing of a file
//! below `tests/` that none of them holds, and its tests are never run.

use crate::files::File;
use crate::finding::Finding;

/// Looks at the files directly below `tests/` of the crate of a manifest.
pub fn tests(file: &File, text: &str, files: &[File]) -> Vec<Finding> {
    let Some(folder) = file.path.strip_suffix("Cargo.toml") else { return Vec::new() };
    if !text.lines().any(|line| line.trim() == "autotests = false") {
        return Vec::new();
    }
    let folder = format!("{folder}tests/");
    let source = |name: &str| {
        let path = format!("{folder}{name}.rs");
        files.iter().find(|other| other.path == path)
    };
    let programs: Vec<&str> = text.lines().filter_map(name_of_program).collect();
    let held: Vec<&str> = programs
        .iter()
        .filter_map(|name| source(name)?.text.as_deref())
        .flat_map(|text| text.lines().filter_map(name_of_module))
        .collect();
    files
        .iter()
        .filter_map(|other| {
            let name = other.path.strip_prefix(folder.as_str())?.strip_suffix(".rs")?;
            let is_listed = name.contains('/') || programs.contains(&name) || held.contains(&name);
            let text = "no test program of the crate holds it: add `mod` to its all.rs";
            (!is_listed).then(|| Finding::new(other.path.as_str(), 0, text))
        })
        .collect()
}

/// The name in a line `name = "all"` of a manifest. The package's own name is one too, of which
/// there is no file.
fn name_of_program(line: &str) -> Option<&str> {
    line.strip_prefix("name = \"")?.strip_suffix('"')
}

/// The name in a line `mod one;`.
fn name_of_module(line: &str) -> Option<&str> {
    line.strip_prefix("mod ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"a\"\nautotests = false\n[[test]]\nname = \"all\"\n";

    fn found(manifest: &str, all: &str) -> Vec<String> {
        let files = [
            File::sample("crates/a/Cargo.toml", manifest),
            File::sample("crates/a/tests/all.rs", all),
            File::sample("crates/a/tests/one.rs", ""),
            File::sample("crates/a/tests/two.rs", ""),
            File::sample("crates/a/tests/two/part.rs", ""),
            File::sample("crates/b/tests/three.rs", ""),
        ];
        tests(&files[0], manifest, &files).into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn a_test_that_no_program_holds_is_found() {
        assert_eq!(found(MANIFEST, "mod one;\n"), ["crates/a/tests/two.rs"]);
        assert!(found(MANIFEST, "mod one;\nmod two;\n").is_empty());
    }

    #[test]
    fn a_program_of_its_own_is_listed() {
        let manifest = format!("{MANIFEST}[[test]]\nname = \"two\"\n");
        assert!(found(&manifest, "mod one;\n").is_empty());
    }

    #[test]
    fn cargo_lists_the_tests_of_other_crates() {
        assert!(found("[package]\nname = \"a\"\n", "").is_empty());
    }
}
