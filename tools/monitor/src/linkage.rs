//! Which MPI a program runs on: what it is linked to, and whose launcher starts it.
//!
//! A program's libraries are listed by the loader that it names itself, which resolves them as it
//! would for a run, but runs nothing. Programs that load their libraries later (Python, scripts)
//! say nothing that way: for these the launcher decides. Only Python is run, to say which mpi4py it
//! would load: that may have the standard's ABI, which libraries of either launcher's MPI may have.
//! Launchers are run to say their version.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};
use sapwood_command_line::query::answer;
use sapwood_launch::{Exit, Order};

/// How long the loader or a launcher may take to say what it knows.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The same of Python, which may load much when it starts: without its answer the launcher decides.
const PYTHON_TIMEOUT: Duration = Duration::from_secs(2);

/// A binary interface of MPI: programs of one cannot run with the libraries of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Abi {
    /// Open MPI.
    #[value(name = "openmpi")]
    OpenMpi,
    /// MPICH, Intel MPI or MVAPICH.
    Mpich,
    /// That of the MPI standard, `libmpi_abi.so`, of whichever MPI.
    #[value(name = "abi")]
    Standard,
}

impl Abi {
    /// What people call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Standard => "MPI ABI",
        }
    }

    /// What files and, of the first two, Debian's alternatives call it.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Standard => "abi",
        }
    }

    /// The ABI of a library by its file's name.
    fn of_library(name: &str) -> Option<Self> {
        let version = |stem: &str| name.strip_prefix(stem).and_then(|rest| rest.split('.').next());
        if version("libmpi_abi.so.").is_some() {
            return Some(Self::Standard);
        }
        if version("libmpich.so.").is_some() || version("libmpi.so.") == Some("12") {
            return Some(Self::Mpich);
        }
        version("libmpi.so.").map(|_| Self::OpenMpi)
    }
}

/// How a program comes to its libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// It is linked to a library of this ABI.
    Mpi(Abi),
    /// It is an interpreter, a script or a program that starts others: that cannot be known.
    Open,
    /// All of its libraries are in it.
    Static,
    /// It is linked to other libraries only.
    Without,
}

/// Programs that load or start what they are told to.
const INTERPRETERS: [&str; 30] = [
    "ash", "bash", "chrt", "csh", "dash", "gdb", "guile", "java", "julia", "ksh", "lua", "nice",
    "node", "numactl", "octave", "perf", "perl", "php", "pypy", "python", "R", "Rscript", "ruby",
    "setarch", "sh", "stdbuf", "strace", "taskset", "time", "valgrind",
];
const MORE_INTERPRETERS: [&str; 4] = ["tclsh", "tcsh", "wish", "zsh"];

impl Linkage {
    /// The linkage of a program that exists.
    ///
    /// # Errors
    /// One line when the file cannot be read or its loader does not list its libraries.
    pub(crate) fn of(program: &Path) -> Result<Self, String> {
        let failed = |what: String| format!("cannot look into '{}': {what}", program.display());
        let file = File::open(program).map_err(|error| failed(error.to_string()))?;
        let Some(loader) = loader_of(&ReadCache::new(file)).map_err(failed)? else {
            return Ok(if is_interpreter(program) { Self::Open } else { Self::Static });
        };
        let Loader::Named(loader) = loader else { return Ok(Self::of_interpreter(program)) };
        let (exit, abi) = listed(&loader, program).map_err(failed)?;
        match abi {
            Some(abi) => Ok(Self::Mpi(abi)),
            None if is_interpreter(program) => Ok(Self::of_interpreter(program)),
            None if exit.is_success() => Ok(Self::Without),
            None => Err(failed(format!("its loader {exit}"))),
        }
    }

    /// The linkage of what loads its libraries later.
    fn of_interpreter(program: &Path) -> Self {
        match is_python(program).then(|| abi_of_mpi4py(program)).flatten() {
            Some(Abi::Standard) => Self::Mpi(Abi::Standard),
            _ => Self::Open,
        }
    }
}

