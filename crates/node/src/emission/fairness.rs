//! Streams take turns: after some waves one lets the others go on.

use crate::node::Node;
use crate::streams::stream::Stream;
use crate::transform::offload::Offload;
use crate::transform::route::Route;

use crate::transform::fairness::WAVES_PER_INPUT;

impl Node {
    /// Whether a stream's next wave is not to be sent on here and now: others have their turn
    /// first, or its filters run apart.
    #[inline]
    pub(crate) fn has_to_wait(&mut self, at: usize) -> bool {
        let stream = self.streams.at(at);
        if stream.route != Route::Transform {
            return false;
        }
        if stream.offload.is_some() {
            return self.is_left_to_job(at);
        }
        let most = if stream.pace.is_slow { 1 } else { WAVES_PER_INPUT };
        let id = stream.id;
        let is_enough =
            self.turn.transformed.is_some_and(|(last, waves)| last == id && waves >= most);
        if is_enough {
            self.streams.at(at).yields = true;
            self.streams.yields_until = Some(self.turn.now);
        }
        is_enough
    }

    /// A stream's filters are about to run for a wave.
    pub(crate) fn note_transformed(&mut self, at: usize) {
        let id = self.streams.at(at).id;
        let waves =
            self.turn.transformed.filter(|&(last, _)| last == id).map_or(0, |(_, waves)| waves);
        self.turn.transformed = Some((id, waves + 1));
    }

    /// Goes on with the streams that have let others have their turn.
    pub(crate) fn end_yields(&mut self) {
        if self.streams.yields_until.take().is_none() {
            return;
        }
        for at in 0..self.streams.len() {
            if core::mem::take(&mut self.streams.at(at).yields) {
                self.emit_ready(at);
                self.end_if_deserted(at);
            }
        }
    }
}

impl Stream {
    /// Its upward filters run apart from now on, until they are quick again.
    pub(crate) fn begin_offload(&mut self) {
        let is_own_matter = self.telemetry.is_some();
        if self.route == Route::Transform && self.offload.is_none() && !is_own_matter {
            self.pace.is_slow = false;
            self.pace.moves += 1;
            self.offload = Some(Offload::of_slow_filters(self.pace.moves).into());
        }
    }
}
