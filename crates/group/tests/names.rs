//! Virtual nodes that a member hands over when it leaves: which member delivers, at each step.

use sapwood_group::message::{Gift, Head, Life, PartHead, Purpose, Ranges, Record, Route};
use sapwood_group::operations::Operation;
use sapwood_group::{
    CastId, Config, Event, FoldId, Input, MemberId, Message, Payload, SECOND, TreeKind,
};
use sapwood_packet::RankSet;

use crate::support::{self, Lonely, config, part_head, sum};

const OTHER: MemberId = MemberId(2);
const THIRD: MemberId = MemberId(3);

/// One member with the virtual node 1, and another with 2 that exists in its view only.
struct Pair(Lonely);

impl Pair {
    fn new() -> Self {
        Self(Lonely::among(config(MemberId(1)), &[OTHER]))
    }

    fn give(&mut self, input: Input) {
        self.0.give(input);
    }

    fn hear(&mut self, message: Message) {
        self.0.hear(OTHER, message);
    }

    fn hear_of(&mut self, record: Record) {
        self.0.learn(OTHER, vec![record]);
    }

    /// The transfers that were delivered to the virtual node 1.
    fn delivered(&self) -> Vec<u64> {
        let number = |event: &Event| match event {
            Event::Delivery { cast, .. } => Some(cast.number),
            _ => None,
        };
        self.0.events.iter().filter_map(number).collect()
    }

    fn gift(&self) -> Option<&Gift> {
        self.sent().find_map(|message| match message {
            Message::Give { gift } => Some(gift),
            _ => None,
        })
    }

    fn sent(&self) -> impl Iterator<Item = &Message> {
        self.0.sent.iter().map(|(_, message)| message)
    }

    fn has_sent(&self, message: &Message) -> bool {
        self.sent().any(|sent| sent == message)
    }

    /// Which transfers went to the other member.
    fn opened(&self) -> Vec<u64> {
        let number = |message: &Message| match message {
            Message::Open { head, .. } => Some(head.cast.number),
            _ => None,
        };
        self.sent().filter_map(number).collect()
    }
}

/// What the other member says of itself.
fn record(names: &str, epoch: u32, life: Life) -> Record {
    let incarnation = epoch;
    Record { incarnation, life, epoch, ..Record::new(OTHER, &names.parse().unwrap()) }
}

fn names() -> Ranges {
    (&RankSet::range(1, 1)).into()
}

/// A transfer of the other member to the virtual node 1, in this many segments of which one comes.
fn open(number: u64, segments: u64) -> Message {
    let head = Head {
        cast: CastId { root: OTHER, number },
        stripe: 0,
        stripes: 1,
        floor: 1,
        tree: TreeKind::Flat,
        purpose: Purpose::Broadcast,
        bytes: 8 * segments,
        segment_bytes: 8,
        tag: 0,
    };
    let (route, data) = (Route::default(), Payload::from(vec![7; 8]));
    Message::Open { head, targets: names(), route, ask: false, receipt: false, data }
}

/// The other member takes what it was offered, while the first of two transfers is half there.
fn draining() -> Pair {
    let mut pair = Pair::new();
    pair.hear(open(1, 2));
    pair.give(Input::LeaveTo { heir: Some(2) });
    assert!(pair.has_sent(&Message::Offer { names: names() }));
    pair.hear(Message::Take { names: names() });
    pair.hear(open(2, 1));
    assert_eq!((pair.delivered(), pair.gift()), (vec![1], None));
    pair
}

fn last_segment(pair: &mut Pair) {
    let cast = CastId { root: OTHER, number: 1 };
    let data = Payload::from(vec![7; 8]);
    pair.hear(Message::Segment { cast, stripe: 0, index: 1, data });
}

#[test]
fn what_was_begun_is_finished_and_what_comes_later_is_the_heirs() {
    let mut pair = draining();
    last_segment(&mut pair);
    let gift = pair.gift().expect("all is delivered that was begun").clone();
    assert_eq!(gift.delivered, [(CastId { root: OTHER, number: 1 }, names())]);
    assert_eq!((gift.names, gift.begun), (names(), vec![]));
    assert_eq!(pair.opened(), []);
    pair.hear_of(record("1-2", 1, Life::Alive));
    assert_eq!((pair.delivered(), pair.opened()), (vec![1, 1], vec![2]));
    let own = pair.0.member.view().record(MemberId(1)).unwrap();
    assert_eq!((own.life, own.names.as_set().is_empty()), (Life::Left, true));
    assert_eq!(pair.0.member.view().owner(1), Some(OTHER));
}

