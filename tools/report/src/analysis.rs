//! What filters beside the round's have found: histograms, rank classes, outliers and values of
//! ranks, as the sections of a record, and as text for a reader.
//!
//! How these were reduced is `sapwood-profile`'s, when they are asked for is the monitor's.

use std::collections::BTreeMap;
use std::fmt::Write;

use sapwood_packet::RankSet;
use sapwood_profile::{
    BinCounts, Classification as Classes, Deviations, EventKey, HistogramSketches, HostSum, Limits,
    Measure, Medians, RANK_METRICS, RankValues as Values, SizeClass, score,
};

use crate::quantity;
use crate::record::{
    Bins, Classification, Event, Histogram, Outlier, RankClass, RankValues, RoundRecord,
};
use crate::text::{Grid, Paint, Side, agreeing, printable, ranks_text};

/// The most rank classes of one scheme in a record; more are counted.
pub const CLASSES_SHOWN: usize = 32;
/// The most classes of one scheme in the text.
const CLASSES_TOLD: usize = 10;
/// From this score on, either way, a value deviates (Iglewicz and Hoaglin, 1993).
pub const SCORE_MARKED: f64 = 3.5;
/// Scores beyond this are not told in figures.
const SCORE_MAX: f64 = 1000.0;
/// Heights of a bar in one line of text.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What is known beside a round, of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// The number of the round at whose moment it was taken; none before the first one.
    pub round: Option<u64>,
    /// Distributions of measures over the ranks.
    pub histograms: Vec<Histogram>,
    /// Histograms that were left out because there were too many.
    pub histograms_left_out: u64,
    /// Measures without outliers and without histograms of classes, because there were too many.
    pub measures_left_out: u64,
    /// Ranks in classes.
    pub classifications: Vec<Classification>,
    /// Ranks and hosts that deviate most.
    pub outliers: Vec<Outlier>,
    /// Numbers of each rank.
    pub rank_values: Vec<RankValues>,
    /// By section, the ranks that are not in it.
    pub missing: BTreeMap<String, String>,
}

impl Analysis {
    /// Gives a record these sections.
    pub fn fill(&self, record: &mut RoundRecord) {
        let own = self.clone();
        record.analysis_round = own.round;
        record.histograms = own.histograms;
        record.histograms_left_out = own.histograms_left_out;
        record.measures_left_out = own.measures_left_out;
        record.classifications = own.classifications;
        record.outliers = own.outliers;
        record.rank_values = own.rank_values;
        record.analysis_missing = own.missing;
    }

