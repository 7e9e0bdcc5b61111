//! What was measured, as facts.

use sapwood::{Rank, TreeKind};
use sapwood_floor::statistics::Spread;
use serde_json::{Value, json};

use super::super::facts::{Bar, Facts, look};
use super::churn::Churn;
use super::lengths::{LENGTH_TREES, RacedLength, SUM_TREES};
use super::network::EmulatedNetwork;
use super::plot::{Across, Chart, Curve, Mark};
use super::race::Raced;
use super::simulated::{ByTree, Simulated};
use super::start::Settled;
use super::{Arguments, TREES};

const SCHEMA: &str = "sapwood.bench-group/1";

/// What adaptive trees are to reach: docs/groups-design.md has the table.
const SHORT: Bar = Bar::Most(1.1);
const WORST_ROOT: Bar = Bar::Most(1.2);
const SUM: Bar = Bar::Most(1.1);
const LONG: Bar = Bar::Least(1.8);
const AFTER: Bar = Bar::Most(3.0);
const STEADY_SECONDS: Bar = Bar::Most(1.0);

/// A figure of a tree at one length.
struct LengthFigure {
    /// In the JSON object.
    name: &'static str,
    of: fn(&RacedLength, TreeKind) -> Option<Spread>,
}

/// What is shown of operations of several lengths.
struct LengthColumns {
    /// Where it stands in the JSON object.
    path: &'static str,
    title: &'static str,
    trees: &'static [TreeKind],
    /// What the others are held against.
    base: TreeKind,
    figure: LengthFigure,
    ratio: LengthFigure,
}

const RATES: LengthColumns = LengthColumns {
    path: "lengths",
    title: "broadcasts by length: MB/s until the last member has it, and x list",
    trees: &LENGTH_TREES,
    base: TreeKind::List,
    figure: LengthFigure { name: "mb_per_s", of: RacedLength::rate },
    ratio: LengthFigure { name: "rate_to_list", of: RacedLength::rate_to_list },
};

const SUM_TIMES: LengthColumns = LengthColumns {
    path: "sum_lengths",
    title: "sums by length: ms until the root has it, and /static",
    trees: &SUM_TREES,
    base: TreeKind::Static,
    figure: LengthFigure { name: "ms", of: RacedLength::milliseconds },
    ratio: LengthFigure { name: "ratio_to_static", of: RacedLength::time_to_static },
};

/// Facts under way.
pub(super) struct Shown {
    facts: Facts,
    has_values: bool,
    faults: Vec<String>,
}

/// A comparison of all trees with one of them.
struct Comparison<'a> {
    /// Where it stands in the JSON object.
    path: String,
    base: TreeKind,
    ratio: &'static str,
    /// How a column of the table is called.
    column: &'static str,
    bar: Bar,
    /// More is better: the ratio is that of rates.
    is_rate: bool,
    raced: &'a Raced,
    simulated: &'a ByTree,
}

impl Shown {
    pub(super) fn new(network: &EmulatedNetwork, arguments: &Arguments) -> Self {
        let (scenario, scale) = (&network.scenario, network.scale);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let carried = match (&network.hosts, scale == 1.0) {
            (None, _) => "all on this host".to_string(),
            (Some(_), true) => "on emulated hosts".to_string(),
            (Some(_), false) => format!(
                "on emulated hosts; latencies times {scale}, rates divided by it, since {processors} \
                 processors do the work of all"
            ),
        };
        let title = format!(
            "{} real members in the layout '{scenario}', {carried}\nsimulated: the same layout in \
             the simulator, where each member has a processor",
            arguments.members
        );
        let mut facts = Facts::new(SCHEMA, title);
        facts.setting("scenario", scenario.as_str());
        let carrier = if network.hosts.is_some() { "emulated" } else { "one-host" };
        facts.setting("where", carrier);
        facts.setting("members", arguments.members);
        facts.setting("clusters", network.layout.clusters);
        facts.setting("scale", scale);
        facts.setting("seed", network.seed);
        facts.setting("rounds", arguments.rounds);
        facts.setting("processors", processors);
        Self { facts, faults: Vec::new(), has_values: true }
    }

