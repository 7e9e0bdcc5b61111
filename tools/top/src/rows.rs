//! A sample as rows of text, for the plain table and for the view.
//!
//! Owns which statistics of a metric are shown and in which order the metrics come.

use super::metric::{METRICS, TABLE, Unit};
use super::sample::Sample;
use super::table::Column;
use sapwood::HistogramBin;

/// The headings of a row's cells.
pub(crate) const HEADINGS: [&str; 7] = ["mean", "deviation", "min", "p50", "p90", "p99", "max"];
/// How many hosts of one sort are named in a line.
const NAMED_BYTES_MAX: usize = 200;

/// In which order the metrics come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// As in the table of metrics.
    #[default]
    Table,
    /// Where the hosts differ most first: by deviation in parts of the mean.
    Spread,
    /// By name.
    Name,
}

impl Order {
    /// The next one.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Table => Self::Spread,
            Self::Spread => Self::Name,
            Self::Name => Self::Table,
        }
    }

    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "kind",
            Self::Spread => "spread",
            Self::Name => "name",
        }
    }

    /// The metrics of a sample in this order, by their places in the table.
    pub(crate) fn places(self, sample: &Sample) -> Vec<usize> {
        let mut places: Vec<usize> = (0..METRICS).collect();
        match self {
            Self::Table => {}
            Self::Spread => {
                let spread = |place: &usize| spread(&sample.table.columns()[*place]);
                places.sort_by(|a, b| spread(b).total_cmp(&spread(a)).then(a.cmp(b)));
            }
            Self::Name => places.sort_by_key(|&place| TABLE[place].name),
        }
        places
    }
}

/// Deviation in parts of the mean; 0 where all hosts are alike, or none has the metric.
fn spread(column: &Column) -> f64 {
    let spread = column.moments.standard_deviation() / column.moments.mean.abs();
    if column.moments.count > 0 && spread.is_finite() { spread } else { 0.0 }
}

/// The cells of a metric, under [`HEADINGS`]; dashes where no host has it.
pub(crate) fn cells(place: usize, column: &Column) -> [String; 7] {
    let quantile = |q| column.quantiles.quantile(q).unwrap_or(f64::NAN);
    let moments = &column.moments;
    let values = [
        moments.mean,
        moments.standard_deviation(),
        moments.min,
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        moments.max,
    ];
    let is_known = moments.count > 0;
    values.map(|value| TABLE[place].show(if is_known { value } else { f64::NAN }))
}

/// The worst hosts of a metric with their values.
pub(crate) fn worst(place: usize, sample: &Sample) -> Vec<(String, String)> {
    let worst = &sample.table.columns()[place].worst;
    let shown = |&(value, rank)| (sample.host(rank).to_string(), TABLE[place].show(value));
    worst.iter().map(shown).collect()
}

/// The bins of a metric's histogram, from low to high. Shares of exactly 1 are in the last one.
pub(crate) fn bins(place: usize, column: &Column) -> Vec<HistogramBin> {
    let mut bins: Vec<HistogramBin> = column.histogram.bins().collect();
    if TABLE[place].unit == Unit::Ratio
        && let Some(last) = bins.last_mut()
    {
        last.count += column.histogram.over();
    }
    bins
}

/// A histogram in at most `columns` columns, each as high as its share of the highest.
pub(crate) fn bars(bins: &[HistogramBin], columns: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let group = bins.len().div_ceil(columns.max(1)).max(1);
    let counts = bins.chunks(group).map(|bins| bins.iter().map(|bin| bin.count).sum::<u64>());
    let counts: Vec<u64> = counts.collect();
    let highest = counts.iter().copied().max().unwrap_or(0).max(1);
    let height = |count: u64| match count {
        0 => ' ',
        _ => HEIGHTS[((count * 8).div_ceil(highest) as usize).clamp(1, 8) - 1],
    };
    counts.into_iter().map(height).collect()
}

/// How many hosts there are, and which are missing and why, in a line or several.
pub(crate) fn summary(sample: &Sample) -> String {
    let all = sample.hosts.len();
    let took = sample.took.as_secs_f64() * 1e3;
    let mut text = format!("{} of {all} hosts in {took:.0} ms", sample.answered.len());
    for (ranks, reason) in &sample.missing {
        let nodes = cut(&sample.nodes(ranks).to_string());
        text += &format!("\nmissing: {nodes} ({}): {reason}", ranks.len());
    }
    text
}

