//! Virtual nodes that a member takes from another one when it joins: at each step, on both sides.

use sapwood_group::limits::TRANSFERS_MAX;
use sapwood_group::message::{Gift, Head, Life, PartHead, Purpose, Ranges, Record, Route, Table};
use sapwood_group::{
    Call, CastId, Config, Event, FoldId, GroupError, Input, Member, MemberId, Message, Operation,
    Payload, Reason, Refusal, SECOND, TreeKind,
};
use sapwood_packet::RankSet;

use crate::support::{Lonely, config, part_head, record, sum};

const ME: MemberId = MemberId(1);
const TAKER: MemberId = MemberId(2);
const THIRD: MemberId = MemberId(3);

fn ranges(text: &str) -> Ranges {
    (&names(text)).into()
}

fn names(text: &str) -> RankSet {
    text.parse().expect("ranges")
}

/// One member with the virtual nodes 10 and 11, and others that carry those of their numbers.
fn giver() -> Lonely {
    Lonely::among(Config { names: names("10-11"), ..config(ME) }, &[TAKER, THIRD])
}

fn take(lonely: &mut Lonely, text: &str) {
    lonely.hear(TAKER, Message::Take { names: ranges(text) });
}

/// The taker says that it carries 11.
fn confirm(lonely: &mut Lonely) {
    let record = Record { names: ranges("2,11"), incarnation: 1, epoch: 1, ..record(TAKER) };
    lonely.learn(TAKER, vec![record]);
}

fn gift(lonely: &Lonely) -> Option<&Gift> {
    lonely.sent.iter().find_map(|(to, message)| match message {
        Message::Give { gift } if *to == TAKER => Some(gift),
        _ => None,
    })
}

fn own_record(lonely: &Lonely) -> &Record {
    lonely.member.view().record(lonely.member.id()).expect("a member")
}

fn has_sent(lonely: &Lonely, wanted: &Message) -> bool {
    lonely.sent.iter().any(|(_, message)| message == wanted)
}

/// A transfer of member 3 in one segment.
fn open(lonely: &mut Lonely, number: u64, text: &str) {
    open_above(lonely, number, 1, text);
}

/// The same where those of lower numbers are over.
fn open_above(lonely: &mut Lonely, number: u64, floor: u64, text: &str) {
    let head = Head {
        cast: cast(number),
        stripe: 0,
        stripes: 1,
        floor,
        tree: TreeKind::Flat,
        purpose: Purpose::Broadcast,
        bytes: 8,
        segment_bytes: 8,
        tag: number,
    };
    let (route, data) = (Route::default(), Payload::from(vec![7; 8]));
    let targets = ranges(text);
    lonely.hear(THIRD, Message::Open { head, targets, route, ask: false, receipt: false, data });
}

fn cast(number: u64) -> CastId {
    CastId { root: THIRD, number }
}

fn delivered(lonely: &Lonely) -> Vec<(u64, String)> {
    let one = |event: &Event| match event {
        Event::Delivery { tag, names, .. } => Some((*tag, names.to_string())),
        _ => None,
    };
    lonely.events.iter().filter_map(one).collect()
}

#[test]
fn a_giver_keeps_the_rest_and_delivers_nothing_more_to_what_it_gives() {
    let mut lonely = giver();
    open(&mut lonely, 1, "10-11");
    take(&mut lonely, "11");
    let given = gift(&lonely).expect("nothing is under way").clone();
    assert_eq!((given.names, given.delivered), (ranges("11"), vec![(cast(1), ranges("11"))]));
    open(&mut lonely, 2, "10-11");
    assert_eq!(delivered(&lonely), [(1, "10-11".into()), (2, "10".into())]);
    confirm(&mut lonely);
    let sent = |(to, message): &(MemberId, Message)| match message {
        Message::Open { head, targets, .. } if *to == TAKER => Some((head.tag, targets.clone())),
        _ => None,
    };
    let opened: Vec<(u64, Ranges)> = lonely.sent.iter().filter_map(sent).collect();
    assert_eq!(opened, [(2, ranges("11"))]);
    let own = own_record(&lonely);
    assert_eq!((own.life, own.names.clone()), (Life::Alive, ranges("10")));
    assert_eq!(lonely.member.view().owner(11), Some(TAKER));
}

