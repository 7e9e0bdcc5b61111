//! Junk, other protocols, silence, replays and port scans: none is served, and each holds little
//! memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::harness::{is_alone, open_descriptors, responder, rest_of, stranger};
use proptest::prelude::*;
use sapwood_transport::{
    Accepted, Address, Admission, Encryption, Error, HANDSHAKE_DEADLINE_MS,
    HANDSHAKE_FRAME_BYTES_MAX, Handshake, Key, Listener, Pending, Progress,
};

/// What became of a responder to which a stranger sent `bytes`, and what the stranger got back.
fn send_to_responder(key: &Key, bytes: &[u8]) -> (Result<Progress, Error>, Vec<u8>) {
    let (mut handshake, mut raw) = responder(key, Encryption::Off);
    raw.write_all(bytes).unwrap();
    let outcome = handshake.advance();
    drop(handshake);
    (outcome, rest_of(raw))
}

#[test]
fn other_protocols_are_closed_at_their_first_bytes_without_an_answer() {
    let key = Key::generate().unwrap();
    let openings: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\nHost: node\r\n\r\n",
        b"G",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00",
        b"\xff\xff",
        b"\x40\x01",
    ];
    for opening in openings {
        let (outcome, answer) = send_to_responder(&key, opening);
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::PeerMisbehaved { .. }), "{opening:?}: {error}");
        assert_eq!(answer, b"");
    }
}

#[test]
fn a_frame_of_another_size_is_refused_by_its_length_alone() {
    let key = Key::generate().unwrap();
    for length in [0_u16, 1, 63, 65, 255, 256, 257, u16::MAX] {
        let (outcome, answer) = send_to_responder(&key, &length.to_le_bytes());
        assert!(matches!(outcome.unwrap_err(), Error::PeerMisbehaved { .. }), "{length}");
        assert_eq!(answer, b"");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_without_the_key_are_served(junk in prop::collection::vec(any::<u8>(), 0..300)) {
        let key = Key::generate().unwrap();
        for prefix in [&b""[..], &b"\x40\x00"[..]] {
            let (outcome, answer) = send_to_responder(&key, &[prefix, &junk[..]].concat());
            prop_assert!(!matches!(outcome, Ok(Progress::Done(_))));
            prop_assert!(answer.is_empty() || answer == [1, 0, 1]);
        }
    }

    #[test]
    fn no_bytes_convince_an_initiator(junk in prop::collection::vec(any::<u8>(), 0..300)) {
        let key = Key::generate().unwrap();
        for prefix in [&b""[..], &b"\x40\x00"[..], &b"\x01\x00"[..]] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let mut handshake =
                Handshake::initiator(OwnedFd::from(ours), &key, Encryption::Off).unwrap();
            theirs.write_all(prefix).unwrap();
            theirs.write_all(&junk).unwrap();
            drop(theirs);
            for _ in 0..3 {
                let outcome = handshake.advance();
                prop_assert!(!matches!(outcome, Ok(Progress::Done(_))));
                if outcome.is_err() {
                    break;
                }
            }
        }
    }
}

#[test]
fn bytes_that_come_one_at_a_time_are_a_handshake_too() {
    let key = Key::generate().unwrap();
    let (ours, mut wire) = UnixStream::pair().unwrap();
    let (mut answering, mut raw) = responder(&key, Encryption::Off);
    let mut initiator = Handshake::initiator(ours.into(), &key, Encryption::Off).unwrap();
    assert!(matches!(initiator.advance().unwrap(), Progress::WantRead));
    forward_slowly(&mut wire, &mut raw, 66, || assert!(answering.advance().is_ok()));
    let mut done = false;
    forward_slowly(&mut raw, &mut wire, 66, || {
        done |= matches!(initiator.advance().unwrap(), Progress::Done(_));
    });
    assert!(done);
    let mut served = false;
    forward_slowly(&mut wire, &mut raw, 34, || {
        served |= matches!(answering.advance().unwrap(), Progress::Done(_));
    });
    assert!(served);
}

fn forward_slowly(
    from: &mut UnixStream,
    to: &mut UnixStream,
    count: usize,
    mut after_each: impl FnMut(),
) {
    let mut bytes = vec![0; count];
    from.read_exact(&mut bytes).unwrap();
    for byte in bytes {
        to.write_all(&[byte]).unwrap();
        after_each();
    }
}

#[test]
fn a_silent_connection_is_expired_by_the_bookkeeping() {
    let key = Key::generate().unwrap();
    let (mut handshake, raw) = responder(&key, Encryption::Off);
    let mut pending = Pending::new();
    assert_eq!(pending.admit(1, &handshake.peer(), 0), Admission::Admitted);
    assert!(matches!(handshake.advance().unwrap(), Progress::WantRead));
    assert!(!handshake.has_first_message());
    assert_eq!(pending.expire(HANDSHAKE_DEADLINE_MS * 1_000_000 - 1), None);
    assert_eq!(pending.expire(HANDSHAKE_DEADLINE_MS * 1_000_000), Some(1));
    drop(handshake);
    assert_eq!(rest_of(raw), b"");
    assert!(HANDSHAKE_FRAME_BYTES_MAX <= 256 && size_of::<Handshake>() <= 256);
}

