//! New inputs out of old ones: the same seed gives the same inputs.

use sapwood_random::Random;

use crate::coverage;

/// Longest input, in bytes.
pub const INPUT_BYTES_MAX: usize = 4096;

/// Numbers at which code tends to go wrong.
const EDGES: [u64; 14] =
    [0, 1, 7, 8, 9, 64, 65, 127, 128, 255, 65_535, 1 << 30, u32::MAX as u64, u64::MAX];

/// Changes an input in a few places; `other` is another one to take parts from.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.index(4) {
        match random.index(10) {
            0 => flip(input, random),
            1 => write_number(input, EDGES[random.index(EDGES.len())], random),
            2 => remove(input, random),
            3 => insert(input, random),
            4 => duplicate(input, random),
            5 => splice(input, other, random),
            6 => add(input, random),
            7 => shift_byte(input, random),
            _ => satisfy_comparison(input, random),
        }
    }
    input.truncate(INPUT_BYTES_MAX);
}

fn flip(input: &mut [u8], random: &mut Random) {
    if !input.is_empty() {
        input[random.index(input.len())] ^= 1 << random.index(8);
    }
}

fn shift_byte(input: &mut [u8], random: &mut Random) {
    if !input.is_empty() {
        input[random.index(input.len())] = random.next_u64() as u8;
    }
}

/// Width of a number in bytes: 1, 2, 4 or 8.
fn width(random: &mut Random) -> usize {
    1 << random.index(4)
}

fn write_number(input: &mut [u8], number: u64, random: &mut Random) {
    let width = width(random);
    if input.len() >= width {
        // Numbers lie at multiples of their width more often than not.
        let any = random.index(input.len() - width + 1);
        let at = if random.index(4) == 0 { any } else { any / width * width };
        input[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
    }
}

fn add(input: &mut [u8], random: &mut Random) {
    let at = random.index(input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte = byte.wrapping_add(random.index(33) as u8).wrapping_sub(16);
    }
}

fn remove(input: &mut Vec<u8>, random: &mut Random) {
    let at = random.index(input.len());
    let count = length(random).min(input.len() - at);
    input.drain(at..at + count);
}

fn insert(input: &mut Vec<u8>, random: &mut Random) {
    let at = random.index(input.len() + 1);
    let byte = if random.index(2) == 0 { 0 } else { random.next_u64() as u8 };
    input.splice(at..at, std::iter::repeat_n(byte, length(random)));
}

fn duplicate(input: &mut Vec<u8>, random: &mut Random) {
    let from = random.index(input.len());
    let count = length(random).min(input.len() - from);
    let part = input[from..from + count].to_vec();
    let at = random.index(input.len() + 1);
    input.splice(at..at, part);
}

fn splice(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let from = random.index(other.len());
    let count = (length(random) * 4).min(other.len() - from);
    let at = random.index(input.len() + 1);
    let end = if random.index(2) == 0 { at } else { (at + count).min(input.len()) };
    input.splice(at..end, other[from..from + count].iter().copied());
}

/// How many bytes to move: often whole words.
fn length(random: &mut Random) -> usize {
    if random.index(2) == 0 { 8 * (1 + random.index(4)) } else { 1 + random.index(12) }
}

/// Puts one side of a comparison, or its neighbour, where the other side lies in the input.
fn satisfy_comparison(input: &mut [u8], random: &mut Random) {
    let [left, right] = coverage::comparison(random.next_u64());
    let (present, wanted) = if random.index(2) == 0 { (left, right) } else { (right, left) };
    let wanted = match random.index(4) {
        0 => wanted.wrapping_add(1),
        1 => wanted.wrapping_sub(1),
        _ => wanted,
    };
    let width = width(random);
    let pattern = &present.to_le_bytes()[..width];
    let start = random.index(input.len());
    let found = input.get(start..).and_then(|rest| {
        rest.windows(width).position(|window| window == pattern).map(|place| start + place)
    });
    match found {
        Some(at) => input[at..at + width].copy_from_slice(&wanted.to_le_bytes()[..width]),
        None => write_number(input, wanted, random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(seed: u64) -> Vec<Vec<u8>> {
        let mut random = Random::new(seed);
        let mut input = Vec::new();
        let step = |_| {
            mutate(&mut input, b"another input to take parts of", &mut random);
            input.clone()
        };
        (0..5000).map(step).collect()
    }

    #[test]
    fn a_seed_gives_the_same_inputs_again() {
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    fn inputs_grow_from_nothing_and_stay_within_their_limit() {
        let inputs = inputs(1);
        assert!(inputs.iter().any(|input| input.len() > 100));
        assert!(inputs.iter().all(|input| input.len() <= INPUT_BYTES_MAX));
    }
}