    pub(super) fn start(&mut self, settled: &Settled, simulated: &Simulated) {
        let facts = &mut self.facts;
        let start = &simulated.start;
        facts.heading("from the start of the first member");
        let time = |label| look(label, "s", 2);
        let joined = settled.joined.as_secs_f64();
        facts.number("start.joined_s", time("all members know each other"), joined, None);
        let steady = settled.steady.as_secs_f64();
        let bar = Some(STEADY_SECONDS);
        facts.number("start.steady_s", time("inferred clusters do not change"), steady, bar);
        let model = start.steady as f64 / 1e9;
        facts.number("start.simulated.steady_s", time("  simulated"), model, None);
        let count = look("clusters inferred", "", 0);
        facts.number("start.clusters", count, settled.clusters as f64, None);
        let count = look("members that have the layout's clusters", "", 0);
        facts.number("start.members_right", count, settled.right as f64, None);
        let probes = look("probes of a member", "", 1);
        facts.number("start.probes_per_member", probes, settled.probes, None);
        let most = look("  most", "", 0);
        facts.number("start.probes_most", most, settled.probes_most as f64, None);
        let model = look("  simulated", "", 1);
        facts.number("start.simulated.probes_per_member", model, start.probes, None);
    }

    pub(super) fn short(&mut self, raced: &Raced, simulated: &Simulated) {
        self.facts.heading("broadcast of 1 byte: until the last member has it");
        self.compare(&Comparison {
            path: "short".to_string(),
            base: TreeKind::Static,
            ratio: "ratio_to_static",
            column: "/static",
            bar: SHORT,
            is_rate: false,
            raced,
            simulated: &simulated.short,
        });
        for tree in TREES.into_iter().filter(|tree| raced.spread(*tree).is_some()) {
            let times = raced.by_member(tree, 0);
            let times: Vec<Value> = times.iter().map(|time| json!(rounded(time * 1e3))).collect();
            self.facts.setting(&format!("short.trees.{tree}.by_member_ms"), times);
        }
    }

    /// The worst of some roots.
    pub(super) fn roots(&mut self, raced: &[(Rank, Raced)], simulated: &Simulated) {
        let mut worst: Option<(Rank, Spread)> = None;
        for (root, raced) in raced {
            let Some(ratio) = raced.ratio(TreeKind::Adaptive, TreeKind::Static) else {
                return self.nothing("roots");
            };
            if worst.is_none_or(|(_, worst)| ratio.median > worst.median) {
                worst = Some((*root, ratio));
            }
        }
        let Some((root, ratio)) = worst else { return self.nothing("roots") };
        self.facts.heading("the same by 'adaptive' beside 'static' from several roots");
        let names: Vec<Value> = raced.iter().map(|entry| json!(entry.0)).collect();
        self.facts.setting("roots.roots", names);
        self.facts.number("roots.worst_root", look("worst root", "", 0), f64::from(root), None);
        let label = look("  of static's", "", 2);
        self.facts.spread("roots.ratio_to_static", label, &ratio, Some(WORST_ROOT));
        let model = simulated.roots.iter().filter_map(|entry| entry.1).fold(0.0, f64::max);
        let label = look("  simulated: the worst", "", 2);
        self.facts.number("roots.simulated.ratio_to_static", label, model, None);
    }

    pub(super) fn sums(&mut self, bytes: usize, raced: &Raced, simulated: &ByTree) {
        self.facts.heading(&format!("sum of {bytes} bytes: until the root has it"));
        self.compare(&Comparison {
            path: format!("sums.bytes{bytes}"),
            base: TreeKind::Static,
            ratio: "ratio_to_static",
            column: "/static",
            bar: SUM,
            is_rate: false,
            raced,
            simulated,
        });
    }

    pub(super) fn long(&mut self, bytes: usize, raced: &Raced, simulated: &Simulated) {
        self.facts.heading(&format!("broadcast of {bytes} bytes: until the last member has it"));
        self.facts.setting("long.bytes", bytes);
        self.compare(&Comparison {
            path: "long".to_string(),
            base: TreeKind::List,
            ratio: "rate_to_list",
            column: "x list",
            bar: LONG,
            is_rate: true,
            raced,
            simulated: &simulated.long,
        });
    }

