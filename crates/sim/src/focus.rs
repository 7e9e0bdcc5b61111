//! What a run is made of more than chance alone would have it: the rare combinations in which
//! faults of the engine have hidden.
//!
//! Three of eight seeds have no focus. The others are drawn as those are, and changed here from
//! numbers of their own, so that a seed without focus stays the run that it was.

use core::time::Duration;

use sapwood_filter::WaveRule;
use sapwood_node::Policy;
use sapwood_random::Random;
use sapwood_topology::Shape;

use crate::agenda::{MILLISECOND, Time};
use crate::scenario::{Kind, Members, Scenario, StreamPlan};
use crate::strike::{Cut, Strike, Target};
use crate::{Class, Faults, chance};

/// Packets are cut into chunks of this many bytes where chunks are the focus. Shorter bodies are
/// not shared with the kept frames, and would take another way than large packets do.
const CHUNK_BYTES: usize = 8 << 10;

/// What a seed has more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Focus {
    Nothing,
    /// Large arrays that are folded chunk by chunk, and communication processes that go meanwhile.
    Chunks,
    /// Processes that are cut off, replaced, and come back.
    Superseded,
    /// Stragglers: parts that arrive after their wave was forwarded.
    LateParts,
}

impl Focus {
    pub(crate) fn of(seed: u64) -> Self {
        match seed % 8 {
            0 | 4 => Self::Chunks,
            1 | 5 => Self::Superseded,
            6 => Self::LateParts,
            _ => Self::Nothing,
        }
    }

    /// Changes a run as it was drawn.
    pub(crate) fn apply(self, seed: u64, faults: Faults, scenario: &mut Scenario) {
        let mut draws = chance::of_seed(seed ^ 0x00f0_c050_f5ee_d000);
        match self {
            Self::Nothing => {}
            Self::Chunks => have_chunks(&mut draws, faults, scenario),
            Self::Superseded => have_superseded(&mut draws, faults, scenario),
            Self::LateParts => have_late_parts(&mut draws, faults, scenario),
        }
    }
}

/// Streams of large folded waves, one behind the other, and most faults while they flow.
fn have_chunks(draws: &mut Random, faults: Faults, scenario: &mut Scenario) {
    scenario.chunk_bytes = CHUNK_BYTES;
    if draws.one_in(2) {
        scenario.shape = deep_shape(draws);
    }
    scenario.duration = draws.between(20, 200) * MILLISECOND;
    scenario.streams.truncate(2);
    for plan in &mut scenario.streams {
        *plan = chunked(draws, scenario.duration);
    }
    // A chunk is slow, so that faults occur between chunks.
    scenario.speed.bytes_per_microsecond = *draws.choose(&[20, 20, 200, 1000]);
    scenario.cut_bytes = *draws.choose(&[2000, 8000, 70_000]);
    strike_at(draws, faults, Class::Crash, scenario);
}

fn chunked(draws: &mut Random, duration: Time) -> StreamPlan {
    let waves = draws.between(2, 8);
    StreamPlan {
        kind: *draws.choose(&[Kind::Sum, Kind::Max]),
        wave: match draws.below(8) {
            0 => WaveRule::Timeout { milliseconds: draws.between(2, 200) as u32 },
            _ => WaveRule::All,
        },
        policy: Policy::default(),
        window_bytes: *draws.choose(&[None, None, Some(4096), Some(65_536)]),
        members: Members::Everyone,
        length: *draws.choose(&[1500, 3000, 6000]),
        opens: 0,
        closes: None,
        waves,
        period: if draws.one_in(3) { 0 } else { 2 * duration / waves },
        skips: draws.one_in(8),
        broadcasts: alloc::vec::Vec::new(),
    }
}

