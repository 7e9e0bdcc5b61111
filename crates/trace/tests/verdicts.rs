//! Which ranks are named when ranks wait for one another, for the faults that programs are known to
//! have.

use sapwood_trace::{
    CallKind, Difference, Doing, FILES, Finding, Operation, Pattern, Posture, Presence, Seat, Side,
    Source, Standing, Standpoint, Verdict,
};

const WORLD: u64 = 100;
const SECOND: u64 = 1_000_000_000;
// Any numbers: what a function is, the call says.
const BARRIER: u32 = 1;
const ALLREDUCE: u32 = 2;
const GATHER: u32 = 3;
const BCAST: u32 = 4;
const RECV: u32 = 5;
const SEND: u32 = 6;
const WAIT: u32 = 7;
const IALLREDUCE: u32 = 8;
const FINALIZE: u32 = 9;
const CLOSE: u32 = 10;
const WRITE: u32 = 11;
const TEST: u32 = 12;
const LOCK: u32 = 13;
const SENDRECV: u32 = 14;

/// A job whose ranks have made as many collectives on the communicator of all.
fn job(made: &[u32]) -> Standing {
    let mut job = Standing { world_size: made.len() as u32, ..Standing::default() };
    for (rank, &made) in (0..).zip(made) {
        job.postures.insert(rank, Posture { for_ns: 3 * SECOND, ..Posture::default() });
        let size = job.world_size;
        job.seats.insert((WORLD, rank), Seat { rank, size, made, ..Seat::default() });
    }
    job
}

/// Adds a communicator of some ranks, each with the number that it has made there.
fn add(job: &mut Standing, space: u64, members: &[(u32, u32)]) {
    let size = members.len() as u32;
    for (rank, &(world, made)) in (0..).zip(members) {
        job.seats.insert((space, world), Seat { rank, size, made, ..Seat::default() });
    }
}

fn enter(job: &mut Standing, ranks: &[u32], call: Standpoint) {
    for rank in ranks {
        job.postures.get_mut(rank).expect("a rank of the job").call = Some(call);
    }
}

fn collective(function: u32, space: u64) -> Standpoint {
    Standpoint { function, kind: CallKind::Collective, space, ..Standpoint::default() }
}

fn rooted(function: u32, space: u64, root: u32, pattern: Pattern) -> Standpoint {
    Standpoint { side: Side::Rank(root), pattern, ..collective(function, space) }
}

fn message(function: u32, kind: CallKind, peer: u32) -> Standpoint {
    let side = Side::Rank(peer);
    Standpoint { function, kind, space: WORLD, side, tag: Some(8), ..Standpoint::default() }
}

fn exchange(source: u32, destination: u32) -> Standpoint {
    let destination = Side::Rank(destination);
    Standpoint { destination, ..message(SENDRECV, CallKind::Exchange, source) }
}

fn set_presence(job: &mut Standing, rank: u32, presence: Presence) {
    job.postures.get_mut(&rank).expect("a rank of the job").presence = presence;
}

fn verdict(job: &Standing) -> Verdict {
    Verdict::of(job, SECOND).expect("ranks wait")
}

/// Finding and ranks that are named.
fn named(job: &Standing) -> (Finding, String) {
    let verdict = verdict(job);
    (verdict.finding, verdict.culprits().to_string())
}

/// The rank for which a rank waits.
fn waits_for(verdict: &Verdict, rank: u32) -> String {
    let group = verdict.waiting.iter().find(|one| one.ranks.contains(rank)).expect("it waits");
    group.targets.to_string()
}

#[test]
fn one_rank_in_another_operation_is_the_odd_one() {
    let mut job = job(&[40; 4]);
    enter(&mut job, &[0, 1, 3], collective(ALLREDUCE, WORLD));
    enter(&mut job, &[2], collective(BARRIER, WORLD));
    let verdict = verdict(&job);
    assert_eq!(named(&job), (Finding::Deviation, "2".into()));
    let operation = |function| Operation { function, root: None };
    let expected = Difference::Operation(operation(BARRIER), operation(ALLREDUCE));
    assert_eq!(verdict.odd[0].difference, expected);
    assert_eq!((waits_for(&verdict, 0), waits_for(&verdict, 2)), ("2".into(), "0-1,3".into()));
}

#[test]
fn of_two_halves_none_is_the_odd_one() {
    let mut job = job(&[40; 4]);
    enter(&mut job, &[0, 1], collective(ALLREDUCE, WORLD));
    enter(&mut job, &[2, 3], collective(BARRIER, WORLD));
    assert_eq!(named(&job), (Finding::Split, "0-3".into()));
}

#[test]
fn one_rank_with_another_root_is_the_odd_one_though_another_has_gone_on() {
    let mut job = job(&[80, 81, 80, 80]);
    enter(&mut job, &[0, 2], rooted(GATHER, WORLD, 0, Pattern::ToRoot));
    enter(&mut job, &[3], rooted(GATHER, WORLD, 3, Pattern::ToRoot));
    enter(&mut job, &[1], collective(BARRIER, WORLD));
    let passed = job.seats.get_mut(&(WORLD, 1)).expect("a member");
    (passed.last_function, passed.last_root) = (GATHER, Some(0));
    assert_eq!(named(&job), (Finding::Deviation, "3".into()));
    let verdict = verdict(&job);
    assert_eq!(waits_for(&verdict, 3), "0-2");
    assert_eq!(waits_for(&verdict, 1), "0,2-3");
}

