//! The tests of the program `sapwood-fuzz`.

mod kept_inputs;
mod program;
