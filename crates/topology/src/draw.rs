//! Pictures of a tree: a text drawing for people, Graphviz DOT for tools.
//!
//! The text drawing is bounded: neighbouring back-ends are one line, a node shows only its first
//! children, and lower levels are folded into their parents when there are too many lines.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::Rank;
use crate::tree::{Node, Role, Topology};

/// Most children that a text drawing shows of one node; a run of back-ends counts as one.
pub const DRAWN_CHILDREN_MAX: usize = 16;

/// Most lines of a text drawing. Levels that would go beyond it are folded, except the first.
pub const DRAWN_LINES_MAX: usize = 120;

impl Topology {
    /// Draws the tree as text, one line per node or run of back-ends, each ended by a newline.
    ///
    /// ```
    /// use sapwood_topology::{Hosts, Topology};
    ///
    /// let topology = Topology::from_shape(&"2x4".parse()?, &Hosts::local());
    /// assert_eq!(topology.draw(), "\
    /// front-end 8 localhost:0
    /// ├─ communication process 9 localhost:1
    /// │  └─ 4 back-ends 0-3 on localhost
    /// └─ communication process 10 localhost:2
    ///    └─ 4 back-ends 4-7 on localhost
    /// ");
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    pub fn draw(&self) -> String {
        let mut drawing = self.draw_levels(1);
        for levels in 2..=self.depth() {
            let deeper = self.draw_levels(levels);
            if deeper.lines().count() > DRAWN_LINES_MAX {
                break;
            }
            drawing = deeper;
        }
        drawing
    }

    /// Writes the tree as a Graphviz graph: `dot -Tsvg` draws it.
    ///
    /// ```
    /// use sapwood_topology::{Hosts, Topology};
    ///
    /// let topology = Topology::from_shape(&"2".parse()?, &Hosts::local());
    /// assert!(topology.dot().contains("n2 -> n0;"));
    /// # Ok::<(), sapwood_topology::Error>(())
    /// ```
    pub fn dot(&self) -> String {
        let mut dot = String::from("digraph tree {\n  node [fontname=\"sans-serif\"];\n");
        for node in self.nodes() {
            let look = match node.role() {
                Role::FrontEnd => "shape=doubleoctagon",
                Role::Comm => "shape=box",
                Role::BackEnd if node.is_attaching() => "shape=ellipse, style=dashed",
                Role::BackEnd => "shape=ellipse",
            };
            let (rank, name) = (node.rank(), node.name());
            // Host names hold no quote and no backslash, so a label needs no escapes. Writing to
            // a string cannot fail.
            let _ = writeln!(dot, "  n{rank} [label=\"{rank}\\n{name}\", {look}];");
        }
        for rank in self.breadth_first() {
            for child in self.children(rank) {
                let _ = writeln!(dot, "  n{rank} -> n{child};");
            }
        }
        dot.push_str("}\n");
        dot
    }

    /// Draws the front-end and the given number of levels below it.
    fn draw_levels(&self, levels: u32) -> String {
        let mut text = describe(&self.root());
        text.push('\n');
        self.draw_children(self.root(), levels, &mut String::new(), &mut text);
        text
    }

    /// Draws what is below a node. It calls itself at most as deep as a tree may be.
    fn draw_children(&self, node: Node<'_>, levels: u32, indent: &mut String, text: &mut String) {
        let items = items(self, node);
        let shown =
            if items.len() > DRAWN_CHILDREN_MAX { DRAWN_CHILDREN_MAX - 1 } else { items.len() };
        for (position, item) in items[..shown].iter().enumerate() {
            let last = position + 1 == items.len();
            let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            text.push_str(indent);
            text.push_str(branch);
            match item {
                DrawItem::BackEnds(run) => text.push_str(&describe_run(run)),
                DrawItem::Inner(child) if levels > 1 => text.push_str(&describe(child)),
                DrawItem::Inner(child) => text.push_str(&describe_folded(self, child)),
            }
            text.push('\n');
            if let (DrawItem::Inner(child), true) = (item, levels > 1) {
                let outer = indent.len();
                indent.push_str(below);
                self.draw_children(*child, levels - 1, indent, text);
                indent.truncate(outer);
            }
        }
        if shown < items.len() {
            let rest = describe_rest(self, &items[shown..]);
            let _ = writeln!(text, "{indent}└─ {rest}");
        }
    }
}

