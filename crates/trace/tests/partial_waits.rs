//! Which rank is named where ranks wait for some of the others, and it is not known for which.

use sapwood_trace::{
    CallKind, Difference, Doing, Finding, OpenReceive, OpenRequests, Pattern, Posture, Presence,
    Seat, Side, Source, Standing, Standpoint, Verdict,
};

const WORLD: u64 = 100;
const RING: u64 = 200;
const SECOND: u64 = 1_000_000_000;
// Any numbers: what a function is, the call says.
const BARRIER: u32 = 1;
const NEIGHBOR: u32 = 2;
const WAITALL: u32 = 3;
const JOIN: u32 = 4;
const TEST: u32 = 5;
const IBARRIER: u32 = 6;
const FENCE: u32 = 7;
const FREE: u32 = 8;

/// A job whose ranks have made 40 collectives on each communicator, and have been where they are
/// for three seconds.
fn job(size: u32) -> Standing {
    let mut job = Standing { world_size: size, ..Standing::default() };
    for rank in 0..size {
        job.postures.insert(rank, Posture { for_ns: 3 * SECOND, ..Posture::default() });
        for space in [WORLD, RING] {
            job.seats.insert((space, rank), Seat { rank, size, made: 40, ..Seat::default() });
        }
    }
    job
}

fn enter(job: &mut Standing, ranks: &[u32], call: Standpoint) {
    for rank in ranks {
        job.postures.get_mut(rank).expect("a rank of the job").call = Some(call);
    }
}

fn barrier() -> Standpoint {
    let kind = CallKind::Collective;
    Standpoint { function: BARRIER, kind, space: WORLD, ..Standpoint::default() }
}

fn neighbours() -> Standpoint {
    Standpoint { function: NEIGHBOR, space: RING, pattern: Pattern::Unknown, ..barrier() }
}

