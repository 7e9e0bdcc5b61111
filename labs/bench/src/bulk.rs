//! `sapwood bench bulk`: large arrays down to every back-end and up from all of them, beside plain
//! sockets.
//!
//! Owns the command line, which cases there are and what is said of them. `bulk_tree` is the
//! front-end's side of each transfer, `bulk_leaf` the back-end's. The floor stores and forwards the
//! same bytes over as many hops of plain blocking sockets (`labs/floor/src/bulk.rs`); the two take
//! turns, and a ratio is taken within each pair of neighbours in time, as everywhere in these
//! benchmarks.

use sapwood_floor::statistics::{Spread, ratio};
use sapwood_floor::{BULK_PACKET_BYTES_MAX, Floor, Load, Shape, Transport as FloorTransport};

use super::bulk_tree::{BulkTree, Cost, WINDOW_BYTES, levels_of};
use super::facts::{Bar, Facts, look, named};
use super::floor_failure::of_floor;
use super::pairs::turns;
use super::plan::Transport;
use super::progress::Progress;
use super::streams;
use sapwood_command_line::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-bulk/1";

/// A tree reaches at least this share of what plain sockets do.
const RATE: Bar = Bar::Least(0.8);

/// Most resident memory of a communication process, in MiB.
const PEAK: Bar = Bar::Most(64.0);

/// Longest time for 1,000 streams, in seconds.
const STREAMS: Bar = Bar::Most(1.0);

/// Bytes of a packet where an array is sent as many of them.
const PACKET_BYTES: usize = 1 << 20;

/// Bytes of a packet of the floor where the same packets are summed again and again.
const FLOOR_SUM_BYTES: usize = 256 << 10;

const MIB: f64 = 1024.0 * 1024.0;
const RUNS_MAX: usize = 101;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Case {
    /// One packet down to every back-end.
    #[value(name = "broadcast")]
    Broadcast,
    /// The same bytes in packets of 1 MiB.
    #[value(name = "broadcast_packets")]
    BroadcastPackets,
    /// One packet from every back-end, each as it is, to the front-end.
    #[value(name = "gather")]
    Gather,
    /// The same bytes in packets of 1 MiB.
    #[value(name = "gather_packets")]
    GatherPackets,
    /// One packet from every back-end, of which one sum arrives.
    #[value(name = "reduce")]
    Reduce,
    /// Not large, but many: streams that are opened, with one wave on each.
    #[value(name = "streams")]
    Streams,
}

const CASES: [Case; 5] =
    [Case::Broadcast, Case::BroadcastPackets, Case::Gather, Case::GatherPackets, Case::Reduce];

impl Case {
    /// As on the command line.
    fn name(self) -> String {
        named(self)
    }