#[test]
fn the_rank_that_gave_another_root_is_named_though_it_has_gone_on_and_its_victim_has_not() {
    let mut job = job(&[22, 23, 23, 23]);
    enter(&mut job, &[0], rooted(BCAST, WORLD, 0, Pattern::FromRoot));
    enter(&mut job, &[1, 2, 3], collective(BARRIER, WORLD));
    for (rank, root) in [(1, 1), (2, 0), (3, 0)] {
        let passed = job.seats.get_mut(&(WORLD, rank)).expect("a member");
        (passed.last_function, passed.last_root) = (BCAST, Some(root));
    }
    assert_eq!(named(&job), (Finding::Deviation, "1".into()));
    let operation = |root| Operation { function: BCAST, root: Some(root) };
    let expected = Difference::Operation(operation(1), operation(0));
    assert_eq!(verdict(&job).odd[0].difference, expected);
}

#[test]
fn the_member_that_left_a_part_early_is_named_and_not_those_that_wait_there() {
    let mut job = job(&[0; 5]);
    add(&mut job, 200, &[(2, 39), (3, 39), (4, 39)]);
    enter(&mut job, &[0, 1, 3], collective(BARRIER, WORLD));
    enter(&mut job, &[2, 4], collective(ALLREDUCE, 200));
    assert_eq!(named(&job), (Finding::Deviation, "3".into()));
    let verdict = verdict(&job);
    assert_eq!(verdict.odd[0].difference, Difference::Missed(39));
    assert_eq!((verdict.odd[0].place.space, verdict.odd[0].place.number), (200, 40));
    assert_eq!((waits_for(&verdict, 0), waits_for(&verdict, 4)), ("2,4".into(), "3".into()));
    assert_eq!(verdict.odd[0].held.to_string(), "0-2,4");
}

#[test]
fn three_that_wait_around_a_ring_are_told_as_one() {
    let mut job = job(&[30; 3]);
    for (rank, space) in (0..).zip([201, 202, 203]) {
        let next = (rank + 1) % 3;
        add(&mut job, space, &[(rank, 0), (next, 0)]);
        enter(&mut job, &[rank], collective(ALLREDUCE, space));
    }
    assert_eq!(named(&job), (Finding::Ring, "0-2".into()));
    assert_eq!(verdict(&job).ring, [0, 1, 2]);
}

/// Ranks in a ring of exchanges of large messages, first with the next rank and then with the one
/// before; rank 4 stays away, and those that are done are in a reduction.
fn exchange_job() -> Standing {
    let mut job = job(&[111; 8]);
    for rank in 0..8 {
        let seat = job.seats.get_mut(&(WORLD, rank)).expect("a member");
        (seat.last_function, seat.last_root) = (BCAST, Some(0));
    }
    enter(&mut job, &[0, 1, 7], collective(ALLREDUCE, WORLD));
    for (rank, source, destination) in [(2, 1, 3), (3, 4, 2), (5, 6, 4), (6, 5, 7)] {
        enter(&mut job, &[rank], exchange(source, destination));
    }
    job
}

#[test]
fn ranks_that_exchange_messages_are_no_ring_where_one_that_is_stopped_may_hold_them() {
    let mut job = exchange_job();
    set_presence(&mut job, 4, Presence::Stopped);
    // Rank 5 has received from rank 6, and rank 4 does not take what it sends.
    assert_eq!(named(&job), (Finding::Absent, "4".into()));
}

#[test]
fn ranks_that_exchange_messages_are_no_ring_where_one_has_called_another_collective() {
    let mut job = exchange_job();
    enter(&mut job, &[4], collective(BARRIER, WORLD));
    let seat = job.seats.get_mut(&(WORLD, 4)).expect("a member");
    (seat.made, seat.last_function, seat.last_root) = (110, ALLREDUCE, None);
    assert_eq!(named(&job), (Finding::Deviation, "4".into()));
}

#[test]
fn exchanges_that_wait_only_for_one_another_are_a_ring() {
    let mut job = job(&[0; 4]);
    for rank in 0..4 {
        enter(&mut job, &[rank], exchange((rank + 1) % 4, (rank + 3) % 4));
    }
    assert_eq!(named(&job), (Finding::Ring, "0-3".into()));
}

#[test]
fn a_ring_of_exchanges_beside_ranks_that_have_nothing_to_do_with_it_is_a_ring() {
    let mut job = job(&[0; 8]);
    add(&mut job, 200, &[(4, 7), (5, 7), (6, 7), (7, 7)]);
    for rank in 0..4 {
        enter(&mut job, &[rank], exchange((rank + 1) % 4, (rank + 3) % 4));
    }
    enter(&mut job, &[4, 5, 6, 7], collective(ALLREDUCE, 200));
    assert_eq!(named(&job), (Finding::Ring, "0-3".into()));
    enter(&mut job, &[5], Standpoint::default());
    job.postures.get_mut(&5).expect("a rank of the job").call = None;
    set_presence(&mut job, 5, Presence::Computing);
    assert_eq!(named(&job).1, "0-3,5", "both");
}

