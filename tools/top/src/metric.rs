//! The metrics of a host: their names, units and order.
//!
//! Owns the one table that agents, the filter, the view, JSON and OpenMetrics go by. Where a
//! value comes from is in `reading`, what the kernel's files look like in `proc`.

use sapwood_report::quantity;

/// What a metric's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A share from 0 to 1.
    Ratio,
    /// Bytes.
    Bytes,
    /// Bytes in a second.
    BytesPerSecond,
    /// Something else, as often as this in a second.
    PerSecond,
    /// Seconds, of which there are many.
    Seconds,
    /// A plain number.
    Number,
}

/// Which end of a metric is the bad one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worst {
    /// The highest values.
    Highest,
    /// The lowest values.
    Lowest,
}

/// One thing that is measured on every host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Its name for people, in JSON and on the command line: `cpu.busy`.
    pub(crate) name: &'static str,
    /// What stands in the middle of the names of its series: `sapwood_cpu_busy_ratio`.
    pub(crate) series: &'static str,
    pub(crate) unit: Unit,
    pub(crate) worst: Worst,
    /// What it is, in a line.
    pub(crate) help: &'static str,
}

/// How many metrics there are.
pub(crate) const METRICS: usize = TABLE.len();

const fn metric(
    name: &'static str,
    series: &'static str,
    unit: Unit,
    worst: Worst,
    help: &'static str,
) -> Metric {
    Metric { name, series, unit, worst, help }
}

use Unit::{Bytes, BytesPerSecond, Number, PerSecond, Ratio, Seconds};
use Worst::{Highest, Lowest};

/// All metrics, in the order in which agents send their values.
#[rustfmt::skip]
pub(crate) const TABLE: [Metric; 33] = [
    metric("cpu.busy", "cpu_busy_ratio", Ratio, Highest, "Share of the time of all cores that was neither idle nor waiting for a disk"),
    metric("cpu.user", "cpu_user_ratio", Ratio, Highest, "Share of the time of all cores in programs"),
    metric("cpu.system", "cpu_system_ratio", Ratio, Highest, "Share of the time of all cores in the kernel, interrupts included"),
    metric("cpu.iowait", "cpu_iowait_ratio", Ratio, Highest, "Share of the time of all cores that was idle because something waited for a disk"),
    metric("cpu.steal", "cpu_steal_ratio", Ratio, Highest, "Share of the time of all cores that the machine below took"),
    metric("cpu.core_max", "cpu_core_max_ratio", Ratio, Highest, "Busy share of the busiest core"),
    metric("cpu.core_min", "cpu_core_min_ratio", Ratio, Highest, "Busy share of the idlest core"),
    metric("cpu.cores", "cpu_cores", Number, Lowest, "Cores that are online"),
    metric("load.1", "load1", Number, Highest, "Load average over 1 minute"),
    metric("load.5", "load5", Number, Highest, "Load average over 5 minutes"),
    metric("load.15", "load15", Number, Highest, "Load average over 15 minutes"),
    metric("load.core", "load1_per_core", Number, Highest, "Load average over 1 minute for each core"),
    metric("tasks.running", "tasks_running", Number, Highest, "Threads that run or could run"),
    metric("tasks.all", "tasks", Number, Highest, "Threads that there are"),
    metric("memory.total", "memory_total_bytes", Bytes, Lowest, "Memory that there is"),
    metric("memory.used", "memory_used_bytes", Bytes, Highest, "Memory that is not available to programs"),
    metric("memory.available", "memory_available_bytes", Bytes, Lowest, "Memory that programs can have without swapping"),
    metric("memory.full", "memory_used_ratio", Ratio, Highest, "Share of memory that is not available to programs"),
    metric("swap.used", "swap_used_bytes", Bytes, Highest, "Swap that is used"),
    metric("swap.full", "swap_used_ratio", Ratio, Highest, "Share of swap that is used; 0 where there is none"),
    metric("net.received", "network_receive_bytes_per_second", BytesPerSecond, Highest, "Bytes received"),
    metric("net.sent", "network_transmit_bytes_per_second", BytesPerSecond, Highest, "Bytes sent"),
    metric("net.packets_received", "network_receive_packets_per_second", PerSecond, Highest, "Packets received"),
    metric("net.packets_sent", "network_transmit_packets_per_second", PerSecond, Highest, "Packets sent"),
    metric("net.errors", "network_errors_per_second", PerSecond, Highest, "Packets with errors, both ways"),
    metric("net.drops", "network_drops_per_second", PerSecond, Highest, "Packets dropped, both ways"),
    metric("disk.read", "disk_read_bytes_per_second", BytesPerSecond, Highest, "Bytes read from disks"),
    metric("disk.written", "disk_written_bytes_per_second", BytesPerSecond, Highest, "Bytes written to disks"),
    metric("disk.busy", "disk_busy_ratio", Ratio, Highest, "Share of the time in which the busiest disk had work"),
    metric("pressure.cpu", "pressure_cpu_ratio", Ratio, Highest, "Share of the last 10 s in which some task waited for a core"),
    metric("pressure.memory", "pressure_memory_ratio", Ratio, Highest, "Share of the last 10 s in which some task waited for memory"),
    metric("pressure.io", "pressure_io_ratio", Ratio, Highest, "Share of the last 10 s in which some task waited for a disk"),
    metric("uptime", "uptime_seconds", Seconds, Lowest, "Seconds since the host started"),
];

