//! What a network is like, as a text and as numbers.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// The texts that have names.
const TEXTS: [(&str, &str); 9] = [
    ("paper-3", include_str!("../scenarios/paper-3.layout")),
    ("paper-4", include_str!("../scenarios/paper-4.layout")),
    ("racks", include_str!("../scenarios/racks.layout")),
    ("near", include_str!("../scenarios/near.layout")),
    ("slow-link", include_str!("../scenarios/slow-link.layout")),
    ("cards", include_str!("../scenarios/cards.layout")),
    ("campus", include_str!("../scenarios/campus.layout")),
    ("lan", include_str!("../scenarios/lan.layout")),
    ("host", include_str!("../scenarios/host.layout")),
];

/// The names of the layouts that are known.
pub const SCENARIOS: [&str; TEXTS.len()] = {
    let mut names = [""; TEXTS.len()];
    let mut at = 0;
    while at < TEXTS.len() {
        names[at] = TEXTS[at].0;
        at += 1;
    }
    names
};

/// Most hosts of a layout, and most clusters.
const HOSTS_MAX: usize = 100_000;
const CLUSTERS_MAX: usize = 1000;

/// What a network is drawn from. Times are in microseconds, rates in megabytes per second.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// How many hosts there are.
    pub hosts: usize,
    /// In how many clusters.
    pub clusters: usize,
    /// Round trip inside a cluster.
    pub near_us: f64,
    /// Round trips between clusters; pairs beyond the list draw around its entries.
    pub far_us: Vec<f64>,
    /// Members of different racks of a cluster are this much farther apart, if there are racks.
    pub rack_us: Option<f64>,
    /// The work of one send or receive.
    pub overhead_us: f64,
    /// How much latencies differ: the deviation of their logarithm. Not emulated.
    pub spread: f64,
    /// How much a probe is off: the deviation, upwards only. Not emulated.
    pub noise: f64,
    /// Of network cards: as many members have one as another of the list.
    pub card: Vec<f64>,
    /// Of one connection between clusters. Not emulated.
    pub stream: f64,
    /// Of all connections from one cluster to another, by pairs as `far_us`.
    pub pipe: Vec<f64>,
    /// How much waits for a line before packets are lost, in milliseconds. Not simulated.
    pub queue_ms: f64,
    /// Members are processes of one host: there is nothing to emulate.
    pub is_one_host: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            hosts: 201,
            clusters: 3,
            near_us: 300.0,
            far_us: Vec::from([7000.0, 9000.0, 10000.0]),
            rack_us: None,
            overhead_us: 40.0,
            spread: 0.25,
            noise: 0.08,
            card: Vec::from([110.0]),
            stream: 1e6,
            pipe: Vec::from([1e6]),
            queue_ms: 1000.0,
            is_one_host: false,
        }
    }
}

/// Why a text is no layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError {
    /// The line, from 1 on; none where the whole is wrong.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl core::error::Error for LayoutError {}

