//! What can be wrong with a shape, a topology file, a plan or a cost parameter.
//!
//! Every text that an error quotes came from outside. It is cut to a bounded excerpt when the
//! error is made, and printed with control characters escaped, so a message is always one line.

use alloc::string::String;
use core::fmt;

use crate::limits::{DEPTH_MAX, EXCERPT_BYTES_MAX, FAN_OUT_MAX, HOST_NAME_BYTES_MAX, NODES_MAX};

/// Why a tree could not be made. Each message is one line: what, where, what to do.
///
/// ```
/// use sapwood_topology::Shape;
///
/// let error = "4x0x2".parse::<Shape>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "topology \"4x0x2\": fan-out \"0\" is zero: every level needs at least one child"
/// );
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The specification is empty. Give a shape such as `8` or `4^3`.
    SpecEmpty,
    /// A part of the specification is not valid at its position. Correct that part.
    SpecPart {
        /// The whole specification.
        spec: String,
        /// The part that does not fit; empty where something is missing.
        part: String,
        /// What would fit there.
        expected: &'static str,
    },
    /// A fan-out or a count is zero. Give at least one child to every level.
    SpecZero {
        /// The whole specification.
        spec: String,
        /// The zero as it was written.
        part: String,
    },
    /// A number in the specification is beyond 32 bits. Give a smaller tree.
    SpecNumber {
        /// The whole specification.
        spec: String,
        /// The number as it was written.
        part: String,
    },
    /// One node would have more children than [`FAN_OUT_MAX`]. Add a level between them.
    FanOutTooLarge {
        /// The shape or the node.
        what: String,
        /// The fan-out that was asked for.
        fan_out: u64,
    },
    /// The tree would have more nodes than [`NODES_MAX`]. Give a smaller tree.
    TooManyNodes {
        /// The shape, or what else asked for the tree.
        what: String,
    },
    /// The tree would have more levels than [`DEPTH_MAX`]. Give a larger fan-out.
    TooDeep {
        /// The shape, or what else asked for the tree.
        what: String,
    },
    /// A level of a generic shape lists more parents than the level above has nodes. Shorten
    /// the list.
    LevelTooLong {
        /// The whole specification.
        spec: String,
        /// The level, counted from 1.
        level: u32,
        /// Parents that the level lists.
        listed: u64,
        /// Nodes that exist there.
        available: u32,
    },
    /// Leaves that already accept attaching back-ends were given more. Do it once.
    AlreadyAttaching,
    /// A host name breaks the rule: a letter or digit first, then letters, digits, dash, dot or
    /// underscore. Correct the name.
    HostName {
        /// The name.
        name: String,
    },
    /// A list of hosts is empty. Name at least one host.
    NoHosts,
    /// A shape is to be laid over hosts, one for each back-end, and has more or fewer. Name as many
    /// hosts as it has back-ends.
    BackEndHosts {
        /// The shape.
        shape: String,
        /// Its back-ends.
        back_ends: u32,
        /// The hosts that there are.
        hosts: usize,
    },
    /// The topology file holds no node, only blanks and comments. Write at least `host:0 ;`.
    FileEmpty,
    /// A statement of the topology file does not end. Add ` ;` after the named text.
    FileMissingSemicolon {
        /// Line of the last text before the missing semicolon, from 1.
        line: u32,
        /// That text.
        after: String,
    },
    /// Something stands where the file format has something else. Correct that text.
    FileUnexpected {
        /// Line, from 1.
        line: u32,
        /// The text.
        text: String,
        /// What would fit there.
        expected: &'static str,
    },
    /// A node's name in the topology file is not `host:index` with a valid host. Correct it.
    FileNodeName {
        /// Line, from 1.
        line: u32,
        /// The name.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A node is listed twice as a child. Remove one of the two.
    FileDuplicateChild {
        /// Line of the second listing, from 1.
        line: u32,
        /// The child.
        child: String,
        /// The parent that listed it first.
        parent: String,
        /// Line of the first listing, from 1.
        first_line: u32,
    },
    /// A node is listed as its own child. Remove it from its list.
    FileSelfChild {
        /// Line, from 1.
        line: u32,
        /// The node.
        node: String,
    },
    /// More than one node has no parent. Make all but one of them a child.
    FileTwoRoots {
        /// Line of the second root, from 1.
        line: u32,
        /// The first root.
        first: String,
        /// The second root.
        second: String,
    },
    /// Every node has a parent, so there is no front-end. Break the named circle at its root.
    FileNoRoot {
        /// Line of the first node of the circle, from 1.
        line: u32,
        /// The circle, parent to child, first node repeated at the end.
        cycle: String,
    },
    /// Some nodes are their own ancestors, apart from the root. Break the named circle.
    FileCycle {
        /// Line of the first node of the circle, from 1.
        line: u32,
        /// The circle, parent to child, first node repeated at the end.
        cycle: String,
    },
    /// A plan for a subtree, received from a peer, contradicts itself. The peer is faulty or is
    /// another version.
    Plan {
        /// Which rule of a plan is broken.
        problem: &'static str,
    },
    /// A nodeset cannot be read, or has too many names. Correct the text at the place.
    NodeSet {
        /// The text, or the part of it that is wrong.
        text: String,
        /// The place in the whole text: a character, from 1.
        column: u32,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A group of nodes is unknown. Correct its name, or the files that define groups.
    Group {
        /// The group, with its source if that was named.
        group: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A line of a host file, or a variable that lists hosts, cannot be read. Correct it.
    HostFile {
        /// Which file or variable.
        source: String,
        /// The line, from 1.
        line: u32,
        /// The line's text.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A parameter of the cost model is negative or not finite. Give a time of zero or more.
    CostParameter {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpecEmpty => {
                write!(f, "topology is empty: give a shape such as \"8\", \"4^3\" or \"8x8x4\"")
            }
            Self::SpecPart { spec, part, expected } if part.is_empty() => {
                write!(f, "topology {spec:?}: something is missing: expected {expected}")
            }
            Self::SpecPart { spec, part, expected } => {
                write!(f, "topology {spec:?}: cannot read {part:?}: expected {expected}")
            }
            Self::SpecZero { spec, part } => write!(
                f,
                "topology {spec:?}: fan-out {part:?} is zero: every level needs at least one child"
            ),
            Self::SpecNumber { spec, part } => write!(
                f,
                "topology {spec:?}: number {part:?} is too large: a tree has at most {NODES_MAX} \
                 nodes"
            ),
            Self::FanOutTooLarge { what, fan_out } => write!(
                f,
                "topology {what:?}: fan-out {fan_out} is above {FAN_OUT_MAX}: add a level"
            ),
            Self::TooManyNodes { what } => {
                write!(f, "topology {what:?}: more than {NODES_MAX} nodes: give a smaller tree")
            }
            Self::TooDeep { what } => {
                write!(f, "topology {what:?}: more than {DEPTH_MAX} levels: give a larger fan-out")
            }
            Self::LevelTooLong { spec, level, listed, available } => write!(
                f,
                "topology {spec:?}: level {level} lists {listed} parents but only {available} \
                 exist: shorten the list"
            ),
            Self::AlreadyAttaching => {
                write!(f, "the leaves already accept attaching back-ends: say it only once")
            }
            Self::HostName { name } => write!(
                f,
                "host name {name:?}: a name starts with a letter or digit, goes on with letters, \
                 digits, '-', '.' or '_', and has at most {HOST_NAME_BYTES_MAX} bytes"
            ),
            Self::BackEndHosts { shape, back_ends, hosts } => write!(
                f,
                "topology {shape:?} has {back_ends} back-ends to be started, but there are {hosts} \
                 hosts: name one for each"
            ),
            Self::NoHosts => write!(f, "the host list is empty: name at least one host"),
            Self::Plan { problem } => {
                write!(f, "subtree plan: {problem}: the sender is faulty or of another version")
            }
            Self::NodeSet { text, column, problem } => {
                write!(f, "nodeset {text:?}, character {column}: {problem}")
            }
            Self::Group { group, problem } => {
                write!(f, "group {:?}: {problem}", alloc::format!("@{group}"))
            }
            Self::HostFile { source, line, text, problem } => {
                write!(f, "{source} line {line}: {text:?}: {problem}")
            }
            Self::CostParameter { name, value } => {
                write!(f, "cost parameter {name} is {value}: give a finite time of zero or more")
            }
            _ => self.fmt_file(f),
        }
    }
}

impl Error {
    fn fmt_file(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileMissingSemicolon { line, after } => {
                write!(f, "topology file line {line}: missing \";\" after {after:?}")
            }
            Self::FileUnexpected { line, text, expected } => {
                write!(f, "topology file line {line}: unexpected {text:?}: expected {expected}")
            }
            Self::FileNodeName { line, text, problem } => {
                write!(f, "topology file line {line}: {text:?} is no node: {problem}")
            }
            Self::FileDuplicateChild { line, child, parent, first_line } => write!(
                f,
                "topology file line {line}: {child:?} already is a child of {parent:?} \
                 (line {first_line}): list it once"
            ),
            Self::FileSelfChild { line, node } => {
                write!(f, "topology file line {line}: {node:?} is listed as its own child")
            }
            Self::FileTwoRoots { line, first, second } => write!(
                f,
                "topology file line {line}: two roots, {first:?} and {second:?}: \
                 exactly one node may have no parent"
            ),
            Self::FileNoRoot { line, cycle } => write!(
                f,
                "topology file line {line}: no root, every node has a parent: break {cycle:?}"
            ),
            Self::FileCycle { line, cycle } => {
                write!(f, "topology file line {line}: cycle {cycle:?}: break it")
            }
            _ => write!(f, "topology file has no node: write at least \"host:0 ;\""),
        }
    }
}

/// Cuts outside text to what an error may quote.
pub(crate) fn excerpt(text: &str) -> String {
    if text.len() <= EXCERPT_BYTES_MAX {
        return String::from(text);
    }
    let mut end = EXCERPT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut cut = String::from(&text[..end]);
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let long = "é".repeat(100);
        let cut = excerpt(&long);
        assert_eq!(cut.chars().count(), EXCERPT_BYTES_MAX / 2 + 1);
    }

    #[test]
    fn a_message_stays_on_one_line_whatever_it_quotes() {
        let error = Error::FileUnexpected { line: 3, text: "a\nb\u{1b}[2J".into(), expected: "x" };
        assert!(error.to_string().chars().all(|c| !c.is_control()));
    }
}
