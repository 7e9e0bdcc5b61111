//! What is found is the same whether collectives whose processes are all at one leaf are settled
//! there, or all of them at the front-end.

use proptest::prelude::*;
use sapwood_trace::{
    Beside, Circumstances, Counter, ENTRIES_MAX, Event, EventKind, FileClock, Findings, Gathered,
    HostClock, LateTimes, Ledger, Observer, Pattern, Space,
};

const SUM: u32 = 17;
const BROADCAST: u32 = 21;
const REDUCE: u32 = 22;
const NEIGHBOURS: u32 = 23;
const WAIT: u32 = 515;

/// The process that settles collectives whose processes are all at one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settler {
    Leaf,
    FrontEnd,
}

/// In what a collective is not like others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Oddness {
    None,
    /// The first process called another function.
    Mixed,
    /// The first process gave another amount.
    Unequal,
    /// What the first process did is not known.
    Missing,
    /// It was started, and completed in another call.
    Started,
    /// The same, and the first process did not complete it.
    NotCompleted,
}

/// One collective of a program.
#[derive(Clone, Debug)]
struct Step {
    communicator: usize,
    function: u32,
    oddness: Oddness,
    root: u32,
    /// By rank: when it comes, and in which round that is read.
    arrivals: Vec<(u64, usize)>,
}

/// A job, and the leaves at which its ranks are.
#[derive(Clone, Copy, Debug)]
struct Job {
    ranks: u32,
    ranks_per_leaf: u32,
    /// By how much the clocks of leaves may be off; none where all share one.
    clock_error: Option<u64>,
}

/// An event of a rank that is read in a round.
struct Seen {
    round: usize,
    about: Circumstances,
    event: Event,
}

fn steps(ranks: usize) -> impl Strategy<Value = Vec<Step>> {
    let oddness = prop_oneof![
        6 => Just(Oddness::None),
        1 => Just(Oddness::Mixed),
        1 => Just(Oddness::Unequal),
        1 => Just(Oddness::Missing),
        2 => Just(Oddness::Started),
        1 => Just(Oddness::NotCompleted),
    ];
    let function = prop::sample::select(vec![SUM, SUM, BROADCAST, REDUCE, NEIGHBOURS]);
    let arrivals = prop::collection::vec((0_u64..1_000, 0_usize..3), ranks);
    let step = (0_usize..4, function, oddness, 0_u32..8, arrivals).prop_map(
        |(communicator, function, oddness, root, arrivals)| Step {
            communicator,
            function,
            oddness,
            root,
            arrivals,
        },
    );
    prop::collection::vec(step, 1..30)
}

const fn pattern(function: u32) -> Pattern {
    match function {
        BROADCAST => Pattern::FromRoot,
        REDUCE => Pattern::ToRoot,
        NEIGHBOURS => Pattern::Unknown,
        _ => Pattern::All,
    }
}

impl Job {
    /// The ranks of a communicator with this one among them: all, those of the leaf, those of two
    /// leaves, or each second one.
    fn members(&self, communicator: usize, rank: u32) -> Vec<u32> {
        let leaf = |rank: u32| rank / self.ranks_per_leaf;
        let is_beside = |other: u32| match communicator {
            0 => true,
            1 => leaf(other) == leaf(rank),
            2 => leaf(other) / 2 == leaf(rank) / 2,
            _ => other % 2 == rank % 2,
        };
        (0..self.ranks).filter(|&other| is_beside(other)).collect()
    }