/// Deep trees in which a communication process is cut off until its children have moved to its
/// parent, and comes back when that one is lost, too.
fn have_superseded(draws: &mut Random, faults: Faults, scenario: &mut Scenario) {
    match draws.below(8) {
        0..5 => scenario.shape = Shape::levels(&[2, 2]).unwrap_or_else(|_| deep_shape(draws)),
        5..7 => scenario.shape = deep_shape(draws),
        _ => {}
    }
    scenario.duration = draws.between(300, 900) * MILLISECOND;
    // What a process has sent is under way when it is cut off.
    if !draws.one_in(4) {
        scenario.speed.latency = 20 * MILLISECOND;
        scenario.speed.room_bytes = scenario.speed.room_bytes.max(65_536);
    }
    for plan in &mut scenario.streams {
        plan.opens = 0;
        plan.closes = None;
        plan.waves = plan.waves.max(60);
        plan.length = plan.length.min(100);
        plan.period = 2 * scenario.duration / plan.waves;
        if draws.one_in(2) {
            plan.wave = WaveRule::All;
            plan.policy = Policy::default();
        }
    }
    let recovery = &mut scenario.recovery;
    let silence = *draws.choose(&[100, 300]) * MILLISECOND;
    if recovery.is_on {
        recovery.silence = Duration::from_nanos(silence);
        recovery.grace = Duration::from_secs(10);
        recovery.orphan_limit = Duration::from_secs(3);
    }
    if !faults.has(Class::Partition) {
        return;
    }
    // Other faults would often end the processes of this scenario.
    if !draws.one_in(4) {
        scenario.strikes.clear();
    }
    for _ in 0..draws.between(1, 2) {
        let lasts = 2 * silence + draws.below(2 * silence);
        // Most when the tree has started, and packets flow.
        let at = scenario.duration / 4 + draws.below(scenario.duration / 2);
        let cut = Strike {
            class: Class::Partition,
            at,
            target: Target::Communication,
            lasts,
            is_abrupt: false,
            cut: *draws.choose(&[Cut::Split, Cut::Split, Cut::Random]),
        };
        scenario.strikes.push(cut);
        let class = *draws.choose(&[Class::Crash, Class::Reset]);
        if faults.has(class) && draws.one_in(2) {
            let at = at + lasts + draws.below(40 * MILLISECOND);
            scenario.strikes.push(Strike { class, at, target: Target::Parent, ..cut });
        }
        // A child that has moved to the parent dies there, before the others come back.
        if faults.has(Class::Crash) && !draws.one_in(4) {
            let gone = silence * 3 / 2;
            let at = cut.at + gone + draws.below(lasts - gone);
            let class = Class::Crash;
            scenario.strikes.push(Strike { class, at, target: Target::Left, ..cut });
        }
    }
}

/// Small waves that are forwarded without slow members, whose parts arrive late while communication
/// processes die.
fn have_late_parts(draws: &mut Random, faults: Faults, scenario: &mut Scenario) {
    scenario.shape = deep_shape(draws);
    scenario.duration = draws.between(100, 600) * MILLISECOND;
    scenario.recovery.grace = Duration::from_secs(10);
    // A late part is under way for longer than its wave takes to become safe.
    scenario.speed.latency = *draws.choose(&[1, 5]) * MILLISECOND;
    scenario.speed.room_bytes = scenario.speed.room_bytes.max(65_536);
    for plan in &mut scenario.streams {
        plan.wave = WaveRule::Timeout { milliseconds: draws.between(1, 20) as u32 };
        plan.policy = Policy::default();
        plan.length = plan.length.min(20);
        plan.opens = 0;
        plan.closes = None;
        plan.waves = draws.between(40, 120);
        plan.period = 2 * scenario.duration / plan.waves;
        // Packets that a back-end has held back arrive one after another.
        plan.window_bytes = Some(500);
    }
    for _ in 0..draws.between(2, 4) {
        let at = scenario.duration / 4 + draws.below(scenario.duration / 2);
        let lasts = draws.between(50, 300) * MILLISECOND;
        let stop = Strike {
            class: Class::Stop,
            at,
            target: Target::BackEnd,
            lasts,
            is_abrupt: true,
            cut: Cut::Random,
        };
        if !faults.has(Class::Stop) || !faults.has(Class::Crash) {
            continue;
        }
        scenario.strikes.push(stop);
        let at = at + lasts + draws.below(40 * MILLISECOND);
        let target = *draws.choose(&[Target::Parent, Target::Parent, Target::Communication]);
        scenario.strikes.push(Strike { class: Class::Crash, at, target, ..stop });
    }
}

fn deep_shape(draws: &mut Random) -> Shape {
    let levels: &[u32] =
        draws.choose::<&[u32]>(&[&[2, 2], &[1, 2, 2], &[2, 2, 2], &[3, 3], &[1, 1, 3], &[2, 4]]);
    Shape::levels(levels).unwrap_or_else(|_| Shape::flat(2).expect("two are few"))
}

/// One to three more faults of a class that may happen, mostly at communication processes.
fn strike_at(draws: &mut Random, faults: Faults, class: Class, scenario: &mut Scenario) {
    if !faults.has(class) {
        return;
    }
    for _ in 0..draws.between(1, 3) {
        let target = match draws.below(8) {
            0 => Target::BackEnd,
            1 => Target::Relative,
            _ => Target::Communication,
        };
        scenario.strikes.push(Strike {
            class,
            at: draws.below(scenario.duration + 40 * MILLISECOND),
            target,
            lasts: draws.below(*draws.clone().choose(&[100, 1000, 6000]) * MILLISECOND),
            is_abrupt: draws.one_in(2),
            cut: Cut::Random,
        });
    }
}
