//! What becomes of a member whose connections fail.

use sapwood_group::message::{Life, Record};
use sapwood_group::{
    Config, Event, Input, MILLISECOND, Member, MemberId, Message, Output, Reason, SECOND,
};
use sapwood_packet::RankSet;

const OTHER: MemberId = MemberId(2);

/// One member, and another that exists in its view only.
struct Pair {
    member: Member,
    now: u64,
    outputs: Vec<Output>,
}

impl Pair {
    fn new() -> Self {
        let names = RankSet::range(1, 1);
        let id = MemberId(1);
        let config = Config { id, names, space: 100, measures: false, ..Config::default() };
        let mut pair = Self { member: Member::new(config), now: 0, outputs: Vec::new() };
        pair.give(Input::Create);
        let names = (&RankSet::range(2, 2)).into();
        let (address, life) = ("2".into(), Life::Alive);
        let record = Record {
            id: OTHER,
            address,
            names,
            site: 0,
            incarnation: 0,
            life,
            gone_ms: 0,
            epoch: 0,
        };
        pair.give(Input::LinkUp { member: OTHER, address: None });
        let message = Message::Join { space: 100, record };
        pair.give(Input::Message { from: OTHER, message });
        pair.outputs.clear();
        pair
    }

    fn give(&mut self, input: Input) {
        self.member.handle_input(self.now, input);
        while let Some(output) = self.member.poll_output() {
            self.outputs.push(output);
        }
    }

    /// Lets the time pass, and has each dial end at once.
    fn pass(&mut self, span: u64, dials: &mut usize, end_of_dial: &dyn Fn(usize) -> Input) {
        let end = self.now + span;
        while self.now < end {
            self.now += MILLISECOND;
            self.give(Input::Wake);
            for output in std::mem::take(&mut self.outputs) {
                match output {
                    Output::Connect { member: Some(OTHER), .. } => {
                        *dials += 1;
                        self.give(end_of_dial(*dials));
                    }
                    Output::Send { to: OTHER, message: Message::Ping { number, digest, .. } }
                        if matches!(end_of_dial(*dials), Input::LinkUp { .. }) =>
                    {
                        let message = Message::Pong { number, digest, table: 0 };
                        self.give(Input::Message { from: OTHER, message });
                    }
                    Output::Event(event) => self.outputs.push(Output::Event(event)),
                    _ => {}
                }
            }
            if self.is_gone() {
                return;
            }
        }
    }

    fn is_gone(&self) -> bool {
        let gone = Output::Event(Event::MemberGone(OTHER, Reason::Dead));
        self.outputs.contains(&gone)
    }
}

fn failed() -> Input {
    Input::ConnectFailed { member: Some(OTHER) }
}

fn up() -> Input {
    Input::LinkUp { member: OTHER, address: None }
}

#[test]
fn a_member_that_is_reached_after_some_refused_connections_lives() {
    let mut pair = Pair::new();
    pair.give(Input::LinkDown { member: OTHER });
    let mut dials = 0;
    pair.pass(5 * SECOND, &mut dials, &|dial| if dial <= 3 { failed() } else { up() });
    assert_eq!((pair.is_gone(), dials), (false, 4));
    assert!(pair.member.view().is_alive(OTHER));
}

#[test]
fn a_member_that_refuses_for_the_patience_of_one_ping_is_dead_before_three_were_silent() {
    let mut pair = Pair::new();
    pair.give(Input::LinkDown { member: OTHER });
    let (begin, mut dials) = (pair.now, 0);
    pair.pass(5 * SECOND, &mut dials, &|_| failed());
    let waited = pair.now - begin;
    assert!(pair.is_gone());
    assert!((100 * MILLISECOND..200 * MILLISECOND).contains(&waited), "{waited}");
    assert!((4..=8).contains(&dials), "{dials} dials, with pauses that grow");
}
