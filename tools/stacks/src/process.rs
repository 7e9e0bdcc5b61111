//! What `/proc` says of a process: whose it is, what it does, its threads and what it has mapped.

use std::fs;
use std::path::{Path, PathBuf};

/// Environment variables in which launchers give a process its rank.
const RANK_VARIABLES: [&str; 5] =
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "FLUX_TASK_RANK"];
/// Threads of a process that are read, at most.
const THREADS_MAX: usize = 256;

/// What is known of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Its effective user.
    pub(crate) user: u32,
    /// The letter of its state, as `R` or `D`.
    pub(crate) state: char,
    /// The process that traces it already; 0 if none does.
    pub(crate) tracer: i32,
}

/// A part of the address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) is_code: bool,
    /// Where in its file it begins.
    pub(crate) offset: u64,
    /// The file, or a name in brackets; empty for plain memory.
    pub(crate) file: String,
}

/// The folder of a process, or of one of its threads.
pub(crate) fn folder(process: i32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// The facts of a process; none if there is no such process.
pub(crate) fn facts(process: i32) -> Option<Facts> {
    facts_of(&fs::read_to_string(folder(process).join("status")).ok()?)
}

fn facts_of(status: &str) -> Option<Facts> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim)
    };
    let user = field("Uid")?.split_whitespace().nth(1)?.parse().ok()?;
    let state = field("State")?.chars().next()?;
    let tracer = field("TracerPid").and_then(|pid| pid.parse().ok()).unwrap_or(0);
    Some(Facts { user, state, tracer })
}

/// The threads of a process, the first one first.
pub(crate) fn threads(process: i32) -> Vec<i32> {
    let entries = fs::read_dir(folder(process).join("task")).into_iter().flatten().flatten();
    let mut threads: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    threads.truncate(THREADS_MAX);
    threads
}

/// What a process has mapped, in the order of addresses, as text and as a list.
pub(crate) fn mappings(process: i32) -> (String, Vec<Mapping>) {
    let text = fs::read_to_string(folder(process).join("maps")).unwrap_or_default();
    let list = text.lines().filter_map(mapping).collect();
    (text, list)
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (begin, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let file = words.nth(2).unwrap_or_default().trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        begin: number(begin)?,
        end: number(end)?,
        is_code: rights.contains('x'),
        offset: number(offset)?,
        file: file.to_owned(),
    })
}

/// Where the mapping ends that an address is in.
pub(crate) fn end_of(mappings: &[Mapping], address: u64) -> u64 {
    // A stack that has grown since has its end where it was.
    mappings.iter().find(|mapping| mapping.end > address).map_or(address, |mapping| mapping.end)
}

/// The rank that a launcher has given to a process.
pub(crate) fn rank(process: i32) -> Option<u32> {
    let environment = fs::read(folder(process).join("environ")).ok()?;
    RANK_VARIABLES.iter().find_map(|name| {
        environment.split(|&byte| byte == 0).find_map(|entry| {
            let text = std::str::from_utf8(entry).ok()?;
            text.strip_prefix(name)?.strip_prefix('=')?.parse().ok()
        })
    })
}

/// Processes of this user whose program has this file name. The first argument counts as well, so
/// that scripts are found by their names; what is started by others in between does not.
pub(crate) fn of_program(name: &str, user: u32) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<i32> = processes
        .filter(|&process| process != own && is_program(process, name))
        .filter(|&process| facts(process).is_some_and(|facts| facts.user == user))
        .collect();
    found.sort_unstable();
    found
}

fn is_program(process: i32, name: &str) -> bool {
    let Ok(command) = fs::read(folder(process).join("cmdline")) else { return false };
    let mut words = command.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let is_name =
        |word: &str| Path::new(word).file_name().is_some_and(|file| file == name) || word == name;
    let program = words.next().unwrap_or_default();
    if is_name(&program) {
        return true;
    }
    // A script: what its interpreter is told first.
    let is_interpreter =
        ["python", "perl", "ruby", "julia", "Rscript", "bash", "sh"].iter().any(|interpreter| {
            let file = Path::new(program.as_ref()).file_name().and_then(|file| file.to_str());
            file.is_some_and(|file| file.starts_with(interpreter))
        });
    is_interpreter && words.find(|word| !word.starts_with('-')).is_some_and(|word| is_name(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_process_is_read() {
        let status =
            "Name:\ta State: Z\nState:\tt (tracing stop)\nTracerPid:\t12\nUid:\t1\t2\t3\t4\n";
        assert_eq!(facts_of(status), Some(Facts { user: 2, state: 't', tracer: 12 }));
        assert_eq!(facts_of(""), None);
        assert!(facts(std::process::id().cast_signed()).is_some());
    }

    #[test]
    fn mappings_are_read_with_files_of_any_name() {
        let line =
            "7f00-7fff r-xp 00001000 fe:00 123                        /a b/lib x.so (deleted)";
        let expected = Mapping {
            begin: 0x7f00,
            end: 0x7fff,
            is_code: true,
            offset: 0x1000,
            file: "/a b/lib x.so (deleted)".into(),
        };
        assert_eq!(mapping(line), Some(expected));
        assert_eq!(mapping("1-2 rw-p 0 00:00 0 ").map(|one| one.file), Some(String::new()));
        assert_eq!(mapping("nonsense"), None);
    }
}
