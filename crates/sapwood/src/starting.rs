//! Waiting for a tree that starts: for all of it, or for the first of its back-ends.

use std::time::Duration;

use sapwood_node::Instant;
use sapwood_packet::RankSet;
use sapwood_runtime::clock;

#[cfg(doc)]
use crate::NetworkBuilder;
use crate::shared::Shared;
use crate::{Error, Network, Result};

/// How much longer than its processes' own limit the front-end waits for the news that they have
/// not started.
const STARTUP_ANSWER_TIME: Duration = Duration::from_secs(2);

/// How long further failures are gathered after the first, so that one error names them all.
const FURTHER_FAILURES_TIME: Duration = Duration::from_millis(100);

/// What is waited for.
const WHOLE_TREE: &str = "answer of the whole tree";

/// How long a network that is being opened waits for its tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartPatience {
    /// For every process.
    pub(crate) whole: Duration,
    /// Before a part of the back-ends is enough, if it ever is.
    pub(crate) part: Option<Duration>,
    /// Whether processes that do not start are no failure.
    pub(crate) allows_missing: bool,
}

impl Network {
    /// Whether processes of the tree may still come that were to be there from the beginning; only
    /// of a network that was opened without them ([`NetworkBuilder::open_after`]). Those that come
    /// are in [`Network::everyone`], and take part in streams that are opened from then on.
    pub fn is_starting(&mut self) -> bool {
        self.shared.borrow_mut().is_starting()
    }

    pub(crate) fn wait_until_ready(&mut self, patience: StartPatience) -> Result<()> {
        let result = self.shared.borrow_mut().await_start(patience);
        match result {
            Ok(back_ends) => {
                self.everyone = back_ends;
                Ok(())
            }
            Err(error) => {
                self.close_once()?;
                Err(error)
            }
        }
    }
}

impl Shared {
    fn is_starting(&mut self) -> bool {
        let Some(until) = self.starts_until else { return false };
        self.collect();
        let is_over = self.ready.take().is_some() || self.ended.is_some() || clock() >= until;
        if is_over {
            self.starts_until = None;
        }
        !is_over
    }

    /// Waits for the tree; gives the back-ends that are there.
    fn await_start(&mut self, patience: StartPatience) -> Result<RankSet> {
        // Every process gives up its own children in time; only the reports may take longer.
        let whole = patience.whole.saturating_add(STARTUP_ANSWER_TIME);
        match patience.part.filter(|&part| part < whole) {
            Some(part) => self.await_part(part, clock() + whole),
            None => self.await_whole(whole, patience.allows_missing),
        }
    }

    fn await_whole(&mut self, timeout: Duration, allows_missing: bool) -> Result<RankSet> {
        let has_failed = |shared: &Self| !shared.failures.is_empty() && !allows_missing;
        let waited = self.wait(WHOLE_TREE, Some(timeout), |shared| {
            if has_failed(shared) { Ok(Some(None)) } else { Ok(shared.ready.take().map(Some)) }
        });
        match waited {
            Ok(Some(back_ends)) => Ok(back_ends),
            Ok(None) => Err(self.start_error(FURTHER_FAILURES_TIME)),
            // Processes whose reports are late may be slow, and join later.
            Err(Error::Timeout { .. }) if allows_missing => {
                Ok(self.driver.application().back_ends())
            }
            Err(error) => Err(error),
        }
    }

    /// Waits this long for the whole tree, and then, until all starts are over, for a back-end.
    fn await_part(&mut self, time: Duration, until: Instant) -> Result<RankSet> {
        match self.wait(WHOLE_TREE, Some(time), |shared| Ok(shared.ready.take())) {
            Err(Error::Timeout { .. }) => {}
            waited => return waited,
        }
        self.starts_until = Some(until);
        let waited = self.wait(WHOLE_TREE, Some(until.since(clock())), |shared| {
            let there = shared.driver.application().back_ends();
            Ok((!there.is_empty() || shared.ready.is_some()).then_some(there))
        });
        match waited {
            Err(Error::Timeout { .. }) => {
                self.starts_until = None;
                Ok(self.driver.application().back_ends())
            }
            waited => waited,
        }
    }
}
