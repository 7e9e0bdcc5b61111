//! Figures of a rank's process out of `/proc`, read by its leaf: no cost for the rank.
//!
//! While the rank counts, processor time is in ticks of the system (10 ms) and switches are those
//! of the threads that live. When it has finalized, its own account (getrusage) takes the place of
//! both.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sapwood_profile::{Figure, TableReader, TimeShare};

use super::proc_stat::{self, TICK};

/// A whole, in parts per million.
const WHOLE_PPM: u128 = 1_000_000;
const KIB: u64 = 1024;

/// What a process uses at this moment; empty if it is not there.
pub(crate) fn of_process(process: i32) -> BTreeMap<Figure, u64> {
    let folder = Path::new("/proc").join(process.to_string());
    let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    let mut figures = of_stat(&stat);
    if figures.is_empty() {
        return figures;
    }
    figures.extend(of_status(&fs::read_to_string(folder.join("status")).unwrap_or_default()));
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    for thread in threads {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        for (figure, count) in switches(&status) {
            *figures.entry(figure).or_default() += count;
        }
    }
    figures
}

/// Adds to what the system said what the rank itself says: what its messages have moved, how many
/// threads call MPI, at its end what it has used, and the share of a processor that it had.
pub(crate) fn complete(
    figures: &mut BTreeMap<Figure, u64>,
    table: &TableReader<'_>,
    time: TimeShare,
) {
    figures.extend(table.usage());
    figures.extend(table.transfers());
    figures.extend(table.threads());
    let cpu_ns = [Figure::CpuUserNs, Figure::CpuSystemNs].map(|figure| figures.get(&figure));
    let [Some(user), Some(system)] = cpu_ns else { return };
    let since = (user + system).saturating_sub(table.started_cpu_ns());
    if let Some(ppm) = (u128::from(since) * WHOLE_PPM).checked_div(time.wall_ns.into()) {
        figures.insert(Figure::CpuPpm, u64::try_from(ppm).unwrap_or(u64::MAX));
    }
}

/// Faults and processor time out of `/proc/PID/stat`.
fn of_stat(stat: &str) -> BTreeMap<Figure, u64> {
    let Some(fields) = proc_stat::fields(stat) else { return BTreeMap::new() };
    let nanoseconds = |ticks: Option<u64>| {
        let spent = u128::from(ticks?) * TICK.as_nanos();
        u64::try_from(spent).ok()
    };
    let known = [
        (Figure::MinorFaults, fields.minor_faults()),
        (Figure::MajorFaults, fields.major_faults()),
        (Figure::CpuUserNs, nanoseconds(fields.user())),
        (Figure::CpuSystemNs, nanoseconds(fields.system())),
    ];
    known.into_iter().filter_map(|(figure, count)| Some((figure, count?))).collect()
}

/// Memory out of `/proc/PID/status`.
fn of_status(status: &str) -> BTreeMap<Figure, u64> {
    let of = |name| Some(number(status, name)? * KIB);
    let known = [(Figure::ResidentBytes, "VmRSS:"), (Figure::ResidentBytesMax, "VmHWM:")];
    known.into_iter().filter_map(|(figure, name)| Some((figure, of(name)?))).collect()
}

/// How often a thread gave its processor up, and had it taken.
fn switches(status: &str) -> impl Iterator<Item = (Figure, u64)> {
    let known = [
        (Figure::VoluntarySwitches, "voluntary_ctxt_switches:"),
        (Figure::InvoluntarySwitches, "nonvoluntary_ctxt_switches:"),
    ];
    known.into_iter().filter_map(|(figure, name)| Some((figure, number(status, name)?)))
}

fn number(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_stand_behind_the_name_whatever_that_is() {
        let stat = "17 (a) R (b) S 1 17 17 0 -1 4194304 122 5 3 6 70 8 0 0 20 0 1 0 128838";
        let expected = [
            (Figure::MinorFaults, 122),
            (Figure::MajorFaults, 3),
            (Figure::CpuUserNs, 700_000_000),
            (Figure::CpuSystemNs, 80_000_000),
        ];
        assert_eq!(of_stat(stat), expected.into());
        assert!(of_stat("").is_empty() && of_stat("17 (a) R").is_empty());
    }

    #[test]
    fn this_process_has_memory_and_has_had_faults() {
        let figures = of_process(i32::try_from(std::process::id()).expect("a process number"));
        assert!(figures[&Figure::ResidentBytes] <= figures[&Figure::ResidentBytesMax]);
        assert!(figures[&Figure::MinorFaults] > 0);
        assert!(figures.contains_key(&Figure::InvoluntarySwitches));
        assert!(of_process(i32::MAX).is_empty());
    }
}