#[test]
fn an_exchange_waits_for_its_destination_where_that_is_all_that_does_not_wait() {
    // A shift along a line: the first receives from none; the last computes and sends to none.
    let mut job = job(&[0; 4]);
    let first = Standpoint { side: Side::None, ..exchange(0, 1) };
    enter(&mut job, &[0], first);
    enter(&mut job, &[1], exchange(0, 2));
    enter(&mut job, &[2], exchange(1, 3));
    set_presence(&mut job, 3, Presence::Computing);
    assert_eq!(named(&job), (Finding::Absent, "3".into()));
    assert_eq!(verdict(&job).odd[0].held.to_string(), "0-2");
}

#[test]
fn a_thousand_ranks_that_exchange_messages_are_a_ring() {
    let ranks = 1_000;
    let mut job = job(&vec![0; ranks as usize]);
    for rank in 0..ranks {
        enter(&mut job, &[rank], exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks));
    }
    assert_eq!(named(&job), (Finding::Ring, "0-999".into()));
}

#[test]
fn sends_around_a_ring_are_a_ring() {
    let mut job = job(&[0; 4]);
    (0..4).for_each(|rank| enter(&mut job, &[rank], message(SEND, CallKind::Send, (rank + 1) % 4)));
    assert_eq!(named(&job), (Finding::Ring, "0-3".into()));
    assert_eq!(verdict(&job).ring, [0, 1, 2, 3]);
}

#[test]
fn a_rank_that_ended_early_is_the_end_of_a_chain() {
    let mut job = job(&[80; 4]);
    enter(&mut job, &[0], message(RECV, CallKind::Receive, 1));
    enter(&mut job, &[2, 3], rooted(BCAST, WORLD, 0, Pattern::FromRoot));
    enter(&mut job, &[1], Standpoint { function: FINALIZE, ..Standpoint::default() });
    set_presence(&mut job, 1, Presence::Finalizing);
    assert_eq!(named(&job), (Finding::Absent, "1".into()));
    let verdict = verdict(&job);
    assert_eq!(verdict.odd[0].doing, Doing::Finalizing);
    assert_eq!(verdict.odd[0].held.to_string(), "0,2-3");
    assert_eq!((waits_for(&verdict, 0), waits_for(&verdict, 3)), ("1".into(), "0".into()));
}

#[test]
fn where_most_have_ended_the_one_that_has_not_is_named() {
    let mut job = job(&[80; 4]);
    enter(&mut job, &[1, 2, 3], Standpoint { function: FINALIZE, ..Standpoint::default() });
    (1..4).for_each(|rank| set_presence(&mut job, rank, Presence::Finalizing));
    enter(&mut job, &[0], message(RECV, CallKind::Receive, 1));
    assert_eq!(named(&job), (Finding::Deviation, "0".into()));
}

#[test]
fn a_rank_that_waits_for_a_message_outside_of_the_order_is_named() {
    let mut job = job(&[104; 3]);
    enter(&mut job, &[0], message(RECV, CallKind::Receive, 1));
    enter(&mut job, &[1, 2], collective(ALLREDUCE, WORLD));
    assert_eq!(named(&job), (Finding::Deviation, "0".into()));
    assert_eq!(verdict(&job).odd[0].difference, Difference::Missed(104));
}

#[test]
fn a_stopped_a_dead_and_a_computing_rank_are_told_as_such() {
    for (presence, doing) in [
        (Presence::Stopped, Doing::Stopped),
        (Presence::Lost, Doing::Lost),
        (Presence::Ended, Doing::Ended),
        (Presence::Computing, Doing::Computing),
        (Presence::Sleeping, Doing::Sleeping),
    ] {
        let mut job = job(&[40; 4]);
        enter(&mut job, &[0, 1, 2], collective(ALLREDUCE, WORLD));
        set_presence(&mut job, 3, presence);
        assert_eq!(named(&job), (Finding::Absent, "3".into()), "{doing:?}");
        assert_eq!(verdict(&job).odd[0].doing, doing);
    }
}

