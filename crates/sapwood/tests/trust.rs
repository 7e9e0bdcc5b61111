//! Strangers connect to a tree: none is served without the key, and the tree goes on.

mod flood;
mod support;

use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use sapwood::{Network, Packet, Stream, Values};
use sapwood_packet::Slab;
use sapwood_random::Random;
use sapwood_transport::{
    Address, Encryption, Handshake, Key, Link, Progress, WhenRefused, connect,
};
use sapwood_wire::{Claim, Control, encode_control};
use support::{HANG, Links, Seen, kilobytes, network, of_rank, tags, tree_below_us, wait_until};

/// How much a process may grow by strangers, in KB. Measured growth is printed.
const GROWTH_KB_MAX: u64 = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(30);

/// A socket of either kind.
trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

fn dial(address: &str) -> std::io::Result<Box<dyn Wire>> {
    let limit = Some(Duration::from_secs(20));
    if let Some(name) = address.strip_prefix("unix:@") {
        let socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        socket.set_read_timeout(limit)?;
        return Ok(Box::new(socket));
    }
    let socket = TcpStream::connect(address.trim_start_matches("tcp:"))?;
    socket.set_read_timeout(limit)?;
    Ok(Box::new(socket))
}

/// One process with a door, and how it was before strangers came.
struct Door {
    who: &'static str,
    address: String,
    process: Option<Seen>,
    kilobytes: u64,
    descriptors: usize,
}

impl Door {
    fn new(who: &'static str, address: &str, process: Option<Seen>) -> Self {
        let mut door =
            Self { who, address: address.to_owned(), process, kilobytes: 0, descriptors: 0 };
        (door.kilobytes, door.descriptors) = (door.kilobytes(), door.descriptors());
        door
    }

    fn kilobytes(&self) -> u64 {
        match &self.process {
            Some(process) => process.kilobytes("VmRSS"),
            None => kilobytes("self", "VmRSS"),
        }
    }

    fn descriptors(&self) -> usize {
        match &self.process {
            Some(process) => process.descriptors(),
            None => std::fs::read_dir("/proc/self/fd").unwrap().count(),
        }
    }
}

/// A tree with the door of its front-end (this process) and that of a communication process.
struct Fortress {
    network: Network,
    sum: Stream,
    doors: Vec<Door>,
    key: Key,
    encryption: Encryption,
}

impl Fortress {
    fn new(links: Links) -> Self {
        let (network, mark) = network("2x2", links);
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        network.write_attach_file(&folder.path().join("attach"), &key).unwrap();
        let key = Key::from_file(&key).unwrap();
        let tree = tree_below_us(&mark);
        // The front-end is rank 4, the communication processes are 5 and 6.
        let front_end = of_rank(&tree, 5).address.clone().unwrap();
        let communication = of_rank(&tree, 0).address.clone().unwrap();
        let mut sum = network.stream(&network.everyone()).up("sum").open().unwrap();
        ask(&mut sum);
        let doors = vec![
            Door::new("front-end", &front_end, None),
            Door::new("communication process", &communication, Some(of_rank(&tree, 5).clone())),
        ];
        let encryption =
            if matches!(links, Links::EncryptedTcp) { Encryption::On } else { Encryption::Off };
        Self { network, sum, doors, key, encryption }
    }

    /// Lets strangers do their worst at every door from a thread of their own, while the tree goes
    /// on answering.
    fn besiege<S: Send>(
        &mut self,
        what: &str,
        strangers: impl Fn(&str, &Key, Encryption) -> S + Sync,
    ) {
        for index in 0..self.doors.len() {
            let (address, key) = (self.doors[index].address.clone(), self.key.clone());
            let encryption = self.encryption;
            let mut waves = 0;
            std::thread::scope(|scope| {
                let (done, is_done) = channel();
                let strangers = &strangers;
                scope.spawn(move || {
                    // What is kept open stays so until the tree has answered in its presence.
                    let kept = strangers(&address, &key, encryption);
                    done.send(()).unwrap();
                    kept
                });
                waves = self.answer_until(&is_done);
            });
            let door = &self.doors[index];
            println!("{what} at the {}: {waves} waves meanwhile", door.who);
        }
    }

    fn answer_until(&mut self, is_done: &Receiver<()>) -> u32 {
        let begin = Instant::now();
        let mut waves = 0;
        loop {
            ask(&mut self.sum);
            waves += 1;
            if is_done.try_recv().is_ok() {
                ask(&mut self.sum);
                return waves + 1;
            }
            assert!(begin.elapsed() < HANG, "the strangers hang");
        }
    }

