//! Asks a running `sapwood mpi` of this user and host for the stacks of its ranks.
//!
//! It listens at a name that holds its process; `tools/monitor/src/stacks.rs` draws the hello. The
//! answer is in the memory file that is offered with it, once the connection is closed.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use sapwood_command_line::exit::Failure;
use sapwood_report::record::Stacks;
use sapwood_transport::{TABLE_HELLO_BYTES, TablePeer};

/// The name at which `sapwood mpi` listens, before the number of its process.
const NAME: &str = "sapwood-mpi-stacks-";
/// Where names are listed.
const NAMES_FILE: &str = "/proc/net/unix";
/// Between two looks whether the answer is there.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// The stacks of a job: by the process or the name of its `sapwood mpi`, or the only one.
pub(crate) fn ask(
    job: Option<&str>,
    all_threads: bool,
    timeout: Duration,
) -> Result<Stacks, Failure> {
    let process = choose(job, &running(&fs::read_to_string(NAMES_FILE).unwrap_or_default()))?;
    let mut hello = [0; TABLE_HELLO_BYTES];
    hello[..8].copy_from_slice(b"SWSTACK1");
    hello[8] = u8::from(all_threads);
    let file = memfd_create("sapwood-stacks", MemfdFlags::CLOEXEC);
    let mut file = File::from(file.map_err(|error| Failure::own(&error))?);
    let peer = TablePeer::offer(&format!("{NAME}{process}"), &hello, file.as_fd());
    let mut peer = peer.map_err(|error| {
        Failure::usage(format!("'sapwood mpi' of process {process} cannot be asked: {error}"))
    })?;
    let deadline = Instant::now() + timeout;
    while !peer.is_closed() {
        if Instant::now() > deadline {
            return Err(Failure::timeout(format!(
                "'sapwood mpi' of process {process} did not answer within {} s; raise --timeout",
                timeout.as_secs_f64()
            )));
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    let mut document = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut document)).map_err(|e| Failure::own(&e))?;
    serde_json::from_slice(&document).map_err(|_| {
        Failure::usage(format!("the job of 'sapwood mpi' {process} ended before it could answer"))
    })
}

/// The processes that listen.
fn running(names: &str) -> Vec<u32> {
    let mut found: Vec<u32> = names
        .lines()
        .filter_map(|line| line.split_once(&format!("@{NAME}"))?.1.trim().parse().ok())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn choose(job: Option<&str>, running: &[u32]) -> Result<u32, Failure> {
    let names = || running.iter().map(|one| format!("mpi-{one}")).collect::<Vec<_>>().join(", ");
    let none = "no 'sapwood mpi' runs on this host; name processes by --pid or --program";
    let Some(job) = job else {
        return match running {
            [] => Err(Failure::usage(none)),
            [one] => Ok(*one),
            _ => Err(Failure::usage(format!("several jobs run: {}; give one as JOB", names()))),
        };
    };
    let number = job.strip_prefix("mpi-").unwrap_or(job).parse();
    match number.ok().filter(|number| running.contains(number)) {
        Some(process) => Ok(process),
        None if running.is_empty() => Err(Failure::usage(none)),
        None => Err(Failure::usage(format!(
            "no 'sapwood mpi' has the name or process number '{job}'; running: {}",
            names()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_found_by_their_names_and_chosen() {
        let names = "Num RefCount\n0: 2 0 1 0005 01 77 @sapwood-mpi-stacks-12\n\
                     0: 3 0 1 0005 03 78 @sapwood-mpi-stacks-12\n0: 2 0 1 0005 01 79 @other-3\n";
        assert_eq!(running(names), [12]);
        assert!(matches!(choose(None, &[12]), Ok(12)));
        assert!(matches!(choose(Some("mpi-12"), &[12, 13]), Ok(12)));
        for (job, running) in
            [(None, &[][..]), (None, &[1, 2]), (Some("3"), &[1]), (Some("x"), &[])]
        {
            assert!(choose(job, running).is_err(), "{job:?}");
        }
    }
}