fn waitall() -> Standpoint {
    Standpoint { function: WAITALL, kind: CallKind::Wait, ..Standpoint::default() }
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

#[test]
fn a_rank_that_leaves_out_a_collective_of_neighbours_is_named_and_not_its_neighbours() {
    // Rank 0 has what it needs and waits with 2 for those that do not have it.
    let mut job = job(4);
    enter(&mut job, &[1, 3], neighbours());
    enter(&mut job, &[0, 2], barrier());
    job.seats.get_mut(&(RING, 0)).expect("a seat").made = 41;
    assert_eq!(named(&job), (Finding::Deviation, "2".into()));
    let verdict = verdict(&job);
    assert_eq!(verdict.odd[0].difference, Difference::Missed(40));
    let those = |one: &&sapwood_trace::Waiting| one.place.function == NEIGHBOR;
    let group = verdict.waiting.iter().find(those).expect("ranks wait there");
    assert_eq!((group.targets.to_string(), group.also.to_string()), ("".into(), "2".to_owned()));
}

#[test]
fn a_rank_that_calls_another_collective_than_its_neighbours_is_named() {
    let mut job = job(4);
    enter(&mut job, &[0, 1, 3], neighbours());
    enter(&mut job, &[2], Standpoint { space: RING, ..barrier() });
    assert_eq!(named(&job), (Finding::Deviation, "2".into()));
}

#[test]
fn a_rank_that_computes_before_a_collective_of_neighbours_is_named() {
    let mut job = job(4);
    enter(&mut job, &[0, 1, 3], neighbours());
    set_presence(&mut job, 2, Presence::Computing);
    assert_eq!(named(&job), (Finding::Absent, "2".into()));
    assert_eq!(verdict(&job).odd[0].difference, Difference::Missed(40));
}

#[test]
fn of_groups_that_are_joined_those_that_have_come_are_not_named() {
    // Ranks 0 to 2 join another group, whose rank 3 is in a barrier of all.
    let mut job = job(4);
    job.seats.retain(|&(space, rank), _| space == WORLD || rank < 3);
    job.seats.iter_mut().filter(|(key, _)| key.0 == RING).for_each(|(_, seat)| seat.size = 3);
    let kind = CallKind::Creation;
    enter(&mut job, &[0, 1, 2], Standpoint { function: JOIN, kind, ..neighbours() });
    enter(&mut job, &[3], barrier());
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
    // One of the own group has not come.
    enter(&mut job, &[2], barrier());
    assert_eq!(named(&job), (Finding::Deviation, "2".into()));
}

#[test]
fn where_all_but_few_wait_for_several_requests_those_that_stand_still_are_named() {
    let mut job = job(4);
    enter(&mut job, &[0, 1, 2], waitall());
    assert_eq!(named(&job), (Finding::Unknown, String::new()), "it may go on");
    let cases = [
        (Presence::Sleeping, Doing::Sleeping),
        (Presence::Computing, Doing::Computing),
        (Presence::Stopped, Doing::Stopped),
        (Presence::Lost, Doing::Lost),
        (Presence::Finalizing, Doing::Finalizing),
    ];
    for (presence, doing) in cases {
        set_presence(&mut job, 3, presence);
        assert_eq!(named(&job), (Finding::Absent, "3".into()), "{presence:?}");
        let odd = &verdict(&job).odd[0];
        assert_eq!((odd.doing, odd.difference), (doing, Difference::Unknown));
        assert_eq!(odd.held.to_string(), "0-2");
    }
}

#[test]
fn ranks_that_stand_still_are_not_named_where_another_may_act() {
    let mut job = job(5);
    enter(&mut job, &[0, 1, 2], waitall());
    set_presence(&mut job, 3, Presence::Sleeping);
    assert_eq!(named(&job), (Finding::Unknown, String::new()), "rank 4 makes calls");
    set_presence(&mut job, 4, Presence::Computing);
    assert_eq!(named(&job), (Finding::Absent, "3-4".into()));
    job.postures.get_mut(&4).expect("a rank").for_ns = SECOND / 2;
    assert_eq!(named(&job), (Finding::Unknown, String::new()), "it may come yet");
}

/// Rank 3 waits for messages of 1 and 2 on the ring; 1 waits for its answer, 2 sleeps, and 0 makes
/// calls that have nothing to do with it.
fn halo_job() -> Standing {
    let mut job = job(4);
    enter(&mut job, &[3], waitall());
    let receive = CallKind::Receive;
    let answer = Standpoint { kind: receive, space: RING, side: Side::Rank(3), ..waitall() };
    enter(&mut job, &[1], answer);
    [0, 2].into_iter().for_each(|rank| set_presence(&mut job, rank, Presence::Sleeping));
    job.postures.get_mut(&0).expect("a rank").for_ns = SECOND / 2;
    let from = |rank, tag| OpenReceive { space: RING, side: Side::Rank(rank), tag };
    let none = OpenReceive { space: WORLD, side: Side::None, tag: 5 };
    let receives = vec![none, from(1, 7), from(2, 9)];
    job.open.insert(3, OpenRequests { receives, ..OpenRequests::default() });
    job
}

#[test]
fn a_sender_of_one_of_several_messages_that_stands_still_is_named_though_others_go_on() {
    let mut job = halo_job();
    assert_eq!(named(&job), (Finding::Absent, "2".into()));
    let verdict = verdict(&job);
    assert_eq!(
        (verdict.odd[0].doing, verdict.odd[0].held.to_string()),
        (Doing::Sleeping, "1,3".into())
    );
    let group =
        verdict.waiting.iter().find(|one| one.place.function == WAITALL && one.open.is_some());
    let group = group.expect("rank 3 waits there");
    assert_eq!((group.targets.to_string(), group.also.to_string()), ("".into(), "1-2".to_owned()));
    let messages = group.open.as_ref().expect("they are known");
    assert_eq!((messages.space, messages.is_complete), (RING, true));
    assert!(messages.tags.iter().eq(&[7, 9]));
    job.postures.get_mut(&2).expect("a rank").for_ns = SECOND / 2;
    assert_eq!(named(&job), (Finding::Unknown, String::new()), "it may send yet");
}

#[test]
fn where_not_all_requests_are_known_their_senders_are_not_named_before_others() {
    let mut job = halo_job();
    job.open.get_mut(&3).expect("rank 3 waits").others = 1;
    assert_eq!(named(&job), (Finding::Unknown, String::new()), "rank 0 may take what it sends");
    job.postures.get_mut(&0).expect("a rank").for_ns = 3 * SECOND;
    assert_eq!(named(&job), (Finding::Absent, "0,2".into()));
    job.open.get_mut(&3).expect("rank 3 waits").others = 0;
    assert_eq!(named(&job), (Finding::Absent, "2".into()));
}

#[test]
fn waits_for_several_messages_are_no_ring() {
    // Each rank exchanges with both others, and it is not known which message was left out.
    let mut job = job(3);
    enter(&mut job, &[0, 1, 2], waitall());
    for rank in 0..3 {
        let from = |other| OpenReceive { space: RING, side: Side::Rank(other), tag: 1 };
        let receives = vec![from((rank + 1) % 3), from((rank + 2) % 3)];
        job.open.insert(rank, OpenRequests { receives, ..OpenRequests::default() });
    }
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
    assert!(verdict(&job).ring.is_empty());
}

#[test]
fn a_message_of_any_source_may_come_from_each_other_member() {
    let mut job = halo_job();
    let any = OpenReceive { space: RING, side: Side::Any, tag: -1 };
    job.open.insert(3, OpenRequests { receives: vec![any], others: 0, is_any: true });
    let verdict = verdict(&job);
    let group = verdict.waiting.iter().find(|one| one.open.is_some()).expect("rank 3 waits");
    assert_eq!((group.also.to_string(), group.is_any), ("0-2".into(), true));
    assert!(group.open.as_ref().is_some_and(|messages| messages.tags.is_empty()));
}

#[test]
fn a_message_of_any_source_may_come_from_a_member_that_is_not_known() {
    let with = |change: &dyn Fn(&mut Standing)| {
        let mut job = halo_job();
        let any = OpenReceive { space: RING, side: Side::Any, tag: -1 };
        job.open.get_mut(&3).expect("rank 3 waits").receives.push(any);
        change(&mut job);
        let verdict = verdict(&job);
        let mut messages = verdict.waiting.iter().filter_map(|one| one.open.as_ref());
        (messages.any(|messages| messages.is_complete), named(&job))
    };
    let unknown = (false, (Finding::Unknown, String::new()));
    assert!(with(&|_: &mut Standing| {}).0);
    // On a communicator of which nothing is known.
    let is_elsewhere = |job: &mut Standing| {
        job.open.get_mut(&3).expect("rank 3 waits").receives[3].space = 0;
    };
    assert_eq!(with(&is_elsewhere), unknown);
    let has_no_room = |job: &mut Standing| {
        job.seats.remove(&(RING, 0));
    };
    assert_eq!(with(&has_no_room), unknown);
    // The numbers there are ranks in the other group.
    let is_between = |job: &mut Standing| {
        job.seats.range_mut((RING, 0)..=(RING, 3)).for_each(|(_, seat)| seat.is_between = true);
    };
    assert_eq!(with(&is_between), unknown);
}

#[test]
fn a_message_between_two_groups_is_of_no_rank_of_the_own_group() {
    for (kind, side, destination) in [
        (CallKind::Receive, Side::Rank(0), Side::None),
        (CallKind::Receive, Side::Any, Side::None),
        (CallKind::Send, Side::Rank(1), Side::None),
        (CallKind::Exchange, Side::Rank(1), Side::Rank(0)),
        (CallKind::Exchange, Side::None, Side::Rank(0)),
    ] {
        let mut job = job(4);
        // Each number is that of a rank in both groups.
        for rank in 0..4 {
            let seat = job.seats.get_mut(&(RING, rank)).expect("a seat");
            (seat.rank, seat.size, seat.is_between) = (rank % 2, 2, true);
        }
        let call = Standpoint { kind, space: RING, side, destination, ..waitall() };
        enter(&mut job, &[3], call);
        let verdict = verdict(&job);
        assert_eq!(verdict.culprits().to_string(), "", "{kind:?} {side:?}");
        let [one] = verdict.waiting.as_slice() else { panic!("rank 3 waits") };
        assert!(!one.is_known && one.targets.is_empty() && one.also.is_empty(), "{one:?}");
    }
}

#[test]
fn most_ranks_are_not_named_because_few_wait_for_several_requests() {
    let mut job = job(5);
    enter(&mut job, &[0, 1], waitall());
    (2..5).for_each(|rank| set_presence(&mut job, rank, Presence::Computing));
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
    enter(&mut job, &[2, 3], waitall());
    assert_eq!(named(&job), (Finding::Absent, "4".into()));
    job.source = Source::Files;
    assert_eq!(named(&job), (Finding::Unknown, String::new()), "no file says which stand still");
}

/// Ranks 0 to 2 have started a barrier on the ring and make tests; rank 3 waits for them elsewhere.
fn polling_job() -> Standing {
    let mut job = job(4);
    for rank in 0..3 {
        let posture = job.postures.get_mut(&rank).expect("a rank");
        (posture.is_polling, posture.polled, posture.for_ns) = (true, TEST, 1);
        let seat = job.seats.get_mut(&(RING, rank)).expect("a seat");
        (seat.made, seat.last_function, seat.is_last_started) = (41, IBARRIER, true);
    }
    enter(&mut job, &[3], barrier());
    job
}

#[test]
fn ranks_that_test_for_a_collective_wait_for_the_one_that_has_not_started_it() {
    let mut job = polling_job();
    assert_eq!(named(&job), (Finding::Deviation, "3".into()));
    let verdict = verdict(&job);
    let odd = &verdict.odd[0];
    assert_eq!((odd.difference, odd.held.to_string()), (Difference::Missed(40), "0-2".into()));
    assert_eq!((odd.place.number, odd.place.behind), (41, IBARRIER));
    assert_eq!(verdict.lasts_ns, 3 * SECOND, "tests are short");
    set_presence(&mut job, 3, Presence::Sleeping);
    enter(&mut job, &[0], barrier());
    job.postures.get_mut(&0).expect("a rank").for_ns = 3 * SECOND;
    job.postures.get_mut(&3).expect("a rank").call = None;
    assert_eq!(named(&job), (Finding::Absent, "3".into()));
}

#[test]
fn ranks_that_test_for_messages_are_those_that_are_waited_for() {
    let mut job = polling_job();
    job.seats.values_mut().for_each(|seat| seat.is_last_started = false);
    assert_eq!(named(&job), (Finding::Absent, "0-2".into()));
    assert_eq!(verdict(&job).odd[0].doing, Doing::Polling(TEST));
}

#[test]
fn where_a_member_has_not_made_the_request_it_is_not_said_that_none_is_missing() {
    let mut job = job(4);
    let wait = Standpoint { request: 40, is_request_known: true, space: RING, ..waitall() };
    enter(&mut job, &[0, 1, 2], wait);
    assert_eq!(named(&job), (Finding::NoneMissing, String::new()));
    job.seats.remove(&(RING, 3));
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
}

#[test]
fn a_rank_that_may_have_started_a_collective_whose_number_it_has_lost_is_not_waited_for() {
    let mut job = job(4);
    let wait = Standpoint { request: 41, is_request_known: true, space: RING, ..waitall() };
    enter(&mut job, &[0, 1], wait);
    // A start has failed in rank 3, which has started the others and waits, too.
    enter(&mut job, &[3], waitall());
    for (rank, made) in [(0, 41), (1, 41), (3, 40)] {
        let seat = job.seats.get_mut(&(RING, rank)).expect("a seat");
        (seat.made, seat.last_function, seat.is_last_started) = (made, IBARRIER, true);
        seat.is_number_lost = rank == 3;
    }
    let group = |job: &Standing| {
        let waiting = verdict(job).waiting;
        let one = waiting.into_iter().find(|one| one.ranks.contains(0)).expect("it waits");
        (one.targets.to_string(), one.is_known)
    };
    assert_eq!(group(&job), ("2".into(), true));
    assert_eq!(named(&job), (Finding::Absent, "2".into()));
    let mut unknown = job.clone();
    let seat = unknown.seats.get_mut(&(RING, 2)).expect("a seat");
    (seat.last_function, seat.is_last_started, seat.is_number_lost) = (IBARRIER, true, true);
    assert_eq!(group(&unknown), (String::new(), false));
    // Whether or not it has started it, one that has died does not complete it.
    set_presence(&mut job, 3, Presence::Lost);
    assert_eq!(group(&job), ("2-3".into(), true));
}

#[test]
fn a_number_beyond_which_there_is_none_does_no_harm() {
    let mut job = job(2);
    enter(&mut job, &[0, 1], barrier());
    job.seats.get_mut(&(WORLD, 1)).expect("a seat").made = u32::MAX;
    let numbers: Vec<u32> = verdict(&job).waiting.iter().map(|one| one.place.number).collect();
    assert_eq!(numbers, [41, u32::MAX]);
}

#[test]
fn of_several_windows_the_rank_that_left_out_a_fence_of_its_own_one_is_named() {
    // Ranks 0 to 2 have a window on which they make more fences than the others on theirs.
    let mut job = job(6);
    let (kind, lower, upper) = (CallKind::Window, 300, 400);
    for rank in 0..6 {
        let space = if rank < 3 { lower } else { upper };
        job.seats.insert((space, rank), Seat { rank: rank % 3, size: 3, ..Seat::default() });
        let fences = [81, 80, 81, 40, 40, 40][rank as usize];
        job.shared.insert((rank, FENCE), (kind, fences));
    }
    let fence = |space| Standpoint { function: FENCE, kind, space, ..Standpoint::default() };
    enter(&mut job, &[0, 2], fence(lower));
    enter(&mut job, &[1, 3, 4, 5], barrier());
    assert_eq!(named(&job), (Finding::Deviation, "1".into()));
    // All are in a fence of theirs; which number these have there is not known.
    enter(&mut job, &[1], fence(lower));
    enter(&mut job, &[3, 4, 5], fence(upper));
    assert_eq!(named(&job), (Finding::NoneMissing, String::new()));
    // No process found room for their windows.
    job.seats.retain(|&(space, _), _| space != lower && space != upper);
    assert_eq!(named(&job), (Finding::Unknown, String::new()));
}

/// All ranks free the first of two windows, but rank 1 the second one; they have made this many
/// fences before.
fn crossed_job(size: u32, fences: u64) -> Standing {
    let mut job = job(size);
    let (kind, first, second) = (CallKind::Window, 300, 400);
    for rank in 0..size {
        for space in [first, second] {
            job.seats.insert((space, rank), Seat { rank, size, ..Seat::default() });
        }
        job.shared.insert((rank, FENCE), (kind, fences));
        let space = if rank == 1 { second } else { first };
        let free = Standpoint { function: FREE, kind, space, ..Standpoint::default() };
        enter(&mut job, &[rank], free);
    }
    job
}

#[test]
fn two_ranks_that_free_two_windows_in_another_order_wait_for_each_other() {
    for fences in [0, 6] {
        let verdict = verdict(&crossed_job(2, fences));
        assert_eq!((verdict.finding, verdict.ring), (Finding::Ring, vec![0, 1]), "{fences}");
    }
}

#[test]
fn of_ranks_that_free_two_windows_the_one_is_named_whose_order_is_not_that_of_most() {
    for fences in [0, 6] {
        let job = crossed_job(4, fences);
        assert_eq!(named(&job), (Finding::Deviation, "1".into()), "{fences}");
        let targets = |rank| {
            let waiting = verdict(&job).waiting;
            let one = waiting.iter().find(|one| one.ranks.contains(rank)).expect("it waits");
            one.targets.to_string()
        };
        assert_eq!((targets(0), targets(1)), ("1".into(), "0,2-3".into()), "{fences}");
    }
}

#[test]
fn a_rank_that_frees_another_window_after_this_one_is_not_waited_for() {
    let mut job = crossed_job(4, 6);
    job.seats.get_mut(&(300, 1)).expect("a seat").is_freed = true;
    let waiting = verdict(&job).waiting;
    let one = waiting.iter().find(|one| one.ranks.contains(0)).expect("it waits");
    assert!(one.targets.is_empty(), "{}", one.targets);
}
