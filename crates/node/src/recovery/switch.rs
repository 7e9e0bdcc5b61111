//! Recovery switched on and off while the network runs.

use crate::members::ancestry::Ancestry;
use crate::turn::Turn;

impl Ancestry {
    /// Whether those whose parent is gone find a new one.
    pub(crate) fn repairs(&self, turn: &Turn) -> bool {
        turn.settings.recovery.is_on && self.has_recovery
    }
}