#[test]
fn a_member_gives_not_all_and_nothing_that_it_does_not_carry() {
    for text in ["10-11", "11-12", "3"] {
        let mut lonely = giver();
        take(&mut lonely, text);
        assert!(has_sent(&lonely, &Message::Decline { names: ranges(text) }), "{text}");
        assert_eq!((gift(&lonely), lonely.member.names()), (None, names("10-11")), "{text}");
    }
}

#[test]
fn a_taker_that_dies_before_it_is_given_anything_leaves_all_where_it_was() {
    let mut lonely = giver();
    let fold = FoldId { root: 11, number: 1 };
    lonely.call(1, TreeKind::Flat, SECOND, sum(fold, &[5]));
    take(&mut lonely, "11");
    open(&mut lonely, 2, "11");
    assert_eq!((gift(&lonely), delivered(&lonely)), (None, vec![]), "the reduction ends first");
    lonely.learn(THIRD, vec![Record { life: Life::Dead, ..record(TAKER) }]);
    assert_eq!(delivered(&lonely), [(2, "11".into())]);
    assert_eq!(own_record(&lonely).names, ranges("10-11"));
}

/// Its value would count for what is the taker's: that may have called by then.
#[test]
fn a_giver_calls_no_reduction_until_the_taker_carries_what_it_was_given() {
    let mut lonely = giver();
    take(&mut lonely, "11");
    let fold = FoldId { root: 3, number: 1 };
    lonely.call(1, TreeKind::Flat, SECOND, sum(fold, &[5]));
    let head = part_head(fold, Operation::Sum, 8);
    let part = |text: &str| {
        let data = Payload::from(5_i64.to_le_bytes().to_vec());
        let head = PartHead { direct: true, ..head.clone() };
        Message::Part { head, names: ranges(text), data }
    };
    assert!(!has_sent(&lonely, &part("10-11")) && !has_sent(&lonely, &part("10")));
    confirm(&mut lonely);
    assert!(has_sent(&lonely, &part("10")), "{:?}", lonely.sent);
}

fn has_sent_part(lonely: &Lonely) -> bool {
    lonely.sent.iter().any(|(_, message)| matches!(message, Message::Part { .. }))
}

/// The taker may take ten seconds to answer.
#[test]
fn a_call_that_a_giver_puts_off_is_answered_at_its_deadline() {
    let mut lonely = giver();
    take(&mut lonely, "11");
    let fold = FoldId { root: 3, number: 1 };
    lonely.call(1, TreeKind::Flat, SECOND / 20, sum(fold, &[5]));
    while lonely.answer(1).is_none() && lonely.now < SECOND / 5 {
        lonely.now = lonely.wake;
        lonely.give(Input::Wake);
    }
    assert!(lonely.member.view().is_alive(TAKER));
    let answer = lonely.answer(1).expect("an answer at the deadline");
    assert_eq!(answer.missing, [(names("10"), Reason::Deadline)]);
    confirm(&mut lonely);
    assert!(!has_sent_part(&lonely), "the call is over: {:?}", lonely.sent);
}

#[test]
fn a_giver_puts_off_as_many_calls_as_may_be_under_way_and_each_number_once() {
    let mut lonely = giver();
    take(&mut lonely, "11");
    let most = TRANSFERS_MAX as u64;
    for number in 1..=most + 1 {
        let fold = FoldId { root: 3, number };
        lonely.call(number, TreeKind::Flat, SECOND, sum(fold, &[5]));
    }
    let failed = |event: &&Event| matches!(event, Event::Failed(..));
    let busy = Event::Failed(most + 1, GroupError::Busy);
    assert_eq!(lonely.events.iter().filter(failed).collect::<Vec<_>>(), [&busy]);
    let fold = FoldId { root: 3, number: most + 2 };
    lonely.call(1, TreeKind::Flat, SECOND, sum(fold, &[5]));
    let twice = Event::Failed(1, GroupError::Number { number: 1 });
    assert!(lonely.events.contains(&twice));
    assert!(!has_sent_part(&lonely), "all wait for the taker");
}

