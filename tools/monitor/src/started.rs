//! The leaf's side of ranks that have not called `MPI_Init`: which processes of this host are
//! ranks of the job, and what these do.
//!
//! The shim does nothing before a program's first MPI call. A rank's process is known before by its
//! environment, which has the name of the job's leaves and the rank as the launcher gives it. It is
//! looked for only when the front-end asks, which it does as long as ranks are missing. One that
//! was seen, and has ended since, is told as such. While a rank is in `MPI_Init`, where it may wait
//! for others, the shim keeps a file open that says since when (`bindings/mpi/shim/life.c`).

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use sapwood_profile::Condition;
use sapwood_report::nanoseconds;

use super::condition::condition;
use super::host_time::now_ns;
use super::presence::processes;
use super::proc_stat::{self, TICK};

/// Ranks that a leaf tells of, at most.
const STARTED_MAX: usize = 1024;
/// The variable that has the name of the job's leaves.
const LEAVES_VARIABLE: &str = "SAPWOOD_MPI_LEAVES";
/// The variables by which launchers tell processes their ranks.
const RANK_VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];
/// The same of Slurm, which daemons of other launchers have as well.
const TASK_VARIABLE: &str = "SLURM_PROCID";
/// How the file is called that a rank has open in `MPI_Init`, before the moment at which it has
/// called that, by the monotonic clock.
const INIT_NAME: &str = "/memfd:sapwood-init-";
/// Programs that have the environment of a rank, or of a task, and are none.
const STARTERS: [&str; 8] =
    ["mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "hydra_pmi_proxy", "srun"];
/// Programs that start a rank's program and wait for it.
const WRAPPERS: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "timeout", "time"];

/// Calls of the system in which programs sleep, by their numbers.
#[cfg(target_arch = "x86_64")]
const CALLS: [(u64, &str); 22] = [
    (0, "read"),
    (7, "poll"),
    (17, "pread64"),
    (23, "select"),
    (34, "pause"),
    (35, "nanosleep"),
    (42, "connect"),
    (43, "accept"),
    (45, "recvfrom"),
    (47, "recvmsg"),
    (61, "wait4"),
    (72, "fcntl"),
    (73, "flock"),
    (128, "rt_sigtimedwait"),
    (130, "rt_sigsuspend"),
    (202, "futex"),
    (230, "clock_nanosleep"),
    (232, "epoll_wait"),
    (247, "waitid"),
    (270, "pselect6"),
    (271, "ppoll"),
    (281, "epoll_pwait"),
];
/// The same by the numbers that newer architectures have in common.
#[cfg(not(target_arch = "x86_64"))]
const CALLS: [(u64, &str); 15] = [
    (22, "epoll_pwait"),
    (25, "fcntl"),
    (32, "flock"),
    (63, "read"),
    (67, "pread64"),
    (72, "pselect6"),
    (73, "ppoll"),
    (95, "waitid"),
    (98, "futex"),
    (101, "nanosleep"),
    (115, "clock_nanosleep"),
    (203, "connect"),
    (207, "recvfrom"),
    (212, "recvmsg"),
    (260, "wait4"),
];

/// What is known of the process of a rank before `MPI_Init`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartedRank {
    pub(crate) rank: u32,
    pub(crate) process: u32,
    /// For how long it has run, or had when it was seen last.
    pub(crate) age_ns: u64,
    /// [`Condition::Lost`] once it has ended.
    pub(crate) condition: Condition,
    pub(crate) program: String,
    /// The call of the system in which it sleeps; empty where that is not known.
    pub(crate) place: String,
    /// For how long it has been in `MPI_Init`; 0 if it has not called that.
    pub(crate) inside_ns: u64,
}

/// The ranks of a job on this host that have not come to this leaf.
#[derive(Debug, Default)]
pub(crate) struct StartedRanks {
    /// What the job's leaves have in common in their names; empty where no rank is waited for.
    base: String,
    known: BTreeMap<u32, KnownProcess>,
}

/// A rank that was seen, and which process it was.
#[derive(Clone, Debug)]
struct KnownProcess {
    told: StartedRank,
    began: u64,
}

/// A process that has a rank's environment.
#[derive(Clone, Debug)]
struct Candidate {
    rank: u32,
    process: i32,
    parent: u64,
    /// When it was started, in ticks from the system's start.
    began: u64,
    program: String,
    /// Whether only Slurm has told it.
    is_task: bool,
}

impl StartedRanks {
    /// Those of a job by the name that its leaves have in common.
    pub(crate) fn of_job(base: &str) -> Self {
        Self { base: base.to_owned(), ..Self::default() }
    }

