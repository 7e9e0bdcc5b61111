//! What a host is like: its files read at one time, and the metrics between two of these.
//!
//! Owns where the files are and what becomes of their numbers. How their text is read is in
//! `proc`. Reading touches the system; everything else here is arithmetic.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use super::metric::{METRICS, place};
use super::proc::{self, Disk, Load, Memory, Stat, Ticks, Traffic};

/// Most bytes of a file that are read; what is longer is not understood.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Rates over less time than this say nothing.
const TIME_MIN: Duration = Duration::from_millis(10);

/// What a host's files said at one time.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    at: Instant,
    stat: Option<Stat>,
    load: Option<Load>,
    memory: Option<Memory>,
    interfaces: Option<BTreeMap<String, Traffic>>,
    disks: Option<BTreeMap<String, Disk>>,
    /// Of cores, memory, disks.
    pressures: [Option<f64>; 3],
    uptime: Option<f64>,
}

impl Reading {
    /// Reads `proc` and `sys` in a folder. A file that is not there, or is not understood, gives
    /// nothing.
    pub(crate) fn take(root: &Path) -> Self {
        let text = |name: &str| read(&root.join("proc").join(name));
        let interfaces = text("net/dev").as_deref().and_then(proc::net_dev);
        let pressure = |name: &str| text(name).as_deref().and_then(proc::pressure);
        Self {
            at: Instant::now(),
            stat: text("stat").as_deref().and_then(proc::stat),
            load: text("loadavg").as_deref().and_then(proc::loadavg),
            memory: text("meminfo").as_deref().and_then(proc::meminfo),
            interfaces: interfaces.map(|all| with_devices(all, &root.join("sys/class/net"))),
            disks: text("diskstats").as_deref().and_then(proc::diskstats),
            pressures: ["pressure/cpu", "pressure/memory", "pressure/io"].map(pressure),
            uptime: text("uptime").as_deref().and_then(proc::uptime),
        }
    }

    /// The metrics now, in the order of the table, rates being over the time since an earlier
    /// reading. NaN for what is not known.
    pub(crate) fn metrics_since(&self, before: &Self) -> [f64; METRICS] {
        let mut metrics = Values([f64::NAN; METRICS]);
        let elapsed = self.at.saturating_duration_since(before.at);
        if let (Some(now), Some(before)) = (&self.stat, &before.stat) {
            metrics.set_cores(before, now);
        }
        if let Some(load) = self.load {
            metrics.set_load(&load, self.stat.as_ref());
        }
        if let Some(memory) = self.memory {
            metrics.set_memory(memory);
        }
        for (name, pressure) in
            ["pressure.cpu", "pressure.memory", "pressure.io"].into_iter().zip(self.pressures)
        {
            metrics.set(name, pressure);
        }
        metrics.set("uptime", self.uptime);
        if elapsed >= TIME_MIN {
            let seconds = elapsed.as_secs_f64();
            if let (Some(now), Some(before)) = (&self.interfaces, &before.interfaces) {
                metrics.set_traffic(before, now, seconds);
            }
            if let (Some(now), Some(before)) = (&self.disks, &before.disks) {
                metrics.set_disks(before, now, seconds);
            }
        }
        metrics.0
    }
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    let count = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).ok()?;
    (count as u64 <= FILE_BYTES_MAX).then_some(text)
}

/// Only the interfaces with a device of their own, if there are any: bridges, bonds and tunnels
/// carry the same bytes once more. In a container or a host of the test bed there are none.
fn with_devices(
    mut interfaces: BTreeMap<String, Traffic>,
    folder: &Path,
) -> BTreeMap<String, Traffic> {
    let has_device = |name: &str| folder.join(name).join("device").exists();
    if interfaces.keys().any(|name| has_device(name)) {
        interfaces.retain(|name, _| has_device(name));
    }
    interfaces
}

/// Values in the making.
struct Values([f64; METRICS]);

impl Values {
    fn set(&mut self, name: &str, value: Option<f64>) {
        if let (Some(at), Some(value)) = (place(name), value) {
            self.0[at] = value;
        }
    }

    fn set_cores(&mut self, before: &Stat, now: &Stat) {
        self.set("cpu.cores", Some(now.cores.len() as f64));
        let spent = Spent::between(&before.all, &now.all);
        self.set("cpu.busy", spent.share(spent.busy()));
        self.set("cpu.user", spent.share(spent.0.user));
        self.set("cpu.system", spent.share(spent.0.system));
        self.set("cpu.iowait", spent.share(spent.0.iowait));
        self.set("cpu.steal", spent.share(spent.0.steal));
        let busy = now.cores.iter().filter_map(|(core, now)| {
            let spent = Spent::between(before.cores.get(core)?, now);
            spent.share(spent.busy())
        });
        let busy: Vec<f64> = busy.collect();
        self.set("cpu.core_max", busy.iter().copied().reduce(f64::max));
        self.set("cpu.core_min", busy.iter().copied().reduce(f64::min));
    }

