//! A dial gets its link beside other work: everything here happens on one thread, where a call that
//! blocked would hang for ever.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use crate::harness::{PATIENCE, accept_one, assert_carries, listeners, wait_readable};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use sapwood_transport::{
    Address, Dial, Encryption, Error, Handshake, Incoming, Interest, Key, Link, Listener, Poller,
    Progress,
};

#[test]
fn a_dial_gets_its_link_over_every_kind_of_socket() {
    let key = Key::generate().unwrap();
    for mut listener in listeners() {
        for encryption in [Encryption::On, Encryption::Off] {
            let dial = Dial::start(listener.address(), &key, encryption).unwrap();
            let incoming = accept_one(&mut listener);
            let (mut one, mut two) = join(dial, Handshake::responder(incoming, &key, encryption));
            assert_carries(&mut one, &mut two, b"hello");
            assert_carries(&mut two, &mut one, b"welcome");
        }
    }
}

#[test]
fn without_a_listener_a_dial_is_refused() {
    let key = Key::generate().unwrap();
    for listener in listeners() {
        let address = listener.address().clone();
        drop(listener);
        let outcome = match Dial::start(&address, &key, Encryption::Off) {
            Ok(mut dial) => loop {
                wait_for(&dial);
                match dial.advance() {
                    Ok(progress) => assert!(!matches!(progress, Progress::Done(_))),
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        assert!(matches!(outcome, Error::Refused { .. }), "{outcome}");
        assert!(outcome.to_string().contains(&address.to_string()));
    }
}

#[test]
fn a_listener_that_says_nothing_is_not_taken_for_one_that_is_gone() {
    let key = Key::generate().unwrap();
    for mut listener in listeners() {
        let mut dial = Dial::start(listener.address(), &key, Encryption::Off).unwrap();
        while !matches!(dial.advance().unwrap(), Progress::WantRead) {
            wait_for(&dial);
        }
        for _ in 0..3 {
            assert!(matches!(dial.advance().unwrap(), Progress::WantRead), "it waits");
        }
        assert_eq!(dial.interest(), Interest::READ);
        drop(accept_one(&mut listener));
        wait_for(&dial);
        let error = dial.advance().unwrap_err();
        assert!(matches!(error, Error::ClosedDuringHandshake { .. }), "{error}");
    }
}

#[test]
fn a_wrong_key_is_named() {
    let (ours, theirs) = (Key::generate().unwrap(), Key::generate().unwrap());
    for mut listener in listeners() {
        let mut dial = Dial::start(listener.address(), &ours, Encryption::On).unwrap();
        let incoming = accept_one(&mut listener);
        let mut responder = Handshake::responder(incoming, &theirs, Encryption::On);
        let limit = Instant::now() + PATIENCE;
        let error = loop {
            assert!(Instant::now() < limit, "the handshake hangs");
            let _ = responder.advance();
            if let Err(error) = dial.advance() {
                break error;
            }
        };
        assert!(matches!(error, Error::WrongKey { .. }), "{error}");
    }
}

#[test]
fn the_addresses_of_a_host_are_tried_one_after_another() {
    let key = Key::generate().unwrap();
    let mut listener = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let port = listener.address().port().unwrap();
    let address: Address = format!("tcp:localhost:{port}").parse().unwrap();
    let mut dial = Dial::start(&address, &key, Encryption::On).unwrap();
    while dial.interest() == Interest::WRITE {
        wait_for(&dial);
        assert!(!matches!(dial.advance().unwrap(), Progress::Done(_)));
    }
    let incoming = accept_one(&mut listener);
    join(dial, Handshake::responder(incoming, &key, Encryption::On));
}

#[test]
fn a_full_backlog_is_waited_for() {
    let key = Key::generate().unwrap();
    let address = Address::local_abstract().unwrap();
    let listener = listener_of_two(&address);
    let crowd: Vec<Dial> =
        (0..3).map(|_| Dial::start(&address, &key, Encryption::Off).unwrap()).collect();
    let pausing = |dial: &&Dial| dial.interest() == Interest::READ;
    assert_eq!(crowd.iter().filter(pausing).count(), 1, "two of three found room");
    let mut crowd = crowd.into_iter();
    let (first, second, mut third) =
        (crowd.next().unwrap(), crowd.next().unwrap(), crowd.next().unwrap());
    wait_for(&third);
    assert!(matches!(third.advance().unwrap(), Progress::WantRead), "still no room");
    for dial in [first, second] {
        join(dial, Handshake::responder(accept_raw(&listener), &key, Encryption::Off));
    }
    wait_for(&third);
    assert!(matches!(third.advance().unwrap(), Progress::WantRead));
    join(third, Handshake::responder(accept_raw(&listener), &key, Encryption::Off));
}

#[test]
fn a_dial_ends_once() {
    let key = Key::generate().unwrap();
    let mut listener = Listener::bind(&Address::local_abstract().unwrap()).unwrap();
    let mut dial = Dial::start(listener.address(), &key, Encryption::Off).unwrap();
    assert_eq!(dial.address(), listener.address());
    assert!(matches!(dial.advance().unwrap(), Progress::WantRead));
    drop(accept_one(&mut listener));
    assert!(matches!(dial.advance().unwrap_err(), Error::ClosedDuringHandshake { .. }));
    assert!(dial.advance().is_err());
}

/// Drives both sides to their links.
fn join(mut dial: Dial, mut responder: Handshake) -> (Link, Link) {
    let mut accepted = None;
    let limit = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < limit, "the handshake hangs");
        let dialled = dial.advance().unwrap();
        if accepted.is_none()
            && let Progress::Done(link) = responder.advance().unwrap()
        {
            accepted = Some(link);
        }
        if let Progress::Done(link) = dialled {
            let accepted = accepted.unwrap_or_else(|| finish(responder));
            return (link, accepted);
        }
    }
}

/// Drives the accepting side alone, once the other side has said everything.
fn finish(mut responder: Handshake) -> Link {
    loop {
        match responder.advance().unwrap() {
            Progress::Done(link) => return link,
            _ => wait_readable(&responder),
        }
    }
}

/// Waits for what a dial is interested in.
fn wait_for(dial: &Dial) {
    let mut poller = Poller::new().unwrap();
    poller.add(dial, 0, dial.interest()).unwrap();
    let mut events = Vec::new();
    poller.wait(&mut events, Some(PATIENCE)).unwrap();
    assert!(!events.is_empty(), "nothing came");
}

/// A listener whose backlog holds two connections: the kernel lets in one more than it is told.
fn listener_of_two(address: &Address) -> OwnedFd {
    let text = address.to_string();
    let name = text.strip_prefix("unix:@").unwrap();
    let flags = SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let place = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    rustix::net::bind(&socket, &place).unwrap();
    rustix::net::listen(&socket, 1).unwrap();
    socket
}

fn accept_raw(listener: impl AsFd) -> Incoming {
    Incoming::from_socket(rustix::net::accept(listener).unwrap()).unwrap()
}
