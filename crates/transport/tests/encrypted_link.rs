//! Encrypted links carry every byte in order whatever the sizes, and notice any change.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;

use crate::harness::linked;
use proptest::prelude::*;
use sapwood_transport::{Encryption, Handshake, Key, Link, Progress};

/// The byte at a place of the endless test text.
fn text_at(place: usize) -> u8 {
    (place.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Moves `total` bytes with the given sizes of slices, writes and reads, taking turns so that
/// the socket fills and every write is cut somewhere.
fn transfer(encryption: Encryption, total: usize, slices: &[usize], reads: &[usize]) {
    let (mut from, mut to) = linked(encryption);
    let text: Vec<u8> = (0..total).map(text_at).collect();
    let (mut sent, mut received) = (0, 0);
    let (mut slice_sizes, mut read_sizes) = (slices.iter().cycle(), reads.iter().cycle());
    let mut buffer = vec![0; reads.iter().copied().max().unwrap()];
    while received < total {
        let mut list = Vec::new();
        let mut place = sent;
        while place < total && list.len() < slices.len() {
            let size = (*slice_sizes.next().unwrap()).min(total - place);
            list.push(IoSlice::new(&text[place..place + size]));
            place += size;
        }
        match from.write_vectored(&list) {
            Ok(count) => sent += count,
            Err(cause) => assert_eq!(cause.kind(), ErrorKind::WouldBlock),
        }
        let size = *read_sizes.next().unwrap();
        match to.read(&mut buffer[..size]) {
            Ok(count) => {
                assert_ne!(count, 0);
                assert_eq!(buffer[..count], text[received..received + count]);
                received += count;
            }
            Err(cause) => {
                assert_eq!(cause.kind(), ErrorKind::WouldBlock);
                assert!(!to.has_buffered(), "bytes that the poller does not know of");
            }
        }
    }
    assert_eq!(sent, total);
    assert!(!from.wants_write() && !to.has_buffered());
    drop(from);
    assert_eq!(to.read(&mut buffer).unwrap(), 0);
}

#[test]
fn ten_megabytes_arrive_intact_in_odd_sizes() {
    for encryption in [Encryption::On, Encryption::Off] {
        let slices = [1, 65_519, 65_520, 7, 300_000, 64, 0, 65_518, 4096];
        transfer(encryption, 10 << 20, &slices, &[65_536, 1, 70_000, 17, 200_000]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_sizes_arrive_intact(
        total in 1_usize..400_000,
        slices in prop::collection::vec(prop_oneof![0_usize..100, 1_usize..150_000], 1..8)
            .prop_filter("some slice has bytes", |sizes| sizes.iter().any(|size| *size > 0)),
        reads in prop::collection::vec(prop_oneof![50_usize..200, 1_000_usize..150_000], 1..8),
    ) {
        transfer(Encryption::On, total, &slices, &reads);
    }
}

#[test]
fn a_full_socket_takes_a_bounded_amount_and_says_so() {
    let (mut from, mut to) = linked(Encryption::On);
    let block = vec![7; 1 << 20];
    let mut sent = 0;
    loop {
        match from.write_vectored(&[IoSlice::new(&block)]) {
            Ok(count) => sent += count,
            Err(cause) => break assert_eq!(cause.kind(), ErrorKind::WouldBlock),
        }
    }
    assert!(from.wants_write());
    assert_eq!(from.flush().unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut buffer = vec![0; 1 << 20];
    let mut received = 0;
    while received < sent {
        received += to.read(&mut buffer).unwrap();
        match from.flush() {
            Ok(()) => {}
            Err(cause) => assert_eq!(cause.kind(), ErrorKind::WouldBlock),
        }
    }
    assert_eq!(received, sent);
    assert!(!from.wants_write());
    from.release_buffers();
    to.release_buffers();
    crate::harness::assert_carries(&mut from, &mut to, b"as before");
}

/// An encrypted link whose other end's ciphertext passes through the test's hands.
fn tapped() -> (Link, UnixStream, Link, UnixStream) {
    let key = Key::generate().unwrap();
    let (ours, mut near) = UnixStream::pair().unwrap();
    let mut initiator = Handshake::initiator(ours.into(), &key, Encryption::On).unwrap();
    let (mut responder, mut far) = crate::harness::responder(&key, Encryption::On);
    let carry = |from: &mut UnixStream, to: &mut UnixStream, count: usize| {
        let mut bytes = vec![0; count];
        from.read_exact(&mut bytes).unwrap();
        to.write_all(&bytes).unwrap();
    };
    let _ = initiator.advance().unwrap();
    carry(&mut near, &mut far, 66);
    let _ = responder.advance().unwrap();
    carry(&mut far, &mut near, 66);
    let Progress::Done(one) = initiator.advance().unwrap() else { panic!("not done") };
    carry(&mut near, &mut far, 34);
    let Progress::Done(two) = responder.advance().unwrap() else { panic!("not done") };
    (one, near, two, far)
}

/// One sealed frame of eleven bytes of text, and the link that may open it.
fn sealed_frame() -> (Vec<u8>, Link, UnixStream) {
    let (mut one, mut near, two, far) = tapped();
    one.write_vectored(&[IoSlice::new(b"eleven byte")]).unwrap();
    let mut frame = vec![0; 2 + 11 + 16];
    near.read_exact(&mut frame).unwrap();
    assert!(!frame.windows(6).any(|window| window == b"eleven"), "the text is hidden");
    (frame, two, far)
}

#[test]
fn an_untouched_frame_is_opened_and_a_second_copy_refused() {
    let (frame, mut to, mut far) = sealed_frame();
    far.write_all(&[&frame[..], &frame[..]].concat()).unwrap();
    let mut buffer = [0; 64];
    assert_eq!(to.read(&mut buffer).unwrap(), 11);
    assert_eq!(&buffer[..11], b"eleven byte");
    assert!(to.has_buffered(), "the error waits to be read");
    for _ in 0..2 {
        assert_eq!(to.read(&mut buffer).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}

#[test]
fn every_changed_bit_is_noticed() {
    for place in 0..29 {
        let (mut frame, mut to, mut far) = sealed_frame();
        frame[place] ^= 1 << (place % 8);
        far.write_all(&frame).unwrap();
        drop(far);
        let error = to.read(&mut [0; 64]).unwrap_err().kind();
        let expected = if place < 2 {
            // A changed length either cuts the frame short or waits for bytes that never come.
            [ErrorKind::InvalidData, ErrorKind::UnexpectedEof]
        } else {
            [ErrorKind::InvalidData; 2]
        };
        assert!(expected.contains(&error), "byte {place}: {error}");
    }
}

#[test]
fn an_end_within_a_frame_is_an_error_and_an_empty_frame_is_refused() {
    let (frame, mut to, mut far) = sealed_frame();
    far.write_all(&frame[..20]).unwrap();
    drop(far);
    assert_eq!(to.read(&mut [0; 64]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    for length in 0..=16_u16 {
        let (_, mut to, mut far) = sealed_frame();
        far.write_all(&length.to_le_bytes()).unwrap();
        assert_eq!(to.read(&mut [0; 64]).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
