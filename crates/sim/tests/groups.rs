//! Groups keep their promises under every schedule, and broken rules are caught.

use sapwood_group::{
    Answer, Call, Config, Definition, Element, Input, MILLISECOND, Member, Mutation, OperationId,
    Payload, SECOND, Time, TreeKind,
};
use sapwood_layout::Layout;
use sapwood_packet::RankSet;
use sapwood_sim::group::{
    CIRCLE, LINES, Network, Trial, Verdict, run_schedule, run_schedule_of_defining,
    run_schedule_of_taking,
};

/// How many schedules are run.
const SEEDS: u64 = 3000;
/// How many are tried for a broken rule.
const TRIED: u64 = 1500;

#[test]
fn no_schedule_breaks_a_rule() {
    let mut fullest = 0;
    for seed in 0..SEEDS {
        let verdict = run_schedule(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {:#?}", verdict);
        fullest = fullest.max(verdict.fullest_link);
    }
    // The bound, and less than a segment beyond it.
    assert!((300..300 + 128).contains(&fullest), "{fullest} bytes on a link");
}

#[test]
fn no_schedule_of_a_member_that_takes_names_when_it_joins_breaks_a_rule() {
    for seed in 0..SEEDS {
        let verdict = run_schedule_of_taking(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {verdict:#?}");
    }
}

#[test]
fn no_schedule_with_operations_that_hosts_define_breaks_a_rule() {
    for seed in 0..SEEDS {
        let verdict = run_schedule_of_defining(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {verdict:#?}");
    }
}

/// The first definition of a name stays: a host's own comes too late.
fn define_first(member: &mut Member, name: &str, fold: fn(&[i64], &[i64]) -> Vec<i64>) {
    let function = move |into: &mut [u8], next: &[u8]| {
        let folded = fold(&numbers(into), &numbers(next));
        into.copy_from_slice(&folded.into_iter().flat_map(i64::to_le_bytes).collect::<Vec<u8>>());
        Ok(())
    };
    let definition = Definition::new(Element::I64, function);
    member.handle_input(0, Input::Define { operation: OperationId::of_name(name), definition });
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|number| i64::from_le_bytes(*number)).collect()
}

fn add_elements(member: &mut Member) {
    define_first(member, CIRCLE, |into, next| {
        into.iter().zip(next).map(|(one, other)| one.wrapping_add(*other)).collect()
    });
}

/// What comes later first.
fn turn_lines_round(member: &mut Member) {
    define_first(member, LINES, |into, next| {
        let slope = next.first().map_or(1, |first| first.wrapping_add(1));
        let after = |(one, other): (&i64, &i64)| other.wrapping_add(slope.wrapping_mul(*one));
        into.iter().zip(next).map(after).collect()
    });
}

#[test]
fn values_of_a_defined_operation_that_are_wrong_are_caught() {
    for prepare in [add_elements as fn(&mut Member), turn_lines_round] {
        let mut breaches =
            (0..20).flat_map(|seed| run_schedule_of_defining(seed, prepare).breaches);
        assert!(breaches.any(|breach| breach.rule == "each counts once"));
    }
}

/// A member died half-way through the segments of its part, and another never gave its own: the
/// others' values were given up with theirs.
#[test]
fn a_part_that_ends_half_way_costs_no_other_contributor() {
    let verdict = run_schedule(17862, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// A host that ran once in 103 ms was 3 ms late by its own timers, and had the answers unread.
#[test]
fn a_member_reads_what_has_come_before_it_judges() {
    let verdict = run_schedule(3941, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// The root of a broadcast that is over was sent it again, for names that had come to it: it took
/// its own transfer for a new one, which the giver had delivered.
#[test]
fn an_own_transfer_that_comes_back_late_is_over() {
    let verdict = run_schedule(7491, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// A member died that stood above others in the tree of the news: they took the names of one that
/// had left for dead, a second after another had them.
#[test]
fn news_that_a_dead_member_was_to_pass_on_is_told_again() {
    let verdict = run_schedule(5593, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// The root of a broadcast got names, for which a member far below sent it all that it was to pass
/// on: each waited for the other.
#[test]
fn an_heir_waits_for_no_member_that_waits_for_it() {
    let verdict = run_schedule(10208, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// An heir left to another one, and both it and the member before had given their values.
#[test]
fn an_heir_of_an_heir_knows_whose_values_were_given() {
    for seed in [912, 1907] {
        let verdict = run_schedule(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "{verdict:#?}");
    }
}

/// Two members left to one another, the second one by the name that it had got.
#[test]
fn members_that_leave_to_one_another_lose_no_names() {
    for seed in [173, 2392, 2613] {
        let verdict = run_schedule(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "{verdict:#?}");
    }
}

/// A connection broke while the process at one end was stopped. What it sent until it was told of
/// that waited in the model for the next connection, in addition to what it sent on that one.
#[test]
fn what_is_sent_by_a_connection_that_has_broken_is_lost_with_it() {
    for seed in [3490, 6427, 7406, 9268] {
        let verdict = run_schedule(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {verdict:#?}");
    }
}

/// The giver's value stood for a name whose new member had died: the root left the value out, too.
#[test]
fn a_giver_that_stays_counts_when_its_taker_has_died() {
    for seed in [9331, 11089] {
        let verdict = run_schedule_of_taking(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {verdict:#?}");
    }
}

/// A member that took names during a reduction, which it never called, was asked for their value.
#[test]
fn a_taker_that_never_calls_says_whose_value_was_given() {
    for seed in [140, 2770, 7918, 10108] {
        let verdict = run_schedule_of_taking(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {verdict:#?}");
    }
}

/// A stopped process got a transfer to pass on when it ran again, just before one below it heard
/// that it was dead: that one forgot to acknowledge, and the transfer waited until its deadline.
#[test]
fn a_member_that_is_not_dead_after_all_gets_what_others_owe_it() {
    let verdict = run_schedule_of_taking(5614, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// The value of a member that had left was folded into some segments of those of others, and never
/// came for the rest, while another member did not call: at the deadline the others were lost too.
#[test]
fn the_value_of_a_member_that_has_left_half_way_costs_no_other_contributor() {
    for seed in [7343, 9510, 12775, 19338] {
        let verdict = run_schedule_of_taking(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {verdict:#?}");
    }
}

/// The same of two members that claimed one name: the one that gave its value had to go, and the
/// one that kept the name never called.
#[test]
fn a_half_given_value_for_a_name_of_two_members_costs_no_other_contributor() {
    let all = [run_schedule_of_taking(19303, |_| {}), run_schedule_of_defining(6232, |_| {})];
    for verdict in all {
        assert!(verdict.breaches.is_empty(), "{verdict:#?}");
    }
}

/// A root got as many segments as a link has room for with each question, and waited longer before
/// each, as if nothing had come: the deadline was sooner.
#[test]
fn a_root_that_gets_a_part_of_a_value_asks_for_the_rest_at_once() {
    for seed in [20273, 20578] {
        let verdict = run_schedule_of_taking(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {verdict:#?}");
    }
}

/// Two members joined under one name, and each got one of the two stripes of a transfer: its root
/// said that the name had it.
#[test]
fn a_name_that_two_members_claim_has_no_transfer_of_which_each_has_a_stripe() {
    for seed in [11494, 14672, 14674] {
        let verdict = run_schedule_of_taking(seed, |_| {});
        assert!(verdict.breaches.is_empty(), "seed {seed}: {verdict:#?}");
    }
}

/// A short transfer was cut in stripes, of which one had no segment, and came to a member that got
/// a name long after it had the transfer for its own: one stripe before the other.
#[test]
fn a_stripe_that_comes_late_for_a_name_that_has_moved_is_not_given_up() {
    let verdict = run_schedule_of_taking(7067, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// A member had said that it has no value for a name, and the next one that carried the name gave
/// one with its own.
#[test]
fn a_name_without_a_value_may_get_one_from_its_next_member() {
    let verdict = run_schedule_of_taking(13116, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// A member that counted as dead while one stripe was under way got the other alone, and had those
/// above it wait.
#[test]
fn a_member_with_one_stripe_keeps_no_other_from_acknowledging() {
    let verdict = run_schedule_of_taking(22709, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

/// Two members claimed the virtual node of a root, one of them after a cut, and each ended the
/// reduction before it heard of the other.
#[test]
fn two_members_that_claim_the_root_have_one_result_each() {
    let all = [run_schedule(11588, |_| {}), run_schedule_of_defining(8990, |_| {})];
    for verdict in all {
        assert!(verdict.breaches.is_empty(), "{verdict:#?}");
    }
}

/// Two connections to a stopped process broke one after the other. In the model it had been told of
/// both with the first, and what it sent before the second waited for a third one.
#[test]
fn what_is_sent_before_the_last_broken_connection_is_told_of_is_lost() {
    let verdict = run_schedule_of_taking(19140, |_| {});
    assert!(verdict.breaches.is_empty(), "{verdict:#?}");
}

#[test]
fn a_schedule_repeats_with_its_seed() {
    let runs = [5, 5].map(|seed| format!("{:?}", run_schedule(seed, |_| {})));
    assert_eq!(runs[0], runs[1]);
}

/// The members below the root may hear later than the root of one that is a member again. Host 5 is
/// the last in their order, so that it is reached through others.
#[test]
fn a_member_of_which_the_root_has_heard_first_gets_its_broadcast() {
    for again in [hang_and_go_on, end_and_start_anew] {
        for (tree, bytes) in [(TreeKind::List, 100), (TreeKind::Adaptive, 100_000)] {
            for seed in 1..=8 {
                let answer = broadcast_of_the_first_to_know(again, seed, tree, bytes);
                let missing = answer.missing;
                assert_eq!(missing, [], "{tree}, seed {seed}: of {}", answer.contributors);
            }
        }
    }
}

fn hang_and_go_on(trial: &mut Trial) {
    trial.world.hang(5);
    pass(trial, 5 * SECOND);
    trial.world.resume(5);
}

fn end_and_start_anew(trial: &mut Trial) {
    trial.world.crash(5);
    pass(trial, 5 * SECOND);
    let config = Config { names: RankSet::range(5, 5), ..Config::default() };
    trial.world.start(5, Some(0), config, |_| {});
}

fn pass(trial: &mut Trial, span: Time) {
    let end = trial.world.now() + span;
    trial.world.run_until(end);
}

/// The answer to a broadcast that begins as soon as host 5 is a member again and a host knows it,
/// from there.
fn broadcast_of_the_first_to_know(
    again: fn(&mut Trial),
    seed: u64,
    tree: TreeKind,
    bytes: usize,
) -> Answer {
    let network = Network::draw(&Layout { hosts: 6, clusters: 1, ..Layout::default() }, seed);
    let mut trial = Trial::start(network, seed, &Config::default()).expect("steady");
    again(&mut trial);
    let id = trial.world.id_of(5);
    let knows = |trial: &Trial, host: usize| {
        trial.world.member(host).is_some_and(|member| member.view().is_alive(id))
    };
    let limit = trial.world.now() + 20 * SECOND;
    let root = loop {
        assert!(trial.world.now() < limit, "host 5 is a member again");
        pass(&mut trial, MILLISECOND / 20);
        let first = (0..5).find(|host| knows(&trial, *host));
        if let Some(first) = first.filter(|_| knows(&trial, 5)) {
            break first;
        }
    };
    trial.world.seen.clear();
    let value = Payload::from(vec![7; bytes]);
    let call = Call::Broadcast { targets: None, value, tag: 0 };
    let deadline = trial.world.now() + 10 * SECOND;
    trial.world.call(root, 1, tree, deadline, call);
    trial.wait(root, 1).expect("an answer")
}

fn assert_caught(
    run: fn(u64, fn(&mut Member)) -> Verdict,
    mutation: Mutation,
    prepare: fn(&mut Member),
) {
    let caught = (0..TRIED).find_map(|seed| {
        let breach = run(seed, prepare).breaches.into_iter().next()?;
        let is_clean = run(seed, |_| {}).breaches.is_empty();
        is_clean.then_some((seed, breach))
    });
    let Some((seed, breach)) = caught else { panic!("{mutation:?} is not caught") };
    println!("{mutation:?}: seed {seed}, rule '{}': {}", breach.rule, breach.text);
}

/// A test for each rule, with the name of what it shows.
macro_rules! caught {
    ($run:ident: $($name:ident: $rule:ident,)*) => {$(
        #[test]
        fn $name() {
            assert_caught($run, Mutation::$rule, |member| member.mutate(Mutation::$rule));
        }
    )*};
}

caught! { run_schedule:
    a_second_delivery_is_caught: RepeatDelivery,
    a_subtree_that_is_not_adopted_is_caught: ForgetAdoption,
    an_acknowledgement_that_comes_early_is_caught: AcknowledgeEarly,
    a_remainder_that_is_not_sent_is_caught: DropRemainder,
    an_overlap_that_is_folded_is_caught: FoldOverlap,
    segments_of_different_contributors_are_caught: SkipAgreement,
    values_that_are_not_asked_for_are_caught: SkipPull,
    a_record_that_is_kept_for_ever_is_caught: KeepFinished,
    a_member_that_dies_of_one_failed_connection_is_caught: BuryRefused,
    a_member_that_blames_others_for_its_own_lateness_is_caught: JudgeWhenLate,
    a_member_that_keeps_what_another_claims_is_caught: KeepNames,
    a_member_that_fills_its_links_without_a_bound_is_caught: IgnoreCredit,
    names_without_what_was_delivered_to_them_are_caught: GiveWithoutList,
    a_giver_that_delivers_what_comes_after_the_list_is_caught: DeliverWhileGiving,
    a_hand_over_that_claims_no_more_than_the_giver_is_caught: KeepEpoch,
}

caught! { run_schedule_of_taking:
    a_giver_that_stays_and_claims_what_it_has_given_is_caught: KeepGiven,
    a_taker_that_is_not_told_what_was_delivered_is_caught: GiveWithoutList,
    a_giver_that_stays_and_delivers_what_it_gives_is_caught: DeliverWhileGiving,
}