    fn set_load(&mut self, load: &Load, stat: Option<&Stat>) {
        let [one, five, fifteen] = load.averages;
        self.set("load.1", Some(one));
        self.set("load.5", Some(five));
        self.set("load.15", Some(fifteen));
        self.set("tasks.running", Some(load.running as f64));
        self.set("tasks.all", Some(load.tasks as f64));
        let cores = stat.map_or(0, |stat| stat.cores.len());
        self.set("load.core", (cores > 0).then(|| one / cores as f64));
    }

    fn set_memory(&mut self, memory: Memory) {
        let used = memory.total.saturating_sub(memory.available) as f64;
        let swap_used = memory.swap_total.saturating_sub(memory.swap_free) as f64;
        let share = |part: f64, whole: u64| if whole == 0 { 0.0 } else { part / whole as f64 };
        self.set("memory.total", Some(memory.total as f64));
        self.set("memory.used", Some(used));
        self.set("memory.available", Some(memory.available as f64));
        self.set("memory.full", Some(share(used, memory.total)));
        self.set("swap.used", Some(swap_used));
        self.set("swap.full", Some(share(swap_used, memory.swap_total)));
    }

    fn set_traffic(
        &mut self,
        before: &BTreeMap<String, Traffic>,
        now: &BTreeMap<String, Traffic>,
        seconds: f64,
    ) {
        let mut rate = |name: &str, of: fn(&Traffic) -> u64| {
            self.set(name, rate(before, now, of, seconds));
        };
        rate("net.received", |traffic| traffic.bytes_received);
        rate("net.sent", |traffic| traffic.bytes_sent);
        rate("net.packets_received", |traffic| traffic.packets_received);
        rate("net.packets_sent", |traffic| traffic.packets_sent);
        rate("net.errors", |traffic| traffic.errors);
        rate("net.drops", |traffic| traffic.drops);
    }

    fn set_disks(
        &mut self,
        before: &BTreeMap<String, Disk>,
        now: &BTreeMap<String, Disk>,
        seconds: f64,
    ) {
        self.set("disk.read", rate(before, now, |disk| disk.bytes_read, seconds));
        self.set("disk.written", rate(before, now, |disk| disk.bytes_written, seconds));
        let busy = now.iter().filter_map(|(name, now)| {
            let busy_ms = now.busy_ms.checked_sub(before.get(name)?.busy_ms)?;
            // The kernel counts in ticks, and may be one ahead of our clock.
            Some((busy_ms as f64 / 1e3 / seconds).min(1.0))
        });
        self.set("disk.busy", busy.reduce(f64::max));
    }
}

/// A number's rise in a second, over all that are there at both times. None where there are none,
/// or one has gone back: it was set anew meanwhile.
fn rate<T>(
    before: &BTreeMap<String, T>,
    now: &BTreeMap<String, T>,
    of: fn(&T) -> u64,
    seconds: f64,
) -> Option<f64> {
    let both = now.iter().filter_map(|(name, now)| Some((of(before.get(name)?), of(now))));
    let rises: Option<Vec<u64>> = both.map(|(before, now)| now.checked_sub(before)).collect();
    let rises = rises.filter(|rises| !rises.is_empty())?;
    Some(rises.iter().map(|&rise| rise as f64).sum::<f64>() / seconds)
}

/// Time that was spent between two readings.
struct Spent(Ticks);

impl Spent {
    /// The kernel lets idle times go back now and then; that is no time.
    fn between(before: &Ticks, now: &Ticks) -> Self {
        Self(Ticks {
            user: now.user.saturating_sub(before.user),
            system: now.system.saturating_sub(before.system),
            idle: now.idle.saturating_sub(before.idle),
            iowait: now.iowait.saturating_sub(before.iowait),
            steal: now.steal.saturating_sub(before.steal),
        })
    }

    fn busy(&self) -> u64 {
        self.0.user.saturating_add(self.0.system).saturating_add(self.0.steal)
    }

