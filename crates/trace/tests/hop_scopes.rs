//! Scopes over the hops of one question and its answer, of which every time was computed by hand.
//!
//! ```text
//!   0 front-end        asks at 1000
//!   |-- 1              has it at 1010, sends up at 1075; its part is at 0 at 1080
//!   |   |-- 3          has it at 1015, sends up at 1035; its part is at 1 at 1040
//!   |   `-- 4          has it at 1022, sends up at 1062; its part is at 1 at 1070
//!   `-- 2              has it at 1030, sends up at 1090; its part is at 0 at 1100
//!                      has the answer at 1105
//! ```

use std::collections::BTreeMap;

use sapwood_node::{HopEvent, HopKind, ProcessHops};
use sapwood_packet::{Rank, RankSet, answer_wave};
use sapwood_trace::{
    HopBy, HopClock, HopKey, HopProcess, HopRole, HopScope, HopTrace, HopValue, ScopeCounter,
    ScopeFigures, ScopeKey, ScopeReduction,
};

const STREAM: u32 = 7;
const PARENTS: [(Rank, Option<Rank>); 5] =
    [(0, None), (1, Some(0)), (2, Some(0)), (3, Some(1)), (4, Some(1))];

/// What a process notes: when the question came, the parts of its children, and when it sent up.
struct Noted {
    rank: Rank,
    down: u64,
    parts: &'static [(Rank, u64)],
    sent_up: u64,
}

const NOTED: [Noted; 5] = [
    Noted { rank: 0, down: 1000, parts: &[(1, 1080), (2, 1100)], sent_up: 1105 },
    Noted { rank: 1, down: 1010, parts: &[(3, 1040), (4, 1070)], sent_up: 1075 },
    Noted { rank: 2, down: 1030, parts: &[], sent_up: 1090 },
    Noted { rank: 3, down: 1015, parts: &[], sent_up: 1035 },
    Noted { rank: 4, down: 1022, parts: &[], sent_up: 1062 },
];

fn processes() -> impl Iterator<Item = HopProcess> {
    PARENTS.into_iter().map(|(rank, parent)| HopProcess {
        rank,
        parent,
        clock: Some(HopClock::default()),
    })
}

fn hops(noted: &Noted, stream: u32, question: u64) -> ProcessHops {
    let answer = answer_wave(question).expect("a small number");
    let event = |kind, time, other, wave| HopEvent { time, wave, stream, other, waves: 1, kind };
    let mut events = vec![event(HopKind::Down, noted.down, 0, question)];
    for &(child, time) in noted.parts {
        events.push(event(HopKind::Arrived, time, child, answer));
    }
    let parts = u32::try_from(noted.parts.len()).expect("a few children");
    events.push(event(HopKind::SentUp, noted.sent_up, parts, answer));
    ProcessHops { rank: noted.rank, events, ..ProcessHops::default() }
}

/// The figures of a scope after one question on each of these streams.
fn figures(scope: HopScope, streams: &[u32]) -> ScopeFigures {
    let mut trace = HopTrace::with_scopes([scope]);
    trace.begin_round(processes());
    for &stream in streams {
        NOTED.iter().for_each(|noted| trace.absorb(&hops(noted, stream, 0)));
    }
    trace.end_round();
    trace.finish();
    let figures = trace.take_scope(0);
    assert!(trace.take_scope(0).groups.is_empty(), "they are taken once");
    assert!(trace.take_scope(1).groups.is_empty(), "there is no such scope");
    figures
}

/// Sums by link, named by its ends.
fn by_edge(value: HopValue) -> Vec<(Rank, Rank, u64)> {
    let by = HopBy { edge: true, ..HopBy::default() };
    let figures = figures(HopScope { value, by, ..HopScope::default() }, &[STREAM]);
    assert_eq!(figures.counter(ScopeCounter::Read), 4, "one of each link");
    assert_eq!(figures.counter(ScopeCounter::Selected), 4);
    let sum = |(key, one): (&ScopeKey, &sapwood_trace::ScopeStatistics)| {
        let key = HopKey::of(*key, by);
        (key.parent.expect("a link"), key.process.expect("a link"), one.sum)
    };
    figures.groups.iter().map(sum).collect()
}