/// The metrics that some of the hosts that answered lack, with these hosts: in lines of those that
/// lack the same.
pub(crate) fn absent(sample: &Sample) -> Vec<String> {
    let mut lines: Vec<(Vec<&str>, &Column)> = Vec::new();
    for (metric, column) in TABLE.iter().zip(sample.table.columns()) {
        if column.lacking.is_empty() {
            continue;
        }
        let same = |(_, other): &&mut (Vec<&str>, &Column)| {
            other.lacking == column.lacking && other.moments.count == column.moments.count
        };
        match lines.iter_mut().find(same) {
            Some((names, _)) => names.push(metric.name),
            None => lines.push((vec![metric.name], column)),
        }
    }
    let line = |(names, column): (Vec<&str>, &Column)| {
        let count = sample.answered.len().saturating_sub(column.moments.count);
        let nodes = cut(&sample.nodes(&column.lacking).to_string());
        let more = if count > column.lacking.len() { " and others" } else { "" };
        format!("absent: {} on {nodes}{more} ({count})", names.join(", "))
    };
    lines.into_iter().map(line).collect()
}

/// A nodeset's text, cut where it becomes too long for a line.
fn cut(nodes: &str) -> String {
    match nodes.char_indices().nth(NAMED_BYTES_MAX) {
        Some((at, _)) => format!("{}...", &nodes[..at]),
        None => nodes.to_string(),
    }
}

/// The whole sample as a plain table, with the worst hosts of one metric below it.
pub(crate) fn table(sample: &Sample, chosen: usize) -> String {
    let mut text = summary(sample) + "\n";
    let line = |name: &str, cells: &[String], last: &str| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>11}")).collect();
        format!("{:<21}{cells}  {last}", name).trim_end().to_string() + "\n"
    };
    text += &line("metric", &HEADINGS.map(str::to_string), "worst host");
    for (place, metric) in TABLE.iter().enumerate() {
        let column = &sample.table.columns()[place];
        let host = column.worst.first().map_or("", |&(_, rank)| sample.host(rank));
        text += &line(metric.name, &cells(place, column), host);
    }
    for line in absent(sample) {
        text += &(line + "\n");
    }
    let worst = worst(chosen, sample);
    let worst: Vec<String> =
        worst.into_iter().map(|(host, value)| format!("{host} {value}")).collect();
    text + &format!("worst by {}: {}\n", TABLE[chosen].name, worst.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::place;
    use crate::sample::tests::sample_of;

    #[test]
    fn a_table_names_the_missing_and_the_worst() {
        let sample = sample_of(&[0, 1, 2]);
        let text = table(&sample, place("load.1").expect("a metric"));
        assert!(text.starts_with("3 of 4 hosts in "), "{text}");
        assert!(text.contains("missing: n3 (1): no answer within 500 ms\n"), "{text}");
        assert!(text.ends_with("worst by load.1: n2 2, n1 1\n"), "{text}");
        let load: Vec<&str> = text
            .lines()
            .find(|line| line.starts_with("load.5"))
            .expect("a row")
            .split_whitespace()
            .collect();
        assert_eq!(load, ["load.5", "1", "0.82", "0", "0.98", "0.98", "0.98", "2", "n2"]);
        let few = text.lines().find(|line| line.starts_with("memory.available")).expect("a row");
        assert!(few.ends_with("  n0"), "{few}");
    }

    #[test]
    fn metrics_where_hosts_differ_come_first_by_spread() {
        let sample = sample_of(&[0, 3]);
        assert_eq!(Order::Table.places(&sample)[..3], [0, 1, 2]);
        let by_name = Order::Name.places(&sample);
        assert_eq!(TABLE[by_name[0]].name, "cpu.busy");
        assert_eq!(TABLE[*by_name.last().expect("metrics")].name, "uptime");
        assert_eq!(Order::Spread.places(&sample), Order::Table.places(&sample), "all the same");
        assert_eq!(Order::Table.next().next().next(), Order::Table);
    }

    #[test]
    fn bars_are_as_high_as_their_share() {
        let bin = |count| HistogramBin { low: 0.0, high: 1.0, count };
        assert_eq!(bars(&[bin(0), bin(1), bin(4), bin(8)], 4), " ▁▄█");
        assert_eq!(bars(&[bin(1), bin(1), bin(4), bin(0)], 2), "▄█");
        assert_eq!(bars(&[], 4), "");
        assert_eq!(bars(&[bin(0)], 4), " ");
    }
}
