//! What back-ends send in a story, before anything moves.

use sapwood_node::NodeError;
use sapwood_packet::{IntoValues, Rank, StreamId, Wave};

use super::stories::number_of;
use super::{TAG, Tree};

impl Tree {
    /// A back-end sends a number in its next wave.
    pub fn send(&mut self, rank: Rank, stream: StreamId, value: i64) -> Result<(), NodeError> {
        let wave = self.oracle.next_wave(stream, rank);
        self.send_in(rank, stream, value, wave)
    }

    /// A back-end sends a number in a wave of its choice.
    pub fn send_in(
        &mut self,
        rank: Rank,
        stream: StreamId,
        value: i64,
        wave: Wave,
    ) -> Result<(), NodeError> {
        let index = self.by_rank[&rank];
        self.tell_time(index);
        self.processes[index].node.application().send(stream, TAG, value, Some(wave))?;
        self.oracle.sent(stream, wave, rank, value);
        self.drain(index);
        Ok(())
    }

    /// A back-end sends anything.
    pub fn send_values(
        &mut self,
        rank: Rank,
        stream: StreamId,
        values: impl IntoValues,
        wave: Option<Wave>,
    ) -> Result<(), NodeError> {
        let index = self.by_rank[&rank];
        self.tell_time(index);
        self.processes[index].node.application().send(stream, TAG, values, wave)?;
        self.drain(index);
        Ok(())
    }

    /// A back-end sends anything under a tag of its own, in a wave of its choice.
    pub fn send_tagged(
        &mut self,
        rank: Rank,
        stream: StreamId,
        tag: i32,
        values: impl IntoValues,
        wave: Wave,
    ) -> Result<(), NodeError> {
        let index = self.by_rank[&rank];
        self.tell_time(index);
        self.processes[index].node.application().send(stream, tag, values, Some(wave))?;
        self.drain(index);
        Ok(())
    }

    /// Tells a process that notes events when its application calls, as the runtime does.
    fn tell_time(&mut self, index: usize) {
        let node = &mut self.processes[index].node;
        if node.notes_hops() {
            node.set_time(self.now);
        }
    }

    /// A back-end sends numbers in its next waves, before anything moves.
    pub fn send_many(&mut self, rank: Rank, stream: StreamId, count: u64) -> Result<(), NodeError> {
        for _ in 0..count {
            let wave = self.oracle.next_wave(stream, rank);
            self.send_in(rank, stream, number_of(rank, wave), wave)?;
        }
        Ok(())
    }
}
