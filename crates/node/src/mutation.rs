//! Rules that can be broken on purpose, so that tests can show that they would be missed.

/// A rule of the node that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// What a new child sends again is not compared with what has come before.
    SkipOverlapCheck,
    /// What was sent up is forgotten at once instead of kept until it is acknowledged.
    ForgetKept,
    /// Packets are acknowledged when they have come, not when they are safe.
    AcknowledgeEarly,
    /// A new child is sent all kept downward packets, whatever it has received.
    ResendDownwards,
    /// Waves are not held back for orphans.
    ForgetOrphans,
    /// An orphan is taken in although a process between may still hold its packets.
    SkipFence,
    /// What passes late is not acknowledged apart from its wave.
    LoseLateParts,
}
