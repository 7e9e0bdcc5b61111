//! Topology files in MRNet's format, read and written.
//!
//! ```text
//! # a comment ends with its line
//! front.cluster:0 =>
//!     node-1:0
//!     node-2:0 ;
//! node-1:0 => node-1:1 node-1:2 ;
//! node-2:0 => node-2:1 ;
//! ```
//!
//! A statement is `parent => child child ... ;` and may span lines; `node ;` names a node without
//! children. Statements come in any order, and one parent may have several: its children add up.
//! Exactly one node has no parent and becomes the front-end; nodes without children become
//! back-ends. Blanks around `=>` and `;` may be left out.
//!
//! This module owns the text and its errors. `words` cuts the text, `statements` gathers the
//! children that each node lists, `circle` finds the path round a cycle.

mod circle;
mod statements;
mod words;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::error::Error;
use crate::hosts::Placement;
use crate::limits::{DEPTH_MAX, FAN_OUT_MAX};
use crate::ranks::{Layout, number};
use crate::tree::{Role, Topology};
use statements::{Declared, NO_NODE};

/// Columns after which the writer starts a new line.
const COLUMNS_MAX: usize = 80;

impl Topology {
    /// Reads a topology file in MRNet's format.
    ///
    /// ```
    /// use sapwood_topology::Topology;
    ///
    /// let topology = Topology::from_file_text("a:0 => b:0 b:1 ; # two back-ends\n")?;
    /// assert_eq!(topology.node(1).unwrap().name(), "b:1");
    ///
    /// let error = Topology::from_file_text("a:0 => b:0\n").unwrap_err();
    /// assert_eq!(error.to_string(), "topology file line 1: missing \";\" after \"b:0\"");
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// One of the `File…` errors with its line, or a limit of the tree.
    pub fn from_file_text(text: &str) -> Result<Self, Error> {
        let declared = statements::read(text)?;
        let root = declared.root()?;
        let layout = lay_out(&declared, root)?;
        if layout.parents.len() < declared.nodes.len() {
            return Err(declared.cycle_apart_from(root));
        }
        Ok(number(layout))
    }

    /// Writes the tree as a topology file in MRNet's format. Reading the text back gives an
    /// equal tree. Back-ends that attach by themselves are not named, as in MRNet.
    pub fn to_file_text(&self) -> String {
        let mut text = String::new();
        let named = |rank: &u32| !self.node(*rank).is_some_and(|node| node.is_attaching());
        for rank in self.breadth_first() {
            let Some(node) = self.node(rank) else { continue };
            let children: Vec<_> = node.children().iter().copied().filter(named).collect();
            if children.is_empty() {
                if node.role() == Role::FrontEnd {
                    text.push_str(&node.name());
                    text.push_str(" ;\n");
                }
                continue;
            }
            let mut line = node.name();
            line.push_str(" =>");
            for child in children.iter().filter_map(|child| self.node(*child)) {
                let name = child.name();
                if line.len() + 1 + name.len() > COLUMNS_MAX {
                    text.push_str(&line);
                    text.push('\n');
                    line = String::from("   ");
                }
                // Writing to a string cannot fail.
                let _ = write!(line, " {name}");
            }
            text.push_str(&line);
            text.push_str(" ;\n");
        }
        text
    }
}

/// Orders the nodes that the root reaches breadth first, which is the form that ranks need.
/// Nodes that it does not reach are left out for the caller to notice.
fn lay_out(declared: &Declared<'_>, root: u32) -> Result<Layout, Error> {
    let mut order = vec![root];
    let mut depths = vec![0_u32];
    let mut parents = vec![0_u32];
    let mut position = 0;
    while position < order.len() {
        let node = &declared.nodes[order[position] as usize];
        let depth = depths[position] + 1;
        if node.children.len() > FAN_OUT_MAX as usize {
            let what = declared.name(order[position]);
            return Err(Error::FanOutTooLarge { what, fan_out: node.children.len() as u64 });
        }
        if depth > DEPTH_MAX && !node.children.is_empty() {
            return Err(Error::TooDeep { what: declared.name(order[position]) });
        }
        order.extend_from_slice(&node.children);
        depths.resize(order.len(), depth);
        parents.resize(order.len(), position as u32);
        position += 1;
    }
    let place = |node: &u32| {
        let node = &declared.nodes[*node as usize];
        Placement { host: node.host, index: node.index }
    };
    let placements = order.iter().map(place).collect();
    Ok(Layout { parents, placements, hosts: declared.hosts(), attaching: false })
}

impl Declared<'_> {
    /// The one node without a parent.
    fn root(&self) -> Result<u32, Error> {
        let mut roots = (0..self.nodes.len() as u32)
            .filter(|node| self.nodes[*node as usize].parent == NO_NODE);
        match (roots.next(), roots.next()) {
            (Some(root), None) => Ok(root),
            (Some(first), Some(second)) => Err(Error::FileTwoRoots {
                line: self.nodes[second as usize].line,
                first: self.name(first),
                second: self.name(second),
            }),
            (None, _) if self.nodes.is_empty() => Err(Error::FileEmpty),
            (None, _) => {
                let (line, cycle) = circle::above(self, 0);
                Err(Error::FileNoRoot { line, cycle })
            }
        }
    }

    /// The error for a tree whose root does not reach every node. As every node but the root has
    /// one parent, those that are left over lead up into a circle.
    fn cycle_apart_from(&self, root: u32) -> Error {
        let mut reached = vec![false; self.nodes.len()];
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            reached[node as usize] = true;
            stack.extend_from_slice(&self.nodes[node as usize].children);
        }
        let lost = reached.iter().position(|reached| !reached).unwrap_or(0);
        let (line, cycle) = circle::above(self, lost as u32);
        Error::FileCycle { line, cycle }
    }
}

#[cfg(test)]
mod tests;
