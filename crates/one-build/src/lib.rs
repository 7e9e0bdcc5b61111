//! Nothing but features of packages, which programs, libraries and wheel have in common by it: see
//! `Cargo.toml`.
#![no_std]
