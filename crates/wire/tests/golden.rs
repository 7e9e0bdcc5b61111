//! The golden vectors of `conformance/vectors` are what this crate writes and reads.

use std::collections::BTreeSet;
use std::process::Command;

use sapwood_packet::{Directive, ElementType, Shape, Slab};
use sapwood_wire::{Frame, decode, frame_length};

mod vectors;

use vectors::{packets, records, text};

#[test]
fn every_frame_is_what_the_encoder_makes_of_its_fields() {
    for file in vectors::FILES {
        let text = text(file);
        assert!(
            vectors::rewritten(file, &text) == text,
            "{file} differs from the encoder; if the wire was changed on purpose, raise \
             WIRE_VERSION and run: cargo run -p sapwood-wire --example golden -- --write"
        );
        for record in records(&text) {
            assert_eq!(record.frame(), vectors::encoded(file, &record), "{}", record.name());
        }
    }
}

#[test]
fn every_packet_is_decoded_into_its_fields() {
    for record in records(&text("packets.txt")) {
        let frame = Slab::copy_of(&record.frame());
        assert_eq!(frame_length(frame.as_bytes()), Ok(Some(frame.len())), "{}", record.name());
        match decode(frame.as_bytes()) {
            Ok(Frame::Packet(packet)) => {
                let description = packets::description(&packet);
                assert_eq!(description, record.description(), "{}", record.name());
            }
            other => panic!("{}: {other:?}", record.name()),
        }
    }
}

#[test]
fn every_control_message_is_decoded_into_its_fields() {
    for record in records(&text("controls.txt")) {
        let frame = Slab::copy_of(&record.frame());
        let expected = Frame::Control(vectors::control_of(&record));
        assert_eq!(decode(frame.as_bytes()), Ok(expected), "{}", record.name());
    }
}

#[test]
fn every_malformed_frame_is_refused_by_name() {
    for record in records(&text("malformed.txt")) {
        let frame = Slab::copy_of(&record.frame());
        let error = decode(frame.as_bytes()).expect_err(record.name());
        assert_eq!(vectors::error_name(&error), record.field("error"), "{}", record.name());
    }
}

#[test]
fn the_vectors_cover_every_directive_flag_and_message() {
    let packets = records(&text("packets.txt"));
    let used: BTreeSet<&str> =
        packets.iter().flat_map(|record| record.field("format").split(' ')).collect();
    for element in ElementType::ALL {
        for shape in [Shape::Scalar, Shape::Array, Shape::LargeArray] {
            let directive = Directive::new(element, shape).to_string();
            assert!(used.contains(directive.as_str()), "no vector with {directive}");
        }
    }
    let flags: BTreeSet<&str> =
        packets.iter().flat_map(|record| record.field("flags").split(' ')).collect();
    for flag in ["filtered", "ends_wave", "late", "chunk", "void", "run"] {
        assert!(flags.contains(flag), "no vector with the flag {flag}");
    }
    let orders: BTreeSet<&str> =
        packets.iter().filter_map(|record| record.field("order").split(' ').next()).collect();
    for order in ["wave", "single", "part", "direct", "last"] {
        assert!(orders.contains(order), "no vector with the order {order}");
    }
    // The first byte of a message is its variant.
    let controls = records(&text("controls.txt"));
    let variants: BTreeSet<u8> = controls.iter().map(|record| record.frame()[8]).collect();
    assert_eq!(variants.into_iter().collect::<Vec<_>>(), (0..CONTROL_VARIANTS).collect::<Vec<_>>());
}

/// How many kinds of control message there are.
const CONTROL_VARIANTS: u8 = 29;

#[test]
fn a_decoder_written_from_the_drawings_reads_the_same() {
    let program = vectors::path("../check.py");
    let output = Command::new("python3").arg("-B").arg(program).output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn no_two_vectors_have_one_name() {
    let mut names = BTreeSet::new();
    for file in vectors::FILES {
        for record in records(&text(file)) {
            assert!(names.insert(record.name().to_owned()), "two vectors '{}'", record.name());
        }
    }
}