    fn label(self) -> &'static str {
        match self {
            Self::Broadcast => "one packet down to every back-end",
            Self::BroadcastPackets => "packets of 1 MiB down to every back-end",
            Self::Gather => "one packet from every back-end, as it is",
            Self::GatherPackets => "packets of 1 MiB from every back-end, as they are",
            Self::Reduce => "one packet from every back-end, summed",
            Self::Streams => "streams opened, and one wave on each",
        }
    }

    pub(super) fn load(self, bytes: usize) -> Load {
        let is_whole = !matches!(self, Self::BroadcastPackets | Self::GatherPackets);
        let packet_bytes = if is_whole { bytes } else { PACKET_BYTES.min(bytes) };
        Load { packet_bytes, packets: (bytes / packet_bytes) as u64 }
    }
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Fan-out of each level.
    #[arg(long, value_name = "SHAPE", default_value = "2x2")]
    topology: Shape,
    /// What links are made of; they are not encrypted.
    #[arg(long, value_name = "KIND", default_value = "unix")]
    transport: Transport,
    /// Length of the array in MiB; with the gathers every back-end sends one.
    #[arg(long, value_name = "N", default_value_t = 256)]
    mib: usize,
    /// Number of pairs of runs, of Sapwood and of the baseline, for each figure.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Streams that are opened with one wave on each.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    streams: u32,
    /// Only these cases, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Case>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// Measures what is asked for.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let Arguments { topology, transport, mib, runs, .. } = arguments;
    if !(1..=streams::STREAMS_MAX).contains(&arguments.streams) {
        let (most, given) = (streams::STREAMS_MAX, arguments.streams);
        return Err(Failure::usage(format!("--streams {given}: give a number from 1 to {most}")));
    }
    let mib_max = BULK_PACKET_BYTES_MAX >> 20;
    if !(1..=mib_max).contains(mib) {
        return Err(Failure::usage(format!("--mib {mib}: give a number from 1 to {mib_max}")));
    }
    if !(1..=RUNS_MAX).contains(runs) {
        return Err(Failure::usage(format!("--runs {runs}: give a number from 1 to {RUNS_MAX}")));
    }
    let title = format!("{mib} MiB in bulk, {topology} over {transport}, not encrypted");
    let mut facts = Facts::new(SCHEMA, title);
    facts.setting("topology", topology.to_string());
    facts.setting("transport", transport.to_string());
    facts.setting("bytes", mib << 20);
    facts.setting("runs", *runs);
    facts.setting("window_bytes", WINDOW_BYTES);
    let mut progress = Progress::new();
    let wants = |case| arguments.only.is_empty() || arguments.only.contains(&case);
    for case in CASES.into_iter().filter(|case| wants(*case)) {
        one_case(case, arguments, &mut facts, &mut progress)?;
    }
    if wants(Case::Streams) {
        many_streams(arguments, &mut facts, &mut progress)?;
    }
    Ok(facts)
}

/// Opens many streams, each run on a tree of its own.
fn many_streams(
    arguments: &Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let case = Case::Streams;
    let shape = levels_of(&arguments.topology)?;
    let mut seconds = Vec::new();
    for run in 0..arguments.runs {
        progress.say(case.label(), run, arguments.runs);
        let time = streams::created_and_used(&shape, arguments.transport, arguments.streams)?;
        seconds.push(time.as_secs_f64());
    }
    let spread = Spread::of(&seconds).ok_or_else(|| Failure::own(&"no streams were opened"))?;
    facts.heading(case.label());
    facts.number("streams.count", look("streams", "", 0), f64::from(arguments.streams), None);
    facts.spread("streams.seconds", look("opened, and answered", "s", 3), &spread, Some(STREAMS));
    Ok(())
}

fn one_case(
    case: Case,
    arguments: &Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let bytes = arguments.mib << 20;
    let transport = match arguments.transport {
        // The floor has no shared memory: what it saves is to be seen.
        Transport::Unix | Transport::Shm => FloorTransport::Unix,
        Transport::Tcp => FloorTransport::Tcp,
    };
    let mut floor =
        Floor::start(arguments.topology.fan_outs(), transport, None).map_err(of_floor)?;
    let mut tree = BulkTree::open(&arguments.topology, arguments.transport)?;
    // Neither first transfer counts: leaves make there what they send.
    transfer_by_floor(&mut floor, case, bytes)?;
    tree.transfer(case, bytes)?;
    tree.forget_peaks();
    let mut costs = Costs::default();
    let entrants = if case == Case::Reduce { 3 } else { 2 };
    for run in 0..arguments.runs {
        progress.say(case.label(), run, arguments.runs);
        for which in turns(run, entrants) {
            match which {
                0 => costs.floor.push(transfer_by_floor(&mut floor, case, bytes)?),
                1 => costs.tree.push(tree.transfer(case, bytes)?),
                _ => costs.reused.push(reduce_in_place(&mut floor, bytes)?),
            }
        }
    }
    let peak = tree.peak_bytes()? / MIB;
    tree.close()?;
    say(case, arguments, &costs, peak, facts)
}

/// What the transfers of one case took.
#[derive(Default)]
struct Costs {
    tree: Vec<Cost>,
    floor: Vec<Cost>,
    /// The floor of sums that are not kept.
    reused: Vec<Cost>,
}

