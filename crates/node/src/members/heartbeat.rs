//! Whether the neighbours are there: probes and the silence after them.
//!
//! Only a process that runs by itself can be judged by its silence. An application may be busy for
//! minutes without a look at its network, so that back-ends and the front-end are asked, but not
//! judged.
//!
//! **The judge is judged first.** A wake-up that comes late says that this process did not run, and
//! likely that no other on its host did. That time counts as no member's silence; and others are
//! given as much more as this process was late itself, to run and to be heard.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_packet::Rank;
use sapwood_wire::{Control, ProbeId};

use crate::interface::{Instant, Role};
use crate::members::children::Children;
use crate::members::membership::Membership;
use crate::turn::Turn;

/// How long a process may take to answer while an orphan of its waits to be taken in. One that is
/// just starting others may take as long as any silence.
pub(crate) const SUSPECT_LIMIT: Duration = Duration::from_millis(300);

/// How many probes are sent within the silence that counts as death.
pub(crate) const PROBES_PER_SILENCE: u32 = 6;

/// What this process knows of its own punctuality, and when it judges next.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats {
    /// Whether the parent has asked since the last beat.
    pub(crate) is_asked: bool,
    /// When a member that does not answer counts as gone.
    pub(crate) judgement_due: Option<Instant>,
    /// By how much this process's own wake-ups have come late: the most, which fades.
    lateness: Duration,
}

impl Heartbeats {
    pub(crate) fn judge_by(&mut self, at: Instant) {
        let due = self.judgement_due;
        self.judgement_due = Some(due.map_or(at, |due| due.min(at)));
    }

    /// How much longer than usual others may take, since this process itself is late.
    pub(crate) fn allowance(&self, turn: &Turn) -> Duration {
        self.lateness.min(turn.settings.recovery.silence.max(SUSPECT_LIMIT))
    }
}

impl Membership {
    /// Begins to probe, on the network's terms.
    pub(crate) fn begin_heartbeats(&mut self, turn: &mut Turn) {
        let silence = turn.settings.recovery.silence;
        // A back-end whose parent reads only when its application lets it cannot judge it by its
        // silence.
        let judges = turn.settings.role != Role::BackEnd || self.ancestry.parent_is_responsive;
        let is_on = turn.settings.recovery.is_on && !silence.is_zero() && judges;
        turn.heartbeat_due = is_on.then(|| turn.now + silence / PROBES_PER_SILENCE);
    }

    /// An orphan waits to know whether this child is there.
    pub(crate) fn suspect(&mut self, rank: Rank, turn: &mut Turn) {
        let now = turn.now;
        let Some(child) = self.children.get_mut(rank) else { return };
        let Some(link) = child.link else { return };
        if child.suspected.is_none() {
            child.suspected = Some(now);
            // Sooner than the silence limit, since an orphan waits for the answer.
            self.heartbeats.judge_by(now + SUSPECT_LIMIT);
            turn.send_control(link, &Control::Probe { probe: ProbeId::Heartbeat(now.0) });
        }
    }

    /// This process has run late: in that time no member can have been heard.
    pub(crate) fn extend_deadlines(&mut self, late: Duration, turn: &mut Turn) {
        let now = turn.now;
        // The recorded delay decays by half at each check, so that one punctual wake-up does not
        // end the allowance.
        self.heartbeats.lateness = late.max(self.heartbeats.lateness / 2);
        let later = |time: Instant| (time + late).min(now);
        let Turn { links, parent, .. } = turn;
        if let Some(open) = parent.and_then(|link| links.link_mut(link)) {
            open.heard = later(open.heard);
        }
        for (_, child) in self.children.iter_mut() {
            let Some(open) = child.link.and_then(|link| links.link_mut(link)) else { continue };
            // A child that has answered has answered.
            let waits = |asked: &&mut Instant| open.heard <= **asked;
            for asked in [&mut child.probed, &mut child.suspected] {
                if let Some(asked) = asked.as_mut().filter(waits) {
                    *asked = later(*asked);
                }
            }
            open.heard = later(open.heard);
        }
    }
}

impl Heartbeats {
    /// Tells the parent that this process is there, if its probes do not come through: a frame that
    /// takes longer than the silence is before them, here or in the system's memory.
    pub(crate) fn send_keep_alive(&mut self, turn: &mut Turn) {
        let was_asked = core::mem::take(&mut self.is_asked);
        let period = turn.settings.recovery.silence / PROBES_PER_SILENCE;
        let Some(parent) = turn.parent.filter(|_| !was_asked) else { return };
        if turn.links.link(parent).is_some_and(|link| turn.now < link.heard + period) {
            turn.send_control(parent, &Control::Echo { probe: None, clock: turn.now.0 });
        }
    }
}

impl Children {
    /// Asks all children that have answered the last time.
    pub(crate) fn ask_children(&mut self, turn: &mut Turn) {
        let now = turn.now;
        let mut asked = Vec::new();
        let Turn { links, .. } = turn;
        for (_, child) in self.iter_mut() {
            let Some(link) = child.link else { continue };
            let heard = links.link(link).map_or(now, |open| open.heard);
            // One that has not answered has the last probe before it still, and its time runs from
            // that.
            if child.probed.is_none_or(|probed| heard >= probed) {
                child.probed = Some(now);
                asked.push(link);
            }
        }
        for link in asked {
            turn.send_control(link, &Control::Probe { probe: ProbeId::Heartbeat(now.0) });
        }
    }
}

pub(crate) fn silent(time: Duration) -> String {
    alloc::format!("silent for {} ms", time.as_millis())
}
