//! Where a program's ranks will run: this host, several hosts, or those of an allocation that its
//! launcher has yet to get.
//!
//! Owns the order in which that is looked for: what the user says, the launcher's command line,
//! the allocation around us. It starts nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sapwood::Launcher as Reach;
use sapwood_command_line::exit::Failure;
use sapwood_command_line::query::answer;
use sapwood_command_line::times::patience;
use sapwood_hosts::groups::SiteGroups;
use sapwood_hosts::read_file;
use sapwood_launch::Order;
use sapwood_topology::{HostList, HostName, NodeSet};
use sapwood_transport::{InterfaceRule, interfaces};

use super::command_line::JobCommand;
use super::launcher::Launcher;

/// How long Slurm may take to say where a job runs.
const SLURM_LIMIT: Duration = Duration::from_secs(10);
/// Of more hosts than this only those are taken for this one that have its name: no resolver is
/// asked.
const RESOLVED_MAX: usize = 16;

/// Options about the hosts of the program.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Reaching {
    /// Hosts of the ranks (repeatable); by default those that the launcher's command line or the
    /// allocation names.
    #[arg(long, value_name = "NODESET")]
    pub(crate) hosts: Vec<String>,
    /// Start leaves on other hosts in this way: auto, ssh or slurm.
    #[arg(long, value_name = "NAME", default_value = "auto", env = "SAPWOOD_LAUNCHER")]
    pub(crate) launcher: Reach,
    /// Use this remote shell, with its arguments, in place of ssh.
    #[arg(long, value_name = "WORDS", env = "SAPWOOD_RSH")]
    pub(crate) remote_shell: Option<String>,
    /// Listen only on these interfaces: networks, interface names or name prefixes, separated by
    /// commas; a leading ^ excludes them.
    #[arg(long, value_name = "RULE", default_value = "", env = "SAPWOOD_INTERFACES")]
    pub(crate) interfaces: String,
    /// Treat a host as missing if it does not answer within this time, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = patience)]
    pub(crate) connect_timeout: Duration,
}

impl Reaching {
    /// Whether the interfaces that are named are there. Where all ranks run on this host none is
    /// listened on, so that nothing else would say so.
    ///
    /// # Errors
    /// One line: which interfaces there are.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.interfaces.is_empty() {
            return Ok(());
        }
        let rule = self.interfaces.parse::<InterfaceRule>().map_err(|error| error.to_string())?;
        let all = interfaces().map_err(|error| error.to_string())?;
        if !rule.choose(&all).is_empty() {
            return Ok(());
        }
        let mut names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        names.dedup();
        Err(format!(
            "--interfaces '{}' chooses no interface of this machine; there are {}",
            self.interfaces,
            names.join(", ")
        ))
    }
}

/// Where ranks will run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// On this host, in as many slots if that is known.
    Here(Option<u32>),
    /// On these hosts.
    Hosts(JobHosts),
    /// In an allocation that `srun` makes for itself.
    Later,
}

/// The hosts of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobHosts {
    /// Their names, each once.
    pub(crate) names: Vec<HostName>,
    /// The most ranks that one of them has room for, if that is known.
    pub(crate) slots_max: Option<u32>,
    /// The room of all.
    pub(crate) slots: Option<u32>,
    /// The Slurm job by whose steps they are reached; else by ssh.
    pub(crate) slurm_job: Option<String>,
}

impl JobHosts {
    /// Whether this host is one of them.
    pub(crate) fn have_this_one(&self) -> bool {
        self.names.iter().any(|name| is_here(name.as_str(), self.names.len()))
    }
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Placement {
    /// Where a command's ranks will run.
    ///
    /// # Errors
    /// A host file or a nodeset that cannot be read, a job that Slurm does not know.
    pub(crate) fn of(command: &JobCommand, reaching: &Reaching) -> Result<Self, Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::within(command, reaching, &variable)
    }

