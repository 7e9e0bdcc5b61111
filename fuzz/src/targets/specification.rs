//! Any text as a tree's shape, beside any text as a list of hosts.

use sapwood_topology::{Hosts, NODES_MAX, Shape, Topology};

use super::topology_file::check_topology;
use crate::Target;

/// Specifications of shapes, and hosts behind an `@` at the start of a second line.
pub const TARGET: Target = Target { name: "specification", run, repair: None };

/// Larger trees are not built: the text is what is tried.
const BUILT_NODES_MAX: u32 = 300;

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (spec, hosts) = text.split_once('\n').unwrap_or((&text, "localhost"));
    let hosts = match hosts.parse::<Hosts>() {
        Ok(hosts) => {
            check_hosts(&hosts);
            hosts
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Hosts::local()
        }
    };
    match spec.parse::<Shape>() {
        Ok(shape) => check_shape(&shape, &hosts),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_hosts(hosts: &Hosts) {
    assert!(!hosts.names().is_empty());
    let names: Vec<&str> = hosts.names().iter().map(|name| name.as_str()).collect();
    assert_eq!(names.join(",").parse::<Hosts>().as_ref(), Ok(hosts));
    let placements = hosts.place(40);
    assert_eq!(placements.len(), 40);
    let mut seen = std::collections::BTreeSet::new();
    for place in placements {
        let name = &hosts.names()[place.host as usize];
        assert!(seen.insert((name, place.index)), "two nodes have one name");
    }
}

fn check_shape(shape: &Shape, hosts: &Hosts) {
    assert!((1..=NODES_MAX).contains(&shape.node_count()));
    assert!(shape.back_end_count() <= shape.node_count());
    // What is read is written in one way, which is read as the same.
    assert_eq!(shape.to_string().parse::<Shape>().as_ref(), Ok(shape), "{shape}");
    if shape.node_count() > BUILT_NODES_MAX {
        return;
    }
    let topology = Topology::from_shape(shape, hosts);
    assert_eq!(topology.node_count(), shape.node_count(), "{shape}");
    assert_eq!(topology.back_end_count(), shape.back_end_count(), "{shape}");
    assert_eq!(topology.depth(), shape.depth(), "{shape}");
    check_topology(&topology);
    if shape.attach_per_leaf().is_none() {
        check_topology(&Topology::attach(shape, hosts));
    }
}
