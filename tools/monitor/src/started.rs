//! The leaf's side of ranks that have not called `MPI_Init`: which processes of this host are
//! ranks of the job, and what these do.
//!
//! The shim does nothing before a program's first MPI call. A rank's process is known before by its
//! environment, which has the name of the job's leaves and the rank as the launcher gives it. It is
//! looked for only when the front-end asks, which it does as long as ranks are missing. One that
//! was seen, and has ended since, is reported as such. That is looked for at each question, all
//! else not more often than what it costs allows, as it goes through all processes of the host.
//! While a rank is in `MPI_Init`, where it may wait for others, the shim keeps a file open that
//! says since when (`bindings/mpi/shim/life.c`).

mod rank_processes;
mod record;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sapwood_profile::Condition;
use sapwood_report::nanoseconds;

use super::condition::condition;
use super::effort::processor_time;
use super::host_time::now_ns;
use super::open_files::open_files;
use super::proc_stat::TICK;
pub(crate) use rank_processes::RANK_VARIABLES;
use rank_processes::{Candidate, Life, RankProcesses, first_of_each};

/// Ranks that a leaf tells of, at most, of those that have not come.
const STARTED_MAX: usize = 1024;
/// Between two looks at the processes of the host, this many times the time of a processor that the
/// one before has taken.
const PAUSE_TIMES: u32 = 50;
/// How the file is called that a rank has open in `MPI_Init`, before the moment at which it has
/// called that, by the monotonic clock.
const INIT_NAME: &str = "/memfd:sapwood-init-";
/// Calls of the system in which programs sleep, by their numbers.
#[cfg(target_arch = "x86_64")]
const CALLS: &[(u64, &str)] = &[
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
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "loongarch64"))]
const CALLS: &[(u64, &str)] = &[
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
/// Others number them in ways of their own: only the kernel's names for places are told.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64"
)))]
const CALLS: &[(u64, &str)] = &[];

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

/// The ranks of a job on this host that have not come to a leaf.
#[derive(Debug, Default)]
pub(crate) struct StartedRanks {
    /// None where no rank is waited for.
    processes: Option<RankProcesses>,
    known: BTreeMap<u32, KnownProcess>,
    /// When the processes of the host may be looked at again.
    again: Option<Instant>,
}

/// A rank that was seen, and which process it was.
#[derive(Clone, Debug)]
struct KnownProcess {
    told: StartedRank,
    began: u64,
}

impl StartedRanks {
    /// Those of a job by the name that its leaves have in common.
    pub(crate) fn of_job(base: &str) -> Self {
        Self { processes: Some(RankProcesses::of_job(base)), ..Self::default() }
    }

    /// Gives the ranks that have not come; looks at the processes of this host, if it is time to.
    pub(crate) fn look(&mut self, has_come: impl Fn(u32) -> bool) -> Vec<StartedRank> {
        if self.processes.is_none() {
            return Vec::new();
        }
        let begun = processor_time();
        let uptime = uptime();
        self.known.retain(|rank, _| !has_come(*rank));
        for known in self.known.values_mut() {
            known.note_age(uptime);
        }
        if self.again.is_none_or(|again| Instant::now() >= again) {
            self.look_around(has_come, uptime);
            let cost = processor_time().saturating_sub(begun);
            self.again = Instant::now().checked_add(cost.saturating_mul(PAUSE_TIMES));
        }
        self.known.values().take(STARTED_MAX).map(|known| known.told.clone()).collect()
    }

    /// Looks at the processes of this host.
    fn look_around(&mut self, has_come: impl Fn(u32) -> bool, uptime: Duration) {
        let Some(processes) = &mut self.processes else { return };
        let found = first_of_each(processes.look());
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
        (!known.is_over()).then_some(known)
    }

    /// Whether it has ended.
    fn is_over(&self) -> bool {
        self.told.condition == Condition::Lost
    }

    /// For how long it has run; that it has ended, where it is not there any more.
    fn note_age(&mut self, uptime: Duration) {
        let process = self.told.process.cast_signed();
        if Life::of(process).is_none_or(|life| life.began != self.began) {
            self.told.condition = Condition::Lost;
            self.told.place.clear();
            return;
        }
        let began = Duration::from_nanos(nanoseconds(TICK).saturating_mul(self.began));
        self.told.age_ns = nanoseconds(uptime.saturating_sub(began));
    }

