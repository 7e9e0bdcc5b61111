//! A process that has a network's key and breaks its protocol: it comes as a back-end that was not
//! planned, is welcomed, tells one lie, and waits until its link is closed.
//!
//! Arguments: the address of a process of the tree, the file with the key, `on` or `off` for
//! encryption, and the lie's name; `member` is told on the first stream that it is a member of. It
//! ends well if the link was closed upon the lie.

use std::io::{ErrorKind, IoSlice};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood_packet::{Header, PacketRef, Rank, RankSet, Slab, StreamId, Values};
use sapwood_transport::{Address, Encryption, Key, Link, WhenRefused, connect};
use sapwood_wire::{
    Cause, Claim, Control, Frame, Ranges, WIRE_VERSION, decode, encode_control, encode_packet,
    frame_length,
};

/// A deadline that no step of this reaches.
const PATIENCE: Duration = Duration::from_secs(30);

fn control(message: &Control) -> Vec<u8> {
    let mut frame = Slab::default();
    encode_control(&mut frame, message).expect("as long as one may be");
    frame.as_bytes().to_vec()
}

/// A value of a stream that stands for these back-ends.
fn packet(rank: Rank, stream: StreamId, contributors: RankSet) -> Vec<u8> {
    let values = Values::new().scalar(1_000_000_i64);
    let header = Header { stream, tag: 100, origin: rank, ends_wave: true, ..Header::default() };
    let packet = PacketRef {
        header,
        contributors: contributors.as_ref(),
        format: values.as_ref().format(),
        body: values.as_ref().body(),
        ..PacketRef::default()
    };
    let mut frame = Slab::default();
    encode_packet(&mut frame, &packet).expect("short");
    frame.as_bytes().to_vec()
}

fn lie(name: &str, rank: Rank) -> Vec<u8> {
    let set = |first, last| Ranges::from(&RankSet::range(first, last));
    let wide = || Ranges::from(&(0..500_000).map(|number| 2 * number).collect::<RankSet>());
    let reason = String::from("gone");
    let rejoin = |former| Control::Rejoin {
        back_ends: set(rank, rank),
        covers: set(rank, rank),
        former,
        files: Vec::new(),
    };
    let message = match name {
        "others" => return packet(rank, 1, RankSet::range(0, 3)),
        "outside" => return packet(rank, 1, RankSet::range(0, 2000)),
        "rejoin" => rejoin(set(5, 6)),
        "wide-rejoin" => rejoin(wide()),
        "resume" => Control::Resume { stream: 1, up: (0, 0), down: (0, 0) },
        "resumed" => Control::Resumed,
        "superseded" => Control::Superseded { ranks: set(5, 6) },
        "wide-superseded" => Control::Superseded { ranks: wide() },
        "lost" => Control::Lost { rank: 6, back_ends: set(0, 3), reason, cause: Cause::Died },
        "wide-lost" => Control::Lost { rank: 6, back_ends: wide(), reason, cause: Cause::Died },
        "reached" => Control::Reached { back_ends: wide(), attach_points: Vec::new() },
        "credit" => Control::Credit { stream: 1, bytes: u32::MAX },
        "stream" => Control::Credit { stream: 9999, bytes: 1 },
        "shutdown" => Control::Shutdown,
        other => panic!("no lie is called {other}"),
    };
    control(&message)
}

/// Writes and reads until a frame has come; `None` when the link is closed.
fn exchange(link: &mut Link, mut words: &[u8], heard: &mut Slab) -> Option<usize> {
    let begin = Instant::now();
    let mut buffer = [0; 4096];
    loop {
        assert!(begin.elapsed() < PATIENCE, "the link is not closed");
        let length = frame_length(heard.as_bytes()).expect("a frame");
        if let Some(length) = length.filter(|&length| words.is_empty() && length <= heard.len()) {
            return Some(length);
        }
        if !words.is_empty() {
            match link.write_vectored(&[IoSlice::new(words)]) {
                Ok(count) => words = &words[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
        if link.wants_write() {
            let _ = link.flush();
        }
        match link.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => heard.extend(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return None,
        }
    }
}

/// Waits for a stream; others' messages are passed over.
fn opened(link: &mut Link, heard: &mut Slab) -> StreamId {
    loop {
        let length = exchange(link, &[], heard).expect("the link is open");
        if let Ok(Frame::Control(Control::Open(request))) = decode(&heard.as_bytes()[..length]) {
            return request.stream;
        }
        *heard = Slab::copy_of(&heard.as_bytes()[length..]);
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, key, encryption, name] = &words[..] else { panic!("four arguments") };
    let address: Address = address.parse().expect("an address");
    let key = Key::from_file(key.as_ref()).expect("the key");
    let encryption = if encryption == "on" { Encryption::On } else { Encryption::Off };
    let mut link =
        connect(&address, &key, encryption, PATIENCE, WhenRefused::Fail).expect("the key is right");
    let claim = Claim::Attached { rank: None };
    let hello = Control::Hello { version: WIRE_VERSION, claim, pid: 1, address: None };
    let mut heard = Slab::default();
    let length = exchange(&mut link, &control(&hello), &mut heard).expect("a welcome");
    let Ok(Frame::Control(Control::Welcome { rank, .. })) = decode(&heard.as_bytes()[..length])
    else {
        panic!("it is not welcomed");
    };
    let mut heard = Slab::copy_of(&heard.as_bytes()[length..]);
    let mut words = match name.as_str() {
        "member" => {
            let stream = opened(&mut link, &mut heard);
            let mut all = RankSet::range(0, 3);
            all.insert(rank);
            packet(rank, stream, all)
        }
        _ => lie(name, rank),
    };
    // What is said to it meanwhile is not looked at.
    while let Some(length) = exchange(&mut link, &words, &mut heard) {
        words.clear();
        heard = Slab::copy_of(&heard.as_bytes()[length..]);
    }
    ExitCode::SUCCESS
}
