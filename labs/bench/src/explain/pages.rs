//! The working set of a turn: the pages that a process refers to while waves pass.
//!
//! The system marks a page when it is referred to. All marks of a process are taken away
//! (`/proc/PID/clear_refs`), some waves pass, and the marks are counted (`/proc/PID/smaps`). After
//! each switch to another process, the processor looks up each of these pages anew unless its
//! address space still has a number there; a larger working set makes every wake-up dearer, of this
//! process and of the one that it interrupts.

use std::fs;

use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::Spread;

use super::{Cast, KINDS, Kind};
use crate::pairs::Contender;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::report::{Figure, Section};

/// Bytes of a page.
const PAGE_KIB: u64 = 4;

/// Round trips between taking the marks away and counting them.
const ROUNDS: usize = 50;

/// How many pages of each kind, on average over some processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pages {
    code: f64,
    heap: f64,
    other: f64,
}

/// The names of the figures of one kind of process.
struct Names {
    code: &'static str,
    heap: &'static str,
    other: &'static str,
}

const TREE: [Names; 2] = [
    Names { code: "communication_code", heap: "communication_heap", other: "communication_other" },
    Names { code: "back_end_code", heap: "back_end_heap", other: "back_end_other" },
];

const FLOOR: [Names; 2] = [
    Names {
        code: "floor_communication_code",
        heap: "floor_communication_heap",
        other: "floor_communication_other",
    },
    Names {
        code: "floor_back_end_code",
        heap: "floor_back_end_heap",
        other: "floor_back_end_other",
    },
];

/// Counts the pages of a tree and of its floor.
pub(crate) fn measure(
    plan: &Plan,
    [floor, tree]: [&mut dyn Contender; 2],
    progress: &mut Progress,
) -> Result<Section, Failure> {
    let mut figures = Vec::new();
    for (contender, names) in [(tree, &TREE), (floor, &FLOOR)] {
        let mut runs: Vec<[Option<Pages>; 2]> = Vec::new();
        for run in 0..plan.runs {
            progress.say("pages", run, plan.runs);
            runs.push(referred_to(contender, plan.bytes)?);
        }
        for (kind, names) in names.iter().enumerate() {
            let pages: Vec<Pages> = runs.iter().filter_map(|run| run[kind]).collect();
            if pages.is_empty() {
                continue;
            }
            let spread =
                |part: fn(&Pages) -> f64| Spread::of(&pages.iter().map(part).collect::<Vec<_>>());
            figures.push(Figure::new(names.code, spread(|pages| pages.code)));
            figures.push(Figure::new(names.heap, spread(|pages| pages.heap)));
            figures.push(Figure::new(names.other, spread(|pages| pages.other)));
        }
    }
    Section::new("pages", figures)
}

/// The pages of both kinds of processes, where there are any.
fn referred_to(contender: &mut dyn Contender, bytes: usize) -> Result<[Option<Pages>; 2], Failure> {
    let cast = contender.cast();
    for (pid, _) in &cast.0 {
        fs::write(format!("/proc/{pid}/clear_refs"), "1")
            .map_err(|error| unknown(*pid, "clear_refs", &error.to_string()))?;
    }
    contender.round_trip(bytes, ROUNDS)?;
    let mut means = [None, None];
    for (mean, kind) in means.iter_mut().zip(KINDS) {
        *mean = mean_of(&cast, kind)?;
    }
    Ok(means)
}

fn mean_of(cast: &Cast, kind: Kind) -> Result<Option<Pages>, Failure> {
    let (mut sum, mut count) = (Pages::default(), 0.0);
    for pid in cast.of(kind) {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps"))
            .map_err(|error| unknown(pid, "smaps", &error.to_string()))?;
        let pages = count_marks(&text);
        sum.code += pages.code;
        sum.heap += pages.heap;
        sum.other += pages.other;
        count += 1.0;
    }
    let Pages { code, heap, other } = sum;
    Ok((count > 0.0).then(|| Pages {
        code: code / count,
        heap: heap / count,
        other: other / count,
    }))
}

fn unknown(pid: u32, file: &str, why: &str) -> Failure {
    Failure::own(&format!(
        "cannot use /proc/{pid}/{file}: {why}; measure without the pages, with --only"
    ))
}

/// What the list of a process's mappings says of the pages that were referred to.
fn count_marks(smaps: &str) -> Pages {
    let mut pages = Pages::default();
    let mut part: fn(&mut Pages) -> &mut f64 = |pages| &mut pages.other;
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // 7f12a000-7f12c000 rw-p 00000000 00:00 0  [heap]
            [range, rights, _, _, _, ref name @ ..] if range.contains('-') => {
                part = match (rights.contains('x'), name.first()) {
                    (true, Some(&"[vdso]" | &"[vsyscall]")) => |pages| &mut pages.other,
                    (true, _) => |pages| &mut pages.code,
                    (false, None | Some(&"[heap]")) => |pages| &mut pages.heap,
                    _ => |pages| &mut pages.other,
                };
            }
            ["Referenced:", kib, "kB"] => {
                *part(&mut pages) += kib.parse::<u64>().unwrap_or(0) as f64 / PAGE_KIB as f64;
            }
            _ => {}
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_counted_by_what_is_mapped() {
        let smaps = "\
400000-7e0000 r-xp 00000000 fe:00 1  /x/sapwood-node\nReferenced:  40 kB\n\
7e0000-7f0000 rw-p 00000000 fe:00 1  /x/sapwood-node\nReferenced:  8 kB\n\
7f0000-800000 rw-p 00000000 00:00 0 \nReferenced:  4 kB\n\
900000-980000 rw-p 00000000 00:00 0  [heap]\nReferenced:  12 kB\n\
a00000-a80000 rw-p 00000000 00:00 0  [stack]\nReferenced:  4 kB\n";
        assert_eq!(count_marks(smaps), Pages { code: 10.0, heap: 4.0, other: 3.0 });
    }
}
