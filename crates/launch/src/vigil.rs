//! Whether the front-end's host is there at all, asked where nobody listens.
//!
//! A host that was switched off says nothing, and the system holds a connection to it for a quarter
//! of an hour if bytes were on their way. A host that is there refuses connections at a closed port
//! at once, whatever its programs do, and no queue of theirs fills. One that has not answered there
//! at first is not judged by it: something between drops such questions. Nor is one judged by
//! addresses that this machine has as well, as those of bridges of containers: there we should ask
//! ourselves.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use sapwood_transport::{Address, Error, interfaces, takes_connections};

/// A port that hardly anybody listens at (RFC 1078); whether or not, an answer is one.
const CLOSED_PORT: u16 = 1;

/// Between two questions, and how long an answer may take.
const INTERVAL: Duration = Duration::from_secs(4);
const DEADLINE: Duration = Duration::from_secs(1);

/// How long a host may be silent that has answered before.
const SILENCE: Duration = Duration::from_secs(10);

/// The watch over one host.
#[derive(Debug)]
pub(crate) struct Vigil {
    /// Where it is asked; after the first time, where it has answered.
    doors: Vec<Address>,
    has_asked: bool,
    next: Instant,
    silent_since: Option<Instant>,
}

impl Vigil {
    /// Over the host that takes connections at these addresses.
    pub(crate) fn over(front_end: &[Address], now: Instant) -> Self {
        let own = interfaces().unwrap_or_default();
        let own: Vec<IpAddr> = own.iter().map(|interface| interface.address).collect();
        Self::beyond(&own, front_end, now)
    }

    /// As [`Vigil::over`], from a machine with these addresses.
    fn beyond(own: &[IpAddr], front_end: &[Address], now: Instant) -> Self {
        let places = front_end.iter().filter_map(|address| address.resolve().ok()).flatten();
        let mut hosts: Vec<_> = places.map(|place: SocketAddr| place.ip()).collect();
        hosts.retain(|ip| !own.contains(ip));
        hosts.dedup();
        let door = |ip| Address::at_each(&[ip], CLOSED_PORT);
        let doors = hosts.into_iter().map(door).collect();
        Self { doors, has_asked: false, next: now + INTERVAL, silent_since: None }
    }

    /// When it is asked next; none if it cannot be.
    pub(crate) fn next(&self) -> Option<Instant> {
        (!self.doors.is_empty()).then_some(self.next)
    }

    /// Whether the host has been silent for longer than that. Asks, if it is time to, and takes up
    /// to a second for each address if nobody answers.
    pub(crate) fn is_over(&mut self, patience: Duration, now: Instant) -> bool {
        self.is_over_by(patience, now, |door| {
            matches!(takes_connections(door, DEADLINE), Ok(()) | Err(Error::Refused { .. }))
        })
    }

    fn is_over_by(
        &mut self,
        patience: Duration,
        now: Instant,
        mut answers: impl FnMut(&Address) -> bool,
    ) -> bool {
        if self.doors.is_empty() || now < self.next {
            return false;
        }
        self.next = now + INTERVAL;
        if !self.has_asked {
            self.has_asked = true;
            self.doors.retain(|door| answers(door));
            return false;
        }
        if self.doors.iter().any(answers) {
            self.silent_since = None;
            return false;
        }
        let since = *self.silent_since.get_or_insert(now);
        now.duration_since(since) >= patience.max(SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vigil(now: Instant) -> Vigil {
        Vigil::beyond(&[], &["tcp:[127.0.0.1,127.0.0.2]:4000".parse().unwrap()], now)
    }

    #[test]
    fn nobody_is_judged_by_an_address_that_this_machine_has_too() {
        let begin = Instant::now();
        let front_end = "tcp:[10.0.0.1,172.17.0.1]:4000".parse().unwrap();
        let bridge = "172.17.0.1".parse().unwrap();
        let mut vigil = Vigil::beyond(&[bridge], &[front_end], begin);
        let mut asked = Vec::new();
        vigil.is_over_by(Duration::ZERO, begin + INTERVAL, |door| {
            asked.push(door.resolve().unwrap()[0].ip());
            true
        });
        assert_eq!(asked, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        let here: Address = "tcp:127.0.0.1:4000".parse().unwrap();
        assert_eq!(Vigil::over(&[here], begin).next(), None, "nobody watches over himself");
    }

    #[test]
    fn a_host_that_falls_silent_is_given_up_after_a_while() {
        let begin = Instant::now();
        let mut vigil = vigil(begin);
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut ask =
            |seconds, is_there| vigil.is_over_by(Duration::ZERO, at(seconds), |_| is_there);
        assert!(!ask(4, true) && !ask(8, false) && !ask(12, true), "an answer ends the silence");
        assert!(!ask(16, false) && !ask(20, false) && !ask(24, false));
        assert!(ask(28, false));
    }

    #[test]
    fn a_host_that_has_never_answered_there_is_not_judged() {
        let begin = Instant::now();
        let mut vigil = vigil(begin);
        assert!(!vigil.is_over_by(Duration::ZERO, begin + INTERVAL, |_| false));
        assert_eq!(vigil.next(), None);
        assert!(!vigil.is_over_by(Duration::ZERO, begin + 100 * INTERVAL, |_| false));
    }

    #[test]
    fn this_machine_answers_at_a_closed_port() {
        let begin = Instant::now();
        let mut vigil = vigil(begin);
        assert!(!vigil.is_over(Duration::ZERO, begin + INTERVAL));
        assert!(vigil.next().is_some());
    }
}