    /// What it does now.
    fn look_again(&mut self, uptime: Duration) {
        self.note_age(uptime);
        if self.is_over() {
            return;
        }
        let process = self.told.process.cast_signed();
        self.told.condition = condition(process);
        let inside_ns = init_began_ns(process).map(|began| now_ns().saturating_sub(began).max(1));
        self.told.inside_ns = inside_ns.unwrap_or(0);
        self.told.place = match self.told.condition {
            Condition::Sleeping => sleeping_place(process),
            _ => String::new(),
        };
    }
}

/// For how long this system has run, by the clock that tells when processes were started. What
/// `/proc/uptime` tells in a container may be the container's own time.
fn uptime() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// When a process has called `MPI_Init`, if it has not returned from it.
fn init_began_ns(process: i32) -> Option<u64> {
    open_files(process).ok()?.find_map(|file| init_in(&file.name.to_string_lossy()))
}

/// The moment in the name of an open file, if that tells of `MPI_Init`.
fn init_in(name: &str) -> Option<u64> {
    name.strip_prefix(INIT_NAME)?.split_whitespace().next()?.parse().ok()
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

    /// This process as if it were rank 0.
    fn own_process() -> Candidate {
        let process = std::process::id().cast_signed();
        let began = Life::of(process).expect("this process").began;
        Candidate { process, began, ..Candidate::default() }
    }

    /// Ranks of a job that are not looked for again within this test, of which these have ended.
    fn ended(ranks: std::ops::Range<u32>) -> StartedRanks {
        let dead = |rank| {
            let told = StartedRank { rank, process: u32::MAX / 2, ..StartedRank::default() };
            (rank, KnownProcess { told, began: 0 })
        };
        let again = Instant::now().checked_add(Duration::from_secs(3600));
        let known = ranks.map(dead).collect();
        StartedRanks { known, again, ..StartedRanks::of_job("of no job") }
    }

    #[test]
    fn between_two_looks_it_is_seen_that_a_rank_has_ended() {
        let mut started = ended(1..2);
        let own = KnownProcess::of(own_process(), uptime()).expect("it lives");
        started.known.insert(0, own);
        let again = started.again;
        let told = started.look(|_| false);
        assert_eq!(started.again, again, "the host was not looked at");
        let are_over: Vec<bool> = told.iter().map(|one| one.condition == Condition::Lost).collect();
        assert_eq!(are_over, [false, true]);
        let due = Instant::now();
        started.again = Some(due);
        started.look(|_| false);
        assert!(started.again > Some(due), "a look costs time, and puts off the next one");
    }

    #[test]
    fn the_ranks_that_a_leaf_tells_of_are_the_first_that_have_not_come() {
        let most = u32::try_from(STARTED_MAX).expect("a small number");
        let ranks = |told: Vec<StartedRank>| {
            let ends = told.first().zip(told.last());
            (told.len(), ends.map(|(first, last)| [first.rank, last.rank]))
        };
        let mut started = ended(0..3 * most);
        assert_eq!(ranks(started.look(|_| false)), (STARTED_MAX, Some([0, most - 1])));
        let told = started.look(|rank| rank < most);
        assert_eq!(ranks(told), (STARTED_MAX, Some([most, 2 * most - 1])));
        assert_eq!(ranks(started.look(|rank| rank < 3 * most - 1)), (1, Some([3 * most - 1; 2])));
    }

    #[test]
    fn a_process_that_is_not_there_any_more_has_ended() {
        let one = own_process();
        let mut known = KnownProcess::of(one.clone(), uptime()).expect("it lives");
        assert_ne!(known.told.condition, Condition::Lost);
        assert!(known.told.age_ns > 0, "it was started before now by the same clock");
        // Its number was given to another one.
        known.began += 1;
        known.look_again(uptime());
        assert_eq!(known.told.condition, Condition::Lost);
        assert!(KnownProcess::of(Candidate { process: i32::MAX, ..one }, uptime()).is_none());
    }

    #[test]
    fn the_call_in_which_a_process_sleeps_has_a_name() {
        for (number, name) in CALLS {
            assert_eq!(call_in(&format!("{number} 0x1 0x2")), Some(*name));
        }
        assert_eq!(call_in(&format!("{} 0x1", u64::MAX)), None);
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