/// The ABI of the first MPI library among those that the loader lists for a program or a library,
/// and how the loader has ended.
fn listed(loader: &Path, file: &Path) -> Result<(Exit, Option<Abi>), String> {
    let mut order = Order::new(loader);
    order.arguments = vec!["--list".into(), file.into()];
    let (exit, text) = answer(order, ANSWER_TIMEOUT)?;
    let mut names = text.split_whitespace().filter_map(|word| word.rsplit('/').next());
    Ok((exit, names.find_map(Abi::of_library)))
}

/// What Python is asked: which program it is, and which file `from mpi4py import MPI` would load.
/// To find that may load an MPI library, but does not initialise it.
const PYTHON_QUESTION: &str = "import sys, importlib.util as util; print(sys.executable); \
                               print(util.find_spec('mpi4py.MPI').origin)";

/// The ABI of the library that the mpi4py of a Python is linked to; none where that is not known.
fn abi_of_mpi4py(python: &Path) -> Option<Abi> {
    let mut order = Order::new(python);
    order.arguments = vec!["-c".into(), PYTHON_QUESTION.into()];
    let (exit, text) = answer(order, PYTHON_TIMEOUT).ok()?;
    // Behind what the start of Python may print.
    let mut lines = text.lines().rev();
    let (module, program) = (lines.next()?, lines.next()?);
    if !exit.is_success() {
        return None;
    }
    let file = File::open(program).ok()?;
    let Some(Loader::Named(loader)) = loader_of(&ReadCache::new(file)).ok()? else { return None };
    listed(&loader, Path::new(module)).ok()?.1
}

/// What a program says of its loader.
enum Loader {
    Named(PathBuf),
    /// It is no program of the machine's own format.
    Script,
}

/// The loader that a program names; none if it needs none.
fn loader_of<'a, R: ReadRef<'a>>(file: R) -> Result<Option<Loader>, String> {
    match FileKind::parse(file) {
        Ok(FileKind::Elf64) => named::<object::elf::FileHeader64<Endianness>, _>(file),
        Ok(FileKind::Elf32) => named::<object::elf::FileHeader32<Endianness>, _>(file),
        _ => Ok(Some(Loader::Script)),
    }
}

fn named<'a, H, R>(file: R) -> Result<Option<Loader>, String>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'a>,
{
    let read = || -> object::Result<Option<PathBuf>> {
        let header = H::parse(file)?;
        let endian = header.endian()?;
        for part in header.program_headers(endian, file)? {
            if let Some(path) = part.interpreter(endian, file)? {
                return Ok(Some(PathBuf::from(OsStr::from_bytes(path))));
            }
        }
        Ok(None)
    };
    read().map(|path| path.map(Loader::Named)).map_err(|error| error.to_string())
}

fn is_interpreter(program: &Path) -> bool {
    let stem = without_version(program);
    INTERPRETERS.contains(&stem) || MORE_INTERPRETERS.contains(&stem)
}

fn is_python(program: &Path) -> bool {
    matches!(without_version(program), "python" | "pypy")
}

