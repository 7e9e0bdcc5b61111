//! How long a host may take to answer the client that calls it.
//!
//! While a client computes or waits for a processor its host is not asked anything, so this time is
//! the client's and not the host's; nor is the time the host's in which this process was delayed.

use std::time::Duration;

use sapwood_node::Instant;

use crate::client_limit::SOUND_MAX;

/// How long at most a host that needs a copy of the program has its time anew while the client
/// takes bytes of it; a longer time for each host holds as it is.
const COPY_TIME: Duration = Duration::from_secs(60);

/// The shortest extension of a deadline that the client's own work has used up.
const EXTENSION_MIN: Duration = Duration::from_millis(10);

/// The time of one call.
#[derive(Debug)]
pub(crate) struct AnswerTime {
    begun: Instant,
    /// How long the client may wait for its host.
    host_time: Duration,
    /// When to check whether the launch agent's greeting is late; none once it has arrived.
    by: Option<Instant>,
    /// When the client last took bytes of a copy of the program.
    moved: Instant,
    /// How long this process was delayed since the call began.
    excused: Duration,
}

/// What a client does when its time is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientState {
    pub(crate) is_copying: bool,
    /// How long it has computed or waited for a processor.
    pub(crate) busy: Duration,
}

impl AnswerTime {
    /// Of a call that begins now.
    pub(crate) fn new(begun: Instant, answer_by: Instant) -> Self {
        let host_time = answer_by.since(begun);
        Self { begun, host_time, by: Some(answer_by), moved: begun, excused: Duration::ZERO }
    }

    /// When the call began.
    pub(crate) const fn begun(&self) -> Instant {
        self.begun
    }

    /// When to check; none once the host has answered.
    pub(crate) const fn by(&self) -> Option<Instant> {
        self.by
    }

    /// Whether the host has not answered yet.
    pub(crate) const fn is_awaited(&self) -> bool {
        self.by.is_some()
    }

    /// The host has answered.
    pub(crate) const fn answered(&mut self) {
        self.by = None;
    }

    /// The client has taken bytes.
    pub(crate) const fn moved(&mut self, now: Instant) {
        self.moved = now;
    }

    /// This process was delayed: nothing that happened meanwhile was seen.
    pub(crate) fn excuse(&mut self, late: Duration) {
        self.excused += late;
        self.moved = self.moved + late;
        self.by = self.by.map(|by| by + late);
    }

    /// Whether the time is over, of a host that has `patience`. If not, it is checked again at
    /// [`AnswerTime::by`].
    pub(crate) fn is_over(
        &mut self,
        now: Instant,
        patience: Duration,
        client: impl FnOnce() -> ClientState,
    ) -> bool {
        if self.by.is_none_or(|by| by > now) {
            return false;
        }
        let client = client();
        let begun = self.begun + self.excused;
        // A host that takes a copy has its time anew as long as bytes move.
        let copied_by = (self.moved + patience).min(begun + COPY_TIME);
        if client.is_copying && copied_by > now {
            self.by = Some(copied_by);
            return false;
        }
        let (elapsed, most) = (now.since(begun), patience + SOUND_MAX);
        let left = self.host_time.saturating_sub(elapsed.saturating_sub(client.busy));
        if left.is_zero() || elapsed >= most {
            return true;
        }
        self.by = Some((now + left.max(EXTENSION_MIN)).min(begun + most));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);
    const LATE: Duration = Duration::from_secs(100);

    fn at(seconds: u64) -> Instant {
        Instant::default() + Duration::from_secs(seconds)
    }

    fn idle() -> ClientState {
        ClientState { is_copying: false, busy: Duration::ZERO }
    }

    #[test]
    fn a_host_has_its_time_and_no_more() {
        let mut time = AnswerTime::new(at(0), at(10));
        assert!(!time.is_over(at(9), PATIENCE, || panic!("not due")));
        assert!(time.is_over(at(10), PATIENCE, idle));
        let busy = || ClientState { busy: Duration::from_secs(3), ..idle() };
        assert!(!time.is_over(at(10), PATIENCE, busy), "the client computed for 3 s");
        assert_eq!(time.by(), Some(at(13)));
        time.answered();
        assert!(!time.is_over(at(1000), PATIENCE, || panic!("it has answered")));
    }

    #[test]
    fn a_delay_of_this_process_takes_nothing_from_the_time_of_a_host() {
        let mut time = AnswerTime::new(at(0), at(10));
        time.excuse(LATE);
        assert_eq!(time.by(), Some(at(110)));
        let busy = || ClientState { busy: Duration::from_secs(3), ..idle() };
        assert!(!time.is_over(at(110), PATIENCE, busy), "the delay is none of the host's time");
        assert_eq!(time.by(), Some(at(113)));
        assert!(time.is_over(at(113), PATIENCE, busy), "the delay is excused once");
    }

    #[test]
    fn a_copy_of_which_no_more_bytes_move_has_the_time_of_a_host_and_no_more() {
        let copying = || ClientState { is_copying: true, ..idle() };
        let mut time = AnswerTime::new(at(0), at(10));
        assert!(time.is_over(at(10), PATIENCE, copying), "no byte was taken");
        let mut time = AnswerTime::new(at(0), at(10));
        time.moved(at(4));
        assert!(!time.is_over(at(10), PATIENCE, copying), "bytes moved 6 s before");
        assert_eq!(time.by(), Some(at(14)));
        assert!(time.is_over(at(14), PATIENCE, copying));
    }

    #[test]
    fn a_delay_of_this_process_takes_nothing_from_the_time_of_a_copy() {
        let copying = || ClientState { is_copying: true, ..idle() };
        let mut time = AnswerTime::new(at(0), at(10));
        time.moved(at(9));
        time.excuse(LATE);
        assert!(!time.is_over(at(110), PATIENCE, copying), "bytes moved 1 s before the delay");
        assert_eq!(time.by(), Some(at(119)));
        time.moved(at(158));
        assert!(!time.is_over(at(158), PATIENCE, copying));
        assert_eq!(time.by(), Some(at(160)), "60 s and the delay");
        assert!(time.is_over(at(160), PATIENCE, copying));
    }
}
