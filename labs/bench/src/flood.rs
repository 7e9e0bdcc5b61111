//! `sapwood bench flood`: what a stream's neighbours notice of it when it misbehaves.
//!
//! Owns the cases, the order of the runs and what is said of them. Each case has a tree of its own,
//! in which one back-end of every four is a disturber and the others carry a steady stream of sums
//! through the same communication processes. Undisturbed and disturbed runs take turns, and ratios
//! are taken between neighbours in time, as everywhere in these benchmarks.

use std::time::Duration;

use sapwood_floor::statistics::{Spread, ratio};

use super::beside::Beside;
use super::disturbed_tree::{Account, Disturbance, DisturbedTree, LARGE_BYTES_MAX};
use super::facts::{Bar, Facts, look};
use super::pairs::turns;
use super::plan::Transport;
use super::progress::Progress;
use super::steady::nothing;
use sapwood_command_line::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-flood/1";

/// The neighbours are to keep at least this share of their undisturbed rate.
const NEIGHBOURS: Bar = Bar::Least(0.5);

/// How long a run of the neighbours' waves takes, about.
const RUN_TIME: Duration = Duration::from_millis(300);
/// The same beside huge packets, of which one takes longer: a run has some of the time in which
/// they are made and some of that in which they are under way.
const LARGE_RUN_TIME: Duration = Duration::from_millis(2_000);
/// How many of them are asked for at a time.
const BATCH_WAVES: u64 = 8_192;
/// The neighbours' round trips in a run.
const ROUND_TRIPS: u64 = 100;
/// The most of them beside huge packets, for the same reason.
const LARGE_ROUND_TRIPS: u64 = 10_000;

/// Most elements of a neighbour's answer.
const ELEMENTS_MAX: usize = 1 << 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Case {
    /// The front-end does not read a stream whose senders then wait.
    #[value(name = "unread")]
    Unread,
    /// The front-end does not read a stream that drops its oldest packets.
    #[value(name = "unread_dropping")]
    UnreadDropping,
    /// One back-end sends as fast as it can, and is read.
    #[value(name = "flood")]
    Flood,
    /// A filter sleeps in every wave.
    #[value(name = "stall")]
    Stall,
    /// Huge packets beside small ones.
    #[value(name = "large")]
    Large,
}

const CASES: [Case; 5] =
    [Case::Unread, Case::UnreadDropping, Case::Flood, Case::Stall, Case::Large];

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Unread => "unread",
            Self::UnreadDropping => "unread_dropping",
            Self::Flood => "flood",
            Self::Stall => "stall",
            Self::Large => "large",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Unread => "the front-end does not read; senders wait",
            Self::UnreadDropping => "the front-end does not read; the oldest packets are dropped",
            Self::Flood => "one back-end floods, and is read",
            Self::Stall => "a filter sleeps in every wave",
            Self::Large => "huge packets beside small ones",
        }
    }

    /// Whether its disturbers use all of a core. On a machine of few cores that alone slows their
    /// neighbours down, so they are also measured beside back-ends that do nothing else.
    fn is_greedy(self) -> bool {
        matches!(self, Self::UnreadDropping | Self::Flood)
    }

    fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Large => &[Kind::Alone, Kind::Beside, Kind::Disturbed],
            _ if self.is_greedy() => &[Kind::Alone, Kind::Busy, Kind::Disturbed],
            _ => &[Kind::Alone, Kind::Disturbed],
        }
    }

    /// How long the neighbours' waves are measured, and the most round trips.
    fn run(self) -> (Duration, u64) {
        match self {
            Self::Large => (LARGE_RUN_TIME, LARGE_ROUND_TRIPS),
            _ => (RUN_TIME, ROUND_TRIPS),
        }
    }

    /// Whether the front-end takes what the disturbers send while the neighbours are measured.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Self::Flood | Self::Stall | Self::Large)
    }
}

/// What the disturbers do during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Alone,
    /// They use the processor as they do when they disturb, but send nothing.
    Busy,
    /// Others do the same in a tree of their own: what that costs is the processor alone.
    Beside,
    /// What the case says.
    Disturbed,
}

