//! The kernel's files about a host: one reader of text for each.
//!
//! Every reader is a function of the text alone. What cannot be read gives nothing, so that a
//! metric is absent rather than zero. Formats as in proc(5) and the kernel's
//! `Documentation/accounting/psi.rst` and `Documentation/admin-guide/iostats.rst`.

use std::collections::BTreeMap;

/// Lines of a file that are looked at; a host of more cores or disks is not known.
const LINES_MAX: usize = 65_536;

/// Time that cores have spent, in ticks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// In programs, of lower priority included.
    pub(crate) user: u64,
    /// In the kernel, interrupts included.
    pub(crate) system: u64,
    pub(crate) idle: u64,
    /// Idle, while something waited for a disk.
    pub(crate) iowait: u64,
    /// Taken by the machine below.
    pub(crate) steal: u64,
}

/// `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) all: Ticks,
    /// By the core's number; a core that is offline has no line.
    pub(crate) cores: BTreeMap<u32, Ticks>,
}

/// Reads `/proc/stat`.
pub(crate) fn stat(text: &str) -> Option<Stat> {
    let mut all = None;
    let mut cores = BTreeMap::new();
    for line in text.lines().take(LINES_MAX).take_while(|line| line.starts_with("cpu")) {
        let (name, numbers) = line.split_once(' ')?;
        let ticks = ticks(numbers)?;
        match name.strip_prefix("cpu")? {
            "" => all = Some(ticks),
            core => {
                cores.insert(core.parse().ok()?, ticks);
            }
        }
    }
    Some(Stat { all: all?, cores })
}

/// `user nice system idle iowait irq softirq steal guest guest_nice`. Guests' time is in user and
/// nice already; old kernels end earlier.
fn ticks(numbers: &str) -> Option<Ticks> {
    let mut numbers = numbers.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
    let [user, nice, system, idle] = [(); 4].map(|()| numbers.next().flatten());
    let [iowait, irq, softirq, steal] = [(); 4].map(|()| numbers.next().flatten().unwrap_or(0));
    Some(Ticks {
        user: user?.saturating_add(nice?),
        system: system?.saturating_add(irq).saturating_add(softirq),
        idle: idle?,
        iowait,
        steal,
    })
}

/// `/proc/loadavg`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// Over 1, 5 and 15 minutes.
    pub(crate) averages: [f64; 3],
    pub(crate) running: u64,
    pub(crate) tasks: u64,
}

/// Reads `/proc/loadavg`.
pub(crate) fn loadavg(text: &str) -> Option<Load> {
    let mut words = text.split_ascii_whitespace();
    let [one, five, fifteen] = [(); 3].map(|()| words.next().and_then(share));
    let (running, tasks) = words.next()?.split_once('/')?;
    Some(Load {
        averages: [one?, five?, fifteen?],
        running: running.parse().ok()?,
        tasks: tasks.parse().ok()?,
    })
}

/// A number that is not negative and not infinite.
fn share(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// `/proc/meminfo`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) total: u64,
    pub(crate) available: u64,
    pub(crate) swap_total: u64,
    pub(crate) swap_free: u64,
}

/// Reads `/proc/meminfo`. Kernels before 3.14 do not say what is available; then free memory,
/// buffers and cache are taken for it.
pub(crate) fn meminfo(text: &str) -> Option<Memory> {
    let mut known: BTreeMap<&str, u64> = BTreeMap::new();
    for line in text.lines().take(LINES_MAX) {
        let (name, rest) = line.split_once(':')?;
        let mut words = rest.split_ascii_whitespace();
        let number: u64 = words.next()?.parse().ok()?;
        let bytes = if words.next() == Some("kB") { number.checked_mul(1024)? } else { number };
        known.insert(name, bytes);
    }
    let of = |name: &str| known.get(name).copied();
    let cached =
        || Some(of("MemFree")?.saturating_add(of("Buffers")?).saturating_add(of("Cached")?));
    Some(Memory {
        total: of("MemTotal")?,
        available: of("MemAvailable").or_else(cached)?,
        swap_total: of("SwapTotal").unwrap_or(0),
        swap_free: of("SwapFree").unwrap_or(0),
    })
}

/// What has passed a network interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) bytes_received: u64,
    pub(crate) packets_received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) packets_sent: u64,
    /// Both ways.
    pub(crate) errors: u64,
    /// Both ways.
    pub(crate) drops: u64,
}

