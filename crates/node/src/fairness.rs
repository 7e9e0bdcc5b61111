//! Filters that take long: other streams have their turn in between.
//!
//! A node is one thread, so that a slow filter keeps everybody waiting while it runs. It is let run
//! for one wave at a time then, and its stream rests twice as long as that took: two thirds of the
//! time are left to others. The clock is the runtime's, which says how long an input took.

use core::time::Duration;

use sapwood_packet::StreamId;

use crate::stream::{Stream, Way};
use crate::{Instant, Node};

/// Most waves that go through filters in one input before others have their turn.
const WAVES_PER_INPUT: u32 = 32;
/// A filter that takes this long for its waves of one input is slow.
const SLOW: Duration = Duration::from_millis(1);

impl Node {
    /// The stream whose filters have made packets since the last question, if there is one: the
    /// caller may say how long that took, with [`Node::spent`].
    pub fn take_transformed(&mut self) -> Option<StreamId> {
        self.transformed.take().map(|(stream, _)| stream)
    }

    /// So much time has gone by while a stream's filters ran.
    pub fn spent(&mut self, stream: StreamId, now: Instant, time: Duration) {
        let Some(open) = self.streams.get_mut(stream) else { return };
        open.is_slow = time >= SLOW;
        if open.is_slow {
            let until = now + time * 2;
            open.rests_until = Some(until);
            self.rest_due = Some(self.rest_due.map_or(until, |due| due.min(until)));
        }
    }

    /// Whether a stream's next wave has to wait until others have had their turn.
    #[inline]
    pub(crate) fn has_to_rest(&mut self, at: usize) -> bool {
        let now = self.now;
        let stream = self.streams.at(at);
        if stream.way != Way::Transform {
            return false;
        }
        let rests_until = stream.rests_until.take_if(|until| *until <= now);
        if rests_until.is_none() && stream.rests_until.is_some() {
            return true;
        }
        let most = if stream.is_slow { 1 } else { WAVES_PER_INPUT };
        let id = stream.id;
        let is_enough = self.transformed.is_some_and(|(last, waves)| last == id && waves >= most);
        if is_enough {
            self.streams.at(at).rests_until = Some(now);
            self.rest_due = Some(self.rest_due.map_or(now, |due| due.min(now)));
        }
        is_enough
    }

    /// A stream's filters are about to run for a wave.
    pub(crate) fn note_transformed(&mut self, at: usize) {
        let id = self.streams.at(at).id;
        let waves = self.transformed.filter(|&(last, _)| last == id).map_or(0, |(_, waves)| waves);
        self.transformed = Some((id, waves + 1));
    }

    /// Goes on with the streams that have rested.
    pub(crate) fn end_rests(&mut self) {
        if self.rest_due.take_if(|due| *due <= self.now).is_none() {
            return;
        }
        for at in 0..self.streams.len() {
            if self.streams.at(at).rests_until.is_some() {
                self.emit_ready(at);
                self.end_if_deserted(at);
            }
        }
        let left = self.streams.iter().filter_map(|stream: &Stream| stream.rests_until).min();
        self.rest_due = left;
    }
}
