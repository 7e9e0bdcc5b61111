//! The interface between the processes to start and the way to reach a host: one implementation for
//! each launch method.
//!
//! Processes on this machine are started by [`Local::start`](crate::Local::start). On another host
//! everything is started the same way, whatever leads there: a *client* on this machine, such as
//! `ssh`, runs one command on the host and joins its three standard streams to its own. All that a
//! launcher has to say is how that client is called; what is said over the streams is a
//! [`Session`](crate::Session)'s matter.

use crate::{LaunchError, Order};

/// A way of having a command run on a host.
pub trait Launcher {
    /// Its name on command lines.
    fn name(&self) -> &'static str;

    /// Checks that this launcher may reach `host`, before anything is started.
    ///
    /// May block for as long as the system's resolver does: call it before the poll loop runs.
    ///
    /// # Errors
    /// [`LaunchError::UnresolvableHost`] or [`LaunchError::HostOutOfReach`].
    fn check_host(&self, host: &str) -> Result<(), LaunchError>;

    /// The client that has a shell on `host` run `command`, with its standard input, output and
    /// error.
    fn client(&self, host: &str, command: &str) -> Order<'static>;

    /// Whether a client that ended with this text before the host answered may succeed at a second
    /// trial.
    fn is_worth_retrying(&self, words: &str) -> bool;

    /// Whether a line on a client's standard error is the resource manager's own about the end of
    /// what it was running, of which the tree tells in its own words.
    fn is_about_its_end(&self, _line: &str) -> bool {
        false
    }
}
