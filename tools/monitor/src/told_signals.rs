//! Signals by which the program is told to end, which may come by two ways.

use std::time::{Duration, Instant};

use sapwood_launch::Signal;

/// Two signals within this time are one, which came by two ways: `timeout` sends one to the process
/// and one to its group.
pub(crate) const SAME_SIGNAL: Duration = Duration::from_millis(50);
/// Two of a kind within this time mean: at once.
const URGENT_INTERVAL: Duration = Duration::from_secs(1);

/// A signal that came.
struct ToldSignal {
    signal: Signal,
    at: Instant,
}

/// The last one of each kind, without those that came by another way.
#[derive(Default)]
pub(crate) struct ToldSignals(Vec<ToldSignal>);

/// What a signal is beside the last one of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Another one.
    New,
    /// Another one, at once.
    Urgent,
    /// The same, by another way. A launcher that is told so twice may end without its ranks.
    Same,
}

impl ToldSignals {
    /// Takes one that has come at this moment.
    pub(crate) fn note(&mut self, signal: Signal, at: Instant) -> Telling {
        let Some(last) = self.0.iter_mut().find(|one| one.signal == signal) else {
            self.0.push(ToldSignal { signal, at });
            return Telling::New;
        };
        let since = at.saturating_duration_since(last.at);
        if since <= SAME_SIGNAL {
            return Telling::Same;
        }
        last.at = at;
        if since <= URGENT_INTERVAL { Telling::Urgent } else { Telling::New }
    }
}

/// The wish that a launcher ends, told by signals of any kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndWish {
    first: Option<Instant>,
    is_again: bool,
}

impl EndWish {
    /// Notes that it was told so at this moment.
    pub(crate) fn note(&mut self, at: Instant) {
        let first = *self.first.get_or_insert(at);
        self.is_again |= at.saturating_duration_since(first) > SAME_SIGNAL;
    }

    /// Whether it was told so.
    pub(crate) const fn is_told(self) -> bool {
        self.first.is_some()
    }

    /// Whether it was told so again: the user does not want to wait.
    pub(crate) const fn is_urged(self) -> bool {
        self.is_again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_by_two_ways_is_one_whatever_comes_between() {
        let mut told = ToldSignals::default();
        let begin = Instant::now();
        let mut note = |signal, ms| told.note(signal, begin + Duration::from_millis(ms));
        assert_eq!(note(Signal::INT, 0), Telling::New);
        assert_eq!(note(Signal::TERM, 1), Telling::New);
        assert_eq!(note(Signal::INT, 2), Telling::Same);
        assert_eq!(note(Signal::TERM, 3), Telling::Same);
        // The interval is from the one that counted.
        assert_eq!(note(Signal::INT, 900), Telling::Urgent);
        assert_eq!(note(Signal::INT, 2_500), Telling::New);
    }

    #[test]
    fn one_signal_that_comes_by_two_ways_does_not_urge() {
        let (mut told, begin) = (EndWish::default(), Instant::now());
        assert!(!told.is_told());
        told.note(begin);
        told.note(begin + SAME_SIGNAL);
        assert!(told.is_told() && !told.is_urged());
        told.note(begin + SAME_SIGNAL * 2);
        assert!(told.is_urged());
    }
}
