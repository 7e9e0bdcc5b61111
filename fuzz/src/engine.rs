//! The fuzzer: keeps the inputs that reach something new and tries changes of them.
//!
//! The command line begins with the target's name, or is `--list`, which prints all names, or
//! `--edges`, which prints how many edges the program has: 0 without instrumentation. What follows
//! a name is libFuzzer's, as far as it goes: folders of inputs, of which the first also takes new
//! ones, or files to be tried once; `-runs=`, `-max_total_time=` (seconds), `-seed=`, `-timeout=`
//! (seconds for one input), `-artifact_prefix=`, and `-merge=1`, which only writes into the first
//! folder those inputs that reach an edge which no shorter one has reached. Exit codes: 0 nothing
//! found, 2 bad command line, 77 an input broke a promise, 70 an input took too long; the input's
//! file is named, and made if the fuzzer has made the input.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sapwood_random::{Random, fnv1a};

use crate::mutation::mutate;
use crate::{Target, coverage};

const EXIT_USAGE: u8 = 2;
const EXIT_FOUND: u8 = 77;
const EXIT_SLOW: i32 = 70;

/// How many runs there have been, for the watch on slow ones.
static RUNS: AtomicU64 = AtomicU64::new(0);
/// What is being tried.
static CURRENT: Mutex<Input> = Mutex::new(Input { bytes: Vec::new(), file: None });

/// An input, and the file that it was read from.
struct Input {
    bytes: Vec<u8>,
    file: Option<PathBuf>,
}

struct Options {
    inputs: Vec<PathBuf>,
    runs_max: u64,
    time_max: Duration,
    timeout: Duration,
    seed: u64,
    is_merge: bool,
    artifact_prefix: String,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            inputs: Vec::new(),
            runs_max: u64::MAX,
            time_max: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            seed: 1,
            is_merge: false,
            artifact_prefix: "./".into(),
        };
        for argument in arguments {
            let Some((name, value)) =
                argument.strip_prefix('-').and_then(|option| option.split_once('='))
            else {
                options.inputs.push(PathBuf::from(&argument));
                continue;
            };
            let number = || value.parse().map_err(|_| format!("{argument} is no number"));
            match name {
                "runs" => options.runs_max = number()?,
                "max_total_time" => options.time_max = Duration::from_secs(number()?),
                "timeout" => options.timeout = Duration::from_secs(number()?),
                "seed" => options.seed = number()?,
                "merge" => options.is_merge = number()? != 0,
                "artifact_prefix" => options.artifact_prefix = value.into(),
                // Memory is bounded by the targets themselves, and there is little to say.
                "rss_limit_mb" | "verbosity" => drop(number()?),
                _ => return Err(format!("{argument} is no option")),
            }
        }
        Ok(options)
    }
}

/// Fuzzes one of the targets as the command line says.
#[must_use]
pub fn main(targets: &[Target], mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let name = arguments.next().unwrap_or_default();
    if name == "--list" {
        targets.iter().for_each(|target| println!("{}", target.name));
        return ExitCode::SUCCESS;
    }
    if name == "--edges" {
        println!("{}", coverage::edges());
        return ExitCode::SUCCESS;
    }
    let Some(target) = targets.iter().find(|target| target.name == name) else {
        eprintln!("no target is called '{name}'; --list names all");
        return ExitCode::from(EXIT_USAGE);
    };
    run(*target, arguments)
}

fn run(target: Target, arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{}: {error}", target.name);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let mut seeds = Vec::new();
    for path in &options.inputs {
        if let Err(error) = load(path, &mut seeds) {
            eprintln!("{}: {}: {error}", target.name, path.display());
            return ExitCode::from(EXIT_USAGE);
        }
    }
    watch(target.name, options.timeout, options.artifact_prefix.clone());
    let mut fuzzer = Fuzzer { target, options, seen: Vec::new(), corpus: Vec::new() };
    if fuzzer.fuzz(seeds) { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) }
}

/// The inputs of a folder, in the order of their names, or one file.
fn load(path: &Path, inputs: &mut Vec<Input>) -> std::io::Result<()> {
    let mut files = vec![path.to_path_buf()];
    if !path.is_file() {
        let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
        files = entries.collect::<Result<_, _>>()?;
        files.sort();
    }
    for file in files {
        inputs.push(Input { bytes: fs::read(&file)?, file: Some(file) });
    }
    Ok(())
}

struct Fuzzer {
    target: Target,
    options: Options,
    seen: Vec<u8>,
    corpus: Vec<Vec<u8>>,
}

impl Fuzzer {
    /// True if nothing was found.
    fn fuzz(&mut self, mut seeds: Vec<Input>) -> bool {
        let start = Instant::now();
        let only_files = self.options.inputs.iter().any(|path| path.is_file());
        if self.options.is_merge {
            seeds.sort_by_key(|seed| seed.bytes.len());
        }
        for seed in seeds {
            if !self.holds(&seed.bytes, seed.file) {
                return false;
            }
            self.keep_if_new(seed.bytes, self.options.is_merge);
        }
        if self.options.is_merge {
            self.report(start.elapsed());
            return true;
        }
        if self.corpus.is_empty() {
            self.corpus.push(Vec::new());
        }
        let mut random = Random::new(self.options.seed);
        let mut input = Vec::new();
        while !only_files
            && RUNS.load(Relaxed) < self.options.runs_max
            && start.elapsed() < self.options.time_max
        {
            self.choose(&mut input, &mut random);
            if !self.holds(&input, None) {
                return false;
            }
            if coverage::collect(&mut self.seen, true) {
                self.keep(input.clone());
            }
        }
        self.report(start.elapsed());
        true
    }