/// Reads `/proc/net/dev`: by interface, without the loopback.
pub(crate) fn net_dev(text: &str) -> Option<BTreeMap<String, Traffic>> {
    let mut interfaces = BTreeMap::new();
    // Two lines of headings, which every kernel writes.
    for line in text.lines().take(LINES_MAX).skip(2) {
        let (name, numbers) = line.rsplit_once(':')?;
        let numbers = numbers.split_ascii_whitespace().map(|number| number.parse().ok());
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let &[bytes_received, packets_received, errors_in, drops_in, _, _, _, _, ref sent @ ..] =
            &numbers[..]
        else {
            return None;
        };
        let &[bytes_sent, packets_sent, errors_out, drops_out, ..] = sent else { return None };
        let name = name.trim();
        if name == "lo" {
            continue;
        }
        let traffic = Traffic {
            bytes_received,
            packets_received,
            bytes_sent,
            packets_sent,
            errors: errors_in.saturating_add(errors_out),
            drops: drops_in.saturating_add(drops_out),
        };
        interfaces.insert(name.to_string(), traffic);
    }
    text.starts_with("Inter-").then_some(interfaces)
}

/// What a disk has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Milliseconds in which it had work.
    pub(crate) busy_ms: u64,
}

/// A sector of `/proc/diskstats`, whatever the disk's own are.
const SECTOR_BYTES: u64 = 512;

/// Beginnings of names of what is no disk, or stands on disks that are counted themselves.
const NO_DISKS: [&str; 7] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];

/// Reads `/proc/diskstats`: by disk, without partitions and without what stands on other disks.
pub(crate) fn diskstats(text: &str) -> Option<BTreeMap<String, Disk>> {
    let mut disks = BTreeMap::new();
    for line in text.lines().take(LINES_MAX) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = *words.get(2)?;
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let disk = Disk {
            bytes_read: number(5)?.saturating_mul(SECTOR_BYTES),
            bytes_written: number(9)?.saturating_mul(SECTOR_BYTES),
            busy_ms: number(12)?,
        };
        let is_virtual = NO_DISKS.iter().any(|beginning| name.starts_with(beginning));
        if !is_virtual {
            disks.insert(name.to_string(), disk);
        }
    }
    let names: Vec<String> = disks.keys().cloned().collect();
    disks.retain(|name, _| !names.iter().any(|whole| is_partition(whole, name)));
    Some(disks)
}

/// Whether a name is that of a partition of a disk: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition(disk: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    let ends_in_digit = disk.ends_with(|letter: char| letter.is_ascii_digit());
    let number = if ends_in_digit { rest.strip_prefix('p') } else { Some(rest) };
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Reads a file of `/proc/pressure`: the share of the last 10 s in which some task waited.
pub(crate) fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent = some.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
    share(percent).map(|percent| percent / 100.0)
}

