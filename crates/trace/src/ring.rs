//! How far a reader has come in a ring whose writer does not wait for it.

use core::ops::Range;

/// The place of a reader in one ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCursor {
    /// The next record.
    next: u64,
}

impl RingCursor {
    /// The number of the record that is read next.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.next
    }

    /// The records that can be read when the writer has written `head` of them, at most `most`.
    /// They are copied next, and then [`RingCursor::take`] says which copies are good.
    #[must_use]
    pub fn plan(&self, head: u64, records: usize, most: usize) -> Range<u64> {
        // A head that goes back is not a writer's.
        let head = head.max(self.next);
        let begin = self.next.max(oldest(head, records));
        begin..head.min(begin.saturating_add(most as u64))
    }

    /// The copies of a plan that are whole, after the writer has come to `head`, and how many
    /// records were overwritten before they were read.
    #[must_use]
    pub fn take(&mut self, plan: Range<u64>, head: u64, records: usize) -> (Range<u64>, u64) {
        let begin = plan.start.max(oldest(head, records)).min(plan.end);
        let lost = begin.saturating_sub(self.next);
        self.next = plan.end.max(self.next);
        (begin..plan.end, lost)
    }
}

/// The oldest record that is whole: the one after the place that is perhaps being written.
fn oldest(head: u64, records: usize) -> u64 {
    head.saturating_add(1).saturating_sub(records as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_keeps_up_loses_nothing() {
        let mut cursor = RingCursor::default();
        for head in [0, 3, 3, 10, 17] {
            let plan = cursor.plan(head, 16, 100);
            assert_eq!(plan.end, head);
            let (good, lost) = cursor.take(plan.clone(), head, 16);
            assert_eq!((good, lost), (plan, 0));
        }
    }

    #[test]
    fn what_was_overwritten_before_or_while_it_was_copied_is_counted() {
        let mut cursor = RingCursor::default();
        let plan = cursor.plan(100, 16, 100);
        assert_eq!(plan, 85..100);
        let (good, lost) = cursor.take(plan, 108, 16);
        assert_eq!((good, lost), (93..100, 93));
        let plan = cursor.plan(108, 16, 100);
        assert_eq!(plan, 100..108);
        // The writer has gone round the ring meanwhile.
        let (good, lost) = cursor.take(plan, 1000, 16);
        assert_eq!((good.is_empty(), lost), (true, 8));
        assert_eq!(cursor.plan(1000, 16, 4), 985..989);
    }

    #[test]
    fn every_record_is_read_or_counted_once() {
        let mut cursor = RingCursor::default();
        let (mut read, mut counted, mut head) = (0, 0, 0);
        for step in 0..1000_u64 {
            head += step * 7 % 23;
            let plan = cursor.plan(head, 16, 10);
            head += step % 5;
            let (good, lost) = cursor.take(plan, head, 16);
            read += good.end - good.start;
            counted += lost;
            assert_eq!(read + counted, cursor.next);
        }
        assert!(counted > 0 && read > 0);
    }

    #[test]
    fn a_forged_head_ends_nothing() {
        let mut cursor = RingCursor::default();
        let plan = cursor.plan(u64::MAX - 1, 16, 4);
        let _ = cursor.take(plan, 3, 16);
        assert!(cursor.plan(5, 16, 4).is_empty());
    }
}