#[test]
fn a_giver_that_is_to_leave_puts_nothing_off() {
    let mut lonely = giver();
    take(&mut lonely, "11");
    lonely.give(Input::Leave);
    let fold = FoldId { root: 3, number: 1 };
    lonely.call(1, TreeKind::Flat, SECOND, sum(fold, &[5]));
    assert!(lonely.events.contains(&Event::Failed(1, GroupError::NotJoined)));
}

#[test]
fn a_giver_that_is_to_leave_does_so_afterwards() {
    let mut lonely = giver();
    take(&mut lonely, "11");
    lonely.give(Input::LeaveTo { heir: Some(3) });
    assert!(!has_sent(&lonely, &Message::Offer { names: ranges("10") }));
    confirm(&mut lonely);
    assert!(has_sent(&lonely, &Message::Offer { names: ranges("10") }));
}

/// The root leaves out what has died: the giver's value counts without it.
#[test]
fn a_value_counts_without_what_was_given_away_and_has_died() {
    let mut lonely = giver();
    let fold = FoldId { root: 3, number: 1 };
    lonely.call(1, TreeKind::Flat, SECOND, sum(fold, &[5]));
    take(&mut lonely, "11");
    confirm(&mut lonely);
    let dead = Record { life: Life::Dead, names: ranges("2,11"), incarnation: 1, ..record(TAKER) };
    lonely.learn(THIRD, vec![dead]);
    lonely.sent.clear();
    let names = ranges("10");
    lonely.hear(THIRD, Message::Pull { fold, names: names.clone(), segments: Ranges::default() });
    let parts: Vec<&Ranges> = lonely
        .sent
        .iter()
        .filter_map(|(_, message)| match message {
            Message::Part { names, .. } => Some(names),
            _ => None,
        })
        .collect();
    assert_eq!(parts, [&names]);
}

/// A process that joins by member 1, which carries 10 and 11, and takes these.
fn taker(text: &str) -> Lonely {
    let config = Config { names: RankSet::new(), take: names(text), ..config(TAKER) };
    let (sent, events) = (Vec::new(), Vec::new());
    let mut lonely = Lonely { member: Member::new(config), now: 0, wake: 0, sent, events };
    lonely.give(Input::Join { address: "1".into() });
    lonely.give(Input::LinkUp { member: ME, address: Some("1".into()) });
    let giver = Record { names: ranges("10-11"), ..record(ME) };
    let own = Record { names: Ranges::default(), ..record(TAKER) };
    let records = vec![giver, record(THIRD), own];
    lonely.hear(ME, Message::Welcome { records, table: Table::default() });
    lonely
}

#[test]
fn a_taker_may_call_when_it_has_what_it_takes() {
    let mut lonely = taker("11");
    assert!(has_sent(&lonely, &Message::Take { names: ranges("11") }));
    let targets = Some(names("10"));
    let call = Call::Broadcast { targets, value: Payload::default(), tag: 0 };
    lonely.call(1, TreeKind::Flat, SECOND, call);
    let failed = Event::Failed(1, GroupError::NotJoined);
    assert!(lonely.events.contains(&failed), "{:?}", lonely.events);
    lonely.hear(ME, Message::Give { gift: Gift { names: ranges("11"), ..Gift::default() } });
    assert_eq!((lonely.member.is_taking(), lonely.member.names()), (false, names("11")));
    assert_eq!(own_record(&lonely).epoch, 1);
    open(&mut lonely, 2, "11");
    assert_eq!(delivered(&lonely), [(2, "11".into())]);
}

#[test]
fn what_no_one_member_can_give_is_refused_at_once() {
    for text in ["10-11", "3,11", "12", "3"] {
        let lonely = taker(text);
        let refused = Event::Refused(Refusal::NotGiven);
        assert!(lonely.events.contains(&refused), "{text}: {:?}", lonely.events);
        assert_eq!(own_record(&lonely).life, Life::Left, "{text}");
    }
}

