//! How a back-end that another manager has started joins the network: its target, its rank, and how
//! long it retries, all from its environment.
//!
//! The front-end may be started later than its back-ends, or on a host whose name is not known yet,
//! so neither the file nor the address needs to exist at first.

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

/// How long a back-end retries by default.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest time that can be set.
const PATIENCE_SECONDS_MAX: f64 = 1e6;

/// The first pause between two attempts, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_LONGEST: Duration = Duration::from_millis(500);

/// The word for any free rank.
const ANY: &str = "any";

/// Where a back-end joins.
#[derive(Clone, Debug, PartialEq, Eq)]
enum JoinTarget {
    File(PathBuf),
    Address(Address),
}

/// The settings of the environment.
#[derive(Debug)]
pub(crate) struct Summons {
    target: JoinTarget,
    /// None for any that is free.
    rank: Option<Rank>,
    patience: Duration,
}

impl Summons {
    /// None if this process was started by its network, or has no target.
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
            // The key file of a front-end that has just started, or has ended.
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