#[test]
fn an_heir_that_dies_before_it_has_the_names_leaves_them_where_they_were() {
    let mut pair = draining();
    pair.hear_of(record("2", 0, Life::Dead));
    assert_eq!((pair.delivered(), pair.gift()), (vec![1, 2], None));
}

/// The heir may live and deliver: the giver does not, whatever it hears.
#[test]
fn names_that_were_given_never_come_back() {
    let mut pair = draining();
    last_segment(&mut pair);
    assert!(pair.gift().is_some());
    pair.hear_of(record("2", 0, Life::Dead));
    pair.hear(open(3, 1));
    assert_eq!(pair.delivered(), [1, 1]);
    assert_eq!(pair.0.member.view().owner(1), None);
}

#[test]
fn a_member_whose_heir_declines_leaves_by_itself() {
    let mut pair = Pair::new();
    pair.give(Input::LeaveTo { heir: Some(2) });
    pair.hear(Message::Decline { names: names() });
    assert_eq!(pair.0.member.view().record(MemberId(1)).unwrap().life, Life::Left);
}

#[test]
fn a_gift_that_was_lost_is_given_again() {
    let mut pair = draining();
    last_segment(&mut pair);
    pair.0.sent.clear();
    pair.0.now += SECOND;
    pair.give(Input::Wake);
    assert!(pair.gift().is_some());
}

/// The other member hands its virtual node 2 over, to which it has delivered one transfer.
#[test]
fn the_heir_delivers_what_the_giver_has_not() {
    let mut pair = Pair::new();
    let two: Ranges = (&RankSet::range(2, 2)).into();
    pair.hear(Message::Offer { names: two.clone() });
    assert!(pair.has_sent(&Message::Take { names: two.clone() }));
    let cast = |number| CastId { root: MemberId(9), number };
    let delivered = vec![(cast(1), two.clone())];
    let gift = Gift { names: two.clone(), delivered, ..Gift::default() };
    pair.hear(Message::Give { gift: gift.clone() });
    assert_eq!(pair.0.member.names().to_string(), "1-2");
    let incarnation = pair.0.member.view().record(MemberId(1)).unwrap().incarnation;
    // The giver has not heard: it is told, and nothing changes.
    pair.hear(Message::Give { gift });
    assert_eq!(pair.0.member.view().record(MemberId(1)).unwrap().incarnation, incarnation);
    for number in [1, 2] {
        let Message::Open { mut head, route, data, .. } = open(number, 1) else { panic!() };
        head.cast = cast(number);
        let targets = two.clone();
        pair.hear(Message::Open { head, targets, route, ask: false, receipt: false, data });
    }
    assert_eq!(pair.delivered(), [2]);
    let acknowledged =
        |message: &&Message| matches!(message, Message::Done { failed, .. } if failed.is_empty());
    assert_eq!(pair.sent().filter(acknowledged).count(), 2);
}

#[test]
fn names_that_the_giver_does_not_have_are_not_taken() {
    let mut pair = Pair::new();
    for text in ["3", "2,50", "200", "1"] {
        let names = (&text.parse::<RankSet>().unwrap()).into();
        pair.hear(Message::Give { gift: Gift { names, ..Gift::default() } });
        assert_eq!(pair.0.member.names().to_string(), "1", "{text}");
    }
}

#[test]
fn a_member_that_has_given_its_names_away_claims_no_others() {
    let mut pair = draining();
    last_segment(&mut pair);
    assert!(pair.gift().is_some());
    let names = (&RankSet::range(2, 2)).into();
    pair.hear(Message::Give { gift: Gift { names, ..Gift::default() } });
    let record = pair.0.member.view().record(MemberId(1)).unwrap();
    assert_eq!((record.names.as_set().to_string(), record.epoch), ("1".into(), 0));
}

/// What is told of values that members have given before they handed their names over.
fn gift_of(name: u32, fold: FoldId) -> Gift {
    let names: Ranges = (&RankSet::range(name, name)).into();
    Gift { names: names.clone(), folds: vec![(fold, names)], ..Gift::default() }
}

/// For which virtual nodes it has given values.
fn given(pair: &Pair) -> Vec<String> {
    let names = |message: &Message| match message {
        Message::Part { names, .. } => Some(names.as_set().to_string()),
        _ => None,
    };
    pair.sent().filter_map(names).collect()
}

