//! Scopes over the hops of a running network: follows its waves, and gives the figures of each
//! scope as often as it says.

use std::time::Duration;

use sapwood::{HOP_EVENTS, HopForm, Status, StreamId, VisibleNetwork};
use sapwood_command_line::exit::Failure;
use sapwood_report::scope::{HopScopeParts, ScopeRecord};
use sapwood_trace::{HopTrace, ScopeCounter, ScopeFigures};

use crate::hop_reading::{EVENTS_MAX, End, HopReader, ReadingWishes};
use crate::hop_scope_text::NamedHopScope;

/// The longest time between two readings: a ring of each process holds the events of it.
const READ_EVERY_MAX: Duration = Duration::from_millis(500);

/// Bytes of an event on its way.
const EVENT_BYTES: u64 = 32;

/// How long a network is followed, and how long its processes may take to answer.
pub(crate) struct HopScopeTimes {
    pub(crate) time: Duration,
    pub(crate) timeout: Duration,
}

/// Follows the waves of a network, and gives each record to `tell`; why it ended.
///
/// # Errors
/// [`Failure`] when the network does not answer the first time, or no process has room for one more
/// session.
pub(crate) fn gather(
    network: &VisibleNetwork,
    scopes: &[NamedHopScope],
    times: &HopScopeTimes,
    tell: &mut dyn FnMut(&ScopeRecord),
) -> Result<End, Failure> {
    let wishes = wishes(scopes, times);
    let trace = HopTrace::with_scopes(scopes.iter().map(|named| named.scope.clone()));
    let mut reader = HopReader::new(network, &wishes, trace);
    let mut all: Vec<GatheredScope<'_>> = scopes
        .iter()
        .enumerate()
        .map(|(number, named)| GatheredScope::new(number, named))
        .collect();
    let ended = reader.follow(&mut |round| {
        let at = Moment { elapsed: round.elapsed, is_last: false };
        for one in &mut all {
            if one.is_due(round.elapsed) {
                let figures = round.trace.take_scope(one.number);
                tell(&one.record(figures, losses(round.trace, round.status, one.number), at));
            }
        }
    })?;
    reader.trace.finish();
    let at = Moment { elapsed: ended.took, is_last: true };
    for one in &mut all {
        let figures = reader.trace.take_scope(one.number);
        tell(&one.record(figures, losses(&reader.trace, &ended.status, one.number), at));
    }
    Ok(ended.end)
}

/// What the figures of the scope of this number lack.
fn losses(trace: &HopTrace, status: &Status, number: usize) -> ReadLosses {
    let losses = trace.losses();
    ReadLosses {
        overwritten: losses.overwritten,
        unread: losses.unread,
        processes: status.hops().len() as u64,
        refused: status.hops().iter().filter(|hops| hops.is_refused).count() as u64,
        missing: status.missing.iter().map(|missing| missing.ranks.len()).sum(),
        unseen_streams: trace.unseen_streams(number),
    }
}

/// All scopes of a command share one session.
fn wishes(scopes: &[NamedHopScope], times: &HopScopeTimes) -> ReadingWishes {
    let every = scopes.iter().filter_map(|named| named.every).fold(READ_EVERY_MAX, Duration::min);
    let bytes = scopes.iter().map(|named| named.scope.bytes_per_s).min().unwrap_or(u64::MAX);
    let in_one = u128::from(bytes) * every.as_millis() / 1000 / u128::from(EVENT_BYTES);
    ReadingWishes {
        time: times.time,
        every,
        timeout: times.timeout,
        stream: only_stream(scopes),
        form: HopForm::Events,
        room: HOP_EVENTS,
        events_max: usize::try_from(in_one).unwrap_or(usize::MAX).min(EVENTS_MAX),
        events_min: 1,
        has_progress: false,
    }
}

/// The stream that all scopes select, if it is one: events of others need not be sent.
fn only_stream(scopes: &[NamedHopScope]) -> Option<StreamId> {
    let first = *scopes.first()?.scope.streams.first()?;
    let is_only = |named: &NamedHopScope| named.scope.streams.iter().eq([&first]);
    scopes.iter().all(is_only).then_some(first)
}

/// When figures are taken.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) elapsed: Duration,
    pub(crate) is_last: bool,
}

/// What figures lack, and of how many processes they are.
#[derive(Default)]
pub(crate) struct ReadLosses {
    /// Events that were overwritten before they were read, since the begin.
    pub(crate) overwritten: u64,
    /// Events that lie at processes, unread.
    pub(crate) unread: u64,
    pub(crate) processes: u64,
    /// Processes that had no room for a further session.
    pub(crate) refused: u64,
    /// Processes that have not answered.
    pub(crate) missing: u64,
    pub(crate) unseen_streams: Vec<StreamId>,
}

