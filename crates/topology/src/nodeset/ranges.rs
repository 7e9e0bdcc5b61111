//! What stands between brackets: `1-9/2,12`.

use alloc::vec::Vec;

use super::NODESET_NAMES_MAX;
use super::index::{Index, sort};

/// Why ranges cannot be read: the place as a byte of their text, and the problem.
pub(super) type Fault = (usize, &'static str);

const NOT_A_NUMBER: &str = "a number of 1 to 17 digits is expected here";
pub(super) const TOO_MANY: &str = "these are more than 4194304 names (NODESET_NAMES_MAX)";

/// Reads ranges; gives each number once, in order.
pub(super) fn parse(text: &str) -> Result<Vec<Index>, Fault> {
    let mut numbers = Vec::new();
    let mut at = 0;
    for part in text.split(',') {
        add_range(part, &mut numbers).map_err(|(within, problem)| (at + within, problem))?;
        at += part.len() + 1;
    }
    sort(&mut numbers);
    Ok(numbers)
}

/// How many numbers there would be, without making them; 0 where the text cannot be read.
pub(super) fn count(text: &str) -> u64 {
    let counts = text.split(',').map(|part| read(part).map_or(0, |range| range.count()));
    counts.fold(0, u64::saturating_add)
}

struct Range {
    first: u64,
    last: u64,
    step: u64,
    digits: usize,
}

impl Range {
    fn count(&self) -> u64 {
        (self.last - self.first) / self.step + 1
    }
}

fn add_range(part: &str, numbers: &mut Vec<Index>) -> Result<(), Fault> {
    let range = read(part)?;
    if (numbers.len() as u64).saturating_add(range.count()) > NODESET_NAMES_MAX as u64 {
        return Err((0, TOO_MANY));
    }
    let steps = 0..range.count();
    numbers.extend(steps.map(|step| Index::new(range.first + step * range.step, range.digits)));
    Ok(())
}

fn read(part: &str) -> Result<Range, Fault> {
    if part.is_empty() {
        return Err((0, "a number or a range such as 1-9 is missing here"));
    }
    let (bounds, step) = match part.split_once('/') {
        Some((bounds, step)) => {
            let at = bounds.len() + 1;
            let number = Index::parse(step).ok_or((at, NOT_A_NUMBER))?.value();
            (bounds, if number == 0 { Err((at, "a step is at least 1")) } else { Ok(number) }?)
        }
        None => (part, 1),
    };
    let Some((first, last)) = bounds.split_once('-') else {
        let only = Index::parse(bounds).ok_or((0, NOT_A_NUMBER))?;
        return Ok(Range { first: only.value(), last: only.value(), step, digits: only.digits() });
    };
    let at = first.len() + 1;
    let start = Index::parse(first).ok_or((0, NOT_A_NUMBER))?;
    let end = Index::parse(last).ok_or((at, NOT_A_NUMBER))?;
    if end.value() < start.value() {
        return Err((at, "a range ends with its largest number"));
    }
    // The digits of the first number count, as Slurm has it: 01-100 is 01 to 99, and 100.
    if end.is_padded() && end.digits() != start.digits() {
        return Err((
            at,
            "the last number of a range has leading zeros only if the first has as many digits",
        ));
    }
    let digits = if start.is_padded() { start.digits() } else { 1 };
    Ok(Range { first: start.value(), last: end.value(), step, digits })
}
