//! The tests of this crate, in one program.

mod mrnet_files;
mod nodesets;
mod shapes;
