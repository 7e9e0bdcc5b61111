//! What the soak has shown: memory and rates over time, as a table with a small picture for people
//! and as one JSON object for programs.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::memory::{History, Trend};
use crate::contribution::Kind;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.soak/1";

/// Rows of the table of times.
const ROWS: usize = 15;

/// Columns of the longest bar.
const BAR_COLUMNS: f64 = 30.0;

/// What has come by some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub at: Duration,
    /// Answers on each stream.
    pub waves: [u64; Kind::SMALL.len()],
    /// Packets that all back-ends have received.
    pub packets: u64,
}

impl Progress {
    fn all_waves(&self) -> u64 {
        self.waves.iter().sum()
    }
}

/// A soak.
#[derive(Debug)]
pub(super) struct Report {
    pub topology: String,
    pub transport: String,
    /// With each sample of memory, what had come by then.
    pub progress: Vec<Progress>,
    pub histories: Vec<History>,
    pub violations: Vec<String>,
}

impl Report {
    /// Adds a violation for each process whose memory is not flat.
    pub(super) fn judge(&mut self) {
        for history in &self.histories {
            let trends = [("private", history.private()), ("resident", history.resident())];
            for (name, trend) in trends {
                let who = format!("{} {}", history.role, history.rank);
                match trend {
                    Some(trend) if trend.is_flat() => {}
                    Some(trend) => self.violations.push(format!(
                        "{who}: {name} memory rises by {:.0} KiB, more than {:.0} KiB",
                        trend.rise_kib, trend.bound_kib
                    )),
                    None => self.violations.push(format!("{who}: too few samples of its memory")),
                }
            }
        }
    }

    fn seconds(&self) -> f64 {
        self.progress.last().map_or(0.0, |last| last.at.as_secs_f64())
    }

    /// One object in one line.
    pub(super) fn to_json(&self) -> String {
        let last = self.progress.last();
        let streams: serde_json::Map<String, Value> = Kind::SMALL
            .iter()
            .enumerate()
            .map(|(at, kind)| (kind.filter().to_string(), json!(last.map(|last| last.waves[at]))))
            .collect();
        let process = |history: &History| {
            json!({
                "rank": history.rank,
                "role": history.role,
                "private": history.private().map(|trend| of_trend(&trend)),
                "resident": history.resident().map(|trend| of_trend(&trend)),
            })
        };
        let object = json!({
            "schema": SCHEMA,
            "topology": self.topology,
            "transport": self.transport,
            "seconds": self.seconds(),
            "waves": streams,
            "waves_per_s": last.map(|last| last.all_waves() as f64 / self.seconds()),
            "packets_down": last.map(|last| last.packets),
            "packets_down_per_s": last.map(|last| last.packets as f64 / self.seconds()),
            "processes": self.histories.iter().map(process).collect::<Vec<_>>(),
            "violations": self.violations.len(),
            "violation_texts": self.violations,
        });
        format!("{object}\n")
    }

    /// For people.
    pub(super) fn to_table(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "soak of {:.0} s, {} over {}, private memory in KiB",
            self.seconds(),
            self.topology,
            self.transport
        );
        let _ = writeln!(
            text,
            "  {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}  all processes",
            "s", "waves/s", "down/s", "front-end", "comm. max", "back-e. max"
        );
        self.write_times(&mut text);
        let _ = writeln!(
            text,
            "  {:<24} {:>8} {:>8} {:>8} {:>10} {:>8} {:>12}",
            "process", "first", "last", "max", "rise", "bound", "KiB/hour"
        );
        for history in self.steepest() {
            let Some(trend) = history.private() else { continue };
            let _ = writeln!(
                text,
                "  {:<24} {:>8} {:>8} {:>8} {:>10.1} {:>8.0} {:>12.0}",
                format!("{} {}", history.role, history.rank),
                trend.first_kib,
                trend.last_kib,
                trend.max_kib,
                trend.rise_kib,
                trend.bound_kib,
                trend.kib_per_hour
            );
        }
        for violation in &self.violations {
            let _ = writeln!(text, "  VIOLATION {violation}");
        }
        let _ = writeln!(text, "  violations: {}", self.violations.len());
        text
    }

    fn write_times(&self, text: &mut String) {
        let count = self.progress.len();
        let rows: Vec<usize> = (1..=ROWS.min(count.saturating_sub(1)))
            .map(|row| row * (count - 1) / ROWS.min(count - 1))
            .collect();
        let all = |at: usize| -> u32 { self.private_at(at).map(|(_, kib)| kib).sum() };
        let highest = rows.iter().map(|row| all(*row)).max().unwrap_or(1).max(1);
        let mut before = 0;
        for row in rows {
            let (from, to) = (&self.progress[before], &self.progress[row]);
            let seconds = (to.at - from.at).as_secs_f64().max(1e-3);
            let of_role = |role: &str| {
                self.private_at(row).filter(|(of, _)| *of == role).map(|(_, kib)| kib).max()
            };
            let bar = f64::from(all(row)) / f64::from(highest) * BAR_COLUMNS;
            let _ = writeln!(
                text,
                "  {:>7.0} {:>10.0} {:>10.0} {:>10} {:>10} {:>10}  {:<30} {}",
                to.at.as_secs_f64(),
                (to.all_waves() - from.all_waves()) as f64 / seconds,
                (to.packets - from.packets) as f64 / seconds,
                of_role(FRONT_END).unwrap_or(0),
                of_role(COMMUNICATION).unwrap_or(0),
                of_role(BACK_END).unwrap_or(0),
                "#".repeat(bar.round() as usize),
                all(row)
            );
            before = row;
        }
    }

    /// Private memory at one time: role and KiB of each process.
    fn private_at(&self, at: usize) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        let sample = move |history: &History| {
            history.samples.get(at).map(|sample| (history.role, sample.private_kib))
        };
        self.histories.iter().filter_map(sample)
    }

    /// Of each role the process whose memory rises most.
    fn steepest(&self) -> impl Iterator<Item = &History> {
        let rise =
            |history: &History| history.private().map_or(f64::NEG_INFINITY, |trend| trend.rise_kib);
        [FRONT_END, COMMUNICATION, BACK_END].into_iter().filter_map(move |role| {
            let of_role = self.histories.iter().filter(|history| history.role == role);
            of_role.max_by(|left, right| rise(left).total_cmp(&rise(right)))
        })
    }
}

/// The roles as they are printed.
pub(super) const FRONT_END: &str = "front-end";
pub(super) const COMMUNICATION: &str = "communication";
pub(super) const BACK_END: &str = "back-end";

fn of_trend(trend: &Trend) -> Value {
    json!({
        "first_kib": trend.first_kib,
        "last_kib": trend.last_kib,
        "max_kib": trend.max_kib,
        "rise_kib": trend.rise_kib,
        "kib_per_hour": trend.kib_per_hour,
        "bound_kib": trend.bound_kib,
    })
}