#[test]
fn a_verdict_has_passed_once_a_collective_in_which_ranks_waited_has_returned_at_all_of_them() {
    let mut before = job(&[40; 4]);
    enter(&mut before, &[0, 1, 2], collective(ALLREDUCE, WORLD));
    let verdict = verdict(&before);
    assert!(!verdict.has_passed(&before));
    assert!(!verdict.has_passed(&job(&[41, 41, 40, 40])), "rank 2 is inside still");
    assert!(verdict.has_passed(&job(&[41, 41, 41, 40])));
    let mut both = before.clone();
    enter(&mut both, &[3], message(RECV, CallKind::Receive, 2));
    let both = Verdict::of(&both, SECOND).expect("ranks wait");
    assert!(!both.has_passed(&job(&[41; 4])), "rank 3 may wait still");
    let mut unsure = job(&[41; 4]);
    unsure.seats.get_mut(&(WORLD, 1)).expect("a seat").is_number_lost = true;
    assert!(!verdict.has_passed(&unsure));
    assert!(!verdict.has_passed(&Standing::default()), "the ranks have not answered");
    let mut messages = job(&[40; 2]);
    enter(&mut messages, &[0], message(RECV, CallKind::Receive, 1));
    let verdict = Verdict::of(&messages, SECOND).expect("a rank waits");
    assert!(!verdict.has_passed(&job(&[90; 2])), "it is not known which message it was");
}

#[test]
fn between_two_groups_no_rank_of_the_own_group_is_waited_for() {
    // Rank 0 of the other group has not called: of the own group 1 and 2 wait, and 3 computes.
    let own = 200;
    for function in [ALLREDUCE, BCAST] {
        let mut job = job(&[0; 4]);
        add(&mut job, own, &[(1, 6), (2, 6), (3, 5)]);
        for rank in 1..4 {
            job.seats.get_mut(&(own, rank)).expect("a seat").is_between = true;
        }
        enter(&mut job, &[1, 2], rooted(function, own, 0, Pattern::FromRoot));
        let verdict = verdict(&job);
        assert_eq!(verdict.culprits().to_string(), "", "{function}: {verdict:?}");
        assert!(verdict.waiting.iter().all(|one| one.targets.is_empty() && !one.is_known));
    }
}

#[test]
fn a_rank_that_made_another_call_in_that_number_and_has_ended_is_told_with_its_call() {
    let mut job = job(&[0, 0, 0, 1]);
    enter(&mut job, &[0, 1, 2], collective(ALLREDUCE, WORLD));
    let seat = job.seats.get_mut(&(WORLD, 3)).expect("a seat");
    (seat.last_function, seat.last_root) = (BCAST, Some(0));
    set_presence(&mut job, 3, Presence::Ended);
    let verdict = verdict(&job);
    assert_eq!(verdict.culprits().to_string(), "3");
    let Difference::Operation(own, common) = verdict.odd[0].difference else {
        panic!("{:?}", verdict.odd[0]);
    };
    assert_eq!((own.function, common.function), (BCAST, ALLREDUCE));
}

#[test]
fn where_most_have_made_another_call_they_are_not_told_as_those_that_differ() {
    let mut job = job(&[0, 1, 1, 1]);
    enter(&mut job, &[0], collective(ALLREDUCE, WORLD));
    for rank in 1..4 {
        let seat = job.seats.get_mut(&(WORLD, rank)).expect("a seat");
        (seat.last_function, seat.last_root) = (BCAST, Some(1));
        set_presence(&mut job, rank, Presence::Computing);
    }
    let odd = verdict(&job).odd;
    assert!(!odd.is_empty());
    for odd in odd {
        assert!(matches!(odd.difference, Difference::Unlike(own, _) if own.function == BCAST));
    }
    // Of one that does not know its number it is not said how many it has made.
    job.seats.get_mut(&(WORLD, 1)).expect("a seat").is_number_lost = true;
    let odd = verdict(&job).odd;
    let own = odd.iter().find(|odd| odd.ranks.contains(1)).expect("others wait for it");
    assert_eq!(own.difference, Difference::Unknown);
}

#[test]
fn a_rank_that_does_not_know_its_number_waits_for_it_is_not_known_whom() {
    let mut job = job(&[20, 21, 21, 21]);
    enter(&mut job, &[0], collective(ALLREDUCE, WORLD));
    job.seats.get_mut(&(WORLD, 0)).expect("a seat").is_number_lost = true;
    for rank in 1..4 {
        let seat = job.seats.get_mut(&(WORLD, rank)).expect("a seat");
        (seat.last_function, seat.last_root) = (BCAST, Some(1));
    }
    let verdict = verdict(&job);
    assert_eq!(
        (verdict.finding, verdict.culprits().to_string()),
        (Finding::Unknown, String::new())
    );
}

/// A thread of the rank computes beside the one that is in its call.
fn compute_beside(job: &mut Standing, rank: u32) {
    job.postures.get_mut(&rank).expect("a rank of the job").beside_ns = 2 * SECOND;
    set_presence(job, rank, Presence::Computing);
}

#[test]
fn a_rank_that_computes_beside_its_collective_has_entered_it() {
    let mut job = job(&[40; 3]);
    enter(&mut job, &[0, 1], collective(ALLREDUCE, WORLD));
    compute_beside(&mut job, 1);
    assert_eq!(named(&job), (Finding::Absent, "2".into()));
    assert_eq!(waits_for(&verdict(&job), 0), "2");
}