/// What takes one line below a node.
enum DrawItem<'a> {
    Inner(Node<'a>),
    BackEnds(Vec<Node<'a>>),
}

/// Gathers neighbouring back-ends with consecutive ranks.
fn items<'a>(topology: &'a Topology, node: Node<'a>) -> Vec<DrawItem<'a>> {
    let mut items: Vec<DrawItem<'a>> = Vec::new();
    for child in node.children().iter().filter_map(|child| topology.node(*child)) {
        match (child.role(), items.last_mut()) {
            (Role::BackEnd, Some(DrawItem::BackEnds(run))) => run.push(child),
            (Role::BackEnd, _) => items.push(DrawItem::BackEnds(Vec::from([child]))),
            _ => items.push(DrawItem::Inner(child)),
        }
    }
    items
}

fn describe(node: &Node<'_>) -> String {
    format!("{} {} {}", node.role(), node.rank(), node.name())
}

fn describe_folded(topology: &Topology, node: &Node<'_>) -> String {
    format!("{} with {}", describe(node), describe_range(topology.leaf_range(node.rank())))
}

fn describe_run(run: &[Node<'_>]) -> String {
    let (first, last) = (&run[0], &run[run.len() - 1]);
    if first.is_attaching() {
        return format!("accepts {}", describe_range(Some((first.rank(), last.rank()))));
    }
    if run.len() == 1 {
        return describe(first);
    }
    let mut hosts: Vec<_> = run.iter().map(Node::host_position).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let range = describe_range(Some((first.rank(), last.rank())));
    match hosts.len() {
        1 => format!("{range} on {}", first.host()),
        count => format!("{range} on {count} hosts"),
    }
}

fn describe_range(range: Option<(Rank, Rank)>) -> String {
    match range {
        None => String::from("no back-ends"),
        Some((first, last)) if first == last => format!("back-end {first}"),
        Some((first, last)) => format!("{} back-ends {first}-{last}", last - first + 1),
    }
}

/// The children that are not drawn, in one line.
fn describe_rest(topology: &Topology, rest: &[DrawItem<'_>]) -> String {
    let inner = rest.iter().filter(|item| matches!(item, DrawItem::Inner(_))).count();
    let range = |item: &DrawItem<'_>| match item {
        DrawItem::Inner(node) => topology.leaf_range(node.rank()),
        DrawItem::BackEnds(run) => Some((run[0].rank(), run[run.len() - 1].rank())),
    };
    let first = rest.first().and_then(range).map(|(first, _)| first);
    let last = rest.last().and_then(range).map(|(_, last)| last);
    let processes = if inner == 1 { "process" } else { "processes" };
    let range = describe_range(first.zip(last));
    format!("… {inner} more communication {processes}, {range}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hosts;

    fn drawn(spec: &str, hosts: &str) -> String {
        Topology::from_shape(&spec.parse().unwrap(), &hosts.parse::<Hosts>().unwrap()).draw()
    }

    #[test]
    fn a_wide_node_shows_its_first_children() {
        let drawing = drawn("20x2", "localhost");
        assert_eq!(drawing.lines().count(), 1 + 15 * 2 + 1);
        assert!(drawing.ends_with("└─ … 5 more communication processes, 10 back-ends 30-39\n"));
    }

    #[test]
    fn a_deep_tree_is_folded_where_it_grows_too_long() {
        let drawing = drawn("8^4", "localhost");
        assert!(drawing.lines().count() <= DRAWN_LINES_MAX);
        assert!(
            drawing
                .contains("│  ├─ communication process 4105 localhost:9 with 64 back-ends 0-63\n")
        );
    }

    #[test]
    fn mixed_children_keep_their_order() {
        // Placed in breadth-first order: the front-end a:0, then b:0, a:1, b:1, then the rest.
        let lines = "\
front-end 4 a:0
├─ communication process 5 b:0
│  └─ 2 back-ends 0-1 on 2 hosts
├─ back-end 2 a:1
└─ communication process 6 b:1
   └─ back-end 3 a:3
";
        assert_eq!(drawn("g:3:2,0,1", "a b"), lines);
    }

    #[test]
    fn attaching_back_ends_are_said_to_be_accepted() {
        assert!(drawn("2+8", "a").contains("└─ accepts 8 back-ends 8-15\n"));
    }

    #[test]
    fn the_graph_has_every_edge_once() {
        let topology = Topology::from_shape(&"3^3".parse().unwrap(), &Hosts::local());
        let edges = topology.dot().matches(" -> ").count();
        assert_eq!(edges, topology.node_count() as usize - 1);
    }
}