    /// Each tree's times, beside the base's, and what the simulator says of both: a line for each.
    fn compare(&mut self, comparison: &Comparison<'_>) {
        self.facts.heading(&format!(
            "  {:<15} {:>9}{:23} {:>6}{:21} {:>12} {:>6} {:>8}",
            "", "ms", "", comparison.column, "", "simulated ms", "", "real/sim"
        ));
        for tree in TREES {
            let Some(row) = Row::of(comparison, tree) else {
                return self.nothing(&comparison.path);
            };
            row.set(&mut self.facts, comparison);
            let bar = Some(comparison.bar).filter(|_| tree == TreeKind::Adaptive);
            self.facts.heading(&row.line(bar));
        }
    }

    /// Rates by length, with those of `list` in the same rounds.
    pub(super) fn lengths(&mut self, lengths: &[RacedLength]) {
        self.by_length(&RATES, lengths);
    }

    /// Times of sums by length, with those of `static` in the same rounds.
    pub(super) fn sum_lengths(&mut self, lengths: &[RacedLength]) {
        self.by_length(&SUM_TIMES, lengths);
    }

    /// A line for each length, with two figures of each tree.
    fn by_length(&mut self, columns: &LengthColumns, lengths: &[RacedLength]) {
        let LengthColumns { path, title, trees, base, figure, ratio } = columns;
        self.facts.heading(title);
        let mut names = format!("  {:<12}", "bytes");
        trees.iter().for_each(|tree| names += &format!(" {tree:>22}"));
        self.facts.heading(&names);
        let mut rows = Vec::new();
        for length in lengths {
            let (mut line, mut shown) = (format!("  {:<12}", length.bytes), json!({}));
            for tree in *trees {
                let figures = (figure.of)(length, *tree).zip((ratio.of)(length, *tree));
                let Some((value, beside)) = figures else { break };
                line += &format!(" {:>15.2} {:>6.2}", value.median, beside.median);
                shown[tree.to_string()] = json!({
                    figure.name: value.median,
                    ratio.name: beside.median,
                    "spread": { figure.name: value, ratio.name: beside },
                });
            }
            if (figure.of)(length, *base).is_none() {
                self.nothing(&format!("{path}.bytes{}", length.bytes));
                continue;
            }
            self.facts.heading(&line);
            rows.push(json!({ "bytes": length.bytes, "rounds": length.rounds, "trees": shown }));
        }
        self.facts.setting(path, rows);
    }

    /// One run under `adaptive`, and one under another tree beside it.
    pub(super) fn churns(&mut self, churns: &[Churn]) {
        for churn in churns {
            let is_own = churn.tree == TreeKind::Adaptive;
            let path = if is_own { "churn".to_string() } else { format!("churn.{}", churn.tree) };
            self.churn(&path, churn, |bar| Some(bar).filter(|_| is_own));
        }
    }

    fn churn(&mut self, path: &str, churn: &Churn, goal: impl Fn(Bar) -> Option<Bar>) {
        let facts = &mut self.facts;
        facts.heading(&format!(
            "half of the members leave and return under broadcasts of {} bytes by '{}'",
            churn.bytes, churn.tree
        ));
        facts.setting(&format!("{path}.bytes"), churn.bytes);
        let count = |label| look(label, "", 0);
        let casts = churn.casts as f64;
        facts.number(&format!("{path}.broadcasts"), count("broadcasts"), casts, None);
        let lost = count("not received by members that stay");
        let none = Some(Bar::Most(0.0));
        facts.number(&format!("{path}.lost"), lost, churn.lost as f64, none);
        let wrong = count("wrong, or received twice");
        facts.number(&format!("{path}.wrong"), wrong, churn.wrong as f64, none);
        let ms = look("before, until all have acknowledged", "ms", 1);
        facts.number(&format!("{path}.normal_ms"), ms, churn.normal_seconds * 1e3, None);
        let after = goal(AFTER);
        for (name, label, value, bar) in [
            ("leaving_ratio", "  slowest while they leave", churn.leaving_ratio, None),
            ("left_ratio", "  first after they have left", churn.left_ratio, after),
            ("returning_ratio", "  slowest while they return", churn.returning_ratio, None),
            ("returned_ratio", "  first after they are back", churn.returned_ratio, after),
        ] {
            facts.number(&format!("{path}.{name}"), look(label, "", 2), value, bar);
        }
        let whole = look("from the last return until one reaches all", "s", 2);
        let bar = goal(Bar::Most(1.0));
        facts.number(&format!("{path}.whole_s"), whole, churn.whole_seconds, bar);
        let rates = churn.over_time.iter().map(|cast| {
            json!({
                "begin_s": rounded(cast.begin_seconds),
                "end_s": rounded(cast.end_seconds),
                "mb_per_s": rounded(cast.rate),
                "reached": cast.reached,
            })
        });
        facts.setting(&format!("{path}.over_time"), rates.collect::<Vec<Value>>());
        let times = &churn.times;
        let moments = json!({
            "leave_s": rounded(times.leave),
            "left_s": rounded(times.left),
            "come_s": rounded(times.come),
            "back_s": rounded(times.back),
        });
        facts.setting(&format!("{path}.moments"), moments);
    }