    /// What each rank does in a step that is the collective of this number on its communicators.
    fn events(&self, step: &Step, number: u32, base: u64) -> Vec<Seen> {
        let mut all = Vec::new();
        for rank in 0..self.ranks {
            let members = self.members(step.communicator, rank);
            let is_odd = members[0] == rank;
            if is_odd && step.oddness == Oddness::Missing {
                continue;
            }
            let own = members.iter().position(|&one| one == rank).expect("it is among them");
            let size = u32::try_from(members.len()).expect("few");
            let identity = 100 * step.communicator as u64 + u64::from(members[0]);
            let space = Space { identity, size, rank: own as u32, ..Space::default() };
            let is_mixed = is_odd && step.oddness == Oddness::Mixed;
            let function = step.function + u32::from(is_mixed) * 10;
            let about = |function: u32| Circumstances {
                rank,
                space,
                event: function << 8,
                procedure: function,
                pattern: pattern(step.function),
                beside: Beside::Nothing,
            };
            let is_started = matches!(step.oddness, Oddness::Started | Oddness::NotCompleted);
            let bytes = if is_odd && step.oddness == Oddness::Unequal { 72 } else { 80 };
            let (late, round) = step.arrivals[rank as usize];
            let kind = match is_started {
                true => EventKind::CollectiveStarted,
                false => EventKind::Collective,
            };
            let event = Event {
                time: base + late,
                span: 1_500 - late,
                function,
                space: 0,
                kind,
                members: 0,
                sequence: number,
                peer: (step.root % size).cast_signed(),
                tag: bytes + 1,
            };
            all.push(Seen { round, about: about(function), event });
            if is_started && !(is_odd && step.oddness == Oddness::NotCompleted) {
                let time = base + late + 300;
                let kind = EventKind::CollectiveCompleted;
                let event = Event { time, function: WAIT, kind, ..event };
                let round = round + usize::from(late % 2 == 0);
                all.push(Seen { round, about: about(WAIT), event });
            }
        }
        all
    }

    fn clock(&self, leaf: usize) -> HostClock {
        let clock = FileClock { ticks: 0, ns: 0, scale: 1 << 32, is_cycles: true };
        let Some(error) = self.clock_error else { return HostClock::shared(clock) };
        let mut clock = HostClock::of_host(clock, leaf as u32 + 1);
        clock.set_offset(leaf as i64 * 7, error);
        clock
    }

    /// What is found, and how many instances the leaves have sent up.
    fn find(&self, events: &[Seen], settler: Settler, turn: usize) -> (Findings, usize) {
        let leaves = self.ranks.div_ceil(self.ranks_per_leaf) as usize;
        let observer = match settler {
            Settler::Leaf => Observer::default(),
            Settler::FrontEnd => Observer::settling_nothing(),
        };
        let mut observers = vec![observer; leaves];
        let mut ledger = Ledger::default();
        let mut sent = 0;
        let last = events.iter().map(|one| one.round).max().unwrap_or(0);
        for round in 0..=last + 2 {
            let settled = ledger.take_settled(usize::MAX);
            let mut all = Vec::new();
            for (leaf, observer) in observers.iter_mut().enumerate() {
                let clock = self.clock(leaf);
                settled.iter().for_each(|one| observer.settle(one, &clock));
                for seen in events.iter().filter(|one| one.round == round) {
                    if (seen.about.rank / self.ranks_per_leaf) as usize == leaf {
                        observer.observe(&seen.event, &seen.about, &clock);
                    }
                }
                let gathered = observer.take();
                sent += gathered.instances.len();
                all.push(Gathered::decode(gathered.encode().as_ref()).expect("just written"));
            }
            ledger.absorb(merged(all, turn + round));
        }
        (ledger.close(), sent)
    }
}

/// Merged in an order and in pairs that depend on `turn`.
fn merged(mut all: Vec<Gathered>, turn: usize) -> Gathered {
    while all.len() > 1 {
        let count = all.len();
        all.rotate_left(turn % count);
        if turn.is_multiple_of(2) {
            all.reverse();
        }
        let one = all.pop().expect("there are two");
        let place = turn / 2 % all.len();
        all[place].merge(one);
        let written = all[place].encode();
        all[place] = Gathered::decode(written.as_ref()).expect("just written");
    }
    all.pop().unwrap_or_default()
}