    /// Waits until the doors are as they were, and checks that little was held.
    fn recover(mut self) {
        for index in 0..self.doors.len() {
            let begin = Instant::now();
            while self.doors[index].descriptors() > self.doors[index].descriptors {
                assert!(begin.elapsed() < PATIENCE, "{}: descriptors", self.doors[index].who);
                self.network.turn(Duration::from_millis(10)).unwrap();
            }
            let door = &self.doors[index];
            let (before, now) = (door.kilobytes, door.kilobytes());
            println!("{}: {before} KB before, {now} KB after", door.who);
            assert!(now < before + GROWTH_KB_MAX, "{}", door.who);
        }
        ask(&mut self.sum);
        assert_eq!(self.network.everyone().size(), 4);
        self.network.close().unwrap();
    }
}

fn ask(sum: &mut Stream) {
    sum.broadcast(tags::RANK, ()).unwrap();
    let answer = sum.recv_timeout(HANG).unwrap();
    assert!(answer.is_complete(), "{answer:?}");
    assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(6));
}

/// Says something and reads until the other end closes.
fn say(address: &str, words: &[u8]) -> Vec<u8> {
    let mut wire = dial(address).unwrap();
    // It may be closed before all is said.
    let _ = wire.write_all(words);
    rest_of(&mut *wire)
}

/// What comes until the end, which may be a reset. A silence is none.
fn rest_of(wire: &mut dyn Wire) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match wire.read(&mut buffer) {
            Ok(0) => return all,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("not closed"),
            Err(_) => return all,
        }
    }
}

fn junk(address: &str) {
    let mut random = Random::new(1);
    for length in [1_usize, 2, 8, 66, 100, 5000, 1 << 20] {
        let mut bytes = vec![0; length];
        random.fill(&mut bytes);
        if length == 1 {
            drop(dial(address).unwrap().write_all(&bytes));
        } else {
            assert_eq!(say(address, &bytes), b"");
        }
    }
    assert_eq!(say(address, b"GET / HTTP/1.1\r\nHost: node\r\n\r\n"), b"");
    assert_eq!(say(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), b"");
}

fn siege(links: Links) {
    let mut fortress = Fortress::new(links);
    fortress.besiege("junk and other protocols", |address, _, _| junk(address));
    fortress.besiege("a hundred silent connections", |address, _, _| {
        (0..100).map(|_| dial(address).unwrap()).collect::<Vec<_>>()
    });
    fortress.besiege("a port scan", |address, _, _| {
        for _ in 0..500 {
            drop(dial(address).unwrap());
        }
    });
    fortress.besiege("a wrong key", |address, _, encryption| {
        let address: Address = address.parse().unwrap();
        for _ in 0..10 {
            let wrong = Key::generate().unwrap();
            let link = connect(&address, &wrong, encryption, HANG, WhenRefused::Fail);
            let error = link.map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("key"), "{error}");
        }
    });
    fortress.besiege("a replay", |address, key, encryption| {
        let (first, third) = recorded(address, key, encryption);
        for _ in 0..10 {
            let answer = say(address, &[&first[..], &third[..]].concat());
            assert!(answer.len() <= 66, "one answer of the handshake at most");
        }
    });
    fortress.recover();
}

#[test]
fn strangers_at_unix_sockets_harm_nothing() {
    if support::is_alone("strangers_at_unix_sockets_harm_nothing") {
        siege(Links::Unix);
    }
}

#[test]
fn strangers_at_tcp_ports_harm_nothing() {
    if support::is_alone("strangers_at_tcp_ports_harm_nothing") {
        siege(Links::EncryptedTcp);
    }
}

/// What an honest process says in its handshake, overheard.
fn recorded(address: &str, key: &Key, encryption: Encryption) -> (Vec<u8>, Vec<u8>) {
    let (ours, mut relay) = UnixStream::pair().unwrap();
    let mut wire = dial(address).unwrap();
    let mut honest = Handshake::initiator(ours.into(), key, encryption).unwrap();
    let (mut first, mut second, mut third) = ([0; 66], [0; 66], [0; 34]);
    assert!(matches!(honest.advance().unwrap(), Progress::WantRead));
    relay.read_exact(&mut first).unwrap();
    wire.write_all(&first).unwrap();
    wire.read_exact(&mut second).unwrap();
    relay.write_all(&second).unwrap();
    assert!(matches!(honest.advance().unwrap(), Progress::Done(_)));
    relay.read_exact(&mut third).unwrap();
    (first.to_vec(), third.to_vec())
}