#[test]
fn a_rank_that_computes_beside_another_call_has_not_entered_the_collective() {
    let mut job = job(&[40; 3]);
    enter(&mut job, &[0, 2], collective(ALLREDUCE, WORLD));
    enter(&mut job, &[1], message(RECV, CallKind::Receive, 0));
    compute_beside(&mut job, 1);
    let verdict = verdict(&job);
    assert_eq!((verdict.finding, verdict.culprits().to_string()), (Finding::Absent, "1".into()));
    assert_eq!((verdict.odd[0].doing, verdict.odd[0].for_ns), (Doing::Computing, 2 * SECOND));
}

#[test]
fn a_rank_that_is_stopped_or_has_died_inside_of_a_collective_is_named_too() {
    for (presence, doing) in [(Presence::Stopped, Doing::Stopped), (Presence::Lost, Doing::Lost)] {
        let mut job = job(&[40; 4]);
        enter(&mut job, &[0, 1, 2, 3], collective(ALLREDUCE, WORLD));
        assert_eq!(verdict(&job).finding, Finding::NoneMissing);
        set_presence(&mut job, 3, presence);
        assert_eq!(named(&job), (Finding::Absent, "3".into()));
        let odd = &verdict(&job).odd[0];
        assert_eq!((odd.doing, odd.difference), (doing, Difference::Unknown));
    }
}

#[test]
fn calls_that_did_not_fit_before_a_rank_died_or_was_stopped_are_told_before_it() {
    for presence in [Presence::Lost, Presence::Stopped] {
        let mut job = job(&[20, 21, 21, 21]);
        enter(&mut job, &[0], rooted(BCAST, WORLD, 0, Pattern::FromRoot));
        enter(&mut job, &[1, 2, 3], collective(BARRIER, WORLD));
        for (rank, root) in [(1, 1), (2, 0), (3, 0)] {
            let passed = job.seats.get_mut(&(WORLD, rank)).expect("a member");
            (passed.last_function, passed.last_root) = (BCAST, Some(root));
        }
        set_presence(&mut job, 2, presence);
        let found = verdict(&job);
        let [unlike, halted] = &found.odd[..] else { panic!("two findings: {:?}", found.odd) };
        assert_eq!(found.finding, Finding::Deviation);
        assert_eq!((unlike.ranks.to_string(), unlike.place.number), ("1".into(), 21));
        let operation = |root| Operation { function: BCAST, root: Some(root) };
        assert_eq!(unlike.difference, Difference::Operation(operation(1), operation(0)));
        assert_eq!((halted.ranks.to_string(), halted.place.number), ("2".into(), 22));
        // Of one that does not know its number it is not known in which collective it is.
        job.seats.get_mut(&(WORLD, 3)).expect("a member").is_number_lost = true;
        assert_eq!(verdict(&job).culprits().to_string(), "2");
    }
}

#[test]
fn a_rank_that_died_behind_another_call_is_named_once() {
    let mut job = job(&[20, 20, 20, 21]);
    enter(&mut job, &[0, 1, 2], collective(ALLREDUCE, WORLD));
    let seat = job.seats.get_mut(&(WORLD, 3)).expect("a seat");
    (seat.last_function, seat.last_root) = (BCAST, Some(0));
    set_presence(&mut job, 3, Presence::Lost);
    let odd = verdict(&job).odd;
    assert_eq!((odd.len(), odd[0].doing), (1, Doing::Lost));
    assert!(matches!(odd[0].difference, Difference::Operation(own, _) if own.function == BCAST));
}

#[test]
fn a_rank_that_polls_is_told_apart_from_one_that_computes() {
    let mut job = job(&[40; 3]);
    enter(&mut job, &[0, 2], collective(BARRIER, WORLD));
    let polling = job.postures.get_mut(&1).expect("a rank");
    (polling.presence, polling.is_polling, polling.polled) = (Presence::Computing, true, TEST);
    assert_eq!(verdict(&job).odd[0].doing, Doing::Polling(TEST));
}

#[test]
fn a_started_collective_is_waited_for_by_its_number() {
    let mut job = job(&[81, 80, 81, 81]);
    for rank in [0, 2, 3] {
        job.seats.get_mut(&(WORLD, rank)).expect("a member").last_function = IALLREDUCE;
    }
    enter(&mut job, &[1], collective(BARRIER, WORLD));
    let wait = Standpoint { function: WAIT, kind: CallKind::Wait, ..Standpoint::default() };
    let known = Standpoint { space: WORLD, request: 81, is_request_known: true, ..wait };
    // With the request, and without it.
    for call in [known, wait] {
        enter(&mut job, &[0, 2, 3], call);
        assert_eq!(named(&job), (Finding::Deviation, "1".into()));
        assert_eq!(waits_for(&verdict(&job), 0), "1");
    }
}

#[test]
fn of_ranks_that_start_a_collective_with_other_amounts_no_tag_is_told() {
    let mut job = job(&[80; 4]);
    for rank in 0..4_u32 {
        let tag = Some(81 + rank.cast_signed() / 3);
        let start = Standpoint { tag, ..collective(IALLREDUCE, WORLD) };
        enter(&mut job, &[rank], Standpoint { kind: CallKind::CollectiveStart, ..start });
    }
    let verdict = verdict(&job);
    let [group] = &verdict.waiting[..] else { panic!("they are in one call: {verdict:?}") };
    assert_eq!((group.place.tag, group.place.number, group.is_known), (None, 0, false));
}

