//! Bytes on their way from one process to another: bounded, late, in order, and sometimes cut off.

use alloc::collections::VecDeque;

/// Virtual time, in nanoseconds.
pub type Time = u64;

/// How fast a link is.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// Nanoseconds from one end to the other.
    pub latency: Time,
    /// At most this many nanoseconds more, at random.
    pub jitter: Time,
    /// Bytes per microsecond.
    pub bytes_per_microsecond: u64,
    /// Bytes that may be under way and unread in one direction.
    pub room_bytes: usize,
}

impl Speed {
    /// Raises the number of bytes that may be under way until `bytes` bytes pass within a time: a
    /// run whose links are too slow for its streams would not come to rest.
    pub fn let_pass(&mut self, bytes: u64, within: Time) {
        // Bytes that are read make room again after a round trip.
        let round_trip = 2 * (self.latency + self.jitter);
        let room = bytes.saturating_mul(round_trip) / within.max(1);
        self.room_bytes = self.room_bytes.max(room as usize);
    }
}

/// One direction of a link.
#[derive(Debug, Default)]
pub struct Pipe {
    /// The bytes that were written and not read, in order.
    bytes: VecDeque<u8>,
    /// How many of them have arrived.
    arrived: usize,
    /// The others: when they arrive, and how many.
    under_way: VecDeque<(Time, usize)>,
    /// When the end arrives, behind everything.
    end: Option<Time>,
    has_ended: bool,
    /// When the line is free for the next bytes.
    free_at: Time,
    last_arrival: Time,
}

impl Pipe {
    /// Bytes that it holds.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether there is something to see at its far end: bytes, or the end.
    pub fn is_readable(&self) -> bool {
        self.arrived > 0 || self.is_at_end()
    }

    /// Whether everything has been read, and nothing will follow.
    pub fn is_at_end(&self) -> bool {
        self.has_ended && self.arrived == 0
    }

    /// Whether its end is there or under way, so that nothing more can be put in.
    pub fn is_closed(&self) -> bool {
        self.end.is_some()
    }

    /// Puts bytes in; gives when they arrive. `extra` is chance's part of the latency.
    pub fn write(&mut self, count: usize, now: Time, speed: &Speed, extra: Time) -> Time {
        let begin = self.free_at.max(now);
        self.free_at = begin + count as u64 * 1000 / speed.bytes_per_microsecond.max(1);
        let at = (self.free_at + speed.latency + extra).max(self.last_arrival);
        self.last_arrival = at;
        self.under_way.push_back((at, count));
        at
    }

    /// Puts bytes in that arrive at once.
    pub fn put(&mut self, part: &[u8]) {
        self.bytes.extend(part);
        self.arrived += part.len();
    }

    /// The writer has closed; that arrives at once.
    pub fn finish(&mut self) {
        self.end.get_or_insert(0);
        self.has_ended = true;
    }

    /// The last bytes that were put in.
    pub fn newest(&mut self, count: usize) -> &[u8] {
        let start = self.bytes.len() - count;
        &self.bytes.make_contiguous()[start..]
    }

    /// One piece of the bytes that [`Pipe::write`] counts.
    pub fn extend(&mut self, part: &[u8]) {
        self.bytes.extend(part);
    }

    /// The writer has closed; gives when that arrives.
    pub fn close(&mut self, now: Time, latency: Time) -> Time {
        let at = (now + latency).max(self.last_arrival);
        *self.end.get_or_insert(at)
    }

    /// Drops the bytes that are under way except for the first `kept`, which still arrive.
    pub fn cut(&mut self, mut kept: usize) {
        let mut left = VecDeque::new();
        for (at, count) in self.under_way.drain(..) {
            let part = count.min(kept);
            kept -= part;
            if part > 0 {
                left.push_back((at, part));
            }
        }
        self.under_way = left;
        let under_way: usize = self.under_way.iter().map(|&(_, count)| count).sum();
        self.bytes.truncate(self.arrived + under_way);
    }

    /// Bytes that have not arrived.
    pub fn under_way(&self) -> usize {
        self.bytes.len() - self.arrived
    }

    /// Moves the bytes that are due to the reader; returns whether there were any.
    pub fn arrive(&mut self, now: Time) -> bool {
        let mut has_arrived = false;
        while let Some(&(at, count)) = self.under_way.front()
            && at <= now
        {
            self.under_way.pop_front();
            self.arrived += count;
            has_arrived = true;
        }
        let ends = self.under_way.is_empty() && self.end.is_some_and(|at| at <= now);
        if ends && !self.has_ended {
            self.has_ended = true;
            has_arrived = true;
        }
        has_arrived
    }

    /// Takes the bytes that have arrived, as far as there is room; returns their number.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.arrived);
        let (first, second) = self.bytes.as_slices();
        let part = first.len().min(count);
        into[..part].copy_from_slice(&first[..part]);
        into[part..count].copy_from_slice(&second[..count - part]);
        self.bytes.drain(..count);
        self.arrived -= count;
        count
    }

    /// Drops this many of the bytes that have arrived, or all.
    pub fn skip(&mut self, most: usize) {
        let count = most.min(self.arrived);
        self.bytes.drain(..count);
        self.arrived -= count;
    }

    /// Drops all bytes: no process will read them.
    pub fn discard(&mut self) {
        self.bytes.clear();
        self.under_way.clear();
        self.arrived = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEED: Speed =
        Speed { latency: 100, jitter: 0, bytes_per_microsecond: 1000, room_bytes: 100 };

    #[test]
    fn bytes_arrive_late_in_order_and_before_the_end() {
        let mut pipe = Pipe::default();
        pipe.extend(b"oak");
        assert_eq!(pipe.write(3, 0, &SPEED, 50), 153);
        pipe.extend(b"elm");
        assert_eq!(pipe.write(3, 1, &SPEED, 0), 153, "it does not overtake");
        assert_eq!(pipe.close(2, 100), 153);
        assert!(!pipe.arrive(152) && !pipe.is_readable());
        assert!(pipe.arrive(153) && !pipe.is_at_end());
        let mut bytes = [0; 4];
        assert_eq!(pipe.read(&mut bytes), 4);
        assert_eq!(&bytes, b"oake");
        assert_eq!(pipe.read(&mut bytes), 2);
        assert!(pipe.is_at_end());
    }

    #[test]
    fn bytes_that_are_put_in_arrive_at_once() {
        let mut pipe = Pipe::default();
        pipe.put(b"oak");
        pipe.finish();
        assert_eq!(pipe.newest(2), b"ak");
        assert!(pipe.is_readable() && !pipe.is_at_end());
        assert_eq!(pipe.read(&mut [0; 9]), 3);
        assert!(pipe.is_at_end());
    }

    #[test]
    fn a_cut_loses_the_end_of_what_is_under_way() {
        let mut pipe = Pipe::default();
        pipe.extend(b"oak");
        pipe.write(3, 0, &SPEED, 0);
        pipe.arrive(1000);
        pipe.extend(b"elm");
        pipe.write(3, 1000, &SPEED, 0);
        pipe.cut(1);
        pipe.close(1000, 0);
        pipe.arrive(5000);
        let mut bytes = [0; 9];
        assert_eq!(pipe.read(&mut bytes), 4);
        assert_eq!(&bytes[..4], b"oake");
        assert!(pipe.is_at_end());
    }
}
