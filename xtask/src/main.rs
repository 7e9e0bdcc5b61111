//! The project's checks and generators, as code.
fn main() {}
