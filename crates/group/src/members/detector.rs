//! Signs of life: each member asks the next one on the ring, once in a period; a suspect is asked
//! at once, and counts as dead after a bounded number of silent pings.
//!
//! The judge is judged first, as in a tree. By as much as a timer of this member was late its
//! process did not run: an answer may have come meanwhile that it has not read, and others, which
//! likely share its host, are given as much more time.

use alloc::collections::BTreeMap;

use crate::identity::{MemberId, Time};
use crate::member::{Member, Phase, Timer};
use crate::message::{Life, Message};
use crate::mutation::Mutation;
use crate::payload::Payload;
use crate::random::around;

/// How long a peer is not told the same again.
const REPEAT: Time = 200_000_000;
/// At most one ping in this many goes to a member that is taken for dead.
const DEAD_SHARE: u64 = 4;
/// After this number of heartbeats without a change their period doubles, and how often at most.
const QUIET_BEATS: u32 = 16;
const QUIET_DOUBLINGS: u32 = 2;

/// A ping gets at least this part of its patience more: a process that was asleep until a moment
/// ago may not have read yet what has come.
const LEAST_SHARE: Time = 16;

/// Pings under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detector {
    pings: BTreeMap<u64, Ping>,
    next: u64,
    lateness: TimerDelay,
    told: BTreeMap<MemberId, Time>,
    compared: BTreeMap<MemberId, Time>,
    /// The versions of the view and the table at the last heartbeat, and how many heartbeats they
    /// have been the same for.
    watched: (u64, u64),
    quiet: u32,
    pub(crate) leave_looks: u32,
}

/// What a ping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PingKind {
    SignOfLife,
    /// Its round trip counts.
    Distance,
}

#[derive(Clone, Copy, Debug)]
struct Ping {
    to: MemberId,
    sent: Time,
    /// When its answer is late.
    due: Time,
    /// What of that was given because this process was late itself.
    allowed: Time,
    tries: u32,
    kind: PingKind,
    /// Whether the link was up already: else its round trip has the work of making it.
    is_over_link: bool,
}

/// By how much timers of this member were late: the most, which fades.
#[derive(Clone, Copy, Debug, Default)]
struct TimerDelay {
    most: Time,
    noted: Time,
}

impl TimerDelay {
    /// What is left now, if it halves in each span.
    fn left(self, now: Time, span: Time) -> Time {
        let halvings = u32::try_from((now - self.noted) / span.max(1)).unwrap_or(u32::MAX);
        self.most.checked_shr(halvings).unwrap_or(0)
    }
}

impl Detector {
    /// Gives for how many heartbeats nothing has changed.
    fn note_heartbeat(&mut self, watched: (u64, u64)) -> u32 {
        let is_same = core::mem::replace(&mut self.watched, watched) == watched;
        self.quiet = if is_same { self.quiet.saturating_add(1) } else { 0 };
        self.quiet
    }

    pub(crate) fn may_tell_dead(&mut self, member: MemberId, now: Time) -> bool {
        may_repeat(&mut self.told, member, now)
    }

    pub(crate) fn may_compare(&mut self, member: MemberId, now: Time) -> bool {
        may_repeat(&mut self.compared, member, now)
    }

    fn is_asked(&self, member: MemberId) -> bool {
        self.pings.values().any(|ping| ping.to == member && ping.kind == PingKind::SignOfLife)
    }
}

fn may_repeat(times: &mut BTreeMap<MemberId, Time>, member: MemberId, now: Time) -> bool {
    times.retain(|_, time| *time + REPEAT > now);
    times.insert(member, now).is_none()
}

impl Member {
    /// How long a sign of life may take.
    pub(crate) fn ping_patience(&self) -> Time {
        self.config.ping_timeout.max(4 * self.clusters.longest())
    }

    /// A timer goes off that was due at another time.
    pub(crate) fn note_lateness(&mut self, due: Time) {
        let left = self.detector.lateness.left(self.now, self.config.ping_timeout);
        if self.now - due >= left {
            self.detector.lateness = TimerDelay { most: self.now - due, noted: self.now };
        }
    }

    /// How much longer than usual others may take, since this process is late itself.
    fn allowance(&self) -> Time {
        let patience = self.ping_patience();
        let left = self.detector.lateness.left(self.now, self.config.ping_timeout);
        left.clamp(patience / LEAST_SHARE, patience)
    }

