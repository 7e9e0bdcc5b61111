//! Call stacks of ranks: what a reader beside them tells, how that travels, and what becomes of it.
//!
//! A reader answers each [`Wish`] with one line of [`Sample`]s. [`MergedStacks`] folds these into
//! the prefix tree of `sapwood-filter`, which the tree of processes merges on its way up; what is
//! known beside the stacks (which ranks have none, why, and for how long each rank was stopped)
//! travels in branches of the same tree, whose names no function can have. At the end it becomes
//! [`Stacks`], a section of the round's record, which [`text`] and [`folded`] print.
//!
//! How stacks are read is `tools/stacks`' concern.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use sapwood_filter::{FilterError, PrefixTree};
use sapwood_packet::{IntoValues, Rank, RankSet, Values, ValuesRef};
use serde::{Deserialize, Serialize};

use crate::record::{Loss, StackFrame, Stacks, Stopped};
use crate::text::printable;

/// The filter that merges stacks on their way up.
pub const STACKS_FILTER: &str = "prefix-tree";
/// Nodes of a merged tree, the default of the filter.
const NODES_MAX: u32 = 4096;
/// A longer stack is told by its outermost and innermost frames.
pub const FRAMES_MAX: usize = 200;
/// Stands for the frames that are left out.
const LEFT_OUT: &str = "...";
/// The branches beside the stacks.
const MISSING: &str = "\0missing";
const STOPPED: &str = "\0stopped";
const NOTE: &str = "\0note";

/// What a reader is asked for, in one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    /// Ranks and their processes.
    pub processes: Vec<(Rank, i32)>,
    /// Whether the stacks of all threads are wanted, not only of the first.
    #[serde(default)]
    pub all_threads: bool,
}

/// What a reader found at one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The rank.
    pub rank: Rank,
    /// Its process.
    pub pid: i32,
    /// For how long its threads were stopped, the longest of them.
    pub stopped_ns: u64,
    /// Stacks, the outermost frame first.
    pub stacks: Vec<Vec<String>>,
    /// Why there is no stack; empty if there is.
    #[serde(default)]
    pub missing: String,
    /// What else is to be said, such as that the rank was stopped already; empty if nothing.
    #[serde(default)]
    pub note: String,
}

/// Stacks of many ranks as one tree.
#[derive(Clone, Debug)]
pub struct MergedStacks {
    tree: PrefixTree,
}

impl Default for MergedStacks {
    fn default() -> Self {
        Self { tree: PrefixTree::new(NODES_MAX).expect("a bound that is allowed") }
    }
}

impl MergedStacks {
    /// Takes in what was found at one rank.
    pub fn add(&mut self, sample: &Sample) {
        let rank = sample.rank;
        for stack in &sample.stacks {
            self.tree.add(shortened(stack), rank);
        }
        if !sample.stacks.is_empty() {
            let stopped = two_figures(sample.stopped_ns.div_ceil(1000)).to_string();
            self.tree.add([STOPPED, &stopped], rank);
        }
        for (branch, text) in [(MISSING, &sample.missing), (NOTE, &sample.note)] {
            if !text.is_empty() {
                self.tree.add([branch, text.as_str()], rank);
            }
        }
    }

    /// No stack of any of these ranks, for one reason.
    pub fn miss(&mut self, ranks: impl IntoIterator<Item = Rank>, reason: &str) {
        ranks.into_iter().for_each(|rank| self.tree.add([MISSING, reason], rank));
    }

    /// The tree as values of a packet for [`STACKS_FILTER`].
    #[must_use]
    pub fn into_values(self) -> Values {
        self.tree.into_values()
    }

    /// Reads such values.
    ///
    /// # Errors
    /// [`FilterError`] when they are of something else.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        Ok(Self { tree: PrefixTree::from_values(values)? })
    }

    /// The section of a record, for a time of the program.
    #[must_use]
    pub fn section(&self, elapsed: Duration) -> Stacks {
        let mut stacks = Stacks { elapsed_s: elapsed.as_secs_f64(), ..Stacks::default() };
        let mut beside = String::new();
        // The open frames, the outermost first.
        let mut path: Vec<StackFrame> = Vec::new();
        for node in self.tree.nodes() {
            let name = String::from_utf8_lossy(node.name).into_owned();
            if node.depth == 0 {
                close(&mut path, 0, &mut stacks.roots);
                beside = if name.starts_with('\0') { name.clone() } else { String::new() };
            }
            let ranks = node.ranks.to_string();
            match (beside.as_str(), node.depth) {
                ("", depth) => {
                    close(&mut path, depth, &mut stacks.roots);
                    let children = Vec::new();
                    path.push(StackFrame { name, ranks, count: node.stacks, children });
                }
                (_, 0) => {}
                (MISSING, _) => stacks.missing.push(Loss { ranks, reason: name }),
                (NOTE, _) => stacks.notes.push(Loss { ranks, reason: name }),
                (_, _) => {
                    let at_most_us = name.parse().unwrap_or(0);
                    stacks.stopped.push(Stopped { ranks, at_most_us });
                }
            }
        }
        close(&mut path, 0, &mut stacks.roots);
        stacks.stopped.sort_by_key(|stopped| stopped.at_most_us);
        if !self.tree.is_complete() {
            let reason = format!("frames beyond {NODES_MAX} are left out, the innermost first");
            stacks.notes.push(Loss { ranks: self.tree.ranks().to_string(), reason });
        }
        stacks
    }
}

