//! MPI installations, the shims that observe them, and the program that reads call stacks.
//!
//! Owns which launchers are known and how their version is read. A machine without MPI is a machine
//! on which only `sapwood mpi` has nothing to do, so nothing here fails.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood_launch::{LaunchError, Local, Order, locate};

use super::Check;

/// Launchers by name, the plain one first: it is what a user's command will find.
const LAUNCHERS: [&str; 4] = ["mpirun", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra"];

/// The shim of each MPI, as a file name.
const SHIMS: [(&str, &str); 2] =
    [("Open MPI", "libsapwood-mpi-openmpi.so"), ("MPICH", "libsapwood-mpi-mpich.so")];

/// How long a launcher may take to say its version.
const VERSION_DEADLINE: Duration = Duration::from_secs(5);

/// Most of what it says that is read.
const VERSION_BYTES_MAX: usize = 64 << 10;

/// One MPI installation.
struct Installation {
    flavour: &'static str,
    version: String,
    launcher: PathBuf,
}

/// Checks of what `sapwood mpi` needs.
pub(super) fn checks() -> Vec<Check> {
    let installations = installations();
    let mut checks = Vec::new();
    if installations.is_empty() {
        checks.push(Check::warning(
            "MPI",
            "neither Open MPI's nor MPICH's mpirun was found",
            "'sapwood mpi' needs one, such as the package openmpi-bin or mpich; all other commands work",
        ));
    }
    for Installation { flavour, version, launcher } in &installations {
        checks.push(Check::fine("MPI", format!("{flavour} {version} at {}", launcher.display())));
    }
    checks.push(stack_reader());
    let has = |flavour| installations.iter().any(|installed| installed.flavour == flavour);
    checks.extend(SHIMS.iter().filter(|(flavour, _)| has(*flavour)).map(|(_, file)| shim(file)));
    checks
}

/// One installation per flavour, by the first launcher that belongs to it.
fn installations() -> Vec<Installation> {
    let mut found: Vec<Installation> = Vec::new();
    for name in LAUNCHERS {
        let Ok(launcher) = locate(Path::new(name)) else { continue };
        let Some((flavour, version)) = version(&launcher) else { continue };
        if found.iter().all(|other| other.flavour != flavour) {
            found.push(Installation { flavour, version, launcher });
        }
    }
    found
}

fn version(launcher: &Path) -> Option<(&'static str, String)> {
    read_version(&output(launcher)?)
}

/// `mpirun (Open MPI) 4.1.4` or, by Hydra, a line `Version: 4.0.2` among others.
fn read_version(text: &str) -> Option<(&'static str, String)> {
    if let Some((_, rest)) = text.split_once("(Open MPI)") {
        return Some(("Open MPI", rest.split_whitespace().next()?.to_string()));
    }
    let hydra = text.contains("HYDRA") || text.contains("MPICH");
    let version = text.lines().find_map(|line| line.trim().strip_prefix("Version:"))?;
    hydra.then(|| ("MPICH", version.trim().to_string()))
}

/// What a launcher writes when asked for its version; none if it does not answer in time.
fn output(launcher: &Path) -> Option<String> {
    let mut order = Order::new(launcher);
    order.arguments = vec!["--version".into()];
    order.capture_stdout = true;
    let mut process = Local::new().start(&order).ok()?;
    let until = Instant::now() + VERSION_DEADLINE;
    let (mut text, mut unheeded) = (Vec::new(), Vec::new());
    while !process.stdout_ended() && text.len() < VERSION_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let timeout = Timespec::try_from(left).ok();
        let mut watched = vec![PollFd::from_borrowed_fd(process.stdout()?, PollFlags::IN)];
        if !process.stderr_ended() {
            watched.push(PollFd::from_borrowed_fd(process.stderr(), PollFlags::IN));
        }
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        process.take_stdout(&mut text).ok()?;
        process.take_stderr(&mut unheeded).ok()?;
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn shim(file: &str) -> Check {
    let folders = sapwood_monitor::shim::folders();
    match folders.iter().map(|folder| folder.join(file)).find(|path| path.is_file()) {
        Some(path) => Check::fine("MPI shim", path.display().to_string()),
        None => {
            let searched: Vec<_> =
                folders.iter().map(|folder| folder.display().to_string()).collect();
            Check::warning(
                "MPI shim",
                format!("{file} is not in {}", searched.join(" or ")),
                "'sapwood mpi' needs it; build it with 'make shim'",
            )
        }
    }
}

/// The program that reads call stacks, which is looked for as the processes beside the ranks do.
fn stack_reader() -> Check {
    let reason = match sapwood_monitor::stack_reader_program() {
        Ok(path) => return Check::fine("call stacks", path.display().to_string()),
        Err(LaunchError::MissingProgram { .. }) => {
            "sapwood-stacks is neither beside this program nor on PATH".to_owned()
        }
        Err(error) => error.to_string(),
    };
    Check::warning(
        "call stacks",
        reason,
        "'sapwood stacks' and 'sapwood mpi --stacks' need it; 'make install' installs it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_both_launchers() {
        let open_mpi = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/\n";
        assert_eq!(read_version(open_mpi), Some(("Open MPI", "4.1.4".to_string())));
        let hydra = "HYDRA build details:\n    Version:                                 4.0.2\n";
        assert_eq!(read_version(hydra), Some(("MPICH", "4.0.2".to_string())));
        assert_eq!(read_version("Intel(R) MPI Library for Linux"), None);
    }
}
