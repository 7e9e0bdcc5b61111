//! From when on ranks that wait in a call may be stuck, so that it is asked why they wait.

use std::time::Duration;

use sapwood_command_line::times::time;
use sapwood_profile::{ActivityKind, Condition, Round};
use sapwood_report::nanoseconds;

/// The shortest deadline; calls that last as long are common in programs that do well.
const DEADLINE_MIN: Duration = Duration::from_millis(500);
/// The longest deadline.
const DEADLINE_MAX: Duration = Duration::from_secs(3600);
/// In the place of a time.
const NEVER: &str = "never";

/// After which time in one call of a rank it is asked why it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// It is not asked.
    Never,
    /// After this time.
    After(Duration),
}

impl Deadline {
    /// Reads a time such as `10s`; `never` and 0 for none.
    ///
    /// # Errors
    /// A line for the user that says what is needed.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let after = if text == NEVER { Ok(Duration::ZERO) } else { time(text) };
        match after {
            Ok(after) if after.is_zero() => Ok(Self::Never),
            Ok(after) if (DEADLINE_MIN..=DEADLINE_MAX).contains(&after) => Ok(Self::After(after)),
            _ => Err(format!(
                "a time from {} ms to {} s is needed, such as 10s, or '{NEVER}'",
                DEADLINE_MIN.as_millis(),
                DEADLINE_MAX.as_secs()
            )),
        }
    }

    /// The time; none for never.
    pub(crate) const fn time(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(time) => Some(time),
        }
    }

    /// Whether a round shows a rank that has been in one call for this time.
    pub(crate) fn is_reached(self, round: &Round) -> bool {
        self.time().is_some_and(|time| has_waited(round, nanoseconds(time)))
    }
}

/// Whether a round shows a rank that lives and has been in one call for this time.
pub(super) fn has_waited(round: &Round, least_ns: u64) -> bool {
    let mut activities = round.activities().iter();
    activities.any(|(kind, statistics)| is_in_call(kind) && statistics.longest_ns >= least_ns)
}

/// Whether this is a call of a rank that lives.
pub(super) fn is_in_call(kind: &ActivityKind) -> bool {
    kind.function.is_some() && kind.condition != Condition::Lost
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Activity, Function, Peer, RankProfile};

    use super::*;

    #[test]
    fn a_deadline_has_limits_and_can_be_switched_off() {
        assert_eq!(Deadline::read("10s"), Ok(Deadline::After(Duration::from_secs(10))));
        assert_eq!(Deadline::read("500ms"), Ok(Deadline::After(Duration::from_millis(500))));
        for never in ["never", "0", "0s"] {
            assert_eq!(Deadline::read(never), Ok(Deadline::Never), "{never}");
        }
        for wrong in ["", "soon", "100ms", "2h", "-1s", "Never "] {
            let error = Deadline::read(wrong).expect_err(wrong);
            assert!(
                error.contains("from 500 ms to 3600 s") && error.contains("'never'"),
                "{error}"
            );
        }
    }

    /// A round of two ranks, of which one is in a call or outside for this time.
    fn round(function: Option<&str>, condition: Condition, for_ns: u64) -> Round {
        let mut round = Round::new(2);
        let function = function.map(|name| Function::named(name).expect("a function of MPI").id);
        let kind = ActivityKind { function, condition, ..ActivityKind::default() };
        let mut profile = RankProfile::new(1, 2);
        profile.activities = vec![Activity { kind, peer: Peer::None, for_ns }];
        round.add(&profile).expect("its first profile");
        round.add(&RankProfile::new(0, 2)).expect("its first profile");
        round
    }

    #[test]
    fn a_rank_that_lives_and_is_in_one_call_for_long_reaches_the_deadline() {
        let deadline = Deadline::After(Duration::from_secs(10));
        let (receive, long_ns) = (Some("MPI_Recv"), 10_000_000_000);
        assert!(deadline.is_reached(&round(receive, Condition::Unknown, long_ns)));
        assert!(!deadline.is_reached(&round(receive, Condition::Unknown, long_ns - 1)));
        assert!(!deadline.is_reached(&round(receive, Condition::Lost, long_ns)));
        assert!(!deadline.is_reached(&round(None, Condition::Computing, long_ns)));
        assert!(!Deadline::Never.is_reached(&round(receive, Condition::Unknown, long_ns)));
    }
}
