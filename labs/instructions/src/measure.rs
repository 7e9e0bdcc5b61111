//! One tree under the profiler, and what the profiler's file says of its steps.
//!
//! The program runs itself again as valgrind's client: [`work`] is what it does there. The
//! inclusive cost of a step is the sum over all calls of its function.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::links::Links;
use crate::tree::{BACK_ENDS, Kind, Result, Tree};

/// The argument with which this program is the client.
pub const WORK: &str = "work";

/// Waves that are counted, of each kind.
const WAVES: u64 = 500;
/// Waves before them, after which buffers have their sizes.
const WARM_UP: u64 = 50;

/// A step of a wave: its name, its function in `tree`, and how often a wave of both kinds calls it.
const STEPS: [(&str, &str, u64); 8] = [
    ("front-end sends", "send", 2),
    ("communication process passes down to 4", "pass_down", 2),
    ("back-end receives", "receive", 2 * BACK_ENDS as u64),
    ("back-end sends", "answer", 2 * BACK_ENDS as u64),
    ("communication process folds 4", "fold", 1),
    ("communication process passes up 4", "relay", 1),
    ("front-end receives", "deliver", 1),
    ("front-end receives 4", "deliver_relayed", 1),
];

/// Instructions by step.
pub type Counts = BTreeMap<String, u64>;
/// Allocations by step, averages.
pub type Allocations = BTreeMap<String, f64>;

/// What the client does. It prints its allocations, by the steps' functions.
pub fn work(links: Links) -> Result<()> {
    let mut tree = Tree::start(links)?;
    for kind in [Kind::Sum, Kind::Relay] {
        let stream = tree.open(kind)?;
        for _ in 0..WARM_UP {
            tree.warm_up(stream, kind)?;
        }
        for _ in 0..WAVES {
            tree.wave(stream, kind)?;
        }
    }
    println!("{}", serde_json::to_string(&tree.tally.averages())?);
    Ok(())
}

/// Counts the instructions and allocations of each step over such links; `folder` is for the
/// profiler's file.
pub fn count(links: Links, folder: &Path) -> Result<(Counts, Allocations)> {
    let out = folder.join(format!("{}.callgrind", links.name()));
    let ended = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--error-exitcode=0"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .args([WORK, links.name()])
        .output()
        .map_err(|error| format!("cannot run valgrind: {error}; install Debian's valgrind"))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(
            format!("over {} the tree ended with {}: {said}", links.name(), ended.status).into()
        );
    }
    let made: Allocations = serde_json::from_slice(&ended.stdout)?;
    let text = fs::read_to_string(&out)?;
    let inclusive = inclusive(&text);
    let (mut counts, mut allocations) = (Counts::new(), Allocations::new());
    for (name, function, per_wave) in STEPS {
        let called = format!("sapwood_instructions::tree::{function}");
        let &(calls, cost) = inclusive
            .get(called.as_str())
            .ok_or_else(|| format!("{} has no call of {called}", out.display()))?;
        if calls != WAVES * per_wave {
            return Err(format!("{calls} calls of {called}, not {}", WAVES * per_wave).into());
        }
        counts.insert(name.to_owned(), cost.div_ceil(calls));
        let made = made.get(function).ok_or_else(|| format!("no allocations of {function}"))?;
        allocations.insert(name.to_owned(), *made);
    }
    Ok((counts, allocations))
}

/// Calls and inclusive cost of each called function, in a file of callgrind's. A name follows its
/// number where it first occurs: `cfn=(12) name`, later `cfn=(12)`. A call is two lines,
/// `calls=COUNT TARGET` and `POSITION COST`, after that of the called function.
fn inclusive(text: &str) -> BTreeMap<&str, (u64, u64)> {
    let mut names = BTreeMap::new();
    let mut costs: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut called = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(calls) = line.strip_prefix("calls=") {
            let calls = calls.split(' ').next().and_then(|calls| calls.parse::<u64>().ok());
            let cost = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
            let all = costs.entry(called).or_default();
            all.0 += calls.unwrap_or(0);
            all.1 += cost.unwrap_or(0);
        } else if let Some((is_callee, function)) = function_of(line) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            if is_callee {
                called = names.get(number).copied().unwrap_or("");
            }
        }
    }
    costs
}

fn function_of(line: &str) -> Option<(bool, &str)> {
    let callee = line.strip_prefix("cfn=").map(|function| (true, function));
    callee.or_else(|| Some((false, line.strip_prefix("fn=")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_calls_are_added_up_by_the_function_that_is_called() {
        let text = "fn=(1) main\n16 2\ncfn=(2) tree::send\ncalls=3 40\n17 300\n\
                    cfn=(3) other\ncalls=1 50\n18 7\nfn=(4) late\ncfn=(2)\ncalls=1 40\n* 100\n";
        let found = inclusive(text);
        assert_eq!(found["tree::send"], (4, 400));
        assert_eq!(found["other"], (1, 7));
    }
}
