//! Function classes: events that are judged together, such as all collectives.

use core::fmt;

use crate::Round;

/// A function class. The MPI functions' classes stand in `bindings/mpi/functions.table`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Operations of all ranks of a communicator.
    Collective,
    /// Sends and receives.
    PointToPoint,
    /// Waits for and tests of requests.
    Wait,
    /// One-sided communication.
    Rma,
    /// MPI's file functions.
    File,
    /// All other functions.
    Other,
    /// The program's own regions; they may hold calls of all other classes.
    Region,
}

impl Class {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Collective,
        Self::PointToPoint,
        Self::Wait,
        Self::Rma,
        Self::File,
        Self::Other,
        Self::Region,
    ];

    /// Its name, as in the table of functions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collective => "collective",
            Self::PointToPoint => "point-to-point",
            Self::Wait => "wait",
            Self::Rma => "rma",
            Self::File => "file",
            Self::Other => "other",
            Self::Region => "region",
        }
    }

    /// The class of a function in the table; it panics, when this crate is compiled, for no class.
    pub(crate) const fn named(name: &[u8]) -> Self {
        match name {
            b"collective" => Self::Collective,
            b"point-to-point" => Self::PointToPoint,
            b"wait" => Self::Wait,
            b"rma" => Self::Rma,
            b"file" => Self::File,
            b"other" => Self::Other,
            _ => panic!("functions.table: a class is one of those in its head"),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a round's events of one class sum up to, over all covered ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassTotal {
    /// The class.
    pub class: Class,
    /// How many kinds of events it has.
    pub events: usize,
    /// Calls.
    pub count: u128,
    /// Inclusive time, in nanoseconds.
    pub time_ns: u128,
    /// Bytes.
    pub bytes: u128,
}

impl Round {
    /// The sums of every class, in the order of [`Class::ALL`]; classes without events are there.
    #[must_use]
    pub fn classes(&self) -> [ClassTotal; 7] {
        let empty = |class| ClassTotal { class, events: 0, count: 0, time_ns: 0, bytes: 0 };
        let mut totals = Class::ALL.map(empty);
        for (event, statistics) in self.events() {
            // The position in `ALL` is the order of declaration.
            let total = &mut totals[event.class() as usize];
            total.events += 1;
            total.count = total.count.saturating_add(statistics.count.sum());
            total.time_ns = total.time_ns.saturating_add(statistics.time_ns.sum());
            total.bytes = total.bytes.saturating_add(statistics.bytes.sum());
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::{Counters, EventKey, Function, RankProfile, SizeClass};

    #[test]
    fn events_of_one_class_are_summed() {
        let mut profile = RankProfile::new(0, 1);
        for (name, time_ns) in [("MPI_Send", 5), ("MPI_Recv", 7), ("MPI_Waitall", 11)] {
            let id = Function::named(name).expect("every MPI has it").id;
            let key = EventKey::Function { id, size_class: SizeClass::NONE };
            profile.events.insert(key, Counters { count: 1, time_ns, bytes: 8 });
        }
        let region = EventKey::Region("solve".to_string());
        profile.events.insert(region, Counters { count: 2, time_ns: 100, bytes: 0 });
        let mut round = Round::new(1);
        round.add(&profile).expect("a new rank");

        let totals = round.classes();
        let of = |class| totals.into_iter().find(|total| total.class == class).expect("all there");
        assert_eq!(of(Class::PointToPoint).time_ns, 12);
        assert_eq!(of(Class::PointToPoint).events, 2);
        assert_eq!(of(Class::Wait).bytes, 8);
        assert_eq!(of(Class::Region).count, 2);
        assert_eq!(of(Class::Rma).events, 0);
        assert_eq!(totals.map(|total| total.class), Class::ALL);
    }
}
