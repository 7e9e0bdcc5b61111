//! A monitor's row, condensed from pairs of runs.

use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::{MedianInterval, median_interval};
use serde_json::{Map, Value};

use super::super::facts::{Facts, verdict};

/// Slower by at most this.
const RATIO_MAX: f64 = 1.01;

/// One run of the iterations.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) seconds: f64,
    /// Of the events that were written, the part that was read; none where nothing is.
    pub(super) gathered: Option<f64>,
}

/// What was run with each monitor and without.
pub(super) struct Program<'a> {
    pub(super) name: &'a str,
    /// What it runs on.
    pub(super) place: &'a str,
    pub(super) ranks: u64,
    pub(super) iterations: u32,
    /// Numbers that each rank sorts before each sum.
    pub(super) sorted: u64,
}

impl Program<'_> {
    /// The rows of the monitors, each with its runs, beside the runs without; each is told in a
    /// line, too.
    pub(super) fn rows(
        &self,
        bare: &[Run],
        monitors: &[(&str, &[Run])],
        facts: &mut Facts,
    ) -> Result<Value, Failure> {
        let quickest = bare.iter().map(|run| run.seconds).fold(f64::MAX, f64::min);
        let mut rows = Vec::new();
        for &(monitor, runs) in monitors {
            let pairs = runs.iter().zip(bare);
            let ratios: Vec<f64> = pairs.map(|(with, bare)| with.seconds / bare.seconds).collect();
            let interval =
                median_interval(&ratios).ok_or_else(|| Failure::own(&"nothing was measured"))?;
            let gathered = runs.iter().filter_map(|run| run.gathered).reduce(f64::min);
            let row = Row { monitor, interval, gathered };
            facts.heading(&row.line(self.name));
            rows.push(Value::Object(row.json(self, quickest)));
        }
        Ok(Value::Array(rows))
    }
}

/// What pairs of runs give for one monitor.
struct Row<'a> {
    monitor: &'a str,
    /// Of the times with the monitor over those without.
    interval: MedianInterval,
    gathered: Option<f64>,
}

impl Row<'_> {
    fn json(&self, program: &Program<'_>, quickest: f64) -> Map<String, Value> {
        let MedianInterval { median, low, high, samples } = self.interval;
        Map::from_iter([
            ("where".to_owned(), program.place.into()),
            ("monitor".to_owned(), self.monitor.into()),
            ("overhead".to_owned(), (median - 1.0).into()),
            ("low".to_owned(), (low - 1.0).into()),
            ("high".to_owned(), (high - 1.0).into()),
            ("pairs".to_owned(), samples.into()),
            ("gather_rate".to_owned(), self.gathered.into()),
            ("ranks".to_owned(), program.ranks.into()),
            ("iterations".to_owned(), program.iterations.into()),
            ("sorted".to_owned(), program.sorted.into()),
            ("seconds".to_owned(), quickest.into()),
        ])
    }

    /// For people.
    fn line(&self, name: &str) -> String {
        let MedianInterval { median, low, high, samples } = self.interval;
        let gathered = self
            .gathered
            .map_or_else(String::new, |part| format!(", {:.1} % gathered", part * 100.0));
        format!(
            "  {name:<12} {:<12} {median:.4} ({low:.4} to {high:.4}, {samples} pairs{gathered}), at \
             most {RATIO_MAX}: {}",
            self.monitor,
            verdict(&self.interval, RATIO_MAX)
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Rows of these monitors.
    pub(in super::super) fn rows(monitors: &[&str]) -> Value {
        let runs = |gathered: Option<f64>| {
            [1.0, 1.01, 1.02].map(|seconds| Run { seconds, gathered }).to_vec()
        };
        let (bare, with) = (runs(None), runs(Some(1.0)));
        let monitors: Vec<(&str, &[Run])> =
            monitors.iter().map(|&monitor| (monitor, &with[..])).collect();
        let program =
            Program { name: "gsum", place: "here", ranks: 2, iterations: 20_000, sorted: 0 };
        let mut facts = Facts::new("", String::new());
        program.rows(&bare, &monitors, &mut facts).expect("there are runs")
    }
}
