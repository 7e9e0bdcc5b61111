//! Each crate built by itself.
//!
//! In one build of the workspace the crates share their dependencies' features, so that one can
//! live off what another asks for: a pure crate finds the standard library's methods there because
//! some other has brought it in. A program that depends on that crate alone does not.

use std::path::Path;

use crate::command::output_of;
use crate::finding::Finding;
use crate::layers;
use crate::steps::Look;

/// What is for people to depend on.
const FOLDER: &str = "crates/";

/// Type-checks every crate of that folder in a build of its own.
pub fn look(root: &Path) -> Look {
    let table = layers::load(root).map_err(|finding| vec![finding])?;
    let is_ours = |layer: &&layers::Layer| layer.folder.starts_with(FOLDER);
    let mut count = 0;
    for layer in table.crates.iter().filter(is_ours) {
        let arguments = ["check", "--quiet", "--package", &layer.name];
        if let Err(why) = output_of(root, "cargo", &arguments) {
            let text = format!("{} does not build by itself: {why}", layer.name);
            return Err(vec![Finding::new(&layer.folder, 0, text)]);
        }
        count += 1;
    }
    Ok(format!("{count} crates build by themselves"))
}
