//! The limit on clients (ssh, srun) to other hosts that compute at a time: as many as there are
//! processors for them.
//!
//! Most of a log-in is the client's own work. Clients that share a processor all end late. Started
//! one after another, they reach the first hosts, which have the largest subtrees, early, and these
//! reach others meanwhile. A client that waits for its host before it has done its work has a
//! processor reserved for a multiple of the time that it has taken, so that a host that is down
//! delays other hosts only briefly.

use std::num::NonZero;
use std::time::Duration;

use sapwood_launch::Work;
use sapwood_node::Instant;

/// How often to check whether there is a processor for one more client.
const LOOK: Duration = Duration::from_millis(2);

/// A waiting client keeps its processor reserved for this multiple of its work so far. The host
/// first starts a process for the client: for ssh this takes half as long again, before keys are
/// exchanged.
const ANSWER_TIMES: u32 = 4;

/// How long a client may keep a processor from others: one that computes for longer is not sound.
pub(crate) const SOUND_MAX: Duration = Duration::from_secs(30);

/// The state of one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    begun: Instant,
    last_busy: Instant,
    /// From its start until it was first seen waiting.
    first_work: Option<Duration>,
}

impl Pass {
    /// For a client that was started now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { begun: now, last_busy: now, first_work: None }
    }
}

/// The limit on clients that compute at a time.
#[derive(Debug)]
pub(crate) struct ClientLimit {
    processors: usize,
    /// The processor time of a client that has reached its host.
    whole_work: Option<Duration>,
    next_look: Instant,
}

impl ClientLimit {
    /// A limit of as many clients as this process may use processors.
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { processors, whole_work: None, next_look: Instant::default() }
    }

    /// When to check next.
    pub(crate) fn next_look(&self) -> Instant {
        self.next_look
    }

    /// How many clients may be started now, besides those under way, whose work is sampled if a
    /// check is due.
    pub(crate) fn room<'a>(
        &mut self,
        under_way: impl Iterator<Item = (&'a mut Pass, Option<Work>)>,
        now: Instant,
    ) -> usize {
        if now < self.next_look {
            return 0;
        }
        self.next_look = now + LOOK;
        let at_work =
            under_way.filter_map(|(pass, work)| self.is_at_work(pass, work?, now).then_some(()));
        self.processors.saturating_sub(at_work.count())
    }

    /// A client has led to a host.
    pub(crate) fn has_led(&mut self, work: Option<Work>) {
        self.whole_work = work.map(|work| work.taken).or(self.whole_work);
    }

    /// Whether a client needs a processor, now or soon.
    fn is_at_work(&self, pass: &mut Pass, work: Work, now: Instant) -> bool {
        if now.since(pass.begun) > SOUND_MAX {
            return false;
        }
        if work.is_computing {
            pass.last_busy = now;
            return true;
        }
        // Its host says something first, and then it exchanges keys.
        let first_work = *pass.first_work.get_or_insert(pass.last_busy.since(pass.begun).max(LOOK));
        let is_ahead = self.whole_work.is_none_or(|whole| work.taken < whole / 2);
        is_ahead && now.since(pass.last_busy) <= ANSWER_TIMES * first_work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTED: Instant = Instant(0);

    fn after(milliseconds: u64) -> Instant {
        STARTED + Duration::from_millis(milliseconds)
    }

    /// That of a client that has computed this long, and does not compute now.
    fn waiting(milliseconds: u64) -> Option<Work> {
        let taken = Duration::from_millis(milliseconds);
        Some(Work { is_computing: false, taken, delayed: Duration::ZERO })
    }

    fn computing(milliseconds: u64) -> Option<Work> {
        waiting(milliseconds).map(|work| Work { is_computing: true, ..work })
    }

    /// The room of two processors beside one client.
    fn room(limit: &mut ClientLimit, pass: &mut Pass, work: Option<Work>, now: Instant) -> usize {
        limit.next_look = now;
        limit.room([(pass, work)].into_iter(), now)
    }

    fn two_processors() -> ClientLimit {
        ClientLimit { processors: 2, whole_work: None, next_look: STARTED }
    }

    #[test]
    fn a_client_that_computes_has_a_processor_and_one_that_has_done_its_work_has_none() {
        let (mut limit, mut pass) = (two_processors(), Pass::new(STARTED));
        assert_eq!(limit.room(std::iter::empty(), STARTED), 2);
        assert_eq!(limit.room(std::iter::empty(), after(1)), 0, "the load is sampled less often");
        limit.has_led(waiting(90));
        assert_eq!(room(&mut limit, &mut pass, computing(10), after(10)), 1);
        assert_eq!(room(&mut limit, &mut pass, waiting(11), after(12)), 1, "most is ahead of it");
        assert_eq!(room(&mut limit, &mut pass, computing(30), after(30)), 1);
        assert_eq!(room(&mut limit, &mut pass, waiting(50), after(60)), 2, "it has done its work");
        assert_eq!(room(&mut limit, &mut pass, computing(60), after(70)), 1);
        assert_eq!(room(&mut limit, &mut pass, None, after(80)), 2, "it has ended");
    }

    #[test]
    fn a_silent_host_delays_no_other() {
        let (mut limit, mut pass) = (two_processors(), Pass::new(STARTED));
        assert_eq!(room(&mut limit, &mut pass, computing(5), after(10)), 1);
        assert_eq!(room(&mut limit, &mut pass, waiting(6), after(20)), 1);
        assert_eq!(room(&mut limit, &mut pass, waiting(6), after(50)), 1, "its host starts");
        assert_eq!(room(&mut limit, &mut pass, waiting(6), after(51)), 2, "its host is silent");
        // One that has never been seen to compute is given the time between two looks.
        let mut pass = Pass::new(STARTED);
        assert_eq!(room(&mut limit, &mut pass, waiting(1), after(2)), 1);
        assert_eq!(room(&mut limit, &mut pass, waiting(1), after(8)), 1);
        assert_eq!(room(&mut limit, &mut pass, waiting(1), after(9)), 2);
        // Nor does a client that never ends to compute.
        assert_eq!(room(&mut limit, &mut pass, computing(29_000), after(29_000)), 1);
        assert_eq!(room(&mut limit, &mut pass, computing(31_000), after(31_000)), 2);
    }
}
