//! Figures of waves on trees of which every latency is known.

use proptest::prelude::*;
use sapwood_node::{ChildSums, HopEvent, HopKind, ProcessHops, StreamSums};
use sapwood_packet::{Rank, Wave, answer_wave};
use sapwood_trace::{Blame, HopClock, HopProcess, HopTrace};

const STREAM: u32 = 7;

/// One process of a tree, with all that takes time at it. Rank 0 is the front-end, and each parent
/// has a lower rank than its children.
#[derive(Clone, Debug)]
struct Place {
    parent: Option<Rank>,
    /// Of the link to its parent.
    down: u64,
    up: u64,
    /// From the last part, or at a back-end the question, to the sending.
    inside: u64,
    /// By how much its clock is ahead.
    ahead: i64,
}

type Tree = Vec<Place>;

fn trees() -> impl Strategy<Value = Tree> {
    let place = (any::<prop::sample::Index>(), 1..1000_u64, 1..1000_u64, 0..500_u64, -900..900_i64);
    prop::collection::vec(place, 1..24).prop_map(|places| {
        let front_end = Place { parent: None, down: 0, up: 0, inside: 3, ahead: 0 };
        let mut tree = vec![front_end];
        for (parent, down, up, inside, ahead) in places {
            let parent = Some(parent.index(tree.len()) as Rank);
            tree.push(Place { parent, down, up, inside, ahead });
        }
        tree
    })
}

fn children(tree: &Tree, rank: Rank) -> impl Iterator<Item = Rank> + '_ {
    (0..tree.len() as Rank).filter(move |&child| tree[child as usize].parent == Some(rank))
}

/// What happens at all processes, by the front-end's clock.
struct Run {
    hops: Vec<ProcessHops>,
    elapsed: u64,
}

fn event(tree: &Tree, rank: Rank, kind: HopKind, time: u64, other: Rank, wave: Wave) -> HopEvent {
    let time = time.checked_add_signed(tree[rank as usize].ahead).expect("times are far from 0");
    HopEvent { time, wave, stream: STREAM, other, waves: 1, kind }
}

/// Begins at that time: question and answer of all processes below one.
fn pass(tree: &Tree, rank: Rank, asked: u64, numbers: (Wave, Wave), run: &mut Run) -> u64 {
    let place = &tree[rank as usize];
    run.hops[rank as usize].events.push(event(tree, rank, HopKind::Down, asked, 0, numbers.0));
    let mut parts: Vec<(u64, Rank)> = children(tree, rank)
        .map(|child| {
            let Place { down, up, .. } = tree[child as usize];
            (pass(tree, child, asked + down, numbers, run) + up, child)
        })
        .collect();
    parts.sort_unstable();
    for &(time, child) in &parts {
        let arrived = event(tree, rank, HopKind::Arrived, time, child, numbers.1);
        run.hops[rank as usize].events.push(arrived);
    }
    let sent = parts.last().map_or(asked, |&(time, _)| time) + place.inside;
    let sent_up = event(tree, rank, HopKind::SentUp, sent, parts.len() as u32, numbers.1);
    run.hops[rank as usize].events.push(sent_up);
    sent
}

fn run(tree: &Tree, begin: u64, numbers: (Wave, Wave)) -> Run {
    let hops = (0..tree.len() as Rank)
        .map(|rank| ProcessHops { rank, ..ProcessHops::default() })
        .collect();
    let mut run = Run { hops, elapsed: 0 };
    run.elapsed = pass(tree, 0, begin, numbers, &mut run) - begin;
    run
}

fn processes(tree: &Tree, error: u64) -> Vec<HopProcess> {
    let process = |(rank, place): (usize, &Place)| {
        let clock = HopClock { ahead: place.ahead, error: if rank == 0 { 0 } else { error } };
        HopProcess { rank: rank as Rank, parent: place.parent, clock: Some(clock) }
    };
    tree.iter().enumerate().map(process).collect()
}

fn traced(tree: &Tree, runs: &[Run], error: u64) -> HopTrace {
    let mut trace = HopTrace::default();
    for run in runs {
        trace.begin_round(processes(tree, error));
        run.hops.iter().for_each(|hops| trace.absorb(hops));
        trace.end_round();
    }
    trace.finish();
    trace
}

