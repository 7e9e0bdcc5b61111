//! When to terminate and when to kill a process that shall end.
//!
//! A pure state machine: it takes the caller's time, sends no signal and reads no clock.

use std::time::Duration;

/// How a process is asked to end before it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It knows already, for instance because its link was closed: only wait.
    Told,
    /// It is sent `SIGTERM` at once.
    Terminate,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndingStep {
    /// Send `SIGTERM`, then ask again. Said at most once.
    Terminate,
    /// Nothing until this time, unless the process ends before.
    Wait(Duration),
    /// Send `SIGKILL`. Said at every asking from then on.
    Kill,
}

/// The end of one process or of a family, from the first request to the last resort.
///
/// Times are durations since any origin, the same for all calls.
///
/// ```
/// use std::time::Duration;
/// use sapwood_launch::{Ending, EndingStep, Manner};
///
/// let second = Duration::from_secs;
/// let mut ending = Ending::new(second(10), second(2), Manner::Terminate);
/// assert_eq!(ending.step(second(10)), EndingStep::Terminate);
/// assert_eq!(ending.step(second(11)), EndingStep::Wait(second(12)));
/// assert_eq!(ending.step(second(12)), EndingStep::Kill);
/// ```
#[derive(Clone, Debug)]
pub struct Ending {
    kill_at: Duration,
    terminate: bool,
}

impl Ending {
    /// An end that begins `now` and kills after `grace`.
    pub fn new(now: Duration, grace: Duration, manner: Manner) -> Self {
        Self { kill_at: now.saturating_add(grace), terminate: manner == Manner::Terminate }
    }

    /// What to do at the time `now`.
    pub fn step(&mut self, now: Duration) -> EndingStep {
        if now >= self.kill_at {
            return EndingStep::Kill;
        }
        if std::mem::take(&mut self.terminate) {
            return EndingStep::Terminate;
        }
        EndingStep::Wait(self.kill_at)
    }

    /// Brings the last resort forward, for a second and more urgent request to end.
    pub fn hasten(&mut self, now: Duration, grace: Duration, manner: Manner) {
        self.kill_at = self.kill_at.min(now.saturating_add(grace));
        self.terminate |= manner == Manner::Terminate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_told_process_is_left_alone_until_its_grace_is_over() {
        let mut ending = Ending::new(ms(100), ms(50), Manner::Told);
        assert_eq!(ending.step(ms(100)), EndingStep::Wait(ms(150)));
        assert_eq!(ending.step(ms(149)), EndingStep::Wait(ms(150)));
        assert_eq!(ending.step(ms(150)), EndingStep::Kill);
        assert_eq!(ending.step(ms(900)), EndingStep::Kill);
    }

    #[test]
    fn no_grace_kills_at_once_and_endless_grace_never_overflows() {
        assert_eq!(Ending::new(ms(5), ms(0), Manner::Terminate).step(ms(5)), EndingStep::Kill);
        let mut patient = Ending::new(ms(5), Duration::MAX, Manner::Told);
        assert_eq!(patient.step(ms(6)), EndingStep::Wait(Duration::MAX));
    }

    #[test]
    fn a_second_request_can_only_shorten_the_grace() {
        let mut ending = Ending::new(ms(0), ms(100), Manner::Told);
        ending.hasten(ms(10), ms(500), Manner::Terminate);
        assert_eq!(ending.step(ms(10)), EndingStep::Terminate);
        assert_eq!(ending.step(ms(10)), EndingStep::Wait(ms(100)));
        ending.hasten(ms(20), ms(0), Manner::Told);
        assert_eq!(ending.step(ms(20)), EndingStep::Kill);
    }
}