    fn choose(&self, input: &mut Vec<u8>, random: &mut Random) {
        // Late finds reach deeper, so every other input is made of one of the last.
        let count = self.corpus.len();
        let late = count.saturating_sub(1 + random.index(32));
        let chosen = if random.index(2) == 0 { late } else { random.index(count) };
        input.clone_from(&self.corpus[chosen]);
        mutate(input, &self.corpus[random.index(count)], random);
        if let Some(repair) = self.target.repair
            && random.index(8) != 0
        {
            repair(input);
        }
    }

    /// Tries an input. False if it broke a promise; it is then on disk.
    fn holds(&self, input: &[u8], file: Option<PathBuf>) -> bool {
        current().set(input, file);
        RUNS.fetch_add(1, Relaxed);
        coverage::clear();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        if outcome.is_err() {
            tell(self.target.name, &self.options.artifact_prefix, "crash");
        }
        outcome.is_ok()
    }

    fn keep_if_new(&mut self, input: Vec<u8>, write: bool) {
        // Without instrumentation all seeds are kept.
        let is_new = coverage::collect(&mut self.seen, !self.options.is_merge);
        if is_new || coverage::edges() == 0 {
            if write { self.keep(input) } else { self.corpus.push(input) }
        }
    }

    fn keep(&mut self, input: Vec<u8>) {
        if let Some(folder) = self.options.inputs.first().filter(|path| path.is_dir()) {
            let name = format!("{:016x}", fnv1a(input.iter().copied()));
            // A full disk must not end the search.
            let _ = fs::write(folder.join(name), &input);
        }
        self.corpus.push(input);
    }

    fn report(&self, elapsed: Duration) {
        let runs = RUNS.load(Relaxed);
        let reached = self.seen.iter().filter(|seen| **seen != 0).count();
        let coverage = match coverage::edges() {
            0 => "built without coverage".to_owned(),
            edges => format!("{reached} of {edges} edges"),
        };
        println!(
            "{}: {runs} runs in {:.1} s, {coverage}, {} inputs kept, nothing found",
            self.target.name,
            elapsed.as_secs_f64(),
            self.corpus.len()
        );
    }
}

impl Input {
    fn set(&mut self, bytes: &[u8], file: Option<PathBuf>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.file = file;
    }

    /// Where it is; one that has no file is written to one, whose name begins with `prefix`.
    fn place(&self, prefix: &str) -> String {
        if let Some(file) = &self.file {
            return file.display().to_string();
        }
        let path = format!("{prefix}{:016x}", fnv1a(self.bytes.iter().copied()));
        match fs::write(&path, &self.bytes) {
            Ok(()) => path,
            Err(error) => format!("{:02x?}, as {path}: {error}", self.bytes),
        }
    }
}

fn current() -> std::sync::MutexGuard<'static, Input> {
    CURRENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Ends the program when one input takes too long. The thread ends with the program.
fn watch(target: &'static str, timeout: Duration, artifact_prefix: String) {
    std::thread::spawn(move || {
        loop {
            let before = RUNS.load(Relaxed);
            std::thread::sleep(timeout);
            if before != 0 && RUNS.load(Relaxed) == before {
                tell(target, &artifact_prefix, "slow");
                std::process::exit(EXIT_SLOW);
            }
        }
    });
}

/// Says what the input that is being tried has done, and where it is.
fn tell(target: &str, prefix: &str, what: &str) {
    let place = current().place(&format!("{prefix}{what}-{target}-"));
    let _ = writeln!(std::io::stderr(), "{target}: {what}; the input is {place}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_without_a_file_is_written_and_one_of_a_file_is_named() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let prefix = format!("{}/crash-", folder.path().display());
        let mut input = Input { bytes: Vec::new(), file: None };
        input.set(b"made", None);
        let place = input.place(&prefix);
        assert!(place.starts_with(&prefix), "{place}");
        assert_eq!(fs::read(&place).ok().as_deref(), Some(&b"made"[..]));
        input.set(b"kept", Some("corpus/kept".into()));
        assert_eq!(input.place(&prefix), "corpus/kept");
        assert_eq!(fs::read_dir(&folder).expect("the folder is there").count(), 1);
        input.set(b"\x00\xff", None);
        let place = input.place("no such folder/");
        assert!(place.starts_with("[00, ff], as no such folder/"), "{place}");
    }

    #[test]
    fn a_folder_is_read_in_the_order_of_names_and_what_breaks_a_promise_ends_the_run() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        for (name, bytes) in [("b", "bad"), ("a", "good"), ("c", "good")] {
            fs::write(folder.path().join(name), bytes).expect("an input can be written");
        }
        let mut inputs = Vec::new();
        load(folder.path(), &mut inputs).expect("the folder can be read");
        let run = |bytes: &[u8]| assert_ne!(bytes, b"bad");
        let target = Target { name: "sample", run, repair: None };
        let words = [folder.path().display().to_string(), "-runs=0".into()];
        let options = Options::parse(words.into_iter()).expect("a command line");
        let mut fuzzer = Fuzzer { target, options, seen: Vec::new(), corpus: Vec::new() };
        assert!(!fuzzer.fuzz(inputs), "the second input is bad");
        assert_eq!(fuzzer.corpus, [b"good"]);
        assert_eq!(current().file, Some(folder.path().join("b")));
    }
}
