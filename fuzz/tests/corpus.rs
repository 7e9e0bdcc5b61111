//! The kept inputs of every target, tried once each; they need no instrumentation.

use std::path::Path;

use sapwood_fuzz::targets;

#[test]
fn no_kept_input_breaks_a_promise() {
    for target in targets::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        let mut count = 0;
        for entry in std::fs::read_dir(&folder).expect("every target has a folder of inputs") {
            let path = entry.expect("the folder can be read").path();
            (target.run)(&std::fs::read(&path).expect("an input can be read"));
            count += 1;
        }
        assert!(count > 0, "{} has inputs", target.name);
    }
}
