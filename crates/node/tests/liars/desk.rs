//! A front-end alone at its desk: what its children say is bytes that a story writes, so that they
//! can say anything. Children are the back-ends 0 and 1 and a communication process with the
//! back-ends 2 and 3.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

use sapwood_filter::{FilterSpec, Registry, WaveRule};
use sapwood_node::{
    Answer, ChildPlan, Delivery, Event, Input, Instant, LinkId, Node, Output, Policy, Recovery,
    Role, Settings, StreamSpec,
};
use sapwood_packet::{Header, PacketRef, Rank, RankSet, Slab, StreamId, Values};
use sapwood_wire::{Claim, Control, Ranges, WIRE_VERSION, encode_control, encode_packet};

pub const LIAR: Rank = 0;
pub const COMMUNICATION: Rank = 5;
/// A stream of the back-ends 2 and 3.
pub const OTHERS: StreamId = 3;

const FRONT_END: Rank = 4;

thread_local! {
    /// Bytes that this thread has allocated and not freed, and the most that was.
    pub static BYTES: Cell<isize> = const { Cell::new(0) };
    pub static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: isize) {
    let now = BYTES.get() + bytes;
    BYTES.set(now);
    PEAK.set(PEAK.get().max(now));
}

/// Begins to look for the most; gives what there is.
pub fn begin_peak() -> isize {
    PEAK.set(BYTES.get());
    BYTES.get()
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as isize - layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The peer that lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    BackEnd,
    Communication,
}

impl Speaker {
    pub fn link(self) -> u32 {
        match self {
            Self::BackEnd => 0,
            Self::Communication => 2,
        }
    }

    fn rank(self) -> Rank {
        match self {
            Self::BackEnd => LIAR,
            Self::Communication => COMMUNICATION,
        }
    }

    /// Members of a stream that the liar has nothing to do with.
    pub fn unrelated(self) -> &'static RankSet {
        static SETS: std::sync::OnceLock<[RankSet; 2]> = std::sync::OnceLock::new();
        let sets = SETS.get_or_init(|| [RankSet::range(1, 3), RankSet::range(0, 1)]);
        &sets[usize::from(self == Self::Communication)]
    }
}

pub fn control(message: &Control) -> Vec<u8> {
    let mut frame = Slab::default();
    encode_control(&mut frame, message).expect("as long as one may be");
    frame.as_bytes().to_vec()
}

pub fn encoded(packet: &PacketRef<'_>) -> Vec<u8> {
    let mut frame = Slab::default();
    encode_packet(&mut frame, packet).expect("short");
    frame.as_bytes().to_vec()
}

/// A packet with one number.
pub fn packet(header: Header, stream: StreamId, ranks: &str, value: i64) -> Vec<u8> {
    let ranks: RankSet = ranks.parse().expect("a set");
    let values = Values::new().scalar(value);
    let header = Header { stream, tag: 100, ..header };
    encoded(&PacketRef {
        header,
        contributors: ranks.as_ref(),
        format: values.as_ref().format(),
        body: values.as_ref().body(),
        ..PacketRef::default()
    })
}

/// A set of 500,000 ranges.
pub fn wide() -> Ranges {
    let mut set = RankSet::new();
    (0..500_000).for_each(|number| set.insert(2 * number));
    Ranges::from(&set)
}

/// What these back-ends give in a wave, together.
pub fn contribution(ranks: &RankSet) -> i64 {
    ranks.iter().map(|rank| 1 << (8 * rank)).sum()
}

pub fn value(answer: &Answer) -> i64 {
    answer.packet.as_ref().expect("a value").values().scalar(0).expect("a number")
}

pub struct Desk {
    node: Node,
    /// A stream of all back-ends.
    pub shared: StreamId,
    cut: Vec<LinkId>,
    events: Vec<Event>,
    answers: Vec<Answer>,
    seen: BTreeMap<(StreamId, u64), RankSet>,
}

impl Desk {
    /// A front-end with all of its children, and the streams 1 of all processes, 2 of the back-ends
    /// 0 and 1, and 3 of the back-ends 2 and 3.
    pub fn new() -> Self {
        let node = Node::new(Settings {
            role: Role::FrontEnd,
            rank: Some(FRONT_END),
            is_started: true,
            pid: 1,
            address: None,
            registry: Registry::built_in(),
            recovery: Recovery::default(),
        });
        let (cut, events, answers, seen) = Default::default();
        let mut desk = Self { node, shared: 1, cut, events, answers, seen };
        let leaf = |rank| ChildPlan { rank, back_ends: RankSet::range(rank, rank), plan: vec![] };
        let inner =
            ChildPlan { rank: COMMUNICATION, back_ends: RankSet::range(2, 3), plan: vec![1] };
        desk.node.expect(vec![leaf(0), leaf(1), inner], RankSet::new(), 2, 4);
        for (link, rank) in [(0, 0), (1, 1), (2, COMMUNICATION)] {
            desk.come(link, Claim::Started { rank });
        }
        let reached = Control::Reached {
            back_ends: Ranges::from(&RankSet::range(2, 3)),
            attach_points: vec![],
        };
        desk.say(2, &control(&reached));
        for (number, members) in [(0, 3), (0, 1), (2, 3)].into_iter().enumerate() {
            let stream = desk.open(&RankSet::range(members.0, members.1), WaveRule::All);
            assert_eq!(stream as usize, number + 1);
        }
        desk
    }