    /// Looks at the processes of this host; gives the ranks that have not come.
    pub(crate) fn look(&mut self, has_come: impl Fn(u32) -> bool) -> Vec<StartedRank> {
        if self.base.is_empty() {
            return Vec::new();
        }
        let found =
            first_of_each(processes().filter_map(|one| candidate(one, &self.base)).collect());
        let uptime = uptime();
        self.known.retain(|rank, _| !has_come(*rank));
        for (rank, known) in &mut self.known {
            if !found.contains_key(rank) {
                known.look_again(uptime);
            }
        }
        for (rank, one) in found.into_iter().filter(|(rank, _)| !has_come(*rank)) {
            if let Some(known) = KnownProcess::of(one, uptime) {
                self.known.insert(rank, known);
            }
        }
        self.known.values().take(STARTED_MAX).map(|known| known.told.clone()).collect()
    }
}

impl KnownProcess {
    /// None if it has ended since it was found.
    fn of(one: Candidate, uptime: Duration) -> Option<Self> {
        let told = StartedRank {
            rank: one.rank,
            process: one.process.cast_unsigned(),
            program: one.program,
            ..StartedRank::default()
        };
        let mut known = Self { told, began: one.began };
        known.look_again(uptime);
        (known.told.condition != Condition::Lost).then_some(known)
    }

    /// What it does now; that it has ended, where it is not there any more.
    fn look_again(&mut self, uptime: Duration) {
        let process = self.told.process.cast_signed();
        let is_there = Life::of(process).is_some_and(|life| life.began == self.began);
        if !is_there {
            self.told.condition = Condition::Lost;
            self.told.place.clear();
            return;
        }
        let began = Duration::from_nanos(nanoseconds(TICK).saturating_mul(self.began));
        self.told.age_ns = nanoseconds(uptime.saturating_sub(began));
        self.told.condition = condition(process);
        let inside_ns = init_began_ns(process).map(|began| now_ns().saturating_sub(began).max(1));
        self.told.inside_ns = inside_ns.unwrap_or(0);
        self.told.place = match self.told.condition {
            Condition::Sleeping => sleeping_place(process),
            _ => String::new(),
        };
    }
}

/// What `/proc/PID/stat` says of a process that has not ended.
struct Life {
    parent: u64,
    began: u64,
}

impl Life {
    fn of(process: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let fields = proc_stat::fields(&stat)?;
        let is_over = matches!(fields.state(), Some('Z' | 'X') | None);
        let life = Self { parent: fields.parent()?, began: fields.began()? };
        (!is_over).then_some(life)
    }
}

/// A process of this host, if it has the environment of a rank of this job.
fn candidate(process: i32, base: &str) -> Option<Candidate> {
    let variables = fs::read(format!("/proc/{process}/environ")).ok()?;
    let (rank, is_task) = match rank_in(&variables, base)? {
        NamedRank::Launcher(rank) => (rank, false),
        NamedRank::Task(rank) => (rank, true),
    };
    let life = Life::of(process)?;
    let program = fs::read(format!("/proc/{process}/comm")).ok()?;
    let program = String::from_utf8_lossy(&program).trim_end().to_owned();
    let Life { parent, began } = life;
    // Some are called by their MPI, too, as `mpirun.openmpi`.
    let stem = program.split('.').next().unwrap_or_default();
    (!STARTERS.contains(&stem)).then_some(Candidate {
        rank,
        process,
        parent,
        began,
        program,
        is_task,
    })
}

/// The rank that an environment names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedRank {
    /// A launcher of MPI programs has told it.
    Launcher(u32),
    /// Only Slurm has.
    Task(u32),
}

/// The rank that an environment names; none where it is of another job.
fn rank_in(variables: &[u8], base: &str) -> Option<NamedRank> {
    let value = |name: &str| {
        let mut all = variables.split(|&byte| byte == 0);
        let value = all.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        std::str::from_utf8(value).ok()
    };
    if value(LEAVES_VARIABLE)? != base {
        return None;
    }
    let number = |name: &&str| value(name)?.parse::<u32>().ok();
    let told = RANK_VARIABLES.iter().find_map(number).map(NamedRank::Launcher);
    told.or_else(|| number(&TASK_VARIABLE).map(NamedRank::Task))
}

/// The process of each rank: the one that was started first, or where that is a shell or the like
/// the one that this has started.
fn first_of_each(mut all: Vec<Candidate>) -> BTreeMap<u32, Candidate> {
    // Under another launcher all processes on a host have the task of its daemon.
    if all.iter().any(|one| !one.is_task) {
        all.retain(|one| !one.is_task);
    }
    all.sort_by_key(|one| (one.began, one.process));
    let mut first = BTreeMap::new();
    for one in &all {
        first.entry(one.rank).or_insert_with(|| behind_wrappers(one, &all).clone());
    }
    first
}

/// The process for which wrappers wait. They are as many as there are processes at most.
fn behind_wrappers<'a>(first: &'a Candidate, all: &'a [Candidate]) -> &'a Candidate {
    let mut one = first;
    for _ in all {
        let is_below = |other: &&Candidate| {
            other.rank == one.rank && u64::from(one.process.cast_unsigned()) == other.parent
        };
        match all.iter().find(is_below) {
            Some(below) if WRAPPERS.contains(&one.program.as_str()) => one = below,
            _ => break,
        }
    }
    one
}