    /// The periodic sign of life.
    pub(crate) fn watch(&mut self) {
        if self.phase != Phase::Joined {
            return;
        }
        let watched = (self.view.version(), self.clusters.table().version);
        let quiet = self.detector.note_heartbeat(watched);
        let doublings = (quiet / QUIET_BEATS).min(QUIET_DOUBLINGS);
        let period = around(&mut self.random, self.config.watch_period << doublings);
        self.wake_at(self.now + period, Timer::Watch);
        self.forget_past();
        let may_ask = self.random.below(DEAD_SHARE) == 0;
        let lost = if may_ask { self.past.next_to_ask(self.now) } else { None };
        if let Some(lost) = lost {
            self.ping(lost, 1, PingKind::SignOfLife);
        } else if let Some(far) = self.far_to_probe() {
            self.probe(far);
        } else if let Some(member) = self.prober.next_again() {
            self.suspect(member);
        } else if self.random.below(2) == 0 && self.view.len() > 2 {
            let others: alloc::vec::Vec<MemberId> =
                self.view.alive().filter(|member| *member != self.me).collect();
            let any = others[self.random.below(others.len() as u64) as usize];
            self.suspect(any);
        } else {
            let next = self.view.after(self.me).next();
            next.into_iter().for_each(|next| self.suspect(next));
        }
    }

    /// Asks for a sign of life, unless it is asked for already.
    pub(crate) fn suspect(&mut self, member: MemberId) {
        if !self.detector.is_asked(member) && member != self.me {
            self.ping(member, self.config.ping_tries, PingKind::SignOfLife);
        }
    }

    /// A ping whose round trip counts.
    pub(crate) fn ping_for_distance(&mut self, member: MemberId) {
        self.ping(member, self.config.ping_tries, PingKind::Distance);
    }

    fn ping(&mut self, to: MemberId, tries: u32, kind: PingKind) {
        self.detector.next += 1;
        let number = self.detector.next;
        let is_over_link = self.links.is_up(to);
        let (sent, due) = (self.now, self.now + self.ping_patience());
        let ping = Ping { to, sent, due, allowed: 0, tries, kind, is_over_link };
        self.detector.pings.insert(number, ping);
        let (digest, table) = (self.view.digest(), self.clusters.table().version);
        self.send(to, Message::Ping { number, digest, table, padding: Payload::default() });
        self.wake_at(due, Timer::Ping(number));
    }

    pub(crate) fn pinged(&mut self, from: MemberId, number: u64, digest: u64, table: u64) {
        if self.phase != Phase::Joined {
            return;
        }
        let own = (self.view.digest(), self.clusters.table().version);
        self.send(from, Message::Pong { number, digest: own.0, table: own.1 });
        self.compare(from, digest);
        self.offer_table(from, table);
    }

    pub(crate) fn ponged(&mut self, from: MemberId, number: u64, digest: u64, table: u64) {
        let known = self.detector.pings.get(&number).copied();
        let Some(ping) = known.filter(|ping| ping.to == from) else { return };
        self.detector.pings.remove(&number);
        self.compare(from, digest);
        self.offer_table(from, table);
        let round_trip = self.now - ping.sent;
        match (ping.kind, ping.is_over_link) {
            (PingKind::Distance, true) => self.measured(from, round_trip),
            (PingKind::Distance, false) => self.measure_over_link(from),
            (PingKind::SignOfLife, true) => self.noticed(from, round_trip),
            (PingKind::SignOfLife, false) => {}
        }
    }

    pub(crate) fn ping_is_late(&mut self, number: u64) {
        let Some(ping) = self.detector.pings.remove(&number) else { return };
        let patience = self.ping_patience();
        let allowance = self.allowance();
        if self.now > ping.due + patience {
            // This member was stopped itself, and cannot tell which others were silent.
            self.ping(ping.to, ping.tries, ping.kind);
        } else if ping.allowed < allowance && !self.breaks(Mutation::JudgeWhenLate) {
            let due = self.now + allowance - ping.allowed;
            self.detector.pings.insert(number, Ping { due, allowed: allowance, ..ping });
            self.wake_at(due, Timer::Ping(number));
        } else if ping.tries > 1 {
            self.ping(ping.to, ping.tries - 1, ping.kind);
        } else if self.view.is_alive(ping.to) {
            self.bury(ping.to, Life::Dead);
        }
    }
}
