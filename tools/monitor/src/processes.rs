//! The processes of the tree as a section of a record: the parent of each, and the ranks that a
//! leaf serves.

use sapwood::{RankSet, Topology};
use sapwood_report::record::Process;
use sapwood_topology::Role;

/// A larger tree is not told process by process.
const PROCESSES_MAX: u32 = 4096;

/// All processes of a tree as it was started, in the order of their numbers; none of a tree that is
/// too large. `ranks` gives the MPI ranks of a leaf, `is_lost` whether it has gone.
pub(crate) fn section(
    topology: &Topology,
    ranks: impl Fn(u32) -> RankSet,
    is_lost: impl Fn(u32) -> bool,
) -> Vec<Process> {
    if topology.node_count() > PROCESSES_MAX {
        return Vec::new();
    }
    let told = topology.nodes().map(|node| {
        let is_leaf = node.role() == Role::BackEnd;
        let role = match node.role() {
            Role::FrontEnd => "front-end",
            Role::BackEnd => "leaf",
            _ => "communication",
        };
        Process {
            id: node.rank(),
            parent: node.parent(),
            role: role.to_owned(),
            host: node.host().to_string(),
            ranks: if is_leaf { ranks(node.rank()).to_string() } else { String::new() },
            is_lost: is_leaf && is_lost(node.rank()),
            ..Process::default()
        }
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use sapwood::Hosts;

    use super::*;

    #[test]
    fn leaves_have_ranks_and_every_process_but_one_a_parent() {
        let shape = "2x2".parse().expect("a topology");
        let topology = Topology::from_shape(&shape, &Hosts::local());
        let ranks = |leaf| RankSet::range(2 * leaf, 2 * leaf + 1);
        let processes = section(&topology, ranks, |leaf| leaf == 3);
        let of = |role: &str| processes.iter().filter(|one| one.role == role).count();
        assert_eq!((of("front-end"), of("communication"), of("leaf")), (1, 2, 4));
        assert_eq!(processes.iter().filter(|one| one.parent.is_none()).count(), 1);
        let lost: Vec<_> = processes.iter().filter(|one| one.is_lost).collect();
        assert_eq!((lost.len(), lost[0].ranks.as_str()), (1, "6-7"));
    }
}
