//! A watchdog over the front-end's host: it probes a closed port of it.
//!
//! A host that was switched off does not answer, and TCP keeps a connection to it for a quarter of
//! an hour if bytes were unacknowledged. A host that is up refuses connections to a closed port at
//! once, whatever its programs do, and without filling the queue of any listener. A host that does
//! not answer the first probe is not judged by later ones: a firewall may drop them. Nor is a host
//! probed at addresses that this machine has as well, such as those of container bridges: this
//! machine would answer itself.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use sapwood_transport::{Address, Error, interfaces, probe_port};

/// A port at which hardly any program listens (RFC 1078). If one does, its answer counts as well.
const CLOSED_PORT: u16 = 1;

/// Between two probes, and how long an answer may take.
const INTERVAL: Duration = Duration::from_secs(4);
const DEADLINE: Duration = Duration::from_secs(1);

/// The silence limit of a host that has answered before.
const SILENCE: Duration = Duration::from_secs(10);

/// The watchdog over one host.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// The addresses to probe; after the first probe, those that have answered.
    targets: Vec<Address>,
    has_asked: bool,
    next: Instant,
    silent_since: Option<Instant>,
}

impl Watchdog {
    /// A watchdog over the host that takes connections at these addresses.
    pub(crate) fn over(front_end: &[Address], now: Instant) -> Self {
        let own = interfaces().unwrap_or_default();
        let own: Vec<IpAddr> = own.iter().map(|interface| interface.address).collect();
        Self::beyond(&own, front_end, now)
    }

    /// As [`Watchdog::over`], from a machine with these addresses.
    fn beyond(own: &[IpAddr], front_end: &[Address], now: Instant) -> Self {
        let places = front_end.iter().filter_map(|address| address.resolve().ok()).flatten();
        let mut hosts: Vec<_> = places.map(|place: SocketAddr| place.ip()).collect();
        hosts.retain(|ip| !own.contains(ip));
        hosts.dedup();
        let target = |ip| Address::at_each(&[ip], CLOSED_PORT);
        let targets = hosts.into_iter().map(target).collect();
        Self { targets, has_asked: false, next: now + INTERVAL, silent_since: None }
    }

    /// When the next probe is due; none if no address can be probed.
    pub(crate) fn next(&self) -> Option<Instant> {
        (!self.targets.is_empty()).then_some(self.next)
    }

    /// Whether the host has been silent for longer than `patience`. Probes it if a probe is due,
    /// which takes up to a second for each address that does not answer.
    pub(crate) fn is_over(&mut self, patience: Duration, now: Instant) -> bool {
        self.is_over_by(patience, now, |target| {
            matches!(probe_port(target, DEADLINE), Ok(()) | Err(Error::Refused { .. }))
        })
    }

    fn is_over_by(
        &mut self,
        patience: Duration,
        now: Instant,
        mut answers: impl FnMut(&Address) -> bool,
    ) -> bool {
        if self.targets.is_empty() || now < self.next {
            return false;
        }
        self.next = now + INTERVAL;
        if !self.has_asked {
            self.has_asked = true;
            self.targets.retain(|target| answers(target));
            return false;
        }
        if self.targets.iter().any(answers) {
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

    fn watchdog(now: Instant) -> Watchdog {
        Watchdog::beyond(&[], &["tcp:[127.0.0.1,127.0.0.2]:4000".parse().unwrap()], now)
    }

    #[test]
    fn an_address_that_this_machine_has_too_is_not_probed() {
        let begin = Instant::now();
        let front_end = "tcp:[10.0.0.1,172.17.0.1]:4000".parse().unwrap();
        let bridge = "172.17.0.1".parse().unwrap();
        let mut watchdog = Watchdog::beyond(&[bridge], &[front_end], begin);
        let mut asked = Vec::new();
        watchdog.is_over_by(Duration::ZERO, begin + INTERVAL, |target| {
            asked.push(target.resolve().unwrap()[0].ip());
            true
        });
        assert_eq!(asked, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        let here: Address = "tcp:127.0.0.1:4000".parse().unwrap();
        assert_eq!(Watchdog::over(&[here], begin).next(), None, "a machine does not watch itself");
    }

    #[test]
    fn a_host_that_falls_silent_is_given_up_after_a_while() {
        let begin = Instant::now();
        let mut watchdog = watchdog(begin);
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut ask =
            |seconds, is_there| watchdog.is_over_by(Duration::ZERO, at(seconds), |_| is_there);
        assert!(!ask(4, true) && !ask(8, false) && !ask(12, true), "an answer ends the silence");
        assert!(!ask(16, false) && !ask(20, false) && !ask(24, false));
        assert!(ask(28, false));
    }

    #[test]
    fn a_host_that_has_never_answered_there_is_not_judged() {
        let begin = Instant::now();
        let mut watchdog = watchdog(begin);
        assert!(!watchdog.is_over_by(Duration::ZERO, begin + INTERVAL, |_| false));
        assert_eq!(watchdog.next(), None);
        assert!(!watchdog.is_over_by(Duration::ZERO, begin + 100 * INTERVAL, |_| false));
    }

    #[test]
    fn this_machine_answers_at_a_closed_port() {
        let begin = Instant::now();
        let mut watchdog = watchdog(begin);
        assert!(!watchdog.is_over(Duration::ZERO, begin + INTERVAL));
        assert!(watchdog.next().is_some());
    }
}
