//! Properties of every shape: text form, expansion, numbering, plans.

use proptest::prelude::*;
use sapwood_topology::{Error, Hosts, LogGp, NODES_MAX, Node, Role, Shape, Subtree, Topology};

/// Text of a valid shape of at most a few thousand nodes, of every family.
fn spec() -> impl Strategy<Value = String> {
    let levels = prop::collection::vec(1_u32..6, 1..5)
        .prop_map(|fan_outs| fan_outs.iter().map(u32::to_string).collect::<Vec<_>>().join("x"));
    let balanced = (1_u32..5, 1_u32..5).prop_map(|(f, d)| format!("b:{f}^{d}"));
    let knomial = (2_u32..6, 2_u32..300).prop_map(|(k, n)| format!("k:{k}@{n}"));
    let shape = prop_oneof![levels, balanced, knomial, generic()];
    (shape, prop::option::of(1_u32..4)).prop_map(|(shape, attach)| match attach {
        Some(per_leaf) => format!("{shape}+{per_leaf}"),
        None => shape,
    })
}

/// A generic shape whose levels list at most as many parents as exist: the last item of each
/// list is not zero, so that the next level has a node.
fn generic() -> impl Strategy<Value = String> {
    let level = (prop::collection::vec(0_u32..4, 0..3), 1_u32..4);
    (1_u32..5, prop::collection::vec(level, 0..4)).prop_map(|(first, levels)| {
        let mut text = format!("g:{first}");
        let mut width = first;
        for (mut fan_outs, last) in levels {
            fan_outs.truncate(width as usize - 1);
            fan_outs.push(last);
            let items: Vec<_> = fan_outs.iter().map(u32::to_string).collect();
            text.push(':');
            text.push_str(&items.join(","));
            width = fan_outs.iter().sum();
        }
        text
    })
}

fn hosts() -> impl Strategy<Value = Hosts> {
    prop::collection::vec("[a-d][0-9]?", 1..6).prop_map(|names| names.join(",").parse().unwrap())
}

/// Back-ends below a node, left to right, by walking the tree.
fn walk(topology: &Topology, node: Node<'_>, found: &mut Vec<u32>) {
    if node.role() == Role::BackEnd {
        found.push(node.rank());
    }
    for child in node.children() {
        walk(topology, topology.node(*child).unwrap(), found);
    }
}