#[test]
fn times_of_links_are_those_computed_by_hand() {
    assert_eq!(by_edge(HopValue::Up), [(0, 1, 5), (0, 2, 10), (1, 3, 5), (1, 4, 8)]);
    assert_eq!(by_edge(HopValue::Down), [(0, 1, 10), (0, 2, 30), (1, 3, 5), (1, 4, 12)]);
    assert_eq!(by_edge(HopValue::TwoWay), [(0, 1, 15), (0, 2, 40), (1, 3, 10), (1, 4, 20)]);
    assert_eq!(by_edge(HopValue::Wait), [(0, 1, 20), (0, 2, 0), (1, 3, 30), (1, 4, 0)]);
}

#[test]
fn times_inside_of_processes_are_told_apart_by_what_these_are() {
    let by = HopBy { process: true, kind: true, ..HopBy::default() };
    let scope = HopScope { value: HopValue::Inside, by, ..HopScope::default() };
    let inside = figures(scope.clone(), &[STREAM]);
    let told: BTreeMap<Rank, (HopRole, u64)> = inside
        .groups
        .iter()
        .map(|(key, one)| {
            let key = HopKey::of(*key, by);
            assert_eq!((key.parent, key.stream), (None, None));
            (key.process.expect("a process"), (key.role.expect("a role"), one.sum))
        })
        .collect();
    let wanted = BTreeMap::from([
        (0, (HopRole::FrontEnd, 5)),
        (1, (HopRole::Communication, 5)),
        (2, (HopRole::BackEnd, 60)),
        (3, (HopRole::BackEnd, 20)),
        (4, (HopRole::BackEnd, 40)),
    ]);
    assert_eq!(told, wanted);
    let roles = [HopRole::BackEnd].into();
    let by = HopBy { kind: true, ..HopBy::default() };
    let back_ends = figures(HopScope { roles, by, ..scope }, &[STREAM]);
    let sums: Vec<u64> = back_ends.groups.values().map(|one| one.sum).collect();
    assert_eq!(sums, [60 + 20 + 40]);
    assert_eq!(back_ends.counter(ScopeCounter::Read), 5);
    assert_eq!(back_ends.counter(ScopeCounter::Selected), 3);
}

#[test]
fn streams_and_processes_are_chosen_and_told_apart() {
    let by = HopBy { stream: true, ..HopBy::default() };
    let all = HopScope { value: HopValue::TwoWay, by, ..HopScope::default() };
    let sums = |scope: HopScope| -> Vec<(Option<u32>, u64)> {
        let figures = figures(scope, &[0, STREAM]);
        figures.groups.iter().map(|(key, one)| (HopKey::of(*key, by).stream, one.sum)).collect()
    };
    assert_eq!(sums(all.clone()), [(Some(0), 85), (Some(STREAM), 85)]);
    let chosen = HopScope { streams: [STREAM].into(), processes: RankSet::range(3, 4), ..all };
    assert_eq!(sums(chosen.clone()), [(Some(STREAM), 30)]);
    assert_eq!(sums(HopScope { at_least_ns: 11, ..chosen }), [(Some(STREAM), 20)]);
}

#[test]
fn the_largest_groups_are_kept_and_the_others_are_one() {
    let by = HopBy { edge: true, ..HopBy::default() };
    let reduction = ScopeReduction::Top { groups: 1 };
    let scope = HopScope { value: HopValue::Wait, by, reduction, ..HopScope::default() };
    let kept = figures(scope.clone(), &[STREAM]);
    let sums: Vec<(Rank, u64)> = kept.groups.iter().map(|(key, one)| (key.rank, one.sum)).collect();
    assert_eq!(sums, [(3, 30), (ScopeKey::OTHERS.rank, 20)]);
    assert_eq!(kept.counter(ScopeCounter::Folded), 0);
    // Bins are made but for sums only.
    let sketch =
        figures(HopScope { reduction: ScopeReduction::Sketch, ..scope.clone() }, &[STREAM]);
    let sums = figures(HopScope { reduction: ScopeReduction::Sums, ..scope }, &[STREAM]);
    let first = |figures: &ScopeFigures| figures.groups.values().next().cloned();
    let (sketch, sums) = (first(&sketch).expect("a group"), first(&sums).expect("a group"));
    assert_eq!((sketch.sum, sketch.quantile(500)), (20, 20));
    assert_eq!(sums.sum, 20);
    assert_ne!(sketch, sums);
}