#[test]
fn a_taker_asks_again_and_leaves_when_it_is_given_nothing() {
    let mut lonely = taker("11");
    let asked = |lonely: &Lonely| {
        let wanted = Message::Take { names: ranges("11") };
        lonely.sent.iter().filter(|(_, message)| *message == wanted).count()
    };
    while !lonely.events.contains(&Event::Refused(Refusal::NotGiven)) {
        assert!(lonely.now < 6 * SECOND, "asked {} times", asked(&lonely));
        lonely.now = lonely.wake;
        lonely.give(Input::Wake);
    }
    assert!(asked(&lonely) > 10, "asked {} times", asked(&lonely));
    lonely.hear(ME, Message::Give { gift: Gift { names: ranges("11"), ..Gift::default() } });
    assert!(has_sent(&lonely, &Message::Return { names: ranges("11") }));
}

fn own_giver() -> Record {
    Record { names: ranges("10-11"), ..record(ME) }
}

/// A reduction began before the taker joined: it never calls, and says for which names the giver's
/// value stands.
#[test]
fn a_taker_that_has_not_called_knows_whose_value_was_given() {
    for is_alive in [true, false] {
        let mut lonely = taker("11");
        let fold = FoldId { root: 3, number: 1 };
        let folds = vec![(fold, ranges("11"))];
        lonely.hear(
            ME,
            Message::Give { gift: Gift { names: ranges("11"), folds, ..Gift::default() } },
        );
        if !is_alive {
            lonely.learn(THIRD, vec![Record { life: Life::Left, ..own_giver() }]);
        }
        let pull = Message::Pull { fold, names: ranges("11"), segments: Ranges::default() };
        lonely.hear(THIRD, pull.clone());
        let absent = Message::Absent { fold, names: ranges("11") };
        let asked = lonely.sent.iter().any(|(to, message)| *to == ME && *message == pull);
        assert_eq!((asked, has_sent(&lonely, &absent)), (is_alive, !is_alive));
    }
}

/// Cut, the list would have the receiver deliver again what it lacks.
#[test]
fn names_for_which_too_much_is_remembered_are_not_given() {
    let mut lonely = taker("11");
    let delivered = (1..=TRANSFERS_MAX as u64).map(|number| (cast(number), ranges("11"))).collect();
    let gift_here = Gift { names: ranges("11"), delivered, ..Gift::default() };
    lonely.hear(ME, Message::Give { gift: gift_here });
    open(&mut lonely, 1 << 20, "11");
    lonely.give(Input::LeaveTo { heir: Some(3) });
    lonely.hear(THIRD, Message::Take { names: ranges("11") });
    while lonely.now < 3 * SECOND && own_record(&lonely).life == Life::Alive {
        lonely.now = lonely.wake;
        lonely.give(Input::Wake);
    }
    let is_gift = |message: &Message| matches!(message, Message::Give { .. });
    assert!(!lonely.sent.iter().any(|(_, message)| is_gift(message)));
    assert!(has_sent(&lonely, &Message::Offer { names: ranges("11") }));
}

/// Members may still call to the reduction, at the member that is its root now.
#[test]
fn the_cause_of_a_reduction_without_a_result_goes_with_the_names() {
    let mut lonely = giver();
    let fold = FoldId { root: 11, number: 1 };
    let broken = Message::Broken { fold, names: ranges("3"), reason: Reason::Undefined };
    lonely.hear(THIRD, broken.clone());
    take(&mut lonely, "11");
    let at = |wanted: &dyn Fn(&Message) -> bool| {
        lonely.sent.iter().position(|(to, message)| *to == TAKER && wanted(message))
    };
    let told = at(&|message| *message == broken).expect("the cause");
    let given = at(&|message| matches!(message, Message::Give { .. })).expect("the gift");
    assert!(told < given);
    // The taker has it for its own call.
    let mut lonely = taker("11");
    lonely.hear(ME, broken);
    lonely.hear(ME, Message::Give { gift: Gift { names: ranges("11"), ..Gift::default() } });
    lonely.call(1, TreeKind::Flat, SECOND, sum(fold, &[5]));
    let answer = lonely.answer(1).expect("an answer");
    assert_eq!(answer.missing, [(names("3"), Reason::Undefined)]);
}