/// The place of a metric in the table.
pub(crate) fn place(name: &str) -> Option<usize> {
    TABLE.iter().position(|metric| metric.name == name)
}

impl Metric {
    /// How bad a value is: a number that is larger for worse ones.
    pub(crate) fn badness(&self, value: f64) -> f64 {
        match self.worst {
            Worst::Highest => value,
            Worst::Lowest => -value,
        }
    }

    /// A value for the eye, in at most nine characters.
    pub(crate) fn show(&self, value: f64) -> String {
        match self.unit {
            _ if !value.is_finite() => "-".to_string(),
            Unit::Ratio => quantity::percent(Some(value)),
            Unit::Bytes | Unit::BytesPerSecond => {
                let text = quantity::bytes(value);
                if self.unit == Unit::Bytes { text } else { text + "/s" }
            }
            Unit::Seconds => long_time(value),
            Unit::PerSecond | Unit::Number => number(value),
        }
    }
}

impl Unit {
    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes/s",
            Self::PerSecond => "1/s",
            Self::Seconds => "seconds",
            Self::Number => "number",
        }
    }
}

impl Worst {
    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Highest => "highest",
            Self::Lowest => "lowest",
        }
    }
}

/// The two largest units of a time, as `3d04h` or `04h17m`.
fn long_time(seconds: f64) -> String {
    let minutes = (seconds / 60.0) as u64;
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    if days > 0 { format!("{days}d{hours:02}h") } else { format!("{hours}h{minutes:02}m") }
}

/// A number with three figures; whole ones as they are up to a million.
fn number(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        size if size >= 999.5e6 => (value / 1e9, "G"),
        size if size >= 999.5e3 => (value / 1e6, "M"),
        _ => (value, ""),
    };
    let decimals = match value.abs() {
        size if suffix.is_empty() && size.fract() == 0.0 => 0,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_series_are_different_and_may_stand_where_they_stand() {
        for (at, metric) in TABLE.iter().enumerate() {
            assert_eq!(place(metric.name), Some(at));
            assert!(TABLE[..at].iter().all(|other| other.series != metric.series));
            let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
            assert!(metric.series.chars().all(|letter| is_letter(letter) || letter == '_'));
            assert!(!metric.help.contains(['\n', '\\', '"']), "{}", metric.help);
        }
        assert_eq!(place("cpu"), None);
    }

    #[test]
    fn values_are_short() {
        let shown = |name: &str, value| TABLE[place(name).expect("a metric")].show(value);
        assert_eq!(shown("cpu.busy", 0.5), "50.0 %");
        assert_eq!(shown("memory.total", 4.0e9), "4.00 GB");
        assert_eq!(shown("disk.read", 123_456.0), "123 KB/s");
        assert_eq!(shown("load.1", 0.25), "0.25");
        assert_eq!(shown("cpu.cores", 128.0), "128");
        assert_eq!(shown("net.packets_sent", 1_234_567.0), "1.23M");
        assert_eq!(shown("tasks.all", 45_678.0), "45678");
        assert_eq!(shown("load.1", f64::NAN), "-");
        assert_eq!(shown("uptime", 7_400_000.0), "85d15h");
        assert_eq!(shown("uptime", 5_000.0), "1h23m");
    }

    /// The page shortens some: a series that ends with dots stands for those that begin so.
    #[test]
    fn the_page_has_every_metric_and_no_series_that_is_none() {
        let page = include_str!("../../../docs/top.md");
        for metric in &TABLE {
            assert!(page.contains(&format!("`{}`", metric.name)), "{}", metric.name);
        }
        let rows = page.lines().skip_while(|line| !line.starts_with("| metric | unit |")).skip(2);
        let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
        assert!(rows.len() > 10, "the table is not found");
        for row in rows {
            let cell = row.split('|').nth(3).expect("a cell with the series");
            for series in cell.split('`').skip(1).step_by(2) {
                let is_one = match series.strip_suffix("...") {
                    Some(begin) => TABLE.iter().any(|metric| metric.series.starts_with(begin)),
                    None => TABLE.iter().any(|metric| metric.series == series),
                };
                assert!(is_one, "no series is called {series}");
            }
        }
    }

    #[test]
    fn the_worst_is_the_least_of_what_should_be_plenty() {
        let available = TABLE[place("memory.available").expect("a metric")];
        assert!(available.badness(1.0) > available.badness(2.0));
        assert!(TABLE[0].badness(0.9) > TABLE[0].badness(0.1));
    }
}
