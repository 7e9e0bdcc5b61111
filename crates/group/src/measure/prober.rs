//! What one member measures: three random members, then one representative of each other cluster.
//!
//! A member sends at most K+8 probes to find its cluster among K. After that only the
//! representatives probe each other, at the pace of the signs of life, and the receipts of
//! transfers measure what is used.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::identity::{MILLISECOND, MemberId, Time};
use crate::member::{Member, Timer};
use crate::message::Message;

/// How many random members a member asks where no cluster is known.
const RANDOM_PROBES: u64 = 3;
/// How many probes a member may send beyond one for each cluster.
const SPARE_PROBES: u64 = 8;
/// How many receipts in a row must differ from the table before it is changed.
const SURPRISES: u32 = 2;

/// The measurements of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prober {
    /// How many probes were sent.
    pub(crate) sent: u64,
    waiting: u32,
    tried: BTreeSet<MemberId>,
    fresh: Vec<(MemberId, Time)>,
    surprises: BTreeMap<MemberId, u32>,
    rotation: usize,
}

impl Member {
    pub(crate) fn measure_first(&mut self) {
        if !self.config.measures {
            return;
        }
        if self.clusters.is_empty() {
            let others: Vec<MemberId> =
                self.view.alive().filter(|member| *member != self.me).collect();
            for _ in 0..RANDOM_PROBES.min(others.len() as u64) {
                let any = others[self.random.below(others.len() as u64) as usize];
                self.probe_once(any);
            }
        } else {
            self.probe_clusters(SPARE_PROBES as usize);
        }
    }

    fn probe_once(&mut self, member: MemberId) {
        if member != self.me && self.prober.tried.insert(member) {
            self.prober.waiting += 1;
            self.probe(member);
        }
    }

    /// Asks representatives of clusters that were not asked yet, at most `most` of them.
    pub(crate) fn probe_clusters(&mut self, most: usize) {
        let own = self.clusters.label(self.me);
        let mut unknown: Vec<MemberId> = (0..self.clusters.len() as u16)
            .filter(|label| Some(*label) != own)
            .filter_map(|label| self.clusters.representative(label))
            .filter(|member| self.view.is_alive(*member) && !self.prober.tried.contains(member))
            .collect();
        let budget = self.clusters.len() as u64 + SPARE_PROBES;
        for _ in 0..most {
            if unknown.is_empty() || self.prober.sent >= budget || !self.config.measures {
                return;
            }
            let at = self.random.below(unknown.len() as u64) as usize;
            let member = unknown.swap_remove(at);
            self.probe_once(member);
        }
    }

    /// A probe was answered.
    pub(crate) fn measured(&mut self, member: MemberId, round_trip: Time) {
        self.prober.waiting = self.prober.waiting.saturating_sub(1);
        self.prober.fresh.push((member, round_trip));
        if self.prober.waiting == 0 {
            self.report();
        }
    }

    fn report(&mut self) {
        let distances = core::mem::take(&mut self.prober.fresh);
        match self.view.registrar() {
            Some(registrar) if registrar == self.me => self.reported(self.me, &distances),
            Some(registrar) => self.send(registrar, Message::Report { distances }),
            None => {}
        }
    }

    /// The acknowledgement of a transfer took this long: noticed if it is not what is expected.
    pub(crate) fn observed(&mut self, member: MemberId, round_trip: Time) {
        let ends = self.clusters.label(self.me).zip(self.clusters.label(member));
        let expected = ends.and_then(|(from, to)| self.clusters.round_trip(from, to));
        let Some(expected) = expected.filter(|_| self.config.measures) else { return };
        let slack = MILLISECOND;
        let is_expected = round_trip < expected + expected / 2 + slack
            && round_trip + slack > expected / 3 * 2;
        if is_expected {
            self.prober.surprises.remove(&member);
            return;
        }
        let count = self.prober.surprises.entry(member).or_insert(0);
        *count += 1;
        if *count >= SURPRISES {
            self.prober.surprises.remove(&member);
            self.prober.fresh.push((member, round_trip));
            self.report();
        }
    }

    /// For the representative of a cluster: another one's, in turn, every other time.
    pub(crate) fn far_to_probe(&mut self) -> Option<MemberId> {
        let own = self.clusters.label(self.me)?;
        if self.clusters.representative(own) != Some(self.me) || !self.config.measures {
            return None;
        }
        self.prober.rotation += 1;
        let count = self.clusters.len();
        let label = (self.prober.rotation / 2 % count) as u16;
        let far = self.clusters.representative(label).filter(|_| label != own)?;
        (self.prober.rotation % 2 == 0 && self.view.is_alive(far)).then_some(far)
    }

    pub(crate) fn need_clusters(&mut self, delay: Time) {
        self.wake_at(self.now + delay, Timer::Compute);
    }
}
