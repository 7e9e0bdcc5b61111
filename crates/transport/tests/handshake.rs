//! A peer that proves the key is served, over every kind of socket; another has a clear error.

use std::time::Duration;

use crate::harness::{PATIENCE, assert_carries, both_sides, listeners, refusal, serve_one};
use sapwood_transport::{
    Address, Encryption, Error, Handshake, Key, Listener, Progress, WhenRefused, connect,
};

#[test]
fn a_link_comes_about_over_unix_and_tcp_with_and_without_encryption() {
    let key = Key::generate().unwrap();
    for mut listener in listeners() {
        for encryption in [Encryption::On, Encryption::Off] {
            let address = listener.address().clone();
            let theirs = key.clone();
            let back_end = std::thread::spawn(move || {
                connect(&address, &theirs, encryption, PATIENCE, WhenRefused::Fail)
            });
            let mut front_end = serve_one(&mut listener, &key, encryption).unwrap();
            let mut back_end = back_end.join().unwrap().unwrap();
            assert_eq!(front_end.encryption(), encryption);
            assert_carries(&mut front_end, &mut back_end, b"request");
            assert_carries(&mut back_end, &mut front_end, b"answer");
        }
    }
}

#[test]
fn a_host_name_with_several_addresses_finds_the_one_that_listens() {
    let key = Key::generate().unwrap();
    let mut listener = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let port = listener.address().port().unwrap();
    let address: Address = format!("tcp:localhost:{port}").parse().unwrap();
    let theirs = key.clone();
    let back_end = std::thread::spawn(move || {
        connect(&address, &theirs, Encryption::On, PATIENCE, WhenRefused::Fail)
    });
    serve_one(&mut listener, &key, Encryption::On).unwrap();
    assert!(back_end.join().unwrap().is_ok());
}

#[test]
fn a_listener_that_starts_late_is_waited_for() {
    let key = Key::generate().unwrap();
    let address = Address::local_abstract().unwrap();
    let (late, theirs) = (address.clone(), key.clone());
    let back_end = std::thread::spawn(move || {
        connect(&late, &theirs, Encryption::Off, PATIENCE, WhenRefused::Retry)
    });
    let mut listener = Listener::bind(&address).unwrap();
    serve_one(&mut listener, &key, Encryption::Off).unwrap();
    assert!(back_end.join().unwrap().is_ok());
}

#[test]
fn no_listener_and_no_answer_are_different_errors() {
    let key = Key::generate().unwrap();
    let attempt = |address: &Address, when| {
        connect(address, &key, Encryption::Off, Duration::from_millis(50), when).unwrap_err()
    };
    for listener in listeners() {
        let address = listener.address().clone();
        let silent = attempt(&address, WhenRefused::Fail);
        assert!(matches!(silent, Error::TimedOut { .. }), "{silent}");
        drop(listener);
        for when in [WhenRefused::Fail, WhenRefused::Retry] {
            let refused = attempt(&address, when);
            assert!(matches!(refused, Error::Refused { .. }), "{refused}");
            assert!(refused.to_string().contains(&address.to_string()));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = format!("unix:{}/none", folder.path().display()).parse().unwrap();
    assert!(matches!(attempt(&path, WhenRefused::Fail), Error::Refused { .. }));
}

#[test]
fn a_wrong_key_is_named_at_both_ends() {
    let (one, two) = (Key::generate().unwrap(), Key::generate().unwrap());
    for encryption in [Encryption::On, Encryption::Off] {
        let (initiator, responder) = both_sides((&one, encryption), (&two, encryption));
        assert!(matches!(refusal(initiator), Error::WrongKey { .. }));
        assert!(matches!(refusal(responder), Error::WrongKey { .. }));
    }
}

#[test]
fn a_difference_about_encryption_is_named_at_both_ends() {
    let key = Key::generate().unwrap();
    for (one, two) in [(Encryption::On, Encryption::Off), (Encryption::Off, Encryption::On)] {
        let (initiator, responder) = both_sides((&key, one), (&key, two));
        let (initiator, responder) = (refusal(initiator), refusal(responder));
        assert!(matches!(initiator, Error::EncryptionMismatch { own, .. } if own == one));
        assert!(matches!(responder, Error::EncryptionMismatch { own, .. } if own == two));
    }
}

#[test]
fn unix_sockets_default_to_plain_and_tcp_to_encrypted() {
    assert_eq!(Encryption::default_for(&"unix:@a".parse().unwrap()), Encryption::Off);
    assert_eq!(Encryption::default_for(&"tcp:a:1".parse().unwrap()), Encryption::On);
}

#[test]
fn a_peer_that_leaves_midway_is_told_apart_from_one_with_a_wrong_key() {
    let key = Key::generate().unwrap();
    let (incoming, theirs) = crate::harness::stranger();
    let mut initiator = Handshake::initiator(theirs.into(), &key, Encryption::Off).unwrap();
    assert!(matches!(initiator.advance().unwrap(), Progress::WantRead));
    drop(incoming);
    let error = initiator.advance().unwrap_err();
    assert!(matches!(error, Error::ClosedDuringHandshake { .. }), "{error}");
}

#[test]
fn bytes_that_follow_the_proof_at_once_are_not_lost() {
    let key = Key::generate().unwrap();
    for encryption in [Encryption::On, Encryption::Off] {
        let (incoming, theirs) = crate::harness::stranger();
        let mut one = Handshake::initiator(theirs.into(), &key, encryption).unwrap();
        let mut two = Handshake::responder(incoming, &key, encryption);
        let _ = one.advance().unwrap();
        let _ = two.advance().unwrap();
        let Progress::Done(mut one) = one.advance().unwrap() else { panic!("not done") };
        one.write_vectored(&[std::io::IoSlice::new(b"first request")]).unwrap();
        let Progress::Done(mut two) = two.advance().unwrap() else { panic!("not done") };
        let mut buffer = [0; 64];
        assert_eq!(two.read(&mut buffer).unwrap(), 13);
        assert_eq!(&buffer[..13], b"first request");
    }
}

#[test]
fn a_finished_handshake_says_so() {
    let (mut handshake, raw) =
        crate::harness::responder(&Key::generate().unwrap(), Encryption::Off);
    drop(raw);
    assert!(handshake.advance().is_err());
    let key = Key::generate().unwrap();
    let (incoming, theirs) = crate::harness::stranger();
    let mut one = Handshake::initiator(theirs.into(), &key, Encryption::Off).unwrap();
    let mut two = Handshake::responder(incoming, &key, Encryption::Off);
    let _ = one.advance().unwrap();
    let _ = two.advance().unwrap();
    assert!(matches!(one.advance().unwrap(), Progress::Done(_)));
    assert!(matches!(one.advance().unwrap_err(), Error::ApiMisuse { .. }));
}
