//! Compiles `src/varargs.c`, the only part of the C interface that Rust cannot express, and names
//! the shared library for its users.

use std::os::unix::fs::symlink;
use std::path::Path;

/// Set while the header is written anew (see `tests/header.rs`), when nothing fits it yet.
const WRITE_HEADER: &str = "SAPWOOD_WRITE_HEADER";

fn main() {
    name_library();
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

/// Before 1.0 each minor version may change the interface, so that it has a name of its own. What
/// is linked in the build's folder looks for the library by this name, which is therefore there.
fn name_library() {
    let [major, minor] = ["MAJOR", "MINOR"].map(|part| {
        std::env::var(format!("CARGO_PKG_VERSION_{part}")).expect("cargo gives every version")
    });
    let series = if major == "0" { format!("{major}.{minor}") } else { major };
    let name = format!("libsapwood.so.{series}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{name}");
    let out = std::env::var_os("OUT_DIR").expect("cargo gives a folder");
    let profile = Path::new(&out).ancestors().nth(3).expect("it lies in PROFILE/build/PACKAGE/out");
    let link = profile.join(name);
    // Cargo is not told to look at the link: it would look at the library behind it, which is newer
    // than this run, and build it anew each time.
    if !link.is_symlink() {
        symlink("libsapwood.so", &link)
            .unwrap_or_else(|error| panic!("{}: {error}", link.display()));
    }
}
