//! The shape of the floor's tree: one fan-out per level, from the root down.
//!
//! Owns the short notation of `--topology` as far as the floor needs it: `64` (flat), `4x4x4` (a
//! fan-out per level) and `4^3` (the same fan-out on each of three levels). Does not own topology
//! files, k-nomial trees or placement: the floor has balanced trees on one machine only.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Most processes in one floor tree, the root included. Above this, a machine of the kind that the
/// figures are for runs out of descriptors and process slots before it says anything useful.
pub const TREE_PROCESSES_MAX: usize = 4096;

/// Most levels below the root.
pub const TREE_LEVELS_MAX: usize = 32;

/// A balanced tree: `fan_outs()[0]` children of the root, each with `fan_outs()[1]` children, and
/// so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    fan_outs: Vec<usize>,
}

impl Shape {
    /// Takes one fan-out per level, the root's first.
    pub fn new(fan_outs: &[usize]) -> Result<Shape, Error> {
        let reject = |reason| Err(Error::Shape { text: format!("{fan_outs:?}"), reason });
        if fan_outs.is_empty() || fan_outs.len() > TREE_LEVELS_MAX {
            return reject("a tree has 1 to 32 levels below its root");
        }
        let mut width: usize = 1;
        let mut processes: usize = 1;
        for &fan_out in fan_outs {
            if fan_out == 0 {
                return reject("a fan-out is at least 1");
            }
            width = width.saturating_mul(fan_out);
            processes = processes.saturating_add(width);
            if processes > TREE_PROCESSES_MAX {
                return reject("the floor starts at most 4096 processes; take a smaller tree");
            }
        }
        Ok(Shape { fan_outs: fan_outs.to_vec() })
    }

    /// Fan-out of each level, the root's first.
    pub fn fan_outs(&self) -> &[usize] {
        &self.fan_outs
    }

    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        self.fan_outs.iter().product()
    }

    /// Number of processes, the root (the calling process) included.
    pub fn processes(&self) -> usize {
        let mut width = 1;
        let below: usize = self
            .fan_outs
            .iter()
            .map(|fan_out| {
                width *= fan_out;
                width
            })
            .sum();
        1 + below
    }
}

impl FromStr for Shape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shape, Error> {
        let wrong = |reason| Error::Shape { text: text.to_string(), reason };
        let number =
            |word: &str| word.parse::<usize>().map_err(|_| wrong("write it like 64, 4x4x4 or 4^3"));
        let fan_outs = if let Some((fan_out, levels)) = text.split_once('^') {
            let (fan_out, levels) = (number(fan_out)?, number(levels)?);
            // Checked before the vector is made: "1^999999999" must not allocate.
            if levels > TREE_LEVELS_MAX {
                return Err(wrong("a tree has 1 to 32 levels below its root"));
            }
            vec![fan_out; levels]
        } else {
            text.split('x').map(number).collect::<Result<Vec<_>, _>>()?
        };
        Shape::new(&fan_outs).map_err(|error| match error {
            Error::Shape { reason, .. } => wrong(reason),
            other => other,
        })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, fan_out) in self.fan_outs.iter().enumerate() {
            let cross = if level == 0 { "" } else { "x" };
            write!(formatter, "{cross}{fan_out}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_notations_name_the_same_tree() {
        let by_level: Shape = "4x4x4".parse().unwrap();
        let by_power: Shape = "4^3".parse().unwrap();
        assert_eq!(by_level, by_power);
        assert_eq!(by_level.leaves(), 64);
        assert_eq!(by_level.processes(), 85);
        assert_eq!(by_level.to_string(), "4x4x4");
        let flat: Shape = "64".parse().unwrap();
        assert_eq!((flat.leaves(), flat.processes()), (64, 65));
    }

    #[test]
    fn a_shape_that_is_no_tree_is_refused() {
        let wrong = ["", "0", "4x", "x4", "4x0", "4^", "4^0", "1^999999999", "9999", "-1", "4^4^4"];
        for text in wrong {
            assert!(text.parse::<Shape>().is_err(), "{text:?} was taken");
        }
    }
}
