//! What becomes of a member whose connections fail.

use sapwood_group::{Event, Input, MILLISECOND, Member, MemberId, Message, Output, Reason, SECOND};

use crate::support::{config, join};

const OTHER: MemberId = MemberId(2);

/// One member, and another that exists in its view only.
struct Dialler {
    member: Member,
    now: u64,
    outputs: Vec<Output>,
}

impl Dialler {
    fn new() -> Self {
        let member = Member::new(config(MemberId(1)));
        let mut dialler = Self { member, now: 0, outputs: Vec::new() };
        dialler.give(Input::Create);
        dialler.give(Input::LinkUp { member: OTHER, address: None });
        dialler.give(Input::Message { from: OTHER, message: join(OTHER) });
        dialler.outputs.clear();
        dialler
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
    let mut dialler = Dialler::new();
    dialler.give(Input::LinkDown { member: OTHER });
    let mut dials = 0;
    dialler.pass(5 * SECOND, &mut dials, &|dial| if dial <= 3 { failed() } else { up() });
    assert_eq!((dialler.is_gone(), dials), (false, 4));
    assert!(dialler.member.view().is_alive(OTHER));
}

#[test]
fn a_member_that_refuses_for_the_patience_of_one_ping_is_dead_before_three_were_silent() {
    let mut dialler = Dialler::new();
    dialler.give(Input::LinkDown { member: OTHER });
    let (begin, mut dials) = (dialler.now, 0);
    dialler.pass(5 * SECOND, &mut dials, &|_| failed());
    let waited = dialler.now - begin;
    assert!(dialler.is_gone());
    assert!((100 * MILLISECOND..200 * MILLISECOND).contains(&waited), "{waited}");
    assert!((4..=8).contains(&dials), "{dials} dials, with pauses that grow");
}
