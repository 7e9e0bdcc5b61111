//! Names the nodes of a circle, for an error that a person can act on.

use alloc::string::String;
use alloc::vec::Vec;

use super::statements::{Declared, NO_NODE};
use crate::limits::CYCLE_NAMED_MAX;

/// The circle that one runs into from `node` upwards, with the line of its first mention. Every
/// node above must have a parent; a way that ends is shown as far as it goes.
pub(super) fn above(declared: &Declared<'_>, node: u32) -> (u32, String) {
    let parent = |node: u32| declared.nodes[node as usize].parent;
    // After as many steps as there are nodes, one is inside the circle.
    let mut inside = node;
    for _ in 0..declared.nodes.len() {
        if parent(inside) == NO_NODE {
            break;
        }
        inside = parent(inside);
    }
    let mut upwards = Vec::from([inside]);
    let mut next = parent(inside);
    while next != NO_NODE && next != inside {
        upwards.push(next);
        next = parent(next);
    }
    let mut downwards: Vec<_> = upwards.into_iter().rev().collect();
    // Start where the reader of the file meets the circle first.
    let first = (0..downwards.len()).min_by_key(|at| downwards[*at]).unwrap_or(0);
    downwards.rotate_left(first);
    (declared.nodes[downwards[0] as usize].line, describe(declared, &downwards))
}

/// The circle that arises if `parent` lists `child`, if `child` is one of its ancestors.
pub(super) fn closed_by(declared: &Declared<'_>, parent: u32, child: u32) -> Option<String> {
    let mut upwards = Vec::from([parent]);
    let mut node = parent;
    while node != child {
        node = declared.nodes[node as usize].parent;
        if node == NO_NODE || upwards.len() >= declared.nodes.len() {
            return None;
        }
        upwards.push(node);
    }
    upwards.reverse();
    Some(describe(declared, &upwards))
}

/// `a:0 => b:0 => a:0`, with the middle of a long circle left out.
fn describe(declared: &Declared<'_>, downwards: &[u32]) -> String {
    let mut text = String::new();
    for (at, node) in downwards.iter().enumerate() {
        if at == CYCLE_NAMED_MAX {
            text.push_str("… => ");
            break;
        }
        text.push_str(&declared.name(*node));
        text.push_str(" => ");
    }
    text.push_str(&declared.name(downwards[0]));
    text
}
