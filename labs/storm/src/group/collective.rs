//! The operations of a group that the storm tries, and which way the values of each go.
//!
//! Owns [`Collective`]; what is given to each is of `value`, what must come of it of `oracle`.

/// An operation that members are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Collective {
    /// The root's bytes go to all.
    Broadcast,
    /// The root's bytes go to one virtual node.
    Send,
    /// The root has other bytes for each virtual node.
    Scatter,
    /// The root gets the sum of all.
    Reduce,
    /// The root gets the product of all, by a function that members define.
    ReduceDefined,
    /// The root gets the bytes of each.
    Gather,
    /// All get the sum of all, which the root has made.
    Allreduce,
    /// The same by a function that members define, which depends on the order.
    AllreduceInOrder,
    /// All get the bytes of each, which the root has put together.
    Allgather,
    /// Each gets a block of the sum of all, which the root has made.
    ReduceScatter,
    /// Each has other bytes for each virtual node.
    AllToAll,
}

/// Which way values go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    FromRoot,
    ToRoot,
    /// To the root, and from there to all.
    ThroughRoot,
    BetweenAll,
}

impl Collective {
    /// All of them.
    pub(super) const ALL: [Self; 11] = [
        Self::Broadcast,
        Self::Send,
        Self::Scatter,
        Self::Reduce,
        Self::ReduceDefined,
        Self::Gather,
        Self::Allreduce,
        Self::AllreduceInOrder,
        Self::Allgather,
        Self::ReduceScatter,
        Self::AllToAll,
    ];

    /// Its name in lines and reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Send => "send",
            Self::Scatter => "scatter",
            Self::Reduce => "reduce",
            Self::ReduceDefined => "reduce-defined",
            Self::Gather => "gather",
            Self::Allreduce => "allreduce",
            Self::AllreduceInOrder => "allreduce-in-order",
            Self::Allgather => "allgather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
        }
    }

    /// Which way its values go.
    pub(super) fn flow(self) -> Flow {
        match self {
            Self::Broadcast | Self::Send | Self::Scatter => Flow::FromRoot,
            Self::Reduce | Self::ReduceDefined | Self::Gather => Flow::ToRoot,
            Self::Allreduce | Self::AllreduceInOrder | Self::Allgather | Self::ReduceScatter => {
                Flow::ThroughRoot
            }
            Self::AllToAll => Flow::BetweenAll,
        }
    }

    /// Whether its answer is a list of values, each with a virtual node.
    pub(super) fn has_parts(self) -> bool {
        matches!(self, Self::Gather | Self::Allgather | Self::Scatter | Self::AllToAll)
    }

    /// A contribution is this many times shorter than that to a sum, since there are many in one
    /// answer.
    pub(super) fn share(self) -> usize {
        match self {
            Self::Broadcast
            | Self::Send
            | Self::Reduce
            | Self::ReduceDefined
            | Self::Allreduce
            | Self::ReduceScatter => 1,
            Self::Gather | Self::Scatter | Self::AllreduceInOrder => 4,
            Self::Allgather => 8,
            Self::AllToAll => 16,
        }
    }
}
