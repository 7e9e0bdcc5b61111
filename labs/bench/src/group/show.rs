//! What was measured, as facts.

use sapwood::{Rank, TreeKind};
use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::Spread;
use serde_json::{Value, json};

use super::super::facts::{Bar, Facts, look};
use super::churn::Churn;
use super::network::EmulatedNetwork;
use super::plot::{Curve, draw};
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

    pub(super) fn short(&mut self, raced: &Raced, simulated: &Simulated) -> Result<(), Failure> {
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
        })?;
        for tree in TREES.into_iter().filter(|tree| raced.spread(*tree).is_some()) {
            let times = raced.by_member(tree, 0);
            let times: Vec<Value> = times.iter().map(|time| json!(rounded(time * 1e3))).collect();
            self.facts.setting(&format!("short.trees.{tree}.by_member_ms"), times);
        }
        Ok(())
    }

    /// The worst of some roots.
    pub(super) fn roots(
        &mut self,
        raced: &[(Rank, Raced)],
        simulated: &Simulated,
    ) -> Result<(), Failure> {
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
        Ok(())
    }

    pub(super) fn sums(
        &mut self,
        bytes: usize,
        raced: &Raced,
        simulated: &ByTree,
    ) -> Result<(), Failure> {
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
        })
    }

    pub(super) fn long(
        &mut self,
        bytes: usize,
        raced: &Raced,
        simulated: &Simulated,
    ) -> Result<(), Failure> {
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
        })
    }

    /// Each tree's times, beside the base's, and what the simulator says of both: a line for each.
    fn compare(&mut self, comparison: &Comparison<'_>) -> Result<(), Failure> {
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
        Ok(())
    }

    pub(super) fn churn(&mut self, churn: &Churn) -> Result<(), Failure> {
        let facts = &mut self.facts;
        facts.heading(&format!(
            "half of the members leave and return under broadcasts of {} bytes",
            churn.bytes
        ));
        facts.setting("churn.bytes", churn.bytes);
        let count = |label| look(label, "", 0);
        facts.number("churn.broadcasts", count("broadcasts"), churn.casts as f64, None);
        let lost = count("not received by members that stay");
        facts.number("churn.lost", lost, churn.lost as f64, Some(Bar::Most(0.0)));
        let wrong = count("wrong, or received twice");
        facts.number("churn.wrong", wrong, churn.wrong as f64, Some(Bar::Most(0.0)));
        let ms = look("before, until all have acknowledged", "ms", 1);
        facts.number("churn.normal_ms", ms, churn.normal_seconds * 1e3, None);
        for (path, label, value, bar) in [
            ("leaving_ratio", "  slowest while they leave", churn.leaving_ratio, None),
            ("left_ratio", "  first after they have left", churn.left_ratio, Some(AFTER)),
            ("returning_ratio", "  slowest while they return", churn.returning_ratio, None),
            ("returned_ratio", "  first after they are back", churn.returned_ratio, Some(AFTER)),
        ] {
            facts.number(&format!("churn.{path}"), look(label, "", 2), value, bar);
        }
        let whole = look("from the last return until one reaches all", "s", 2);
        facts.number("churn.whole_s", whole, churn.whole_seconds, Some(Bar::Most(1.0)));
        Ok(())
    }

    fn nothing(&mut self, what: &str) -> Result<(), Failure> {
        self.has_values = false;
        self.facts.missing(what, "all of it", "in each round some value was wrong or missing");
        Ok(())
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
            Curve { tree, milliseconds: times.iter().map(|time| time * 1e3).collect() }
        })
        .collect();
    let (scenario, scale) = (&network.scenario, network.scale);
    let slower = if scale == 1.0 { String::new() } else { format!(", {scale} times slower") };
    let title = format!("1 byte to {} members, {scenario}{slower}", network.layout.hosts);
    draw(&title, &curves)
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
