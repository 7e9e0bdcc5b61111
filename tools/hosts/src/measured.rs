//! What messages and log-ins cost between hosts: what `sapwood doctor --hosts` has measured, or a
//! guess.
//!
//! Owns the file with what was measured, in the user's cache folder. A file that cannot be read, or
//! was written by another release, counts as none: it is only a cache.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sapwood_topology::{LogGp, NoGroups, NodeSet};
use serde_json::{Value, json};

/// What the file says it is.
const SCHEMA: &str = "sapwood.links/2";

/// Measurements that are kept; the oldest go first.
const KEPT_MAX: usize = 32;

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What it costs to have a process on another host, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogIn {
    /// From the call of one host until its process goes on.
    pub alone_us: f64,
    /// How much later it goes on for each other host that the same process calls before.
    pub gap_us: f64,
}

impl LogIn {
    /// What is taken where nothing was measured.
    pub fn guess() -> Self {
        let model = LogGp::LOG_IN;
        Self { alone_us: model.message_us(1), gap_us: model.gap_us() }
    }

    /// The model in which it is a message. At most this number is under way at a time. What
    /// delays the next is the caller's own work, as far as the time of one has room for as much
    /// at either end.
    pub fn model(self, concurrent: u32) -> Option<LogGp> {
        let overhead_us = self.gap_us.min(self.alone_us / 2.0);
        let gap_us = self.gap_us.max(self.alone_us / f64::from(concurrent.max(1)));
        LogGp::new(self.alone_us - 2.0 * overhead_us, overhead_us, gap_us, 0.0).ok()
    }
}

/// What was measured over some hosts at one time.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The hosts.
    pub hosts: NodeSet,
    /// How they were reached: `ssh` or `slurm`.
    pub launch_method: String,
    /// What a message costs.
    pub message: LogGp,
    /// What a log-in costs.
    pub log_in: LogIn,
    /// On how many machines these hosts are, and the processors of each.
    pub machines: u32,
    pub processors: u32,
    /// When, since 1970.
    pub date: Duration,
}

/// What is known of links between some hosts.
#[derive(Clone, Debug)]
pub struct Measured(Option<Measurement>);

impl Measured {
    /// What was measured last with the most of these hosts, reached in the same way.
    pub fn for_hosts(hosts: &NodeSet, launch_method: &str) -> Self {
        let common = |one: &Measurement| one.hosts.intersection(hosts).len();
        let all =
            read().into_iter().filter(|one| one.launch_method == launch_method && common(one) > 0);
        Self(all.max_by_key(|one| (common(one), one.date)))
    }

    /// Whether it is more than a guess.
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// What a message costs.
    pub fn message(&self) -> LogGp {
        self.0.as_ref().map_or(LogGp::NETWORK, |one| one.message)
    }

    /// What starting a process on another host costs, if one process reaches this number at a time.
    pub fn log_in(&self, concurrent: u32) -> LogGp {
        let log_in = self.0.as_ref().map_or_else(LogIn::guess, |one| one.log_in);
        log_in.model(concurrent).unwrap_or(LogGp::LOG_IN)
    }

    /// On how many machines this number of hosts is, and how many processors each has: as many
    /// machines as hosts, with the given processors, if it is not known.
    pub fn machines(&self, hosts: u32, processors: u32) -> (u32, u32) {
        let Some(one) = &self.0 else { return (hosts, processors) };
        let measured = u32::try_from(one.hosts.len()).unwrap_or(u32::MAX);
        let per_machine = measured.div_ceil(one.machines.max(1)).max(1);
        (hosts.div_ceil(per_machine), one.processors)
    }

    /// Where it comes from, in a few words.
    pub fn source(&self) -> String {
        let Some(one) = &self.0 else {
            return "estimated; 'sapwood doctor --hosts' measures the costs here".to_owned();
        };
        format!("as measured {} on {} hosts", age(one.date, now()), one.hosts.len())
    }
}

/// The time since 1970.
pub fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

fn age(date: Duration, now: Duration) -> String {
    let hours = now.saturating_sub(date).as_secs() / 3600;
    match hours {
        0 => "within the last hour".to_owned(),
        1..=47 => format!("{hours} hours ago"),
        _ => format!("{} days ago", hours / 24),
    }
}

