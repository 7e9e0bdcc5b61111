//! Runs the fuzz targets of `fuzz/` with coverage: on the kept inputs, or in search of new ones.
//!
//! The package is built with the compiler's coverage instrumentation, which stable Rust offers
//! through its code generation options, so no nightly compiler is needed. New inputs go to a folder
//! under `target`, never into the kept corpus; an input that crashes is left in
//! `target/fuzz/crashes` for the reader to add to the corpus. Without instrumentation the kept
//! inputs are among the tests of that package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::command::{Ran, measure, output_of, run};
use crate::finding::Finding;
use crate::steps::Look;

const PACKAGE: &str = "sapwood-fuzz";
/// The compiler's settings for it, in the workspace's manifest.
const PROFILE: &str = "fuzz";
/// The instrumented build compiles most crates anew.
const BUILD_DEADLINE: Duration = Duration::from_secs(2400);
/// A target that goes on for this time beyond its share is hung.
const BEYOND: Duration = Duration::from_secs(900);

const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// With which codes the program ends when an input has broken a promise, and when one took too
/// long. It has left that input on disk then. A copy of those in `fuzz/src/engine.rs`: this program
/// cannot use that package, which is built with instrumentation.
const INPUT_CODES: [i32; 2] = [77, 70];

/// What `cargo xtask fuzz --search` is asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Search {
    /// For each target.
    pub share: Duration,
    pub seed: u64,
    /// All if none is named.
    pub targets: Vec<String>,
}

impl Search {
    /// Reads `SECONDS [TARGET...]`; the seed comes from the clock.
    ///
    /// # Errors
    /// One line that says what is wrong with the words.
    pub fn read(words: &[&str]) -> Result<Search, String> {
        let [seconds, targets @ ..] = words else {
            return Err("--search wants a number of seconds".to_owned());
        };
        let number = seconds.parse().map_err(|_| format!("--search: '{seconds}' is no number"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        Ok(Search { share: Duration::from_secs(number), seed: now, targets })
    }
}

/// Runs the package's own tests, with the kept inputs of all targets among them.
pub fn kept_inputs(root: &Path) -> Look {
    // What is compared anywhere in the process leads mutations, so that with the instrumentation a
    // seed does not give the same ones again.
    let seeded = "a_seed_gives_the_same_inputs_again";
    cargo(root, "test", &["--", "--skip", seeded])?;
    Ok("the fuzz targets took their kept inputs with coverage".to_owned())
}

/// Has targets search for new inputs, one after another.
pub fn search(root: &Path, search: &Search) -> Look {
    let fuzzer = Fuzzer::build(root)?;
    let targets = if search.targets.is_empty() { &fuzzer.targets } else { &search.targets };
    fuzzer.search(targets, search.share, search.seed)
}

/// Has all targets together search for this time.
pub fn search_all(root: &Path, whole: Duration, seed: u64) -> Look {
    let fuzzer = Fuzzer::build(root)?;
    let share = whole.as_secs() / fuzzer.targets.len().max(1) as u64;
    fuzzer.search(&fuzzer.targets, Duration::from_secs(share.max(1)), seed)
}

/// The instrumented program, and the targets that it has.
struct Fuzzer<'a> {
    root: &'a Path,
    program: PathBuf,
    targets: Vec<String>,
}

impl Fuzzer<'_> {
    fn build(root: &Path) -> Result<Fuzzer<'_>, Vec<Finding>> {
        cargo(root, "build", &["--bins"])?;
        let host = host(root).map_err(|why| finding(&why))?;
        let program = build_folder(root).join(host).join(PROFILE).join(PACKAGE);
        let said = |word| output_of(root, &program.to_string_lossy(), &[word]);
        said("--edges").and_then(|edges| sees(&edges)).map_err(|why| finding(&why))?;
        let list = said("--list").map_err(|why| finding(&why))?;
        let targets = list.lines().map(str::to_owned).collect();
        Ok(Fuzzer { root, program, targets })
    }

    fn search(&self, targets: &[String], share: Duration, seed: u64) -> Look {
        let findings: Vec<Finding> =
            targets.iter().filter_map(|target| self.search_one(target, share, seed)).collect();
        let line = format!(
            "{} fuzz targets searched for {} s each, none failed",
            targets.len(),
            share.as_secs()
        );
        if findings.is_empty() { Ok(line) } else { Err(findings) }
    }

    fn search_one(&self, target: &str, share: Duration, seed: u64) -> Option<Finding> {
        let build = build_folder(self.root);
        let [found, crashes] = ["found", "crashes"].map(|name| build.join(name).join(target));
        for folder in [&found, &crashes] {
            if let Err(error) = fs::create_dir_all(folder) {
                return Some(Finding::new(target, 0, format!("{}: {error}", folder.display())));
            }
        }
        let mut program = Command::new(&self.program);
        program
            .arg(target)
            .arg(found)
            .arg(Path::new("fuzz/corpus").join(target))
            .args(["-timeout=10".to_owned(), format!("-seed={seed}")])
            .arg(format!("-max_total_time={}", share.as_secs()))
            .arg(format!("-artifact_prefix={}/", crashes.display()))
            .current_dir(self.root);
        let ran = measure(program, share + BEYOND, &mut |line| println!("{line}"));
        failure(&ran, &crashes).map(|why| Finding::new(target, 0, why))
    }
}