    fn nothing(&mut self, what: &str) {
        self.has_values = false;
        self.facts.missing(what, "all of it", "in each round some value was wrong or missing");
    }

    /// Takes what went wrong.
    pub(super) fn faults(&mut self, faults: Vec<String>) {
        self.faults = faults;
    }

    /// Whether every value was right.
    pub(super) fn is_right(&self) -> bool {
        self.has_values && self.faults.is_empty()
    }

    pub(super) fn into_facts(mut self) -> Facts {
        self.facts.setting("right", self.is_right());
        self.facts.setting("faults", self.faults.clone());
        self.facts.heading(match self.is_right() {
            true => "right at every member",
            false => "WRONG or missing values:",
        });
        for fault in &self.faults {
            self.facts.heading(&format!("  {fault}"));
        }
        self.facts
    }
}

/// When each member had a value, by tree.
pub(super) fn picture(network: &EmulatedNetwork, raced: &Raced) -> String {
    let curves: Vec<Curve> = TREES
        .into_iter()
        .map(|tree| {
            let times = raced.by_member(tree, 0);
            Curve::of_steps(tree, times.iter().map(|time| time * 1e3))
        })
        .collect();
    let title = format!("1 byte to {}", place_of(network));
    let across_name = "members that have the value";
    let across = Across::Numbers;
    Chart { title: &title, across, across_name, up_name: "ms", curves: &curves }.draw()
}

/// The rates of broadcasts by their length.
pub(super) fn picture_of_lengths(network: &EmulatedNetwork, lengths: &[RacedLength]) -> String {
    let curves = curves_by_length(&LENGTH_TREES, RacedLength::rate, lengths);
    let title = format!("broadcasts to {}", place_of(network));
    let (across, across_name) = (Across::Lengths, "length");
    Chart { title: &title, across, across_name, up_name: "MB/s", curves: &curves }.draw()
}

/// The times of sums beside those of `static`, by their length.
pub(super) fn picture_of_sums(network: &EmulatedNetwork, lengths: &[RacedLength]) -> String {
    let curves = curves_by_length(&SUM_TREES, RacedLength::time_to_static, lengths);
    let title = format!("sums of {}", place_of(network));
    let (across, across_name, up_name) = (Across::Lengths, "length", "times that of static");
    Chart { title: &title, across, across_name, up_name, curves: &curves }.draw()
}

/// The median of a figure by length, a line for each tree.
fn curves_by_length(
    trees: &[TreeKind],
    figure: fn(&RacedLength, TreeKind) -> Option<Spread>,
    lengths: &[RacedLength],
) -> Vec<Curve> {
    let curve = |&tree: &TreeKind| {
        let point =
            |length: &RacedLength| Some([length.bytes as f64, figure(length, tree)?.median]);
        Curve { tree, points: lengths.iter().filter_map(point).collect(), marks: Vec::new() }
    };
    trees.iter().map(curve).collect()
}

