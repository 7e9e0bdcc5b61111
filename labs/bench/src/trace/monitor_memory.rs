//! What the monitor's process on a host holds while it reads the ranks' events.
//!
//! Tables and rings are the ranks' own memory, mapped by the monitor, and shared memory in its
//! status: what remains is the monitor's, its program's pages that were touched among it.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use sapwood_command_line::exit::Failure;
use sapwood_floor::process::memory_bytes;
use sapwood_floor::statistics::Spread;
use sapwood_monitor::leaf::LEAF;

use super::super::connect::Folder;
use super::super::facts::{Bar, Facts, look};
use super::super::processes::{descendants, has_first_argument};
use super::super::progress::Progress;
use super::super::shim_cost::compile;
use super::super::tree::own_program;
use super::Arguments;

const SOURCE: &str = include_str!("gsum.c");
const RSS_BYTES: Bar = Bar::Most(3.0 * 1024.0 * 1024.0);
/// Memory differs little from run to run.
const RUNS_MAX: usize = 3;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Lines of a program that has failed; a launcher explains itself in up to twenty.
const LINES_MAX: usize = 20;

/// Measures: the most that the one leaf of a host held at a look, run by run.
pub(super) fn measure(
    arguments: &Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let folder = Folder::create()?;
    let program = compile(&arguments.mpicc, &folder.path, "gsum", SOURCE)?;
    let runs = usize::from(arguments.pairs).min(RUNS_MAX);
    let mut most = Vec::new();
    for run in 0..runs {
        progress.say("memory", run, runs);
        let ranks = super::gsum::ranks(arguments).to_string();
        let mut command = Command::new(own_program()?.with_file_name("sapwood"));
        command.args(["mpi", "--quiet", "--waits", "--interval", "200ms", "--ranks-per-leaf"]);
        command.args([&ranks, "--out"]).arg(folder.path.join("report")).arg("--");
        command.arg(&arguments.mpirun).args(["-np", &ranks]).arg(&program);
        command.args([&arguments.iterations.to_string(), "0"]);
        most.push(most_of_leaf(command, &folder.path.join("errors"))?);
    }
    let most = Spread::of(&most).ok_or_else(|| Failure::own(&"nothing was measured"))?;
    let label = "the monitor's process on a host, without rings";
    facts.spread("memory.rss_bytes", look(label, "bytes", 0), &most, Some(RSS_BYTES));
    Ok(())
}

/// Runs the monitor and looks at its leaf until it ends. `errors` is a file for its standard error.
fn most_of_leaf(mut command: Command, errors: &Path) -> Result<f64, Failure> {
    let file = File::create(errors).map_err(|error| Failure::own(&error))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let mut monitor = command.spawn().map_err(|error| Failure::own(&error))?;
    let mut most = 0;
    let status = loop {
        if let Some(status) = monitor.try_wait().map_err(|error| Failure::own(&error))? {
            break status;
        }
        let leaves = descendants()?.into_iter().filter(|&pid| has_first_argument(pid, LEAF));
        most = leaves.filter_map(own_bytes).fold(most, u64::max);
        sleep(LOOK_INTERVAL);
    };
    if !status.success() || most == 0 {
        let said = last_lines(errors);
        let ended = format!("the monitored program: {status}, a leaf of {most} B: {said}");
        return Err(Failure::own(&ended));
    }
    Ok(most as f64)
}

/// The last lines of a file that are not empty.
fn last_lines(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

/// Resident memory that is not shared; none of a process that has ended.
fn own_bytes(pid: u32) -> Option<u64> {
    let [anonymous, of_files] = memory_bytes(pid, ["RssAnon", "RssFile"]).ok()?;
    Some(anonymous + of_files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_not_the_monitors() {
        let own = std::process::id();
        let names = ["RssAnon", "RssFile", "RssShmem", "VmRSS"];
        let [anonymous, of_files, shared, all] = memory_bytes(own, names).expect("a status");
        assert_eq!(anonymous + of_files + shared, all);
        assert!(own_bytes(own).is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn of_a_program_that_fails_the_last_lines_are_told() {
        let name = format!("sapwood-bench-errors-{}", std::process::id());
        let errors = std::env::temp_dir().join(name);
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf 'first\\n' >&2; seq -f 'line %g' 20 >&2; echo >&2; exit 7"]);
        let failure = most_of_leaf(shell, &errors).expect_err("it fails").to_string();
        std::fs::remove_file(&errors).expect("it was written");
        assert!(failure.starts_with("the monitored program: exit status: 7, "), "{failure}");
        assert!(failure.contains("B: line 1 line 2 "), "{failure}");
        assert!(failure.ends_with(" line 20"), "{failure}");
    }
}
