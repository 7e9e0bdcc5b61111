//! Members that are gone are remembered for a while, and then forgotten everywhere.

use std::collections::BTreeMap;

use proptest::collection::btree_map;
use proptest::prelude::*;
use sapwood_group::message::{Life, Record};
use sapwood_group::{Config, Input, MILLISECOND, MemberId, Message, Payload, SECOND};
use sapwood_packet::RankSet;

use crate::support::{Lonely, config};

const HOUR: u64 = 3600 * SECOND;

/// A member to which others are names only.
struct Rememberer(Lonely);

impl Rememberer {
    fn new(id: u64) -> Self {
        let names = RankSet::range(90 + id as u32, 90 + id as u32);
        Self(Lonely::new(Config { names, ..config(MemberId(id)) }))
    }

    fn hear(&mut self, records: Vec<Record>) {
        self.0.learn(MemberId(7), records);
    }

    fn pass(&mut self, span: u64) {
        let end = self.0.now + span;
        while self.0.now < end {
            self.0.now += 100 * MILLISECOND;
            self.0.give(Input::Wake);
        }
    }

    fn gone(&self) -> usize {
        self.0.member.view().records().filter(|record| record.life != Life::Alive).count()
    }

    /// What it tells a member whose view is another.
    fn tells(&mut self) -> Vec<Record> {
        self.0.now += SECOND;
        self.0.sent.clear();
        let from = MemberId(8);
        let message = Message::Ping { number: 1, digest: 0, table: 0, padding: Payload::default() };
        self.0.give(Input::Message { from, message });
        let told = self.0.sent.drain(..).find_map(|(_, message)| match message {
            Message::Update { records, .. } => Some(records),
            _ => None,
        });
        told.expect("views are compared")
    }
}

fn record(id: u64, name: u32, incarnation: u32, life: Life) -> Record {
    let names = RankSet::range(name, name);
    Record { address: id.to_string(), incarnation, life, ..Record::new(MemberId(id), &names) }
}

/// A newest life and incarnation for each of some members, and all that was said before.
fn news() -> impl Strategy<Value = Vec<Record>> {
    let said = btree_map(10_u64..20, (0_u32..3, 0_usize..3, 0_u32..3_000_000), 1..10);
    let lives = [Life::Alive, Life::Dead, Life::Left];
    said.prop_map(move |said: BTreeMap<u64, (u32, usize, u32)>| {
        let mut news = Vec::new();
        for (id, (newest, last, gone_ms)) in said {
            for incarnation in 0..=newest {
                let end = if incarnation == newest { last } else { 1 };
                for &life in &lives[..=end] {
                    let gone_ms = if life == Life::Alive { 0 } else { gone_ms };
                    news.push(Record { gone_ms, ..record(id, id as u32, incarnation, life) });
                }
            }
        }
        news
    })
}

proptest! {
    /// Old news that comes again while the ends of members are remembered changes nothing either.
    #[test]
    fn news_in_any_order_gives_one_view(
        (news, other) in news().prop_flat_map(|news| (Just(news.clone()), Just(news).prop_shuffle())),
        again in any::<prop::sample::Index>(),
    ) {
        let mut members = [Rememberer::new(5), Rememberer::new(5)];
        for (member, news) in members.iter_mut().zip([&news, &other]) {
            for one in news {
                member.hear(vec![one.clone()]);
            }
        }
        let [one, mut another] = members;
        another.hear(vec![news[again.index(news.len())].clone()]);
        let (one, another) = (one.0.member.view(), another.0.member.view());
        prop_assert_eq!(one.digest(), another.digest());
        prop_assert_eq!(one.everyone(), another.everyone());
        prop_assert!(one.alive().eq(another.alive()));
    }
}

#[test]
fn a_program_that_starts_anew_for_ever_leaves_a_bounded_list_and_none_after_an_hour() {
    let mut member = Rememberer::new(5);
    for id in 100..10_100 {
        member.hear(vec![record(id, 1, 0, Life::Alive), record(id, 1, 0, Life::Dead)]);
        member.0.now += SECOND / 100;
    }
    assert_eq!(member.gone(), 4096);
    assert!(member.tells().len() <= 4097);
    member.pass(HOUR + 200 * SECOND);
    assert_eq!(member.gone(), 0);
    assert_eq!(member.tells().len(), 1);
}

#[test]
fn who_learns_late_of_a_death_forgets_it_with_the_others() {
    let (mut first, mut second) = (Rememberer::new(5), Rememberer::new(6));
    first.hear(vec![record(100, 1, 0, Life::Alive), record(100, 1, 0, Life::Dead)]);
    first.pass(HOUR - 100 * SECOND);
    second.hear(first.tells());
    let knows = |one: &Rememberer| one.0.member.view().record(MemberId(100)).is_some();
    assert!(knows(&first) && knows(&second));
    second.pass(200 * SECOND);
    assert!(!knows(&second));
    // And it does not come from one that still has it.
    second.hear(vec![Record { gone_ms: 3_600_000, ..record(100, 1, 0, Life::Dead) }]);
    assert!(!knows(&second));
}

/// While it was taken for dead it was told no news.
#[test]
fn a_member_that_was_taken_for_dead_has_views_compared_by_who_says_so() {
    let mut member = Rememberer::new(1);
    member.hear(vec![record(7, 7, 0, Life::Alive)]);
    member.0.sent.clear();
    member.hear(vec![record(1, 91, 0, Life::Dead)]);
    let is_ping = |sent: &(MemberId, Message)| matches!(sent, (MemberId(7), Message::Ping { .. }));
    assert!(member.0.sent.iter().any(is_ping), "{:?}", member.0.sent);
}

#[test]
fn the_dead_are_asked_ever_more_seldom() {
    let mut member = Rememberer::new(5);
    member.hear(vec![record(100, 1, 0, Life::Alive), record(100, 1, 0, Life::Dead)]);
    let asked = |member: &mut Rememberer, span: u64| {
        member.0.sent.clear();
        member.pass(span);
        let is_ask =
            |sent: &&(MemberId, Message)| matches!(sent, (MemberId(100), Message::Ping { .. }));
        member.0.sent.iter().filter(is_ask).count()
    };
    let soon = asked(&mut member, 60 * SECOND);
    assert!((3..=12).contains(&soon), "{soon} in the first minute");
    let later = asked(&mut member, HOUR - 70 * SECOND);
    assert!((5..=15).contains(&later), "{later} in the rest of the hour");
}
