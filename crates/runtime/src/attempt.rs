//! The attempt to reach an ancestor in the place of a parent that is gone: one at a time, beside
//! whatever else the loop does. The node says whom to try and when to give up.

use std::time::Duration;

use sapwood_node::Instant;
use sapwood_transport::{Address, Dial, Encryption, Error, Key, Link, Poller, Progress};

use crate::links::Token;

/// How long an attempt may last that the node does not replace by another.
const LIMIT: Duration = Duration::from_secs(10);

/// The attempt under way, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    dial: Option<(Dial, Instant)>,
}

/// Why an attempt has failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// Whether nobody takes connections at the address.
    pub(crate) is_refused: bool,
}

impl Attempt {
    /// Begins a new attempt in the place of the last one.
    pub(crate) fn begin(
        &mut self,
        address: &str,
        key: &Key,
        encryption: Encryption,
        poller: &Poller,
        now: Instant,
    ) -> Result<(), Failure> {
        self.give_up(poller);
        let address: Address = address.parse()?;
        let dial = Dial::start(&address, key, encryption)?;
        self.watch(dial, now + LIMIT, poller)
    }

    /// Goes on with it; the link, once there is one.
    pub(crate) fn advance(&mut self, poller: &Poller) -> Result<Option<Link>, Failure> {
        let Some((mut dial, until)) = self.dial.take() else { return Ok(None) };
        // The next step may have another descriptor.
        poller.remove(&dial)?;
        match dial.advance()? {
            Progress::Done(link) => Ok(Some(link)),
            Progress::WantRead | Progress::WantWrite => {
                self.watch(dial, until, poller).map(|()| None)
            }
        }
    }

    fn watch(&mut self, dial: Dial, until: Instant, poller: &Poller) -> Result<(), Failure> {
        poller.add(&dial, Token::Attempt.to_number(), dial.interest())?;
        self.dial = Some((dial, until));
        Ok(())
    }

    /// Lets go of an attempt that has taken too long.
    pub(crate) fn expire(&mut self, poller: &Poller, now: Instant) -> Result<(), Failure> {
        match &self.dial {
            Some((dial, until)) if *until <= now => {
                let address = dial.address();
                let reason = format!("no link to {address} within {} ms", LIMIT.as_millis());
                self.give_up(poller);
                Err(Failure { reason, is_refused: false })
            }
            _ => Ok(()),
        }
    }

    /// Lets go of it.
    pub(crate) fn give_up(&mut self, poller: &Poller) {
        if let Some((dial, _)) = self.dial.take() {
            // It is closed in any case.
            let _ = poller.remove(&dial);
        }
    }

    /// When [`Attempt::expire`] has something to do.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        self.dial.as_ref().map(|(_, until)| *until)
    }

    /// Whether there is one.
    pub(crate) fn is_under_way(&self) -> bool {
        self.dial.is_some()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let is_refused = matches!(error, Error::Refused { .. });
        Self { reason: error.to_string(), is_refused }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_transport::{Accepted, Handshake, Listener};

    use super::*;

    const NOW: Instant = Instant(5);

    /// A poller, a key, and where somebody listens.
    fn scene() -> (Poller, Key, Listener) {
        let listener = Listener::bind(&Address::local_abstract().unwrap()).unwrap();
        (Poller::new().unwrap(), Key::generate().unwrap(), listener)
    }

    fn begin(attempt: &mut Attempt, place: &str, poller: &Poller, key: &Key) -> Option<Failure> {
        attempt.begin(place, key, Encryption::Off, poller, NOW).err()
    }

    fn accept(listener: &mut Listener, key: &Key) -> Handshake {
        match listener.accept().unwrap() {
            Accepted::Incoming(incoming) => Handshake::responder(incoming, key, Encryption::Off),
            other => panic!("nobody came: {other:?}"),
        }
    }

    #[test]
    fn an_attempt_ends_with_a_link() {
        let (poller, key, mut listener) = scene();
        let mut attempt = Attempt::default();
        let place = listener.address().to_string();
        assert!(begin(&mut attempt, &place, &poller, &key).is_none());
        assert!(attempt.is_under_way());
        assert!(attempt.advance(&poller).unwrap().is_none());
        let mut ancestor = accept(&mut listener, &key);
        let _ = ancestor.advance().unwrap();
        assert!(attempt.advance(&poller).unwrap().is_some());
        assert!(!attempt.is_under_way() && attempt.next_tick().is_none());
        assert!(attempt.advance(&poller).unwrap().is_none(), "there is none any more");
    }

    #[test]
    fn only_where_nobody_listens_an_attempt_is_refused() {
        let (poller, key, mut listener) = scene();
        let mut attempt = Attempt::default();
        let place = listener.address().to_string();
        assert!(begin(&mut attempt, &place, &poller, &key).is_none());
        assert!(attempt.advance(&poller).unwrap().is_none());
        drop(accept(&mut listener, &key));
        let failure = attempt.advance(&poller).unwrap_err();
        assert!(!failure.is_refused, "{}", failure.reason);
        drop(listener);
        let failure = begin(&mut attempt, &place, &poller, &key).unwrap();
        assert!(failure.is_refused, "{}", failure.reason);
        let failure = begin(&mut attempt, "nowhere", &poller, &key).unwrap();
        assert!(!failure.is_refused, "{}", failure.reason);
        assert!(!attempt.is_under_way());
    }

    #[test]
    fn a_newer_attempt_takes_the_place_of_an_older_one() {
        let (mut poller, key, mut listener) = scene();
        let mut attempt = Attempt::default();
        let place = listener.address().to_string();
        assert!(begin(&mut attempt, &place, &poller, &key).is_none());
        assert!(begin(&mut attempt, &place, &poller, &key).is_none());
        let _ = attempt.advance(&poller).unwrap();
        let mut first = accept(&mut listener, &key);
        assert!(first.advance().is_err(), "it was closed");
        let mut second = accept(&mut listener, &key);
        let _ = second.advance().unwrap();
        let mut events = Vec::new();
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.len(), 1, "only the newer one is watched");
    }

    #[test]
    fn an_attempt_that_takes_too_long_is_let_go_of() {
        let (poller, key, listener) = scene();
        let mut attempt = Attempt::default();
        let place = listener.address().to_string();
        assert!(begin(&mut attempt, &place, &poller, &key).is_none());
        assert_eq!(attempt.next_tick(), Some(NOW + LIMIT));
        assert!(attempt.expire(&poller, NOW).is_ok());
        let failure = attempt.expire(&poller, NOW + LIMIT).unwrap_err();
        assert!(!failure.is_refused && failure.reason.contains(&place), "{}", failure.reason);
        assert!(!attempt.is_under_way());
    }
}
