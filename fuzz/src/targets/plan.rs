//! Any bytes as the plan that a parent tells: refused, or a whole subtree that is passed on.

use sapwood_packet::RankSet;
use sapwood_runtime::{Plan, TreeOptions};
use sapwood_topology::{DEPTH_MAX, Hosts, Topology};

use crate::source::Source;
use crate::{Target, memory};

/// Plans.
pub const TARGET: Target = Target { name: "plan", run, repair: None };

/// What reading a plan may allocate, in bytes: lists of guessed length, then by the byte.
const BYTES_MAX: usize = 4 << 20;
const BYTES_PER_BYTE_MAX: usize = 256;

const SPECS: [&str; 8] = ["1", "3", "2^2", "1x3x2", "k:2@8", "g:2:1,3", "2+2", "4"];

fn run(input: &[u8]) {
    let mut source = Source::new(input);
    if source.flag() {
        return try_bytes(source.rest());
    }
    let Some(plan) = real_plan(&mut source) else { return };
    check(&plan);
    let mut bytes = plan.to_bytes();
    while !source.is_empty() {
        let at = source.below(bytes.len());
        match source.below(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, source.byte()),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = source.byte()),
        }
        try_bytes(&bytes);
    }
}

/// The plan of some process of some tree.
fn real_plan(source: &mut Source<'_>) -> Option<Plan> {
    let shape = source.choose(&SPECS).parse().expect("the list has only shapes");
    let hosts = if source.flag() { Hosts::local() } else { "a,b,c".parse().ok()? };
    let topology = Topology::from_shape(&shape, &hosts);
    let subtree = topology.subtree(source.below(topology.node_count() as usize) as u32)?;
    let options = source.typed::<TreeOptions>()?;
    Some(Plan { options, subtree })
}

fn try_bytes(bytes: &[u8]) {
    let bytes_max = BYTES_MAX + BYTES_PER_BYTE_MAX * bytes.len();
    match memory::within(bytes_max, || Plan::from_bytes(bytes)) {
        Ok(plan) => check(&plan),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A plan is written and read as itself, and its children together are all that lies below.
fn check(plan: &Plan) {
    let again = Plan::from_bytes(&plan.to_bytes()).expect("what was read can be read again");
    assert_eq!((&again.options, &again.subtree), (&plan.options, &plan.subtree));
    assert!(plan.height() <= DEPTH_MAX);
    let ranks: RankSet = plan.subtree.nodes().map(|node| node.rank).collect();
    assert_eq!(ranks.len(), u64::from(plan.subtree.node_count()), "every node has its own rank");
    let mut below = plan.attach_ranks();
    for child in plan.children() {
        below.union_with(child.back_ends.as_ref());
        if !child.plan.is_empty() {
            let told = Plan::from_bytes(&child.plan).expect("a child can read its plan");
            assert_eq!(told.subtree.rank(), child.rank);
            assert_eq!(told.options, plan.options);
        }
    }
    if plan.subtree.node_count() > 1 {
        let all: RankSet = plan.subtree.back_ends().collect();
        assert_eq!(below, all, "every back-end is below one child");
    }
}