    /// The sections for a reader; empty when nothing is known.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut text = String::new();
        if let Some(grid) = self.distributions() {
            text.push_str(
                "\nDistribution over the ranks, from the smallest to the largest value\n\n",
            );
            text.push_str(&grid.render(width, Paint::PLAIN));
        }
        if self.histograms_left_out > 0 {
            let more = quantity::counted(self.histograms_left_out.into(), "more histograms");
            let _ = writeln!(text, "and {more}");
        }
        for classification in &self.classifications {
            text.push_str(&classes(classification, width));
        }
        if let Some(grid) = self.deviations() {
            let _ = writeln!(
                text,
                "\nRanks and hosts that deviate by a robust score of {SCORE_MARKED} or more\n"
            );
            text.push_str(&grid.render(width, Paint::PLAIN));
            if self.measures_left_out > 0 {
                let _ =
                    writeln!(text, "{} more measures were not searched", self.measures_left_out);
            }
        }
        for (section, ranks) in &self.missing {
            let verb = agreeing(ranks, "is", "are");
            let section = printable(section);
            let _ = writeln!(text, "\n{} {verb} not in the {section}", ranks_text(ranks));
        }
        text
    }

    fn distributions(&self) -> Option<Grid> {
        let mut grid = Grid::new(20);
        grid.column("event", Side::Left);
        for name in ["metric", "ranks", "smallest", "largest"] {
            grid.column(name, Side::Right);
        }
        grid.column("ranks per bin", Side::Left);
        grid.give_up(&["ranks", "metric"]);
        let exact = self.histograms.iter().filter(|one| one.method == "three-phase");
        let mut is_empty = true;
        for histogram in exact {
            let bins = &histogram.bins;
            let cells = [
                event_text(&histogram.event, histogram.communicator_size_class),
                histogram.metric.clone(),
                bins.counts.iter().sum::<u64>().to_string(),
                quantity_of(&histogram.metric, bins.low),
                quantity_of(&histogram.metric, bins.high),
                bars(&bins.counts),
            ];
            grid.row(cells.to_vec());
            is_empty = false;
        }
        (!is_empty).then_some(grid)
    }

    fn deviations(&self) -> Option<Grid> {
        let mut grid = Grid::new(20);
        grid.column("event", Side::Left);
        for name in ["metric", "rank", "host", "value", "median", "score"] {
            grid.column(name, Side::Right);
        }
        grid.give_up(&["host", "metric"]);
        let far = self.outliers.iter().filter(|one| one.score.abs() >= SCORE_MARKED);
        let mut is_empty = true;
        for outlier in far {
            let cells = [
                event_text(&outlier.event, outlier.communicator_size_class),
                outlier.metric.clone(),
                outlier.rank.map_or_else(|| "all".to_owned(), |rank| rank.to_string()),
                printable(&outlier.host),
                quantity_of(&outlier.metric, outlier.value),
                quantity_of(&outlier.metric, outlier.median),
                score_text(outlier.score),
            ];
            grid.row(cells.to_vec());
            is_empty = false;
        }
        (!is_empty).then_some(grid)
    }
}

/// A robust score for a reader: beyond a thousand its figures say nothing more.
#[must_use]
pub fn score_text(score: f64) -> String {
    match score {
        _ if score > SCORE_MAX => format!(">{SCORE_MAX}"),
        _ if score < -SCORE_MAX => format!("<-{SCORE_MAX}"),
        _ => format!("{score:+.1}"),
    }
}

