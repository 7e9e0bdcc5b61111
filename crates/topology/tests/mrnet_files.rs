//! Properties of topology files: what is written is read back, and nothing panics.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sapwood_topology::{Role, Topology};

/// A random tree as file text: node `i` has a parent among the nodes before it, statements are
/// in a random order.
fn file() -> impl Strategy<Value = (String, usize)> {
    let parents = prop::collection::vec((any::<prop::sample::Index>(), 0_u32..4), 0..60);
    (parents, any::<prop::sample::Index>()).prop_map(|(parents, turn)| {
        let name = |node: usize| match node {
            0 => String::from("front:0"),
            _ => format!("host-{}.x_y:{node}", parents[node - 1].1),
        };
        let mut depths = vec![0];
        let mut statements = vec![String::from("front:0 ;\n")];
        for (position, (parent, _)) in parents.iter().enumerate() {
            let mut parent = parent.index(position + 1);
            if depths[parent] >= 60 {
                parent = 0;
            }
            depths.push(depths[parent] + 1);
            statements.push(format!("{} => {} ;# {position}\n", name(parent), name(position + 1)));
        }
        let count = statements.len();
        statements.rotate_left(turn.index(count));
        (statements.concat(), count)
    })
}

proptest! {
    #[test]
    fn a_tree_is_read_back_as_it_was_written((text, count) in file()) {
        let topology = Topology::from_file_text(&text).unwrap();
        prop_assert_eq!(topology.node_count() as usize, count);
        let names: BTreeSet<_> = topology.nodes().map(|node| node.name()).collect();
        prop_assert_eq!(names.len(), count);
        let written = topology.to_file_text();
        prop_assert_eq!(Topology::from_file_text(&written).unwrap(), topology);
    }

    #[test]
    fn attach_mode_only_names_what_is_started((text, count) in file(), per_leaf in 1_u32..5) {
        let topology = Topology::from_file_text(&text).unwrap();
        let attached = topology.without_back_ends(per_leaf).unwrap();
        prop_assert_eq!(attached.started_count() as usize, count - 1);
        prop_assert_eq!(Topology::from_file_text(&attached.to_file_text()).unwrap(), topology);
        for back_end in attached.back_ends() {
            let parent = attached.parent(back_end).unwrap();
            prop_assert!(parent.role() != Role::BackEnd);
            prop_assert_eq!(parent.back_end_count(), per_leaf);
        }
    }

    #[test]
    fn any_text_is_a_tree_or_an_error(text in any::<String>()) {
        check_text(&text)?;
    }

    #[test]
    fn text_like_a_file_is_a_tree_or_an_error(
        words in prop::collection::vec(
            prop_oneof![
                4 => "[a-c]:[0-3]", 2 => Just(String::from("=>")), 2 => Just(String::from(";")),
                1 => Just(String::from("\n")), 1 => "[#a-z:é0-9=>;]{0,5}",
            ],
            0..40,
        ),
        space in prop_oneof![Just(""), Just(" ")],
    ) {
        check_text(&words.join(space))?;
    }
}

/// Reading never panics, a tree can be written again, and an error is one line.
fn check_text(text: &str) -> Result<(), TestCaseError> {
    match Topology::from_file_text(text) {
        Ok(topology) => {
            let written = topology.to_file_text();
            prop_assert_eq!(Topology::from_file_text(&written).unwrap(), topology);
        }
        Err(error) => {
            prop_assert!(error.to_string().chars().all(|c| !c.is_control()), "{error}");
        }
    }
    Ok(())
}