/// Runs by what the disturbers did.
#[derive(Default)]
struct Samples {
    alone: Vec<f64>,
    busy: Vec<f64>,
    beside: Vec<f64>,
    disturbed: Vec<f64>,
}

impl Samples {
    fn of(&mut self, kind: Kind) -> &mut Vec<f64> {
        match kind {
            Kind::Alone => &mut self.alone,
            Kind::Busy => &mut self.busy,
            Kind::Beside => &mut self.beside,
            Kind::Disturbed => &mut self.disturbed,
        }
    }
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Pairs of an undisturbed and a disturbed run of each case.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Bytes of the huge packets.
    #[arg(long, value_name = "N", default_value_t = 256 << 20)]
    large_bytes: u64,
    /// Elements of the neighbours' answers: f64s.
    #[arg(long, value_name = "N", default_value_t = 1)]
    elements: usize,
    /// What links are made of.
    #[arg(long, value_name = "KIND", default_value = "unix")]
    transport: Transport,
    /// Only these cases, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Case>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// Measures all cases that are asked for.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let is_whole = arguments.large_bytes >= 8 && arguments.large_bytes.is_multiple_of(8);
    if !is_whole || arguments.large_bytes > LARGE_BYTES_MAX {
        return Err(Failure::usage(format!(
            "--large-bytes {}: give a multiple of 8 up to {LARGE_BYTES_MAX}",
            arguments.large_bytes
        )));
    }
    if arguments.runs == 0 || arguments.elements == 0 || arguments.elements > ELEMENTS_MAX {
        return Err(Failure::usage(format!(
            "give at least one of --runs, and 1 to {ELEMENTS_MAX} --elements"
        )));
    }
    let title = format!("neighbours of a bad stream, 4x4 over {}", arguments.transport);
    let mut facts = Facts::new(SCHEMA, title);
    facts.setting("topology", "4x4");
    facts.setting("transport", arguments.transport.to_string());
    facts.setting("runs", arguments.runs);
    let mut progress = Progress::new();
    let mut worst: f64 = f64::INFINITY;
    for case in CASES {
        if arguments.only.is_empty() || arguments.only.contains(&case) {
            worst = worst.min(run_case(case, arguments, &mut facts, &mut progress)?);
        }
    }
    facts.heading("all cases");
    let look = look("least that neighbours keep of their rate", "", 2);
    facts.number("neighbours_rate_ratio", look, worst, Some(NEIGHBOURS));
    Ok(facts)
}

