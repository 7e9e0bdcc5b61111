//! `sapwood doctor --hosts`: a tree over hosts, in which each says which host it is.
//!
//! Owns the back-end that answers, the table of hosts and what it says of each: that it is there,
//! by which interface it was reached, how far its clock is off, or why it is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::ArgGroup;
use sapwood::{
    Answer, BackEnd, Error, Event, Hosts, Launcher, Network, NetworkBuilder, Program, RankSet,
    Received, Stream, Tag, Topology, Values, WaveRule,
};
use sapwood_topology::{HostName, NodeSet};
use serde_json::{Value, json};

use super::links::{self, Found, Seen, Starts};
use sapwood_command_line::exit::{Failure, UNREACHED, complain, one_line, print};
use sapwood_command_line::times::patience;
use sapwood_hosts::absence::{by_reason, name_in, nodes};
use sapwood_hosts::cause::without_name;
use sapwood_hosts::deploy::Targets;
use sapwood_hosts::groups::SiteGroups;
use sapwood_hosts::launching::{Launching, dry_run};
use sapwood_hosts::measured::{self, Measurement};
use sapwood_hosts::notices::Notices;
use sapwood_hosts::tree::{self, Chosen, Purpose, TreeTerms};
use sapwood_topology_tool::measured::as_option;

/// The hidden argument with which this program is a host's voice.
pub const BACK_END: &str = "doctor-back-end";

const TAG: Tag = sapwood::FIRST_TAG;

/// How long hosts may take to answer, once they are there: a wave goes on without those that take
/// longer, and names them.
const ANSWER_MILLISECONDS: u32 = 10_000;
/// How long that may take to be told.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Hosts that are reached side by side to see how log-ins delay each other.
const STARTS: usize = 8;

/// Where the system names the time since its start.
const MACHINE_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// Why a host is missing that says what this version does not know.
const UNREADABLE: &str = "its answer cannot be read";

/// Between two questions of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Options that say how hosts are reached.
fn reach() -> impl Iterator<Item = &'static str> {
    TreeTerms::OPTIONS.into_iter().chain(Launching::WAYS).chain(Launching::STARTS)
}

/// What is asked about hosts.
#[derive(clap::Args)]
#[group(skip)]
#[command(group = ArgGroup::new("reach").args(reach()).multiple(true).requires("hosts"))]
pub(super) struct Arguments {
    /// Check these hosts instead of this machine: start a tree over them, query each one, and
    /// measure the costs of messages and log-ins, by which later trees are chosen.
    #[arg(long, value_name = "NODESET")]
    pub(super) hosts: Option<String>,
    /// Query the hosts for this time, and name those that stop answering.
    #[arg(long, value_name = "SECONDS", value_parser = patience, requires = "hosts")]
    watch: Option<Duration>,
    /// Print the tree and the commands that would start it, and start nothing.
    #[arg(long, requires = "hosts")]
    dry_run: bool,
    #[command(flatten)]
    tree: TreeTerms,
    #[command(flatten)]
    launching: Launching,
}

/// What is known of a host.
#[derive(Clone, Debug)]
struct Host {
    name: String,
    said: Option<Said>,
    /// Why it is missing, as it was said; empty while it is there.
    reason: String,
}

/// What a host says of itself.
#[derive(Clone, Debug)]
struct Said {
    name: String,
    pid: u32,
    path: String,
    /// Its wall clock, since 1970.
    clock: Duration,
    /// What its machine calls itself since it has started: hosts that say the same share
    /// processors.
    machine: String,
    processors: u32,
}

/// One examination of hosts.
struct Round {
    hosts: Vec<Host>,
    startup: Duration,
    round_trip: Duration,
    rounds: u32,
    depth: u32,
    /// Why the tree is as it is.
    why: String,
    /// What its links cost, if that was measured.
    found: Option<Found>,
    /// Whether the launcher reaches hosts, and all of them are this machine: no link is measured.
    is_own_machine: bool,
}

