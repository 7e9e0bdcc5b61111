//! A tree of processes drawn in text: a line for each child, and what is below it after that.

use std::fmt::Write;

use sapwood::{NodeStatus, Role};

/// The most back-ends of one parent that each have a line of their own.
pub const BACK_ENDS_MAX: usize = 8;

/// What leads to a line of the drawing, and to the lines below it.
pub struct Branch {
    pub before: String,
    pub below: String,
}

impl Branch {
    /// The branch of a child of the process whose children stand after `indent`.
    pub fn new(indent: &str, is_last: bool) -> Self {
        let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        Self { before: format!("{indent}{branch}"), below: format!("{indent}{below}") }
    }
}

/// The children of one process, without the back-ends that are only counted.
pub struct Shown<'a> {
    children: Vec<&'a NodeStatus>,
    folded: usize,
}

impl<'a> Shown<'a> {
    /// All but the back-ends that `is_wanted` does not name, where there are more than
    /// `BACK_ENDS_MAX`.
    pub fn new(children: &[&'a NodeStatus], is_wanted: impl Fn(&NodeStatus) -> bool) -> Self {
        let is_back_end = |child: &NodeStatus| child.role == Role::BackEnd;
        let is_few = children.iter().filter(|child| is_back_end(child)).count() <= BACK_ENDS_MAX;
        let shown = children.iter().copied();
        let shown: Vec<_> =
            shown.filter(|child| is_few || !is_back_end(child) || is_wanted(child)).collect();
        Self { folded: children.len() - shown.len(), children: shown }
    }

    /// Draws each child by `draw`, and says behind `margin` columns how many are left out.
    pub fn draw(
        &self,
        indent: &str,
        margin: usize,
        text: &mut String,
        mut draw: impl FnMut(&'a NodeStatus, &Branch, &mut String),
    ) {
        for (position, child) in self.children.iter().enumerate() {
            let is_last = position + 1 == self.children.len() && self.folded == 0;
            draw(child, &Branch::new(indent, is_last), text);
        }
        if self.folded > 0 {
            let Branch { before, .. } = Branch::new(indent, true);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:>margin$}{before}… {} more back-ends", "", self.folded);
        }
    }
}