/// Whether a program that has this number of edges sees what its inputs reach.
fn sees(edges: &str) -> Result<(), String> {
    match edges.trim().parse::<usize>() {
        Ok(0) => Err("was built without coverage: it would search blindly".to_owned()),
        Ok(_) => Ok(()),
        Err(_) => Err(format!("--edges said '{}', which is no number", edges.trim())),
    }
}

/// Why a search has failed, if it has; inputs that it has found are in this folder.
fn failure(ran: &Ran, crashes: &Path) -> Option<String> {
    let why = ran.result.as_ref().err()?;
    Some(match ran.code {
        Some(code) if INPUT_CODES.contains(&code) => {
            format!("{why}; a new input is in {}", crashes.display())
        }
        _ => why.clone(),
    })
}

fn build_folder(root: &Path) -> PathBuf {
    root.join(crate::target()).join("fuzz")
}

/// Has cargo build the package with the instrumentation, and do what these words say.
fn cargo(root: &Path, command: &str, words: &[&str]) -> Result<(), Vec<Finding>> {
    let host = host(root).map_err(|why| finding(&why))?;
    let mut cargo = Command::new("cargo");
    cargo
        .args([command, "--package", PACKAGE, "--profile", PROFILE])
        // Naming the target keeps the instrumentation out of build scripts and macros.
        .args(["--target", &host, "--target-dir"])
        .arg(build_folder(root))
        .args(words)
        .env("RUSTFLAGS", INSTRUMENTATION)
        .current_dir(root);
    run(cargo, BUILD_DEADLINE, &mut |line| println!("{line}")).map_err(|why| finding(&why))
}

fn host(root: &Path) -> Result<String, String> {
    Ok(output_of(root, "rustc", &["--print", "host-tuple"])?.trim().to_owned())
}

fn finding(why: &str) -> Vec<Finding> {
    vec![Finding::new(PACKAGE, 0, why)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_program() {
        let engine = include_str!("../../fuzz/src/engine.rs");
        let code = |name: &str| {
            let line = engine.lines().find(|line| line.starts_with(&format!("const {name}: ")));
            let value = line.and_then(|line| line.split_once(" = ")).map(|(_, value)| value);
            value.and_then(|value| value.trim_end_matches(';').parse::<i32>().ok())
        };
        let codes = ["EXIT_FOUND", "EXIT_SLOW"].map(|name| code(name).expect("a constant"));
        assert_eq!(codes, INPUT_CODES);
    }

    #[test]
    fn a_new_input_is_told_of_only_where_there_is_one() {
        let folder = Path::new("crashes/frame");
        let ran = |code, result: Result<(), &str>| Ran {
            result: result.map_err(str::to_owned),
            code,
            processor: Duration::ZERO,
        };
        for code in INPUT_CODES {
            let why = failure(&ran(Some(code), Err("failed")), folder).expect("it has failed");
            assert_eq!(why, "failed; a new input is in crashes/frame");
        }
        for code in [Some(2), None] {
            assert_eq!(failure(&ran(code, Err("failed")), folder).as_deref(), Some("failed"));
        }
        assert_eq!(failure(&ran(Some(0), Ok(())), folder), None);
    }

    #[test]
    fn a_program_without_edges_does_not_search() {
        assert_eq!(sees("81234\n"), Ok(()));
        for (edges, word) in [("0\n", "without coverage"), ("none", "'none'")] {
            assert!(sees(edges).is_err_and(|why| why.contains(word)), "{edges}");
        }
    }

    #[test]
    fn a_search_is_read_and_wrong_words_are_named() {
        let read = Search::read(&["60", "frame", "values"]).expect("a search");
        assert_eq!((read.share, read.targets.len()), (Duration::from_secs(60), 2));
        assert!(Search::read(&["5"]).is_ok_and(|read| read.targets.is_empty()));
        for words in [&[][..], &["frame"]] {
            assert!(Search::read(words).is_err(), "{words:?}");
        }
    }
}
