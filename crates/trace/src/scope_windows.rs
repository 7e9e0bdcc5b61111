//! The last values of each group, of which the figures of a scope with a window are made.

use alloc::collections::{BTreeMap, VecDeque};

use sapwood_packet::Rank;

use crate::scope::ScopeReduction;
use crate::scope_figures::{ScopeCounter, ScopeFigures, ScopeKey};

/// Windows of one scope, at most.
const WINDOWS_MAX: usize = 4096;
/// Values in all windows of one scope, at most: 8 MiB. Queues have as much in reserve at most.
const VALUES_MAX: usize = 1 << 20;

/// Whose last values a window has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowOwner {
    /// The group.
    pub key: ScopeKey,
    /// Of calls, the rank; 0 of hops.
    pub rank: Rank,
    /// Of calls, the number of the thread's ring in its rank; 0 of hops.
    pub ring: usize,
}

/// Which values figures are of, and what is made of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowRule {
    /// The last as many of each owner; 0 for all since the figures before.
    pub window: u32,
    /// To what they are reduced.
    pub reduction: ScopeReduction,
}

/// The windows of one scope.
#[derive(Clone, Debug)]
pub struct ScopeWindows {
    by_owner: BTreeMap<WindowOwner, VecDeque<u64>>,
    /// Values in all of them.
    values: usize,
    values_max: usize,
}

impl Default for ScopeWindows {
    fn default() -> Self {
        Self { by_owner: BTreeMap::new(), values: 0, values_max: VALUES_MAX }
    }
}

impl ScopeWindows {
    /// Adds the value of an event that a scope selects: to its window, or to the figures where all
    /// values count. One for which windows have no room is counted: the oldest value of its owner
    /// is given up for it, or it is left out where that has no window.
    pub fn add(
        &mut self,
        owner: WindowOwner,
        ns: u64,
        rule: WindowRule,
        figures: &mut ScopeFigures,
    ) {
        let window = usize::try_from(rule.window).unwrap_or(usize::MAX);
        if window == 0 {
            figures.add(owner.key, ns, rule.reduction);
            return;
        }
        let has_room = self.values < self.values_max;
        let is_refused = !has_room || self.by_owner.len() >= WINDOWS_MAX;
        if is_refused && !self.by_owner.contains_key(&owner) {
            figures.count(ScopeCounter::WithoutWindow, 1);
            return;
        }
        let values = self.by_owner.entry(owner).or_default();
        let before = values.len();
        while values.len() >= window {
            values.pop_front();
        }
        if values.len() == before && !has_room {
            values.pop_front();
            figures.count(ScopeCounter::WithoutWindow, 1);
        }
        values.push_back(ns);
        self.values = self.values - before + values.len();
    }

    /// Adds all that is in the windows to figures.
    pub fn add_to(&self, figures: &mut ScopeFigures, reduction: ScopeReduction) {
        for (owner, values) in &self.by_owner {
            figures.add_all(owner.key, values.iter().copied(), reduction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: WindowRule = WindowRule { window: 3, reduction: ScopeReduction::Sums };

    fn owner(rank: Rank) -> WindowOwner {
        WindowOwner { key: ScopeKey { rank, ..ScopeKey::default() }, rank, ring: 0 }
    }

    /// How many values the windows have of a rank, and their sum.
    fn told(windows: &ScopeWindows, rank: Rank) -> (u64, u64) {
        let mut figures = ScopeFigures::default();
        windows.add_to(&mut figures, ScopeReduction::Sums);
        figures.groups.get(&owner(rank).key).map_or((0, 0), |one| (one.count, one.sum))
    }

    #[test]
    fn a_window_has_the_last_values_of_its_owner() {
        let (mut windows, mut figures) = (ScopeWindows::default(), ScopeFigures::default());
        for ns in 1..=5 {
            windows.add(owner(0), ns, RULE, &mut figures);
        }
        windows.add(owner(1), 7, RULE, &mut figures);
        assert_eq!((told(&windows, 0), told(&windows, 1)), ((3, 3 + 4 + 5), (1, 7)));
        assert_eq!((windows.values, figures), (4, ScopeFigures::default()));
        // Another question may want fewer.
        let mut figures = ScopeFigures::default();
        windows.add(owner(0), 6, WindowRule { window: 2, ..RULE }, &mut figures);
        assert_eq!((told(&windows, 0), windows.values), ((2, 5 + 6), 3));
    }

    #[test]
    fn values_that_have_no_room_are_counted_and_the_last_ones_are_kept() {
        let mut windows = ScopeWindows { values_max: 4, ..ScopeWindows::default() };
        let mut figures = ScopeFigures::default();
        for ns in [1, 2] {
            windows.add(owner(0), ns, RULE, &mut figures);
            windows.add(owner(1), ns, RULE, &mut figures);
        }
        assert_eq!(figures.counter(ScopeCounter::WithoutWindow), 0);
        windows.add(owner(0), 3, RULE, &mut figures);
        windows.add(owner(2), 9, RULE, &mut figures);
        assert_eq!(figures.counter(ScopeCounter::WithoutWindow), 2);
        assert_eq!((told(&windows, 0), told(&windows, 2)), ((2, 2 + 3), (0, 0)));
        assert_eq!(windows.values, 4);
    }

    #[test]
    fn owners_beyond_the_most_windows_are_counted() {
        let (mut windows, mut figures) = (ScopeWindows::default(), ScopeFigures::default());
        let owners = Rank::try_from(WINDOWS_MAX).expect("a few thousand");
        for rank in 0..=owners {
            windows.add(owner(rank), 1, RULE, &mut figures);
        }
        assert_eq!(windows.by_owner.len(), WINDOWS_MAX);
        assert_eq!(figures.counter(ScopeCounter::WithoutWindow), 1);
    }

    #[test]
    fn without_a_window_all_values_are_in_the_figures() {
        let (mut windows, mut figures) = (ScopeWindows::default(), ScopeFigures::default());
        for ns in [1, 2, 4, 8] {
            windows.add(owner(0), ns, WindowRule { window: 0, ..RULE }, &mut figures);
        }
        assert_eq!((figures.groups[&owner(0).key].sum, windows.by_owner.len()), (15, 0));
    }
}