#[test]
fn collective_calls_on_files_are_counted_together() {
    let mut job = job(&[0; 4]);
    let file = |function| Standpoint { function, kind: CallKind::File, ..Standpoint::default() };
    enter(&mut job, &[0, 1, 2], file(WRITE));
    enter(&mut job, &[3], file(CLOSE));
    job.shared.extend((0..4).map(|rank| ((rank, WRITE), (CallKind::File, 29))));
    assert_eq!(named(&job), (Finding::Deviation, "3".into()));
    let place = verdict(&job).odd[0].place;
    assert_eq!((place.space, place.number), (FILES, 30));
}

#[test]
fn a_rank_that_has_made_no_call_on_files_may_be_the_one_that_is_missing() {
    let mut job = job(&[0; 4]);
    let close = Standpoint { function: CLOSE, kind: CallKind::File, ..Standpoint::default() };
    enter(&mut job, &[0, 1, 2], close);
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
    enter(&mut job, &[3], close);
    assert_eq!(named(&job), (Finding::NoneMissing, String::new()));
}

#[test]
fn where_all_have_entered_none_is_missing() {
    let mut job = job(&[40; 3]);
    enter(&mut job, &[0, 1, 2], collective(ALLREDUCE, WORLD));
    assert_eq!(named(&job), (Finding::NoneMissing, String::new()));
}

#[test]
fn ranks_that_are_in_another_call_with_none_missing_are_those_that_are_waited_for() {
    const PART: u64 = 7;
    let mut job = job(&[40; 4]);
    add(&mut job, PART, &[(2, 3), (3, 3)]);
    enter(&mut job, &[0, 1], collective(ALLREDUCE, WORLD));
    enter(&mut job, &[2, 3], collective(BARRIER, PART));
    assert_eq!(named(&job), (Finding::Absent, "2-3".into()));
    let verdict = verdict(&job);
    let [odd] = &verdict.odd[..] else { panic!("one group: {:?}", verdict.odd) };
    assert_eq!((odd.doing, odd.difference), (Doing::Waiting, Difference::Missed(40)));
    assert_eq!((odd.place.space, odd.place.number), (WORLD, 41));
    assert_eq!(odd.held.to_string(), "0-1");
}

#[test]
fn a_rank_that_ended_in_a_collective_which_all_others_had_left_is_named() {
    let mut job = job(&[41, 41, 40, 41]);
    enter(&mut job, &[2], collective(BARRIER, WORLD));
    assert_eq!(named(&job), (Finding::NoneMissing, String::new()), "its data may be on its way");
    job.source = Source::FilesOfEnded;
    let left = |job: &Standing| {
        let verdict = verdict(job);
        assert_eq!((verdict.finding, verdict.odd.len()), (Finding::Absent, 1));
        let odd = &verdict.odd[0];
        assert_eq!((odd.place.number, odd.difference), (41, Difference::Left));
        (odd.ranks.to_string(), odd.held.to_string())
    };
    assert_eq!(left(&job), ("2".into(), String::new()));
    enter(&mut job, &[0, 1, 3], collective(ALLREDUCE, WORLD));
    assert_eq!(left(&job), ("2".into(), "0-1,3".into()));
    // One more is where it was: it may have been the one that others of that collective lacked.
    job.seats.get_mut(&(WORLD, 3)).expect("a rank of the job").made = 40;
    enter(&mut job, &[3], collective(BARRIER, WORLD));
    assert_eq!(left(&job), ("2-3".into(), "0-1".into()));
}

#[test]
fn a_root_that_gathers_is_not_named_beside_a_rank_that_ended_inside() {
    let gather = rooted(GATHER, WORLD, 0, Pattern::ToRoot);
    let left_by = |ranks: &[u32], call| {
        let mut job = job(&[41, 41, 41, 41]);
        for &rank in ranks {
            job.seats.get_mut(&(WORLD, rank)).expect("a rank of the job").made = 40;
        }
        enter(&mut job, ranks, call);
        job.source = Source::FilesOfEnded;
        let verdict = verdict(&job);
        assert_eq!((verdict.finding, verdict.odd.len()), (Finding::Absent, 1));
        verdict.odd[0].ranks.to_string()
    };
    assert_eq!(left_by(&[0, 3], gather), "3", "the root waits for it");
    assert_eq!(left_by(&[0], gather), "0");
    assert_eq!(left_by(&[0, 3], collective(BARRIER, WORLD)), "0,3");
}

#[test]
fn of_a_call_that_is_not_understood_nothing_is_claimed() {
    let mut job = job(&[40; 2]);
    enter(&mut job, &[0, 1], Standpoint { function: 99, ..Standpoint::default() });
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
    let wait = Standpoint { function: WAIT, kind: CallKind::Wait, ..Standpoint::default() };
    enter(&mut job, &[0, 1], wait);
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
}