/// For how long this system has run.
fn uptime() -> Duration {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default()
}

/// When a process has called `MPI_Init`, if it has not returned from it.
fn init_began_ns(process: i32) -> Option<u64> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.find_map(|target| init_in(&target.to_string_lossy()))
}

/// The moment in the name of an open file, if that tells of `MPI_Init`.
fn init_in(target: &str) -> Option<u64> {
    target.strip_prefix(INIT_NAME)?.split_whitespace().next()?.parse().ok()
}

/// In which call of the system a process sleeps; empty where that may not be known.
fn sleeping_place(process: i32) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).ok();
    let call = read("syscall").and_then(|call| call_in(&call)).map(str::to_owned);
    // Of the kernel's own names for places, 0 stands for none.
    let place = || read("wchan").filter(|place| place.starts_with(|first: char| first != '0'));
    call.or_else(place).unwrap_or_default()
}

/// The call that `/proc/PID/syscall` tells, if it is one in which programs sleep.
fn call_in(text: &str) -> Option<&'static str> {
    let number: u64 = text.split_whitespace().next()?.parse().ok()?;
    CALLS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(rank: u32, process: i32, parent: u64, program: &str) -> Candidate {
        let began = u64::from(process.cast_unsigned());
        Candidate { rank, process, parent, began, program: program.into(), is_task: false }
    }

    #[test]
    fn the_rank_stands_in_the_environment_of_its_process() {
        let own = b"A=1\0SAPWOOD_MPI_LEAVES=job-1\0SLURM_PROCID=0\0OMPI_COMM_WORLD_RANK=3\0";
        assert_eq!(rank_in(own, "job-1"), Some(NamedRank::Launcher(3)));
        assert_eq!(rank_in(own, "job-2"), None);
        assert_eq!(
            rank_in(b"SAPWOOD_MPI_LEAVES=j\0PMI_RANK=12\0", "j"),
            Some(NamedRank::Launcher(12))
        );
        assert_eq!(
            rank_in(b"SAPWOOD_MPI_LEAVES=j\0SLURM_PROCID=2\0", "j"),
            Some(NamedRank::Task(2))
        );
        assert_eq!(rank_in(b"SAPWOOD_MPI_LEAVES=j\0PMI_RANKS=12\0", "j"), None);
        assert_eq!(rank_in(b"PMI_RANK=12\0", "j"), None);
    }

    #[test]
    fn a_rank_is_the_process_for_which_shells_wait_and_not_one_that_it_has_started() {
        let all = vec![
            candidate(0, 12, 11, "solver"),
            candidate(0, 10, 1, "timeout"),
            candidate(0, 11, 10, "sh"),
            candidate(0, 13, 12, "helper"),
            candidate(1, 20, 1, "bash"),
        ];
        let first = first_of_each(all);
        assert_eq!(first[&0].process, 12);
        assert_eq!(first[&1].process, 20, "a script is all that there is");
    }

    #[test]
    fn tasks_of_slurm_count_only_where_no_launcher_tells_ranks() {
        let task = |process| Candidate { is_task: true, ..candidate(0, process, 1, "a") };
        assert_eq!(first_of_each(vec![task(10), task(11)])[&0].process, 10);
        let first = first_of_each(vec![task(10), candidate(3, 12, 1, "a")]);
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_process_that_is_not_there_any_more_has_ended() {
        let own = std::process::id().cast_signed();
        let began = Life::of(own).expect("this process").began;
        let one = Candidate { began, ..candidate(0, own, 1, "tests") };
        let mut known = KnownProcess::of(one.clone(), uptime()).expect("it lives");
        assert_ne!(known.told.condition, Condition::Lost);
        // Its number was given to another one.
        known.began += 1;
        known.look_again(uptime());
        assert_eq!(known.told.condition, Condition::Lost);
        assert!(KnownProcess::of(Candidate { process: i32::MAX, ..one }, uptime()).is_none());
    }

    #[test]
    fn the_call_in_which_a_process_sleeps_has_a_name() {
        let (number, name) = CALLS[5];
        assert_eq!(call_in(&format!("{number} 0x1 0x2")), Some(name));
        assert_eq!(call_in("running"), None);
        assert_eq!(call_in("-1 0x7ffd 0x7f00"), None);
        assert_eq!(sleeping_place(i32::MAX), "");
    }

    #[test]
    fn a_file_of_a_rank_says_since_when_it_is_in_mpi_init() {
        assert_eq!(init_in("/memfd:sapwood-init-1234 (deleted)"), Some(1234));
        assert_eq!(init_in("/memfd:sapwood-profile (deleted)"), None);
        assert_eq!(init_in("/tmp/sapwood-init-1234"), None);
        assert_eq!(init_began_ns(std::process::id().cast_signed()), None);
    }

    #[test]
    fn without_a_job_no_process_is_looked_at() {
        assert_eq!(StartedRanks::default().look(|_| false), []);
        assert_eq!(StartedRanks::of_job("of no job").look(|_| false), []);
    }
}
