//! One connection from end to end: what a sender puts into an outbox, the bytes that leave it, and
//! the frames that an inbox at the other end makes of them.

use sapwood_link::{
    Assembled, Assemblies, EncodedFrame, Filled, FrameInfo, Gate, Inbox, Outbox, Pool, Position,
    Sender, WhenFull, cut,
};
use sapwood_packet::{Body, Header, PacketRef, RankSet, Slab, Values};
use sapwood_wire::{Frame, decode, frame_length};

/// Most bytes that one read of these tests gives.
const READ_BYTES: usize = 64 << 10;

/// A packet of wave `wave` with an array of `count` bytes.
fn values(wave: u64, count: usize) -> Values {
    Values::new().array(&vec![wave as u8; count])
}

/// The packet of wave `wave` with these values.
fn packet(wave: u64, values: &Values) -> PacketRef<'_> {
    PacketRef {
        header: Header { stream: 1, tag: 100, wave, ends_wave: true, ..Header::default() },
        format: values.as_ref().format(),
        body: values.as_ref().body(),
        ..PacketRef::default()
    }
}

/// Writes all that waits, at most `most` bytes at a time, and gives the bytes.
fn write(outbox: &mut Outbox, pool: &mut Pool, most: usize) -> Vec<u8> {
    let mut written = Vec::new();
    while !outbox.is_empty() {
        let mut taken = 0;
        outbox.gather(|part| {
            let length = part.len().min(most - taken);
            written.extend_from_slice(&part[..length]);
            taken += length;
            taken < most
        });
        outbox.transmitted(taken, pool);
    }
    written
}

/// What the other end of a connection has received.
#[derive(Default)]
struct Receiver {
    inbox: Inbox,
    pool: Pool,
    frames: Vec<Vec<u8>>,
}

impl Receiver {
    /// Handles the bytes of one read, behind the tail of the last one.
    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if let Some(memory) = self.inbox.lend(&mut self.pool) {
                let length = memory.len().min(bytes.len());
                memory[..length].copy_from_slice(&bytes[..length]);
                bytes = &bytes[length..];
                match self.inbox.filled(length).unwrap() {
                    Filled::Partial => {}
                    Filled::Frame(slab) => self.frame(slab.as_bytes()),
                    Filled::FrameAndMore(slab, more) => {
                        self.frame(slab.as_bytes());
                        self.cut(&more);
                    }
                    Filled::Bytes(slab) => self.cut(slab.as_bytes()),
                }
                continue;
            }
            let mut buffer = vec![0; READ_BYTES + bytes.len()];
            let tail = self.inbox.begin_read(&mut buffer);
            let length = bytes.len().min(READ_BYTES);
            buffer[tail..tail + length].copy_from_slice(&bytes[..length]);
            self.cut(&buffer[..tail + length]);
            bytes = &bytes[length..];
        }
    }

    fn cut(&mut self, mut bytes: &[u8]) {
        while let Ok(Some(length)) = frame_length(bytes)
            && length <= bytes.len()
        {
            self.frame(&bytes[..length]);
            bytes = &bytes[length..];
        }
        self.inbox.keep(bytes, &mut self.pool).unwrap();
    }

    fn frame(&mut self, bytes: &[u8]) {
        self.inbox.note_length(bytes.len());
        self.frames.push(bytes.to_vec());
    }

    /// The wave and the offset of every packet, in the order in which they came.
    fn positions(&self) -> Vec<(u64, u64)> {
        let position = |frame: &Vec<u8>| match decode(Slab::copy_of(frame).as_bytes()).unwrap() {
            Frame::Packet(packet) => {
                (packet.header.wave, packet.chunk.map_or(0, |chunk| chunk.offset))
            }
            other => panic!("{other:?}"),
        };
        self.frames.iter().map(position).collect()
    }
}

/// The bytes of a connection that carries waves with values of these lengths.
fn bytes_of(counts: &[usize]) -> Vec<u8> {
    let (mut outbox, mut pool) = (Outbox::default(), Pool::default());
    for (wave, &count) in counts.iter().enumerate() {
        let values = values(wave as u64, count);
        outbox.push_packet(&packet(wave as u64, &values)).unwrap();
    }
    write(&mut outbox, &mut pool, usize::MAX)
}

#[test]
fn frames_that_are_cut_anywhere_come_out_whole() {
    let counts = [3, 700, 20_000, 20_000, 5, 17_000, 0, 40_000, 9];
    let bytes = bytes_of(&counts);
    let mut whole = Receiver::default();
    whole.cut(&bytes);
    assert_eq!(whole.frames.concat(), bytes);
    assert_eq!(whole.frames.len(), counts.len());
    for step in [1, 7, 8, 64, 1000, 16 << 10, 30_001] {
        let mut receiver = Receiver::default();
        bytes.chunks(step).for_each(|read| receiver.read(read));
        assert!(receiver.frames == whole.frames, "reads of {step} bytes");
        assert_eq!(receiver.inbox.bytes(), 0);
    }
    for cut in 1..2000 {
        let mut receiver = Receiver::default();
        receiver.read(&bytes[..cut]);
        receiver.read(&bytes[cut..]);
        assert!(receiver.frames == whole.frames, "cut at byte {cut}");
    }
}

#[test]
fn a_connection_that_takes_a_few_bytes_at_a_time_carries_the_same_bytes() {
    let counts = [3, 700, 20_000, 5];
    let bytes = bytes_of(&counts);
    for most in [1, 13, 4096] {
        let (mut outbox, mut pool) = (Outbox::default(), Pool::default());
        for (wave, &count) in counts.iter().enumerate() {
            let values = values(wave as u64, count);
            outbox.push_packet(&packet(wave as u64, &values)).unwrap();
        }
        assert!(write(&mut outbox, &mut pool, most) == bytes, "writes of {most} bytes");
    }
}