#[test]
fn a_rank_that_was_never_seen_is_the_one_that_is_missing() {
    let mut job = job(&[40; 4]);
    job.postures.remove(&2);
    job.seats.remove(&(WORLD, 2));
    enter(&mut job, &[0, 1, 3], collective(ALLREDUCE, WORLD));
    let verdict = verdict(&job);
    assert_eq!((verdict.culprits().to_string(), verdict.unseen), ("2".into(), 1));
    assert_eq!(verdict.odd[0].doing, Doing::Unseen);
}

/// The same job by kept files, of which these ranks' cannot be read.
fn without_files(job: &Standing, ranks: &[u32]) -> Standing {
    let mut job = Standing { source: Source::FilesOfEnded, ..job.clone() };
    job.postures.retain(|rank, _| !ranks.contains(rank));
    job.seats.retain(|(_, rank), _| !ranks.contains(rank));
    job
}

#[test]
fn without_the_file_of_a_root_or_a_sender_no_other_rank_is_waited_for() {
    let mut job = job(&[40; 4]);
    for pattern in [Pattern::FromRoot, Pattern::ToRoot] {
        enter(&mut job, &[1], rooted(BCAST, WORLD, 2, pattern));
        assert_eq!(named(&job), (Finding::Absent, "2".into()));
        assert_eq!(named(&without_files(&job, &[2, 3])), (Finding::Unknown, String::new()));
    }
    let any = Standpoint { side: Side::Any, ..message(RECV, CallKind::Receive, 0) };
    for call in [any, exchange(2, 0), message(RECV, CallKind::Receive, 3)] {
        enter(&mut job, &[1], call);
        assert_ne!(named(&job).1, "");
        assert_eq!(named(&without_files(&job, &[2, 3])), (Finding::Unknown, String::new()));
    }
}

#[test]
fn a_majority_that_unread_files_may_turn_accuses_no_rank() {
    let mut job = job(&[40; 5]);
    enter(&mut job, &[0], collective(BARRIER, WORLD));
    enter(&mut job, &[1, 2, 3, 4], collective(ALLREDUCE, WORLD));
    assert_eq!(named(&job), (Finding::Deviation, "0".into()));
    assert_eq!(named(&without_files(&job, &[4])), (Finding::Deviation, "0".into()));
    assert_eq!(named(&without_files(&job, &[3, 4])), (Finding::Unknown, String::new()));
    set_presence(&mut job, 0, Presence::Stopped);
    let verdict = verdict(&without_files(&job, &[3, 4]));
    let is_of_most = |one: &Difference| matches!(one, Difference::Operation(..));
    assert!(!verdict.odd.iter().any(|one| is_of_most(&one.difference)), "{:?}", verdict.odd);
}

#[test]
fn in_a_circle_those_who_lack_least_are_named_only_if_unread_files_lack_more() {
    const PAIR: u64 = 7;
    let mut job = job(&[40; 4]);
    add(&mut job, PAIR, &[(0, 3), (1, 3)]);
    enter(&mut job, &[0], collective(BARRIER, WORLD));
    enter(&mut job, &[1], collective(ALLREDUCE, PAIR));
    enter(&mut job, &[2, 3], collective(BARRIER, WORLD));
    assert_eq!(named(&job), (Finding::Deviation, "1".into()));
    assert_eq!(named(&without_files(&job, &[2, 3])), (Finding::Unknown, String::new()));
}

#[test]
fn who_ends_early_is_not_known_of_ranks_that_may_be_most() {
    let mut job = job(&[40; 4]);
    enter(&mut job, &[0, 2, 3], Standpoint { function: FINALIZE, ..Standpoint::default() });
    [0, 2, 3].iter().for_each(|&rank| set_presence(&mut job, rank, Presence::Finalizing));
    enter(&mut job, &[1], message(RECV, CallKind::Receive, 0));
    assert_eq!(named(&without_files(&job, &[2, 3])), (Finding::Unknown, String::new()));
    set_presence(&mut job, 1, Presence::Computing);
    job.postures.get_mut(&1).expect("a rank of the job").call = None;
    assert_eq!(named(&without_files(&job, &[3])), (Finding::Unknown, String::new()));
    assert_eq!(named(&job).1, "1");
}

#[test]
fn a_rank_whose_own_file_says_that_it_has_not_come_is_named() {
    let mut job = job(&[40; 4]);
    enter(&mut job, &[1, 2, 3], collective(ALLREDUCE, WORLD));
    assert_eq!(named(&without_files(&job, &[2, 3])), (Finding::Absent, "0".into()));
}

#[test]
fn a_job_that_goes_on_has_no_verdict() {
    let mut job = job(&[40; 2]);
    assert_eq!(Verdict::of(&job, SECOND), None);
    enter(&mut job, &[0, 1], collective(ALLREDUCE, WORLD));
    job.postures.values_mut().for_each(|one| one.for_ns = SECOND / 2);
    assert_eq!(Verdict::of(&job, SECOND), None);
}

