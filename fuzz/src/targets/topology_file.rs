//! Any text as a topology file in MRNet's format.

use sapwood_topology::{Role, Topology};

use crate::Target;

/// Topology files.
pub const TARGET: Target = Target { name: "topology_file", run, repair: None };

/// Back-ends that attach to each leaf of a tree that was read.
const ATTACHING: u32 = 3;

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match Topology::from_file_text(&text) {
        Ok(topology) => {
            check_topology(&topology);
            if let Ok(grown) = topology.without_back_ends(ATTACHING) {
                check_topology(&grown);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What is true of every tree.
pub(super) fn check_topology(topology: &Topology) {
    let (front_end, count) = (topology.root().rank(), topology.node_count());
    assert_eq!(front_end, topology.back_end_count(), "back-ends come first");
    let order = topology.breadth_first();
    assert_eq!(order.len() as u32, count);
    assert_eq!(order.iter().collect::<std::collections::BTreeSet<_>>().len() as u32, count);
    for node in topology.nodes() {
        for &child in node.children() {
            assert_eq!(topology.parent(child).map(|parent| parent.rank()), Some(node.rank()));
        }
        if node.role() != Role::BackEnd {
            let below: u32 = topology
                .back_end_ranges(node.rank())
                .iter()
                .map(|(first, last)| last - first + 1)
                .sum();
            assert_eq!(below, node.back_end_count());
        }
    }
    let of_level = |level: &sapwood_topology::LevelCount| {
        level.front_ends + level.communication_processes + level.back_ends
    };
    let levels: u32 = topology.count().iter().map(of_level).sum();
    assert_eq!(levels, count);
    assert!(!topology.draw().is_empty() && topology.dot().contains('{'));
    let _ = topology.statistics();
    check_plans(topology);
    if !topology.is_attaching() {
        // What is written is read as an equal tree.
        let again = Topology::from_file_text(&topology.to_file_text());
        assert_eq!(again.as_ref(), Ok(topology));
    }
}

/// The plans of the children are the plan of the whole without its root.
fn check_plans(topology: &Topology) {
    let plan = topology.subtree(topology.root().rank()).expect("the root has a plan");
    assert_eq!(plan.node_count(), topology.node_count());
    let children = plan.child_plans();
    let below: u32 = children.iter().map(|child| child.node_count()).sum();
    assert_eq!(below + 1, plan.node_count());
    for child in children {
        assert_eq!(topology.subtree(child.rank()).as_ref(), Some(&child));
    }
    assert_eq!(topology.subtree(topology.node_count()), None);
}