/// A peer that has the right key and violates the protocol.
fn insider(address: &str, key: &Key, encryption: Encryption) -> Link {
    let address: Address = address.parse().unwrap();
    connect(&address, key, encryption, HANG, WhenRefused::Fail).unwrap()
}

/// Sends frames, and reads what comes until the link is closed.
fn tell(mut link: Link, bytes: &[u8]) -> Vec<u8> {
    let mut left = bytes;
    let begin = Instant::now();
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        assert!(begin.elapsed() < PATIENCE, "not closed");
        if !left.is_empty() {
            match link.write_vectored(&[IoSlice::new(left)]) {
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => left = &[],
            }
        }
        if link.wants_write() {
            let _ = link.flush();
        }
        match link.read(&mut buffer) {
            Ok(0) => return all,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return all,
        }
    }
}

fn control(message: &Control) -> Vec<u8> {
    let mut frame = Slab::default();
    encode_control(&mut frame, message).unwrap();
    frame.as_bytes().to_vec()
}

fn hello(version: u16, claim: Claim) -> Vec<u8> {
    control(&Control::Hello { version, claim, pid: 1, address: None })
}

/// Frames that end a link: what they are, and their bytes.
fn faults() -> Vec<(&'static str, Vec<u8>)> {
    let mut packet = Slab::default();
    let values = Packet::new(1, tags::RANK, Values::new().scalar(1_i64));
    sapwood_wire::encode_packet(&mut packet, &values.as_ref()).unwrap();
    let packet = packet.as_bytes().to_vec();
    let free = Claim::Attached { rank: Some(0) };
    vec![
        ("garbage", vec![0xa5; 256]),
        ("zeros", vec![0; 64]),
        ("a huge length", [&u32::MAX.to_le_bytes()[..], &[1, 0, 0, 0]].concat()),
        ("a length of no whole words", [&41_u32.to_le_bytes()[..], &[1, 0, 0, 0]].concat()),
        ("a packet before the hello", packet),
        ("a shutdown before the hello", control(&Control::Shutdown)),
        ("another version", hello(99, free)),
        ("a rank that is taken", hello(sapwood_wire::WIRE_VERSION, Claim::Started { rank: 0 })),
        (
            "a rank that is not in the plan",
            hello(sapwood_wire::WIRE_VERSION, Claim::Started { rank: 77 }),
        ),
        (
            "a rank where none is kept",
            hello(sapwood_wire::WIRE_VERSION, Claim::Attached { rank: None }),
        ),
    ]
}

fn betrayal(links: Links) {
    let mut fortress = Fortress::new(links);
    for (what, bytes) in faults() {
        fortress.besiege(what, |address, key, encryption| {
            for _ in 0..5 {
                let said = tell(insider(address, key, encryption), &bytes);
                assert!(said.len() < 4096, "{what}");
            }
        });
    }
    fortress.besiege("half a frame of sixteen megabytes", |address, key, encryption| {
        (0..20)
            .map(|_| {
                let mut link = insider(address, key, encryption);
                let begin = [&(16_u32 << 20).to_le_bytes()[..], &[1, 0, 0, 0], &[0; 64]].concat();
                link.write_vectored(&[IoSlice::new(&begin)]).unwrap();
                link
            })
            .collect::<Vec<_>>()
    });
    fortress.recover();
}

#[test]
fn who_has_the_key_and_breaks_the_rules_is_dropped_over_unix_sockets() {
    if support::is_alone("who_has_the_key_and_breaks_the_rules_is_dropped_over_unix_sockets") {
        betrayal(Links::Unix);
    }
}

#[test]
fn who_has_the_key_and_breaks_the_rules_is_dropped_over_encrypted_tcp() {
    if support::is_alone("who_has_the_key_and_breaks_the_rules_is_dropped_over_encrypted_tcp") {
        betrayal(Links::EncryptedTcp);
    }
}

#[test]
fn silence_beyond_the_limit_is_let_go_of() {
    if !support::is_alone("silence_beyond_the_limit_is_let_go_of") {
        return;
    }
    let mut fortress = Fortress::new(Links::Unix);
    let address = fortress.doors[1].address.clone();
    let mut silent: Vec<_> = (0..100).map(|_| dial(&address).unwrap()).collect();
    let held = fortress.doors[1].descriptors;
    wait_until("they are taken", HANG, || fortress.doors[1].descriptors() >= held + 100);
    for wire in &mut silent {
        assert_eq!(rest_of(&mut **wire), b"");
    }
    drop(silent);
    ask(&mut fortress.sum);
    fortress.recover();
}
