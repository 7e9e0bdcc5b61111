//! A member whose own timers are late takes no other for dead because of it.

use sapwood_group::{Event, Input, MILLISECOND, Member, MemberId, Message, Output, Reason, SECOND};

use crate::support::{config, join};

const OTHER: MemberId = MemberId(2);

/// Runs a member that gets its processor once in a span, timers first; the other member answers
/// each ping within a millisecond until `silent`. Gives when it counts as dead.
fn judge(span: u64, silent: u64) -> Option<u64> {
    let mut member = Member::new(config(MemberId(1)));
    let mut inputs = vec![
        Input::Create,
        Input::LinkUp { member: OTHER, address: None },
        Input::Message { from: OTHER, message: join(OTHER) },
    ];
    let mut wake = 0;
    for now in (0..60 * SECOND).step_by(span as usize) {
        let mut given = Vec::new();
        if wake <= now {
            given.push(Input::Wake);
        }
        given.append(&mut inputs);
        for input in given {
            member.handle_input(now, input);
            while let Some(output) = member.poll_output() {
                match output {
                    Output::Wake(time) => wake = time,
                    Output::Send { message: Message::Ping { number, digest, .. }, .. }
                        if now < silent =>
                    {
                        let message = Message::Pong { number, digest, table: 0 };
                        inputs.push(Input::Message { from: OTHER, message });
                    }
                    Output::Event(Event::MemberGone(OTHER, Reason::Dead)) => return Some(now),
                    _ => {}
                }
            }
        }
    }
    None
}

#[test]
fn a_member_that_runs_seldom_buries_none_that_answers_at_once() {
    for late in [1, 20, 60, 90, 101, 103, 130, 150, 170, 190, 220, 350] {
        assert_eq!(judge(late * MILLISECOND, u64::MAX), None, "once in {late} ms");
    }
}

#[test]
fn who_is_silent_is_found_dead_by_a_late_member_too() {
    let begin = 10 * SECOND;
    for (late, most) in [(1, 2000), (60, 2500), (150, 3000)] {
        let found = judge(late * MILLISECOND, begin).expect("it is found dead");
        let after = (found - begin) / MILLISECOND;
        assert!((200..most).contains(&after), "once in {late} ms: {after} ms");
    }
}
