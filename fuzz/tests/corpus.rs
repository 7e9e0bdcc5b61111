//! Every input that is kept is tried once.

use std::fs;
use std::path::Path;

use sapwood_fuzz::targets::ALL;

#[test]
fn every_kept_input_keeps_its_promise() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in ALL {
        let folder = corpus.join(target.name);
        let mut files: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("the folder can be read").path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{} has inputs", target.name);
        for file in files {
            // The captured output of a test that fails ends with the input's name.
            println!("{}", file.display());
            (target.run)(&fs::read(&file).expect("an input can be read"));
        }
    }
}
