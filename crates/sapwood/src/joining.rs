//! A back-end that another manager has started, on its way into the network: where its environment
//! sends it, under which rank, and how long it goes on trying.
//!
//! The front-end may be started later than its back-ends, or on a host whose name is not known yet,
//! so that neither the file nor the address has to be there at first.

use std::env;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sapwood_filter::Registry;
use sapwood_launch::{JOIN_TIMEOUT_VARIABLE, JOIN_VARIABLE, rank_by_manager};
use sapwood_packet::Rank;
use sapwood_runtime::{Attachment, PARENT_VARIABLE, RANK_VARIABLE, RuntimeError};
use sapwood_transport::{Address, Error as TransportError};

use crate::{BackEnd, Error, Result};

/// How long a back-end tries, if nothing else is said.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest time that it can be told to try.
const PATIENCE_SECONDS_MAX: f64 = 1e6;

/// Between two trials: the first pause, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_LONGEST: Duration = Duration::from_millis(500);

/// What stands for any rank that is free.
const ANY: &str = "any";

/// Where a back-end is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum JoinTarget {
    File(PathBuf),
    Address(Address),
}

/// What the environment says.
#[derive(Debug)]
pub(crate) struct Summons {
    target: JoinTarget,
    /// None for any that is free.
    rank: Option<Rank>,
    patience: Duration,
}

impl Summons {
    /// Nothing if this process was started by its network, or is sent nowhere.
    pub(crate) fn from_environment() -> Result<Option<Self>> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let Some(target) = variable(JOIN_VARIABLE).filter(|_| variable(PARENT_VARIABLE).is_none())
        else {
            return Ok(None);
        };
        let target = match target.starts_with("tcp:") || target.starts_with("unix:") {
            true => JoinTarget::Address(target.parse()?),
            false => JoinTarget::File(target.into()),
        };
        let rank = match variable(RANK_VARIABLE).as_deref() {
            Some(ANY) => None,
            Some(text) => {
                let number = text.parse();
                Some(number.map_err(|_| wrong(RANK_VARIABLE, "is neither a rank nor 'any'"))?)
            }
            None => rank_by_manager().map_err(RuntimeError::Launch)?.map(|(rank, _variable)| rank),
        };
        let patience = match variable(JOIN_TIMEOUT_VARIABLE) {
            Some(text) => seconds(&text)
                .ok_or_else(|| wrong(JOIN_TIMEOUT_VARIABLE, "is no number of seconds"))?,
            None => PATIENCE,
        };
        Ok(Some(Self { target, rank, patience }))
    }

    /// Joins there; retries within `patience` while the network is not up yet.
    pub(crate) fn follow(&self, registry: &Registry) -> Result<BackEnd> {
        let until = Instant::now() + self.patience;
        let mut pause = PAUSE_FIRST;
        loop {
            match self.try_once(registry) {
                Err(error) if may_pass(&error) && Instant::now() + pause < until => {
                    std::thread::sleep(pause);
                    pause = (2 * pause).min(PAUSE_LONGEST);
                }
                outcome => return outcome,
            }
        }
    }

    fn try_once(&self, registry: &Registry) -> Result<BackEnd> {
        match &self.target {
            JoinTarget::File(path) => BackEnd::attach_by_file_with(path, self.rank, registry),
            JoinTarget::Address(address) => {
                BackEnd::join(Attachment::at(address.clone(), self.rank)?, registry.clone())
            }
        }
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.parse::<f64>().ok()?;
    (0.0..=PATIENCE_SECONDS_MAX).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// Whether a later attempt may succeed.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::File { path, .. } => !path.exists(),
        Error::Runtime(RuntimeError::Transport(error)) => match error {
            TransportError::Refused { .. }
            | TransportError::TimedOut { .. }
            | TransportError::UnresolvableHost { .. } => true,
            // The key of a front-end that has just begun, or that has ended.
            TransportError::Io { cause, .. } => cause.kind() == ErrorKind::NotFound,
            _ => false,
        },
        _ => false,
    }
}

fn wrong(variable: &'static str, reason: &str) -> Error {
    RuntimeError::NotAttached { variable, reason: reason.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_end_waits_only_for_what_can_still_come() {
        let refused = TransportError::Refused { address: "tcp:127.0.0.1:1".parse().unwrap() };
        assert!(may_pass(&refused.into()));
        let absent = Error::File { path: "/nowhere/join".into(), reason: String::new() };
        assert!(may_pass(&absent));
        let damaged = Error::File { path: "/".into(), reason: "line 1".into() };
        assert!(!may_pass(&damaged));
        assert!(!may_pass(&Error::Ended { reason: "rank 2 has attached already".into() }));
    }

    #[test]
    fn patience_is_a_number_of_seconds() {
        assert_eq!(seconds("0.5"), Some(Duration::from_millis(500)));
        for text in ["", "-1", "NaN", "inf", "1e9", "5s"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
