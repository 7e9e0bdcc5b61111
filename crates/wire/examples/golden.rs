//! Writes the frames of the golden vectors anew from their fields, or says which would change.
//!
//! `cargo run -p sapwood-wire --example golden -- --write`

use std::process::ExitCode;

#[path = "../tests/vectors/mod.rs"]
mod vectors;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let write = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--write"] => true,
        _ => {
            eprintln!("golden: takes --write or nothing");
            return ExitCode::from(2);
        }
    };
    let mut outcome = ExitCode::SUCCESS;
    for file in vectors::FILES {
        let text = vectors::text(file);
        let new = vectors::rewritten(file, &text);
        if new == text {
            println!("{file}: {} vectors, no change", vectors::records(&new).len());
        } else if !write {
            println!("{file}: would change");
            outcome = ExitCode::FAILURE;
        } else if let Err(error) = std::fs::write(vectors::path(file), new) {
            eprintln!("golden: {file}: {error}");
            return ExitCode::from(125);
        } else {
            println!("{file}: written");
        }
    }
    outcome
}
