//! Connections that this member makes: several at once, each with a deadline.

use std::collections::{BTreeMap, VecDeque};

use sapwood_group::MemberId;
use sapwood_transport::{Address, Dial, Error, Key, Link, LinkTerms, Poller, Progress};

use super::token::GroupToken;
use crate::failure::Failure;

/// Which member is dialled, and where.
#[derive(Clone, Debug)]
pub(super) struct Dialled {
    /// The member, unless only its address is known.
    pub(super) member: Option<MemberId>,
    pub(super) address: String,
}

/// The end of an attempt that did not become a link.
#[derive(Debug)]
pub(super) struct FailedDial {
    pub(super) dialled: Dialled,
    pub(super) failure: Failure,
}

/// One way to a member.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) address: Address,
    pub(super) terms: LinkTerms,
}

struct OpenDial {
    dialled: Dialled,
    dials: Vec<Dial>,
    /// Ways that are tried where those before them fail.
    rest: VecDeque<Way>,
    failure: Option<Error>,
    until: u64,
}

/// All attempts under way.
pub(super) struct Dials {
    key: Key,
    attempts: BTreeMap<u32, OpenDial>,
    next: u32,
    deadline: u64,
}

impl Dials {
    /// None; each attempt may take `deadline` nanoseconds.
    pub(super) fn new(key: Key, deadline: u64) -> Self {
        Self { key, attempts: BTreeMap::new(), next: 0, deadline }
    }

    /// Begins an attempt by the first of some ways, at all addresses of its host side by side; the
    /// next way is tried where one fails.
    pub(super) fn begin(
        &mut self,
        dialled: Dialled,
        ways: Vec<Way>,
        poller: &Poller,
        now: u64,
    ) -> Result<(), FailedDial> {
        let index = self.next;
        self.next = self.next.wrapping_add(1);
        let mut attempt = OpenDial {
            dialled,
            dials: Vec::new(),
            rest: ways.into(),
            failure: None,
            until: now.saturating_add(self.deadline),
        };
        if !attempt.turn_to_next_way(&self.key, index, poller) {
            return Err(attempt.fail());
        }
        self.attempts.insert(index, attempt);
        Ok(())
    }

    /// Goes on with an attempt; gives its link or its failure once there is one.
    pub(super) fn advance(
        &mut self,
        index: u32,
        poller: &Poller,
    ) -> Option<Result<(Link, Dialled), FailedDial>> {
        let attempt = self.attempts.get_mut(&index)?;
        for mut dial in std::mem::take(&mut attempt.dials) {
            // The next step may have another descriptor.
            let _ = poller.remove(&dial);
            match dial.advance() {
                Ok(Progress::Done(link)) => {
                    let attempt = self.attempts.remove(&index)?;
                    attempt.forget(poller);
                    return Some(Ok((link, attempt.dialled)));
                }
                Ok(Progress::WantRead | Progress::WantWrite) => attempt.watch(dial, index, poller),
                Err(error) => attempt.failure = Some(error),
            }
        }
        if attempt.dials.is_empty() && !attempt.turn_to_next_way(&self.key, index, poller) {
            return self.attempts.remove(&index).map(|attempt| Err(attempt.fail()));
        }
        None
    }

    /// The attempts that have taken too long.
    pub(super) fn expire(&mut self, poller: &Poller, now: u64) -> Vec<FailedDial> {
        let late: Vec<u32> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| attempt.until <= now)
            .map(|(index, _)| *index)
            .collect();
        let waited = self.deadline / 1_000_000;
        late.into_iter()
            .filter_map(|index| self.attempts.remove(&index))
            .map(|attempt| {
                attempt.forget(poller);
                let reason =
                    format!("no answer from {} within {waited} ms", attempt.dialled.address);
                FailedDial { dialled: attempt.dialled, failure: Failure::other(reason) }
            })
            .collect()
    }

    /// When to call [`Dials::expire`].
    pub(super) fn next_tick(&self) -> Option<u64> {
        self.attempts.values().map(|attempt| attempt.until).min()
    }
}

impl OpenDial {
    /// Turns to the next way that does not fail at once; false if there is none.
    fn turn_to_next_way(&mut self, key: &Key, index: u32, poller: &Poller) -> bool {
        while let Some(way) = self.rest.pop_front() {
            match Dial::start_each(&way.address, key, way.terms) {
                Ok((dials, failure)) => {
                    self.failure = failure.or(self.failure.take());
                    for dial in dials {
                        self.watch(dial, index, poller);
                    }
                }
                Err(error) => self.failure = Some(error),
            }
            if !self.dials.is_empty() {
                return true;
            }
        }
        false
    }

    fn watch(&mut self, dial: Dial, index: u32, poller: &Poller) {
        match poller.add(&dial, GroupToken::Dial(index).to_number(), dial.interest()) {
            Ok(()) => self.dials.push(dial),
            Err(error) => self.failure = Some(error),
        }
    }

    fn forget(&self, poller: &Poller) {
        for dial in &self.dials {
            let _ = poller.remove(dial);
        }
    }

    fn fail(self) -> FailedDial {
        let failure = self.failure.map_or_else(
            || Failure::other(format!("{} has no address", self.dialled.address)),
            Failure::from,
        );
        FailedDial { dialled: self.dialled, failure }
    }
}
