//! Memory that is used again, and what a burst has taken beyond what is needed afterwards.
//!
//! Queues and spare memory grow with the need, and stay as they are while packets pass. The owner
//! calls the `reclaim` functions every now and then: a queue that is much longer than what it holds
//! is cut, and memory that lay spare all the time since the last call is freed. Nothing is counted
//! for that on a packet's way.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A queue whose memory is no longer than this many bytes is left as it is.
const QUEUE_BYTES_IDLE: usize = 4 << 10;

/// How many times longer than what it holds a queue may be.
const ROOM: usize = 4;

/// Cuts a queue that is much longer than what it holds.
pub fn shorten<T>(queue: &mut VecDeque<T>) {
    let idle = QUEUE_BYTES_IDLE / size_of::<T>().max(1);
    if queue.capacity() > idle.max(queue.len() * ROOM) {
        queue.shrink_to(queue.len() * ROOM / 2);
    }
}

/// Memory that serves again, that which was used last first.
#[derive(Debug)]
pub struct Spares<T> {
    list: Vec<T>,
    /// The number in front that have lain here since the last [`Spares::reclaim`].
    untouched: usize,
}

impl<T> Default for Spares<T> {
    fn default() -> Self {
        Self { list: Vec::new(), untouched: 0 }
    }
}

impl<T> Spares<T> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Puts one to the others.
    #[inline]
    pub fn push(&mut self, spare: T) {
        self.list.push(spare);
    }

    /// Takes the one that was used last.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let spare = self.list.pop();
        self.untouched = self.untouched.min(self.list.len());
        spare
    }

    /// Takes the one that was used last of those that fit.
    pub fn take(&mut self, fits: impl FnMut(&T) -> bool) -> Option<T> {
        let at = self.list.iter().rposition(fits)?;
        self.untouched = self.untouched.min(self.list.len() - 1);
        Some(self.list.remove(at))
    }

    /// Takes out what was not needed since the last call.
    pub fn reclaim(&mut self) -> impl Iterator<Item = T> + '_ {
        let unused = self.untouched;
        self.untouched = self.list.len() - unused;
        self.list.drain(..unused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn a_queue_keeps_what_it_needs() {
        let mut queue: VecDeque<u64> = (0..100_000).collect();
        shorten(&mut queue);
        assert!(queue.capacity() >= 100_000);
        queue.truncate(10);
        shorten(&mut queue);
        assert!(queue.capacity() * 8 <= QUEUE_BYTES_IDLE, "{}", queue.capacity());
        assert_eq!(queue, (0..10).collect::<VecDeque<u64>>());
    }

    #[test]
    fn spares_that_were_needed_since_the_last_time_stay() {
        let mut spares = Spares::default();
        (0..10).for_each(|spare| spares.push(spare));
        assert_eq!(spares.reclaim().count(), 0, "they have just come");
        let taken: Vec<u32> = (0..3).filter_map(|_| spares.pop()).collect();
        taken.iter().for_each(|&spare| spares.push(spare));
        assert_eq!(spares.reclaim().collect::<Vec<u32>>(), vec![0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(spares.count(), 3);
        assert_eq!(spares.take(|&spare| spare < 9), Some(7));
        assert_eq!(spares.reclaim().count(), 2);
    }
}
