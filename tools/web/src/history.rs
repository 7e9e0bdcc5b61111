//! The records that are kept for browsers that come late: all of them at first, fewer of the older
//! ones as a run goes on, never more than a number of bytes.

use std::collections::VecDeque;

use bytes::Bytes;

/// Records that are kept at most.
pub(crate) const ROUNDS_MAX: usize = 2048;
/// Bytes of records that are kept at most.
pub(crate) const HISTORY_BYTES_MAX: usize = 32 << 20;
/// Of the kept records, one in this many is so recent that none beside it is left out.
const RECENT_SHARE: usize = 4;

/// Kept records of one kind by their sequence, the oldest first.
#[derive(Default)]
pub(crate) struct History {
    kept: VecDeque<(u64, Bytes)>,
    bytes: usize,
    seen: u64,
}

impl History {
    /// Keeps a record; forgets every second one of the older ones when there are too many.
    pub(crate) fn add(&mut self, sequence: u64, text: Bytes) {
        self.seen += 1;
        self.bytes += text.len();
        self.kept.push_back((sequence, text));
        while self.kept.len() > 1
            && (self.kept.len() > ROUNDS_MAX || self.bytes > HISTORY_BYTES_MAX)
        {
            self.thin();
        }
    }

    fn thin(&mut self) {
        let recent = self.kept.len() / RECENT_SHARE;
        let older = self.kept.len() - recent.max(1);
        let mut at = 0;
        self.kept.retain(|_| {
            at += 1;
            // The first one stays: it is where a run begins.
            at > older || at % 2 == 1
        });
        if self.kept.len() == 2 {
            // Two that are too large together: the newer one counts.
            self.kept.pop_front();
        }
        self.bytes = self.kept.iter().map(|(_, text)| text.len()).sum();
    }

    /// The kept records behind a sequence, all if there is none.
    pub(crate) fn after(&self, sequence: Option<u64>) -> impl Iterator<Item = &Bytes> {
        let is_newer = move |at: u64| sequence.is_none_or(|sequence| at > sequence);
        self.kept.iter().filter(move |(at, _)| is_newer(*at)).map(|(_, text)| text)
    }

    /// How many records have come.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// How many records are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(history: &History) -> Vec<u64> {
        history.kept.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn a_long_run_keeps_its_begin_its_end_and_less_of_what_is_old() {
        let mut history = History::default();
        for number in 0..100_000 {
            history.add(number, Bytes::from_static(b"round"));
            assert!(history.kept() <= ROUNDS_MAX);
        }
        let numbers = numbers(&history);
        assert!(numbers.len() > ROUNDS_MAX / 3, "{}", numbers.len());
        assert_eq!(numbers.first(), Some(&0));
        assert_eq!(numbers.last(), Some(&99_999));
        let gap = |at: usize| numbers[at + 1] - numbers[at];
        assert_eq!(gap(numbers.len() - 2), 1);
        assert!(gap(0) > 1 && numbers.is_sorted());
        assert_eq!(history.seen(), 100_000);
        assert_eq!(history.after(Some(99_997)).count(), 2);
    }

    #[test]
    fn large_rounds_are_bounded_in_bytes() {
        let mut history = History::default();
        for number in 0..100 {
            history.add(number, Bytes::from(vec![b'x'; HISTORY_BYTES_MAX / 10]));
            assert!(history.bytes <= HISTORY_BYTES_MAX);
        }
        assert_eq!(numbers(&history).last(), Some(&99));
        history.add(100, Bytes::from(vec![b'x'; HISTORY_BYTES_MAX + 1]));
        assert_eq!(numbers(&history), [100]);
    }
}
