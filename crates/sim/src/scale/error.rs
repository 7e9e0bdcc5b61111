//! The errors of a study's parameters, and of a tree that it ran.

use alloc::string::String;
use core::fmt;

/// Why there are no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScaleError {
    /// A tree without back-ends, a fan-out below 2, or no level. Cure: ask for at least one
    /// back-end, fan-out 2 and one level.
    Shape {
        /// The parameter.
        what: String,
    },
    /// More processes than one study holds. Cure: fewer back-ends or a larger fan-out.
    Processes {
        /// How many there would be.
        count: u64,
    },
    /// A node of the tree has more children than a real node can have; such a tree can only be
    /// predicted. Cure: a smaller fan-out.
    Children {
        /// How many it has.
        count: u32,
    },
    /// A start-up cost that is negative, not finite, or no child at a time. Cure: times of 0 or
    /// more in microseconds, and at least one child.
    Cost {
        /// Which one.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The tree did something that a tree without faults must not do: a fault of ours.
    Broken {
        /// What was observed.
        what: String,
    },
}

impl fmt::Display for ScaleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { what } => write!(
                f,
                "{what} is no tree; ask for at least one back-end, fan-out 2 and one level"
            ),
            Self::Processes { count } => write!(
                f,
                "a tree of {count} processes is too large for one study; at most {} are held, ask \
                 for fewer back-ends or a larger fan-out",
                super::PROCESSES_MAX
            ),
            Self::Children { count } => write!(
                f,
                "a node of {count} children can only be predicted; at most {} are simulated",
                super::CHILDREN_SIMULATED_MAX
            ),
            Self::Cost { name, value } => {
                write!(f, "{name} of {value} is no cost; give a finite number of 0 or more")
            }
            Self::Broken { what } => write!(f, "the simulated tree broke a rule: {what}"),
        }
    }
}

impl core::error::Error for ScaleError {}
