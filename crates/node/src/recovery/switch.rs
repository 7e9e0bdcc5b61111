//! Recovery switched on and off while the network runs.

use crate::interface::{NodeError, Role};
use crate::node::Node;

impl Node {
    /// Has the tree repair itself from now on, or not (front-end): without, what is below a
    /// process that dies is lost, as with [`Recovery::off`]. What is sent is kept either way, so
    /// that it can be switched on again.
    ///
    /// # Errors
    /// [`NodeError::NotFrontEnd`]; [`NodeError::NotRecovering`] when it is to be on and the network
    /// has begun without.
    pub fn switch_recovery(&mut self, is_on: bool) -> Result<(), NodeError> {
        if self.turn.settings.role != Role::FrontEnd {
            return Err(NodeError::NotFrontEnd);
        }
        if !self.turn.settings.recovery.is_on {
            return if is_on { Err(NodeError::NotRecovering) } else { Ok(()) };
        }
        if self.membership.repairs != is_on {
            self.membership.repairs = is_on;
            self.tell_ancestry();
        }
        Ok(())
    }

    /// Whether those whose parent is gone find a new one.
    pub(crate) fn repairs(&self) -> bool {
        self.turn.settings.recovery.is_on && self.membership.repairs
    }
}
