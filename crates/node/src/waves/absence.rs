//! The members that were absent from the waves that have gone on: what still comes of them is late,
//! and what comes of any other back-end has been counted already.

use alloc::collections::VecDeque;

use sapwood_packet::{RankSet, RankSetRef, Wave};

/// Most stretches of waves that are remembered; what comes for older ones is refused and counted.
const STRETCHES_MAX: usize = 4096;

/// Waves in a row that the same back-ends were absent from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    first: Wave,
    end: Wave,
    ranks: RankSet,
}

/// The absentees of one stream's waves, at one node.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    stretches: VecDeque<Stretch>,
}

impl Absences {
    /// The waves from `first` to before `end` have gone on without these back-ends. Waves go on in
    /// order.
    pub(crate) fn record(&mut self, first: Wave, end: Wave, ranks: RankSet) {
        if let Some(last) = self.stretches.back_mut()
            && last.end == first
            && last.ranks == ranks
        {
            last.end = end;
            return;
        }
        self.stretches.push_back(Stretch { first, end, ranks });
        self.forget_oldest();
    }

    /// Nothing of these back-ends has ever come here, so that they were absent from what has gone
    /// on from `first` to before `end`, too.
    pub(crate) fn record_newcomers(&mut self, first: Wave, end: Wave, ranks: &RankSet) {
        let mut all = VecDeque::with_capacity(self.stretches.len() + 1);
        let mut next = first;
        for mut stretch in core::mem::take(&mut self.stretches) {
            if next < stretch.first {
                all.push_back(Stretch { first: next, end: stretch.first, ranks: ranks.clone() });
            }
            next = next.max(stretch.end);
            stretch.ranks.union_with(ranks.as_ref());
            all.push_back(stretch);
        }
        if next < end {
            all.push_back(Stretch { first: next, end, ranks: ranks.clone() });
        }
        self.stretches = all;
        self.forget_oldest();
    }

    /// Whether all of these back-ends were absent from a wave; they are not any more.
    pub(crate) fn take(&mut self, wave: Wave, ranks: RankSetRef<'_>) -> bool {
        let at = self.stretches.partition_point(|stretch| stretch.end <= wave);
        let Some(stretch) = self.stretches.get_mut(at).filter(|stretch| stretch.first <= wave)
        else {
            return false;
        };
        if !ranks.is_within(stretch.ranks.as_ref()) {
            return false;
        }
        // The stretch falls into at most three: only this wave's set changes, and what is absent
        // from the waves around it may still come.
        let whole = stretch.clone();
        let mut rest = whole.ranks.clone();
        rest.subtract(ranks);
        let parts = [
            Stretch { end: wave, ..whole.clone() },
            Stretch { first: wave, end: wave + 1, ranks: rest },
            Stretch { first: wave + 1, ..whole },
        ];
        self.stretches.remove(at);
        let parts = parts.into_iter().filter(|part| part.first < part.end);
        let mut end = at;
        for part in parts.filter(|part| !part.ranks.is_empty()) {
            self.stretches.insert(end, part);
            end += 1;
        }
        // Parts that come in order leave what is like its neighbour: else a back-end that is always
        // late, beside one that never answers, would cost a stretch for each wave.
        for seam in (at.max(1)..=end).rev() {
            self.join_with_previous(seam);
        }
        self.forget_oldest();
        true
    }

    /// Makes one of two stretches that follow each other with the same back-ends.
    fn join_with_previous(&mut self, at: usize) {
        let Some(next) = self.stretches.get(at) else { return };
        let (end, previous) = (next.end, &self.stretches[at - 1]);
        if previous.end == next.first && previous.ranks == next.ranks {
            self.stretches[at - 1].end = end;
            self.stretches.remove(at);
        }
    }

