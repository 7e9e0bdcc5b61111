//! The differences between two texts, line by line, as `diff -u` writes them.
//!
//! Owns the comparison: Myers' greedy algorithm (An O(ND) Difference Algorithm, 1986, section 4)
//! with a bound, beyond which all lines between the common beginning and end count as changed.

/// Most differing lines that are looked for one by one.
const DIFFERENCES_MAX: usize = 2000;

/// How many lines that are the same stand around a difference.
const CONTEXT_LINES: usize = 3;

/// One step from one text to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Same,
    Removed,
    Added,
}

/// Writes what has to be changed in `old` to get `new`, under two header lines. Empty if nothing.
pub(super) fn unified(old: &[u8], new: &[u8], old_name: &str, new_name: &str) -> Vec<u8> {
    let (a, b) = (lines(old), lines(new));
    let steps = steps(&a, &b);
    if steps.iter().all(|step| *step == Step::Same) {
        return Vec::new();
    }
    let mut text = format!("--- {old_name}\n+++ {new_name}\n").into_bytes();
    for hunk in hunks(&steps) {
        write_hunk(&steps, hunk, &a, &b, &mut text);
    }
    text
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

/// The steps that lead from one list of lines to the other.
fn steps(a: &[&[u8]], b: &[&[u8]]) -> Vec<Step> {
    let begin = a.iter().zip(b).take_while(|(one, other)| one == other).count();
    let (a, b) = (&a[begin..], &b[begin..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(one, other)| one == other).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    let mut steps = vec![Step::Same; begin];
    match shortest(a, b) {
        Some(between) => steps.extend(between),
        None => {
            steps.extend(std::iter::repeat_n(Step::Removed, a.len()));
            steps.extend(std::iter::repeat_n(Step::Added, b.len()));
        }
    }
    steps.extend(std::iter::repeat_n(Step::Same, end));
    steps
}

/// The shortest way, if it has few enough differences.
fn shortest(a: &[&[u8]], b: &[&[u8]]) -> Option<Vec<Step>> {
    let most = (a.len() + b.len()).min(DIFFERENCES_MAX);
    let offset = most as isize + 1;
    let at = |diagonal: isize| (diagonal + offset) as usize;
    let mut reached = vec![0_usize; 2 * most + 3];
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for round in 0..=most as isize {
        rounds.push(reached[at(-round - 1)..=at(round + 1)].to_vec());
        for diagonal in (-round..=round).step_by(2) {
            let (left, right) = (reached[at(diagonal - 1)], reached[at(diagonal + 1)]);
            let goes_down = diagonal == -round || diagonal != round && left < right;
            let mut x = if goes_down { right } else { left + 1 };
            let mut y = (x as isize - diagonal) as usize;
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached[at(diagonal)] = x;
            if x >= a.len() && y >= b.len() {
                return Some(way_back(&rounds, a.len(), b.len()));
            }
        }
    }
    None
}

/// Follows the rounds back from the end. Round r holds what was reached before it, on the diagonals
/// from -r-1 to r+1.
fn way_back(rounds: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for (round, reached) in rounds.iter().enumerate().rev() {
        let round = round as isize;
        let of = |diagonal: isize| reached[(diagonal + round + 1) as usize];
        let diagonal = x as isize - y as isize;
        let goes_down =
            diagonal == -round || diagonal != round && of(diagonal - 1) < of(diagonal + 1);
        let before = if goes_down { diagonal + 1 } else { diagonal - 1 };
        let (x_before, y_before) = match round {
            0 => (0, 0),
            _ => (of(before), (of(before) as isize - before) as usize),
        };
        let (x_step, y_step) = match round {
            0 => (0, 0),
            _ if goes_down => (x_before, y_before + 1),
            _ => (x_before + 1, y_before),
        };
        while x > x_step && y > y_step {
            steps.push(Step::Same);
            (x, y) = (x - 1, y - 1);
        }
        if round > 0 {
            steps.push(if goes_down { Step::Added } else { Step::Removed });
        }
        (x, y) = (x_before, y_before);
    }
    steps.reverse();
    steps
}

/// Where differences stand, with the lines around them.
fn hunks(steps: &[Step]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (place, _) in steps.iter().enumerate().filter(|(_, step)| **step != Step::Same) {
        let (first, last) = (place.saturating_sub(CONTEXT_LINES), place + CONTEXT_LINES + 1);
        let last = last.min(steps.len());
        match hunks.last_mut() {
            Some(hunk) if first <= hunk.end => hunk.end = last,
            _ => hunks.push(first..last),
        }
    }
    hunks
}

fn write_hunk(
    steps: &[Step],
    hunk: std::ops::Range<usize>,
    a: &[&[u8]],
    b: &[&[u8]],
    text: &mut Vec<u8>,
) {
    let count = |steps: &[Step], not: Step| steps.iter().filter(|step| **step != not).count();
    let (mut x, mut y) =
        (count(&steps[..hunk.start], Step::Added), count(&steps[..hunk.start], Step::Removed));
    let inside = &steps[hunk];
    let (removed, added) = (count(inside, Step::Added), count(inside, Step::Removed));
    let place = |first: usize, length: usize| match length {
        0 => format!("{first},0"),
        1 => format!("{}", first + 1),
        _ => format!("{},{length}", first + 1),
    };
    text.extend(format!("@@ -{} +{} @@\n", place(x, removed), place(y, added)).bytes());
    for step in inside {
        let (sign, line) = match step {
            Step::Same => (b' ', a[x]),
            Step::Removed => (b'-', a[x]),
            Step::Added => (b'+', b[y]),
        };
        x += usize::from(*step != Step::Added);
        y += usize::from(*step != Step::Removed);
        text.push(sign);
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        String::from_utf8(unified(old.as_bytes(), new.as_bytes(), "a", "b")).unwrap()
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(diff("a\nb\n", "a\nb\n"), "");
        assert_eq!(diff("", ""), "");
    }

    #[test]
    fn differences_stand_among_the_lines_around_them() {
        assert_eq!(
            diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!(diff("a\n", "a\nb\n"), "--- a\n+++ b\n@@ -1 +1,2 @@\n a\n+b\n");
        assert_eq!(
            diff("x", ""),
            "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn the_steps_lead_from_one_text_to_the_other() {
        let mut seed = 7_u32;
        let mut text = |length: usize| -> Vec<&'static [u8]> {
            let mut line = || {
                seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345);
                [&b"a"[..], b"b", b"c"][(seed >> 16) as usize % 3]
            };
            (0..length).map(|_| line()).collect()
        };
        for length in 0..40 {
            let (a, b) = (text(length), text(length * 7 % 31));
            let (mut x, mut y) = (0, 0);
            for step in steps(&a, &b) {
                match step {
                    Step::Same => {
                        assert_eq!(a[x], b[y]);
                        (x, y) = (x + 1, y + 1);
                    }
                    Step::Removed => x += 1,
                    Step::Added => y += 1,
                }
            }
            assert_eq!((x, y), (a.len(), b.len()));
        }
    }

    #[test]
    fn texts_that_differ_in_too_much_are_replaced() {
        let long = |word: &str| (0..3000).map(|n| format!("{word}{n}\n")).collect::<String>();
        let text = diff(&long("a"), &long("b"));
        assert_eq!(text.lines().filter(|line| line.starts_with("-a")).count(), 3000);
        assert_eq!(text.lines().filter(|line| line.starts_with("+b")).count(), 3000);
    }
}
