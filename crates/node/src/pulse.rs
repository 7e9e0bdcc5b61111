//! Whether the neighbours are there: probes and the silence after them.
//!
//! Only a process that runs by itself can be judged by its silence. An application may be busy for
//! minutes without a look at its network, so that back-ends and the front-end are asked, but not
//! judged. A judge that has not run itself for a while judges nobody.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_packet::Rank;
use sapwood_wire::Control;

use crate::{Instant, LinkId, Node, Output, Role};

/// How long a process may take to answer while an orphan of its waits to be taken in.
const SUSPICION: Duration = Duration::from_millis(300);

/// Probes are sent so many times within the silence that counts as death.
const BEATS: u32 = 3;

impl Node {
    /// Begins to probe, on the network's terms.
    pub(crate) fn begin_beats(&mut self) {
        let silence = self.settings.recovery.silence;
        let judges = self.settings.role != Role::BackEnd || self.membership.parent_keeps_time;
        let is_on = self.settings.recovery.is_on && !silence.is_zero() && judges;
        self.membership.beat_due = is_on.then(|| self.now + silence / BEATS);
    }

    /// When something is to be done here.
    pub(crate) fn beat_deadline(&self) -> Option<Instant> {
        let suspicions = self.membership.suspicion();
        [self.membership.beat_due, suspicions.map(|since| since + SUSPICION)]
            .into_iter()
            .flatten()
            .min()
    }

    /// An orphan waits to know whether this child is there.
    pub(crate) fn suspect(&mut self, rank: Rank) {
        let now = self.now;
        let Some(child) = self.membership.child_mut(rank) else { return };
        let Some(link) = child.link else { return };
        if child.suspected.is_none() {
            child.suspected = Some(now);
            self.send_control(link, &Control::Probe { number: now.0 });
        }
    }

    /// Looks who has been silent, and asks again.
    pub(crate) fn beat(&mut self) {
        if self.has_ended {
            self.membership.beat_due = None;
            return;
        }
        self.judge_suspects();
        let Some(due) = self.membership.beat_due.filter(|&due| due <= self.now) else { return };
        let silence = self.settings.recovery.silence;
        let period = silence / BEATS;
        self.membership.beat_due = Some(self.now + period);
        if self.now.since(due) >= period {
            // This process did not run: what came meanwhile has not been read yet.
            return self.forgive();
        }
        self.ask_children(silence);
        self.hand_over_rest(false);
        for at in 0..self.streams.len() {
            self.acknowledge_to_parent(at);
        }
        let parent = self.membership.parent.filter(|_| self.membership.parent_keeps_time);
        if let Some(link) = parent
            && let Some(open) = self.links.link(link)
            && self.now.since(open.heard) >= silence + period
        {
            let reason = silent(silence + period);
            self.outputs.push_back(Output::Hangup(link));
            if let Some(open) = self.links.link_mut(link) {
                open.outbox.end_run();
            }
            self.keep_ended_runs();
            self.links.close(link);
            self.parent_lost(&reason, true);
        }
    }

    fn forgive(&mut self) {
        let now = self.now;
        let mut links: Vec<LinkId> = self.membership.child_links();
        links.extend(self.membership.parent);
        for link in links {
            if let Some(open) = self.links.link_mut(link) {
                open.heard = now;
            }
        }
        for (_, child) in self.membership.children_mut() {
            child.probed = None;
        }
    }

    fn ask_children(&mut self, silence: Duration) {
        let now = self.now;
        let (mut dead, mut asked) = (Vec::new(), Vec::new());
        let Self { membership, links, .. } = self;
        for (_, child) in membership.children_mut() {
            let Some(link) = child.link else { continue };
            let heard = links.link(link).map_or(now, |open| open.heard);
            match child.probed {
                Some(probed) if heard < probed => {
                    if child.keeps_time && now.since(probed) >= silence {
                        dead.push(link);
                    }
                }
                _ => {
                    child.probed = Some(now);
                    asked.push(link);
                }
            }
        }
        for link in asked {
            self.send_control(link, &Control::Probe { number: now.0 });
        }
        for link in dead {
            self.outputs.push_back(Output::Hangup(link));
            self.link_down(link, &silent(silence));
        }
    }

    fn judge_suspects(&mut self) {
        let now = self.now;
        let (mut dead, mut is_clear) = (Vec::new(), false);
        let Self { membership, links, .. } = self;
        for (_, child) in membership.children_mut() {
            let Some(since) = child.suspected else { continue };
            let Some(link) = child.link else {
                child.suspected = None;
                continue;
            };
            if links.link(link).is_some_and(|open| open.heard > since) {
                child.suspected = None;
                is_clear = true;
            } else if now.since(since) >= SUSPICION {
                child.suspected = None;
                dead.push(link);
            }
        }
        for link in dead {
            self.outputs.push_back(Output::Hangup(link));
            self.link_down(link, &silent(SUSPICION));
        }
        if is_clear {
            self.refuse_applicants();
        }
    }
}

fn silent(time: Duration) -> String {
    alloc::format!("silent for {} ms", time.as_millis())
}
