//! Stories of a person who writes topology files by hand.

use alloc::string::{String, ToString};

use super::*;
use crate::{Hosts, Rank};

fn error(text: &str) -> String {
    Topology::from_file_text(text).unwrap_err().to_string()
}

fn names(topology: &Topology, ranks: &[Rank]) -> Vec<String> {
    ranks.iter().map(|rank| topology.node(*rank).unwrap().name()).collect()
}

#[test]
fn lists_may_span_lines_and_carry_comments() {
    let text = "# top\nfe:0 => # both\n  a:0\n\tb:0 ; a:0=>a:1 a:2;\r\nb:0 =>\n\n b:1;";
    let topology = Topology::from_file_text(text).unwrap();
    assert_eq!(names(&topology, &[0, 1, 2, 3, 4, 5]), ["a:1", "a:2", "b:1", "fe:0", "a:0", "b:0"]);
}

#[test]
fn statements_come_in_any_order_and_a_parent_may_have_several() {
    let forward = Topology::from_file_text("r:0 => a:0 b:0 ; a:0 => c:0 d:0 ;").unwrap();
    let shuffled =
        Topology::from_file_text("d:0 ; a:0 => c:0 ; r:0 => a:0 ; a:0 => d:0 ; r:0 => b:0 ;");
    assert_eq!(shuffled.unwrap(), forward);
}

#[test]
fn a_front_end_alone_is_a_tree_without_back_ends() {
    let topology = Topology::from_file_text("host:0 ;\n").unwrap();
    assert_eq!((topology.node_count(), topology.back_end_count()), (1, 0));
    assert_eq!(topology.to_file_text(), "host:0 ;\n");
    let attached = topology.without_back_ends(3).unwrap();
    assert_eq!(attached.back_end_count(), 3);
    assert_eq!(attached.to_file_text(), "host:0 ;\n");
}

#[test]
fn a_missing_semicolon_is_named_after_the_text_it_should_follow() {
    assert_eq!(
        error("r:0 => a:0 b:0\n\na:0 => c:0 ;\n"),
        "topology file line 1: missing \";\" after \"b:0\""
    );
    assert_eq!(
        error("r:0 => a:0 ;\na:0 => b:0 # end\n"),
        "topology file line 2: missing \";\" after \"b:0\""
    );
    assert_eq!(error("r:0\na:0 => b:0 ;"), "topology file line 1: missing \";\" after \"r:0\"");
    assert_eq!(error("r:0 =>"), "topology file line 1: missing \";\" after \"=>\"");
}

#[test]
fn two_roots_are_both_named() {
    assert_eq!(
        error("a:0 => b:0 ;\nc:0 => d:0 ;"),
        "topology file line 2: two roots, \"a:0\" and \"c:0\": exactly one node may have no parent"
    );
}

#[test]
fn no_root_names_the_circle() {
    assert_eq!(
        error("a:0 => b:0 ;\nb:0 => c:0 ;\nc:0 => a:0 ;"),
        "topology file line 1: no root, every node has a parent: \
         break \"a:0 => b:0 => c:0 => a:0\""
    );
}

#[test]
fn a_cycle_is_named_whether_it_hangs_on_the_tree_or_not() {
    assert_eq!(
        error("r:0 => x:0 ;\na:0 => b:0 ;\nb:0 => a:0 y:0 ;"),
        "topology file line 2: cycle \"a:0 => b:0 => a:0\": break it"
    );
    assert_eq!(
        error("r:0 => a:0 ;\na:0 => b:0 ;\nb:0 =>\n a:0 ;"),
        "topology file line 4: cycle \"a:0 => b:0 => a:0\": break it"
    );
}

#[test]
fn a_long_cycle_is_cut() {
    let mut text = String::from("r:0 ;");
    for node in 0..1000 {
        let _ = write!(text, "c:{node} => c:{} ;", (node + 1) % 1000);
    }
    let message = error(&text);
    assert!(message.contains("c:0 => c:1 =>") && message.len() < 200, "{message}");
}

#[test]
fn a_child_listed_twice_names_its_first_parent() {
    assert_eq!(
        error("r:0 => a:0 b:0 ;\nb:0 => c:0 ;\na:0 => c:0 ;"),
        "topology file line 3: \"c:0\" already is a child of \"b:0\" (line 2): list it once"
    );
    assert_eq!(
        error("r:0 => a:0\n a:0 ;"),
        "topology file line 2: \"a:0\" already is a child of \"r:0\" (line 1): list it once"
    );
    assert_eq!(error("r:0 => r:0 ;"), "topology file line 1: \"r:0\" is listed as its own child");
}

#[test]
fn bad_names_say_what_is_wrong() {
    assert_eq!(
        error("r => a:0 ;"),
        "topology file line 1: \"r\" is no node: a node is written host:index"
    );
    for name in [
        "-a:0",
        "a[1]:0",
        "a:-1",
        "a:",
        ":0",
        "a:b",
        "a b:0",
        "a:4294967296",
        "a:4294967295",
        "ä:0",
        "a=:0",
    ] {
        assert!(error(&alloc::format!("r:0 =>\n{name} ;")).starts_with("topology file line 2: "));
    }
}

#[test]
fn stray_signs_are_quoted() {
    assert_eq!(
        error("r:0 => ;"),
        "topology file line 1: unexpected \";\": expected a child, host:index"
    );
    assert_eq!(error(";"), "topology file line 1: unexpected \";\": expected a node, host:index");
    assert_eq!(
        error("a:0 b:0 ;"),
        "topology file line 1: unexpected \"b:0\": expected \"=>\" or \";\""
    );
    assert_eq!(
        error("a:0 => b:0 => c:0 ;"),
        "topology file line 1: unexpected \"=>\": expected a child or \";\""
    );
}

#[test]
fn a_file_without_a_node_is_empty() {
    for text in ["", " \n", "# only a comment", "\u{feff}\n"] {
        assert_eq!(error(text), "topology file has no node: write at least \"host:0 ;\"");
    }
}

#[test]
fn a_chain_deeper_than_the_limit_is_refused() {
    let mut text = String::new();
    for node in 0..65 {
        let _ = write!(text, "c:{node} => c:{} ;", node + 1);
    }
    assert!(matches!(Topology::from_file_text(&text), Err(Error::TooDeep { .. })));
}

#[test]
fn the_writer_breaks_long_lists_and_the_reader_takes_them_back() {
    let hosts: Hosts = "alpha.cluster beta.cluster".parse().unwrap();
    let topology = Topology::from_shape(&"8x9".parse().unwrap(), &hosts);
    let text = topology.to_file_text();
    assert!(text.lines().all(|line| line.len() <= COLUMNS_MAX + 2));
    assert_eq!(Topology::from_file_text(&text).unwrap(), topology);
}