/// Closes the open frames from this depth on. Of siblings, the one with most ranks comes first.
fn close(path: &mut Vec<StackFrame>, depth: usize, roots: &mut Vec<StackFrame>) {
    while path.len() > depth {
        let Some(frame) = path.pop() else { return };
        let siblings = path.last_mut().map_or(&mut *roots, |parent| &mut parent.children);
        siblings.push(frame);
        siblings.sort_by_key(|frame| std::cmp::Reverse(size(&frame.ranks)));
    }
}

/// How many ranks a set that is written has.
fn size(ranks: &str) -> u64 {
    ranks.parse::<RankSet>().map_or(0, |ranks| ranks.len())
}

/// At most [`FRAMES_MAX`] frames.
fn shortened(stack: &[String]) -> Vec<&str> {
    let all = || stack.iter().map(String::as_str);
    if stack.len() <= FRAMES_MAX {
        return all().collect();
    }
    let half = FRAMES_MAX / 2;
    let innermost = all().skip(stack.len() - (FRAMES_MAX - half - 1));
    all().take(half).chain([LEFT_OUT]).chain(innermost).collect()
}

/// The next number with two figures that is not smaller, so that ranks have few different ones.
fn two_figures(number: u64) -> u64 {
    let mut step = 1;
    while number / step >= 100 {
        step *= 10;
    }
    number.div_ceil(step) * step
}

/// Stacks for people: one tree, frames that the same ranks have below one another, the widest
/// branch first.
#[must_use]
pub fn text(stacks: &Stacks) -> String {
    let mut text = String::new();
    branches(&mut text, &stacks.roots, "", 0);
    for loss in &stacks.missing {
        let _ = writeln!(text, "no stack of {}: {}", told(&loss.ranks), printable(&loss.reason));
    }
    for note in &stacks.notes {
        let _ = writeln!(text, "{}: {}", told(&note.ranks), printable(&note.reason));
    }
    for stopped in &stacks.stopped {
        let time = crate::quantity::time(stopped.at_most_us as f64 * 1e3);
        let _ = writeln!(text, "stopped for {time} at most: {}", told(&stopped.ranks));
    }
    text
}

/// Frames side by side, each with what is below it.
fn branches(text: &mut String, frames: &[StackFrame], above: &str, indentation: usize) {
    for frame in frames {
        let mut indentation = indentation;
        if frame.ranks != above || frames.len() > 1 {
            let _ = writeln!(text, "{:indentation$}{}", "", told(&frame.ranks));
            indentation += 2;
        }
        let _ = writeln!(text, "{:indentation$}{}", "", printable(&frame.name));
        branches(text, &frame.children, &frame.ranks, indentation);
    }
}

fn told(ranks: &str) -> String {
    match size(ranks) {
        1 => format!("rank {ranks}"),
        count => format!("ranks {ranks} ({count})"),
    }
}

/// Where ranks are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankStack {
    /// These ranks.
    pub ranks: String,
    /// Functions, with file and line if these are known, the innermost first: from the MPI call, if
    /// it is inside one, to `main`; without the outermost ones if there are more than eight.
    pub frames: Vec<String>,
}

/// Frames of a [`RankStack`], at most.
const INNERMOST_MAX: usize = 8;

/// Where some ranks are: one entry for each place.
#[must_use]
pub fn of_ranks(stacks: &Stacks, wanted: &RankSet) -> Vec<RankStack> {
    let (mut found, mut path) = (Vec::new(), Vec::new());
    stacks.roots.iter().for_each(|root| follow(&mut found, &mut path, root, wanted));
    found
}

fn follow<'a>(
    found: &mut Vec<RankStack>,
    path: &mut Vec<&'a str>,
    frame: &'a StackFrame,
    wanted: &RankSet,
) {
    let mut ranks = frame.ranks.parse::<RankSet>().unwrap_or_default();
    ranks.intersect_with(wanted.as_ref());
    if ranks.is_empty() {
        return;
    }
    path.push(&frame.name);
    for child in &frame.children {
        follow(found, path, child, wanted);
        ranks.subtract(child.ranks.parse::<RankSet>().unwrap_or_default().as_ref());
    }
    if !ranks.is_empty() {
        // What an MPI library does inside of a call says nothing of the program.
        let is_mpi = |name: &&str| name.starts_with("MPI_") || name.starts_with("PMPI_");
        let length = path.iter().position(is_mpi).map_or(path.len(), |at| at + 1);
        // Nor what starts a program.
        let is_main = |name: &&str| name.split(' ').next() == Some("main");
        let first = path[..length].iter().position(is_main).unwrap_or(0);
        let innermost = path[first..length].iter().rev().take(INNERMOST_MAX);
        let frames = innermost.map(|name| printable(name)).collect();
        found.push(RankStack { ranks: ranks.to_string(), frames });
    }
    path.pop();
}