    fn come(&mut self, link: u32, claim: Claim) {
        self.node.handle_input(Instant(1), Input::ChildUp { link: LinkId(link) });
        self.drain();
        let hello = Control::Hello { version: WIRE_VERSION, claim, pid: 1, address: None };
        self.say(link, &control(&hello));
    }

    /// A back-end comes again over a new link, as an orphan.
    pub fn orphan(&mut self, rank: Rank, link: u32) {
        self.come(link, Claim::Orphan { rank, between: vec![] });
    }

    pub fn open(&mut self, members: &RankSet, wave: WaveRule) -> StreamId {
        let spec = StreamSpec {
            members: members.clone(),
            at_back_ends: false,
            up: vec![FilterSpec::from("sum")],
            down: Vec::new(),
            wave,
            policy: Policy::Block,
            window_bytes: None,
            rule: None,
        };
        let stream = self.node.application().open_stream(spec).expect("all are there");
        self.drain();
        stream
    }

    /// Bytes come over a link, as a socket would bring them.
    pub fn say(&mut self, link: u32, bytes: &[u8]) {
        let link = LinkId(link);
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some(memory) = self.node.lend(link) {
                let length = memory.len().min(rest.len());
                memory[..length].copy_from_slice(&rest[..length]);
                rest = &rest[length..];
                self.node.handle_input(Instant(2), Input::Filled { link, bytes: length });
            } else {
                let mut buffer = Slab::of_length(48 << 10);
                let memory = buffer.as_mut_bytes();
                let tail = self.node.begin_read(link, memory);
                let length = rest.len().min(32 << 10);
                memory[tail..tail + length].copy_from_slice(&rest[..length]);
                rest = &rest[length..];
                let bytes = &buffer.as_bytes()[..tail + length];
                self.node.handle_input(Instant(2), Input::Bytes { link, bytes });
            }
            self.drain();
            if self.is_cut(link.0) {
                return;
            }
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Hangup(link) => self.cut.push(link),
                Output::Event(event) => self.events.push(event),
                _ => {}
            }
        }
        while let Some(delivery) = self.node.application().poll_delivery() {
            self.node.application().consumed(delivery.stream(), delivery.cost());
            if let Delivery::Answer(answer) = delivery {
                self.answers.push(answer);
            }
        }
    }

    /// What has been noticed.
    pub fn notices(&self) -> Vec<&str> {
        let mut notices = Vec::new();
        for event in &self.events {
            if let Event::Notice { text, .. } = event {
                notices.push(text.as_str());
            }
        }
        notices
    }

    pub fn is_cut(&self, link: u32) -> bool {
        self.cut.contains(&LinkId(link))
    }

    /// The reason that the application is told for the end of a link.
    pub fn reason_of(&self, speaker: Speaker) -> Option<String> {
        self.events.iter().find_map(|event| match event {
            Event::Lost { rank, reason, .. } | Event::Broken { rank, reason, .. }
                if *rank == speaker.rank() =>
            {
                Some(reason.clone())
            }
            _ => None,
        })
    }

    /// These back-ends send in a wave, and the wave is answered.
    pub fn wave(&mut self, stream: StreamId, wave: u64, ranks: &RankSet) -> Answer {
        // What else is to come of this stream comes first.
        if wave == 1 && stream == self.shared {
            self.send(stream, 0, ranks);
        }
        self.send(stream, wave, ranks);
        let found = self.answers.iter().position(|a| a.stream == stream && a.wave == wave);
        let answer = self.answers.remove(found.expect("the wave is answered"));
        self.note(&answer);
        answer
    }

    fn send(&mut self, stream: StreamId, wave: u64, ranks: &RankSet) {
        for rank in (0..2).filter(|&rank| ranks.contains(rank)) {
            let header = Header { wave, origin: rank, ends_wave: true, ..Header::default() };
            let value = contribution(&RankSet::range(rank, rank));
            self.say(rank, &packet(header, stream, &rank.to_string(), value));
        }
        let mut below = ranks.clone();
        below.intersect_with(RankSet::range(2, 3).as_ref());
        if !below.is_empty() {
            let header =
                Header { wave, origin: COMMUNICATION, ends_wave: true, ..Header::default() };
            let value = contribution(&below);
            self.say(2, &packet(header, stream, &below.to_string(), value));
        }
    }

    fn note(&mut self, answer: &Answer) {
        let seen = self.seen.entry((answer.stream, answer.wave)).or_default();
        assert!(!seen.as_ref().intersects(answer.contributors.as_ref()), "twice: {answer:?}");
        seen.union_with(answer.contributors.as_ref());
    }

    /// No answer has a back-end that another answer of its wave has.
    pub fn nobody_is_counted_twice(&mut self) {
        for answer in std::mem::take(&mut self.answers) {
            self.note(&answer);
        }
    }
}
