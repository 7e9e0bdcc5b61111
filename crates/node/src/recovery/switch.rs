//! Recovery switched on and off while the network runs.

use crate::node::Node;

impl Node {
    /// Whether those whose parent is gone find a new one.
    pub(crate) fn repairs(&self) -> bool {
        self.turn.settings.recovery.is_on && self.membership.repairs
    }
}