/// Adds a measurement to the file; where that is.
///
/// # Errors
/// One line, where there is no folder or it cannot be written.
pub fn store(new: Measurement) -> Result<PathBuf, String> {
    let path = path().ok_or("neither XDG_CACHE_HOME nor HOME names a folder")?;
    let mut all = read();
    all.retain(|one| one.hosts != new.hosts || one.launch_method != new.launch_method);
    all.push(new);
    all.sort_by_key(|one| one.date);
    let first = all.len().saturating_sub(KEPT_MAX);
    let text = json!({
        "schema": SCHEMA,
        "measured": all[first..].iter().map(as_json).collect::<Vec<_>>(),
    });
    let folder = path.parent().unwrap_or(&path);
    let partial = path.with_extension(format!("json.{}", std::process::id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&partial, format!("{text}\n")))
        .and_then(|()| fs::rename(&partial, &path));
    match written {
        Ok(()) => Ok(path),
        Err(error) => {
            let _ = fs::remove_file(&partial);
            Err(format!("{}: {error}", path.display()))
        }
    }
}

fn path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("sapwood").join("links.json"))
}

fn read() -> Vec<Measurement> {
    let text = path().filter(|path| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES_MAX)
    });
    let text = text.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    from_text(&text)
}

fn from_text(text: &str) -> Vec<Measurement> {
    let Ok(file) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    if file["schema"] != SCHEMA {
        return Vec::new();
    }
    let all = file["measured"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(from_json).collect()
}

/// A measurement, as it is kept.
pub fn as_json(one: &Measurement) -> Value {
    let Measurement { hosts, launch_method, message, log_in, machines, processors, date } = one;
    json!({
        "date": date.as_secs(),
        "hosts": hosts.to_string(),
        "road": launch_method,
        "latency_us": message.latency_us(),
        "overhead_us": message.overhead_us(),
        "gap_us": message.gap_us(),
        "gap_per_byte_us": message.gap_per_byte_us(),
        "log_in_us": log_in.alone_us,
        "log_in_gap_us": log_in.gap_us,
        "machines": machines,
        "processors": processors,
    })
}

fn from_json(value: &Value) -> Option<Measurement> {
    let number = |name: &str| value[name].as_f64();
    let count = |name: &str| u32::try_from(value[name].as_u64()?).ok().filter(|&count| count > 0);
    let log_in = LogIn { alone_us: number("log_in_us")?, gap_us: number("log_in_gap_us")? };
    // What is no time makes no model.
    log_in.model(1)?;
    let message = LogGp::new(
        number("latency_us")?,
        number("overhead_us")?,
        number("gap_us")?,
        number("gap_per_byte_us")?,
    );
    Some(Measurement {
        hosts: NodeSet::parse(value["hosts"].as_str()?, &NoGroups).ok()?,
        launch_method: value["road"].as_str()?.to_owned(),
        message: message.ok()?,
        log_in,
        machines: count("machines")?,
        processors: count("processors")?,
        date: Duration::from_secs(value["date"].as_u64()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_is_none() {
        let one = Measurement {
            hosts: NodeSet::parse("node[00-15]", &NoGroups).unwrap(),
            launch_method: "ssh".to_owned(),
            message: LogGp::new(30.0, 8.0, 8.0, 0.001).unwrap(),
            log_in: LogIn { alone_us: 200_000.0, gap_us: 12_000.0 },
            machines: 4,
            processors: 8,
            date: Duration::from_secs(1_700_000_000),
        };
        let text = json!({"schema": SCHEMA, "measured": [as_json(&one)]}).to_string();
        let read = from_text(&text);
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].hosts.len(), read[0].message), (16, one.message));
        assert_eq!(Measured(Some(one.clone())).machines(6, 1), (2, 8), "four hosts on each");
        for damaged in [
            text.replace("30.0", "-1.0"),
            text.replace("node[00-15]", "node[00-"),
            text.replace("links/2", "links/1"),
            text[..text.len() / 2].to_owned(),
        ] {
            assert_eq!(from_text(&damaged).len(), 0, "{damaged}");
        }
    }

    #[test]
    fn log_ins_at_a_time_space_the_starts() {
        let model = |gap_us| LogIn { alone_us: 320_000.0, gap_us }.model(32).unwrap();
        for (gap_us, spaced_us) in
            [(1_000.0, 10_000.0), (50_000.0, 50_000.0), (300_000.0, 300_000.0)]
        {
            let model = model(gap_us);
            assert_eq!(model.gap_us(), spaced_us);
            assert_eq!(model.message_us(1), 320_000.0, "one alone");
        }
        assert_eq!(age(Duration::ZERO, Duration::from_secs(3 * 86_400)), "3 days ago");
    }
}
