//! A monitor's row, condensed from pairs of runs.

use sapwood_floor::statistics::MedianInterval;
use serde_json::{Map, Value};

/// Slower by at most this.
const RATIO_MAX: f64 = 1.01;

/// What pairs of runs give for one monitor.
pub(super) struct Pairing<'a> {
    /// What the program runs on.
    pub(super) place: &'a str,
    pub(super) monitor: &'a str,
    /// Of the times with the monitor over those without.
    pub(super) interval: MedianInterval,
    /// Of the events that were written, the part that was read; none where nothing is.
    pub(super) gathered: Option<f64>,
}

impl Pairing<'_> {
    /// For the JSON object.
    pub(super) fn row(&self) -> Map<String, Value> {
        let MedianInterval { median, low, high, samples } = self.interval;
        Map::from_iter([
            ("where".to_owned(), self.place.into()),
            ("monitor".to_owned(), self.monitor.into()),
            ("overhead".to_owned(), (median - 1.0).into()),
            ("low".to_owned(), (low - 1.0).into()),
            ("high".to_owned(), (high - 1.0).into()),
            ("pairs".to_owned(), samples.into()),
            ("gather_rate".to_owned(), self.gathered.into()),
        ])
    }

    /// For people.
    pub(super) fn line(&self, name: &str) -> String {
        let MedianInterval { median, low, high, samples } = self.interval;
        let verdict = match (high <= RATIO_MAX, low > RATIO_MAX) {
            (true, _) => "reached",
            (_, true) => "missed",
            _ => "not resolved",
        };
        let gathered = self
            .gathered
            .map_or_else(String::new, |part| format!(", {:.1} % gathered", part * 100.0));
        format!(
            "  {name:<12} {:<12} {median:.4} ({low:.4} to {high:.4}, {samples} pairs{gathered}), at \
             most {RATIO_MAX}: {verdict}",
            self.monitor
        )
    }
}
