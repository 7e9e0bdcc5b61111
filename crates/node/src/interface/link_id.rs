//! The number of a link, which the node and its driver share.

/// A link's number; chosen by the runtime, small, used again after the link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u32);

impl LinkId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