/// With many members a root that dials each would need a link to each.
#[test]
fn a_root_tells_that_there_is_no_result_down_a_tree() {
    let members: Vec<MemberId> = (2..40).map(MemberId).collect();
    let mut lonely = Lonely::among(config(ME), &members);
    let fold = FoldId { root: 1, number: 1 };
    let (names, reason) = (ranges("3"), Reason::FunctionFailed);
    lonely.hear(THIRD, Message::Broken { fold, names: names.clone(), reason });
    let opened = |(_, message): &&(MemberId, Message)| match message {
        Message::Open { head, .. } => {
            head.purpose == Purpose::Broken { fold, names: names.clone(), reason }
        }
        _ => false,
    };
    let links = lonely.sent.iter().filter(opened).count();
    assert!((1..20).contains(&links), "{links} links");
    assert_eq!(lonely.sent.iter().filter(|(_, m)| matches!(m, Message::Broken { .. })).count(), 0);
}

fn wake_until(lonely: &mut Lonely, end: u64, is_over: impl Fn(&Lonely) -> bool) {
    while lonely.now < end && !is_over(lonely) {
        lonely.now = lonely.wake;
        lonely.give(Input::Wake);
    }
}

fn count(lonely: &Lonely, is_wanted: impl Fn(&Message) -> bool) -> usize {
    lonely.sent.iter().filter(|(_, message)| is_wanted(message)).count()
}

/// There may be thousands of them, and they are lost with a link only.
#[test]
fn the_cause_goes_again_with_a_new_link_only() {
    let mut lonely = giver();
    let fold = FoldId { root: 11, number: 1 };
    let broken = Message::Broken { fold, names: ranges("3"), reason: Reason::Undefined };
    lonely.hear(THIRD, broken.clone());
    take(&mut lonely, "11");
    let given = |lonely: &Lonely| count(lonely, |message| matches!(message, Message::Give { .. }));
    wake_until(&mut lonely, SECOND / 4, |lonely| given(lonely) > 1);
    assert_eq!((given(&lonely), count(&lonely, |message| *message == broken)), (2, 1));
    lonely.give(Input::LinkUp { member: TAKER, address: None });
    let end = lonely.now + SECOND / 4;
    wake_until(&mut lonely, end, |lonely| given(lonely) > 2);
    assert_eq!((given(&lonely), count(&lonely, |message| *message == broken)), (3, 2));
}

/// It would ignore what it has said that it takes.
#[test]
fn a_giver_accepts_no_offer_until_its_taker_has_what_it_gave() {
    let mut lonely = giver();
    take(&mut lonely, "11");
    let offer = Message::Offer { names: ranges("3") };
    let answer = Message::Take { names: ranges("3") };
    lonely.hear(THIRD, offer.clone());
    assert!(!has_sent(&lonely, &answer));
    assert!(!has_sent(&lonely, &Message::Decline { names: ranges("3") }), "it asks again");
    assert!(has_sent(&lonely, &Message::Later { names: ranges("3") }));
    confirm(&mut lonely);
    lonely.hear(THIRD, offer);
    assert!(has_sent(&lonely, &answer));
}

/// A list of that length is not made anew for each message that comes.
#[test]
fn what_was_too_much_to_give_is_looked_at_again_after_a_while() {
    let mut lonely = taker("11");
    let most = TRANSFERS_MAX as u64;
    let delivered = (1..=most).map(|number| (cast(number), ranges("11"))).collect();
    let gift_here = Gift { names: ranges("11"), delivered, ..Gift::default() };
    lonely.hear(ME, Message::Give { gift: gift_here });
    open(&mut lonely, 1 << 20, "11");
    lonely.give(Input::LeaveTo { heir: Some(3) });
    lonely.hear(THIRD, Message::Take { names: ranges("11") });
    let given = |lonely: &Lonely| count(lonely, |message| matches!(message, Message::Give { .. }));
    open_above(&mut lonely, (1 << 20) + 1, most + 1, "11");
    assert_eq!(given(&lonely), 0);
    wake_until(&mut lonely, SECOND, |lonely| given(lonely) > 0);
    assert_eq!(given(&lonely), 1);
}
