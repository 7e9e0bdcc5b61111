//! What remains of a collective of which all processes are known: sums by its place, and how it has
//! ended for its processes. The leaf at which all of them are draws them, else the front-end; what
//! an instance adds is the same.

use alloc::vec::Vec;

use crate::amount::Unequal;
use crate::gathered::{Counter, ENTRIES_MAX, Gathered, Made};
use crate::instance::{Instance, InstanceKey, Latecomer, Pattern};
use crate::observer::Settled;
use crate::place::{
    LateKey, LateTimes, Outlier, PlaceKey, WholeCollectives, late_ns, lateness_class,
};

impl Gathered {
    /// Adds what a whole instance says; how it has ended for its processes.
    pub(crate) fn conclude(&mut self, key: InstanceKey, one: &Instance) -> Settled {
        let function = one.function();
        let place = (key.0, function);
        let latecomer = one.latecomer();
        let undecided = u64::from(latecomer.is_some_and(|one| one.is_late.is_none()));
        let whole = WholeCollectives { size: one.size, collectives: 1, undecided, last: key.1 };
        self.add_whole(place, &whole);
        if let Some(Latecomer { arrival, is_late: Some(true) }) = latecomer {
            let (rank, late_ns) = (arrival.rank, late_ns(one, &arrival));
            self.blame(rank, &Made { last: 1, ..Made::default() });
            self.add_late((place, rank, lateness_class(late_ns)), &LateTimes::of(late_ns));
            self.outlier = self.outlier.max(Some(Outlier { late_ns, rank, function, key }));
        }
        Settled { key, pattern: one.pattern, culprit: latecomer.map(|one| one.arrival) }
    }

    /// Takes out an instance that is whole and of which nothing but sums is wanted; how it has
    /// ended.
    pub(crate) fn conclude_plain(&mut self, key: InstanceKey) -> Option<Settled> {
        let one = *self.instances.get(&key).filter(|one| is_plain(key, one))?;
        self.instances.remove(&key);
        Some(self.conclude(key, &one))
    }

    /// Adds whole collectives of a place.
    pub fn add_whole(&mut self, place: PlaceKey, whole: &WholeCollectives) {
        self.wholes.entry(place).or_default().merge(whole);
    }

    /// Adds times by which a rank was late at a place.
    pub fn add_late(&mut self, key: LateKey, times: &LateTimes) {
        self.late.entry(key).or_default().merge(times);
    }

    /// Keeps to the number of such entries that a packet may have.
    pub(crate) fn bound_conclusions(&mut self) {
        for _ in ENTRIES_MAX..self.wholes.len() {
            let Some((_, one)) = self.wholes.pop_last() else { break };
            self.add_whole((0, 0), &one);
        }
        let excess = self.late.len().saturating_sub(ENTRIES_MAX);
        if excess == 0 {
            return;
        }
        // The shortest times say least about which rank is late.
        let mut sums: Vec<(u64, LateKey)> =
            self.late.iter().map(|(&key, times)| (times.sum_ns, key)).collect();
        sums.select_nth_unstable(excess - 1);
        for (_, key) in &sums[..excess] {
            self.late.remove(key);
        }
        self.count(Counter::LeftOut, excess as u64);
    }
}

/// Whether an instance is whole and nothing is to be reported of it beside its waits: its processes
/// called the same, gave as many bytes, and it is known which ranks wait for which.
fn is_plain(key: InstanceKey, one: &Instance) -> bool {
    one.is_whole()
        && !one.is_mixed
        && one.pattern != Pattern::Unknown
        && Unequal::of(key, one).is_none()
}
