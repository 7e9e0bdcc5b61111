//! The example that README.md shows: it says what the example says, and the example does what it
//! says.

use std::fs;
use std::path::Path;

use crate::support::{clean_command, sapwood};

#[test]
fn the_sum_of_the_example_is_right() {
    let add = crate::support::example("add");
    let output = clean_command(add).env("SAPWOOD_NODE", sapwood()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1720 from ranks 0-15\n", "{errors}");
}

#[test]
fn the_code_in_the_readme_is_that_of_the_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(folder.join("../../README.md")).unwrap();
    let example = fs::read_to_string(folder.join("../../examples/rust/add.rs")).unwrap();
    let is_code = |block: &&str| block.starts_with("rust\n");
    let blocks: Vec<&str> = readme.split("```").filter(is_code).collect();
    assert_eq!(blocks.len(), 2);
    for paragraph in blocks.iter().flat_map(|block| block["rust\n".len()..].split("\n\n")) {
        assert!(example.contains(paragraph.trim_end()), "not in the example:\n{paragraph}");
    }
}
