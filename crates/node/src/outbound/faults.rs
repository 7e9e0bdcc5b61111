//! Why a wave lacks back-ends: told upwards, or kept for the answer at the front-end.

use sapwood_filter::FilterError;
use sapwood_packet::{Rank, RankSet, StreamId, Wave};
use sapwood_wire::{Cause, Control, Ranges};

use crate::interface::{Reason, Role};
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    /// Tells the parent why a wave lacks back-ends. The next parent is told again, if there is one
    /// before the wave is safe.
    pub(crate) fn pass_on_fault(
        &mut self,
        id: StreamId,
        wave: Option<Wave>,
        rank: Rank,
        ranks: RankSet,
        reason: Reason,
        turn: &mut Turn,
    ) {
        match self.get_mut(id) {
            Some(stream) => stream.tell_fault(wave, rank, ranks, reason, turn),
            None => turn.send_fault(id, wave, rank, &ranks, reason),
        }
    }
}

impl Stream {
    /// Says why a wave lacks back-ends: here at the front-end, else upwards.
    pub(crate) fn tell_failure(
        &mut self,
        wave: Wave,
        ranks: RankSet,
        cause: Cause,
        why: &dyn core::fmt::Display,
        turn: &mut Turn,
    ) {
        let rank = turn.rank();
        let reason = Reason::new(cause, alloc::format!("{why} (at rank {rank})"));
        if turn.settings.role == Role::FrontEnd {
            self.faults.add(Some(wave), ranks, reason);
        } else {
            self.tell_fault(Some(wave), rank, ranks, reason, turn);
        }
    }

    /// As [`Streams::pass_on_fault`], of this stream.
    pub(crate) fn tell_fault(
        &mut self,
        wave: Option<Wave>,
        rank: Rank,
        ranks: RankSet,
        reason: Reason,
        turn: &mut Turn,
    ) {
        // Kept until the wave is safe: a new parent that has not heard of it must be told again.
        if self.keeps && !self.is_immediate() && !ranks.is_empty() {
            self.faults.add(wave, ranks.clone(), reason.clone());
        }
        turn.send_fault(self.id, wave, rank, &ranks, reason);
    }

    /// Tells here and at the front-end what costs no wave anything now.
    pub(crate) fn complain(&mut self, wave: Wave, reason: &str, turn: &mut Turn) {
        let rank = turn.rank();
        let reason = alloc::format!("{reason} (at rank {rank})");
        let stream = self.id;
        if let Some(parent) = turn.parent {
            let (back_ends, reason) = (Ranges::default(), reason.clone());
            let (wave, cause) = (Some(wave), Cause::FilterFailed);
            let fault = Control::Fault { stream, wave, rank, back_ends, reason, cause };
            turn.send_control(parent, &fault);
        }
        turn.report_fault(stream, reason);
    }

    /// The state of another process could not be taken over.
    pub(crate) fn complain_of_loss(&mut self, error: &FilterError, turn: &mut Turn) {
        let ended = self.ended;
        self.complain(ended, &alloc::format!("the state of a process is lost: {error}"), turn);
    }
}

/// Why a filter's failure costs back-ends a wave.
pub(crate) fn cause_of(error: &FilterError) -> Cause {
    match error {
        FilterError::Memory(_) => Cause::OutOfMemory,
        _ => Cause::FilterFailed,
    }
}
