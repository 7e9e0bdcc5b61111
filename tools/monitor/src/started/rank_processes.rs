//! Which processes of this host have the environment of a rank of a job.
//!
//! Of the processes of a host most are none, and to read their environments costs more than all
//! else. Only those of the own user are looked at, as other ranks may not come to a leaf,
//! and each is opened once as long as it runs the same program.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use crate::presence::processes;
use crate::proc_stat;

/// Processes of which it is remembered what they are, at most; others are opened at each look.
const LOOKED_MAX: usize = 16_384;
/// The variable that has the name of the job's leaves.
const LEAVES_VARIABLE: &str = "SAPWOOD_MPI_LEAVES";
/// The variables by which launchers tell processes their ranks.
pub(crate) const RANK_VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];
/// The same of Slurm, which daemons of other launchers have as well.
const TASK_VARIABLE: &str = "SLURM_PROCID";
/// Programs that have the environment of a rank, or of a task, and are none.
const STARTERS: [&str; 8] =
    ["mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "hydra_pmi_proxy", "srun"];
/// Programs that start a rank's program and wait for it. One that runs a script may be called as
/// that is.
const WRAPPERS: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "timeout", "time"];

/// The processes of this host that are ranks of a job, and those that are none.
#[derive(Debug)]
pub(super) struct RankProcesses {
    /// What the job's leaves have in common in their names.
    base: String,
    looked: BTreeMap<i32, Looked>,
}

/// A process that was looked at.
#[derive(Debug)]
struct Looked {
    life: Life,
    /// None if it is no rank of the job.
    candidate: Option<Candidate>,
}

/// A process that has a rank's environment.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    pub(super) rank: u32,
    pub(super) process: i32,
    pub(super) parent: u64,
    /// When it was started, in ticks from the system's start.
    pub(super) began: u64,
    pub(super) program: String,
    pub(super) role: ProcessRole,
    pub(super) source: RankSource,
    pub(super) descent: Descent,
}

/// What a process does for a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ProcessRole {
    #[default]
    Program,
    /// It is a shell or the like, which may have started the rank's program.
    Wrapper,
}

/// What has told a process its rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RankSource {
    /// A launcher of MPI programs.
    #[default]
    Launcher,
    /// Slurm alone.
    Task,
}

/// Where a process comes from. It is remembered, since the parent of a process is another one once
/// that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Descent {
    /// Its parent was not seen to have the same rank.
    #[default]
    Eldest,
    /// It was.
    Below,
}

/// A process and the rank in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seat {
    rank: u32,
    process: u64,
    source: RankSource,
}

/// What `/proc/PID/stat` says of a process that has not ended.
#[derive(Debug)]
pub(super) struct Life {
    parent: u64,
    pub(super) began: u64,
    /// Where the environment of its program is. A process that starts another program in its place
    /// is as old as before, and has its environment elsewhere.
    environment: Range<u64>,
}

impl RankProcesses {
    /// Those of a job by the name that its leaves have in common.
    pub(super) fn of_job(base: &str) -> Self {
        Self { base: base.to_owned(), looked: BTreeMap::new() }
    }

    /// Those that have the environment of a rank now.
    pub(super) fn look(&mut self) -> Vec<Candidate> {
        let user = geteuid().as_raw();
        let mut before = std::mem::take(&mut self.looked);
        let mut now = BTreeMap::new();
        for process in processes().filter(|&process| is_of_user(process, user)) {
            let Some(life) = Life::of(process) else { continue };
            let looked = Looked::at(process, life, before.remove(&process), &self.base);
            now.insert(process, looked);
        }
        note_parents(now.values_mut().filter_map(|looked| looked.candidate.as_mut()).collect());
        let found = now.values().filter_map(|looked| looked.candidate.clone()).collect();
        self.looked = now.into_iter().take(LOOKED_MAX).collect();
        found
    }
}

impl Looked {
    /// What a process is: what it was before, if it runs the same program.
    fn at(process: i32, life: Life, before: Option<Self>, base: &str) -> Self {
        let before = before.filter(|before| before.life.began == life.began);
        match before {
            Some(before) if before.life.environment == life.environment => before,
            before => {
                let before = before.and_then(|before| before.candidate);
                let mut candidate = candidate(process, &life, base);
                if let (Some(one), Some(before)) = (&mut candidate, before)
                    && before.rank == one.rank
                {
                    one.descent = before.descent;
                }
                Self { life, candidate }
            }
        }
    }
}

impl Candidate {
    fn seat(&self) -> Seat {
        let process = self.process.cast_unsigned().into();
        Seat { rank: self.rank, process, source: self.source }
    }

    /// The one of its parent, if that has the same rank.
    fn elder(&self) -> Seat {
        Seat { process: self.parent, ..self.seat() }
    }
}