    /// A part of all; none if there was no tick between.
    fn share(&self, part: u64) -> Option<f64> {
        let all = self.busy().saturating_add(self.0.idle).saturating_add(self.0.iowait);
        (all > 0).then(|| part as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(metrics: &[f64; METRICS], name: &str) -> f64 {
        metrics[place(name).expect("a metric")]
    }

    fn empty(at: Instant) -> Reading {
        Reading {
            at,
            stat: None,
            load: None,
            memory: None,
            interfaces: None,
            disks: None,
            pressures: [None; 3],
            uptime: None,
        }
    }

    fn two(first: impl FnOnce(&mut Reading), second: impl FnOnce(&mut Reading)) -> [f64; METRICS] {
        let now = Instant::now();
        let (mut before, mut after) = (empty(now), empty(now + Duration::from_secs(2)));
        first(&mut before);
        second(&mut after);
        after.metrics_since(&before)
    }

    #[test]
    fn what_is_not_there_is_absent_rather_than_zero() {
        let metrics = two(|_| {}, |_| {});
        assert!(metrics.iter().all(|value| value.is_nan()));
    }

    #[test]
    fn the_shares_of_cores_are_of_the_time_between() {
        let stat = |text: &str| proc::stat(text);
        let metrics = two(
            |before| {
                before.stat = stat("cpu 100 0 100 100 0 0 0 0\ncpu0 50 0 50 50\ncpu1 0 0 0 0\n")
            },
            |after| {
                after.stat = stat(
                    "cpu 140 10 130 200 10 5 5 0\ncpu0 150 0 50 50\ncpu1 0 0 10 30\ncpu7 9 0 0 0\n",
                );
            },
        );
        assert_eq!(of(&metrics, "cpu.user"), 0.25);
        assert_eq!(of(&metrics, "cpu.system"), 0.20);
        assert_eq!(of(&metrics, "cpu.iowait"), 0.05);
        assert_eq!(of(&metrics, "cpu.busy"), 0.45);
        assert_eq!(of(&metrics, "cpu.steal"), 0.0);
        assert_eq!([of(&metrics, "cpu.core_max"), of(&metrics, "cpu.core_min")], [1.0, 0.25]);
        assert_eq!(of(&metrics, "cpu.cores"), 3.0);
    }

    #[test]
    fn without_a_tick_between_there_is_no_share() {
        let stat = || proc::stat("cpu 1 1 1 1\ncpu0 1 1 1 1\n");
        let metrics = two(|before| before.stat = stat(), |after| after.stat = stat());
        assert!(of(&metrics, "cpu.busy").is_nan() && of(&metrics, "cpu.core_max").is_nan());
        assert_eq!(of(&metrics, "cpu.cores"), 1.0);
    }

    #[test]
    fn rates_are_per_second_over_what_was_there_before() {
        let disk = |bytes_read, busy_ms| Disk { bytes_read, busy_ms, ..Disk::default() };
        let disks = |all: &[(&str, Disk)]| {
            Some(all.iter().map(|(name, disk)| (name.to_string(), *disk)).collect())
        };
        let metrics = two(
            |before| before.disks = disks(&[("sda", disk(1000, 0)), ("sdb", disk(0, 100))]),
            |after| {
                after.disks =
                    disks(&[("sda", disk(3000, 500)), ("sdb", disk(0, 2200)), ("sdc", disk(9, 9))]);
            },
        );
        assert_eq!(of(&metrics, "disk.read"), 1000.0);
        assert_eq!(of(&metrics, "disk.busy"), 1.0);
        assert_eq!(of(&metrics, "disk.written"), 0.0);
    }

    #[test]
    fn a_counter_that_was_set_back_has_no_rate() {
        let interfaces = |bytes_received, errors| {
            let traffic = Traffic { bytes_received, errors, ..Traffic::default() };
            Some(BTreeMap::from([("eth0".to_string(), traffic)]))
        };
        let metrics = two(
            |before| before.interfaces = interfaces(500, 1),
            |after| after.interfaces = interfaces(100, 3),
        );
        assert!(of(&metrics, "net.received").is_nan());
        assert_eq!(of(&metrics, "net.errors"), 1.0);
        let metrics = two(
            |before| before.interfaces = Some(BTreeMap::new()),
            |after| after.interfaces = interfaces(1, 1),
        );
        assert!(of(&metrics, "net.received").is_nan(), "it was not there before");
    }

    #[test]
    fn memory_without_swap_has_none_used() {
        let memory = Memory { total: 1000, available: 250, ..Memory::default() };
        let metrics = two(|_| {}, |after| after.memory = Some(memory));
        assert_eq!(of(&metrics, "memory.used"), 750.0);
        assert_eq!(of(&metrics, "memory.full"), 0.75);
        assert_eq!(of(&metrics, "swap.full"), 0.0);
    }

    #[test]
    fn interfaces_without_a_device_count_only_where_none_has_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = |names: &[&str]| -> BTreeMap<String, Traffic> {
            names.iter().map(|name| (name.to_string(), Traffic::default())).collect()
        };
        let kept = with_devices(named(&["br0", "eth0"]), folder.path());
        assert_eq!(kept.len(), 2);
        std::fs::create_dir_all(folder.path().join("eth0/device")).expect("a folder");
        let kept = with_devices(named(&["br0", "eth0"]), folder.path());
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["eth0"]);
    }

    #[test]
    fn this_machine_has_all_but_what_its_kernel_lacks() {
        let before = Reading::take(Path::new("/"));
        std::thread::sleep(Duration::from_millis(50));
        let metrics = Reading::take(Path::new("/")).metrics_since(&before);
        for name in ["cpu.busy", "load.1", "memory.used", "tasks.all", "uptime"] {
            assert!(of(&metrics, name) >= 0.0, "{name}");
        }
        let nowhere = Reading::take(Path::new("/nowhere"));
        assert!(nowhere.metrics_since(&nowhere).iter().all(|value| value.is_nan()));
    }
}