fn say(
    case: Case,
    arguments: &Arguments,
    costs: &Costs,
    peak_mib: f64,
    facts: &mut Facts,
) -> Result<(), Failure> {
    let senders = match case {
        Case::Gather | Case::GatherPackets => arguments.topology.leaves(),
        _ => 1,
    };
    let mib = (arguments.mib * senders) as f64;
    let rates = |costs: &[Cost]| costs.iter().map(|cost| mib / cost.seconds).collect::<Vec<_>>();
    let cpu = |costs: &[Cost]| {
        costs.iter().map(|cost| cost.cpu_nanoseconds / 1e3 / mib).collect::<Vec<_>>()
    };
    let (rate, floor_rate, cost, floor_cost) =
        (rates(&costs.tree), rates(&costs.floor), cpu(&costs.tree), cpu(&costs.floor));
    facts.heading(case.label());
    let mut add = |figure: &str, look, spread: Option<Spread>, bar| {
        let spread = spread.ok_or_else(|| Failure::own(&"a transfer took no time"))?;
        facts.spread(&format!("{}.{figure}", case.name()), look, &spread, bar);
        Ok::<(), Failure>(())
    };
    add("mib_per_s", look("rate", "MiB/s", 0), Spread::of(&rate), None)?;
    let label = look("rate of the baseline", "MiB/s", 0);
    add("floor_mib_per_s", label, Spread::of(&floor_rate), None)?;
    let share = look("rate, ratio to baseline", "", 2);
    add("ratio_to_floor", share, ratio(&rate, &floor_rate), Some(RATE))?;
    add("cpu_us_per_mib", look("CPU per MiB", "us", 0), Spread::of(&cost), None)?;
    let share = look("CPU, ratio to baseline", "", 2);
    add("cpu_ratio_to_floor", share, ratio(&cost, &floor_cost), None)?;
    if !costs.reused.is_empty() {
        let reused = rates(&costs.reused);
        let label = look("rate of a baseline that keeps no sum", "MiB/s", 0);
        add("reused_floor_mib_per_s", label, Spread::of(&reused), None)?;
        let share = look("rate, ratio to that baseline", "", 2);
        add("ratio_to_reused_floor", share, ratio(&rate, &reused), None)?;
    }
    let label = look("most memory of a communication process", "MiB", 1);
    facts.number(&format!("{}.peak_rss_mib", case.name()), label, peak_mib, Some(PEAK));
    Ok(())
}

fn transfer_by_floor(floor: &mut Floor, case: Case, bytes: usize) -> Result<Cost, Failure> {
    let before = floor.cpu_nanoseconds().map_err(of_floor)?;
    let load = case.load(bytes);
    let seconds = match case {
        Case::Broadcast | Case::BroadcastPackets => {
            floor.bulk_down(load).map_err(of_floor)?.seconds
        }
        Case::Gather | Case::GatherPackets => floor.bulk_up(load).map_err(of_floor)?.seconds,
        Case::Reduce | Case::Streams => floor.bulk_sum(bytes).map_err(of_floor)?.seconds,
    };
    let cpu = floor.cpu_nanoseconds().map_err(of_floor)?.saturating_sub(before);
    Ok(Cost { seconds, cpu_nanoseconds: cpu as f64 })
}

/// As many bytes in packets of which each leaf sends the same again and again, and whose sums are
/// forgotten as they come: all of it stays in the processor's cache.
fn reduce_in_place(floor: &mut Floor, bytes: usize) -> Result<Cost, Failure> {
    let before = floor.cpu_nanoseconds().map_err(of_floor)?;
    let packet = FLOOR_SUM_BYTES.min(bytes);
    let seconds = floor.pipelined(packet, (bytes / packet) as u64).map_err(of_floor)?.seconds;
    let cpu = floor.cpu_nanoseconds().map_err(of_floor)?.saturating_sub(before);
    Ok(Cost { seconds, cpu_nanoseconds: cpu as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_packets_hold_as_much_as_one() {
        for case in CASES {
            let load = case.load(256 << 20);
            assert_eq!(load.packet_bytes as u64 * load.packets, 256 << 20);
        }
        assert_eq!(Case::GatherPackets.load(1 << 20).packets, 1);
    }
}
