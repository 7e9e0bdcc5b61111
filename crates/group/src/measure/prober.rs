//! What one member measures: three random members, then one representative of each other cluster.
//!
//! A member probes at most K+8 others to find its cluster among K, some of them up to three times
//! where it was late itself. After that only the representatives probe each other, at the pace of
//! the signs of life, and the receipts of transfers measure what is used. Signs of life measure the
//! same links again, ever more seldom: members that start together are late without seeing it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::{Rank, RankSetRef};

use crate::identity::{MILLISECOND, MemberId, Time};
use crate::member::{Member, Phase, Timer};
use crate::message::Message;

/// How many random members a member asks where no cluster is known.
const RANDOM_PROBES: u64 = 3;
/// How many probes a member may send beyond one for each cluster.
const SPARE_PROBES: u64 = 8;
/// How long traffic is given to calm down before a probe.
const CALM: Time = 8 * MILLISECOND;
/// How often a round trip is taken again where this process was late meanwhile.
const REPEATS: u32 = 2;
/// A process that was late counts as late for this span.
const LATE_SPAN: Time = 200 * MILLISECOND;
/// A round trip is doubtful if this process was late by more than this part of it.
const LATE_SHARE: u64 = 8;
/// Signs of life until a link is measured again double up to this many.
const TURNS_MAX: u64 = 64;
/// How many receipts in a row must differ from the table before it is changed.
const SURPRISES: u32 = 2;

/// The measurements of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prober {
    /// How many probes were sent.
    pub(crate) sent: u64,
    /// To how many members, without those that were sent again.
    targets: u64,
    asked: BTreeMap<MemberId, Asked>,
    /// The least round trip of each link that was measured.
    least: BTreeMap<MemberId, Time>,
    again: Vec<Again>,
    turn: u64,
    late: Lateness,
    tried: BTreeSet<MemberId>,
    fresh: Vec<(MemberId, Time)>,
    surprises: BTreeMap<MemberId, u32>,
    rotation: usize,
    is_timed: bool,
}

/// A member that is being measured.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    is_sent: bool,
    repeats: u32,
    least: Option<Time>,
}

/// A link that a sign of life will measure again.
#[derive(Clone, Copy, Debug)]
struct Again {
    member: MemberId,
    due: u64,
    turns: u64,
}

/// By how much this process was late, and when that was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Lateness {
    by: Time,
    until: Time,
}

impl Prober {
    /// A timer went off now that was due at another time.
    pub(crate) fn note_timer(&mut self, due: Time, now: Time) {
        let by = now - due;
        if by >= self.late.by || now >= self.late.until {
            self.late = Lateness { by, until: now + LATE_SPAN };
        }
    }

    fn is_doubtful(&self, round_trip: Time, now: Time) -> bool {
        now < self.late.until && self.late.by > round_trip / LATE_SHARE
    }

    /// The link that the next sign of life is to measure, if one is due.
    pub(crate) fn next_again(&mut self) -> Option<MemberId> {
        self.turn += 1;
        let turn = self.turn;
        let due = self.again.iter_mut().filter(|one| one.due <= turn);
        let one = due.min_by_key(|one| one.due)?;
        one.turns = (2 * one.turns).min(TURNS_MAX);
        one.due = turn + one.turns;
        Some(one.member)
    }

    /// A link is measured again after one, two, four signs of life and so on.
    fn measure_again(&mut self, member: MemberId) {
        self.again.retain(|one| one.member != member);
        self.again.push(Again { member, due: self.turn + 1, turns: 1 });
    }
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
            self.prober.targets += 1;
            self.probe(member);
        }
    }

    /// Measures the distance to a member, over a link that is up: making it takes several round
    /// trips and much work.
    pub(crate) fn probe(&mut self, member: MemberId) {
        self.prober.asked.entry(member).or_default();
        self.connect(member);
        if self.links.is_up(member) {
            self.measure_asked(member);
        }
    }

    /// A probe was answered that was sent before its link was up: the making of the link is in its
    /// time, so that it is sent once more.
    pub(crate) fn measure_over_link(&mut self, member: MemberId) {
        if let Some(asked) = self.prober.asked.get_mut(&member) {
            asked.is_sent = false;
            self.measure_asked(member);
        }
    }

    /// Sends the probe that has waited for its link, if there is one.
    pub(crate) fn measure_asked(&mut self, member: MemberId) {
        let asked = self.prober.asked.get_mut(&member);
        if asked.is_some_and(|asked| !core::mem::replace(&mut asked.is_sent, true)) {
            self.prober.sent += 1;
            self.ping_for_distance(member);
        }
    }

    /// A member is gone, and what was asked of it will not be answered.
    pub(crate) fn prober_forgets(&mut self, gone: MemberId) {
        self.prober.least.remove(&gone);
        self.prober.surprises.remove(&gone);
        self.prober.again.retain(|one| one.member != gone);
        if self.prober.asked.remove(&gone).is_some() {
            self.report_when_answered();
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
            if self.prober.targets >= budget || !self.config.measures {
                return;
            }
            self.prober.tried.extend(self.clusters.representative(label));
            if let Some(member) = self.any_member(label) {
                self.prober.targets += 1;
                self.probe(member);
            }
        }
    }

    fn any_member(&mut self, label: u16) -> Option<MemberId> {
        let names = &self.clusters.table().labels.get(usize::from(label))?.1;
        let names = names.as_set();
        if names.is_empty() {
            return None;
        }
        let name = nth(names, self.random.below(names.len()))?;
        self.view.owner(name).filter(|member| *member != self.me)
    }

    /// A probe was answered. The least of several round trips counts where this process was late.
    pub(crate) fn measured(&mut self, member: MemberId, round_trip: Time) {
        let is_doubtful = self.prober.is_doubtful(round_trip, self.now);
        let Some(asked) = self.prober.asked.get_mut(&member) else { return };
        let least = asked.least.map_or(round_trip, |least| least.min(round_trip));
        asked.least = Some(least);
        if is_doubtful && asked.repeats < REPEATS {
            asked.repeats += 1;
            asked.is_sent = false;
            self.measure_asked(member);
            return;
        }
        self.prober.asked.remove(&member);
        if self.prober.least.insert(member, least).is_none() {
            self.prober.measure_again(member);
        }
        self.prober.fresh.push((member, least));
        self.report_when_answered();
    }

    /// A sign of life has come back: what is shorter than what is known is true, since nothing but
    /// a nearer way makes it so. What is longer may be work.
    pub(crate) fn noticed(&mut self, member: MemberId, round_trip: Time) {
        let ends = self.clusters.label(self.me).zip(self.clusters.label(member));
        let Some(ends) = ends.filter(|_| self.config.measures) else { return };
        let table = self.clusters.round_trip(ends.0, ends.1);
        // What it has measured itself, and where it has not, what the table says of the clusters.
        let known = self.prober.least.get(&member).copied().or(table);
        if known.is_some_and(|known| round_trip >= known / 3 * 2) {
            return;
        }
        self.prober.least.insert(member, round_trip);
        self.prober.measure_again(member);
        self.prober.fresh.push((member, round_trip));
        self.report_when_answered();
    }

    fn report_when_answered(&mut self) {
        if self.prober.asked.is_empty() && !self.prober.fresh.is_empty() {
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

/// The element of a set at this place, counted from 0.
fn nth(names: RankSetRef<'_>, mut at: u64) -> Option<Rank> {
    for &[first, last] in names.ranges() {
        let count = u64::from(last - first) + 1;
        if at < count {
            return Some(first + at as u32);
        }
        at -= count;
    }
    None
}