#[test]
fn the_same_fault_is_one_verdict_though_time_goes_on() {
    let mut job = job(&[40; 4]);
    enter(&mut job, &[0, 1, 3], collective(ALLREDUCE, WORLD));
    enter(&mut job, &[2], collective(BARRIER, WORLD));
    let before = verdict(&job);
    job.postures.values_mut().for_each(|one| one.for_ns += SECOND);
    assert!(verdict(&job).is_like(&before));
    set_presence(&mut job, 2, Presence::Stopped);
    assert!(!verdict(&job).is_like(&before));
}

/// Rank 2 keeps its lock on rank 0's part of a window while it waits for a message of rank 1, which
/// wants that lock before it sends.
fn lock_job() -> Standing {
    const WINDOW: u64 = 200;
    let mut job = job(&[41; 3]);
    add(&mut job, WINDOW, &[(0, 0), (1, 0), (2, 0)]);
    job.seats.get_mut(&(WINDOW, 2)).expect("a member").held = Side::Rank(0);
    let kind = CallKind::Lock;
    let lock = Standpoint { kind, space: WINDOW, side: Side::Rank(0), ..collective(LOCK, WINDOW) };
    enter(&mut job, &[0], collective(BARRIER, WORLD));
    enter(&mut job, &[1], lock);
    enter(&mut job, &[2], message(RECV, CallKind::Receive, 1));
    job
}

#[test]
fn a_rank_that_waits_while_it_has_a_lock_is_named_and_no_victim_of_it() {
    let job = lock_job();
    let verdict = verdict(&job);
    assert_eq!(named(&job), (Finding::Deviation, "2".into()));
    assert_eq!(
        (verdict.odd[0].difference, verdict.odd[0].doing),
        (Difference::Lock, Doing::Waiting)
    );
    assert_eq!((waits_for(&verdict, 1), waits_for(&verdict, 0)), ("2".into(), "1-2".into()));
}

#[test]
fn a_rank_that_computes_while_it_has_a_lock_is_named() {
    let mut job = lock_job();
    let holder = job.postures.get_mut(&2).expect("a rank of the job");
    (holder.call, holder.presence) = (None, Presence::Computing);
    let verdict = verdict(&job);
    assert_eq!(named(&job), (Finding::Absent, "2".into()));
    assert_eq!(
        (verdict.odd[0].difference, verdict.odd[0].doing),
        (Difference::Lock, Doing::Computing)
    );
}

#[test]
fn a_lock_on_another_part_of_the_window_holds_no_rank() {
    let mut job = lock_job();
    for seat in job.seats.values_mut().filter(|seat| seat.held != Side::None) {
        seat.held = Side::Rank(1);
    }
    let verdict = verdict(&job);
    assert_eq!(waits_for(&verdict, 1), "");
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
}

#[test]
fn of_two_ranks_that_receive_from_one_another_the_one_with_a_blocked_thread_is_named() {
    let mut job = job(&[40; 3]);
    enter(&mut job, &[0], message(RECV, CallKind::Receive, 1));
    enter(&mut job, &[1], message(RECV, CallKind::Receive, 0));
    enter(&mut job, &[2], collective(BARRIER, WORLD));
    assert_eq!(named(&job), (Finding::Ring, "0-1".into()));
    job.postures.get_mut(&0).expect("a rank of the job").blocked_threads = 1;
    assert_eq!(named(&job), (Finding::Deviation, "0".into()));
    assert_eq!(verdict(&job).odd[0].difference, Difference::Thread);
    // Threads that wait in all ranks, as those of a pool do, tell nothing.
    job.postures.get_mut(&1).expect("a rank of the job").blocked_threads = 1;
    assert_eq!(named(&job), (Finding::Ring, "0-1".into()));
}

#[test]
fn a_rank_whose_thread_in_mpi_holds_the_lock_that_another_needs_is_named() {
    let mut job = job(&[40; 2]);
    enter(&mut job, &[0], message(RECV, CallKind::Receive, 1));
    enter(&mut job, &[1], collective(ALLREDUCE, WORLD));
    // The helper of rank 1 waits for the lock before it can send.
    job.postures.get_mut(&1).expect("a rank of the job").is_locked = true;
    assert_eq!(named(&job), (Finding::Deviation, "1".into()));
    assert_eq!(verdict(&job).odd[0].difference, Difference::HeldLock);
}

#[test]
fn where_calls_contradict_those_of_the_others_locks_are_not_the_reason() {
    let mut job = job(&[40; 4]);
    enter(&mut job, &[0, 1, 3], collective(ALLREDUCE, WORLD));
    enter(&mut job, &[2], collective(BARRIER, WORLD));
    job.postures.get_mut(&1).expect("a rank of the job").is_locked = true;
    assert_eq!(named(&job), (Finding::Deviation, "2".into()));
}

#[test]
fn a_rank_that_waits_for_a_lock_outside_of_mpi_is_told_as_such() {
    let mut job = job(&[40; 2]);
    enter(&mut job, &[0], collective(ALLREDUCE, WORLD));
    set_presence(&mut job, 1, Presence::Sleeping);
    job.postures.get_mut(&1).expect("a rank of the job").is_locked = true;
    assert_eq!(verdict(&job).odd[0].doing, Doing::Locked);
}
