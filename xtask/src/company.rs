//! Which steps may run beside which.
//!
//! A step takes something of the machine ([`Takes`]). [`Company`] knows what runs and says whether
//! a step may begin; it starts nothing itself.

/// What a step takes of the machine for as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing but time of the processors.
    Time,
    /// It makes hosts. The test bed exists once; its interfaces are not seen outside of it.
    Hosts,
    /// All: what it finds depends on how soon its processes run.
    Machine,
}

impl Takes {
    /// Whether two steps that take this and that may run beside each other.
    pub fn fits(self, other: Takes) -> bool {
        match (self, other) {
            (Takes::Machine, _) | (_, Takes::Machine) => false,
            (Takes::Hosts, Takes::Hosts) => false,
            (Takes::Time, _) | (_, Takes::Time) => true,
        }
    }
}

/// A step by its number, with what it takes.
#[derive(Clone, Copy)]
struct Claim {
    step: usize,
    takes: Takes,
}

/// The steps that run.
#[derive(Default)]
pub struct Company {
    running: Vec<Claim>,
}

impl Company {
    /// Whether a step may begin that takes this: then it counts as running.
    pub fn begin(&mut self, step: usize, takes: Takes) -> bool {
        let may_begin = self.running.iter().all(|other| takes.fits(other.takes));
        if may_begin {
            self.running.push(Claim { step, takes });
        }
        may_begin
    }

    /// A running step has ended.
    pub fn end(&mut self, step: usize) {
        self.running.retain(|claim| claim.step != step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_test_bed_and_nothing_beside_what_needs_the_machine() {
        let all = [Takes::Time, Takes::Hosts, Takes::Machine];
        let fitting = |one: Takes| all.into_iter().filter(|other| one.fits(*other)).count();
        assert_eq!(all.map(fitting), [2, 1, 0]);
        for (one, other) in all.into_iter().flat_map(|one| all.map(|other| (one, other))) {
            assert_eq!(one.fits(other), other.fits(one), "{one:?} beside {other:?}");
        }
    }

    #[test]
    fn a_step_waits_for_those_that_it_does_not_fit() {
        let mut company = Company::default();
        assert!(company.begin(0, Takes::Hosts));
        assert!(!company.begin(1, Takes::Hosts) && !company.begin(2, Takes::Machine));
        assert!(company.begin(3, Takes::Time), "what waits for the machine holds nothing up");
        company.end(0);
        assert!(company.begin(1, Takes::Hosts) && !company.begin(2, Takes::Machine));
        company.end(1);
        company.end(3);
        assert!(company.begin(2, Takes::Machine));
        assert!(!company.begin(4, Takes::Time));
    }
}