impl Layout {
    /// The layout of one of [`SCENARIOS`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let text = TEXTS.iter().find(|entry| entry.0 == name)?.1;
        text.parse().ok()
    }

    /// The same network, in which everything between hosts takes longer by a factor: latencies are
    /// multiplied, rates are divided. The work of hosts stays.
    #[must_use]
    pub fn slowed(mut self, factor: f64) -> Self {
        self.scale_latencies(factor);
        for rate in self.pipe.iter_mut().chain(&mut self.card).chain([&mut self.stream]) {
            *rate /= factor;
        }
        self
    }

    /// Makes all latencies longer by a factor.
    pub fn scale_latencies(&mut self, factor: f64) {
        self.near_us *= factor;
        self.rack_us = self.rack_us.map(|time| time * factor);
        self.far_us.iter_mut().for_each(|time| *time *= factor);
    }

    fn set(&mut self, name: &str, values: &[f64]) -> Result<(), String> {
        let [first, ..] = *values else { return Err(alloc::format!("'{name}' has no number")) };
        match name {
            "far_us" => self.far_us = values.to_vec(),
            "pipe" => self.pipe = values.to_vec(),
            "card" => self.card = values.to_vec(),
            _ if values.len() > 1 => return Err(alloc::format!("'{name}' has one number")),
            "hosts" => self.hosts = count(name, first, HOSTS_MAX)?,
            "clusters" => self.clusters = count(name, first, CLUSTERS_MAX)?,
            "near_us" => self.near_us = first,
            "rack_us" => self.rack_us = Some(first),
            "overhead_us" => self.overhead_us = first,
            "spread" => self.spread = first,
            "noise" => self.noise = first,
            "stream" => self.stream = first,
            "queue_ms" => self.queue_ms = first,
            "one_host" => self.is_one_host = first != 0.0,
            _ => {
                return Err(alloc::format!(
                    "there is no setting '{name}'; take hosts, clusters, near_us, far_us, rack_us, \
                     overhead_us, spread, noise, card, stream, pipe, queue_ms or one_host"
                ));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.clusters > self.hosts {
            return Err(alloc::format!("{} clusters of {} hosts", self.clusters, self.hosts));
        }
        let mut rates = self.pipe.iter().chain(&self.card).chain([&self.stream]);
        if rates.any(|rate| *rate <= 0.0) {
            return Err("a rate is above 0".to_string());
        }
        Ok(())
    }
}

fn count(name: &str, value: f64, most: usize) -> Result<usize, String> {
    let count = value as usize;
    if count as f64 != value || !(1..=most).contains(&count) {
        return Err(alloc::format!("'{name}' is a whole number from 1 to {most}"));
    }
    Ok(count)
}

/// Lines of a name and its numbers; what is not named is as in [`Layout::default`]. A line that
/// begins with `#` says nothing.
impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut layout = Self::default();
        for (at, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(name) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            let fault = |what| LayoutError { line: Some(at + 1), what };
            let values: Result<Vec<f64>, String> = words.map(number).collect();
            layout.set(name, &values.map_err(fault)?).map_err(fault)?;
        }
        layout.check().map_err(|what| LayoutError { line: None, what })?;
        Ok(layout)
    }
}

fn number(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok().filter(|number| (0.0..1e12).contains(number));
    number.ok_or_else(|| alloc::format!("'{word}' is no number from 0 to 1e12"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_read_and_paper_3_is_the_default() {
        for name in SCENARIOS {
            assert!(Layout::named(name).is_some(), "{name}");
        }
        assert_eq!(Layout::named("paper-3"), Some(Layout::default()));
        assert_eq!(Layout::named("paper-5"), None);
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said() {
        for (text, fault) in [
            ("hosts", "line 1: 'hosts' has no number"),
            ("#\nhosts 2.5", "line 2: 'hosts' is a whole number from 1 to 100000"),
            ("hosts 4 5", "line 1: 'hosts' has one number"),
            ("near_us fast", "line 1: 'fast' is no number from 0 to 1e12"),
            ("near_us -1", "line 1: '-1' is no number from 0 to 1e12"),
            ("hosts 2", "3 clusters of 2 hosts"),
            ("card 110 0", "a rate is above 0"),
        ] {
            assert_eq!(text.parse::<Layout>().unwrap_err().to_string(), fault);
        }
        let error = "colour 7".parse::<Layout>().unwrap_err().to_string();
        assert!(error.starts_with("line 1: there is no setting 'colour'"), "{error}");
    }

    #[test]
    fn a_slower_network_has_longer_ways_and_lower_rates() {
        let slow = Layout::named("racks").unwrap().slowed(10.0);
        assert_eq!(
            (slow.near_us, slow.rack_us, slow.card),
            (3000.0, Some(2500.0), Vec::from([11.0]))
        );
        assert_eq!((slow.far_us[2], slow.overhead_us), (100_000.0, 40.0));
        let cards = Layout::named("cards").unwrap().slowed(10.0).card;
        assert_eq!(cards, [11.0, 5.5, 11.0, 2.75]);
    }
}