    fn within(
        command: &JobCommand,
        reaching: &Reaching,
        variable: Variables<'_>,
    ) -> Result<Self, Failure> {
        let around = variable("SLURM_JOB_ID");
        if !reaching.hosts.is_empty() {
            let named = nodesets(&reaching.hosts)?;
            return Self::on(named, command, around);
        }
        let Some(launcher) = command.kind else { return Ok(Self::Here(None)) };
        if launcher == Launcher::Torchrun {
            return Ok(Self::Here(None));
        }
        let named = on_command_line(launcher, command, variable)?;
        if !named.is_empty() {
            return Self::on(named, command, around);
        }
        if launcher == Launcher::Srun {
            let job = command.options("jobid").next().map(|option| option.value().to_owned());
            if let Some(job) = job.filter(|job| around.as_ref() != Some(job)) {
                let hosts = hosts_of_job(&job).map_err(Failure::usage)?;
                return Self::on(hosts, command, Some(job));
            }
            if around.is_none() {
                return Ok(Self::Later);
            }
        }
        let allocated = allocated(variable)?;
        if allocated.is_empty() {
            return Ok(Self::Here(None));
        }
        Self::on(allocated, command, around)
    }

    fn on(hosts: Named, command: &JobCommand, job: Option<String>) -> Result<Self, Failure> {
        let per_host = ranks_per_host(command);
        let hosts = hosts.merged();
        let slots = |known: &BTreeMap<String, Option<u32>>| -> Option<u32> {
            known.values().map(|slots| per_host.or(*slots)).sum()
        };
        let by_name: BTreeMap<String, Option<u32>> = hosts.iter().cloned().collect();
        let here = |name: &String| is_here(name, hosts.len());
        let all = slots(&by_name);
        if hosts.iter().all(|(name, _)| here(name)) {
            return Ok(Self::Here(all));
        }
        let names = hosts.iter().map(|(name, _)| name.parse::<HostName>());
        let names = names.collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?;
        let slots_max = by_name.values().map(|slots| per_host.or(*slots)).max().flatten();
        Ok(Self::Hosts(JobHosts { names, slots_max, slots: all, slurm_job: job }))
    }
}

/// Hosts as they were named, with their slots if these were said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named(Vec<(String, Option<u32>)>);

impl Named {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add_with_slots(&mut self, list: &HostList) {
        self.0.extend(list.hosts().map(|(name, slots)| (name.to_owned(), Some(slots))));
    }

    fn add_names(&mut self, list: &HostList) {
        self.0.extend(list.hosts().map(|(name, _)| (name.to_owned(), None)));
    }

    /// Each host once, in the order of their first mention; all names of this host are one.
    fn merged(self) -> Vec<(String, Option<u32>)> {
        let count = self.0.len();
        let mut merged: Vec<(String, Option<u32>)> = Vec::new();
        let mut own: Option<String> = None;
        for (name, slots) in self.0 {
            let name = match is_here(&name, count) {
                true => own.get_or_insert_with(|| own_name(name)).clone(),
                false => name,
            };
            match merged.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = known.zip(slots).map(|(one, other)| one + other),
                None => merged.push((name, slots)),
            }
        }
        merged
    }
}

/// Whether a name means this host.
fn is_here(name: &str, hosts: usize) -> bool {
    sapwood_launch::is_own_name(name)
        || hosts <= RESOLVED_MAX && sapwood_launch::is_local(name).unwrap_or(false)
}

/// A name of this host that other hosts know, too.
fn own_name(listed: String) -> String {
    let is_loopback = listed.starts_with("localhost") || listed.starts_with("127.");
    let own = sapwood_launch::own_host_name();
    if is_loopback && own.parse::<HostName>().is_ok() { own } else { listed }
}

fn nodesets(texts: &[String]) -> Result<Named, Failure> {
    let groups = SiteGroups::default();
    let mut named = Named::default();
    for text in texts {
        let set = NodeSet::parse(text, &groups).map_err(Failure::usage)?;
        named.0.extend(set.iter().map(|name| (name, None)));
    }
    Ok(named)
}

/// The hosts that the launcher is told: as lists or by files.
fn on_command_line(
    launcher: Launcher,
    command: &JobCommand,
    variable: Variables<'_>,
) -> Result<Named, Failure> {
    let mut named = Named::default();
    if launcher == Launcher::Srun {
        return Ok(named);
    }
    for option in command.options("H host hosts") {
        // `+n1` and `+e` mean hosts of the allocation.
        let words = terms(option.value()).filter(|word| !word.starts_with(['+', '^']));
        let lines: Vec<&str> = words.map(|word| word.strip_suffix(":*").unwrap_or(word)).collect();
        named.add_with_slots(&host_list(&lines.join("\n"), &format!("'-{}'", option.name))?);
    }
    let files: Vec<String> = command
        .options("hostfile machinefile f default-hostfile")
        .map(|option| option.value().to_owned())
        .collect();
    let by_variable = ["OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE"];
    let otherwise = by_variable.iter().filter_map(|name| variable(name)).take(1);
    let is_named = !named.is_empty();
    let files = files.into_iter().chain(otherwise.filter(|_| !is_named));
    // Where hosts are named both ways, the list chooses among those of the file.
    for file in files.filter(|_| !is_named) {
        named.add_with_slots(&host_list(&read_file(Path::new(&file))?, &file)?);
    }
    Ok(named)
}

