//! The scenario of a run: a tree, its links, its streams and faults, all drawn from the seed.

use alloc::vec::Vec;
use core::time::Duration;

use sapwood_filter::WaveRule;
use sapwood_memory_network::Speed;
use sapwood_node::{Policy, Recovery};
use sapwood_random::Random;
use sapwood_topology::Shape;
use sapwood_wire::limits::CHUNK_BYTES;

use crate::agenda::{MICROSECOND, MILLISECOND, SECOND, Time};
use crate::strike::{Strike, draw_strikes};
use crate::{Class, Faults, chance};

/// What a stream computes on its way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sum,
    Max,
    Average,
    Statistics,
    Concatenate,
    Equivalence,
    /// Every packet arrives as it was sent.
    None,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Sum,
        Self::Max,
        Self::Average,
        Self::Statistics,
        Self::Concatenate,
        Self::Equivalence,
        Self::None,
    ];

    /// The filter's name; none for no filter.
    pub(crate) fn filter(self) -> Option<&'static str> {
        match self {
            Self::Sum => Some("sum"),
            Self::Max => Some("max"),
            Self::Average => Some("average"),
            Self::Statistics => Some("statistics"),
            Self::Concatenate => Some("concatenate"),
            Self::Equivalence => Some("equivalence"),
            Self::None => None,
        }
    }
}

/// Which back-ends a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    Everyone,
    /// Each with the chance of one half, and at least one.
    Some,
    /// Those from one rank to another, by eighths of all.
    Part(u64, u64),
}

/// A stream as it is planned.
#[derive(Clone, Debug)]
pub(crate) struct StreamPlan {
    pub(crate) kind: Kind,
    pub(crate) wave: WaveRule,
    pub(crate) policy: Policy,
    pub(crate) window_bytes: Option<u32>,
    pub(crate) members: Members,
    /// How many numbers a packet has; 0 for one that is no array.
    pub(crate) length: usize,
    /// When it opens, counted from when the tree is ready.
    pub(crate) opens: Time,
    /// When it closes, if before the end.
    pub(crate) closes: Option<Time>,
    /// How many waves each back-end sends in, and how long it rests between them.
    pub(crate) waves: u64,
    pub(crate) period: Time,
    /// Whether back-ends leave waves out.
    pub(crate) skips: bool,
    /// Downward packets: when, counted from the opening, and whether to some members only.
    pub(crate) broadcasts: Vec<(Time, bool)>,
}

impl StreamPlan {
    /// About how many bytes the values of a packet take.
    pub(crate) fn packet_bytes(&self) -> usize {
        8 + 8 * self.length
    }
}

/// Everything that a run is.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) shape: Shape,
    pub(crate) speed: Speed,
    /// Most bytes that one read or write moves.
    pub(crate) cut_bytes: usize,
    /// What a process takes for one input.
    pub(crate) input_cost: Time,
    /// Within how long started processes begin.
    pub(crate) start_spread: Time,
    /// How many eighths of the back-ends that attach by themselves do so late.
    pub(crate) late_eighths: u64,
    pub(crate) streams: Vec<StreamPlan>,
    /// The approximate duration of the streams' work.
    pub(crate) duration: Time,
    /// Most deliveries that the front-end's application takes in one turn.
    pub(crate) taken_at_once: usize,
    pub(crate) strikes: Vec<Strike>,
    pub(crate) recovery: Recovery,
    /// Longer packets are cut into chunks of this many bytes.
    pub(crate) chunk_bytes: usize,
}

impl Scenario {
    /// The run of a seed.
    pub(crate) fn draw(chance: &mut Random, faults: Faults, recovers: bool) -> Self {
        let shape = draw_shape(&mut chance::split(chance), faults);
        let mut draws = chance::split(chance);
        let mut speed = draw_speed(&mut draws);
        let duration = draws.between(20, 800) * MILLISECOND;
        let streams = draw_streams(&mut draws, &shape, duration);
        let volume: usize = streams.iter().map(|plan| plan.waves as usize * volume_of(plan)).sum();
        let volume = volume * shape.node_count() as usize;
        // Byte by byte, much would take as many events.
        let share = |plan| plan_share(plan, &shape);
        speed.let_pass(streams.iter().map(|plan| plan.waves * share(plan)).sum(), SETTLE_MAX / 4);
        let cuts = [7, 64, 300, 4096, 70_000].map(|cut| cut.max(volume / 40_000));
        let strikes = draw_strikes(&mut chance::split(chance), faults, duration, recovers);
        Self {
            cut_bytes: *draws.choose(&cuts),
            input_cost: *draws.choose(&[MICROSECOND, 5 * MICROSECOND, 40 * MICROSECOND]),
            start_spread: *draws.choose(&[MICROSECOND, MILLISECOND, 20 * MILLISECOND]),
            late_eighths: if faults.has(Class::Join) { draws.below(5) } else { 0 },
            taken_at_once: *draws.choose(&[1, 8, 1000]),
            recovery: if recovers { draw_recovery(&mut draws) } else { Recovery::off() },
            shape,
            speed,
            streams,
            duration,
            strikes,
            chunk_bytes: CHUNK_BYTES,
        }
    }
}

fn volume_of(plan: &StreamPlan) -> usize {
    plan.packet_bytes() + 64
}