fn program(job: &Job, steps: &[Step]) -> Vec<Seen> {
    let mut numbers = [0; 4];
    let mut events = Vec::new();
    for (step, base) in steps.iter().zip((1_u64..).map(|step| step * 10_000)) {
        numbers[step.communicator] += 1;
        events.extend(job.events(step, numbers[step.communicator], base));
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn findings_are_the_same_whoever_settles_and_in_whichever_order_they_are_merged(
        steps in steps(8),
        ranks in 1_u32..9,
        ranks_per_leaf in 1_u32..9,
        clock_error in prop::option::of(0_u64..400),
        turn in 0_usize..24,
    ) {
        let job = Job { ranks, ranks_per_leaf, clock_error };
        let events = program(&job, &steps);
        let (wanted, all_sent) = job.find(&events, Settler::FrontEnd, 0);
        let (found, sent) = job.find(&events, Settler::Leaf, turn);
        prop_assert_eq!(&found, &wanted);
        prop_assert!(sent <= all_sent);
        let (again, _) = job.find(&events, Settler::FrontEnd, turn);
        prop_assert_eq!(&again, &wanted);
    }
}

#[test]
fn of_collectives_of_one_leaf_only_those_go_up_of_which_there_is_more_to_tell() {
    let step = |function: u32, oddness: Oddness| {
        let arrivals = vec![(10, 0), (700, 0), (20, 0), (30, 0)];
        // Rank 1 comes late: the root that others wait for, or one for which the root waits.
        let root = u32::from(function != REDUCE);
        Step { communicator: 0, function, oddness, root, arrivals }
    };
    let job = Job { ranks: 4, ranks_per_leaf: 4, clock_error: None };
    let sent = |one: Step| {
        let (found, sent) = job.find(&program(&job, &[one]), Settler::Leaf, 0);
        (sent, found.collectives, found.made.get(&1).map_or(0, |made| made.last))
    };
    for function in [SUM, BROADCAST, REDUCE] {
        assert_eq!(sent(step(function, Oddness::None)), (0, 1, 1), "function {function}");
    }
    assert_eq!(sent(step(SUM, Oddness::Started)), (0, 1, 1));
    assert_eq!(sent(step(SUM, Oddness::Mixed)), (1, 1, 0));
    assert_eq!(sent(step(SUM, Oddness::Unequal)), (1, 1, 1));
    assert_eq!(sent(step(SUM, Oddness::Missing)), (1, 0, 0));
    assert_eq!(sent(step(NEIGHBOURS, Oddness::None)), (1, 0, 0));
}

#[test]
fn what_a_packet_has_no_room_for_is_left_out_where_ranks_were_least_late() {
    let mut gathered = Gathered::default();
    let entries = ENTRIES_MAX as u32 + 5;
    for rank in 0..entries {
        let sum_ns = u64::from(entries - rank);
        let times = LateTimes { times: 1, sum_ns };
        gathered.add_late(((7, SUM), rank, 3), &times);
    }
    gathered.bound();
    assert_eq!(gathered.late.len(), ENTRIES_MAX);
    assert_eq!(gathered.counters[Counter::LeftOut as usize], 5);
    assert!(gathered.late.contains_key(&((7, SUM), 0, 3)));
    assert!(!gathered.late.contains_key(&((7, SUM), entries - 1, 3)));
}

#[test]
fn what_all_have_left_far_behind_is_given_up_and_its_leaves_are_told() {
    let job = Job { ranks: 2, ranks_per_leaf: 1, clock_error: None };
    let step = |oddness: Oddness| {
        let arrivals = vec![(10, 0), (20, 0)];
        Step { communicator: 0, function: SUM, oddness, root: 0, arrivals }
    };
    for settler in [Settler::Leaf, Settler::FrontEnd] {
        let mut ledger = Ledger::default();
        let mut take = |oddness: Oddness, number: u32| {
            let mut observer = match settler {
                Settler::Leaf => Observer::default(),
                Settler::FrontEnd => Observer::settling_nothing(),
            };
            for seen in job.events(&step(oddness), number, 1_000) {
                observer.observe(&seen.event, &seen.about, &job.clock(0));
            }
            ledger.absorb(observer.take());
            let told: Vec<u32> = ledger.take_settled(9).iter().map(|one| one.key.1).collect();
            (ledger.findings().incomplete, ledger.findings().unfinished.len(), told)
        };
        assert_eq!(take(Oddness::Missing, 10), (0, 1, vec![]));
        let whole = |number: u32| match settler {
            Settler::Leaf => vec![],
            Settler::FrontEnd => vec![number],
        };
        let near = 10 + (1 << 17);
        assert_eq!(take(Oddness::None, near), (0, 1, whole(near)));
        let far = near + 1;
        assert_eq!(take(Oddness::None, far), (1, 0, [whole(far), vec![10]].concat()));
    }
}
