//! The seam between what is started and how: one implementation per way of starting.

use crate::{LaunchError, Order, Process};

/// A way of starting processes on a host.
pub trait Launcher {
    /// Checks that this launcher can start something on `host`, before anything is started.
    ///
    /// May block for as long as the system's resolver does: call it before the poll loop runs.
    ///
    /// # Errors
    /// [`LaunchError::UnresolvableHost`] or [`LaunchError::HostOutOfReach`].
    fn check_host(&self, host: &str) -> Result<(), LaunchError>;

    /// Starts a process and returns once its program runs.
    ///
    /// # Errors
    /// Any [`LaunchError`] about programs, directories, descriptors and the system's limits.
    fn start(&self, order: &Order<'_>) -> Result<Process, LaunchError>;

    /// Starts several processes, and answers for each order in turn. Cheaper than one start after
    /// another where what they have in common needs to be looked at only once.
    fn start_all(&self, orders: &[Order<'_>]) -> Vec<Result<Process, LaunchError>> {
        orders.iter().map(|order| self.start(order)).collect()
    }
}
