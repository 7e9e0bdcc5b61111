//! One member by itself: others exist in its view only, and what it sends to them is kept.

use sapwood_group::message::{PartHead, Ranges, Record};
use sapwood_group::{
    Answer, Call, Config, Element, Event, FoldId, Input, Member, MemberId, Message, Operation,
    Output, Request, TreeKind,
};
use sapwood_packet::RankSet;

/// A member, and what it has put out.
pub(crate) struct Lonely {
    pub(crate) member: Member,
    pub(crate) now: u64,
    /// When it wants to be woken.
    pub(crate) wake: u64,
    pub(crate) sent: Vec<(MemberId, Message)>,
    pub(crate) events: Vec<Event>,
}

impl Lonely {
    /// The first member of a group.
    pub(crate) fn new(config: Config) -> Self {
        let (sent, events) = (Vec::new(), Vec::new());
        let mut lonely = Self { member: Member::new(config), now: 0, wake: 0, sent, events };
        lonely.give(Input::Create);
        lonely
    }

    /// The same, with others that have joined by it.
    pub(crate) fn among(config: Config, others: &[MemberId]) -> Self {
        let mut lonely = Self::new(config);
        for &member in others {
            lonely.give(Input::LinkUp { member, address: None });
            lonely.hear(member, join(member));
        }
        lonely.sent.clear();
        lonely
    }

    pub(crate) fn give(&mut self, input: Input) {
        self.now += 1000;
        self.member.handle_input(self.now, input);
        while let Some(output) = self.member.poll_output() {
            match output {
                Output::Send { to, message } => self.sent.push((to, message)),
                Output::Event(event) => self.events.push(event),
                Output::Wake(time) => self.wake = time,
                Output::Connect { .. } => {}
            }
        }
    }

    pub(crate) fn hear(&mut self, from: MemberId, message: Message) {
        self.give(Input::Message { from, message });
    }

    /// Another member tells news.
    pub(crate) fn learn(&mut self, from: MemberId, records: Vec<Record>) {
        self.hear(from, Message::Update { targets: Ranges::default(), records });
    }

    pub(crate) fn call(&mut self, request: Request, tree: TreeKind, span: u64, call: Call) {
        let deadline = self.now + span;
        self.give(Input::Call { request, tree, deadline, call });
    }

    pub(crate) fn answer(&self, request: Request) -> Option<&Answer> {
        self.events.iter().find_map(|event| match event {
            Event::Answered(answered, answer) if *answered == request => Some(answer),
            _ => None,
        })
    }
}

/// The settings of a member that carries the virtual node of its number and measures nothing.
pub(crate) fn config(id: MemberId) -> Config {
    Config { id, names: name(id), space: 100, measures: false, ..Config::default() }
}

/// The virtual node of a member's number.
pub(crate) fn name(id: MemberId) -> RankSet {
    let name = u32::try_from(id.0).expect("a small number");
    RankSet::range(name, name)
}

/// A living member that carries the virtual node of its number.
pub(crate) fn record(id: MemberId) -> Record {
    Record { address: id.0.to_string(), ..Record::new(id, &name(id)) }
}

/// It asks to join.
pub(crate) fn join(id: MemberId) -> Message {
    Message::Join { space: 100, record: record(id) }
}

/// The bytes of a value.
pub(crate) fn bytes(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A part of a reduction whose result the root alone gets.
pub(crate) fn reduce(fold: FoldId, operation: Operation, value: &[i64]) -> Call {
    Call::Reduce {
        root: fold.root,
        number: fold.number,
        operation,
        element: Element::I64,
        value: bytes(value).into(),
        to_all: false,
        leaves_early: false,
    }
}

/// The same of a sum.
pub(crate) fn sum(fold: FoldId, value: &[i64]) -> Call {
    reduce(fold, Operation::Sum, value)
}

/// What goes before such a value of one segment on its way up the tree.
pub(crate) fn part_head(fold: FoldId, operation: Operation, bytes: u64) -> PartHead {
    PartHead {
        fold,
        segment: 0,
        segments: 1,
        operation,
        element: Element::I64,
        bytes,
        direct: false,
    }
}
