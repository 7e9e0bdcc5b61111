//! What lies outside of all packages and has tests of its own: the MPI shims and the test bed.
//!
//! Owns which of them a changed file concerns, the quick step that tries each, and the command for
//! what takes too long for the quick loop. The whole of it is in the gate.

use std::collections::BTreeSet;

use crate::gate;
use crate::steps::{Selection, Step};

/// One of them.
struct Area {
    /// What the paths of its files begin with, those of files that its step reads, too.
    places: &'static [&'static str],
    /// What tries it within minutes, if anything does.
    step: Option<fn() -> Step>,
    /// The command for the rest.
    by_hand: &'static str,
}

const AREAS: [Area; 4] = [
    Area {
        places: &[
            "bindings/mpi/Makefile",
            "bindings/mpi/functions.table",
            "bindings/mpi/generate/",
            "bindings/mpi/region/",
            "bindings/mpi/shim/",
            "bindings/mpi/tests/",
            "testbed/surroundings.py",
        ],
        step: Some(shims),
        by_hand: "make test-mpi",
    },
    Area {
        places: &[
            "bindings/mpi/Makefile",
            "bindings/mpi/bypass/",
            "bindings/mpi/shim/",
            "bindings/mpi/tests/prerequisites.py",
            "bindings/mpi/tests/run.py",
            "docs/schema/bypass-job-1.json",
            "testbed/surroundings.py",
        ],
        step: Some(bypass),
        by_hand: "make -C bindings/mpi bypass-check",
    },
    Area {
        places: &["bindings/mpi/world/", "bindings/mpi/generate/world.py"],
        step: None,
        by_hand: "make test-mpi",
    },
    Area { places: &["testbed/"], step: Some(hosts), by_hand: "make testbed-test" },
];

/// What is to be done for changed files.
pub struct Work {
    pub steps: Vec<Step>,
    /// Commands that are left to the developer.
    pub by_hand: BTreeSet<&'static str>,
}

/// The work for these files.
pub fn work(files: &[&str]) -> Work {
    let is_in = |area: &&Area| {
        area.places.iter().any(|place| files.iter().any(|file| file.starts_with(place)))
    };
    let touched: Vec<&Area> = AREAS.iter().filter(is_in).collect();
    Work {
        steps: touched.iter().filter_map(|area| area.step).map(|step| step()).collect(),
        by_hand: touched.iter().map(|area| area.by_hand).collect(),
    }
}

/// The steps of all areas, which `repeat` finds by their names.
pub fn all_steps() -> Vec<Step> {
    AREAS.iter().filter_map(|area| area.step).map(|step| step()).collect()
}

/// Programs under each shim that can be built here, with no part of the tree.
fn shims() -> Step {
    Step::program("counts under the MPI shims", "make -C bindings/mpi shim-check", 15)
        .with_tests(Selection::Variable)
}

/// The bypass libraries, with few of the runs in which a rank is killed.
fn bypass() -> Step {
    let line = "env SAPWOOD_BYPASS_KILLS=5 make -C bindings/mpi bypass-check";
    Step::program("bypass libraries", line, 15).with_tests(Selection::Variable)
}

/// A tree over a few hosts, where the machine lets us make some.
fn hosts() -> Step {
    let program = gate::test_program();
    let line =
        format!("env TESTBED_HOSTS=8 testbed/tests/run --if-able {program} StartUp.test_fan_out_2");
    Step::program("a tree over hosts of the test bed", line, 5)
        .after(&[gate::BUILD])
        .with_tests(Selection::Instead("StartUp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[&str]) -> Vec<&'static str> {
        work(files).steps.iter().map(|step| step.name).collect()
    }

    fn by_hand(files: &[&str]) -> Vec<&'static str> {
        work(files).by_hand.into_iter().collect()
    }

    #[test]
    fn a_change_runs_the_steps_of_its_area() {
        let (shims, bypass) = ("counts under the MPI shims", "bypass libraries");
        let hosts = "a tree over hosts of the test bed";
        assert_eq!(names(&["bindings/mpi/shim/observe.c"]), [shims, bypass]);
        assert_eq!(names(&["bindings/mpi/generate/events.py"]), [shims]);
        assert_eq!(names(&["bindings/mpi/bypass/wait.c"]), [bypass]);
        assert_eq!(names(&["testbed/hosts.py"]), [hosts]);
        assert_eq!(names(&["testbed/surroundings.py"]), [shims, bypass, hosts]);
        assert_eq!(names(&["crates/node/src/lib.rs", "docs/testbed.md"]), Vec::<&str>::new());
    }

    #[test]
    fn what_takes_long_is_named_once() {
        assert_eq!(
            by_hand(&["bindings/mpi/world/next.c", "bindings/mpi/region/region.c"]),
            ["make test-mpi"]
        );
        assert_eq!(by_hand(&["testbed/wanem.c"]), ["make testbed-test"]);
        assert!(by_hand(&["README.md"]).is_empty());
        assert!(names(&["bindings/mpi/world/next.c"]).is_empty());
    }

    #[test]
    fn every_place_is_there() {
        for place in AREAS.iter().flat_map(|area| area.places) {
            assert!(crate::root().join(place).exists(), "{place}");
        }
    }
}
