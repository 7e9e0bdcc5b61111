//! The nouns that the stories of these tests are told in.

#![allow(dead_code, reason = "each test file uses its part of the harness")]

use std::io::{IoSlice, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use sapwood_transport::{
    Accepted, Address, Encryption, Error, Handshake, Incoming, Key, Link, LinkTerms, Listener,
    Progress, Result,
};

/// Far longer than any step takes; a wait that reaches it has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Two joined sockets: what a listener accepted, and the raw other end.
pub fn stranger() -> (Incoming, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    (Incoming::from_socket(ours.into()).unwrap(), theirs)
}

/// A responder and the raw other end.
pub fn responder(key: &Key, encryption: Encryption) -> (Handshake, UnixStream) {
    let (incoming, theirs) = stranger();
    (Handshake::responder(incoming, key, encryption), theirs)
}

/// Both sides of a handshake over a socket pair.
pub fn both_sides(
    (one_key, one_choice): (&Key, impl Into<LinkTerms>),
    (two_key, two_choice): (&Key, impl Into<LinkTerms>),
) -> (Result<Link>, Result<Link>) {
    let (incoming, theirs) = stranger();
    let mut responder = Handshake::responder(incoming, two_key, two_choice);
    let mut initiator = Handshake::initiator(OwnedFd::from(theirs), one_key, one_choice).unwrap();
    let (mut one, mut two) = (None, None);
    let limit = Instant::now() + PATIENCE;
    while one.is_none() || two.is_none() {
        assert!(Instant::now() < limit, "the handshake hangs");
        step(&mut initiator, &mut one);
        step(&mut responder, &mut two);
    }
    (one.unwrap(), two.unwrap())
}

/// Two links joined by a real handshake.
pub fn linked(encryption: Encryption) -> (Link, Link) {
    let key = Key::generate().unwrap();
    let (one, two) = both_sides((&key, encryption), (&key, encryption));
    (one.unwrap(), two.unwrap())
}

fn step(side: &mut Handshake, outcome: &mut Option<Result<Link>>) {
    if outcome.is_none() {
        match side.advance() {
            Ok(Progress::Done(link)) => *outcome = Some(Ok(link)),
            Ok(_) => {}
            Err(error) => *outcome = Some(Err(error)),
        }
    }
}

/// Accepts one connection and brings its handshake to an end.
pub fn serve_one(listener: &mut Listener, key: &Key, encryption: Encryption) -> Result<Link> {
    let incoming = accept_one(listener);
    let mut handshake = Handshake::responder(incoming, key, encryption);
    loop {
        match handshake.advance()? {
            Progress::Done(link) => return Ok(link),
            Progress::WantRead => wait_readable(&handshake),
            Progress::WantWrite => {}
        }
    }
}

/// Waits for a connection.
pub fn accept_one(listener: &mut Listener) -> Incoming {
    loop {
        wait_readable(&*listener);
        match listener.accept().unwrap() {
            Accepted::Incoming(incoming) => return incoming,
            Accepted::Empty => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Waits until a descriptor is readable.
pub fn wait_readable(socket: impl AsFd) {
    let mut poller = sapwood_transport::Poller::new().unwrap();
    poller.add(&socket, 0, sapwood_transport::Interest::READ).unwrap();
    let mut events = Vec::new();
    poller.wait(&mut events, Some(PATIENCE)).unwrap();
    assert!(!events.is_empty(), "nothing came");
}

/// A listener of each kind.
pub fn listeners() -> Vec<Listener> {
    let places = [Address::local_abstract().unwrap(), "tcp:127.0.0.1:0".parse().unwrap()];
    places.iter().map(|place| Listener::bind(place).unwrap()).collect()
}

/// Sends `text` whole and reads it at the other end.
pub fn assert_carries(from: &mut Link, to: &mut Link, text: &[u8]) {
    assert_eq!(from.write_vectored(&[IoSlice::new(text)]).unwrap(), text.len());
    let mut received = Vec::new();
    let mut buffer = [0; 64];
    while received.len() < text.len() {
        if !to.has_buffered() {
            wait_readable(&*to);
        }
        let count = to.read(&mut buffer).unwrap();
        assert_ne!(count, 0);
        received.extend_from_slice(&buffer[..count]);
    }
    assert_eq!(received, text);
}

/// What is left to read at a raw end until its close.
pub fn rest_of(mut raw: impl Read) -> Vec<u8> {
    let mut rest = Vec::new();
    // A close with unread bytes behind it shows up as a reset: an end as well.
    let _ = raw.read_to_end(&mut rest);
    rest
}

/// How many descriptors this process has open.
pub fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The error of an outcome that must be one.
pub fn refusal(outcome: Result<Link>) -> Error {
    outcome.map(|link| link.peer_description()).expect_err("no peer may be served here")
}

/// Whether this test has its process for itself, as a test must that counts or limits the
/// process's descriptors. If not, it is run in a child process and has passed there.
pub fn is_alone(test: &str) -> bool {
    const ALONE: &str = "SAPWOOD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
    false
}
