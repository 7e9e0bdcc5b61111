//! `sapwood group demo`: members in emulated clusters, what they find out about the network, and
//! broadcasts by several trees beside each other.
//!
//! The hosts are those of `hosts`: the command runs itself again while they are there. The network
//! is the layout `campus`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{Key, TreeKind};
use sapwood_command_line::exit::{Failure, print};
use sapwood_launch::Local;
use sapwood_layout::{Emulation, Layout, Placement};
use serde_json::{Value, json};

use crate::fleet::{Fleet, MemberWords, is_right, slowest};
use crate::hosts::TestBed;
use crate::request::{Act, Request};

/// The network; docs/groups.md says what it is like.
const LAYOUT: &str = "campus";
/// More do not fit two processors, where the emulator runs, too.
const MEMBERS_MAX: u32 = 60;
/// How long clusters may take to be found.
const SETTLE_DEADLINE: Duration = Duration::from_secs(30);
/// How long one broadcast may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// How often the group is asked for its clusters.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// The lengths that are broadcast, in bytes, and in how many turns.
const LENGTHS: [Length; 2] =
    [Length { bytes: 1, turns: 15, rounds: 5 }, Length { bytes: 1 << 20, turns: 7, rounds: 1 }];
/// The trees that are compared; the last is that of operators' own tables.
const TREES: [TreeKind; 4] =
    [TreeKind::Adaptive, TreeKind::Binomial, TreeKind::List, TreeKind::Static];
/// The exit code where a value was wrong or missing.
const WRONG: u8 = 1;

/// What is measured of one length.
struct Length {
    bytes: usize,
    /// In each turn all trees run, one after another.
    turns: usize,
    /// The rounds of a turn.
    rounds: u64,
}

/// What `sapwood group demo` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of members, each on its own emulated host, in three clusters.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 16)]
    members: u32,
    /// Folder of the test bed in Sapwood's source.
    #[arg(long, value_name = "FOLDER", default_value = "testbed")]
    testbed: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The hosts are there, with this folder for files: how the command runs itself.
    #[arg(long, value_name = "FOLDER", hide = true)]
    inside: Option<PathBuf>,
}

/// Shows the group; ends this process where the hosts have to be made first.
///
/// # Errors
/// [`Failure`] where there is no test bed, or a member does not start.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !(6..=MEMBERS_MAX).contains(&arguments.members) {
        return Err(Failure::usage(format!("give 6 to {MEMBERS_MAX} members")));
    }
    match &arguments.inside {
        None => Err(run_with_hosts(arguments)),
        Some(folder) => Scene::new(arguments, folder)?.show(arguments.json),
    }
}

/// Runs the command again where hosts are. Comes back only with an error.
fn run_with_hosts(arguments: &Arguments) -> Failure {
    let Ok(program) = std::env::current_exe() else {
        return Failure::own(&"this program does not know where it is");
    };
    let network = TestBed::new(&arguments.testbed).and_then(|hosts| {
        let (layout, placement) = network(arguments.members)?;
        let emulation = Emulation::new(&layout, &placement);
        Ok((hosts, emulation.ok_or_else(|| Failure::own(&"too many clusters"))?))
    });
    let (hosts, emulation) = match network {
        Ok(network) => network,
        Err(failure) => return failure,
    };
    let mut words = vec![program.display().to_string()];
    words.extend(["group", "demo", "--members"].map(String::from));
    words.extend([arguments.members.to_string(), "--testbed".into()]);
    words.push(arguments.testbed.display().to_string());
    words.extend(arguments.json.then(|| "--json".into()));
    // The starter adds the folder for files.
    words.push("--inside".into());
    hosts.raise(&emulation, &words)
}

/// The network of this number of members, and which of them is in which cluster.
fn network(members: u32) -> Result<(Layout, Placement), Failure> {
    let layout = Layout::named(LAYOUT).ok_or_else(|| Failure::own(&"the layout is not there"))?;
    let layout = Layout { hosts: members as usize, ..layout };
    let placement = Placement::in_order(&layout);
    Ok((layout, placement))
}

/// The group on its hosts.
struct Scene {
    fleet: Fleet,
    members: u32,
    placement: Placement,
    hosts: TestBed,
    program: PathBuf,
    key: PathBuf,
}

