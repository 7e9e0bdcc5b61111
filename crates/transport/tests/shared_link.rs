//! Links in shared memory carry bytes as sockets do, lose no wake-up, and survive their peers.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{PATIENCE, both_sides};
use proptest::prelude::*;
use sapwood_random::Random;
use sapwood_transport::{
    Encryption, Event, Interest, Key, Link, LinkTerms, Poller, RING_BYTES, SHARED_LINK_BYTES,
};

/// Where the two ends of the first ring tell their positions.
const WRITTEN_AT: u64 = 0;
const READ_AT: u64 = 128;

const SHARING: LinkTerms = LinkTerms { encryption: Encryption::Off, shares_memory: true };

fn pair() -> (Link, Link, File) {
    let (one, two, memory) = Link::shared_pair().unwrap();
    (one, two, memory.into())
}

fn write(link: &mut Link, bytes: &[u8]) -> std::io::Result<usize> {
    link.write_vectored(&[IoSlice::new(bytes)])
}

fn poller_of(link: &Link) -> Poller {
    let poller = Poller::new().unwrap();
    poller.add_link(link, 0).unwrap();
    poller
}

/// What the poller tells at once.
fn told(poller: &mut Poller) -> Vec<Event> {
    let mut events = Vec::new();
    poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
    events
}

/// Waits for the bell or the end.
fn wait(poller: &mut Poller, events: &mut Vec<Event>) {
    poller.wait(events, Some(PATIENCE)).unwrap();
    assert!(!events.is_empty(), "a wake-up was lost");
}

