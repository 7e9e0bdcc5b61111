//! Runs the fuzz targets of `fuzz/`: on the kept inputs, or in search of new ones.
//!
//! The targets are libFuzzer programs. They are built with the compiler's coverage
//! instrumentation, which stable Rust offers through its code generation options, so no nightly
//! compiler is needed. New inputs go to a folder under `target`, never into the kept corpus; an
//! input that crashes is left in `target/fuzz/crashes` for the reader to add to the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::command::{output_of, run};
use crate::finding::Finding;
use crate::steps::Look;

const MANIFEST: &str = "fuzz/Cargo.toml";
/// A target that does not come to its end by itself is hung.
const TARGET_DEADLINE: Duration = Duration::from_secs(900);
/// The instrumented build compiles most crates anew, beside the MPI tests.
const BUILD_DEADLINE: Duration = Duration::from_secs(2400);

const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Coverflow-checks";

/// Builds every target and runs each on the inputs of its corpus, and the fuzzer's own tests.
pub fn kept_inputs(root: &Path) -> Look {
    let targets = built(root)?;
    // What is compared anywhere in the process leads mutations, so that with the instrumentation a
    // seed does not give the same ones again.
    let seeded = "a_seed_gives_the_same_inputs_again";
    let own_tests = ["--lib", "--test", "programs", "--", "--skip", seeded];
    let own_tests = cargo(root, &build_folder(root), "test", &own_tests);
    own_tests.map_err(|why| vec![Finding::new(MANIFEST, 0, why)])?;
    let kept = |target: &String| run_target(root, target, &["-runs=0".into()], None);
    let findings: Vec<Finding> = targets.iter().filter_map(kept).collect();
    let line = format!("{} fuzz targets took their kept inputs", targets.len());
    if findings.is_empty() { Ok(line) } else { Err(findings) }
}

/// Builds every target and has all together search for new inputs for some seconds.
pub fn search(root: &Path, seconds: u64, seed: u32) -> Look {
    let targets = built(root)?;
    let share = (seconds / targets.len() as u64).max(1);
    // Zero has the fuzzer choose one.
    let options = [format!("-seed={}", seed.max(1)), format!("-max_total_time={share}")];
    let searched = |target: &String| {
        let found = build_folder(root).join("found").join(target);
        run_target(root, target, &options, Some(found))
    };
    let findings: Vec<Finding> = targets.iter().filter_map(searched).collect();
    let line = format!("{} fuzz targets searched for {share} s each, none failed", targets.len());
    if findings.is_empty() { Ok(line) } else { Err(findings) }
}

/// The targets, built.
fn built(root: &Path) -> Result<Vec<String>, Vec<Finding>> {
    let wrong = |why: &str| vec![Finding::new(MANIFEST, 0, why)];
    if !root.join(MANIFEST).exists() {
        return Err(wrong("is missing: there is nothing to fuzz"));
    }
    let targets = targets(root).map_err(|why| wrong(&why))?;
    build_all(root, &build_folder(root)).map_err(|why| wrong(&why))?;
    if targets.is_empty() { Err(wrong("names no target")) } else { Ok(targets) }
}

fn build_folder(root: &Path) -> PathBuf {
    root.join(crate::target()).join("fuzz")
}

/// The binaries of the fuzz package.
fn targets(root: &Path) -> Result<Vec<String>, String> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path", MANIFEST];
    let metadata: Value = serde_json::from_str(&output_of(root, "cargo", &arguments)?)
        .map_err(|error| error.to_string())?;
    Ok(binaries(&metadata))
}

fn binaries(metadata: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .flat_map(|package| list(&package["targets"]))
        .filter(|target| list(&target["kind"]).iter().any(|kind| kind == "bin"))
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect()
}

/// Has cargo build the package with the instrumentation, and do what these words say.
fn cargo(root: &Path, build: &Path, command: &str, words: &[&str]) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo
        .arg(command)
        .args(["--release", "--manifest-path", MANIFEST])
        // Naming the target keeps the instrumentation out of build scripts and macros.
        .args(["--target", &host(root)?, "--target-dir"])
        .arg(build)
        .args(words)
        .env("RUSTFLAGS", INSTRUMENTATION)
        .current_dir(root);
    run(cargo, BUILD_DEADLINE, &mut |line| println!("{line}"))
}

fn host(root: &Path) -> Result<String, String> {
    Ok(output_of(root, "rustc", &["--print", "host-tuple"])?.trim().to_owned())
}

fn build_all(root: &Path, build: &Path) -> Result<(), String> {
    cargo(root, build, "build", &["--bins"])?;
    let host_folder = build.join(host(root)?);
    let link = build.join("programs");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(host_folder.join("release"), link).map_err(|error| error.to_string())
}

/// Runs one target; what it finds new goes into `found`.
fn run_target(
    root: &Path,
    target: &str,
    options: &[String],
    found: Option<PathBuf>,
) -> Option<Finding> {
    let build = build_folder(root);
    let crashes = build.join("crashes").join(target);
    for folder in found.iter().chain([&crashes]) {
        if let Err(error) = fs::create_dir_all(folder) {
            return Some(Finding::new(target, 0, format!("{}: {error}", folder.display())));
        }
    }
    let mut fuzzer = Command::new(build.join("programs").join(target));
    fuzzer
        .args(found)
        .args(kept_corpus(root, target))
        .args(["-verbosity=0", "-rss_limit_mb=1024", "-timeout=10"])
        .args(options)
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .current_dir(root);
    let why = run(fuzzer, TARGET_DEADLINE, &mut |line| println!("{line}")).err()?;
    Some(Finding::new(target, 0, format!("{why}; the input is in {}", crashes.display())))
}

/// The committed inputs of a target, if it has any.
fn kept_corpus(root: &Path, target: &str) -> Option<PathBuf> {
    let folder = root.join("fuzz/corpus").join(target);
    folder.is_dir().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_repository_without_targets_fails() {
        let findings =
            kept_inputs(Path::new("no-such-folder")).expect_err("there is no fuzz package");
        assert!(findings[0].text.contains("nothing to fuzz"));
    }

    #[test]
    fn only_binaries_are_targets() {
        let metadata = json!({ "packages": [{ "targets": [
            { "name": "frame", "kind": ["bin"] },
            { "name": "fuzz", "kind": ["lib"] },
        ]}]});
        assert_eq!(binaries(&metadata), ["frame"]);
    }
}
