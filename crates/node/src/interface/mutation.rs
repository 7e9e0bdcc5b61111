//! Rules that can be broken on purpose, so that tests can show that they would be missed.
//!
//! Without the feature `mutations` no rule can be broken, and the questions cost nothing.

/// A rule of the node that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// What a new child sends again is not compared with what has come before.
    SkipOverlapCheck,
    /// What was sent up is forgotten instead of sent again to a new parent.
    ForgetKept,
    /// A communication process acknowledges what it has sent on, not what is safe.
    AcknowledgeEarly,
    /// What comes down a second time is taken a second time.
    RepeatDownwards,
    /// Waves are not held back for orphans.
    ForgetOrphans,
    /// An orphan is taken in although a process between may still hold its packets.
    SkipFence,
    /// Late parts are acknowledged with their wave, not when they are safe themselves.
    LoseLateParts,
    /// On a stream that does not wait, what comes a second time is taken a second time.
    RepeatSingles,
    /// Children are told that one wave more is safe than is.
    AcknowledgeTooFar,
    /// The members absent from a wave are not remembered.
    ForgetAbsences,
    /// A wave's contributors are those of the packet that came last.
    ReplaceContributors,
    /// Children are granted half of the credit that they have used.
    HalveCredit,
    /// The first frame that is kept is not sent again to a new parent.
    SkipFirstKept,
    /// A new parent is told one wave more than is safe.
    ResumeTooFar,
    /// Chunks of one packet may stand for different back-ends.
    SkipChunkCheck,
    /// What a new child sends again is found only where all of it has come before. As long as
    /// superseded processes are remembered, nothing comes again in part: they are forgotten, too.
    FindWholeOverlapsOnly,
    /// Processes whose children have been taken in elsewhere are not remembered.
    ForgetSuperseded,
}