/// Writes all of it, waiting for room.
fn write_whole(link: &mut Link, poller: &mut Poller, mut bytes: &[u8]) {
    let mut events = Vec::new();
    while !bytes.is_empty() {
        match write(link, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(poller, &mut events),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads until the buffer is full, waiting for bytes.
fn read_whole(link: &mut Link, poller: &mut Poller, buffer: &mut [u8]) {
    let mut events = Vec::new();
    let mut done = 0;
    while done < buffer.len() {
        match link.read(&mut buffer[done..]) {
            Ok(0) => panic!("the link has ended"),
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !link.announce_wait() {
                    wait(poller, &mut events);
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The byte at a position of a long stream of bytes.
fn byte_at(position: usize) -> u8 {
    (position ^ position >> 8 ^ position >> 16) as u8
}

#[test]
fn two_that_want_it_share_memory_after_the_handshake() {
    let key = Key::generate().unwrap();
    let plain = LinkTerms::from(Encryption::Off);
    let encrypted = LinkTerms { encryption: Encryption::On, shares_memory: true };
    for (one, two, is_shared) in [
        (SHARING, SHARING, true),
        (SHARING, plain, false),
        (plain, SHARING, false),
        (encrypted, encrypted, false),
    ] {
        let (one, two) = both_sides((&key, one), (&key, two));
        let (mut one, mut two) = (one.unwrap(), two.unwrap());
        assert_eq!((one.is_shared(), two.is_shared()), (is_shared, is_shared));
        if one.encryption() == Encryption::Off {
            carries(&mut one, &mut two, b"request");
            carries(&mut two, &mut one, b"answer");
        }
    }
    let (wrong, _) = both_sides((&key, SHARING), (&Key::generate().unwrap(), SHARING));
    assert!(wrong.is_err());
}

fn carries(from: &mut Link, to: &mut Link, text: &[u8]) {
    assert_eq!(write(from, text).unwrap(), text.len());
    let mut buffer = [0; 16];
    let count = to.read(&mut buffer).unwrap();
    assert_eq!(&buffer[..count], text);
}

#[test]
fn bytes_written_before_the_end_are_read_and_then_the_end_is_told() {
    for is_announced in [true, false] {
        let (mut one, mut two, _) = pair();
        let mut poller = poller_of(&two);
        let _ = told(&mut poller);
        assert!(!two.announce_wait());
        write(&mut one, b"last").unwrap();
        if is_announced {
            one.close_writing().unwrap();
        } else {
            drop(one);
        }
        assert!(told(&mut poller).iter().any(|event| event.readable));
        let mut buffer = [0; 16];
        assert_eq!(two.read(&mut buffer).unwrap(), 4);
        assert_eq!(two.read(&mut buffer).unwrap(), 0);
        assert!(two.announce_wait() == is_announced, "the socket tells the rest");
        poller.remove_link(&two).unwrap();
    }
}

#[test]
fn a_peer_is_woken_only_if_it_waits_and_once() {
    let (mut one, mut two, _) = pair();
    let mut poller = poller_of(&two);
    let _ = told(&mut poller);
    write(&mut one, b"a").unwrap();
    assert!(told(&mut poller).is_empty(), "it has not said that it waits");
    assert!(two.has_buffered() && two.announce_wait(), "it must not wait");
    assert_eq!(two.read(&mut [0; 4]).unwrap(), 1);
    assert!(!two.announce_wait());
    write(&mut one, b"b").unwrap();
    assert_eq!(told(&mut poller).len(), 1);
    write(&mut one, b"c").unwrap();
    assert!(told(&mut poller).is_empty(), "it is awake");
}

#[test]
fn a_writer_is_woken_when_there_is_room_for_much() {
    let (mut one, mut two, _) = pair();
    let mut poller = poller_of(&one);
    let _ = told(&mut poller);
    assert_eq!(write(&mut one, &vec![1; 2 * RING_BYTES]).unwrap(), RING_BYTES);
    assert_eq!(write(&mut one, b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut buffer = vec![0; RING_BYTES / 2 - 1];
    assert_eq!(two.read(&mut buffer).unwrap(), buffer.len());
    assert!(told(&mut poller).is_empty(), "that is little room");
    assert_eq!(two.read(&mut buffer[..1]).unwrap(), 1);
    assert!(told(&mut poller).iter().any(|event| event.writable));
    assert_eq!(write(&mut one, b"x").unwrap(), 1);
}

#[test]
fn no_wake_up_is_lost_in_many_rounds() {
    const ROUNDS: usize = 20_000;
    let (mut one, mut two, _) = pair();
    let echo = std::thread::spawn(move || {
        let mut poller = poller_of(&two);
        let mut buffer = [0; 8];
        for _ in 0..ROUNDS {
            read_whole(&mut two, &mut poller, &mut buffer);
            write_whole(&mut two, &mut poller, &buffer);
        }
    });
    let mut poller = poller_of(&one);
    for round in 0..ROUNDS {
        let text = round.to_le_bytes();
        write_whole(&mut one, &mut poller, &text);
        let mut buffer = [0; 8];
        read_whole(&mut one, &mut poller, &mut buffer);
        assert_eq!(buffer, text);
    }
    echo.join().unwrap();
}

#[test]
fn no_wake_up_is_lost_while_the_ring_fills_and_empties() {
    const TOTAL: usize = 64 << 20;
    let (mut one, mut two, _) = pair();
    let writer = std::thread::spawn(move || {
        let mut poller = poller_of(&one);
        let (mut position, mut size) = (0, 1);
        while position < TOTAL {
            size = (size * 5 + 3) % (3 * RING_BYTES);
            let end = (position + size).min(TOTAL);
            let bytes: Vec<u8> = (position..end).map(byte_at).collect();
            write_whole(&mut one, &mut poller, &bytes);
            position = end;
        }
    });
    let mut poller = poller_of(&two);
    let (mut position, mut size) = (0, 1);
    while position < TOTAL {
        size = (size * 7 + 5) % RING_BYTES;
        let mut buffer = vec![0; size.min(TOTAL - position)];
        read_whole(&mut two, &mut poller, &mut buffer);
        let is_right = buffer.iter().zip(position..).all(|(byte, at)| *byte == byte_at(at));
        assert!(is_right, "wrong bytes from {position} on");
        position += buffer.len();
    }
    writer.join().unwrap();
}

#[test]
fn a_write_that_is_longer_than_the_ring_counts_all_of_its_bytes() {
    // A reader that never sleeps makes room during a write. How often is up to the two processors,
    // so this goes on until it was seen. One processor alone never shows it.
    const BYTES: usize = 16 * RING_BYTES;
    if std::thread::available_parallelism().is_ok_and(|count| count.get() == 1) {
        return;
    }
    let (mut one, mut two, memory) = pair();
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            while !is_over.load(Ordering::Relaxed) {
                let _ = two.read(&mut [0; 64]);
            }
        }
    });
    let mut poller = poller_of(&one);
    let until = Instant::now() + PATIENCE;
    let (mut written, mut longest) = (0, 0);
    while longest <= RING_BYTES {
        assert!(Instant::now() < until, "no write was longer than the ring");
        match write(&mut one, &[1; BYTES]) {
            Ok(count) => {
                (written, longest) = (written + count as u64, longest.max(count));
                let mut told = [0; 8];
                memory.read_exact_at(&mut told, WRITTEN_AT).unwrap();
                assert_eq!(u64::from_le_bytes(told), written, "a write said {count} bytes");
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(&mut poller, &mut Vec::new());
            }
            Err(error) => panic!("{error}"),
        }
    }
    is_over.store(true, Ordering::Relaxed);
    reader.join().unwrap();
}

#[test]
fn pages_are_given_back_by_links_that_are_quiet() {
    let (mut one, mut two, memory) = pair();
    let blocks = || rustix::fs::fstat(&memory).unwrap().st_blocks;
    let few = RING_BYTES as i64 / 512 / 4;
    assert!(!one.release_buffers(), "nothing was written");
    write(&mut one, &vec![1; RING_BYTES]).unwrap();
    assert!(blocks() > few);
    assert!(one.release_buffers() && one.release_buffers(), "it is not read yet");
    let mut buffer = vec![0; RING_BYTES];
    assert_eq!(two.read(&mut buffer).unwrap(), RING_BYTES);
    assert!(!one.release_buffers() && blocks() < few);
    write(&mut one, b"and on").unwrap();
    assert!(!one.release_buffers(), "that is not worth a call");
    assert_eq!(two.read(&mut buffer).unwrap(), 6);
    assert_eq!(&buffer[..6], b"and on");
}

#[test]
fn impossible_positions_end_the_link() {
    let far = RING_BYTES as u64 + 9;
    for written in [3, far, u64::MAX, 1 << 63] {
        let (mut one, mut two, memory) = pair();
        write(&mut one, b"eight by").unwrap();
        assert_eq!(two.read(&mut [0; 8]).unwrap(), 8);
        memory.write_all_at(&written.to_le_bytes(), WRITTEN_AT).unwrap();
        assert!(two.has_buffered() && two.announce_wait(), "the error is to be found");
        assert_eq!(two.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::InvalidData);
    }
    for read in [3, far, u64::MAX] {
        let (mut one, mut two, memory) = pair();
        write(&mut one, b"eight by").unwrap();
        assert_eq!(two.read(&mut [0; 8]).unwrap(), 8);
        let _ = write(&mut one, &vec![0; RING_BYTES]).unwrap();
        assert_eq!(write(&mut one, b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
        memory.write_all_at(&read.to_le_bytes(), READ_AT).unwrap();
        assert!(write(&mut one, b"x").is_err_and(|error| error.kind() == ErrorKind::InvalidData));
    }
}

#[test]
fn bytes_on_the_socket_beside_the_memory_end_the_link() {
    let key = Key::generate().unwrap();
    let (one, two) = both_sides((&key, SHARING), (&key, SHARING));
    let (one, mut two) = (one.unwrap(), two.unwrap());
    rustix::net::send(&one, b"x", rustix::net::SendFlags::NOSIGNAL).unwrap();
    assert_eq!(two.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::InvalidData);
}

const SCRIBBLER: &str = "SAPWOOD_TEST_SCRIBBLER";

/// What a child process of the test below does: it writes anything at any place between two, until
/// it is killed.
#[test]
fn a_scribbler_writes_until_it_is_killed() {
    let Some(range) = std::env::var_os(SCRIBBLER) else { return };
    let range = range.into_string().unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
    let memory = File::options().write(true).open("/proc/self/fd/0").unwrap();
    let mut random = Random::new(1);
    println!("scribbling");
    loop {
        let number = random.next_u64();
        let bytes = number.to_le_bytes();
        let small = [bytes[0] & 1, 0, 0, 0];
        let text = if number & 64 == 0 { &bytes[..] } else { &small[..] };
        memory.write_all_at(text, first + number % (last - first)).unwrap();
    }
}

#[test]
fn a_process_that_scribbles_over_the_memory_costs_its_link_and_nothing_else() {
    let whole = SHARED_LINK_BYTES as u64 - 8;
    for (first, last) in [(0, 16), (128, 144), (0, 512), (65_536, whole), (0, whole)] {
        let (mut one, mut two, memory) = pair();
        let mut scribbler = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shared_link::a_scribbler_writes_until_it_is_killed", "--nocapture"])
            .env(SCRIBBLER, format!("{first}-{last}"))
            .stdin(Stdio::from(OwnedFd::from(memory)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(scribbler.stdout.take().unwrap()).lines();
        let has_begun = output.any(|line| line.unwrap().contains("scribbling"));
        assert!(has_begun, "the scribbler has not begun");
        let (mut good, mut other, _) = pair();
        let mut buffer = vec![0; 3000];
        for round in 0..3000 {
            use_up(&write(&mut one, &buffer[..round]));
            use_up(&two.read(&mut buffer));
            use_up(&write(&mut two, &buffer[..round / 2]));
            use_up(&one.read(&mut buffer));
            let _ = (one.announce_wait(), two.has_buffered(), one.release_buffers());
            assert_eq!(write(&mut good, b"good").unwrap(), 4);
            assert_eq!(other.read(&mut buffer).unwrap(), 4);
            assert_eq!(&buffer[..4], b"good");
        }
        scribbler.kill().unwrap();
        let ended = scribbler.wait().unwrap();
        assert_eq!(ended.signal(), Some(9), "it scribbled to the end: {ended}");
    }
}

/// What may come of a call on a link whose peer scribbles.
fn use_up(outcome: &std::io::Result<usize>) {
    if let Err(error) = outcome {
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::InvalidData | ErrorKind::WouldBlock), "{error}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<usize>),
    Read(usize),
    Announce,
    Release,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![0..100_usize, 0..2 * RING_BYTES];
    let step = prop_oneof![
        prop::collection::vec(size.clone(), 0..4).prop_map(Step::Write),
        size.prop_map(Step::Read),
        Just(Step::Announce),
        Just(Step::Release),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_ring_gives_what_a_queue_gives(steps in steps()) {
        let (mut one, mut two, _) = pair();
        let mut queue = VecDeque::new();
        let mut position = 0;
        for step in steps {
            match step {
                Step::Write(sizes) => {
                    let mut next = position;
                    let parts: Vec<Vec<u8>> = sizes.iter().map(|size| {
                        next += size;
                        (next - size..next).map(byte_at).collect()
                    }).collect();
                    let slices: Vec<IoSlice<'_>> =
                        parts.iter().map(|part| IoSlice::new(part)).collect();
                    let room = RING_BYTES - queue.len();
                    let offered = next - position;
                    let taken = one.write_vectored(&slices).unwrap_or(0);
                    prop_assert_eq!(taken, offered.min(room));
                    queue.extend((position..position + taken).map(byte_at));
                    position += taken;
                }
                Step::Read(size) => {
                    let mut buffer = vec![0; size];
                    let count = two.read(&mut buffer).unwrap_or(0);
                    prop_assert_eq!(count, size.min(queue.len()));
                    prop_assert!(queue.drain(..count).eq(buffer[..count].iter().copied()));
                }
                Step::Announce => prop_assert_eq!(two.announce_wait(), !queue.is_empty()),
                Step::Release => {
                    one.release_buffers();
                }
            }
            prop_assert_eq!(two.has_buffered(), !queue.is_empty());
        }
    }
}

#[test]
fn a_link_and_its_bell_leave_the_poller_together() {
    let (mut one, two, _) = pair();
    let mut poller = poller_of(&two);
    let _ = told(&mut poller);
    assert!(!two.announce_wait());
    poller.remove_link(&two).unwrap();
    write(&mut one, b"x").unwrap();
    assert!(told(&mut poller).is_empty());
    assert!(poller.modify(&two, 0, Interest::READ).is_err());
}