/// The name of a program's file without the version at its end.
fn without_version(program: &Path) -> &str {
    let name = program.file_name().and_then(OsStr::to_str).unwrap_or("");
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Whose launcher one is, and which version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flavour {
    /// Whose it is.
    pub(crate) abi: Abi,
    /// Its version, as `4.1.4`; empty if it does not say.
    pub(crate) version: String,
}

impl Flavour {
    /// Asks a launcher; by its file's name if it does not answer. None if neither says anything.
    pub(crate) fn of(launcher: &Path) -> Option<Self> {
        let mut order = Order::new(launcher);
        order.arguments = vec!["--version".into()];
        let text = answer(order, ANSWER_TIMEOUT).map_or_else(|_| String::new(), |(_, text)| text);
        Self::from_text(&text).or_else(|| {
            let file = std::fs::canonicalize(launcher).unwrap_or_else(|_| launcher.into());
            Self::from_file(&file).or_else(|| Self::from_file(launcher))
        })
    }

    fn from_text(text: &str) -> Option<Self> {
        let first = text.lines().next().unwrap_or("");
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(&["Open MPI", "OpenRTE", "PRRTE"]) {
            let version = first.split_whitespace().last().unwrap_or("").to_string();
            return Some(Self { abi: Abi::OpenMpi, version });
        }
        if has(&["HYDRA", "MPICH", "mpich", "Intel(R) MPI"]) {
            let line = text.lines().find_map(|line| line.trim().strip_prefix("Version:"));
            let version = line.unwrap_or("").trim().to_string();
            return Some(Self { abi: Abi::Mpich, version });
        }
        None
    }

    fn from_file(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?;
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let abi = if has(&["openmpi", "orterun", "prterun"]) {
            Abi::OpenMpi
        } else if has(&["mpich", "hydra"]) {
            Abi::Mpich
        } else {
            return None;
        };
        Some(Self { abi, version: String::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_an_abi_by_its_name() {
        assert_eq!(Abi::of_library("libmpi.so.40"), Some(Abi::OpenMpi));
        assert_eq!(Abi::of_library("libmpi.so.40.30.4"), Some(Abi::OpenMpi));
        assert_eq!(Abi::of_library("libmpich.so.12"), Some(Abi::Mpich));
        assert_eq!(Abi::of_library("libmpi.so.12"), Some(Abi::Mpich));
        assert_eq!(Abi::of_library("libmpi_abi.so.1"), Some(Abi::Standard));
        assert_eq!(Abi::of_library("libmpifort.so.12"), None);
        assert_eq!(Abi::of_library("libc.so.6"), None);
    }

    #[test]
    fn a_program_without_mpi_and_an_interpreter_are_told_apart() {
        let of = |name: &str| Linkage::of(&sapwood_launch::locate(name.as_ref()).expect(name));
        assert_eq!(of("ls"), Ok(Linkage::Without));
        assert_eq!(of("sh"), Ok(Linkage::Open));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = folder.path().join("run");
        std::fs::write(&script, "#!/bin/sh\n").expect("the folder may be written");
        assert_eq!(Linkage::of(&script), Ok(Linkage::Open));
        assert!(Linkage::of(&folder.path().join("nothing")).is_err());
    }

    #[test]
    fn damaged_programs_are_refused_in_one_line() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("cut");
        let mut head = b"\x7fELF\x02\x01\x01".to_vec();
        head.resize(40, 0xff);
        std::fs::write(&file, &head).expect("the folder may be written");
        let error = Linkage::of(&file).expect_err("it ends in its header");
        assert!(error.contains("cut'") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn interpreters_are_known_with_their_versions() {
        for name in ["python3", "python3.11", "/usr/bin/perl", "lua5.4", "bash"] {
            assert!(is_interpreter(Path::new(name)), "{name}");
        }
        assert!(!is_interpreter(Path::new("lmp")));
        assert!(is_python(Path::new("/usr/bin/python3.11")) && !is_python(Path::new("perl")));
    }

    #[test]
    fn a_python_whose_mpi4py_is_not_found_is_open() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The last one ends only when it is ended.
        for (name, text) in [
            ("python3", "exit 1"),
            ("python3.9", "echo one"),
            ("pypy", "echo; echo"),
            ("python3.8", "exec sleep 1000"),
        ] {
            let python = folder.path().join(name);
            std::fs::write(&python, format!("#!/bin/sh\n{text}\n"))
                .expect("the folder may be written");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&python, mode).expect("the file is its own");
            assert_eq!(Linkage::of(&python), Ok(Linkage::Open), "{name}");
        }
    }

    #[test]
    fn launchers_say_whose_they_are() {
        let open_mpi = Flavour::from_text("mpirun (Open MPI) 4.1.4\n\nReport bugs").expect("named");
        assert_eq!((open_mpi.abi, open_mpi.version.as_str()), (Abi::OpenMpi, "4.1.4"));
        let hydra = "HYDRA build details:\n    Version:        4.0.2\n    Release Date: Thu\n";
        let hydra = Flavour::from_text(hydra).expect("named");
        assert_eq!((hydra.abi, hydra.version.as_str()), (Abi::Mpich, "4.0.2"));
        assert_eq!(Flavour::from_text("something else"), None);
        let by_name = |name: &str| Flavour::from_file(Path::new(name)).map(|known| known.abi);
        assert_eq!(by_name("/usr/bin/orterun"), Some(Abi::OpenMpi));
        assert_eq!(by_name("/usr/bin/mpiexec.hydra"), Some(Abi::Mpich));
        assert_eq!(by_name("/usr/bin/mpirun"), None);
    }
}