/// Relays an honest handshake and keeps what each side sent.
fn recorded(key: &Key) -> (Vec<u8>, Vec<u8>) {
    let (ours, mut wire) = UnixStream::pair().unwrap();
    let mut initiator = Handshake::initiator(ours.into(), key, Encryption::Off).unwrap();
    let (mut answering, mut raw) = responder(key, Encryption::Off);
    let (mut first, mut second, mut third) = ([0; 66], [0; 66], [0; 34]);
    let _ = initiator.advance().unwrap();
    wire.read_exact(&mut first).unwrap();
    raw.write_all(&first).unwrap();
    let _ = answering.advance().unwrap();
    raw.read_exact(&mut second).unwrap();
    wire.write_all(&second).unwrap();
    assert!(matches!(initiator.advance().unwrap(), Progress::Done(_)));
    wire.read_exact(&mut third).unwrap();
    raw.write_all(&third).unwrap();
    assert!(matches!(answering.advance().unwrap(), Progress::Done(_)));
    (first.to_vec(), third.to_vec())
}

#[test]
fn a_replayed_first_message_is_answered_and_never_served() {
    let key = Key::generate().unwrap();
    let (first, _) = recorded(&key);
    let (mut handshake, mut raw) = responder(&key, Encryption::Off);
    raw.write_all(&first).unwrap();
    assert!(matches!(handshake.advance().unwrap(), Progress::WantRead));
    assert!(matches!(handshake.advance().unwrap(), Progress::WantRead), "it still waits");
    drop(raw);
    // The answer was not read, so the close may show up as a reset; it is an end either way.
    let error = handshake.advance().unwrap_err();
    assert!(matches!(error, Error::ClosedDuringHandshake { .. }), "{error}");
}

#[test]
fn a_replayed_transcript_is_recognised() {
    let key = Key::generate().unwrap();
    let (first, third) = recorded(&key);
    let (mut handshake, mut raw) = responder(&key, Encryption::Off);
    raw.write_all(&first).unwrap();
    raw.write_all(&third).unwrap();
    let error = handshake.advance().unwrap_err();
    assert!(matches!(error, Error::PeerMisbehaved { .. }), "{error}");
    assert!(error.to_string().contains("replay"));
}

#[test]
fn an_initiator_does_not_take_its_own_message_for_an_answer() {
    let key = Key::generate().unwrap();
    let (ours, mut wire) = UnixStream::pair().unwrap();
    let mut initiator = Handshake::initiator(ours.into(), &key, Encryption::Off).unwrap();
    let _ = initiator.advance().unwrap();
    let mut first = [0; 66];
    wire.read_exact(&mut first).unwrap();
    wire.write_all(&first).unwrap();
    assert!(matches!(initiator.advance().unwrap_err(), Error::WrongKey { .. }));
}

#[test]
fn a_port_scan_leaves_no_descriptor_behind() {
    if !is_alone("strangers::a_port_scan_leaves_no_descriptor_behind") {
        return;
    }
    let key = Key::generate().unwrap();
    let mut listener = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let place = listener.address().resolve().unwrap()[0];
    scan(place, &mut listener, &key);
    let before = open_descriptors();
    for _ in 0..1000 {
        scan(place, &mut listener, &key);
    }
    assert_eq!(open_descriptors(), before);
}

fn scan(place: SocketAddr, listener: &mut Listener, key: &Key) {
    drop(TcpStream::connect(place).unwrap());
    let incoming = crate::harness::accept_one(listener);
    let mut handshake = Handshake::responder(incoming, key, Encryption::On);
    crate::harness::wait_readable(&handshake);
    let error = handshake.advance().unwrap_err();
    assert!(matches!(error, Error::ClosedDuringHandshake { .. }), "{error}");
}

#[test]
fn running_out_of_descriptors_is_survived_with_growing_pauses() {
    if !is_alone("strangers::running_out_of_descriptors_is_survived_with_growing_pauses") {
        return;
    }
    let address = Address::local_abstract().unwrap();
    let mut listener = Listener::bind(&address).unwrap();
    let name = address.to_string().trim_start_matches("unix:@").to_owned();
    let place =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
            name,
        )
        .unwrap();
    let _waiting = UnixStream::connect_addr(&place).unwrap();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let low = rustix::process::Rlimit { current: Some(64), ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, low).unwrap();
    let mut hoard = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        hoard.push(file);
    }
    let mut pauses = Vec::new();
    for _ in 0..10 {
        let Accepted::Pause(pause) = listener.accept().unwrap() else { panic!("no pause") };
        pauses.push(pause);
    }
    assert!(pauses.is_sorted() && pauses[0] < pauses[3], "{pauses:?}");
    assert!(pauses[9] <= std::time::Duration::from_secs(1));
    drop(hoard);
    assert!(matches!(listener.accept().unwrap(), Accepted::Incoming(_)));
}

#[test]
fn credentials_of_a_stranger_can_be_checked_by_hand() {
    let (incoming, _raw) = stranger();
    let found = sapwood_transport::PeerCredentials::check(&incoming).unwrap();
    assert_eq!(found.process, std::process::id() as i32);
}