proptest! {
    /// Two-way latencies need no clocks; one-way ones are right where clocks are known exactly; and
    /// the parts of an answer's time add up to it.
    #[test]
    fn every_latency_comes_out_as_it_went_in(tree in trees(), count in 1..5_u64) {
        let numbers = |question| (question, answer_wave(question).expect("a small number"));
        let runs: Vec<Run> =
            (0..count).map(|n| run(&tree, 1_000_000 * (n + 1), numbers(n))).collect();
        let trace = traced(&tree, &runs, 0);
        prop_assert_eq!(trace.losses().unfinished, 0);
        let figures = &trace.streams()[&STREAM];
        prop_assert_eq!(figures.explained, count);
        prop_assert_eq!(figures.elapsed.all.sum, runs.iter().map(|run| run.elapsed).sum::<u64>());
        let blamed: u64 = figures.blame().iter().map(|one| one.ns).sum();
        prop_assert_eq!(blamed, figures.elapsed.all.sum);
        for (child, edge) in &figures.edges {
            let place = &tree[*child as usize];
            prop_assert_eq!(Some(edge.parent), place.parent);
            for (figure, expected) in [
                (&edge.up.figure, place.up),
                (&edge.down.figure, place.down),
                (&edge.two_way, place.up + place.down),
            ] {
                prop_assert_eq!(figure.all.count, count);
                prop_assert_eq!((figure.all.least, figure.all.most), (expected, expected));
            }
            prop_assert_eq!((edge.up.undecided, edge.down.undecided), (0, 0));
        }
        prop_assert_eq!(figures.edges.len(), tree.len() - 1);
        for (rank, place) in tree.iter().enumerate().skip(1) {
            let process = figures.processes.get(&(rank as Rank));
            let is_leaf = children(&tree, rank as Rank).next().is_none();
            let inside = process.map(|process| {
                let figure = if is_leaf { &process.own } else { &process.passing };
                (figure.all.count, figure.all.least, figure.all.most)
            });
            prop_assert_eq!(inside, Some((count, place.inside, place.inside)));
        }
    }

    /// Inside the error of the clocks no one-way latency is claimed; two-way ones are.
    #[test]
    fn inside_the_error_of_clocks_nothing_is_claimed(tree in trees()) {
        let runs = [run(&tree, 1_000_000, (0, answer_wave(0).expect("a small number")))];
        let trace = traced(&tree, &runs, 1_000_000);
        for (child, edge) in &trace.streams()[&STREAM].edges {
            let place = &tree[*child as usize];
            for way in [&edge.up, &edge.down] {
                prop_assert_eq!((way.figure.all.most, way.undecided), (0, 1));
            }
            prop_assert!(edge.clock_error >= 1_000_000);
            prop_assert_eq!(edge.two_way.all.most, place.up + place.down);
        }
    }

    /// A stream on which the front-end sends, waits for a wave and sends again is one of questions
    /// too, though nothing numbers its waves as answers.
    #[test]
    fn packets_and_waves_by_turns_are_questions_with_answers(tree in trees()) {
        let runs: Vec<Run> = (0..3).map(|n| run(&tree, 1_000_000 * (n + 1), (n, n))).collect();
        let by_turns = traced(&tree, &runs, 0);
        prop_assert_eq!(by_turns.streams()[&STREAM].explained, 3);
        // Where packets run ahead of the waves, no packet is called the question of a wave.
        let ahead: Vec<Run> = (0..3).map(|n| run(&tree, 1_000_000 + n, (n, n))).collect();
        let trace = traced(&tree, &ahead, 0);
        let figures = &trace.streams()[&STREAM];
        let is_ahead = ahead[0].elapsed > 1;
        prop_assert!(!is_ahead || figures.explained < 3);
        let ends: u64 = figures.path_ends.values().sum();
        prop_assert_eq!(ends, 3);
    }
}