/// The rates of broadcasts over time, while half of the members leave and return.
pub(super) fn picture_of_churns(network: &EmulatedNetwork, churns: &[Churn]) -> String {
    let curve = |churn: &Churn| {
        let steps = churn.over_time.iter();
        let steps =
            steps.flat_map(|cast| [[cast.begin_seconds, cast.rate], [cast.end_seconds, cast.rate]]);
        let times = &churn.times;
        let marks = [
            (times.leave, "leave"),
            (times.left, "left"),
            (times.come, "return"),
            (times.back, "back"),
        ];
        let marks = marks.map(|(at, name)| Mark { at, name }).into();
        Curve { tree: churn.tree, points: steps.collect(), marks }
    };
    let curves: Vec<Curve> = churns.iter().map(curve).collect();
    let title = format!("half leave and return: {}", place_of(network));
    let (across, across_name) = (Across::Numbers, "s");
    Chart { title: &title, across, across_name, up_name: "MB/s", curves: &curves }.draw()
}

fn place_of(network: &EmulatedNetwork) -> String {
    let EmulatedNetwork { scenario, scale, layout, .. } = network;
    let slower = if *scale == 1.0 { String::new() } else { format!(", {scale} times slower") };
    format!("{} members, {scenario}{slower}", layout.hosts)
}

/// One tree of a comparison.
struct Row {
    tree: TreeKind,
    milliseconds: Spread,
    ratio: Spread,
    /// The same in the simulator; none where a member had no value within a minute.
    simulated: Option<SimulatedRow>,
}

struct SimulatedRow {
    milliseconds: f64,
    ratio: f64,
}

impl Row {
    /// None where nothing was measured.
    fn of(comparison: &Comparison<'_>, tree: TreeKind) -> Option<Self> {
        let Comparison { base, raced, simulated, is_rate, .. } = comparison;
        let ratio = if *is_rate { raced.ratio(*base, tree)? } else { raced.ratio(tree, *base)? };
        let simulated = simulated.of(tree).zip(simulated.of(*base)).map(|(own, base)| {
            let ratio = if *is_rate { base / own } else { own / base };
            SimulatedRow { milliseconds: own * 1e3, ratio }
        });
        let Spread { min, median, max, runs } = raced.spread(tree)?;
        let milliseconds = Spread { min: min * 1e3, median: median * 1e3, max: max * 1e3, runs };
        Some(Self { tree, milliseconds, ratio, simulated })
    }

    fn real_to_simulated(&self) -> Option<f64> {
        Some(self.milliseconds.median / self.simulated.as_ref()?.milliseconds)
    }

    /// In the JSON object.
    fn set(&self, facts: &mut Facts, comparison: &Comparison<'_>) {
        let path = format!("{}.trees.{}", comparison.path, self.tree);
        let ratio = comparison.ratio;
        facts.setting(&format!("{path}.ms"), self.milliseconds.median);
        facts.setting(&format!("{path}.{ratio}"), self.ratio.median);
        facts.setting(&format!("{path}.spread.ms"), json!(self.milliseconds));
        facts.setting(&format!("{path}.spread.{ratio}"), json!(self.ratio));
        if let Some(simulated) = &self.simulated {
            facts.setting(&format!("{path}.simulated.ms"), simulated.milliseconds);
            facts.setting(&format!("{path}.simulated.{ratio}"), simulated.ratio);
        }
        if let Some(ratio) = self.real_to_simulated() {
            facts.setting(&format!("{path}.real_to_simulated"), ratio);
        }
    }

    /// In the table.
    fn line(&self, bar: Option<Bar>) -> String {
        let Self { tree, milliseconds: ms, ratio, simulated, .. } = self;
        let spread = format!("({:.2} to {:.2})", ms.min, ms.max);
        let ratios = format!("({:.2} to {:.2})", ratio.min, ratio.max);
        let mut line = format!(
            "  {tree:<15} {:>9.2} {spread:<22} {:>6.2} {ratios:<20}",
            ms.median, ratio.median
        );
        line += &match (simulated, self.real_to_simulated()) {
            (Some(model), Some(real)) => {
                format!(" {:>12.2} {:>6.2} {real:>8.2}", model.milliseconds, model.ratio)
            }
            _ => format!(" {:>12} {:>6} {:>8}", "none", "", ""),
        };
        line + &bar.map_or_else(String::new, |bar| bar.judge(ratio.median))
    }
}

/// To four digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