/// Notes of which processes the parent has the same rank.
fn note_parents(all: Vec<&mut Candidate>) {
    let seats: BTreeSet<Seat> = all.iter().map(|one| one.seat()).collect();
    for one in all {
        if seats.contains(&one.elder()) {
            one.descent = Descent::Below;
        }
    }
}

impl Life {
    pub(super) fn of(process: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let fields = proc_stat::fields(&stat)?;
        let is_over = matches!(fields.state(), Some('Z' | 'X') | None);
        let environment = fields.environment().unwrap_or_default();
        let life = Self { parent: fields.parent()?, began: fields.began()?, environment };
        (!is_over).then_some(life)
    }
}

/// Whether a process runs as this user.
fn is_of_user(process: i32, user: u32) -> bool {
    fs::metadata(format!("/proc/{process}")).is_ok_and(|found| found.uid() == user)
}

/// A process of this host, if it has the environment of a rank of this job.
fn candidate(process: i32, life: &Life, base: &str) -> Option<Candidate> {
    let variables = fs::read(format!("/proc/{process}/environ")).ok()?;
    let NamedRank { rank, source } = rank_in(&variables, base)?;
    let program = fs::read(format!("/proc/{process}/comm")).ok()?;
    let program = String::from_utf8_lossy(&program).trim_end().to_owned();
    let role = role_of(process, &program);
    let Life { parent, began, .. } = *life;
    // Some are called by their MPI, too, as `mpirun.openmpi`.
    let stem = program.split('.').next().unwrap_or_default();
    (!STARTERS.contains(&stem)).then_some(Candidate {
        rank,
        process,
        parent,
        began,
        program,
        role,
        source,
        descent: Descent::Eldest,
    })
}

/// What a process does, by its name or by that of the file which it runs.
fn role_of(process: i32, program: &str) -> ProcessRole {
    let file = fs::read_link(format!("/proc/{process}/exe")).ok();
    let file = file.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
    match [Some(program), file].into_iter().flatten().any(|name| WRAPPERS.contains(&name)) {
        true => ProcessRole::Wrapper,
        false => ProcessRole::Program,
    }
}

/// The rank that an environment names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamedRank {
    rank: u32,
    source: RankSource,
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
    let told = |source| move |rank| NamedRank { rank, source };
    let launcher = RANK_VARIABLES.iter().find_map(number).map(told(RankSource::Launcher));
    launcher.or_else(|| number(&TASK_VARIABLE).map(told(RankSource::Task)))
}

