//! A call that leaves a reduction early waits for values that are almost there, and for no others.

use sapwood_group::limits::GRACE_MAX;
use sapwood_group::message::Ranges;
use sapwood_group::{
    Call, Config, Event, FoldId, Input, MILLISECOND, MemberId, Message, Operation, Payload, SECOND,
    Time, TreeKind,
};

use crate::support::{Lonely, bytes, config, name, part_head, reduce};

const ROOT: MemberId = MemberId(1);
const ME: MemberId = MemberId(2);
const CHILD: MemberId = MemberId(3);
/// After four calls to which the child's value came 20 us late: the mean and two deviations.
const DELAY: Time = 28_436;

/// A member of a chain of three, mostly the second, which leaves all its reductions early. The
/// others exist in its view only.
struct Inner {
    lonely: Lonely,
    number: u64,
    called: Time,
}

impl Inner {
    fn new(config: Config) -> Self {
        let me = config.id;
        let others: Vec<MemberId> =
            [ROOT, ME, CHILD].into_iter().filter(|member| *member != me).collect();
        let mut lonely = Lonely::among(config, &others);
        lonely.events.clear();
        Self { lonely, number: 0, called: 0 }
    }

    /// One to which the child's value came 20 us after each of four calls.
    fn settled() -> Self {
        let mut inner = Self::new(config(ME));
        for _ in 0..3 {
            assert_eq!(inner.round(20_000), ["may leave", "answered"]);
        }
        assert_eq!(inner.round(20_000), ["may leave", "delay 28436", "answered"]);
        inner
    }

    /// Calls; gives what the application is told at once.
    fn call(&mut self, operation: Operation) -> Vec<String> {
        self.number += 1;
        let mut call = reduce(self.fold(), operation, &[5]);
        if let Call::Reduce { leaves_early, .. } = &mut call {
            *leaves_early = true;
        }
        self.lonely.call(self.number, TreeKind::List, SECOND, call);
        self.called = self.lonely.now;
        self.said()
    }

    fn fold(&self) -> FoldId {
        FoldId { root: 1, number: self.number }
    }

    /// The child's value for a reduction comes.
    fn hear_child(&mut self, fold: FoldId) {
        let head = part_head(fold, Operation::Sum, 8);
        let (names, data) = (Ranges::from(&name(CHILD)), Payload::from(bytes(&[7])));
        self.lonely.hear(CHILD, Message::Part { head, names, data });
    }

    /// It comes this long after the call.
    fn come(&mut self, late: Time) -> Vec<String> {
        self.lonely.now = self.called + late - 1000;
        self.hear_child(self.fold());
        self.said()
    }

    fn wake(&mut self, late: Time) -> Vec<String> {
        self.lonely.now = self.called + late - 1000;
        self.lonely.give(Input::Wake);
        self.said()
    }

    fn round(&mut self, late: Time) -> Vec<String> {
        let mut said = self.call(Operation::Sum);
        said.extend(self.come(late));
        said
    }

    /// What the application was told since the last look.
    fn said(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.lonely.events);
        let number = self.number;
        let word = |event: Event| match event {
            Event::MayLeave(request) if request == number => "may leave".to_string(),
            Event::Answered(request, _) if request == number => "answered".to_string(),
            Event::GraceDelay(told) => format!("delay {}", told.delay),
            other => format!("{other:?}"),
        };
        events.into_iter().map(word).collect()
    }

    fn has_sent_up(&self) -> bool {
        let fold = self.fold();
        let is_it = |(to, message): &(MemberId, Message)| {
            *to == ROOT && matches!(message, Message::Part { head, .. } if head.fold == fold)
        };
        self.lonely.sent.iter().any(is_it)
    }

    /// Calls that were to wait, and those of them to which the values came meanwhile.
    fn waits(&self) -> [u64; 2] {
        let counts = self.lonely.member.reduce_counts();
        [counts.grace_waits, counts.grace_met]
    }
}

#[test]
fn a_call_waits_as_late_as_values_came_before_and_ends_when_they_are_there() {
    let mut inner = Inner::settled();
    assert_eq!(inner.waits(), [0, 0], "no history, no delay");
    assert!(inner.call(Operation::Sum).is_empty());
    assert!(inner.lonely.wake <= inner.called + DELAY, "the member says when it is over");
    assert!(!inner.has_sent_up());
    assert_eq!(inner.come(20_000), ["answered"]);
    assert!(inner.has_sent_up(), "what has come goes on at once");
    assert!(inner.wake(2 * DELAY).is_empty(), "it has its answer");
    assert_eq!(inner.waits(), [1, 1]);
}