proptest! {
    #[test]
    fn a_shape_is_what_its_text_says(spec in spec()) {
        let shape: Shape = spec.parse().unwrap();
        prop_assert_eq!(&shape.to_string().parse::<Shape>().unwrap(), &shape);
        let topology = Topology::from_shape(&shape, &Hosts::local());
        prop_assert_eq!(topology.node_count(), shape.node_count());
        prop_assert_eq!(topology.back_end_count(), shape.back_end_count());
        prop_assert_eq!(topology.depth(), shape.depth());
        prop_assert_eq!(topology.is_attaching(), shape.attach_per_leaf().is_some());
    }

    #[test]
    fn ranks_follow_the_rule(spec in spec(), hosts in hosts()) {
        let topology = Topology::from_shape(&spec.parse().unwrap(), &hosts);
        prop_assert_eq!(topology.root().rank(), topology.back_end_count());
        let mut found = Vec::new();
        walk(&topology, topology.root(), &mut found);
        prop_assert!(found.iter().copied().eq(topology.back_ends()));
        let inner: Vec<_> = topology
            .breadth_first()
            .into_iter()
            .filter(|rank| topology.node(*rank).unwrap().role() != Role::BackEnd)
            .collect();
        prop_assert!(inner.into_iter().eq(topology.back_end_count()..topology.node_count()));
        for node in topology.nodes() {
            for child in node.children() {
                prop_assert_eq!(topology.parent(*child).unwrap().rank(), node.rank());
            }
            prop_assert_eq!(topology.ancestors(node.rank()).count(), node.depth() as usize);
            let mut below = Vec::new();
            walk(&topology, node, &mut below);
            let range = topology.leaf_range(node.rank()).unwrap();
            prop_assert!(below.into_iter().eq(range.0..=range.1));
        }
    }

    #[test]
    fn counts_agree(spec in spec()) {
        let topology = Topology::from_shape(&spec.parse().unwrap(), &Hosts::local());
        let (levels, statistics) = (topology.count(), topology.statistics());
        prop_assert_eq!(levels.iter().map(|l| l.back_ends).sum::<u32>(), statistics.back_ends);
        let inner = levels.iter().map(|l| l.communication_processes).sum::<u32>();
        prop_assert_eq!(inner, statistics.communication_processes);
        let children = f64::from(statistics.nodes - 1);
        let parents = f64::from(inner + 1);
        prop_assert!((statistics.fan_out_mean - children / parents).abs() < 1e-9);
    }

    #[test]
    fn plans_travel_and_split(spec in spec(), hosts in hosts(), pick in any::<prop::sample::Index>()) {
        let topology = Topology::from_shape(&spec.parse().unwrap(), &hosts);
        let rank = pick.index(topology.node_count() as usize) as u32;
        let plan = topology.subtree(rank).unwrap();
        prop_assert_eq!(plan.back_end_ranges(), topology.back_end_ranges(rank));
        let bytes = postcard::to_allocvec(&plan).unwrap();
        prop_assert_eq!(&postcard::from_bytes::<Subtree>(&bytes).unwrap(), &plan);
        let json = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Subtree>(&json).unwrap(), &plan);
        let below: u32 = plan.child_plans().iter().map(Subtree::node_count).sum();
        prop_assert_eq!(below + 1, plan.node_count());
    }

    #[test]
    fn any_text_is_a_shape_or_an_error(text in any::<String>()) {
        check_text(&text)?;
    }

    #[test]
    fn text_like_a_shape_is_a_shape_or_an_error(text in "[bkg:x^@,+0-9]{0,16}") {
        check_text(&text)?;
    }

    #[test]
    fn any_bytes_are_a_plan_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(plan) = postcard::from_bytes::<Subtree>(&bytes) {
            use_plan(&plan);
        }
    }

    #[test]
    fn a_damaged_plan_is_a_plan_or_an_error(
        spec in spec(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let topology = Topology::from_shape(&spec.parse().unwrap(), &Hosts::local());
        let plan = topology.subtree(topology.root().rank()).unwrap();
        let mut bytes = postcard::to_allocvec(&plan).unwrap();
        *at.get_mut(&mut bytes) = byte;
        if let Ok(plan) = postcard::from_bytes::<Subtree>(&bytes) {
            use_plan(&plan);
        }
    }

    #[test]
    fn pictures_and_costs_exist_for_every_tree(spec in spec(), bytes in any::<u64>()) {
        let topology = Topology::from_shape(&spec.parse().unwrap(), &Hosts::local());
        prop_assert!(topology.draw().starts_with("front-end "));
        prop_assert!(topology.dot().starts_with("digraph tree"));
        let prediction = LogGp::LOCAL_SOCKETS.predict(&topology, bytes);
        prop_assert!(prediction.round_trip_us >= prediction.broadcast_us);
        prop_assert!(prediction.round_trip_us.is_finite() && prediction.waves_per_s > 0.0);
        let sum = prediction.broadcast_us + prediction.reduction_us;
        prop_assert!(prediction.round_trip_us <= sum * (1.0 + 1e-9));
    }
}

/// A plan that passed its checks answers every question.
fn use_plan(plan: &Subtree) {
    assert_eq!(plan.nodes().count(), plan.node_count() as usize);
    assert_eq!(plan.children().count(), plan.child_plans().len());
    let _ = (plan.role(), plan.host(), plan.back_end_ranges());
}

/// Reading never panics, keeps the limit, and an error is one line.
fn check_text(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<Shape>() {
        Ok(shape) => prop_assert!(shape.node_count() <= NODES_MAX),
        Err(error) => prop_assert!(error.to_string().chars().all(|c| !c.is_control())),
    }
    Ok(())
}

#[test]
fn the_largest_tree_is_numbered() {
    let shape: Shape = format!("k:2@{NODES_MAX}").parse().unwrap();
    let topology = Topology::from_shape(&shape, &Hosts::local());
    assert_eq!(topology.node_count(), NODES_MAX);
    assert_eq!(topology.depth(), 20);
    let too_large = format!("k:2@{}", NODES_MAX + 1).parse::<Shape>();
    assert!(matches!(too_large, Err(Error::TooManyNodes { .. })));
}
