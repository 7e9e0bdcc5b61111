//! What one member measures: three random members, then one representative of each other cluster.
//!
//! A member sends at most K+8 probes to find its cluster among K. After that only the
//! representatives probe each other, at the pace of the signs of life, and the receipts of
//! transfers measure what is used.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::identity::{MILLISECOND, MemberId, Time};
use crate::member::{Member, Phase, Timer};
use crate::message::Message;

/// How many random members a member asks where no cluster is known.
const RANDOM_PROBES: u64 = 3;
/// How many probes a member may send beyond one for each cluster.
const SPARE_PROBES: u64 = 8;
/// How long traffic is given to calm down before a probe.
const CALM: Time = 8 * MILLISECOND;
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
    is_timed: bool,
}

impl Member {
    pub(crate) fn measure_first(&mut self) {
        self.probe_soon();
    }

    /// Probes in a moment: at once, news that is being passed on would be measured with it.
    pub(crate) fn probe_soon(&mut self) {
        if self.config.measures && !self.prober.is_timed {
            self.prober.is_timed = true;
            let delay = CALM + self.random.below(2 * CALM);
            self.wake_at(self.now + delay, Timer::Probe);
        }
    }

    pub(crate) fn probe_now(&mut self) {
        self.prober.is_timed = false;
        if self.phase != Phase::Joined {
            return;
        }
        if !self.clusters.is_empty() {
            let most = if self.prober.sent == 0 { SPARE_PROBES as usize } else { 1 };
            self.probe_clusters(most);
            return;
        }
        let others: Vec<MemberId> = self.view.alive().filter(|member| *member != self.me).collect();
        for _ in 0..RANDOM_PROBES.min(others.len() as u64) {
            let any = others[self.random.below(others.len() as u64) as usize];
            self.probe_once(any);
        }
    }

    fn probe_once(&mut self, member: MemberId) {
        if member != self.me && self.prober.tried.insert(member) {
            self.prober.waiting += 1;
            self.probe(member);
        }
    }

    /// Asks a random member of each of the largest clusters that were not asked yet: a fragment
    /// finds its cluster soonest where that is large already, and no member is asked by all.
    pub(crate) fn probe_clusters(&mut self, most: usize) {
        let own = self.clusters.label(self.me);
        let mut labels: Vec<u16> = (0..self.clusters.len() as u16)
            .filter(|label| Some(*label) != own)
            .filter(|label| {
                let name = self.clusters.representative(*label);
                name.is_some_and(|name| !self.prober.tried.contains(&name))
            })
            .collect();
        labels.sort_by_key(|label| Reverse(self.clusters.size(*label)));
        let budget = self.clusters.len() as u64 + SPARE_PROBES;
        for label in labels.into_iter().take(most) {
            if self.prober.sent >= budget || !self.config.measures {
                return;
            }
            self.prober.tried.extend(self.clusters.representative(label));
            if let Some(member) = self.any_member(label) {
                self.prober.waiting += 1;
                self.probe(member);
            }
        }
    }

    fn any_member(&mut self, label: u16) -> Option<MemberId> {
        let names = &self.clusters.table().labels.get(usize::from(label))?.1;
        let names = names.as_set();
        let at = self.random.below(names.len()) as usize;
        let name = names.iter().nth(at)?;
        self.view.owner(name).filter(|member| *member != self.me)
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
        let is_expected =
            round_trip < expected + expected / 2 + slack && round_trip + slack > expected / 3 * 2;
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
        (self.prober.rotation.is_multiple_of(2) && self.view.is_alive(far)).then_some(far)
    }

    pub(crate) fn need_clusters(&mut self, delay: Time) {
        self.wake_at(self.now + delay, Timer::Compute);
    }
}