fn event_text(name: &str, size_class: Option<u8>) -> String {
    let size_class = size_class.and_then(SizeClass::from_code).map(|class| format!(" ({class})"));
    printable(name) + &size_class.unwrap_or_default()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers")]
fn quantity_of(metric: &str, value: f64) -> String {
    match metric {
        "time_ns" => quantity::time(value),
        "bytes" => quantity::bytes(value),
        _ => quantity::whole(value.round() as u128),
    }
}

/// Counts as bars of one line, the highest for the largest count; a point where there is none.
fn bars(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let bar = |&count: &u64| match count {
        0 => '.',
        _ => BARS[usize::try_from(count.saturating_mul(8).div_ceil(most)).unwrap_or(8).min(8) - 1],
    };
    counts.iter().map(bar).collect()
}

fn classes(classification: &Classification, width: usize) -> String {
    let mut text =
        format!("\nRanks by their events, scheme {}\n\n", printable(&classification.scheme));
    let mut grid = Grid::new(20);
    grid.column("ranks", Side::Left);
    for name in ["number", "events", "MPI time, mean", "heaviest"] {
        grid.column(name, Side::Right);
    }
    grid.give_up(&["heaviest"]);
    let all = &classification.classes;
    for class in all.iter().take(CLASSES_TOLD) {
        let heaviest = class.events.iter().max_by_key(|event| event.time_ns.sum);
        let mpi = class.events.iter().filter(|event| event.class != "region");
        let time: f64 = mpi.map(|event| event.time_ns.mean * f64::from(event.ranks)).sum();
        #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
        let mean = time / class.size.max(1) as f64;
        let cells = [
            class.ranks.clone(),
            class.size.to_string(),
            class.names.len().to_string(),
            quantity::time(mean),
            heaviest.map_or_else(String::new, |event| printable(&event.name)),
        ];
        grid.row(cells.to_vec());
    }
    text.push_str(&grid.render(width, Paint::PLAIN));
    let more = (all.len().saturating_sub(CLASSES_TOLD)) as u64 + classification.left_out;
    if more > 0 {
        let _ = writeln!(text, "and {more} more classes");
    }
    let (now, cumulated) = (classification.reduction_factor, classification.cumulated_factor);
    let _ = writeln!(
        text,
        "data reduced in the tree by a factor of {now:.1} in the last round, {cumulated:.1} over \
         all rounds"
    );
    text
}

fn size_class_of(event: &EventKey) -> Option<u8> {
    let size_class = event.size_class();
    (size_class != SizeClass::NONE).then(|| size_class.code())
}

#[allow(clippy::cast_precision_loss, reason = "the nearest double is what is shown")]
fn number(value: u64) -> f64 {
    value as f64
}

/// A three-phase histogram as a section.
#[must_use]
pub fn histogram(limits: &Limits, counts: &BinCounts) -> Histogram {
    Histogram {
        event: limits.measure.event.name().into_owned(),
        communicator_size_class: size_class_of(&limits.measure.event),
        metric: limits.measure.metric.name().to_owned(),
        method: "three-phase".to_owned(),
        bins: Bins {
            low: number(limits.low),
            high: number(limits.high),
            counts: counts.bins.clone(),
        },
        under: counts.under,
        over: counts.over,
    }
}

/// One-phase histograms as sections.
#[must_use]
pub fn sketches(sketches: &HistogramSketches) -> Vec<Histogram> {
    let one = |(measure, bins): (&Measure, sapwood_profile::SketchBins)| Histogram {
        event: measure.event.name().into_owned(),
        communicator_size_class: size_class_of(&measure.event),
        metric: measure.metric.name().to_owned(),
        method: "sketch".to_owned(),
        bins: Bins { low: bins.low, high: bins.high, counts: bins.counts },
        ..Histogram::default()
    };
    sketches.bins().map(one).collect()
}

/// Rank classes as a section, the largest first; the factors are the caller's.
#[must_use]
pub fn classification(scheme: &str, classes: &Classes) -> Classification {
    let mut all: Vec<RankClass> = classes
        .classes()
        .map(|(id, class)| RankClass {
            id,
            ranks: class.round.covered().to_string(),
            size: class.round.covered().len(),
            names: class.names.clone(),
            events: class.round.events().iter().map(Event::of).collect(),
            histograms: Vec::new(),
        })
        .collect();
    all.sort_by_key(|class| (std::cmp::Reverse(class.size), class.id));
    let cut = all.split_off(all.len().min(CLASSES_SHOWN));
    let cut_ranks = cut.iter().filter_map(|class| class.ranks.parse::<RankSet>().ok());
    let left_out_ranks = cut_ranks.fold(classes.left_out_ranks().clone(), |mut all, ranks| {
        all.union_with(ranks.as_ref());
        all
    });
    Classification {
        scheme: scheme.to_owned(),
        classes: all,
        left_out: (cut.len() + classes.left_out()) as u64,
        left_out_ranks: left_out_ranks.to_string(),
        ..Classification::default()
    }
}

/// Ranks that deviate, as a section: those furthest from the median that have a score.
#[must_use]
pub fn rank_outliers(deviations: &Deviations) -> Vec<Outlier> {
    let mut outliers = Vec::new();
    for (measure, spread) in deviations.spreads() {
        for far in spread.furthest().iter().filter(|far| far.value != spread.median) {
            let Some(score) = spread.score(far.value) else { continue };
            outliers.push(Outlier {
                rank: Some(far.rank),
                host: far.host.clone(),
                value: number(far.value),
                median: number(spread.median),
                score,
                ..outlier_of(measure)
            });
        }
    }
    outliers
}

/// Hosts that deviate in the mean of their ranks, as a section; at most `most` of each measure.
#[must_use]
pub fn host_outliers(medians: &Medians, most: usize) -> Vec<Outlier> {
    let mut outliers = Vec::new();
    for (measure, _) in medians.medians() {
        #[allow(clippy::cast_precision_loss, reason = "a mean")]
        let mean = |sum: HostSum| sum.sum as f64 / f64::from(sum.ranks);
        let hosts: Vec<(&str, f64)> =
            medians.hosts(measure).map(|(host, sum)| (host, mean(sum))).collect();
        // Of two hosts none is the one that deviates.
        if hosts.len() < 3 {
            continue;
        }
        let median = middle(hosts.iter().map(|&(_, mean)| mean));
        let distances = || hosts.iter().map(|&(_, mean)| (mean - median).abs());
        #[allow(clippy::cast_precision_loss, reason = "few hosts")]
        let mean_distance = distances().sum::<f64>() / hosts.len() as f64;
        let median_distance = middle(distances());
        let mut far = hosts.clone();
        far.sort_by(|(_, one), (_, other)| (other - median).abs().total_cmp(&(one - median).abs()));
        for (host, value) in far.into_iter().take(most).filter(|&(_, value)| value != median) {
            let Some(score) = score(value, median, median_distance, mean_distance) else {
                continue;
            };
            let host = host.to_owned();
            outliers.push(Outlier { host, value, median, score, ..outlier_of(measure) });
        }
    }
    outliers
}

fn outlier_of(measure: &Measure) -> Outlier {
    Outlier {
        event: measure.event.name().into_owned(),
        communicator_size_class: size_class_of(&measure.event),
        metric: measure.metric.name().to_owned(),
        ..Outlier::default()
    }
}

/// The number in the middle, the lower one of two.
fn middle(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

/// Numbers of each rank, as sections.
#[must_use]
pub fn rank_values(values: &Values, world_size: u32) -> Vec<RankValues> {
    let section = |(metric, name): (usize, &&str)| {
        let bins = values.bins(metric, world_size);
        RankValues {
            metric: (*name).to_owned(),
            ranks_per_bin: values.ranks_per_bin().max(1),
            mean: bins.iter().map(|bin| bin.map(|(mean, _)| mean)).collect(),
            max: bins.iter().map(|bin| bin.map(|(_, max)| max)).collect(),
        }
    };
    RANK_METRICS.iter().enumerate().map(section).collect()
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Counters, Metric, Part, RankProfile};

    use super::*;

    #[test]
    fn bars_show_where_ranks_are() {
        assert_eq!(bars(&[0, 1, 8, 4]), ".▁█▄");
        assert_eq!(bars(&[0, 0]), "..");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn a_score_without_bounds_is_told_by_its_bound() {
        let told = [-99_987.3, -1000.0, 3.52, 1e300].map(score_text);
        assert_eq!(told, ["<-1000", "-1000.0", "+3.5", ">1000"]);
    }

    /// Four ranks on each of six hosts; leaves of three ranks, so that hosts lie in several leaves.
    fn leaves(measure: &Measure) -> Vec<Medians> {
        let base = [100, 800, 104, 98, 102, 9000];
        let profile = |rank: u32| {
            let host = rank as usize / 4;
            let time_ns = base[host] + 2 * u64::from(rank % 4);
            let mut profile = RankProfile::new(rank, 24);
            profile.host = format!("node{host}");
            let counters = Counters { count: 1, time_ns, bytes: 0 };
            profile.events.insert(measure.event.clone(), counters);
            profile
        };
        let profiles: Vec<RankProfile> = (0..24).map(profile).collect();
        let measures = [measure.clone()];
        profiles.chunks(3).map(|ranks| Medians::of(ranks, &measures, 1)).collect()
    }

    /// What one process of the tree makes of the packets of its children.
    fn merged(parts: &[Medians]) -> Medians {
        let sent = parts.iter().map(|part| Medians::decode(part.encode().as_ref()));
        let mut sent = sent.map(|part| part.expect("the own form"));
        let mut all = sent.next().expect("a child");
        sent.for_each(|part| all.absorb(part).expect("other ranks"));
        all
    }

    #[test]
    fn the_hosts_that_deviate_most_are_the_same_at_every_fan_out() {
        let measure = Measure { event: EventKey::Region("solve".into()), metric: Metric::TimeNs };
        // Of the means 103, 803, 107, 101, 105 and 9003 the median is 105, and the median of the
        // distances from it 2.
        let expected = [("node5", 9003.0, 8898.0), ("node1", 803.0, 698.0), ("node3", 101.0, -4.0)];
        for fan_out in [1, 2, 8] {
            let mut level = leaves(&measure);
            while level.len() > 1 {
                // One child each is a chain, below whose last process all leaves are.
                let children = if fan_out == 1 { level.len() } else { fan_out };
                level = level.chunks(children).map(merged).collect();
            }
            let found = host_outliers(&merged(&level), 3);
            assert_eq!(found.len(), expected.len(), "fan-out {fan_out}");
            for (one, (host, value, distance)) in found.iter().zip(expected) {
                assert_eq!((one.rank, one.event.as_str()), (None, "solve"));
                assert_eq!((one.host.as_str(), one.value, one.median), (host, value, 105.0));
                assert!((one.score - distance / (1.4826 * 2.0)).abs() < 1e-9, "{one:?}");
            }
        }
    }

    #[test]
    fn only_values_that_deviate_are_listed() {
        let outlier = |rank, score| Outlier {
            event: "solve".into(),
            metric: "calls".into(),
            rank: Some(rank),
            score,
            ..Outlier::default()
        };
        let mut analysis = Analysis {
            outliers: vec![outlier(4, -99_987.3), outlier(5, 3.4)],
            ..Analysis::default()
        };
        let text = analysis.text(120);
        assert!(text.contains("<-1000") && !text.contains("+3.4"), "{text}");
        analysis.outliers.remove(0);
        assert_eq!(analysis.text(120), "", "none deviates");
    }

    #[test]
    fn a_host_whose_ranks_are_slow_is_named_and_of_two_hosts_none_is() {
        let event = EventKey::Region("solve".to_owned());
        let measure = Measure { event: event.clone(), metric: Metric::TimeNs };
        let profile = |rank: u32, hosts: u32| {
            let host = format!("host{}", rank % hosts);
            let time_ns = if rank % hosts == 1 { 900 } else { 100 + u64::from(rank) };
            let mut profile = RankProfile { host, ..RankProfile::new(rank, 12) };
            profile.events.insert(event.clone(), Counters { count: 1, time_ns, bytes: 0 });
            profile
        };
        let of = |hosts| {
            let profiles: Vec<RankProfile> = (0..12).map(|rank| profile(rank, hosts)).collect();
            host_outliers(&Medians::of(&profiles, std::slice::from_ref(&measure), 0), 1)
        };
        let outliers = of(4);
        assert_eq!((outliers.len(), outliers[0].host.as_str()), (1, "host1"));
        assert_eq!((outliers[0].rank, outliers[0].value), (None, 900.0));
        assert!(outliers[0].score > SCORE_MARKED, "{outliers:?}");
        assert_eq!(of(2), []);
    }

    #[test]
    fn sections_are_told_as_text_and_what_is_left_out_is_counted() {
        let limits = Limits {
            group: 0,
            measure: Measure { event: EventKey::Region("solve".into()), metric: Metric::TimeNs },
            low: 1_000_000,
            high: 3_000_000,
            bins: 2,
        };
        let counts = BinCounts { bins: vec![3, 1], ..BinCounts::default() };
        let analysis = Analysis {
            histograms: vec![histogram(&limits, &counts)],
            histograms_left_out: 2,
            missing: [("histograms".to_owned(), "4-7".to_owned())].into(),
            ..Analysis::default()
        };
        let text = analysis.text(120);
        assert!(text.contains("1.00 ms") && text.contains("█▃"), "{text}");
        assert!(text.contains("and 2 more histograms"), "{text}");
        assert!(text.contains("ranks 4-7 are not in the histograms"), "{text}");
        assert_eq!(Analysis::default().text(120), "");
    }
}
