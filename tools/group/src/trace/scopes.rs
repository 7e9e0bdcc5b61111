//! Scopes over the hops of a group, for the command that has them: `sapwood trace scope`.

use std::path::PathBuf;
use std::time::Duration;

use sapwood_command_line::exit::{Failure, complain};
use sapwood_hosts::signals::{Signal, Signals};
use sapwood_report::quantity;
use sapwood_trace::{HopScope, ScopeFigures, ScopedHops};

use super::measure::Scopes;
use super::passage::Trace;
use super::{FollowWishes, Follower, PAUSE, ROOM, Reading};
use crate::{KeyArguments, MissingKey};

/// Bytes of an event on its way, at most.
const EVENT_BYTES: u64 = 48;

/// Which group is followed, and how.
#[derive(Clone, Debug)]
pub struct GroupHopWishes {
    /// The address of any member.
    pub address: String,
    /// The file with its key; without it that of the environment.
    pub key: Option<PathBuf>,
    /// Whether its links are not encrypted.
    pub is_plain: bool,
    /// For how long.
    pub time: Duration,
    /// For a member's answer.
    pub timeout: Duration,
    /// Scopes are given figures as often, at least.
    pub every: Duration,
    /// Bytes of events that are read per second, of all members.
    pub bytes_per_s: u64,
}

impl GroupHopWishes {
    /// Events of all members that one reading takes, at most.
    fn events_max(&self, pause: Duration) -> u32 {
        let bytes = u128::from(self.bytes_per_s) * pause.as_millis() / 1000;
        u32::try_from(bytes / u128::from(EVENT_BYTES)).unwrap_or(u32::MAX)
    }
}

/// What is known after a reading of all members.
pub struct GroupRound<'a> {
    trace: &'a mut Trace,
    reading: &'a Reading,
    elapsed: Duration,
    is_last: bool,
}

/// What is lacking in figures, and of how many members they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLosses {
    /// Members at the begin.
    pub members: u64,
    /// Of these, members that have not answered.
    pub missing: u64,
    /// Events that were overwritten before they were read, since the begin.
    pub overwritten: u64,
    /// Events that were left at members.
    pub unread: u64,
}

impl<'a> GroupRound<'a> {
    pub(super) fn new(trace: &'a mut Trace, reading: &'a Reading, elapsed: Duration) -> Self {
        Self { trace, reading, elapsed, is_last: false }
    }
}

impl GroupRound<'_> {
    /// Since the begin.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Whether nothing more comes.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The figures of the scope of this number, from 0, of all that was settled since they were
    /// taken before; empty ones of a number that no scope has.
    #[must_use]
    pub fn take_scope(&mut self, number: usize) -> ScopeFigures {
        let Scopes { all, .. } = &mut self.trace.scopes;
        all.get_mut(number).map(ScopedHops::take).unwrap_or_default()
    }

    /// What is lacking.
    #[must_use]
    pub fn losses(&self) -> GroupLosses {
        GroupLosses {
            members: self.reading.labels.len() as u64,
            missing: self.reading.missing.len() as u64,
            overwritten: self.reading.lost,
            unread: self.reading.left_unread(),
        }
    }
}

/// Follows the operations of a group until the time is over or a signal comes, and calls `after`
/// after each reading of its members; gives the signal.
///
/// # Errors
/// [`Failure`] where there is no key, or the member at the address does not answer.
pub fn follow_scopes(
    wishes: &GroupHopWishes,
    scopes: impl IntoIterator<Item = HopScope>,
    after: &mut dyn FnMut(GroupRound<'_>),
) -> Result<Option<Signal>, Failure> {
    let arguments = KeyArguments { key: wishes.key.clone(), plain: wishes.is_plain };
    let key = arguments.read(MissingKey::Refused)?;
    let mut signals = Signals::take_over().map_err(|error| Failure::own(&error))?;
    let pause = wishes.every.min(PAUSE);
    let follow = FollowWishes {
        address: &wishes.address,
        key: &key,
        encryption: arguments.encryption(),
        duration: wishes.time,
        room: ROOM,
        timeout: wishes.timeout,
        pause,
        events_max: Some(wishes.events_max(pause)),
    };
    let scopes = scopes.into_iter().map(ScopedHops::new).collect();
    let mut follower = Follower::of_group(&follow, scopes)?;
    let signal = follower.follow(&mut signals, after);
    follower.trace.finish();
    let elapsed = Duration::from_secs_f64(follower.reading.seconds);
    after(GroupRound { is_last: true, ..follower.round(elapsed) });
    let Reading { lapsed, missing, .. } = &follower.reading;
    if *lapsed > 0 {
        let times = quantity::counted(u128::from(*lapsed), "times");
        complain(format_args!(
            "{times} a member stopped recording, because no reading arrived in time: what it had \
             recorded by then is lost, uncounted"
        ));
    }
    for (member, why) in missing {
        let label = follower.reading.label(*member);
        complain(format_args!("member {label} did not answer: {why}"));
    }
    Ok(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_in_bytes_is_one_in_events_of_a_reading() {
        let second = Duration::from_secs(1);
        let wishes = GroupHopWishes {
            address: String::new(),
            key: None,
            is_plain: false,
            time: second,
            timeout: second,
            every: second,
            bytes_per_s: 48_000,
        };
        assert_eq!(wishes.events_max(PAUSE), 250);
        let most = GroupHopWishes { bytes_per_s: u64::MAX, ..wishes };
        assert_eq!(most.events_max(second), u32::MAX);
    }
}
