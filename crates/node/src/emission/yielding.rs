//! Streams take turns: after some waves one lets the others go on.

use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::transform::fairness::WAVES_PER_INPUT;
use crate::transform::offload::Offload;
use crate::transform::route::Route;
use crate::turn::Turn;

impl Streams {
    /// Goes on with the streams that have let others have their turn.
    pub(crate) fn end_yields(&mut self, turn: &mut Turn) {
        if turn.yields_until.take().is_none() {
            return;
        }
        for at in 0..self.len() {
            if core::mem::take(&mut self.at(at).yields) {
                self.at(at).emit_ready(turn);
                self.at(at).end_if_deserted(turn);
            }
        }
    }
}

impl Stream {
    /// Whether a stream's next wave is not to be sent on here and now: others have their turn
    /// first, or its filters are offloaded.
    #[inline]
    pub(crate) fn has_to_wait(&mut self, turn: &mut Turn) -> bool {
        if self.route != Route::Transform {
            return false;
        }
        if self.offload.is_some() {
            return self.is_left_to_job(turn);
        }
        let most = if self.filter_timing.is_slow { 1 } else { WAVES_PER_INPUT };
        let id = self.id;
        let is_enough = turn.transformed.is_some_and(|(last, waves)| last == id && waves >= most);
        if is_enough {
            self.yields = true;
            turn.yields_until = Some(turn.now);
        }
        is_enough
    }

    /// A stream's filters are about to run for a wave.
    pub(crate) fn note_transformed(&mut self, turn: &mut Turn) {
        let id = self.id;
        let waves = turn.transformed.filter(|&(last, _)| last == id).map_or(0, |(_, waves)| waves);
        turn.transformed = Some((id, waves + 1));
    }

    /// Its upward filters are offloaded from now on, until they are quick again.
    pub(crate) fn begin_offload(&mut self) {
        let is_own_matter = self.telemetry.is_some();
        if self.route == Route::Transform && self.offload.is_none() && !is_own_matter {
            self.filter_timing.is_slow = false;
            self.filter_timing.moves += 1;
            self.offload = Some(Offload::of_slow_filters(self.filter_timing.moves).into());
        }
    }
}