    /// The oldest waves are forgotten first: what still comes for them is refused, which loses a
    /// late value but counts none twice.
    fn forget_oldest(&mut self) {
        self.stretches.drain(..self.stretches.len().saturating_sub(STRETCHES_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(first: u32, last: u32) -> RankSet {
        RankSet::range(first, last)
    }

    #[test]
    fn a_late_part_is_taken_once() {
        let mut absences = Absences::default();
        absences.record(5, 10, ranks(2, 3));
        assert!(!absences.take(4, ranks(2, 2).as_ref()), "no back-end was absent from wave 4");
        assert!(!absences.take(7, ranks(1, 2).as_ref()), "1 was there");
        assert!(absences.take(7, ranks(2, 2).as_ref()));
        assert!(!absences.take(7, ranks(2, 2).as_ref()), "now it has come");
        assert!(absences.take(7, ranks(3, 3).as_ref()));
        assert!(absences.take(5, ranks(2, 3).as_ref()));
        assert!(absences.take(9, ranks(2, 3).as_ref()));
        for wave in [6, 8] {
            assert!(absences.take(wave, ranks(2, 3).as_ref()), "wave {wave}");
        }
        assert!(absences.stretches.is_empty());
    }

    #[test]
    fn who_comes_for_the_first_time_was_absent_from_all() {
        let mut absences = Absences::default();
        absences.record(2, 4, ranks(2, 3));
        absences.record(6, 8, ranks(3, 3));
        absences.record_newcomers(1, 10, &ranks(5, 5));
        assert!(!absences.take(0, ranks(5, 5).as_ref()), "it takes part from wave 1 on");
        for wave in 1..10 {
            assert!(absences.take(wave, ranks(5, 5).as_ref()), "wave {wave}");
            assert!(!absences.take(wave, ranks(5, 5).as_ref()), "wave {wave} has it");
        }
        assert!(absences.take(3, ranks(2, 3).as_ref()));
        assert!(absences.take(7, ranks(3, 3).as_ref()));
        assert!(!absences.take(5, ranks(3, 3).as_ref()), "3 was there");
    }

    #[test]
    fn waves_in_a_row_cost_one_stretch() {
        let mut absences = Absences::default();
        for wave in 0..100_000 {
            absences.record(wave, wave + 1, ranks(2, 3));
        }
        assert_eq!(absences.stretches.len(), 1);
    }
    #[test]
    fn a_late_back_end_beside_one_that_never_answers_costs_no_stretch_per_wave() {
        let mut absences = Absences::default();
        for wave in 0..100_000 {
            absences.record(wave, wave + 1, ranks(2, 3));
            assert!(absences.take(wave, ranks(2, 2).as_ref()), "wave {wave}");
            assert!(absences.stretches.len() <= 2, "wave {wave}: {:?}", absences.stretches.len());
        }
        assert_eq!(absences.stretches, [Stretch { first: 0, end: 100_000, ranks: ranks(3, 3) }]);
    }

    #[test]
    fn late_parts_in_any_order_leave_what_has_not_come() {
        // Steps of a number that has no factor in common with the number of waves reach each wave.
        const WAVES: u64 = 1000;
        let mut absences = Absences::default();
        absences.record(0, WAVES, ranks(2, 3));
        for wave in (0..WAVES).map(|step| step * 619 % WAVES) {
            assert!(absences.take(wave, ranks(2, 2).as_ref()), "wave {wave}");
            assert!(!absences.take(wave, ranks(2, 2).as_ref()), "wave {wave} twice");
        }
        assert_eq!(absences.stretches, [Stretch { first: 0, end: WAVES, ranks: ranks(3, 3) }]);
    }

    #[test]
    fn an_odd_back_end_costs_no_more_than_the_limit() {
        let waves = 4 * STRETCHES_MAX as u64;
        let mut absences = Absences::default();
        absences.record(0, waves, ranks(2, 3));
        for wave in (0..waves).step_by(2) {
            assert!(absences.take(wave, ranks(2, 2).as_ref()), "wave {wave}");
            assert!(absences.stretches.len() <= STRETCHES_MAX);
        }
        assert!(!absences.take(1, ranks(2, 2).as_ref()), "it was forgotten");
        assert!(absences.take(waves - 1, ranks(2, 3).as_ref()), "the latest is known");
    }
}