/// Reads `/proc/uptime`: seconds.
pub(crate) fn uptime(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next().and_then(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "\
cpu  4726708 3786132 890342 2830143 15416 0 13093 8814 0 0
cpu0 2384498 1861987 467701 1401576 8411 0 6312 4410 0 0
cpu2 2342210 1924144 422640 1428567 7005 0 6780 4403 0 0
intr 81289057 0 0 0
ctxt 611753213
";

    #[test]
    fn cores_that_are_online_have_their_times() {
        let stat = stat(STAT).expect("a text of the kernel's");
        let all = Ticks {
            user: 4_726_708 + 3_786_132,
            system: 890_342 + 13_093,
            idle: 2_830_143,
            iowait: 15_416,
            steal: 8_814,
        };
        assert_eq!(stat.all, all);
        assert_eq!(stat.cores.keys().copied().collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn an_old_kernel_has_fewer_columns_and_a_torn_line_gives_nothing() {
        let old = stat("cpu 1 2 3 4\n").expect("four columns");
        assert_eq!(old.all, Ticks { user: 3, system: 3, idle: 4, ..Ticks::default() });
        for torn in ["", "cpu 1 2 3", "cpu 1 2 x 4\n", "intr 1\n", "cpuX 1 2 3 4\n"] {
            assert_eq!(stat(torn), None, "{torn:?}");
        }
    }

    #[test]
    fn load_has_averages_and_tasks() {
        let load = loadavg("0.31 1.25 2.00 4/512 123456\n").expect("a load");
        let expected = Load { averages: [0.31, 1.25, 2.0], running: 4, tasks: 512 };
        assert_eq!(load, expected);
        for wrong in ["", "1 2", "1 2 3 4", "nan 1 1 1/1 1", "-1 1 1 1/1 1"] {
            assert_eq!(loadavg(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn memory_is_in_bytes_and_old_kernels_are_guessed() {
        let text = "MemTotal:       16000000 kB\nMemFree:         1000000 kB\n\
                    MemAvailable:    9000000 kB\nBuffers:          200000 kB\n\
                    Cached:          3000000 kB\nSwapTotal:       2000000 kB\n\
                    SwapFree:        1500000 kB\nHugePages_Total:       0\n";
        let memory = meminfo(text).expect("a text of the kernel's");
        assert_eq!((memory.total, memory.available), (16_384_000_000, 9_216_000_000));
        assert_eq!(memory.swap_total - memory.swap_free, 512_000_000);
        let old: String = text
            .lines()
            .filter(|line| !line.contains("Available"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(meminfo(&old).map(|memory| memory.available), Some(4_200_000 * 1024));
        assert_eq!(meminfo("MemTotal: x kB\n"), None);
        assert_eq!(meminfo("MemTotal: 1 kB\n"), None);
    }

    const NET_DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 120221809315 18694743    0    0    0     0          0         0 120221809315 18694743    0    0    0     0       0          0
  eth0: 1580897575   61434    3    2    0     0          0         0  4631071   48753    1    4    0     0       0          0
eth0.5:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
";

    #[test]
    fn interfaces_have_their_traffic_and_the_loopback_is_left_out() {
        let interfaces = net_dev(NET_DEV).expect("a text of the kernel's");
        assert_eq!(interfaces.keys().collect::<Vec<_>>(), ["eth0", "eth0.5"]);
        let eth0 = interfaces["eth0"];
        assert_eq!((eth0.bytes_received, eth0.packets_sent), (1_580_897_575, 48_753));
        assert_eq!((eth0.errors, eth0.drops), (4, 6));
        assert_eq!(interfaces["eth0.5"].bytes_sent, 9);
        assert_eq!(net_dev("Inter-\n face\neth0: 1 2 3\n"), None);
        assert_eq!(net_dev(""), None);
    }

    #[test]
    fn disks_are_counted_once() {
        let text = "\
   7       0 loop0 1 1 1 1 1 1 1 1 0 1 1 0 0 0 0 0 0
   8       0 sda 100 0 2000 50 10 0 400 30 0 77 80 0 0 0 0 0 0
   8       1 sda1 90 0 1000 50 10 0 400 30 0 70 80 0 0 0 0 0 0
  65       0 sdaa 1 0 2 0 0 0 0 0 0 5 0
 259       0 nvme0n1 5 0 8 0 0 0 16 0 0 9 0 0 0 0 0 0 0
 259       1 nvme0n1p1 5 0 8 0 0 0 16 0 0 9 0 0 0 0 0 0 0
 259       2 nvme0n12 5 0 8 0 0 0 16 0 0 9 0 0 0 0 0 0 0
 253       0 dm-0 5 0 8 0 0 0 16 0 0 9 0 0 0 0 0 0 0
";
        let disks = diskstats(text).expect("a text of the kernel's");
        assert_eq!(disks.keys().collect::<Vec<_>>(), ["nvme0n1", "nvme0n12", "sda", "sdaa"]);
        let sda = Disk { bytes_read: 1_024_000, bytes_written: 204_800, busy_ms: 77 };
        assert_eq!(disks["sda"], sda);
        assert_eq!(diskstats("8 0 sda 1 2\n"), None);
        assert_eq!(diskstats(""), Some(BTreeMap::new()));
    }

    #[test]
    fn pressure_is_the_share_of_some() {
        let text = "some avg10=12.50 avg60=1.11 avg300=2.52 total=31885603675\n\
                    full avg10=3.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(pressure(text), Some(0.125));
        assert_eq!(pressure("full avg10=3.00\n"), None);
        assert_eq!(pressure("some avg10=x\n"), None);
        assert_eq!(uptime("12345.67 999.0\n"), Some(12345.67));
        assert_eq!(uptime(""), None);
    }

    #[test]
    fn the_kernel_of_this_machine_is_understood() {
        let read = |path: &str| std::fs::read_to_string(path).expect("every Linux has it");
        assert!(stat(&read("/proc/stat")).is_some_and(|stat| !stat.cores.is_empty()));
        assert!(loadavg(&read("/proc/loadavg")).is_some());
        assert!(meminfo(&read("/proc/meminfo")).is_some());
        assert!(net_dev(&read("/proc/net/dev")).is_some());
        assert!(diskstats(&read("/proc/diskstats")).is_some());
        assert!(uptime(&read("/proc/uptime")).is_some());
        if let Ok(text) = std::fs::read_to_string("/proc/pressure/cpu") {
            assert!(pressure(&text).is_some());
        }
    }
}