/// Starts the tree, asks, and prints what came.
pub(super) fn run(arguments: &Arguments, list: &str, as_json: bool) -> Result<ExitCode, Failure> {
    let hosts = NodeSet::parse(list, &SiteGroups::default()).map_err(Failure::usage)?;
    let targets = Targets::of(hosts)?;
    let names: Vec<String> = targets.set.iter().collect();
    let launching = arguments.launching.as_user(None)?;
    let purpose = if arguments.watch.is_some() { Purpose::Kept } else { Purpose::Once };
    let Chosen { topology, why } = tree::over(&targets, &arguments.tree, &launching, purpose)?;
    let depth = topology.depth();
    let drawn = topology.draw();
    let program = sapwood::node_program()?;
    let builder = |topology| {
        let program = Program::new(&program).argument(BACK_END);
        launching.apply(Network::builder(topology).back_end(program).allow_missing())
    };
    let whole = builder(topology);
    if arguments.dry_run {
        print(&format!("tree: {why}\n{}", dry_run(&whole, &drawn)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    launching.announce(&whole);
    let begun = Instant::now();
    let mut network = whole.open()?;
    let startup = begun.elapsed();
    let unheard = |name: &String| Host { name: name.clone(), said: None, reason: String::new() };
    let hosts = names.iter().map(unheard).collect();
    let (round_trip, found) = (Duration::ZERO, None);
    let is_linked = !matches!(launching.launcher(), Launcher::Local | Launcher::Attach);
    let is_own_machine = is_linked && names.iter().all(|name| sapwood_launch::is_own_name(name));
    let mut round =
        Round { hosts, startup, round_trip, rounds: 0, depth, why, found, is_own_machine };
    round.take_start(&mut network);
    let limit = WaveRule::Timeout { milliseconds: ANSWER_MILLISECONDS };
    let everyone = network.everyone();
    // Where no host was reached none is asked; the table has the reasons.
    let mut stream = match everyone.size() {
        0 => None,
        _ => Some(network.stream(&everyone).up("concatenate").wave(limit).open()?),
    };
    if let Some(stream) = &mut stream {
        round.ask(&mut network, stream)?;
    }
    if arguments.watch.is_none() && is_linked && !is_own_machine && round.is_whole() {
        let starts = time_starts(&names, builder)?;
        let (machines, processors) = round.machines();
        let launch_method = launching.launch_method();
        let seen = Seen { names: &names, launch_method, starts, machines, processors };
        round.found = Some(links::measure(&mut network, &seen)?);
        round.keep_links();
    }
    if arguments.watch.is_none() {
        round.take_ended_job(&launching);
    }
    if !as_json {
        print(&round.table())?;
    }
    if let (Some(time), Some(stream)) = (arguments.watch, &mut stream) {
        round.watch(&mut network, stream, time, as_json)?;
        round.take_ended_job(&launching);
    }
    drop(stream);
    network.close()?;
    if as_json {
        print(&format!("{}\n", round.to_json()))?;
    }
    Ok(if round.is_whole() { ExitCode::SUCCESS } else { ExitCode::from(UNREACHED) })
}

/// How long it takes until one host that is not this machine has started, and until several have
/// that are reached side by side.
fn time_starts(
    names: &[String],
    builder: impl Fn(Topology) -> NetworkBuilder,
) -> Result<Starts, Failure> {
    let others = names.iter().filter(|name| !sapwood_launch::is_own_name(name));
    let others = others.take(STARTS).map(|name| name.parse()).collect::<Result<Vec<HostName>, _>>();
    let others = others.map_err(Failure::usage)?;
    let time = |count: usize| {
        let hosts = Hosts::new(others[..count].to_vec()).map_err(Failure::usage)?;
        let flat = Topology::over_hosts(&hosts, count as u32).map_err(Failure::usage)?;
        let begun = Instant::now();
        let network = builder(flat).open()?;
        let taken = begun.elapsed();
        network.close()?;
        Ok::<_, Failure>(taken)
    };
    let one = time(1)?.min(time(1)?);
    let several = if others.len() > 1 { time(others.len())? } else { one };
    Ok(Starts { one, several, hosts: others.len() })
}

impl Round {
    fn is_whole(&self) -> bool {
        self.hosts.iter().all(|host| host.reason.is_empty())
    }

    /// On how many machines the hosts are, and the processors of the least.
    fn machines(&self) -> (u32, u32) {
        let said = || self.hosts.iter().filter_map(|host| host.said.as_ref());
        let machines: BTreeSet<&str> = said().map(|said| said.machine.as_str()).collect();
        let processors = said().map(|said| said.processors).min();
        (u32::try_from(machines.len()).unwrap_or(u32::MAX).max(1), processors.unwrap_or(1))
    }

    /// Keeps what was measured for trees to come.
    fn keep_links(&self) {
        let links = self.found.as_ref().map(|found| found.links.clone());
        if let Some(Err(error)) = links.map(measured::store) {
            complain(format_args!("cannot save the measurements: {error}"));
        }
    }

    /// The hosts that have not started, and why.
    fn take_start(&mut self, network: &mut Network) {
        self.take_events(network);
        let there = network.everyone();
        for (rank, host) in (0..).zip(&mut self.hosts) {
            if host.reason.is_empty() && !there.ranks().contains(rank) {
                host.reason = "its parent process did not start".to_owned();
            }
        }
    }

    /// The hosts that are gone, and why.
    fn take_events(&mut self, network: &mut Network) {
        let (mut gone, mut notices) = (BTreeMap::new(), Notices::default());
        while let Some(event) = network.next_event() {
            notices.take(&event);
            match event {
                Event::StartFailed { rank, text } => {
                    gone.insert(rank, text);
                }
                Event::Broken { back_ends, reason, .. } | Event::Lost { back_ends, reason, .. } => {
                    gone.extend(back_ends.iter().map(|rank| (rank, reason.clone())));
                }
                Event::Joined { back_ends } | Event::Repaired { back_ends, .. } => {
                    gone.retain(|rank, _| !back_ends.contains(*rank));
                }
                _ => {}
            }
        }
        notices.tell();
        for (rank, reason) in gone {
            if let Some(host) = self.hosts.get_mut(rank as usize)
                && host.reason.is_empty()
            {
                host.reason = reason;
            }
        }
    }

    /// If hosts are missing because their allocation has ended, so are those that answered before.
    fn take_ended_job(&mut self, launching: &Launching) {
        if self.is_whole() || !launching.tell_of_ended_job() {
            return;
        }
        let is_away = |host: &&mut Host| !sapwood_launch::is_own_name(&host.name);
        for host in self.hosts.iter_mut().filter(is_away) {
            if host.reason.is_empty() {
                host.reason = "answered, then its allocation ended".to_owned();
            }
        }
    }

    fn ask(&mut self, network: &mut Network, stream: &mut Stream) -> Result<(), Failure> {
        if stream.members().size() == 0 {
            return Ok(());
        }
        let begun = Instant::now();
        stream.broadcast(TAG, Values::new())?;
        let answer = loop {
            let answer = stream.recv_timeout(ANSWER_LIMIT)?;
            if !answer.is_late {
                break answer;
            }
        };
        self.round_trip = begun.elapsed();
        self.rounds += 1;
        self.take(&answer)?;
        // A host that has answered may be gone before the last of the others has.
        self.take_events(network);
        Ok(())
    }

    fn take(&mut self, answer: &Answer) -> Result<(), Failure> {
        for missing in &answer.missing {
            for rank in missing.ranks.iter() {
                if let Some(host) = self.hosts.get_mut(rank as usize) {
                    host.reason.clone_from(&missing.reason);
                }
            }
        }
        let Ok(values) = answer.value() else { return Ok(()) };
        let lines = values.strings(0).map_err(Error::from)?;
        for (rank, line) in answer.contributors.iter().zip(lines) {
            if let Some(host) = self.hosts.get_mut(rank as usize) {
                host.hear(&String::from_utf8_lossy(line));
            }
        }
        Ok(())
    }

    /// Asks again and again, and tells of changes.
    fn watch(
        &mut self,
        network: &mut Network,
        stream: &mut Stream,
        time: Duration,
        is_quiet: bool,
    ) -> Result<(), Failure> {
        let until = Instant::now() + time;
        let mut before = self.causes();
        complain(format_args!("watching for {} s", time.as_secs()));
        while Instant::now() < until {
            network.turn(WATCH_INTERVAL.min(until.saturating_duration_since(Instant::now())))?;
            self.ask(network, stream)?;
            let now = self.causes();
            if now != before && !is_quiet {
                print(&self.changes(&before))?;
            }
            before = now;
        }
        Ok(())
    }

    /// Of each host, why it is missing, however that is said.
    fn causes(&self) -> Vec<String> {
        self.hosts.iter().map(Host::cause).collect()
    }

    /// The hosts that had another cause before.
    fn changes(&self, before: &[String]) -> String {
        let has_changed = |&rank: &usize| before[rank] != self.hosts[rank].cause();
        self.lines(&(0..self.hosts.len()).filter(has_changed).collect::<Vec<_>>())
    }

    fn table(&self) -> String {
        let mut text = self.lines(&(0..self.hosts.len()).collect::<Vec<_>>());
        let there = self.hosts.iter().filter(|host| host.reason.is_empty()).count();
        // Writing to a string cannot fail.
        let _ = write!(text, "{there} of {} hosts have answered; ", self.hosts.len());
        let levels = if self.depth == 1 { "level" } else { "levels" };
        let _ = if there == 0 {
            writeln!(text, "no round trip was measured")
        } else {
            writeln!(
                text,
                "a tree of {} {levels} started in {} ms; a round trip took {} us",
                self.depth,
                self.startup.as_millis(),
                self.round_trip.as_micros()
            )
        };
        let _ = writeln!(text, "tree: {}", self.why);
        if let Some(Found { links: Measurement { message, log_in, .. }, .. }) = &self.found {
            let _ = writeln!(
                text,
                "links: --loggp {}; a log-in {:.0} ms, and {:.1} ms for each concurrent one; \
                 saved for later commands",
                as_option(message),
                log_in.alone_us / 1e3,
                log_in.gap_us / 1e3,
            );
        } else if self.is_own_machine {
            text.push_str("links: not measured: all hosts are this machine\n");
        }
        text
    }

    /// A line for each of these hosts that has answered, and one for each reason, with all that are
    /// missing for it.
    fn lines(&self, ranks: &[usize]) -> String {
        let answered = ranks.iter().filter_map(|&rank| self.hosts[rank].answer());
        let away = ranks.iter().filter(|&&rank| !self.hosts[rank].reason.is_empty());
        let away = away.map(|&rank| (rank as u32, self.hosts[rank].reason.as_str()));
        let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        let absence = by_reason(away, name_in(&names));
        let line = |(ranks, reason): &(RankSet, String)| {
            format!("missing  {:<18} {}\n", nodes(&names, ranks).to_string(), one_line(reason))
        };
        answered.chain(absence.iter().map(line)).collect()
    }

    fn to_json(&self) -> Value {
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        json!({
            "schema": "sapwood.doctor-hosts/1",
            "version": env!("CARGO_PKG_VERSION"),
            "levels": self.depth,
            "startup_ms": milliseconds(self.startup),
            "round_trip_ms": milliseconds(self.round_trip),
            "rounds": self.rounds,
            "tree": self.why,
            "links": self.found.as_ref().map(|found| measured::as_json(&found.links)),
            "waves": self.found.as_ref().map(|found| json!({
                "one_host_us": found.one_us,
                "all_hosts_us": found.all_us,
                "streamed_per_s": found.waves_per_s,
            })),
            "hosts": self.hosts.iter().map(Host::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Host {
    /// Takes what the host says of itself.
    fn hear(&mut self, line: &str) {
        self.said = Said::read(line);
        let reason = if self.said.is_some() { "" } else { UNREADABLE };
        self.reason = reason.to_owned();
    }

    /// The line of a host that is there.
    fn answer(&self) -> Option<String> {
        let Self { name, said, reason } = self;
        let Said { name: own, pid, path, .. } = said.as_ref().filter(|_| reason.is_empty())?;
        Some(format!("ok       {name:<18} host name {own}, pid {pid}, {path}\n"))
    }

    /// The reason without what the same may be called at another time.
    fn cause(&self) -> String {
        without_name(&self.reason, &self.name)
    }

    fn to_json(&self) -> Value {
        let said = self.said.as_ref();
        json!({
            "host": self.name,
            "state": if self.reason.is_empty() { "ok" } else { "missing" },
            "reason": self.cause(),
            "name": said.map(|said| said.name.clone()),
            "process": said.map(|said| said.pid),
            "path": said.map(|said| said.path.clone()),
            "clock": said.map(|said| said.clock.as_secs_f64()),
        })
    }
}

impl Said {
    /// What this process says.
    fn own_line(path: &str) -> String {
        let kernel = rustix::system::uname();
        let name = kernel.nodename().to_string_lossy();
        let clock = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let machine = std::fs::read_to_string(MACHINE_FILE).unwrap_or_else(|_| name.to_string());
        let (machine, processors) = (machine.trim(), tree::own_processors());
        let (pid, clock) = (std::process::id(), clock.as_nanos());
        format!("{name}\t{pid}\t{path}\t{clock}\t{machine}\t{processors}")
    }

    fn read(line: &str) -> Option<Self> {
        let mut words = line.split('\t');
        let name = words.next()?.to_owned();
        let pid = words.next()?.parse().ok()?;
        let path = words.next()?.to_owned();
        let clock = Duration::from_nanos(words.next()?.parse().ok()?);
        let machine = words.next()?.to_owned();
        let processors = words.next()?.parse().ok()?;
        Some(Self { name, pid, path, clock, machine, processors })
    }
}

/// Answers what only measures: a number, or what was sent.
fn answer_probe(back_end: &mut BackEnd, received: &Received) -> Result<(), Failure> {
    let stream = received.stream;
    let sent = match received.tag() {
        links::PING => back_end.send(stream, links::PING, 1_i64),
        links::FLOW => {
            let count = received.values().scalar::<u32>(0).map_err(Error::from)?;
            (0..count).try_for_each(|_| back_end.send(stream, links::FLOW, 1_i64))
        }
        _ => {
            let text = received.values().string_bytes(0).map_err(Error::from)?;
            back_end.send(stream, links::ECHO, Values::new().string(text))
        }
    };
    match sent {
        Ok(()) | Err(Error::Ended { .. } | Error::Misuse(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Is a host's voice until the network ends.
pub fn back_end() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    loop {
        let received = match back_end.recv() {
            Ok(received) => received,
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        };
        if received.tag() != TAG {
            answer_probe(&mut back_end, &received)?;
            continue;
        }
        let path = back_end.path().unwrap_or_else(|| "by a local socket".to_owned());
        let line = Said::own_line(&path);
        match back_end.send(received.stream, TAG, Values::new().strings(&[line])) {
            Ok(()) | Err(Error::Ended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "own\t7\t/sapwood-node\t0\tmachine\t4";

    /// A round over hosts with these reasons; those with an empty one have answered.
    fn round<const COUNT: usize>(reasons: [&str; COUNT]) -> Round {
        let host = |(number, reason): (usize, &&str)| Host {
            name: format!("n{number}"),
            said: Said::read(SAID),
            reason: (*reason).to_owned(),
        };
        let (startup, round_trip) = (Duration::ZERO, Duration::ZERO);
        let hosts = reasons.iter().enumerate().map(host).collect();
        let (why, found, is_own_machine) = (String::new(), None, false);
        Round { hosts, startup, round_trip, rounds: 1, depth: 1, why, found, is_own_machine }
    }

    #[test]
    fn a_reason_that_hosts_have_word_for_word_stays() {
        let lost = "back-end 7 is gone: closed";
        let table = round(["", lost, lost, "back-end 3 is gone: reset"]).table();
        assert!(table.starts_with("ok       n0 "), "{table}");
        assert!(
            table.contains("missing  n[1-2]             back-end 7 is gone: closed\n"),
            "{table}"
        );
        assert!(table.contains("missing  n3                 reset\n"), "{table}");
    }

    #[test]
    fn a_host_whose_answer_cannot_be_read_has_not_answered() {
        let mut round = round([""]);
        round.hosts[0].hear("own\t7");
        let table = round.table();
        assert!(table.starts_with("missing  n0 "), "{table}");
        let none = "\n0 of 1 hosts have answered; no round trip was measured\n";
        assert!(table.contains(none), "{table}");
        round.hosts[0].hear(SAID);
        let table = round.table();
        assert!(round.is_whole() && table.starts_with("ok       n0 "), "{table}");
        assert!(table.contains("\n1 of 1 hosts have answered; a tree of 1 level started in "));
    }

    #[test]
    fn a_change_of_many_hosts_is_one_line() {
        let before = round(["", "", "", "asleep"]).causes();
        let [one, other] = ["host n0: ssh: No route", "host n1: ssh: No route"];
        let changed = round([one, other, "", ""]);
        let lines = changed.changes(&before);
        let answered = "ok       n3                 host name own, pid 7, /sapwood-node\n";
        assert_eq!(lines, format!("{answered}missing  n[0-1]             ssh: No route\n"));
        assert_eq!(changed.changes(&changed.causes()), "");
    }
}