/// The frame of a wave with 80 bytes of values, and what a gate knows of it.
fn frame(wave: u64) -> (EncodedFrame, FrameInfo) {
    let values = values(wave, 80);
    let packet = packet(wave, &values);
    let mut bytes = Slab::default();
    sapwood_wire::encode_packet(&mut bytes, &packet).unwrap();
    (EncodedFrame::whole(Body::from(bytes)), FrameInfo::upward(&packet))
}

/// The waves that an outbox holds; it is empty afterwards.
fn waves(outbox: &mut Outbox) -> Vec<u64> {
    let mut receiver = Receiver::default();
    receiver.read(&write(outbox, &mut Pool::default(), usize::MAX));
    receiver.positions().iter().map(|position| position.0).collect()
}

#[test]
fn frames_wait_for_credit_and_pass_in_order_when_it_is_given_back() {
    let length = frame(0).0.length();
    let window = 2 * length as u32;
    let (mut gate, mut outbox) = (Gate::new(window), Outbox::default());
    for wave in 0..6 {
        let (frame, info) = frame(wave);
        match gate.is_open() {
            true => {
                gate.charge(frame.length());
                outbox.push_frame(&frame);
            }
            false => gate.wait(frame, info),
        }
    }
    assert_eq!(waves(&mut outbox), [0, 1]);
    assert_eq!(gate.waiting_bytes(), 4 * length);
    assert!(!gate.exceeds(window, window), "the receiver has dealt with two frames");
    assert!(gate.exceeds(window + 1, window), "it has never had more");
    gate.grant(length as u32, &mut outbox);
    assert_eq!(waves(&mut outbox), [2]);
    assert!(!gate.is_open());
    gate.grant(window, &mut outbox);
    assert_eq!(waves(&mut outbox), [3, 4]);
    gate.grant(window, &mut outbox);
    assert_eq!(waves(&mut outbox), [5]);
    assert!(gate.is_open());
}

#[test]
fn one_frame_may_be_longer_than_the_window() {
    let (mut gate, mut outbox) = (Gate::new(1), Outbox::default());
    assert!(gate.is_open());
    gate.charge(frame(0).0.length());
    let (second, info) = frame(1);
    gate.wait(second, info);
    gate.grant(1, &mut outbox);
    assert!(outbox.is_empty(), "the credit is overdrawn still");
    gate.grant(frame(0).0.length() as u32, &mut outbox);
    assert_eq!(waves(&mut outbox), [1]);
}

#[test]
fn what_is_not_acknowledged_is_sent_again_in_order_and_once() {
    let window = 1 << 20;
    let mut sender = Sender::new(window, Position::default(), WhenFull::Wait);
    sender.enable_retransmission();
    let (mut outbox, mut pool) = (Outbox::default(), Pool::default());
    for wave in 0..10 {
        let (frame, info) = frame(wave);
        sender.send(frame, info, &mut outbox);
    }
    assert_eq!(waves(&mut outbox), (0..10).collect::<Vec<u64>>());
    sender.acknowledge(Position::start_of(4), 0, &mut pool);
    sender.acknowledge(Position::start_of(2), 0, &mut pool);

    // The next connection carries what is not acknowledged, then what is new.
    sender.restart(window);
    let (tenth, info) = frame(10);
    sender.wait(tenth, info);
    sender.pump(&mut outbox);
    assert_eq!(waves(&mut outbox), (4..11).collect::<Vec<u64>>());
    sender.pump(&mut outbox);
    assert!(outbox.is_empty(), "nothing is sent twice over one connection");
    assert!(!sender.is_acknowledged());
    sender.acknowledge(Position::start_of(11), 0, &mut pool);
    assert!(sender.is_acknowledged());
    sender.restart(window);
    sender.pump(&mut outbox);
    assert!(outbox.is_empty());
}

#[test]
fn chunks_of_a_large_packet_interleave_with_small_packets() {
    const CHUNK: usize = 4096;
    let large = values(7, 10 * CHUNK + 40);
    let body = Body::from(Slab::copy_of(large.as_ref().body()));
    let (mut outbox, mut pool) = (Outbox::default(), Pool::default());
    let mut expected = Vec::new();
    for (index, (part, bytes)) in cut(packet(7, &large), &body, CHUNK).enumerate() {
        expected.push((7, part.chunk.unwrap().offset));
        outbox.push_frame(&EncodedFrame::split(&part, bytes).unwrap());
        let small = values(index as u64, 8);
        let header = Header { stream: 2, ..packet(100 + index as u64, &small).header };
        outbox.push_packet(&PacketRef { header, ..packet(0, &small) }).unwrap();
        expected.push((100 + index as u64, 0));
    }
    let mut receiver = Receiver::default();
    write(&mut outbox, &mut pool, 1000).chunks(777).for_each(|read| receiver.read(read));
    assert_eq!(receiver.positions(), expected);

    let mut assemblies = Assemblies::default();
    let mut whole = None;
    for frame in &receiver.frames {
        let frame = Slab::copy_of(frame);
        let Frame::Packet(part) = decode(frame.as_bytes()).unwrap() else { panic!("no packet") };
        let Some(chunk) = part.chunk else { continue };
        let key = (part.header.origin, part.header.wave);
        match assemblies.add(key, chunk, &RankSet::new(), part.body, &pool) {
            Assembled::Partial => assert!(whole.is_none()),
            Assembled::Whole(body, _) => whole = Some(body),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(whole.unwrap().as_bytes(), body.as_bytes());
    assert_eq!((assemblies.count(), assemblies.bytes()), (0, 0));
}
