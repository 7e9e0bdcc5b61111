//! The start of the tree that watches a job: where its processes run, what they are, and the hosts
//! that cannot be watched because theirs did not start.

use sapwood::{Launcher, Network, NetworkBuilder, Program, RankSet, Registry};
use sapwood_command_line::exit::{Failure, complain};
use sapwood_hosts::absence;
use sapwood_profile::register;

use super::Arguments;
use super::job::Job;
use super::leaf::LEAF;
use super::leaves::Leaves;
use super::placement::Placement;
use super::places::{NEVER_WATCHED, Places};

/// The tree that is to be opened.
pub(super) fn builder(
    job: &Job,
    base: &str,
    arguments: &Arguments,
) -> Result<NetworkBuilder, Failure> {
    let leaves = &job.leaves;
    let program = Program::new(sapwood::node_program()?)
        .argument(LEAF)
        .argument(base)
        .argument(leaves.per_host.to_string())
        .argument(job.shim.to_string_lossy());
    let program = job.adopt.iter().fold(program, |program, word| program.argument(word));
    let topology = leaves.topology().map_err(Failure::usage)?;
    let builder = Network::builder(topology)
        .back_end(program)
        .registry(sapwood_trace::register(register(Registry::built_in())));
    let Placement::Hosts(hosts) = &job.placement else { return Ok(builder) };
    let reaching = &arguments.reaching;
    let launcher = match (reaching.launcher, &hosts.slurm_job) {
        (Launcher::Automatic, Some(_)) => Launcher::Slurm,
        (Launcher::Automatic, None) => Launcher::Ssh,
        (named, _) => named,
    };
    let mut builder = builder
        .launcher(launcher)
        .connect_timeout(reaching.connect_timeout)
        .interfaces(&*reaching.interfaces)
        .allow_missing();
    if let Some(job) = hosts.slurm_job.as_ref().filter(|_| launcher == Launcher::Slurm) {
        builder = builder.slurm_job(&**job);
    }
    let words = reaching.remote_shell.clone().or_else(|| job.remote_shell());
    if let Some(words) = words.filter(|_| launcher == Launcher::Ssh) {
        builder = builder.remote_shell(words.split_whitespace());
    }
    Ok(builder)
}

/// Names the hosts whose leaf did not start.
pub(super) fn absent_leaves(
    network: &mut Network,
    leaves: &Leaves,
    known: &mut Places,
) -> Result<(), Failure> {
    if leaves.hosts().is_empty() {
        return Ok(());
    }
    let host_of = |leaf| leaves.host_name(leaf);
    let absence = absence::of_new_tree(network, leaves.count as usize, host_of);
    let absent: usize = absence.iter().map(|(ranks, _)| ranks.iter().count()).sum();
    for (ranks, reason) in &absence {
        ranks.iter().for_each(|leaf| known.lose(leaf, reason));
        // The first leaf of each host speaks for the others.
        let first: RankSet = ranks.iter().filter(|leaf| leaf % leaves.per_host == 0).collect();
        if let Some(line) = known.line(leaves, &first, NEVER_WATCHED, reason) {
            complain(line);
        }
    }
    if absent == leaves.count as usize {
        let reason = absence.first().map_or("", |(_, reason)| reason);
        return Err(Failure::own(&format!("no host can be watched: {reason}")));
    }
    Ok(())
}
