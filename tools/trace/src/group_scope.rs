//! Scopes over the hops of a group: follows its operations, and gives the figures of each scope as
//! often as it says.

use std::path::PathBuf;
use std::time::Duration;

use sapwood_command_line::exit::Failure;
use sapwood_group_tool::{GroupHopWishes, GroupLosses, GroupRound, follow_scopes};
use sapwood_hosts::signals::Signal;
use sapwood_report::scope::ScopeRecord;

use crate::hop_scope::{GatheredScope, HopScopeTimes, Moment, ReadLosses};
use crate::hop_scope_text::NamedHopScope;

/// A group, as a user names it.
pub(crate) struct NamedGroup {
    /// The address of any member.
    pub(crate) address: String,
    /// The file with its key; without it that of the environment.
    pub(crate) key: Option<PathBuf>,
    pub(crate) is_plain: bool,
}

/// Follows the operations of a group, and gives each record to `tell`; the signal that ended it.
///
/// # Errors
/// [`Failure`] where there is no key, or the member at the address does not answer.
pub(crate) fn gather(
    group: NamedGroup,
    scopes: &[NamedHopScope],
    times: &HopScopeTimes,
    tell: &mut dyn FnMut(&ScopeRecord),
) -> Result<Option<Signal>, Failure> {
    let wishes = wishes(group, scopes, times);
    let mut all: Vec<GatheredScope<'_>> = scopes
        .iter()
        .enumerate()
        .map(|(number, named)| GatheredScope::new(number, named))
        .collect();
    let wanted = scopes.iter().map(|named| named.scope.clone());
    follow_scopes(&wishes, wanted, &mut |mut round: GroupRound<'_>| {
        let at = Moment { elapsed: round.elapsed(), is_last: round.is_last() };
        for one in &mut all {
            if at.is_last || one.is_due(at.elapsed) {
                let figures = round.take_scope(one.number);
                tell(&one.record(figures, losses(round.losses()), at));
            }
        }
    })
}

/// All scopes of a command share the events of the members.
fn wishes(group: NamedGroup, scopes: &[NamedHopScope], times: &HopScopeTimes) -> GroupHopWishes {
    let NamedGroup { address, key, is_plain } = group;
    let every = scopes.iter().filter_map(|named| named.every).min().unwrap_or(Duration::MAX);
    let bytes_per_s = scopes.iter().map(|named| named.scope.bytes_per_s).min().unwrap_or(u64::MAX);
    let HopScopeTimes { time, timeout } = *times;
    GroupHopWishes { address, key, is_plain, time, timeout, every, bytes_per_s }
}

fn losses(of: GroupLosses) -> ReadLosses {
    let GroupLosses { members, missing, overwritten, unread } = of;
    ReadLosses { overwritten, unread, processes: members, missing, ..ReadLosses::default() }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{HopScope, HopSource};

    use super::*;

    fn named(every: Option<Duration>, bytes_per_s: u64) -> NamedHopScope {
        let scope = HopScope { source: HopSource::Group, bytes_per_s, ..HopScope::default() };
        NamedHopScope { name: String::new(), scope, every }
    }

    #[test]
    fn members_are_read_often_enough_for_all_scopes_and_within_each_limit() {
        let second = Duration::from_secs(1);
        let times = HopScopeTimes { time: second, timeout: second };
        let group = NamedGroup { address: "unix:at".to_owned(), key: None, is_plain: true };
        let fast = Some(Duration::from_millis(100));
        let both = wishes(group, &[named(fast, 1 << 30), named(None, 64_000)], &times);
        assert_eq!((both.every, both.bytes_per_s), (Duration::from_millis(100), 64_000));
        assert!(both.is_plain);
    }
}