#[test]
fn a_delay_that_is_over_lets_the_caller_leave_once() {
    let mut inner = Inner::settled();
    assert!(inner.call(Operation::Sum).is_empty());
    assert!(inner.wake(DELAY - 1).is_empty());
    assert_eq!(inner.wake(DELAY), ["may leave"]);
    assert!(inner.wake(DELAY + 2000).is_empty());
    assert_eq!(inner.come(50_000), ["delay 45076", "answered"]);
    assert_eq!(inner.waits(), [1, 0]);
}

#[test]
fn a_call_never_waits_for_values_that_come_much_later() {
    let mut inner = Inner::new(config(ME));
    for _ in 0..10 {
        assert_eq!(inner.round(5 * MILLISECOND), ["may leave", "answered"]);
    }
    assert_eq!(inner.waits(), [0, 0]);
}

#[test]
fn one_value_that_is_very_late_ends_the_waits_for_a_while() {
    let mut inner = Inner::settled();
    assert_eq!(inner.round(5 * MILLISECOND), ["delay 0", "answered"]);
    assert_eq!(inner.waits(), [1, 0], "the timer was late, too");
    for _ in 0..8 {
        assert_eq!(inner.round(20_000), ["may leave", "answered"]);
    }
    assert_eq!(inner.round(20_000), ["may leave", "delay 91870", "answered"]);
    assert!(inner.call(Operation::Sum).is_empty());
}

#[test]
fn a_child_that_does_not_come_counts_as_late() {
    let mut inner = Inner::settled();
    assert!(inner.call(Operation::Sum).is_empty());
    assert_eq!(inner.wake(DELAY), ["may leave"]);
    assert_eq!(inner.wake(100 * MILLISECOND), ["delay 0", "answered"]);
    assert!(inner.has_sent_up(), "without the child's value");
}

#[test]
fn values_that_come_before_the_call_make_no_delay() {
    let mut inner = Inner::new(config(ME));
    for _ in 0..4 {
        inner.hear_child(FoldId { root: 1, number: inner.number + 1 });
        assert_eq!(inner.call(Operation::Sum), ["answered"]);
    }
    assert_eq!(inner.round(20_000), ["may leave", "delay 12500", "answered"]);
}

#[test]
fn each_kind_of_call_has_its_own_history() {
    let mut inner = Inner::settled();
    assert_eq!(inner.call(Operation::Max), ["may leave"]);
    assert!(inner.call(Operation::Sum).is_empty());
}

#[test]
fn a_member_without_others_below_it_never_waits() {
    let mut leaf = Inner::new(config(CHILD));
    for _ in 0..8 {
        assert_eq!(leaf.call(Operation::Sum), ["answered"]);
    }
    assert_eq!(leaf.waits(), [0, 0]);
}

#[test]
fn no_call_waits_where_that_is_switched_off() {
    let mut inner = Inner::new(Config { grace_max: 0, ..config(ME) });
    for _ in 0..8 {
        assert_eq!(inner.round(20_000), ["may leave", "answered"]);
    }
}

#[test]
fn a_delay_has_a_bound_whatever_is_configured() {
    let mut inner = Inner::new(Config { grace_max: Time::MAX, ..config(ME) });
    let mut told: Vec<Time> = Vec::new();
    for _ in 0..12 {
        for word in inner.round(9 * MILLISECOND) {
            told.extend(word.strip_prefix("delay ").map(|delay| delay.parse::<Time>().unwrap()));
        }
    }
    let longest = told.iter().max().copied();
    assert!(longest.is_some_and(|longest| longest > 9 * MILLISECOND), "{told:?}");
    assert!(longest <= Some(GRACE_MAX), "{told:?}");
}

#[test]
fn the_same_inputs_make_the_same_delays() {
    let run = || {
        let mut inner = Inner::new(config(ME));
        let lates = (1..60).map(|step| 1000 + step * 7919 % 90_000);
        let said: Vec<String> = lates.flat_map(|late| inner.round(late)).collect();
        (said, inner.waits(), inner.lonely.wake)
    };
    assert_eq!(run(), run());
}
