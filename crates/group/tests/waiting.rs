//! A call to a reduction whose root has not joined yet, or of which no news has come, waits for it.

use sapwood_group::message::{Life, Ranges, Record};
use sapwood_group::{Answer, FoldId, Input, MemberId, Message, Reason, SECOND, TreeKind};
use sapwood_packet::RankSet;

use crate::support::{Lonely, config, record, sum};

const OTHER: MemberId = MemberId(2);
const ROOT: MemberId = MemberId(3);
const REQUEST: u64 = 9;
const FOLD: FoldId = FoldId { root: 3, number: 7 };

/// The member with the virtual node 1. The member that carries 2 exists in its view only.
struct Caller(Lonely);

impl Caller {
    fn new() -> Self {
        Self(Lonely::among(config(MemberId(1)), &[OTHER]))
    }

    fn reduce(&mut self) {
        self.0.call(REQUEST, TreeKind::Flat, 2 * SECOND, sum(FOLD, &[5]));
    }

    /// What is said of members of which there was no news.
    fn learn(&mut self, id: MemberId, life: Life) {
        let incarnation = u32::from(life != Life::Alive);
        self.0.learn(OTHER, vec![Record { incarnation, life, ..record(id) }]);
    }

    /// The parts of the reduction that went to the root.
    fn parts(&self) -> Vec<Vec<u8>> {
        let part = |(to, message): &(MemberId, Message)| match message {
            Message::Part { head, data, .. } if *to == ROOT && head.fold == FOLD => {
                Some(data.as_slice().to_vec())
            }
            _ => None,
        };
        self.0.sent.iter().filter_map(part).collect()
    }

    fn pass(&mut self, time: u64) {
        let until = self.0.now + time;
        while self.0.wake < until {
            self.0.now = self.0.now.max(self.0.wake);
            self.0.wake = u64::MAX;
            self.0.give(Input::Wake);
        }
        self.0.now = until;
    }

    fn answer(&self) -> Option<&Answer> {
        self.0.answer(REQUEST)
    }
}

fn own() -> Vec<Vec<u8>> {
    vec![5_i64.to_le_bytes().to_vec()]
}

#[test]
fn a_value_goes_to_a_root_that_joins_after_the_call() {
    let mut caller = Caller::new();
    caller.reduce();
    assert_eq!((caller.answer(), caller.parts()), (None, Vec::new()));
    caller.learn(ROOT, Life::Alive);
    assert_eq!(caller.parts(), own());
    let answer = caller.answer().expect("the part is on its way");
    assert_eq!((answer.contributors.to_string(), &answer.missing), ("1".into(), &Vec::new()));
}

#[test]
fn a_value_goes_to_a_root_that_asks_before_there_is_news_of_it() {
    for is_early in [true, false] {
        let mut caller = Caller::new();
        caller.0.give(Input::LinkUp { member: ROOT, address: None });
        let own_names = Ranges::from(&RankSet::range(1, 1));
        let pull =
            Message::Pull { fold: FOLD, names: own_names, segments: (&RankSet::new()).into() };
        if is_early {
            caller.0.hear(ROOT, pull.clone());
        }
        caller.reduce();
        if !is_early {
            caller.0.hear(ROOT, pull);
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
    assert_eq!(caller.answer(), None, "the death of another is no end");
    caller.pass(2 * SECOND);
    let answer = caller.answer().expect("an answer");
    assert_eq!(answer.missing, [(RankSet::range(3, 3), Reason::RootLost)]);
}
