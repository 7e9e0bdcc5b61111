//! The tree of a running network as text: one line for each process, neighbouring back-ends that
//! are alike in one.

use std::fmt::Write as _;
use std::time::Duration;

use super::branches::Branch;
use sapwood::{Health, NodeStatus, RankSet, Role, Status};
use sapwood_command_line::colour::ColourOption;
use sapwood_hosts::absence::{by_cause, nameless, nodes};

/// Most communication processes that are drawn below one process; those that are full come last
/// and are folded.
const INNER_MAX: usize = 24;

/// What a plan calls the machine of a process that needs no host.
const LOCAL: &str = "localhost";

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Coloured,
}

impl Paint {
    /// What standard output is to have.
    pub(super) fn for_output(option: ColourOption) -> Self {
        if option.is_wanted_on(&std::io::stdout()) { Self::Coloured } else { Self::Plain }
    }

    /// A health's word in its colour.
    fn health(self, health: Health) -> String {
        let colour = match health {
            Health::Full => 32,
            Health::Degraded => 33,
            Health::Partial => 35,
            Health::Lost => 31,
        };
        self.in_colour(colour, health.name())
    }

    pub(super) fn in_colour(self, colour: u8, text: &str) -> String {
        match self {
            Self::Plain => text.to_string(),
            Self::Coloured => format!("\x1b[{colour}m{text}\x1b[0m"),
        }
    }
}

/// A line below a process.
enum Item<'a> {
    Inner(&'a NodeStatus),
    BackEnds(Vec<&'a NodeStatus>),
    Folded(Vec<&'a NodeStatus>),
}

/// The whole picture.
pub(super) fn draw(name: &str, status: &Status, paint: Paint) -> String {
    let (there, missing) = status.back_ends();
    let total = there.len() + missing.len();
    let mut text = format!(
        "{name}: {}, {} of {total} back-ends answered in {}\n",
        paint.health(status.root().health),
        there.len(),
        time(status.took)
    );
    let root = status.root();
    let _ = writeln!(text, "{}", describe(root, paint));
    let tree = Tree { nodes: status.nodes.iter().map(|node| (node.rank, node)).collect(), paint };
    tree.draw_children(root, "", &mut text);
    for (ranks, cause) in by_cause(&status.missing, nameless) {
        let missing: Vec<&NodeStatus> =
            ranks.iter().filter_map(|rank| tree.nodes.get(&rank).copied()).collect();
        let on = planned_hosts(&missing).map_or_else(String::new, |hosts| format!(" on {hosts}"));
        let _ = writeln!(text, "missing {ranks}{on}: {cause}");
    }
    text
}

/// The hosts of these processes by their names in the plan; nothing where it has no other name for
/// them than that of this machine.
fn planned_hosts(processes: &[&NodeStatus]) -> Option<String> {
    let planned = processes.iter().filter_map(|node| node.planned_host.as_deref());
    let names: Vec<&str> = planned.filter(|name| *name != LOCAL).collect();
    let all: RankSet = (0..).zip(&names).map(|(place, _)| place).collect();
    (!names.is_empty()).then(|| nodes(&names, &all).to_string())
}

/// The hosts of processes on one machine: by their names in the plan, and behind these by the name
/// that the machine gives itself, if that is another one.
fn hosts(processes: &[&NodeStatus]) -> String {
    let own = processes.first().and_then(|node| node.record.as_ref()).map(|record| &*record.host);
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    match (planned_hosts(processes), own) {
        (Some(planned), Some(own)) if short(&planned) != short(own) => format!("{planned} ({own})"),
        (Some(planned), _) => planned,
        (None, own) => own.unwrap_or_default().to_owned(),
    }
}

struct Tree<'a> {
    nodes: std::collections::BTreeMap<u32, &'a NodeStatus>,
    paint: Paint,
}

impl<'a> Tree<'a> {
    fn draw_children(&self, node: &NodeStatus, indent: &str, text: &mut String) {
        let items = self.items(node);
        for (position, item) in items.iter().enumerate() {
            let Branch { before, below } = Branch::new(indent, position + 1 == items.len());
            let line = match item {
                Item::Inner(child) => describe(child, self.paint),
                Item::BackEnds(run) => describe_run(run, self.paint),
                Item::Folded(rest) => format!("… {} more, all full", rest.len()),
            };
            let _ = writeln!(text, "{before}{line}");
            if let Item::Inner(child) = item {
                self.draw_children(child, &below, text);
            }
        }
    }

    /// The children, with back-ends that are alike gathered, and too many full ones folded.
    fn items(&self, node: &NodeStatus) -> Vec<Item<'a>> {
        let mut items: Vec<Item<'a>> = Vec::new();
        let mut folded = Vec::new();
        let mut inner = 0;
        for child in node.children.iter().filter_map(|rank| self.nodes.get(rank)) {
            if child.role != Role::BackEnd {
                inner += 1;
                match inner > INNER_MAX && child.health == Health::Full {
                    true => folded.push(*child),
                    false => items.push(Item::Inner(child)),
                }
                continue;
            }
            match items.last_mut() {
                Some(Item::BackEnds(run)) if is_alike(run[0], child) => run.push(child),
                _ => items.push(Item::BackEnds(vec![child])),
            }
        }
        if !folded.is_empty() {
            items.push(Item::Folded(folded));
        }
        items
    }
}

