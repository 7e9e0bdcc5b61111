//! A call to a reduction whose root has not joined yet, or of which no news has come, waits for it.

use sapwood_group::message::{Life, Ranges, Record};
use sapwood_group::operations::{Element, Operation};
use sapwood_group::{
    Answer, Call, Config, Event, FoldId, Input, Member, MemberId, Message, Output, Reason, SECOND,
    TreeKind,
};
use sapwood_packet::RankSet;

const OTHER: MemberId = MemberId(2);
const ROOT: MemberId = MemberId(3);
const REQUEST: u64 = 9;
const FOLD: FoldId = FoldId { root: 3, number: 7 };

/// The member with the virtual node 1, and what it sends. The member that carries 2 exists in its
/// view only.
struct Caller {
    member: Member,
    now: u64,
    wake: u64,
    sent: Vec<(MemberId, Message)>,
    answer: Option<Answer>,
}

impl Caller {
    fn new() -> Self {
        let names = RankSet::range(1, 1);
        let config =
            Config { id: MemberId(1), names, space: 100, measures: false, ..Config::default() };
        let (sent, answer) = (Vec::new(), None);
        let mut caller = Self { member: Member::new(config), now: 0, wake: 0, sent, answer };
        caller.give(Input::Create);
        caller.give(Input::LinkUp { member: OTHER, address: None });
        caller.hear(OTHER, Message::Join { space: 100, record: record(OTHER, Life::Alive) });
        caller
    }

    fn give(&mut self, input: Input) {
        self.now += 1000;
        self.member.handle_input(self.now, input);
        while let Some(output) = self.member.poll_output() {
            match output {
                Output::Send { to, message } => self.sent.push((to, message)),
                Output::Wake(time) => self.wake = time,
                Output::Event(Event::Answered(REQUEST, answer)) => self.answer = Some(answer),
                _ => {}
            }
        }
    }

    fn hear(&mut self, from: MemberId, message: Message) {
        self.give(Input::Message { from, message });
    }

    fn reduce(&mut self) {
        let call = Call::Reduce {
            root: FOLD.root,
            number: FOLD.number,
            operation: Operation::Sum,
            element: Element::I64,
            value: 5_i64.to_le_bytes().to_vec().into(),
            to_all: false,
            leaves_early: false,
        };
        let deadline = self.now + 2 * SECOND;
        let tree = TreeKind::Flat;
        self.give(Input::Call { request: REQUEST, tree, deadline, call });
    }

    /// What is said of members of which there was no news.
    fn learn(&mut self, id: MemberId, life: Life) {
        let records = vec![record(id, life)];
        self.hear(OTHER, Message::Update { targets: (&RankSet::new()).into(), records });
    }

    /// The parts of the reduction that went to the root.
    fn parts(&self) -> Vec<Vec<u8>> {
        let part = |(to, message): &(MemberId, Message)| match message {
            Message::Part { head, data, .. } if *to == ROOT && head.fold == FOLD => {
                Some(data.as_slice().to_vec())
            }
            _ => None,
        };
        self.sent.iter().filter_map(part).collect()
    }

    fn pass(&mut self, time: u64) {
        let until = self.now + time;
        while self.wake < until {
            self.now = self.now.max(self.wake);
            self.wake = u64::MAX;
            self.give(Input::Wake);
        }
        self.now = until;
    }
}

/// Each of them has the virtual node of its number.
fn record(id: MemberId, life: Life) -> Record {
    let names = (&RankSet::range(id.0 as u32, id.0 as u32)).into();
    let (address, incarnation) = (id.0.to_string(), u32::from(life != Life::Alive));
    Record { id, address, names, site: 0, incarnation, life, gone_ms: 0, epoch: 0 }
}

fn own() -> Vec<Vec<u8>> {
    vec![5_i64.to_le_bytes().to_vec()]
}

#[test]
fn a_value_goes_to_a_root_that_joins_after_the_call() {
    let mut caller = Caller::new();
    caller.reduce();
    assert_eq!((caller.answer.as_ref(), caller.parts()), (None, Vec::new()));
    caller.learn(ROOT, Life::Alive);
    assert_eq!(caller.parts(), own());
    let answer = caller.answer.expect("the part is on its way");
    assert_eq!((answer.contributors.to_string(), answer.missing), ("1".into(), Vec::new()));
}

#[test]
fn a_value_goes_to_a_root_that_asks_before_there_is_news_of_it() {
    for is_early in [true, false] {
        let mut caller = Caller::new();
        caller.give(Input::LinkUp { member: ROOT, address: None });
        let own_names = Ranges::from(&RankSet::range(1, 1));
        let pull =
            Message::Pull { fold: FOLD, names: own_names, segments: (&RankSet::new()).into() };
        if is_early {
            caller.hear(ROOT, pull.clone());
        }
        caller.reduce();
        if !is_early {
            caller.hear(ROOT, pull);
        }
        assert_eq!(caller.parts(), own(), "asked before the call: {is_early}");
    }
}

#[test]
fn a_root_that_never_joins_is_named_at_the_deadline() {
    let mut caller = Caller::new();
    caller.reduce();
    caller.learn(MemberId(4), Life::Dead);
    caller.pass(SECOND);
    assert_eq!(caller.answer, None, "the death of another is no end");
    caller.pass(2 * SECOND);
    let answer = caller.answer.expect("an answer");
    assert_eq!(answer.missing, [(RankSet::range(3, 3), Reason::RootLost)]);
}