/// One case on a tree of its own; gives the worse of the two ratios.
fn run_case(
    case: Case,
    arguments: &Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<f64, Failure> {
    let mut tree = DisturbedTree::open(arguments.transport, arguments.elements)?;
    tree.neighbours.rate(BATCH_WAVES, RUN_TIME, nothing)?;
    let kinds = case.kinds();
    let (mut rates, mut round_trips) = (Samples::default(), Samples::default());
    let mut account = Account::default();
    let mut large_rates = Samples::default();
    let (time, most) = case.run();
    for run in 0..arguments.runs {
        progress.say(case.name(), run, arguments.runs);
        for kind in turns(run, kinds.len()).map(|at| kinds[at]) {
            let (mut disturbance, mut beside) = (None, None);
            match kind {
                Kind::Alone => {}
                Kind::Beside => {
                    beside = Some(Beside::begin(arguments.transport, arguments.large_bytes)?);
                }
                Kind::Busy | Kind::Disturbed => {
                    let is_tame = kind == Kind::Busy;
                    disturbance = Some(tree.disturb(case, is_tame, arguments.large_bytes)?);
                }
            }
            let mut aside = || disturbance.as_mut().map_or(Ok(()), Disturbance::read_some);
            let rate = tree.neighbours.rate(BATCH_WAVES, time, &mut aside)?;
            rates.of(kind).push(rate);
            let round_trip = tree.neighbours.round_trips(most, &mut aside)?;
            round_trips.of(kind).push(round_trip);
            if let Some(beside) = beside {
                large_rates.of(kind).push(beside.end()?);
            }
            if let Some(disturbance) = disturbance {
                let ended = disturbance.end()?;
                if kind == Kind::Disturbed {
                    large_rates.of(kind).push(ended.large_mib_per_s);
                    account.add(ended);
                }
            }
        }
    }
    let worst = say(case, &rates, &round_trips, facts)?;
    let path = |figure: &str| format!("cases.{}.{figure}", case.name());
    for (figure, label, bytes) in tree.peaks()? {
        let mib = bytes as f64 / f64::from(1 << 20);
        facts.number(&path(figure), look(label, "MiB", 1), mib, None);
    }
    for (figure, label, samples) in [
        ("large_mib_per_s", "huge packets", &large_rates.disturbed),
        ("large_mib_per_s_beside", "  in a tree of their own", &large_rates.beside),
    ] {
        if let (Case::Large, Some(spread)) = (case, Spread::of(samples)) {
            facts.spread(&path(figure), look(label, "MiB/s", 0), &spread, None);
        }
    }
    for (figure, label, count) in account.lines(case) {
        facts.number(&path(figure), look(label, "", 0), count as f64, None);
    }
    tree.close()?;
    Ok(worst)
}

/// Says what the neighbours have noticed; gives the worse of the two ratios.
fn say(
    case: Case,
    rates: &Samples,
    round_trips: &Samples,
    facts: &mut Facts,
) -> Result<f64, Failure> {
    facts.heading(case.label());
    let path = |figure: &str| format!("cases.{}.{figure}", case.name());
    let mut worst = f64::INFINITY;
    // Of round trips the rate is taken, so that more is better in both.
    for (figure, label, of_rates) in [
        ("rate_ratio", "waves: kept of their rate", true),
        ("round_trip_rate_ratio", "round trips: kept of their rate", false),
    ] {
        let ratio_to = |base: &[f64], base_us: &[f64]| match of_rates {
            true => ratio(&rates.disturbed, base),
            false => ratio(base_us, &round_trips.disturbed),
        };
        let nothing = || Failure::own(&"nothing was measured");
        let idle = ratio_to(&rates.alone, &round_trips.alone).ok_or_else(nothing)?;
        let mut judged = idle;
        if case.is_greedy() {
            judged = ratio_to(&rates.busy, &round_trips.busy).ok_or_else(nothing)?;
            let beside_idle = format!("{figure}_to_idle");
            facts.spread(&path(&beside_idle), look("  beside idle ones", "", 2), &idle, None);
        }
        if case == Case::Large {
            let beside = match of_rates {
                true => ratio(&rates.beside, &rates.alone),
                false => ratio(&round_trips.alone, &round_trips.beside),
            };
            let floor = format!("{figure}_beside");
            let label = "  beside a tree with these alone";
            facts.spread(&path(&floor), look(label, "", 2), &beside.ok_or_else(nothing)?, None);
        }
        facts.spread(&path(figure), look(label, "", 2), &judged, Some(NEIGHBOURS));
        worst = worst.min(judged.median);
    }
    for (figure, look, samples) in [
        ("waves_per_s_alone", look("waves, alone", "1/s", 0), &rates.alone),
        ("waves_per_s_busy", look("  beside busy back-ends", "1/s", 0), &rates.busy),
        ("waves_per_s_beside", look("  beside another tree", "1/s", 0), &rates.beside),
        ("waves_per_s", look("  disturbed", "1/s", 0), &rates.disturbed),
        ("round_trip_us_alone", look("round trip, alone", "us", 1), &round_trips.alone),
        ("round_trip_us_busy", look("  beside busy back-ends", "us", 1), &round_trips.busy),
        ("round_trip_us_beside", look("  beside another tree", "us", 1), &round_trips.beside),
        ("round_trip_us", look("  disturbed", "us", 1), &round_trips.disturbed),
    ] {
        if let Some(spread) = Spread::of(samples) {
            facts.spread(&path(figure), look, &spread, None);
        }
    }
    Ok(worst)
}
