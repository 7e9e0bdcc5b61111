//! What the system offers: sockets, names, limits, /proc and clocks.
//!
//! Owns the needs of a tree in descriptors and processes. Changes nothing on the machine; the
//! sockets that it opens are closed at once.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit};
use sapwood_topology::{Hosts, Shape, Topology};
use sapwood_transport::{Address, Listener};

use super::Check;
use sapwood_command_line::exit::one_line;

/// Descriptors that a process of a tree holds per child: the link's socket, the two event counters
/// of a link in shared memory, the process, its standard error.
const DESCRIPTORS_PER_CHILD: u64 = 5;

/// Descriptors that it holds beside these: standard streams, poller, listener, parent, and as many
/// connections as may be proving the key at one time.
const DESCRIPTORS_OWN: u64 = 80;

/// Clock sources that are read without a system call.
const FAST_CLOCKS: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// All checks of the system.
pub(super) fn checks(shape: &Shape) -> Vec<Check> {
    vec![
        binary(),
        socket("unix sockets", Address::local_abstract()),
        socket("loopback TCP", "tcp:127.0.0.1:0".parse()),
        host_name(),
        open_files(shape),
        processes(shape),
        proc_readable(),
        clock(),
    ]
}

fn binary() -> Check {
    let version = env!("CARGO_PKG_VERSION");
    match std::env::current_exe() {
        Ok(path) => Check::fine("sapwood", format!("{version} at {}", path.display())),
        Err(error) => Check::failed(
            "sapwood",
            format!("{version}, but the path of its program cannot be read: {error}"),
            "mount /proc: sapwood-node is looked for beside this program",
        ),
    }
}

fn socket(name: &'static str, address: sapwood_transport::Result<Address>) -> Check {
    match address.and_then(|address| Listener::bind(&address)) {
        Ok(listener) => Check::fine(name, format!("can listen at {}", listener.address())),
        Err(error) => Check::failed(
            name,
            error.to_string(),
            "check the rules of the container or security module",
        ),
    }
}

fn host_name() -> Check {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy().into_owned();
    let address = format!("tcp:{name}:0").parse::<Address>();
    match address.and_then(|address| address.resolve()) {
        Ok(found) => {
            let found: Vec<_> = found.iter().map(|at| at.ip().to_string()).collect();
            Check::fine("host name", format!("{name} is {}", found.join(", ")))
        }
        Err(error) => Check::warning(
            "host name",
            one_line(&error.to_string()),
            "trees on one machine do not need it; for others, add it to /etc/hosts",
        ),
    }
}

fn open_files(shape: &Shape) -> Check {
    let topology = Topology::from_shape(shape, &Hosts::local());
    let fan_out = u64::from(topology.statistics().fan_out_max);
    let need = fan_out * DESCRIPTORS_PER_CHILD + DESCRIPTORS_OWN;
    let advice = || format!("raise it with 'ulimit -n {need}', or take a smaller fan-out");
    limit("open files", getrlimit(Resource::Nofile), need, shape, advice)
}

/// Processes that the user may have; the tree's are compared with the limit, not with what is left
/// of it, since others of the user's come and go.
fn processes(shape: &Shape) -> Check {
    let need = u64::from(shape.node_count());
    let advice = || format!("raise it with 'ulimit -u {}', or take a smaller tree", need * 2);
    let by_user = limit("processes", getrlimit(Resource::Nproc), need, shape, advice);
    match group_limit() {
        Some(most) if most < need => Check::warning(
            "processes",
            format!("this control group may have {most}; {shape} needs {need}"),
            "raise its pids.max, or take a smaller tree",
        ),
        _ => by_user,
    }
}

fn limit(
    name: &'static str,
    limit: Rlimit,
    need: u64,
    shape: &Shape,
    advice: impl Fn() -> String,
) -> Check {
    let shown = |limit: Option<u64>| limit.map_or("unlimited".to_string(), |most| most.to_string());
    let found = format!("limit {}; {shape} needs {need}", shown(limit.current));
    match limit.current {
        Some(most) if most < need => Check::warning(
            name,
            format!("{found} (may be raised to {})", shown(limit.maximum)),
            advice(),
        ),
        _ => Check::fine(name, found),
    }
}

/// What the control group of this process allows, if that can be read.
fn group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let file = Path::new("/sys/fs/cgroup").join(own).join("pids.max");
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn proc_readable() -> Check {
    let own = format!("/proc/{}/task", std::process::id());
    let tasks = fs::read_dir(&own).map(|tasks| tasks.flatten().next());
    match tasks {
        Ok(Some(task)) => {
            let missing: Vec<&str> = ["children", "schedstat", "status"]
                .into_iter()
                .filter(|file| fs::read(task.path().join(file)).is_err())
                .collect();
            if missing.is_empty() {
                return Check::fine("/proc", "readable, with children and schedstat");
            }
            Check::warning(
                "/proc",
                format!("without {}", missing.join(", ")),
                "'sapwood bench' needs them; all other commands work",
            )
        }
        _ => Check::warning("/proc", format!("cannot read {own}"), "mount /proc"),
    }
}

fn clock() -> Check {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or("");
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    let counter = match (has("constant_tsc"), has("nonstop_tsc")) {
        (true, true) => "constant_tsc, nonstop_tsc",
        (true, false) => "constant_tsc",
        _ => "no constant TSC",
    };
    match fs::read_to_string(file) {
        Ok(source) if FAST_CLOCKS.contains(&source.trim()) => {
            Check::fine("clock", format!("{}, {counter}", source.trim()))
        }
        Ok(source) => Check::warning(
            "clock",
            format!("{}, {counter}", source.trim()),
            "reading it is a system call, so the MPI shim costs more; boot with clocksource=tsc",
        ),
        Err(error) => Check::warning(
            "clock",
            format!("{counter}; its source cannot be read: {error}"),
            "mount /sys to see it; nothing else depends on it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_limit_below_the_need_is_a_warning_with_the_cure() {
        let shape: Shape = "8".parse().unwrap();
        let check = |current| {
            let limits = Rlimit { current, maximum: None };
            limit("open files", limits, 100, &shape, || "ulimit -n 100".to_string())
        };
        assert_eq!(check(None).verdict, Verdict::Fine);
        assert_eq!(check(Some(100)).verdict, Verdict::Fine);
        let low = check(Some(99));
        assert_eq!(low.verdict, Verdict::Warning);
        assert!(low.line().contains("limit 99; 8 needs 100 (may be raised to unlimited)"));
        assert!(low.line().ends_with("ulimit -n 100\n"));
    }
}