/// Stacks for tools that draw flame graphs: a line for each place where stacks end, its frames
/// divided by semicolons, and how many end there.
#[must_use]
pub fn folded(stacks: &Stacks) -> String {
    let mut lines = BTreeMap::new();
    let mut path = Vec::new();
    stacks.roots.iter().for_each(|root| fold(&mut lines, &mut path, root));
    lines.iter().fold(String::new(), |mut text, (line, count)| {
        let _ = writeln!(text, "{line} {count}");
        text
    })
}

fn fold(lines: &mut BTreeMap<String, u64>, path: &mut Vec<String>, frame: &StackFrame) {
    path.push(printable(&frame.name).replace(';', ":"));
    let below: u64 = frame.children.iter().map(|child| child.count).sum();
    if frame.count > below {
        *lines.entry(path.join(";")).or_default() += frame.count - below;
    }
    frame.children.iter().for_each(|child| fold(lines, path, child));
    path.pop();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rank: Rank, stack: &str) -> Sample {
        let stacks = vec![stack.split(' ').map(str::to_owned).collect()];
        Sample { rank, stopped_ns: 123_456, stacks, ..Sample::default() }
    }

    fn merged() -> MergedStacks {
        let mut merged = MergedStacks::default();
        for rank in [0, 2, 3] {
            merged.add(&sample(rank, "main MPI_Barrier poll"));
        }
        merged.add(&sample(1, "main compute"));
        merged.add(&Sample { rank: 4, missing: "it has ended".into(), ..Sample::default() });
        merged
    }

    #[test]
    fn stacks_travel_with_who_has_none_and_for_how_long_each_was_stopped() {
        let values = merged().into_values();
        let read = MergedStacks::from_values(values.as_ref()).expect("its own values");
        let section = read.section(Duration::from_secs(2));
        assert_eq!(section.missing, [Loss { ranks: "4".into(), reason: "it has ended".into() }]);
        assert_eq!(section.stopped, [Stopped { ranks: "0-3".into(), at_most_us: 130 }]);
        assert_eq!(section.roots.len(), 1);
        let [wide, narrow] = &section.roots[0].children[..] else { panic!("two branches") };
        assert_eq!(
            (wide.name.as_str(), wide.ranks.as_str(), wide.count),
            ("MPI_Barrier", "0,2-3", 3)
        );
        assert_eq!((narrow.name.as_str(), narrow.ranks.as_str()), ("compute", "1"));
    }

    #[test]
    fn frames_of_the_same_ranks_stand_below_one_another() {
        let text = text(&merged().section(Duration::ZERO));
        assert_eq!(
            text,
            "ranks 0-3 (4)\n  main\n  ranks 0,2-3 (3)\n    MPI_Barrier\n    poll\n  rank 1\n    \
             compute\nno stack of rank 4: it has ended\nstopped for 130 us at most: ranks 0-3 (4)\n"
        );
    }

    #[test]
    fn the_places_of_some_ranks_are_told_from_within() {
        let mut merged = merged();
        merged.add(&sample(5, "_start main"));
        let told = |ranks: &str| {
            let wanted = ranks.parse().expect("a rank set");
            let found = of_ranks(&merged.section(Duration::ZERO), &wanted);
            let line = |one: &RankStack| format!("{} {}", one.ranks, one.frames.join(" < "));
            found.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(told("1,3-4"), ["3 MPI_Barrier < main", "1 compute < main"]);
        assert_eq!(told("5"), ["5 main"]);
        assert_eq!(told("4"), [""; 0]);
    }

    #[test]
    fn folded_stacks_count_where_they_end() {
        let mut merged = merged();
        merged.add(&sample(1, "main odd;name"));
        merged.add(&sample(5, "main"));
        assert_eq!(
            folded(&merged.section(Duration::ZERO)),
            "main 1\nmain;MPI_Barrier;poll 3\nmain;compute 1\nmain;odd:name 1\n"
        );
    }

    #[test]
    fn a_long_stack_keeps_its_ends_and_its_record_can_be_read() {
        let frames: Vec<String> = (0..1000).map(|frame| format!("f{frame}")).collect();
        let mut merged = MergedStacks::default();
        merged.add(&sample(0, &frames.join(" ")));
        let section = merged.section(Duration::ZERO);
        let lines = folded(&section);
        assert!(lines.starts_with("f0;f1;") && lines.ends_with(";f998;f999 1\n"), "{lines}");
        assert_eq!(lines.matches(';').count() + 1, FRAMES_MAX);
        let record = crate::RoundRecord { stacks: Some(section), ..Default::default() };
        let record = crate::RoundRecord { schema: crate::record::ROUND_SCHEMA.into(), ..record };
        assert_eq!(crate::RoundRecord::parse(&record.line()), Ok(record));
    }

    #[test]
    fn numbers_are_rounded_up_to_two_figures() {
        for (number, rounded) in [(0, 0), (7, 7), (99, 99), (100, 100), (101, 110), (12345, 13000)]
        {
            assert_eq!(two_figures(number), rounded);
        }
    }
}
