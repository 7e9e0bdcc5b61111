//! One tree under the profiler, and what the profiler's files say of its steps.
//!
//! The program runs itself again as valgrind's client: [`work`] is what it does there. The profiler
//! writes a file for each wave, and of each step the least wave counts: acknowledgements fall due
//! by the clock, 10 ms after a packet, and so within more waves on a slower or busier machine. What
//! only some waves do, such as growing a buffer, is not counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::links::Links;
use crate::tree::{BACK_ENDS, Kind, Result, Tree};

/// The argument with which this program is the client.
pub const WORK: &str = "work";

/// Waves that are counted, of each kind.
const WAVES: u64 = 100;
/// Waves before them, after which buffers have their sizes.
const WARM_UP: u64 = 50;

/// Before each call of it the profiler writes a file and begins to count again.
const MARK: &str = "sapwood_instructions::tree::begin_wave";

/// A step of a wave.
struct Step {
    name: &'static str,
    /// Its function in `tree`.
    function: &'static str,
    /// How often a wave calls it.
    calls: u64,
    /// How many kinds of waves call it.
    kinds: u64,
}

const STEPS: [Step; 8] = [
    step("front-end sends", "send", 1, 2),
    step("communication process passes down to 4", "pass_down", 1, 2),
    step("back-end receives", "receive", BACK_ENDS as u64, 2),
    step("back-end sends", "answer", BACK_ENDS as u64, 2),
    step("communication process folds 4", "fold", 1, 1),
    step("communication process passes up 4", "relay", 1, 1),
    step("front-end receives", "deliver", 1, 1),
    step("front-end receives 4", "deliver_relayed", 1, 1),
];

const fn step(name: &'static str, function: &'static str, calls: u64, kinds: u64) -> Step {
    Step { name, function, calls, kinds }
}

/// Instructions by step.
pub type Counts = BTreeMap<String, u64>;
/// Allocations by step.
pub type Allocations = BTreeMap<String, u64>;

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
    println!("{}", serde_json::to_string(&tree.tally.least())?);
    Ok(())
}

/// Counts the instructions and allocations of each step over such links. The profiler's files go
/// to a folder of their own in `folder`.
pub fn count(links: Links, folder: &Path) -> Result<(Counts, Allocations)> {
    let folder = folder.join(links.name());
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let ended = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--error-exitcode=0"])
        .arg(format!("--callgrind-out-file={}", folder.join("callgrind").display()))
        .arg(format!("--dump-before={MARK}"))
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
    let (mut counts, mut allocations) = (Counts::new(), Allocations::new());
    let waves = read_waves(&folder)?;
    for Step { name, function, calls, kinds } in STEPS {
        let costs = || waves.iter().filter_map(|wave| wave.get(function));
        let complete = costs().filter(|cost| cost.calls == calls).count() as u64;
        if complete != WAVES * kinds {
            let expected = WAVES * kinds;
            return Err(format!(
                "{}: {complete} waves with {calls} calls of {function}, not {expected}",
                folder.display()
            )
            .into());
        }
        let least = costs().map(|cost| cost.instructions.div_ceil(calls)).min();
        counts.insert(name.to_owned(), least.unwrap_or(0));
        let made = made.get(function).ok_or_else(|| format!("no allocations of {function}"))?;
        allocations.insert(name.to_owned(), *made);
    }
    Ok((counts, allocations))
}

/// The calls of a function, and what they took with all that they called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    calls: u64,
    instructions: u64,
}

/// What the steps took in each wave, by their functions.
fn read_waves(folder: &Path) -> Result<Vec<BTreeMap<&'static str, Cost>>> {
    let mut waves = Vec::new();
    for file in fs::read_dir(folder)? {
        let text = fs::read_to_string(file?.path())?;
        let inclusive = inclusive(&text);
        let cost_of = |function| {
            let called = format!("sapwood_instructions::tree::{function}");
            Some((function, *inclusive.get(called.as_str())?))
        };
        waves.push(STEPS.iter().filter_map(|step| cost_of(step.function)).collect());
    }
    Ok(waves)
}

/// Calls and inclusive cost of each called function, in a file of callgrind's. A name follows its
/// number where it first occurs: `cfn=(12) name`, later `cfn=(12)`. A call is two lines,
/// `calls=COUNT TARGET` and `POSITION COST`, after that of the called function.
fn inclusive(text: &str) -> BTreeMap<&str, Cost> {
    let mut names = BTreeMap::new();
    let mut costs: BTreeMap<&str, Cost> = BTreeMap::new();
    let mut called = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(calls) = line.strip_prefix("calls=") {
            let calls = calls.split(' ').next().and_then(|calls| calls.parse::<u64>().ok());
            let cost = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
            let all = costs.entry(called).or_default();
            all.calls += calls.unwrap_or(0);
            all.instructions += cost.unwrap_or(0);
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
        assert_eq!(found["tree::send"], Cost { calls: 4, instructions: 400 });
        assert_eq!(found["other"], Cost { calls: 1, instructions: 7 });
    }
}