/// At most about how many bytes of a wave go over one of the front-end's links.
fn plan_share(plan: &StreamPlan, shape: &Shape) -> u64 {
    let is_folded = !matches!(plan.kind, Kind::None | Kind::Concatenate | Kind::Equivalence);
    let back_ends = if is_folded { 1 } else { shape.back_end_count() };
    u64::from(back_ends) * volume_of(plan) as u64
}

/// Mostly small trees, where a strike meets something; a few of some hundred processes.
fn draw_shape(draws: &mut Random, faults: Faults) -> Shape {
    let nodes_max = match draws.below(40) {
        0 => 300,
        1..8 => 80,
        _ => 20,
    };
    let depth = draws.between(1, 5) as usize;
    let same = *draws.choose(&[1, 2, 2, 3, 8, 0, 0]);
    let mut levels: Vec<u32> = Vec::new();
    let (mut nodes, mut width) = (1, 1);
    while levels.len() < depth {
        let fan_out = if same == 0 { *draws.choose(&[1, 2, 3, 4, 8]) } else { same };
        if nodes + width * fan_out > nodes_max && !levels.is_empty() {
            break;
        }
        width *= fan_out;
        nodes += width;
        levels.push(fan_out);
    }
    let shape = Shape::levels(&levels).unwrap_or_else(|_| Shape::flat(2).expect("two are few"));
    if faults.has(Class::Join) && draws.one_in(2) {
        let per_leaf = draws.between(1, 3) as u32;
        return shape.clone().accepting(per_leaf).unwrap_or(shape);
    }
    shape
}

fn draw_speed(draws: &mut Random) -> Speed {
    let latency = *draws.choose(&[5, 50, 50, 500, 3000]) * MICROSECOND;
    Speed {
        latency,
        jitter: latency * draws.between(0, 3),
        bytes_per_microsecond: *draws.choose(&[20, 1000, 10_000]),
        room_bytes: *draws.choose(&[300, 8192, 65_536, 200_000]),
    }
}

fn draw_streams(draws: &mut Random, shape: &Shape, duration: Time) -> Vec<StreamPlan> {
    // So that a run of many processes takes about as long as one of few.
    let waves_max = (6000 / u64::from(shape.node_count())).clamp(6, 120);
    let count = draws.between(1, 4);
    (0..count).map(|_| draw_stream(draws, duration, waves_max, shape)).collect()
}

fn draw_stream(draws: &mut Random, duration: Time, waves_max: u64, shape: &Shape) -> StreamPlan {
    let kind = *draws.choose(&Kind::ALL);
    let wave = match draws.below(4) {
        0 => WaveRule::Immediate,
        1 => WaveRule::Timeout { milliseconds: draws.between(2, 200) as u32 },
        _ => WaveRule::All,
    };
    let takes_arrays = matches!(kind, Kind::Sum | Kind::Max | Kind::None | Kind::Concatenate);
    let length = match draws.below(24) {
        0 if takes_arrays && shape.node_count() <= 20 => 40_000,
        0..3 if takes_arrays => 2000,
        3..10 if takes_arrays => draws.between(1, 100) as usize,
        _ => 0,
    };
    // The memory of stragglers is bounded: large late packets are dropped.
    let length = if matches!(wave, WaveRule::Timeout { .. }) { length.min(2000) } else { length };
    // Where nothing is folded, large packets of all would take slow links longer than a run has.
    let is_folded = !matches!(kind, Kind::None | Kind::Concatenate | Kind::Equivalence)
        && wave != WaveRule::Immediate;
    let length = if is_folded { length } else { length.min(20_000) };
    let waves = match length {
        20_000 => draws.between(1, 2),
        40_000 => draws.between(1, 6),
        2000 => draws.between(1, waves_max.min(20)),
        _ => draws.between(1, waves_max),
    };
    let window_bytes = *draws.choose(&[None, Some(500), Some(4096), Some(65_536)]);
    let opens = if draws.one_in(2) { 0 } else { draws.below(duration / 2) };
    let period = if draws.one_in(4) { 0 } else { 2 * (duration - opens) / waves };
    let closes = draws.one_in(6).then(|| opens + draws.below(duration));
    let broadcasts = draws.below(8) * draws.below(4);
    StreamPlan {
        kind,
        wave,
        policy: if draws.one_in(5) { Policy::DropOldest } else { Policy::default() },
        window_bytes,
        members: match draws.below(4) {
            0 => Members::Some,
            1 => Members::Part(draws.below(4), draws.between(4, 8)),
            _ => Members::Everyone,
        },
        length,
        opens,
        closes,
        waves,
        period,
        skips: draws.one_in(5),
        broadcasts: (0..broadcasts).map(|_| (draws.below(duration), draws.one_in(3))).collect(),
    }
}

/// No term may matter for what is answered, only for when; so they are anything.
fn draw_recovery(draws: &mut Random) -> Recovery {
    let milliseconds = |number| Duration::from_millis(number);
    Recovery {
        is_on: true,
        orphan_limit: milliseconds(*draws.choose(&[300, 1000, 3000])),
        grace: milliseconds(*draws.choose(&[50, 1000, 10_000])),
        silence: milliseconds(*draws.choose(&[0, 300, 300, 5000])),
        front_end_wait: Duration::ZERO,
    }
}

/// Long enough for everything that has a deadline to have passed it, several times over.
pub(crate) const SETTLE_MAX: Time = 120 * SECOND;
/// Long enough for every process to end after the network has.
pub(crate) const ENDING_MAX: Time = 60 * SECOND;
