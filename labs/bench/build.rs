//! Compiles the filters in C that `sapwood bench filter` measures, as a shared object which the
//! command carries.

use std::env;
use std::path::Path;

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo names the folder of the package");
    let out = env::var("OUT_DIR").expect("cargo names a folder for what is built");
    let source = Path::new(&root).join("../../crates/extension/filters/sums.c");
    let include = Path::new(&root).join("../../bindings/c/include");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed={}", include.join("sapwood_filter.h").display());
    let mut build = cc::Build::new();
    build.cargo_metadata(false).opt_level(2).debug(false).pic(true).include(include);
    let status = build
        .get_compiler()
        .to_command()
        .args(["-std=c11", "-shared", "-s", "-o"])
        .arg(Path::new(&out).join("libsums.so"))
        .arg(&source)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{} does not compile", source.display());
}