impl Scene {
    fn new(arguments: &Arguments, folder: &Path) -> Result<Self, Failure> {
        let own = |error: &dyn std::fmt::Display| Failure::own(&error.to_string());
        let program = std::env::current_exe().map_err(|error| own(&error))?;
        let key = folder.join("key");
        Key::generate().and_then(|made| made.write_file(&key)).map_err(|error| own(&error))?;
        let members = arguments.members;
        let hosts = TestBed::new(&arguments.testbed)?;
        let (_, placement) = network(members)?;
        let fleet = Fleet::start(members, |name, address| {
            let words = MemberWords {
                name,
                address: address.map(String::from),
                site: Some(placement.clusters[name as usize]),
                listen: Some(format!("tcp:{}:0", TestBed::address_of(name))),
                key: Some(key.clone()),
                ..MemberWords::default()
            };
            let command = [program.display().to_string(), "group".into()].into_iter();
            Ok(hosts.order(name, &command.chain(words.arguments()).collect::<Vec<_>>()))
        })?;
        Ok(Self { fleet, members, placement, hosts, program, key })
    }

    fn show(mut self, is_json: bool) -> Result<ExitCode, Failure> {
        let clusters = self.settle()?;
        let picture = self.status("--brief")?;
        let rows = LENGTHS.iter().map(|length| self.measure(length)).collect();
        let count = self.placement.cluster_count();
        let shown = Shown { members: self.members, count, clusters, picture, rows };
        print(&if is_json { format!("{}\n", shown.to_json()) } else { shown.text() })?;
        self.fleet.end()?;
        Ok(if shown.is_right() { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
    }

    /// Waits until as many clusters are found as there are, or no longer.
    fn settle(&mut self) -> Result<Clusters, Failure> {
        let began = Instant::now();
        loop {
            let status: Value = serde_json::from_str(&self.status("--json")?)
                .map_err(|error| Failure::own(&error.to_string()))?;
            let after = began.elapsed();
            let found = status["clusters"].as_array().cloned().unwrap_or_default();
            if found.len() == self.placement.cluster_count() || after >= SETTLE_DEADLINE {
                return Ok(Clusters { found, after });
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// What `sapwood group status` prints on the first host.
    fn status(&self, form: &str) -> Result<String, Failure> {
        let own = |error: &dyn std::fmt::Display| Failure::own(&error.to_string());
        let mut words = command(&self.program, "status");
        words.extend([self.fleet.address().to_string(), "--key".into()]);
        words.push(self.key.display().to_string());
        words.extend(["--root".into(), "0".into(), form.into()]);
        let mut order = self.hosts.order(0, &words);
        order.capture_stdout = true;
        let mut process = Local.start(&order).map_err(|error| own(&error))?;
        let mut output = Vec::new();
        while !process.stdout_ended() {
            if let Some(readable) = process.stdout() {
                let mut watched = [rustix::event::PollFd::from_borrowed_fd(
                    readable,
                    rustix::event::PollFlags::IN,
                )];
                let _ = rustix::event::poll(&mut watched, None);
            }
            process.take_stdout(&mut output).map_err(|error| own(&error))?;
        }
        match process.wait(DEADLINE) {
            Some(exit) if exit.is_success() => {
                String::from_utf8(output).map_err(|error| own(&error))
            }
            _ => Err(Failure::own(&format!("no status: {}", process.exit_report()))),
        }
    }

    /// Broadcasts by all trees by turns, so that a change of the machine's load meets all.
    fn measure(&mut self, length: &Length) -> Row {
        let (bytes, seconds) = (length.bytes, vec![Vec::new(); TREES.len()]);
        let mut row = Row { bytes, seconds, is_right: true };
        for _ in 0..length.turns {
            for (tree, seconds) in TREES.iter().zip(&mut row.seconds) {
                let mut request = Request::new(Act::Broadcast);
                (request.tree, request.bytes) = (*tree, length.bytes);
                (request.rounds, request.deadline) = (length.rounds, DEADLINE);
                let answers = self.fleet.answers(&request, DEADLINE * 2);
                row.is_right &= answers.iter().all(is_right);
                seconds.push(slowest(&answers));
            }
        }
        row
    }
}

/// The clusters that the group has found.
struct Clusters {
    /// The virtual nodes of each, as text.
    found: Vec<Value>,
    after: Duration,
}

/// All that the demo has seen.
struct Shown {
    members: u32,
    /// How many clusters there are.
    count: usize,
    clusters: Clusters,
    picture: String,
    rows: Vec<Row>,
}

impl Shown {
    fn is_right(&self) -> bool {
        self.rows.iter().all(|row| row.is_right)
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} members in {} emulated clusters: near and campus 2.5 ms apart, both 18 ms from \
             far, one way\n{} clusters inferred, {:.1} s after all had joined\n\n{}\n",
            self.members,
            self.count,
            self.clusters.found.len(),
            self.clusters.after.as_secs_f64(),
            self.picture
        );
        for row in &self.rows {
            let turns = row.seconds[0].len();
            let _ = writeln!(
                text,
                "broadcast of {} bytes from virtual node 0, {turns} turns",
                row.bytes
            );
            for (tree, ratio) in TREES.iter().zip(row.ratios()) {
                let Ratio { milliseconds, median, low, high } = ratio;
                let _ = writeln!(
                    text,
                    "  {:<9} {milliseconds:8.2} ms   {median:.2} of static's ({low:.2} to {high:.2})",
                    tree.to_string()
                );
            }
        }
        text + match self.is_right() {
            true => "right at every member\n",
            false => "WRONG or missing values at some members\n",
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "schema": "sapwood.group-demo/1",
            "members": self.members,
            "clusters": self.clusters.found,
            "settled_s": self.clusters.after.as_secs_f64(),
            "broadcast": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            "right": self.is_right(),
        })
    }
}

/// The broadcasts of one length: seconds by tree and turn.
struct Row {
    bytes: usize,
    seconds: Vec<Vec<f64>>,
    is_right: bool,
}

/// One tree beside the static one.
struct Ratio {
    milliseconds: f64,
    /// Of the ratios of each turn.
    median: f64,
    low: f64,
    high: f64,
}

impl Row {
    fn ratios(&self) -> Vec<Ratio> {
        let base = &self.seconds[TREES.len() - 1];
        let ratio = |seconds: &Vec<f64>| {
            let mut ratios: Vec<f64> =
                seconds.iter().zip(base).map(|(own, base)| own / base).collect();
            ratios.sort_by(f64::total_cmp);
            let mut sorted = seconds.clone();
            sorted.sort_by(f64::total_cmp);
            let last = ratios.len() - 1;
            let (low, high) = (ratios[0], ratios[last]);
            Ratio { milliseconds: sorted[last / 2] * 1e3, median: ratios[last / 2], low, high }
        };
        self.seconds.iter().map(ratio).collect()
    }

    fn to_json(&self) -> Value {
        let trees = TREES.iter().zip(self.ratios()).map(|(tree, ratio)| {
            json!({
                "tree": tree.to_string(),
                "median_ms": ratio.milliseconds,
                "of_static": ratio.median,
                "low": ratio.low,
                "high": ratio.high,
            })
        });
        json!({
            "bytes": self.bytes,
            "turns": self.seconds[0].len(),
            "trees": trees.collect::<Vec<_>>(),
        })
    }
}

/// A command of `sapwood group`.
fn command(program: &Path, command: &str) -> Vec<String> {
    vec![program.display().to_string(), "group".into(), command.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_has_its_schema() {
        let rows = vec![Row { bytes: 1, seconds: vec![vec![0.5]; 4], is_right: true }];
        let clusters = Clusters { found: vec![json!("0-5")], after: Duration::from_secs(2) };
        let shown = Shown { members: 6, count: 3, clusters, picture: String::new(), rows };
        sapwood_schema::assert_fits("group-demo-1", &shown.to_json());
    }

    #[test]
    fn ratios_are_those_of_each_turn() {
        let seconds = vec![vec![1.0, 2.0, 3.0], vec![1.0; 3], vec![1.0; 3], vec![2.0, 2.0, 1.0]];
        let row = Row { bytes: 1, seconds, is_right: true };
        let adaptive = &row.ratios()[0];
        assert_eq!((adaptive.low, adaptive.median, adaptive.high), (0.5, 1.0, 3.0));
        assert!((adaptive.milliseconds - 2000.0).abs() < 1e-9);
    }
}