/// A scope, and what was told of it.
pub(crate) struct GatheredScope<'a> {
    pub(crate) number: usize,
    named: &'a NamedHopScope,
    /// When it is gathered next; none for only at the end.
    due: Option<Duration>,
    /// Events that were overwritten by the record before.
    overwritten: u64,
}

impl<'a> GatheredScope<'a> {
    pub(crate) const fn new(number: usize, named: &'a NamedHopScope) -> Self {
        Self { number, named, due: named.every, overwritten: 0 }
    }

    /// Whether it is time to gather it; the next time is then set.
    pub(crate) fn is_due(&mut self, elapsed: Duration) -> bool {
        let (Some(due), Some(every)) = (self.due, self.named.every) else { return false };
        if elapsed < due {
            return false;
        }
        let next = due + every;
        self.due = Some(if next > elapsed { next } else { elapsed + every });
        true
    }

    pub(crate) fn record(
        &mut self,
        mut figures: ScopeFigures,
        losses: ReadLosses,
        at: Moment,
    ) -> ScopeRecord {
        let overwritten = losses.overwritten.saturating_sub(self.overwritten);
        self.overwritten = losses.overwritten;
        figures.count(ScopeCounter::Dropped, overwritten);
        figures.count(ScopeCounter::Waiting, losses.unread);
        figures.count(ScopeCounter::Ranks, losses.processes);
        figures.count(ScopeCounter::Silent, losses.refused);
        ScopeRecord::of_hops(&HopScopeParts {
            name: &self.named.name,
            scope: &self.named.scope,
            elapsed: at.elapsed,
            is_last: at.is_last,
            figures: &figures,
            unseen_streams: &losses.unseen_streams,
            missing_leaves: losses.missing,
        })
    }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::HopScope;

    use super::*;

    fn named(streams: &[StreamId], every: Option<Duration>, bytes_per_s: u64) -> NamedHopScope {
        let streams = streams.iter().copied().collect();
        let scope = HopScope { streams, bytes_per_s, ..HopScope::default() };
        NamedHopScope { name: String::new(), scope, every }
    }

    #[test]
    fn one_session_is_read_often_enough_for_all_scopes_and_within_each_limit() {
        let second = Duration::from_secs(1);
        let times = HopScopeTimes { time: second, timeout: second };
        let fast = Some(Duration::from_millis(100));
        let scopes = [named(&[7], fast, 1 << 30), named(&[7], None, 64_000)];
        let both = wishes(&scopes, &times);
        assert_eq!((both.every, both.events_max), (Duration::from_millis(100), 200));
        assert_eq!(both.stream, Some(7));
        let slow = wishes(&[named(&[7, 8], Some(second), 1 << 30)], &times);
        assert_eq!((slow.every, slow.events_max), (READ_EVERY_MAX, EVENTS_MAX));
        assert_eq!(slow.stream, None);
        assert_eq!(only_stream(&[named(&[7], None, 1), named(&[], None, 1)]), None);
    }

    #[test]
    fn what_is_lacking_is_in_each_record_and_what_was_overwritten_in_one() {
        let scope = named(&[], None, 1);
        let mut one = GatheredScope::new(0, &scope);
        let mut told = |overwritten, is_last| {
            let losses = ReadLosses { overwritten, unread: 3, missing: 1, ..ReadLosses::default() };
            let at = Moment { elapsed: Duration::ZERO, is_last };
            let record = one.record(ScopeFigures::default(), losses, at);
            assert_eq!((record.events_waiting, record.missing_leaves), (3, 1));
            record.events_dropped
        };
        assert_eq!([told(5, false), told(7, false), told(7, true)], [5, 2, 0]);
    }

    #[test]
    fn a_scope_is_due_as_often_as_it_says_and_late_once() {
        let seconds = Duration::from_secs;
        let scope = named(&[], Some(seconds(1)), 1);
        let mut one = GatheredScope::new(0, &scope);
        assert!(!one.is_due(Duration::from_millis(999)));
        assert!(one.is_due(seconds(1)) && !one.is_due(Duration::from_millis(1_900)));
        assert!(one.is_due(seconds(9)) && !one.is_due(Duration::from_millis(9_500)));
        assert!(one.is_due(seconds(10)));
        let at_end = named(&[], None, 1);
        assert!(!GatheredScope::new(0, &at_end).is_due(seconds(100)));
    }
}