fn host_list(text: &str, source: &str) -> Result<HostList, Failure> {
    // Open MPI's files may name the user to log in as.
    let bare = |line: &str| match line.split_once('@') {
        Some((user, host)) if !user.is_empty() && !user.contains([' ', ',', '#']) => {
            host.to_owned()
        }
        _ => line.to_owned(),
    };
    let text: Vec<String> = text.lines().map(bare).collect();
    HostList::from_file_text(&text.join("\n"), source, &SiteGroups::default())
        .map_err(Failure::usage)
}

/// What stands between commas, outside of brackets.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let parts = text.split(move |letter| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|term| !term.is_empty())
}

/// How many ranks each host has, if the command says so.
fn ranks_per_host(command: &JobCommand) -> Option<u32> {
    let names = match command.kind? {
        Launcher::Srun | Launcher::Flux => "ntasks-per-node tasks-per-node",
        Launcher::Mpirun | Launcher::Prun => "npernode N ppn perhost",
        Launcher::Torchrun => "nproc-per-node",
    };
    let pernode = command.options("pernode").next().map(|_| 1);
    command.options(names).filter_map(|option| option.value().parse().ok()).max().or(pernode)
}

/// The hosts of the allocation around us; none outside of one.
fn allocated(variable: Variables<'_>) -> Result<Named, Failure> {
    let mut named = Named::default();
    let nodes = variable("SLURM_JOB_NODELIST").or_else(|| variable("SLURM_NODELIST"));
    if let Some(nodes) = nodes.filter(|_| variable("SLURM_JOB_ID").is_some()) {
        let counts = variable("SLURM_TASKS_PER_NODE");
        let list = HostList::from_slurm(&nodes, counts.as_deref())
            // Counts of another step than the one that will run.
            .or_else(|_| HostList::from_slurm(&nodes, None));
        let list = list.map_err(Failure::usage)?;
        match counts {
            Some(_) => named.add_with_slots(&list),
            None => named.add_names(&list),
        }
        return Ok(named);
    }
    if let Some(file) = variable("PBS_NODEFILE") {
        named.add_with_slots(&host_list(&read_file(Path::new(&file))?, &file)?);
    } else if let Some(hosts) = variable("LSB_HOSTS") {
        named.add_with_slots(&host_list(&hosts.replace(' ', "\n"), "LSB_HOSTS")?);
    }
    Ok(named)
}

/// The hosts of a Slurm job that runs.
fn hosts_of_job(job: &str) -> Result<Named, String> {
    let text = squeue(&["--jobs", job, "--format=%N"])?;
    let nodes = text.trim();
    if nodes.is_empty() {
        return Err(format!("Slurm's job {job} has no hosts; does it run?"));
    }
    named_by_slurm(nodes)
}

fn named_by_slurm(nodes: &str) -> Result<Named, String> {
    let list = HostList::from_slurm(nodes, None).map_err(|error| error.to_string())?;
    let mut named = Named::default();
    named.add_names(&list);
    Ok(named)
}

/// The job with this comment, if it runs: where.
///
/// # Errors
/// One line when Slurm does not answer.
pub(crate) fn job_with_comment(comment: &str) -> Result<Option<JobHosts>, String> {
    let text = squeue(&["--me", "--states=RUNNING", "--format=%A %N %k"])?;
    let Some(line) = text.lines().find(|line| line.ends_with(comment)) else { return Ok(None) };
    let mut words = line.split_whitespace();
    let (Some(job), Some(nodes)) = (words.next(), words.next()) else { return Ok(None) };
    let names = named_by_slurm(nodes)?.0.into_iter().map(|(name, _)| name.parse::<HostName>());
    let names = names.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok(Some(JobHosts { names, slurm_job: Some(job.to_owned()), ..JobHosts::default() }))
}