#[test]
fn the_path_leads_to_the_slow_back_end() {
    let place = |parent, inside| Place { parent: Some(parent), down: 10, up: 10, inside, ahead: 5 };
    let front_end = Place { parent: None, down: 0, up: 0, inside: 1, ahead: 0 };
    let tree = vec![
        front_end,
        place(0, 2),
        place(0, 2),
        place(1, 7),
        place(1, 7),
        place(2, 7),
        place(2, 900),
    ];
    let runs: Vec<Run> =
        (0..4).map(|n| run(&tree, 10_000 * (n + 1), (n, answer_wave(n).unwrap()))).collect();
    let trace = traced(&tree, &runs, 0);
    let figures = &trace.streams()[&STREAM];
    assert_eq!(figures.path_ends.iter().collect::<Vec<_>>(), [(&6, &4)]);
    let first = figures.blame()[0];
    assert_eq!((first.blame, first.ns, first.answers), (Blame::BackEnd(6), 3600, 4));
    let last = figures.arrivals[&2].children();
    assert_eq!((last[1].child, last[1].last, last[1].caused_most), (6, 4, 893));
    assert_eq!(figures.edges[&5].arrival_wait.all.most, 893);
    assert_eq!(figures.edges[&5].departure_wait.all.most, 0);
}

#[test]
fn a_wave_without_the_front_ends_part_is_counted_and_not_explained() {
    let tree = vec![
        Place { parent: None, down: 0, up: 0, inside: 1, ahead: 0 },
        Place { parent: Some(0), down: 1, up: 1, inside: 1, ahead: 0 },
    ];
    let mut runs = [run(&tree, 1000, (0, answer_wave(0).unwrap()))];
    runs[0].hops[0].events.clear();
    let trace = traced(&tree, &runs, 0);
    assert_eq!(trace.losses().unfinished, 1);
    assert_eq!(trace.streams()[&STREAM].explained, 0);
}

#[test]
fn packets_without_answers_take_no_room_of_another_streams() {
    let tree = vec![
        Place { parent: None, down: 0, up: 0, inside: 1, ahead: 0 },
        Place { parent: Some(0), down: 1, up: 1, inside: 1, ahead: 0 },
    ];
    let mut trace = HopTrace::default();
    let question = run(&tree, 1000, (0, answer_wave(0).unwrap()));
    // On a stream of a higher number packets go down, more than are kept, and nothing comes up.
    let down = |wave| HopEvent { stream: STREAM + 1, ..event(&tree, 0, HopKind::Down, 1, 0, wave) };
    let events: Vec<HopEvent> = (0..40_000).map(down).collect();
    trace.begin_round(processes(&tree, 0));
    trace.absorb(&ProcessHops { rank: 0, events, ..ProcessHops::default() });
    question.hops.iter().for_each(|hops| trace.absorb(hops));
    trace.end_round();
    trace.finish();
    assert_eq!(trace.streams()[&STREAM].explained, 1);
}

#[test]
fn numbers_beyond_all_bounds_end_nothing() {
    let tree = vec![Place { parent: None, down: 0, up: 0, inside: 1, ahead: 0 }];
    let mut trace = HopTrace::default();
    let sums =
        StreamSums { stream: STREAM, waves: u64::MAX, spread: u64::MAX, ..StreamSums::default() };
    let child =
        ChildSums { stream: STREAM, last: u64::MAX, late: u64::MAX, ..ChildSums::default() };
    let event = HopEvent {
        waves: u32::MAX >> 16,
        ..event(&tree, 0, HopKind::SentUp, u64::MAX, u32::MAX, Wave::MAX)
    };
    for is_new in [false, true, true] {
        trace.begin_round(processes(&tree, 0));
        trace.absorb(&ProcessHops {
            unread: 1,
            is_new,
            lost: u64::MAX,
            streams: vec![sums],
            children: vec![child],
            events: vec![event],
            ..ProcessHops::default()
        });
        trace.end_round();
    }
    trace.finish();
    assert_eq!((trace.losses().noted, trace.losses().overwritten), (0, u64::MAX));
    let arrivals = &trace.streams()[&STREAM].arrivals[&0];
    assert_eq!((arrivals.streams()[0].waves, arrivals.children()[0].last), (u64::MAX, u64::MAX));
}

#[test]
fn a_session_that_lapses_is_told_and_what_was_read_still_counts() {
    let tree = vec![Place { parent: None, down: 0, up: 0, inside: 1, ahead: 0 }];
    let mut trace = HopTrace::default();
    let first = ProcessHops { noted: 9, unread: 2, is_new: true, ..ProcessHops::default() };
    let again = ProcessHops { noted: 4, is_new: true, ..ProcessHops::default() };
    for hops in [&first, &again] {
        trace.begin_round(processes(&tree, 0));
        trace.absorb(hops);
        trace.end_round();
    }
    let losses = trace.losses();
    assert_eq!((losses.noted, losses.unread, losses.lapsed), (7 + 4, 0, 1));
}
