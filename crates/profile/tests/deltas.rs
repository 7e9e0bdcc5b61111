//! Rounds that travel as changes are the whole rounds, whatever becomes of the tree on the way.

use std::collections::BTreeMap;

use crate::harness::{program, round};
use proptest::prelude::*;
use sapwood_filter::{Emitter, Filter, Registry, WaveRef};
use sapwood_packet::{Packet, RankSet, Values, ValuesRef, Wave};
use sapwood_profile::{
    Counters, EventKey, PROFILE_CHANGES, REGION_NAME_BYTES_MAX, RankProfile, Round, RoundHistory,
    SizeClass, delta_base, register,
};

/// A tree of a front-end, some communication processes and one leaf for each rank.
struct Tree {
    front_end: Box<dyn Filter>,
    nodes: Vec<Box<dyn Filter>>,
    leaves: BTreeMap<u32, RoundHistory>,
    /// Bytes that have left the leaves, and bytes that have come to the front-end.
    from_leaves: usize,
    to_front_end: usize,
    /// The packets of the last round, of leaves and of processes.
    sent: Vec<Values>,
}

fn filter() -> Box<dyn Filter> {
    let registry = register(Registry::built_in());
    registry.make(PROFILE_CHANGES, ValuesRef::default()).expect("it was registered")
}

fn bytes(values: &Values) -> usize {
    values.as_ref().body().len()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    InnerNode,
    FrontEnd,
}

fn merged(filter: &mut dyn Filter, wave: Wave, place: Place, packets: &[Values]) -> Values {
    let packets: Vec<_> = packets.iter().map(|one| Packet::new(1, 100, one.clone())).collect();
    let packets: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, 1);
    let wave = WaveRef {
        stream: 1,
        wave,
        packets: &packets,
        contributors: contributors.as_ref(),
        rank: 7,
        is_root: place == Place::FrontEnd,
        children: 2,
        back_ends: 2,
    };
    let mut out = Emitter::new();
    filter.transform(&wave, &mut out).expect("rounds of different ranks");
    let (_, values) = out.emissions().next().expect("a wave becomes one packet");
    values.to_values()
}

impl Tree {
    fn new(nodes: usize) -> Self {
        Self {
            front_end: filter(),
            nodes: (0..nodes).map(|_| filter()).collect(),
            leaves: BTreeMap::new(),
            from_leaves: 0,
            to_front_end: 0,
            sent: Vec::new(),
        }
    }

    /// One round over these profiles, each below the process that `parent` gives, or lost.
    fn round(
        &mut self,
        wave: Wave,
        base: Option<Wave>,
        profiles: &[RankProfile],
        parent: impl Fn(u32) -> Option<usize>,
    ) -> Round {
        let mut below = vec![Vec::new(); self.nodes.len()];
        self.sent.clear();
        for profile in profiles {
            let history = self.leaves.entry(profile.mpi_rank).or_default();
            let own = round(std::slice::from_ref(profile));
            let values = history.encode(&own, base);
            history.keep(wave, base, own);
            if let Some(parent) = parent(profile.mpi_rank) {
                self.from_leaves += bytes(&values);
                self.sent.push(values.clone());
                below[parent].push(values);
            }
        }
        let mut packets = Vec::new();
        for (node, packet) in self.nodes.iter_mut().zip(below) {
            if !packet.is_empty() {
                packets.push(merged(node.as_mut(), wave, Place::InnerNode, &packet));
            }
        }
        if packets.is_empty() {
            return Round::default();
        }
        self.to_front_end += packets.iter().map(bytes).sum::<usize>();
        self.sent.extend_from_slice(&packets);
        let values = merged(self.front_end.as_mut(), wave, Place::FrontEnd, &packets);
        assert_eq!(delta_base(values.as_ref()), None, "the front-end gets whole rounds");
        Round::decode(values.as_ref()).expect("the filter's own packet")
    }

    /// How often the packets of the last round have a text.
    fn times_sent(&self, text: &str) -> usize {
        let times = |values: &Values| {
            let parts = values.as_ref().body().windows(text.len());
            parts.filter(|part| *part == text.as_bytes()).count()
        };
        self.sent.iter().map(times).sum()
    }
}

fn count_on(profiles: &mut [RankProfile], step: &[u8]) {
    for (profile, &step) in profiles.iter_mut().zip(step.iter().cycle()) {
        if step % 3 == 0 {
            let key = EventKey::Region(format!("r{}", step % 7));
            profile.events.entry(key).or_insert(Counters { count: 1, time_ns: 1, bytes: 0 });
        }
        for (at, counters) in profile.events.values_mut().enumerate() {
            if at % 4 == usize::from(step % 4) {
                *counters = counters.plus(Counters { count: 1, time_ns: step.into(), bytes: 0 });
            }
        }
    }
}