fn reduce(pair: &mut Pair, fold: FoldId) {
    pair.0.call(1, TreeKind::Flat, SECOND, sum(fold, &[5]));
}

#[test]
fn an_heir_of_two_members_gives_no_value_for_either_that_has_given_its_own() {
    const ROOT: MemberId = MemberId(4);
    let mut pair = Pair::new();
    for id in [THIRD, ROOT] {
        pair.hear_of(support::record(id));
    }
    let fold = FoldId { root: 4, number: 7 };
    pair.hear(Message::Give { gift: gift_of(2, fold) });
    let message = Message::Give { gift: gift_of(3, fold) };
    pair.give(Input::Message { from: THIRD, message });
    assert_eq!(pair.0.member.names().to_string(), "1-3");
    reduce(&mut pair, fold);
    assert_eq!(given(&pair), ["1"]);
}

/// The giver has given its own value, and was given names of a member that had given its own.
#[test]
fn an_heir_of_an_heir_gives_no_value_for_either() {
    let mut pair = Pair::new();
    pair.hear_of(support::record(MemberId(4)));
    pair.hear_of(record("2-3", 1, Life::Alive));
    let fold = FoldId { root: 4, number: 7 };
    let names = (&RankSet::range(2, 3)).into();
    let folds = [3, 2].map(|name| (fold, Ranges::from(&RankSet::range(name, name)))).into();
    pair.hear(Message::Give { gift: Gift { names, epoch: 1, folds, ..Gift::default() } });
    reduce(&mut pair, fold);
    assert_eq!(given(&pair), ["1"]);
}

/// The member has passed one contributor's value on to the root, which then made it the root.
#[test]
fn a_value_that_was_passed_on_is_not_taken_for_one_that_is_here() {
    let mut pair = Pair::new();
    pair.hear_of(support::record(MemberId(3)));
    let fold = FoldId { root: 2, number: 7 };
    let head = part_head(fold, Operation::Sum, 8);
    let part = |value: i64| Message::Part {
        head: head.clone(),
        names: (&RankSet::range(3, 3)).into(),
        data: value.to_le_bytes().to_vec().into(),
    };
    let from = MemberId(3);
    pair.give(Input::Message { from, message: part(30) });
    // The own call is late: what is here goes on.
    pair.0.now += SECOND;
    pair.give(Input::Wake);
    assert!(pair.sent().any(|message| matches!(message, Message::Part { .. })));
    let names: Ranges = (&RankSet::range(2, 2)).into();
    pair.hear(Message::Give { gift: Gift { names, ..Gift::default() } });
    reduce(&mut pair, fold);
    let Message::Part { head, names, data } = part(30) else { panic!() };
    let head = PartHead { direct: true, ..head };
    pair.give(Input::Message { from, message: Message::Part { head, names, data } });
    pair.0.now += 2 * SECOND;
    pair.give(Input::Wake);
    let answer = pair.0.answer(1).expect("the deadline has passed");
    let value = answer.value.as_ref().map(|value| value.as_slice().to_vec());
    assert_eq!(value, Some(35_i64.to_le_bytes().to_vec()), "{answer:?}");
    assert!(answer.contributors.contains(3));
}

/// To which members the virtual node was offered, in turn.
fn offered(pair: &Pair) -> Vec<MemberId> {
    let offer = |(to, message): &(MemberId, Message)| {
        matches!(message, Message::Offer { .. }).then_some(*to)
    };
    let mut heirs: Vec<MemberId> = pair.0.sent.iter().filter_map(offer).collect();
    heirs.dedup();
    heirs
}

/// All others live.
fn answer_pings(pair: &mut Pair) {
    let ping = |(to, message): &(MemberId, Message)| match message {
        Message::Ping { number, .. } => Some((*to, *number)),
        _ => None,
    };
    let pings: Vec<(MemberId, u64)> = pair.0.sent.iter().filter_map(ping).collect();
    for (member, number) in pings {
        pair.0.hear(member, Message::Pong { number, digest: 0, table: 0 });
    }
}

/// After how many seconds an heir that says nothing, or that it takes nothing yet, is given up.
fn seconds_until_the_next_is_asked(says_later: bool) -> u64 {
    let config = Config { ping_timeout: SECOND, ..config(MemberId(1)) };
    let mut pair = Pair(Lonely::among(config, &[OTHER, THIRD]));
    pair.give(Input::LeaveTo { heir: Some(2) });
    let begun = pair.0.now;
    while offered(&pair) == [OTHER] {
        assert!(pair.0.now < 30 * SECOND, "{:?}", pair.0.sent);
        if says_later {
            pair.hear(Message::Later { names: names() });
        }
        pair.0.now = pair.0.wake.max(pair.0.now);
        pair.give(Input::Wake);
        answer_pings(&mut pair);
    }
    assert_eq!(offered(&pair), [OTHER, THIRD]);
    (pair.0.now - begun) / SECOND
}

