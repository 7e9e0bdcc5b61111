//! Rules that can be broken on purpose, so that tests can show that they would be missed.
//!
//! Without the feature `mutations` no rule can be broken, and the questions cost nothing.

use crate::Member;

/// A rule of the member that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A transfer that comes a second time is delivered a second time.
    RepeatDelivery,
    /// What a dead child was to reach is not sent again.
    ForgetAdoption,
    /// A member acknowledges its whole set when it has its own part.
    AcknowledgeEarly,
    /// What the children do not reach is not sent point to point.
    DropRemainder,
    /// Parts whose contributors overlap are folded all the same.
    FoldOverlap,
    /// The root does not ask for contributions that are missing.
    SkipPull,
    /// Segments of one reduction may stand for different contributors.
    SkipAgreement,
    /// What is finished is never forgotten.
    KeepFinished,
    /// A member whose connection fails once counts as dead.
    BuryRefused,
    /// Time in which this member did not run counts as the silence of others.
    JudgeWhenLate,
    /// A member whose virtual nodes another one claims stays.
    KeepNames,
    /// Segments and parts are sent whatever waits on the link already.
    IgnoreCredit,
    /// A member that takes virtual nodes over is not told what was delivered to them.
    GiveWithoutList,
    /// A member delivers to virtual nodes that it is handing over.
    DeliverWhileGiving,
    /// The epoch of virtual nodes that are handed over is not raised.
    KeepEpoch,
    /// A member that gives a part of its virtual nodes away and stays goes on claiming them.
    KeepGiven,
}

impl Member {
    /// Has this member break a rule from now on; before it is given its first input.
    #[cfg(feature = "mutations")]
    pub fn mutate(&mut self, mutation: Mutation) {
        self.mutation = Some(mutation);
    }

    #[inline]
    pub(crate) fn breaks(&self, rule: Mutation) -> bool {
        cfg!(feature = "mutations") && self.mutation == Some(rule)
    }
}