proptest! {
    /// Packets are lost and leaves change their parents from round to round. Whatever is covered
    /// is covered exactly; a round of the whole asks for nothing older and is complete.
    #[test]
    fn what_is_covered_is_exact_though_the_tree_changes(
        profiles in program(2..10),
        steps in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 1..10), 0_usize..3, any::<u32>()), 1..12),
    ) {
        let mut profiles = profiles;
        let mut tree = Tree::new(3);
        let mut base = None;
        let mut before = RankSet::new();
        for (wave, (step, shift, losses)) in (0..).zip(steps) {
            count_on(&mut profiles, &step);
            let lost = |rank: u32| losses >> (rank % 32) & 7 == 7;
            let found = tree.round(wave, base, &profiles, |rank| {
                (!lost(rank)).then_some((rank as usize + shift) % 3)
            });
            let covered: Vec<_> =
                profiles.iter().filter(|one| found.covered().contains(one.mpi_rank)).cloned()
                    .collect();
            if !covered.is_empty() {
                prop_assert_eq!(&found, &round(&covered));
            }
            if base.is_none() {
                let sent = profiles.iter().filter(|one| !lost(one.mpi_rank)).count();
                prop_assert_eq!(covered.len(), sent, "whole rounds need no base");
            }
            base = (*found.covered() == before && !before.is_empty()).then_some(wave);
            before = found.covered().clone();
        }
    }

    #[test]
    fn values_that_were_changed_make_no_reader_panic(
        profiles in program(1..3),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut history = RoundHistory::new();
        let mut profiles = profiles;
        history.keep(3, None, round(&profiles));
        count_on(&mut profiles, &[3, 4, 5]);
        let values = history.encode(&round(&profiles), Some(3));
        prop_assert_eq!(delta_base(values.as_ref()), Some(3));
        let (format, mut body) = values.into_parts();
        for (at, byte) in &changes {
            *at.get_mut(body.as_mut_bytes()) = *byte;
        }
        if let Ok(values) = ValuesRef::parse(format.as_ref(), body.as_bytes()) {
            let _ = history.decode(values);
        }
    }
}

/// A program of 64 ranks with 150 events, of which 12 go on: bytes of one round, whole and as
/// changes.
#[test]
fn bytes_of_a_round_are_printed_and_fewer() {
    let size_class = SizeClass::from_code(6).expect("a code of a size class");
    let mut profiles: Vec<_> = (0..64).map(|rank| RankProfile::new(rank, 64)).collect();
    for profile in &mut profiles {
        for id in 1..=150 {
            let counters = Counters { count: 9, time_ns: 1000 + u64::from(id), bytes: 64 };
            profile.events.insert(EventKey::Function { id, size_class }, counters);
        }
    }
    let mut tree = Tree::new(3);
    let mut told = Vec::new();
    for (wave, base) in [(0, None), (1, Some(0)), (2, Some(1))] {
        for profile in &mut profiles {
            for id in 1..=12 {
                let counters = profile.events.get_mut(&EventKey::Function { id, size_class });
                counters.expect("it was put there").count += 1;
            }
        }
        (tree.from_leaves, tree.to_front_end) = (0, 0);
        let found = tree.round(wave, base, &profiles, |rank| Some(rank as usize % 3));
        assert_eq!(found, round(&profiles));
        told.push((tree.from_leaves / 64, tree.to_front_end / 3));
    }
    let [whole, first, second] = told[..] else { panic!("three rounds") };
    println!(
        "bytes of a packet, 150 events of which 12 change: from a leaf {} whole, {} as a \
              change; from a process {} and {}",
        whole.0, first.0, whole.1, first.1
    );
    assert!(5 * first.0 < whole.0 && 5 * first.1 < whole.1, "{told:?}");
    assert_eq!(first, second);
}

#[test]
fn the_name_of_a_region_travels_with_the_first_round_that_has_it_and_with_no_later_one() {
    let [first, second] = ["a", "b"].map(|letter| letter.repeat(REGION_NAME_BYTES_MAX));
    let mut profiles: Vec<_> = (0..6).map(|rank| RankProfile::new(rank, 6)).collect();
    let mut tree = Tree::new(3);
    let mut told = Vec::new();
    for (wave, base) in [(0, None), (1, Some(0)), (2, Some(1)), (3, Some(2))] {
        let names = if wave < 2 { vec![&first] } else { vec![&first, &second] };
        for profile in &mut profiles {
            for &name in &names {
                let counters = profile.events.entry(EventKey::Region(name.clone())).or_default();
                *counters = counters.plus(Counters { count: 1, time_ns: 9, bytes: 0 });
            }
        }
        let found = tree.round(wave, base, &profiles, |rank| Some(rank as usize % 3));
        assert_eq!(found, round(&profiles));
        told.push([&first, &second].map(|name| tree.times_sent(name)));
    }
    // By six leaves and three processes.
    assert_eq!(told, [[9, 0], [0, 0], [0, 9], [0, 0]]);
}
