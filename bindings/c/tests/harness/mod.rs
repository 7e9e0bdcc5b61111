//! Builds what C programs need, compiles them and runs them.
//!
//! The library and the program `sapwood-node` are built by cargo into the target folder that the
//! test itself lies in, in its profile; `SAPWOOD_NODE` names another program instead, and
//! `SAPWOOD_LIBRARIES` the folder of a library that is there, such as the released one.

#[path = "../../../../crates/launch/tests/surroundings/mod.rs"]
mod surroundings;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use surroundings::clean_command;

/// A program that takes longer than this hangs.
const HANG_SECONDS: &str = "180";

/// What programs are compiled with.
pub const C11: [&str; 8] = [
    "-std=c11",
    "-D_POSIX_C_SOURCE=200809L",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-O1",
    "-g",
    "-pthread",
];

/// A file of this package.
pub fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Where the library and the program are.
pub struct Built {
    /// The folder of libsapwood.so and libsapwood.a.
    pub folder: PathBuf,
    /// The communication process.
    pub node: OsString,
}

/// Set where cargo has built all targets of the whole workspace before any test runs: to build a
/// part of it again would mean other features of its dependencies, and so most of these anew.
const BUILT_VARIABLE: &str = "SAPWOOD_TESTS_BUILT";

/// Builds the library and the program, once.
pub fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(folder) = std::env::var_os("SAPWOOD_LIBRARIES").map(PathBuf::from) {
            let node = std::env::var_os("SAPWOOD_NODE");
            let node = node.unwrap_or_else(|| folder.join("sapwood-node").into_os_string());
            return Built { folder, node };
        }
        let test = std::env::current_exe().expect("a test knows its own path");
        let folder = test.ancestors().nth(2).expect("tests lie in target/PROFILE/deps").to_owned();
        let named = std::env::var_os("SAPWOOD_NODE");
        let node = named.clone().unwrap_or_else(|| folder.join("sapwood-node").into_os_string());
        let is_there = folder.join("libsapwood.so").exists() && Path::new(&node).exists();
        if std::env::var_os(BUILT_VARIABLE).is_some() && is_there {
            return Built { folder, node };
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(package("")).args(["build", "--quiet", "-p", "sapwood-c"]);
        if named.is_none() {
            // What is installed has the command, too.
            cargo.args(["-p", "sapwood-node-program", "-p", "sapwood-cli"]);
        }
        let profile = folder.file_name().and_then(OsStr::to_str).unwrap_or("debug");
        cargo.args(["--profile", if profile == "debug" { "dev" } else { profile }]);
        cargo.arg("--target-dir").arg(folder.parent().expect("a profile lies in a target folder"));
        succeed(&mut cargo);
        Built { folder, node }
    })
}

/// Compiles C sources against the header and the shared library; `program` is the file to make.
pub fn compile(program: &Path, sources: &[PathBuf], flags: &[&str]) {
    let folder = &built().folder;
    let mut compiler = Command::new("cc");
    compiler.args(C11).args(flags).arg("-I").arg(package("include")).args(sources);
    compiler.arg("-L").arg(folder).arg("-lsapwood");
    compiler.arg(format!("-Wl,-rpath,{}", folder.display())).arg("-o").arg(program);
    succeed(&mut compiler);
}

/// A source of `tests/programs`.
pub fn source(name: &str) -> PathBuf {
    package("tests/programs").join(name)
}

/// Filters that do what filters must not.
pub const FAULTS: &str = "../../crates/extension/tests/filters/faults.c";

/// Compiles a file of filters, against its header alone, into a folder.
pub fn compile_library(file: &Path, folder: &Path) -> PathBuf {
    let name = file.file_stem().and_then(OsStr::to_str).expect("a file has a name");
    let library = folder.join(format!("lib{name}.so"));
    let mut compiler = Command::new("cc");
    compiler.args(C11).args(["-Wpedantic", "-shared", "-fPIC", "-I"]).arg(package("include"));
    succeed(compiler.arg(file).arg("-o").arg(&library));
    library
}

/// Programs of `tests/programs`, compiled into a folder that is removed with this.
pub struct Programs {
    /// The folder, also for what the programs write.
    pub folder: tempfile::TempDir,
}

impl Programs {
    /// Compiles each of them, alone.
    pub fn new(names: &[&str]) -> Self {
        Self::with(names, &[], &[])
    }

    /// Compiles each of them with more sources and flags.
    pub fn with(names: &[&str], sources: &[PathBuf], flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in names {
            let mut all = vec![source(&format!("{name}.c"))];
            all.extend_from_slice(sources);
            compile(&folder.path().join(name), &all, flags);
        }
        Self { folder }
    }

    /// The path of one.
    pub fn path(&self, name: &str) -> OsString {
        self.folder.path().join(name).into_os_string()
    }

    /// Runs one to its end, which must be good; gives what it printed.
    pub fn run(&self, name: &str, arguments: &[&OsStr]) -> String {
        let program = self.path(name);
        let mut words: Vec<&OsStr> = vec![&program];
        words.extend_from_slice(arguments);
        run(&words)
    }
}

/// A command that ends in time, with the communication process that belongs to the library. It sees
/// none of the settings of the test's own user.
pub fn command(words: &[&OsStr]) -> Command {
    let mut command = clean_command("timeout");
    command.args(["--kill-after=5", HANG_SECONDS]).args(words);
    command.env("SAPWOOD_NODE", &built().node).stdin(Stdio::null());
    command
}

/// Runs a command to its end, which must be good; gives what it printed.
pub fn run(words: &[&OsStr]) -> String {
    text(&succeed(&mut command(words)).stdout)
}

/// Starts a command that ends by itself.
pub fn start(words: &[&OsStr]) -> Child {
    let command = &mut command(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Waits for the good end of what was started.
pub fn finish(child: Child) {
    let output = child.wait_with_output().expect("a child can be waited for");
    assert!(output.status.success(), "{}: {}", output.status, words_of(&output));
}

/// Runs a command to its end, which must be good.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}: {}", output.status, words_of(&output));
    output
}

fn words_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