/// The process of each rank: the eldest, or where that is a shell or the like the one that this has
/// started.
///
/// What a rank starts has its environment, too. The eldest is the one whose parent has not the same
/// rank. When it ends, those that it has started may go on: none of them is taken for the rank, but
/// one that was started and left by its parent between two looks.
pub(super) fn first_of_each(mut all: Vec<Candidate>) -> BTreeMap<u32, Candidate> {
    // Under another launcher all processes on a host have the task of its daemon.
    if all.iter().any(|one| one.source == RankSource::Launcher) {
        all.retain(|one| one.source == RankSource::Launcher);
    }
    all.sort_by_key(|one| (one.began, one.process));
    let mut first = BTreeMap::new();
    for one in all.iter().filter(|one| one.descent == Descent::Eldest) {
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
            Some(below) if one.role == ProcessRole::Wrapper => one = below,
            _ => break,
        }
    }
    one
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    fn candidate(rank: u32, process: i32, parent: u64, program: &str) -> Candidate {
        let began = u64::from(process.cast_unsigned());
        // There is no such process: only its name counts.
        let role = role_of(i32::MAX, program);
        let program = program.to_owned();
        Candidate { rank, process, parent, began, program, role, ..Candidate::default() }
    }

    #[test]
    fn the_rank_stands_in_the_environment_of_its_process() {
        let named = |rank, source| Some(NamedRank { rank, source });
        let own = b"A=1\0SAPWOOD_MPI_LEAVES=job-1\0SLURM_PROCID=0\0OMPI_COMM_WORLD_RANK=3\0";
        assert_eq!(rank_in(own, "job-1"), named(3, RankSource::Launcher));
        assert_eq!(rank_in(own, "job-2"), None);
        assert_eq!(
            rank_in(b"SAPWOOD_MPI_LEAVES=j\0PMI_RANK=12\0", "j"),
            named(12, RankSource::Launcher)
        );
        assert_eq!(
            rank_in(b"SAPWOOD_MPI_LEAVES=j\0SLURM_PROCID=2\0", "j"),
            named(2, RankSource::Task)
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
        let task =
            |process| Candidate { source: RankSource::Task, ..candidate(0, process, 1, "a") };
        assert_eq!(first_of_each(vec![task(10), task(11)])[&0].process, 10);
        let first = first_of_each(vec![task(10), candidate(3, 12, 1, "a")]);
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn the_eldest_is_the_one_whose_parent_has_another_rank_or_none() {
        let task = Candidate { source: RankSource::Task, ..candidate(1, 20, 1, "daemon") };
        let mut all = vec![
            // Its number was given again: it looks as if it were older than its parent.
            candidate(0, 13, 14, "helper"),
            candidate(0, 14, 1, "solver"),
            task,
            candidate(1, 21, 20, "solver"),
            candidate(2, 22, 21, "spawned"),
        ];
        note_parents(all.iter_mut().collect());
        let below: Vec<i32> =
            all.iter().filter(|one| one.descent == Descent::Below).map(|one| one.process).collect();
        assert_eq!(below, [13]);
        let first = first_of_each(all);
        assert_eq!(first.values().map(|one| one.process).collect::<Vec<_>>(), [14, 21, 22]);
    }

    #[test]
    fn what_a_rank_has_started_is_not_taken_for_it_once_it_has_ended() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 >/dev/null & echo $!; read line"]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = of_no_rank(&mut shell)
            .env(LEAVES_VARIABLE, "its-job")
            .env("PMI_RANK", "3")
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let left: i32 = lines.next().unwrap().unwrap().parse().unwrap();
        let mut processes = RankProcesses::of_job("its-job");
        let mut look = || {
            let found = processes.look();
            let descent = found.iter().find(|one| one.process == left).map(|one| one.descent);
            (descent, first_of_each(found).get(&3).map(|one| one.process))
        };
        assert_eq!(look(), (Some(Descent::Below), Some(left)), "the shell waits for it");
        drop(shell.stdin.take());
        shell.wait().unwrap();
        let after = look();
        kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
        assert_eq!(after, (Some(Descent::Below), None), "it goes on, and is no rank");
    }

    #[test]
    fn a_script_that_is_called_otherwise_is_a_shell_that_waits_for_the_rank() {
        let mut shell = Command::new("sh");
        // As a script of that name that is started by itself. What it starts ends with its input.
        let script = "echo rank.sh >/proc/$$/comm; sh -c 'echo $$; read line'; :";
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = of_no_rank(&mut shell)
            .env(LEAVES_VARIABLE, "job-of-scripts")
            .env("PMI_RANK", "4")
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let below: i32 = lines.next().unwrap().unwrap().parse().unwrap();
        let found = RankProcesses::of_job("job-of-scripts").look();
        let script = found.iter().find(|one| one.process == shell.id().cast_signed());
        assert_eq!(script.map(|one| one.program.as_str()), Some("rank.sh"));
        assert_eq!(first_of_each(found).get(&4).map(|one| one.process), Some(below));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }

    /// Without what this test may have been started with.
    fn of_no_rank(command: &mut Command) -> &mut Command {
        for variable in [LEAVES_VARIABLE, TASK_VARIABLE].iter().chain(&RANK_VARIABLES) {
            command.env_remove(variable);
        }
        command
    }

    #[test]
    fn a_process_is_looked_at_again_only_when_it_has_started_another_program() {
        // Each line that the shell reads lets it go on, each that it writes says that it has.
        let next = "exec env SAPWOOD_MPI_LEAVES=a-job PMI_RANK=7 sh -c 'echo; read line'";
        let steps = format!("echo; read line; {next}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &steps]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = of_no_rank(&mut shell).spawn().unwrap();
        let (mut stdin, stdout) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let mut lines = BufReader::new(stdout).lines();
        lines.next().unwrap().unwrap();
        let process = shell.id().cast_signed();
        let mut processes = RankProcesses::of_job("a-job");
        assert!(processes.look().iter().all(|one| one.process != process));
        let looked = processes.looked.get_mut(&process).expect("it is remembered");
        assert_eq!(looked.life.parent, u64::from(std::process::id()));
        assert!(looked.candidate.is_none());
        // What is remembered counts, were it wrong.
        looked.candidate = Some(candidate(9, process, 1, "remembered"));
        let rank = |processes: &mut RankProcesses| {
            let found = processes.look();
            found.iter().find(|one| one.process == process).map(|one| one.rank)
        };
        assert_eq!(rank(&mut processes), Some(9));
        stdin.write_all(b"\n").unwrap();
        lines.next().unwrap().unwrap();
        assert_eq!(rank(&mut processes), Some(7));
        drop(stdin);
        shell.wait().unwrap();
        assert_eq!(rank(&mut processes), None);
        assert!(!processes.looked.contains_key(&process), "it has ended");
    }

    #[test]
    fn only_processes_of_the_own_user_are_looked_at() {
        let (own, user) = (std::process::id().cast_signed(), geteuid().as_raw());
        assert!(is_of_user(own, user));
        assert!(!is_of_user(own, user.wrapping_add(1)));
        assert!(!is_of_user(i32::MAX, user), "there is no such process");
    }
}