/// It gives virtual nodes away, until the receiver has them or is found to be dead.
#[test]
fn an_heir_that_can_take_no_names_yet_is_asked_for_as_long_as_a_death_takes() {
    assert_eq!([false, true].map(seconds_until_the_next_is_asked), [2, 4]);
}

#[test]
fn names_that_an_heir_does_not_take_are_offered_to_the_next_member() {
    let mut pair = Pair::new();
    pair.hear_of(support::record(THIRD));
    pair.give(Input::LeaveTo { heir: Some(3) });
    pair.0.hear(THIRD, Message::Decline { names: names() });
    assert_eq!(offered(&pair), [THIRD, OTHER]);
    pair.hear(Message::Decline { names: names() });
    assert_eq!(pair.0.member.view().record(MemberId(1)).unwrap().life, Life::Left);
}

/// The heir was told to leave after it had said that it takes them.
#[test]
fn names_that_a_leaving_heir_returns_go_to_the_next_member() {
    let mut pair = draining();
    pair.hear_of(support::record(THIRD));
    last_segment(&mut pair);
    assert!(pair.gift().is_some());
    pair.hear(Message::Return { names: names() });
    assert_eq!((pair.delivered(), offered(&pair)), (vec![1, 1, 2], vec![OTHER, THIRD]));
    assert_eq!(pair.0.member.view().owner(1), Some(MemberId(1)));
}

#[test]
fn names_go_to_the_next_member_where_the_heir_has_left_without_them() {
    for (epoch, heirs) in [(0, vec![OTHER, THIRD]), (1, vec![OTHER])] {
        let mut pair = draining();
        pair.hear_of(support::record(THIRD));
        last_segment(&mut pair);
        pair.hear_of(Record { incarnation: 2, ..record("", epoch, Life::Left) });
        // With the epoch of one that had taken them it may have delivered.
        assert_eq!(offered(&pair), heirs, "epoch {epoch}");
    }
}

#[test]
fn a_member_that_leaves_returns_what_it_is_given() {
    let mut pair = Pair::new();
    pair.hear_of(support::record(THIRD));
    let two: Ranges = (&RankSet::range(2, 2)).into();
    pair.hear(Message::Offer { names: two.clone() });
    assert!(pair.has_sent(&Message::Take { names: two.clone() }));
    pair.give(Input::LeaveTo { heir: Some(3) });
    pair.hear(Message::Give { gift: Gift { names: two.clone(), ..Gift::default() } });
    assert!(pair.has_sent(&Message::Return { names: two }));
    assert_eq!(pair.0.member.names().to_string(), "1");
}

#[test]
fn an_heir_takes_what_no_third_member_carries_and_tells_of_that() {
    let mut pair = Pair::new();
    pair.hear_of(record("2,5", 1, Life::Alive));
    let rival = Record { epoch: 2, ..Record::new(THIRD, &RankSet::range(5, 5)) };
    pair.hear_of(rival.clone());
    let all: RankSet = "2,5".parse().unwrap();
    pair.0.sent.clear();
    let gift = Gift { names: (&all).into(), epoch: 1, ..Gift::default() };
    pair.hear(Message::Give { gift });
    assert_eq!(pair.0.member.names().to_string(), "1-2");
    let tells = |message: &Message| match message {
        Message::Update { records, .. } => records.contains(&rival),
        _ => false,
    };
    assert!(pair.sent().any(tells));
}

/// The receiver lives, and never says that it carries them.
#[test]
fn a_hand_over_that_is_not_confirmed_ends() {
    let mut pair = draining();
    last_segment(&mut pair);
    for _ in 0..12 {
        pair.0.now += SECOND;
        pair.give(Input::Wake);
        answer_pings(&mut pair);
    }
    assert!(pair.0.member.view().is_alive(OTHER));
    let own = pair.0.member.view().record(MemberId(1)).unwrap();
    assert_eq!((own.life, own.names.as_set().is_empty()), (Life::Left, true));
    assert_eq!(pair.0.member.view().owner(1), None);
}
