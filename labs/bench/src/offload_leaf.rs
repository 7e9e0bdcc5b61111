//! A back-end's side of the offload: one synthetic rank, which dumps its profile and comes to the
//! barrier.
//!
//! Owns the requests and their encoding. A dump is what a rank of the paper's benchmark does: to
//! put its profile into a packet and hand that to the tree, without waiting for it.

use std::time::{Duration, Instant};

use sapwood::{BackEnd, Error, Received, Tag, Values};
use sapwood_profile::{RankProfile, RankRows, Round};
use sapwood_report::nanoseconds;

use super::leaf::TAG;
use super::synthetic::{advance, profile};

/// Asks for a dump and for the barrier: [`Dump`].
pub(super) const DUMP: Tag = TAG + 2;
/// Asks for the median time of a dump since the last such question, in nanoseconds: `%uld`.
pub(super) const COST: Tag = TAG + 3;

/// The question for one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dump {
    /// The iteration, from 0.
    pub iteration: u64,
    /// Ranks of the program.
    pub ranks: u32,
    /// Events of each.
    pub events: u32,
    /// Whether the answer is to be reduced: a round, else rows.
    pub is_reduced: bool,
    /// The stream of the barrier.
    pub barrier: u32,
}

impl Dump {
    pub(super) fn values(self) -> Values {
        let values = Values::new().scalar(self.iteration).scalar(self.ranks).scalar(self.events);
        values.scalar(u32::from(self.is_reduced)).scalar(self.barrier)
    }

    fn read(received: &Received) -> Result<Self, Error> {
        let values = received.values();
        Ok(Self {
            iteration: values.scalar(0)?,
            ranks: values.scalar(1)?,
            events: values.scalar(2)?,
            is_reduced: values.scalar::<u32>(3)? != 0,
            barrier: values.scalar(4)?,
        })
    }
}

/// The rank of one back-end.
#[derive(Debug, Default)]
pub(super) struct Dumper {
    profile: Option<RankProfile>,
    took: Vec<Duration>,
}

impl Dumper {
    /// Answers one of the two questions.
    pub(super) fn answer(
        &mut self,
        back_end: &mut BackEnd,
        received: &Received,
    ) -> Result<(), Error> {
        if received.tag() == COST {
            self.took.sort_unstable();
            let median = self.took.get(self.took.len() / 2).copied().unwrap_or_default();
            self.took.clear();
            let median = nanoseconds(median);
            return back_end.send(received.stream, COST, median);
        }
        let dump = Dump::read(received)?;
        let rank = back_end.rank();
        let fits = |one: &RankProfile| one.events.len() == dump.events as usize;
        if !self.profile.as_ref().is_some_and(fits) {
            self.profile = None;
        }
        let make = || profile(rank, dump.ranks, dump.events, 0);
        let profile = self.profile.get_or_insert_with(make);
        advance(profile, dump.iteration);
        let begin = Instant::now();
        let values = if dump.is_reduced {
            let mut round = Round::new(dump.ranks);
            round.add(profile).expect("one rank of a program");
            round.encode()
        } else {
            RankRows::new(vec![profile.clone()]).expect("one rank of a program").encode()
        };
        back_end.send(received.stream, DUMP, values)?;
        self.took.push(begin.elapsed());
        back_end.send(dump.barrier, DUMP, 1_u64)
    }
}
