//! The attempt of an orphan to reach an ancestor: one at a time, concurrent with the other work of
//! the loop. The node says which ancestor to try and when to give up. All addresses of the ancestor
//! are tried side by side, and the first that proves the key is kept.

use std::time::Duration;

use sapwood_node::Instant;
use sapwood_transport::{Address, Dial, Encryption, Key, Link, LinkTerms, Poller, Progress};

use crate::failure::Failure;
use crate::token::Token;

/// How long an attempt may last that the node does not replace by another.
const LIMIT: Duration = Duration::from_secs(10);

/// The attempt under way, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    dials: Vec<Dial>,
    /// What the addresses that have failed said.
    failure: Option<Failure>,
    until: Option<Instant>,
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
        let terms = LinkTerms { encryption, shares_memory: true };
        let (dials, failure) = Dial::start_each(&address, key, terms)?;
        self.failure = failure.map(Failure::from);
        for dial in dials {
            self.watch(dial, poller)?;
        }
        self.until = Some(now + LIMIT);
        if self.dials.is_empty() { self.fail().map(drop) } else { Ok(()) }
    }

    /// Goes on with it; the link, once there is one.
    pub(crate) fn advance(&mut self, poller: &Poller) -> Result<Option<Link>, Failure> {
        if self.until.is_none() {
            return Ok(None);
        }
        for mut dial in std::mem::take(&mut self.dials) {
            // The next step may have another descriptor.
            poller.remove(&dial)?;
            match dial.advance() {
                Ok(Progress::Done(link)) => {
                    self.give_up(poller);
                    return Ok(Some(link));
                }
                Ok(Progress::WantRead | Progress::WantWrite) => self.watch(dial, poller)?,
                Err(error) => {
                    let failure = Failure::from(error);
                    let before = self.failure.take();
                    self.failure = Some(match before {
                        Some(before) => before.and(failure),
                        None => failure,
                    });
                }
            }
        }
        if self.dials.is_empty() { self.fail() } else { Ok(None) }
    }

    fn fail(&mut self) -> Result<Option<Link>, Failure> {
        self.until = None;
        let no_address =
            || Failure { reason: "the ancestor has no address".to_owned(), is_refused: true };
        Err(self.failure.take().unwrap_or_else(no_address))
    }

    fn watch(&mut self, dial: Dial, poller: &Poller) -> Result<(), Failure> {
        poller.add(&dial, Token::Attempt.to_number(), dial.interest())?;
        self.dials.push(dial);
        Ok(())
    }

    /// Lets go of an attempt that has taken too long.
    pub(crate) fn expire(&mut self, poller: &Poller, now: Instant) -> Result<(), Failure> {
        if self.until.is_none_or(|until| now < until) {
            return Ok(());
        }
        let address = self.dials.first().map(|dial| dial.address().to_string());
        let address = address.unwrap_or_default();
        let reason = format!("no link to {address} within {} ms", LIMIT.as_millis());
        self.give_up(poller);
        Err(Failure::other(reason))
    }

    /// Lets go of it.
    pub(crate) fn give_up(&mut self, poller: &Poller) {
        for dial in self.dials.drain(..) {
            // It is closed in any case.
            let _ = poller.remove(&dial);
        }
        self.until = None;
        self.failure = None;
    }

    /// When [`Attempt::expire`] has something to do.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        self.until
    }

    /// Whether there is one.
    pub(crate) fn is_under_way(&self) -> bool {
        self.until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use sapwood_transport::{Accepted, Handshake, Listener};

    use super::*;

    const NOW: Instant = Instant(5);

    /// A poller, a key and a listener.
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
            other => panic!("no connection: {other:?}"),
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
    fn only_without_a_listener_an_attempt_is_refused() {
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
