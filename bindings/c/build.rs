//! Compiles `src/varargs.c`, the only part of the C interface that Rust cannot express.

/// Set while the header is written anew (see `tests/header.rs`), when nothing fits it yet.
const WRITE_HEADER: &str = "SAPWOOD_WRITE_HEADER";

fn main() {
    println!("cargo:rerun-if-changed=src/varargs.c");
    println!("cargo:rerun-if-changed=include/sapwood.h");
    println!("cargo:rerun-if-env-changed={WRITE_HEADER}");
    if std::env::var_os(WRITE_HEADER).is_some() {
        return;
    }
    cc::Build::new()
        .file("src/varargs.c")
        .include("include")
        .std("c11")
        .flag("-fvisibility=hidden")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("sapwood_varargs");
}