fn squeue(words: &[&str]) -> Result<String, String> {
    let mut order = Order::new("squeue");
    order.arguments = ["--noheader"].iter().chain(words).map(Into::into).collect();
    let (exit, text) = answer(order, SLURM_LIMIT).map_err(|error| format!("squeue: {error}"))?;
    if exit.is_success() { Ok(text) } else { Err(format!("squeue {exit}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(text: &str, variables: &[(&str, &str)]) -> Result<Placement, Failure> {
        let words: Vec<_> = text.split_whitespace().map(Into::into).collect();
        let command = JobCommand::parse(&words).expect("a command that can be read");
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Placement::within(&command, &Reaching::default(), &variable)
    }

    fn told(text: &str, variables: &[(&str, &str)]) -> (String, Option<u32>, Option<u32>) {
        match placed(text, variables) {
            Ok(Placement::Hosts(hosts)) => {
                let names: Vec<&str> = hosts.names.iter().map(HostName::as_str).collect();
                (names.join(" "), hosts.slots_max, hosts.slots)
            }
            other => panic!("{text}: {:?}", other.ok()),
        }
    }

    const A: &str = "a.invalid b.invalid";

    #[test]
    fn the_launcher_says_which_hosts_and_slots() {
        let expected = |max, all| (A.to_owned(), max, all);
        assert_eq!(told("mpirun -H a.invalid:2,b.invalid:3 p", &[]), expected(Some(3), Some(5)));
        assert_eq!(
            told("mpirun --host a.invalid,b.invalid,a.invalid p", &[]),
            expected(Some(2), Some(3))
        );
        let parts = "mpirun -np 1 --host a.invalid p : -np 2 -H b.invalid:2 q";
        assert_eq!(told(parts, &[]), expected(Some(2), Some(3)));
        let text = "mpiexec.hydra -hosts a.invalid,b.invalid -ppn 4 -n 8 p";
        assert_eq!(told(text, &[]), expected(Some(4), Some(8)));
        let text = "mpirun --npernode 6 --host a.invalid:8,b.invalid:8 p";
        assert_eq!(told(text, &[]), expected(Some(6), Some(12)));
    }

    #[test]
    fn a_host_file_is_read_and_a_list_chooses_from_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("hosts");
        std::fs::write(&file, "# two\na.invalid slots=4\nme@b.invalid slots=2 max_slots=8\n")
            .unwrap();
        let file = file.display();
        let all = told(&format!("mpirun --hostfile {file} p"), &[]);
        assert_eq!(all, (A.to_owned(), Some(4), Some(6)));
        let chosen = told(&format!("mpirun --hostfile {file} -H b.invalid p"), &[]);
        assert_eq!(chosen.0, "b.invalid");
        assert!(placed("mpirun --hostfile /nowhere/hosts p", &[]).is_err());
    }

    #[test]
    fn an_allocation_says_it_to_launchers_that_are_told_nothing() {
        let slurm = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_NODELIST", "a.invalid,b.invalid"),
            ("SLURM_TASKS_PER_NODE", "2(x2)"),
        ];
        for launcher in ["mpirun", "mpiexec.hydra", "srun"] {
            let expected = (A.to_owned(), Some(2), Some(4));
            assert_eq!(told(&format!("{launcher} p"), &slurm), expected, "{launcher}");
        }
        assert_eq!(told("mpirun p", &[("LSB_HOSTS", "a.invalid a.invalid b.invalid")]).2, Some(3));
        assert!(matches!(placed("./p", &slurm), Ok(Placement::Here(None))));
    }

    #[test]
    fn without_hosts_it_is_this_one_and_srun_makes_an_allocation() {
        assert!(matches!(placed("mpirun p", &[]), Ok(Placement::Here(None))));
        assert!(matches!(placed("mpirun -H localhost:4 p", &[]), Ok(Placement::Here(Some(4)))));
        assert!(matches!(placed("srun -N4 p", &[]), Ok(Placement::Later)));
    }

    #[test]
    fn this_host_is_one_by_all_of_its_names() {
        let (names, max, _) = told("mpirun -H localhost:2,127.0.0.1:1,a.invalid:2 p", &[]);
        assert_eq!(names.split(' ').count(), 2, "{names}");
        assert_eq!(max, Some(3));
        assert!(!names.contains("localhost"), "other hosts know it by another name: {names}");
    }

    #[test]
    fn interfaces_that_are_not_there_are_refused() {
        let checked =
            |rule: &str| Reaching { interfaces: rule.into(), ..Reaching::default() }.check();
        assert_eq!((checked(""), checked("lo")), (Ok(()), Ok(())));
        let error = checked("zzz0").expect_err("there is none");
        assert!(error.contains("'zzz0'") && error.contains("there are lo"), "{error}");
    }
}