/// Whether two back-ends share a line.
fn is_alike(one: &NodeStatus, other: &NodeStatus) -> bool {
    let host = |node: &NodeStatus| node.record.as_ref().map(|record| record.host.clone());
    one.health == other.health && one.why == other.why && host(one) == host(other)
}

/// One process.
fn describe(node: &NodeStatus, paint: Paint) -> String {
    let mut text = format!("{} {}  {}", node.role, node.rank, paint.health(node.health));
    let Some(record) = &node.record else {
        return text + &lost(&[node]);
    };
    let _ = write!(text, "  {} pid {}", hosts(&[node]), record.pid);
    let _ = write!(text, "  {}/{} back-ends", record.connected, record.expected);
    if let Some(round_trip) = node.round_trip() {
        let _ = write!(text, "  rtt {}", time(round_trip));
    }
    if let Some(waves) = node.per_second(|record| record.waves) {
        let bytes = node.per_second(|record| record.bytes).unwrap_or_default();
        let _ = write!(text, "  {} waves/s {}/s", count(waves), size(bytes));
    }
    let _ = write!(text, "  queue {} %", record.fill.div_ceil(10));
    if record.kept_bytes > 0 {
        let _ = write!(text, "  unacknowledged {}", size(record.kept_bytes as f64));
    }
    if record.dropped > 0 {
        let _ = write!(text, "  dropped {}", record.dropped);
    }
    if !node.why.is_empty() {
        let _ = write!(text, "  ({})", node.why.join("; "));
    }
    text
}

/// What is said of processes that have not answered, for one reason.
fn lost(processes: &[&NodeStatus]) -> String {
    let hosts = planned_hosts(processes).map_or_else(String::new, |hosts| format!("  {hosts}"));
    format!("{hosts}: {}", processes[0].why.join("; "))
}

/// Back-ends that are alike.
fn describe_run(run: &[&NodeStatus], paint: Paint) -> String {
    let [only] = run else {
        let ranks: RankSet = run.iter().map(|node| node.rank).collect();
        let mut text = format!("{} back-ends {ranks}  {}", run.len(), paint.health(run[0].health));
        match &run[0].record {
            None => text += &lost(run),
            Some(_) => {
                let _ = write!(text, "  {}", hosts(run));
                let trips = run.iter().filter_map(|node| node.round_trip());
                if let Some((least, most)) = trips.clone().min().zip(trips.max()) {
                    let _ = write!(text, "  rtt {} to {}", time(least), time(most));
                }
                let waves = run.iter().filter_map(|node| node.per_second(|record| record.waves));
                if let Some(most) = waves.reduce(f64::max) {
                    let _ = write!(text, "  up to {} waves/s", count(most));
                }
                let why = &run[0].why;
                if !why.is_empty() {
                    let _ = write!(text, "  ({})", why.join("; "));
                }
            }
        }
        return text;
    };
    describe(only, paint).replace("  1/1 back-ends", "")
}

/// A time, as people read it.
pub(super) fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1000.0 => format!("{micros:.0} us"),
        ..1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}

fn size(bytes: f64) -> String {
    match bytes {
        ..1024.0 => format!("{bytes:.0} B"),
        ..1_048_576.0 => format!("{:.1} KiB", bytes / 1024.0),
        _ => format!("{:.1} MiB", bytes / 1_048_576.0),
    }
}

fn count(number: f64) -> String {
    if number < 10.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}
