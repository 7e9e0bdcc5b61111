//! A launcher that is stopped (SIGSTOP) and hears no signal: once the user insists on its end it is
//! continued, and ended where it stays stopped.

use std::fs;
use std::time::{Duration, Instant};

use super::proc_stat;
use super::told_signals::EndWish;

/// How long it may stay stopped after it was continued.
const CONTINUED_GRACE: Duration = Duration::from_secs(2);
/// Between two looks at it.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// Watches one launcher.
#[derive(Debug, Default)]
pub(crate) struct StoppedLauncher {
    told: EndWish,
    looked_at: Option<Instant>,
    stopped_since: Option<Instant>,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopRemedy {
    Nothing,
    /// It is to go on, so that it hears what it was told.
    Continue,
    /// It stays stopped, so that it is to be ended with all that it has started.
    EndAtOnce,
}

impl StoppedLauncher {
    /// Notes that it was told to end.
    pub(crate) fn tell(&mut self, now: Instant) {
        self.told.note(now);
    }

    /// How long may be waited until the next look, at most `wait`.
    pub(crate) fn wait(&self, wait: Duration) -> Duration {
        if self.told.is_urged() { wait.min(LOOK_PERIOD) } else { wait }
    }

    /// What is to be done at this moment; `is_stopped` looks at the launcher, once in a while.
    pub(crate) fn remedy(&mut self, now: Instant, is_stopped: impl FnOnce() -> bool) -> StopRemedy {
        let is_due = self.looked_at.is_none_or(|before| now >= before + LOOK_PERIOD);
        if !self.told.is_urged() || !is_due {
            return StopRemedy::Nothing;
        }
        self.looked_at = Some(now);
        if !is_stopped() {
            self.stopped_since = None;
            return StopRemedy::Nothing;
        }
        let Some(since) = self.stopped_since else {
            self.stopped_since = Some(now);
            return StopRemedy::Continue;
        };
        match now.saturating_duration_since(since) >= CONTINUED_GRACE {
            true => StopRemedy::EndAtOnce,
            false => StopRemedy::Nothing,
        }
    }
}

/// Whether a process is stopped by a signal; one that is traced is not.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    stat.is_some_and(|stat| is_stopped_by(&stat))
}

fn is_stopped_by(stat: &str) -> bool {
    proc_stat::fields(stat).and_then(|fields| fields.state()) == Some('T')
}

#[cfg(test)]
mod tests {
    use super::super::told_signals::SAME_SIGNAL;
    use super::*;

    #[test]
    fn a_launcher_that_is_stopped_is_continued_once_the_user_insists() {
        let begin = Instant::now();
        let mut launcher = StoppedLauncher::default();
        launcher.tell(begin);
        launcher.tell(begin + SAME_SIGNAL / 2);
        let look = |launcher: &mut StoppedLauncher, at, stops| launcher.remedy(at, || stops);
        assert_eq!(look(&mut launcher, begin, true), StopRemedy::Nothing, "it was told once");
        assert_eq!(launcher.wait(CONTINUED_GRACE), CONTINUED_GRACE);
        let again = begin + CONTINUED_GRACE;
        launcher.tell(again);
        assert_eq!(launcher.wait(CONTINUED_GRACE), LOOK_PERIOD);
        assert_eq!(look(&mut launcher, again, true), StopRemedy::Continue);
        assert_eq!(look(&mut launcher, again + LOOK_PERIOD, false), StopRemedy::Nothing);
        // Stopped once more, and for good.
        let later = again + LOOK_PERIOD * 2;
        assert_eq!(look(&mut launcher, later, true), StopRemedy::Continue);
        assert_eq!(look(&mut launcher, later + LOOK_PERIOD / 2, true), StopRemedy::Nothing);
        assert_eq!(look(&mut launcher, later + LOOK_PERIOD, true), StopRemedy::Nothing);
        assert_eq!(look(&mut launcher, later + CONTINUED_GRACE, true), StopRemedy::EndAtOnce);
    }

    #[test]
    fn stopped_is_what_a_signal_has_stopped() {
        assert!(is_stopped_by("12 (a) b (c) T 7 12 0"));
        assert!(!is_stopped_by("12 (mpirun) S 7 12 0") && !is_stopped_by("12 (mpirun) t 7 12 0"));
        assert!(!is_stopped_by(""));
    }
}
