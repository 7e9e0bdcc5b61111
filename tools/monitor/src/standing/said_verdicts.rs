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
    /// Whether there was another one after the last that is said.
    has_left_out: bool,
    is_left_out_told: bool,
}

impl SaidVerdicts {
    /// Of verdicts in which a rank has waited for the time of the deadline.
    pub(crate) fn new(deadline: Deadline) -> Self {
        Self::lasting(deadline.time().map(nanoseconds))
    }

    /// Of all verdicts, however long ranks have waited.
    pub(crate) fn without_deadline() -> Self {
        Self::lasting(Some(0))
    }

    fn lasting(least_ns: Option<u64>) -> Self {
        Self { least_ns, said: Vec::new(), has_left_out: false, is_left_out_told: false }
    }

    /// Whether a verdict is to be said now. Another process may have asked with a shorter deadline:
    /// what holds then is said once it has lasted for the own one.
    pub(crate) fn is_due(&mut self, verdict: &Verdict) -> bool {
        let Some(least_ns) = self.least_ns else { return false };
        let has_lasted = verdict.waiting.iter().any(|group| group.longest_ns >= least_ns);
        let is_said = self.said.iter().any(|said| said.is_like(verdict));
        if !has_lasted || is_said {
            return false;
        }
        if self.said.len() == SAID_MAX {
            self.has_left_out = true;
            return false;
        }
        self.said.push(verdict.clone());
        true
    }

    /// A line that verdicts are not said any more; once.
    pub(crate) fn take_left_out(&mut self) -> Option<String> {
        let is_new = self.has_left_out && !std::mem::replace(&mut self.is_left_out_told, true);
        is_new.then(|| {
            format!(
                "ranks are stuck again: more than {SAID_MAX} different verdicts are not printed; \
                 the report has the one that holds when the program ends"
            )
        })
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
        let all = i32::try_from(SAID_MAX).unwrap();
        assert!((0..all).all(|tag| said.is_due(&verdict(tag, 20))));
        assert_eq!(said.take_left_out(), None, "all were said");
        let count = (0..100).filter(|&tag| said.is_due(&verdict(tag, 20))).count();
        assert_eq!(count, 0);
        let line = said.take_left_out().expect("others were left out");
        assert!(line.contains("more than 32 different verdicts are not printed"), "{line}");
        assert!(!said.is_due(&verdict(200, 20)));
        assert_eq!(said.take_left_out(), None, "once");
        let mut told = SaidVerdicts::without_deadline();
        assert!(told.is_due(&verdict(7, 1)) && !told.is_due(&verdict(7, 20)));
        let count = (0..100).filter(|&tag| told.is_due(&verdict(tag, 1))).count();
        assert_eq!(count, SAID_MAX - 1, "the last one that is remembered is said, too");
        assert!(!SaidVerdicts::new(Deadline::Never).is_due(&verdict(7, 20)));
    }
}
