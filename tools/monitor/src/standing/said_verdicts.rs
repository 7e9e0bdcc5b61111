//! Which verdicts were said to the user, or told to others, so that each is said once.

use sapwood_report::nanoseconds;
use sapwood_trace::Verdict;

use super::deadline::Deadline;

/// Verdicts that are said one by one, at most.
const SAID_MAX: usize = 32;

/// What was said, and from when on something is to be said.
pub(crate) struct SaidVerdicts {
    /// How long a rank waits before that; none where nothing is said.
    least_ns: Option<u64>,
    said: Vec<Verdict>,
}

impl SaidVerdicts {
    /// Of verdicts in which a rank has waited for the time of the deadline.
    pub(crate) fn new(deadline: Deadline) -> Self {
        Self { least_ns: deadline.time().map(nanoseconds), said: Vec::new() }
    }

    /// Of all verdicts, however long ranks have waited.
    pub(crate) fn without_deadline() -> Self {
        Self { least_ns: Some(0), said: Vec::new() }
    }

    /// Whether a verdict is to be said now. Another process may have asked with a shorter deadline:
    /// what holds then is said once it has lasted for the own one.
    pub(crate) fn is_due(&mut self, verdict: &Verdict) -> bool {
        let Some(least_ns) = self.least_ns else { return false };
        let has_lasted = verdict.waiting.iter().any(|group| group.longest_ns >= least_ns);
        let is_said = self.said.iter().any(|said| said.is_like(verdict));
        if !has_lasted || is_said || self.said.len() == SAID_MAX {
            return false;
        }
        self.said.push(verdict.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sapwood_profile::Function;
    use sapwood_trace::{CallKind, Posture, Side, Standing, Standpoint};

    use super::*;

    /// A rank waits for a message of another one, which makes other calls, for this time.
    fn verdict(tag: i32, seconds: u64) -> Verdict {
        let function = Function::named("MPI_Recv").expect("a function of MPI").id;
        let call = Standpoint {
            function,
            kind: CallKind::Receive,
            side: Side::Rank(1),
            tag: Some(tag),
            ..Standpoint::default()
        };
        let for_ns = seconds * 1_000_000_000;
        let posture = Posture { call: Some(call), for_ns, ..Posture::default() };
        let mut standing = Standing { world_size: 2, ..Standing::default() };
        standing.postures.insert(0, posture);
        standing.postures.insert(1, Posture::default());
        Verdict::of(&standing, for_ns).expect("a rank waits")
    }

    #[test]
    fn a_verdict_is_said_once_when_it_has_lasted_for_the_deadline() {
        let mut said = SaidVerdicts::new(Deadline::After(Duration::from_secs(10)));
        assert!(!said.is_due(&verdict(7, 9)));
        assert!(said.is_due(&verdict(7, 10)));
        assert!(!said.is_due(&verdict(7, 11)), "it is like the one before");
        assert!(said.is_due(&verdict(8, 11)));
        assert!(!said.is_due(&verdict(7, 12)));
    }

    #[test]
    fn no_more_than_some_verdicts_are_said_and_none_where_the_deadline_is_never() {
        let mut said = SaidVerdicts::new(Deadline::After(Duration::from_secs(10)));
        let count = (0..100).filter(|&tag| said.is_due(&verdict(tag, 20))).count();
        assert_eq!(count, SAID_MAX);
        let mut told = SaidVerdicts::without_deadline();
        assert!(told.is_due(&verdict(7, 1)) && !told.is_due(&verdict(7, 20)));
        let count = (0..100).filter(|&tag| told.is_due(&verdict(tag, 1))).count();
        assert_eq!(count, SAID_MAX - 1, "the last one that is remembered is said, too");
        assert!(!SaidVerdicts::new(Deadline::Never).is_due(&verdict(7, 20)));
    }
}
