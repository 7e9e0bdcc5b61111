//! Neighbours that are silent for too long, and count as gone.
//!
//! The state of probes and the excuses for a late judge are in `members::heartbeat`; here stands
//! what follows from silence: the link is closed, as if its process had ended.

use alloc::vec::Vec;
use core::time::Duration;

use crate::interface::Instant;
use crate::members::children::State;
use crate::members::heartbeat::{PROBES_PER_SILENCE, SUSPECT_LIMIT, silent};
use crate::recovery::change::TreeChange;
use crate::turn::Turn;

impl TreeChange<'_> {
    /// Judges which neighbours have been silent for too long, asks the others, and sends what has
    /// waited for a heartbeat.
    pub(crate) fn check_liveness(&mut self) {
        if self.turn.has_ended {
            self.turn.heartbeat_due = None;
            return;
        }
        let silence = self.turn.settings.recovery.silence;
        let is_due = |due: &mut Instant| *due <= self.turn.now;
        let beat = self.turn.heartbeat_due.take_if(is_due);
        let judgement = self.members.heartbeats.judgement_due.take_if(is_due);
        if beat.is_some() {
            self.turn.heartbeat_due = Some(self.turn.now + silence / PROBES_PER_SILENCE);
        }
        if let Some(due) = beat.into_iter().chain(judgement).min() {
            // Before anything is judged: while this process did not run it heard no peer.
            self.members.extend_deadlines(self.turn.now.since(due), self.turn);
            self.close_silent_children(silence);
            self.judge_parent(silence);
        }
        if beat.is_some() {
            self.members.heartbeats.send_keep_alive(self.turn);
            self.members.children.ask_children(self.turn);
            self.streams.hand_over_rest(self.turn);
            for at in 0..self.streams.len() {
                // What is left of acknowledgements travels with the heartbeat.
                self.streams.at(at).acknowledge_to_parent(self.turn);
            }
        }
    }

    /// Children that have not answered for too long are gone.
    fn close_silent_children(&mut self, silence: Duration) {
        let (now, allowance) = (self.turn.now, self.members.heartbeats.allowance(self.turn));
        let (mut dead, mut is_cleared, mut next) = (Vec::new(), false, None::<Instant>);
        let Turn { links, .. } = &mut *self.turn;
        for (_, child) in self.members.children.iter_mut() {
            let Some(link) = child.link else { continue };
            // Any byte counts, not only an echo, which may stand behind a long frame.
            let heard = links.link(link).map_or(now, |open| open.heard);
            let mut limit: Option<Instant> = None;
            if child.suspected.is_some_and(|since| heard > since) {
                child.suspected = None;
                is_cleared = true;
            } else if let Some(since) = child.suspected {
                let is_starting = child.state != State::Reported;
                let patience = if is_starting { SUSPECT_LIMIT.max(silence) } else { SUSPECT_LIMIT };
                limit = Some(since + patience + allowance);
            }
            let is_asked = child.probed.is_some_and(|probed| heard < probed);
            if is_asked && child.is_responsive && !silence.is_zero() {
                let limit_of_silence = heard + silence + allowance;
                limit = Some(limit.map_or(limit_of_silence, |limit| limit.min(limit_of_silence)));
            }
            match limit {
                Some(limit) if limit <= now => {
                    child.suspected = None;
                    dead.push((link, now.since(heard)));
                }
                Some(limit) => next = Some(next.map_or(limit, |next| next.min(limit))),
                None => {}
            }
        }
        if let Some(next) = next {
            self.members.heartbeats.judge_by(next);
        }
        // After the loop, since closing a link changes the children.
        for (link, silence) in dead {
            self.link_silent(link, &silent(silence));
        }
        if is_cleared {
            self.refuse_applicants();
        }
    }

    /// A parent that answers at any time and has not been heard for too long is gone.
    fn judge_parent(&mut self, silence: Duration) {
        let parent = self.turn.parent.filter(|_| self.members.ancestry.parent_is_responsive);
        let Some(link) = parent.filter(|_| !silence.is_zero()) else { return };
        let Some(heard) = self.turn.links.link(link).map(|open| open.heard) else { return };
        let limit = heard + silence + self.members.heartbeats.allowance(self.turn);
        if limit > self.turn.now {
            // An exact alarm only when two probes are missing: set after each one, it would wake
            // this process for nothing.
            if self.turn.now.since(heard) > silence / PROBES_PER_SILENCE * 2 {
                self.members.heartbeats.judge_by(limit);
            }
            return;
        }
        self.link_silent(link, &silent(self.turn.now.since(heard)));
    }
}
