//! A sample as OpenMetrics text, within a bound on the number of series.
//!
//! Owns the names of series, escaping, and what is left out when there are too many: statistics
//! come first, in the order of the metrics, then the worst hosts. The format is that of the
//! OpenMetrics specification 1.0, and at the same time one that readers of Prometheus's older text
//! format take, so that only gauges are used. How it is served is `watch`'s matter.

use std::fmt::Write as _;
use std::time::SystemTime;

use super::metric::{Metric, TABLE};
use super::sample::Sample;
use super::table::Column;

/// What stands before every name.
const PREFIX: &str = "sapwood_";
/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Series about the watch itself, which are always there.
pub(crate) const OWN_SERIES: usize = 6;
/// The bound on all series, if nothing is said, and the least that makes sense.
pub(crate) const SERIES_DEFAULT: u32 = 2000;
pub(crate) const SERIES_MIN: u32 = 16;

/// The text of the last sample; before the first there is none.
pub(crate) fn text(sample: Option<&Sample>, series_max: usize) -> String {
    let mut series = Series { text: String::new(), room: series_max - OWN_SERIES, left_out: 0 };
    if let Some(sample) = sample {
        let columns = || TABLE.iter().zip(sample.table.columns());
        for (metric, column) in columns() {
            series.write_statistics(metric, column);
        }
        for (metric, column) in columns() {
            series.write_worst(metric, column, sample);
        }
    }
    let (answered, missing) =
        sample.map_or((0, 0), |sample| (sample.answered.len(), sample.missing_count()));
    let seconds = sample.map_or(0.0, |sample| sample.took.as_secs_f64());
    let time = sample.and_then(|sample| sample.time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let hosts =
        [("{state=\"answered\"}", answered as f64), ("{state=\"missing\"}", missing as f64)];
    let waves = sample.map_or(0, |sample| sample.number) as f64;
    let time = time.map_or(0.0, |time| time.as_secs_f64());
    let left_out = series.left_out as f64;
    series.write_own("top_hosts", "Hosts by state in the last update", &hosts);
    series.write_own("top_waves", "Updates since the start", &[("", waves)]);
    series.write_own("top_wave_seconds", "Duration of the last update", &[("", seconds)]);
    let help = "End of the last update, in seconds since 1970";
    series.write_own("top_wave_timestamp_seconds", help, &[("", time)]);
    let help = "Series left out because of --series-max";
    series.write_own("top_series_left_out", help, &[("", left_out)]);
    series.text + "# EOF\n"
}

/// Text that grows by series, as long as there is room.
struct Series {
    text: String,
    room: usize,
    left_out: usize,
}

impl Series {
    fn write_head(&mut self, name: &str, help: &str) {
        let _ = writeln!(self.text, "# TYPE {PREFIX}{name} gauge");
        let _ = writeln!(self.text, "# HELP {PREFIX}{name} {}", escaped(help));
    }

    /// A family about the watch itself, for which there is always room.
    fn write_own(&mut self, name: &str, help: &str, samples: &[(&str, f64)]) {
        self.write_head(name, help);
        for (labels, value) in samples {
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "{PREFIX}{name}{labels} {value}");
        }
    }

    /// A family of gauges whose samples differ by one label.
    fn write_family(&mut self, name: &str, help: &str, label: &str, samples: &[(&str, f64)]) {
        let (written, left_out) = samples.split_at(samples.len().min(self.room));
        self.room -= written.len();
        self.left_out += left_out.len();
        if !written.is_empty() {
            self.write_head(name, help);
        }
        for (of, value) in written {
            let of = escaped(of);
            let _ = writeln!(self.text, "{PREFIX}{name}{{{label}=\"{of}\"}} {}", number(*value));
        }
    }

    fn write_statistics(&mut self, metric: &Metric, column: &Column) {
        let mut samples = vec![("hosts", column.moments.count as f64)];
        if column.moments.count > 0 {
            let quantile = |q| column.quantiles.quantile(q).unwrap_or(f64::NAN);
            samples.extend([
                ("mean", column.moments.mean),
                ("deviation", column.moments.standard_deviation()),
                ("min", column.moments.min),
                ("p50", quantile(0.5)),
                ("p90", quantile(0.9)),
                ("p99", quantile(0.99)),
                ("max", column.moments.max),
                ("sum", column.sum()),
            ]);
        }
        self.write_family(metric.series, metric.help, "statistic", &samples);
    }

    fn write_worst(&mut self, metric: &Metric, column: &Column, sample: &Sample) {
        let name = format!("worst_{}", metric.series);
        let help = format!("{}, of the hosts where it is worst", metric.help);
        let hosts: Vec<(&str, f64)> =
            column.worst.iter().map(|&(value, rank)| (sample.host(rank), value)).collect();
        self.write_family(&name, &help, "host", &hosts);
    }
}

/// A text as it may stand in quotes, or behind `# HELP`.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_string(),
        f64::INFINITY => "+Inf".to_string(),
        f64::NEG_INFINITY => "-Inf".to_string(),
        _ => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metric::METRICS;
    use crate::sample::tests::sample_of;

    const DEFAULT: usize = SERIES_DEFAULT as usize;

    fn series(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn a_metric_has_its_statistics_and_its_worst_hosts() {
        let text = text(Some(&sample_of(&[0, 1, 2])), DEFAULT);
        for line in [
            "# TYPE sapwood_load1 gauge",
            "# HELP sapwood_load1 Load average over 1 minute",
            "sapwood_load1{statistic=\"hosts\"} 3",
            "sapwood_load1{statistic=\"mean\"} 1",
            "sapwood_load1{statistic=\"max\"} 2",
            "sapwood_load1{statistic=\"sum\"} 3",
            "sapwood_worst_load1{host=\"n2\"} 2",
            "sapwood_worst_load1{host=\"n1\"} 1",
            "sapwood_top_hosts{state=\"answered\"} 3",
            "sapwood_top_hosts{state=\"missing\"} 1",
            "sapwood_top_series_left_out 0",
        ] {
            assert!(text.lines().any(|given| given == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
        assert!(!text.contains("sapwood_worst_load1{host=\"n0\""), "only the worst two are named");
    }

    #[test]
    fn every_family_is_told_once_and_in_one_piece() {
        let text = text(Some(&sample_of(&[0, 1])), DEFAULT);
        let mut told = BTreeSet::new();
        let mut family = "";
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(name) = line.strip_prefix("# TYPE ") {
                family = name.strip_suffix(" gauge").expect("a gauge");
                assert!(told.insert(family), "{family} comes twice");
                continue;
            }
            let name = line.strip_prefix("# HELP ").unwrap_or(line);
            let name = name.split(['{', ' ']).next().expect("a name");
            assert_eq!(name, family, "{line}");
        }
        assert_eq!(series(&text).iter().collect::<BTreeSet<_>>().len(), series(&text).len());
    }

    #[test]
    fn each_series_of_the_page_is_there() {
        let text = text(Some(&sample_of(&[0, 1])), DEFAULT);
        let page = include_str!("../../../docs/top.md");
        let mut names = 0;
        for rest in page.split("sapwood_").skip(1) {
            let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let name = &rest[..rest.find(|letter: char| !is_letter(letter)).unwrap_or(rest.len())];
            if !name.is_empty() {
                let family = format!("# TYPE sapwood_{name} gauge\n");
                assert!(text.contains(&family), "there is no series sapwood_{name}");
                names += 1;
            }
        }
        assert!(names >= 5, "the page names the series of the watch itself");
    }

    #[test]
    fn what_is_beyond_the_bound_is_counted_and_hosts_go_first() {
        let sample = sample_of(&[0, 1, 2, 3]);
        let all = series(&text(Some(&sample), DEFAULT)).len();
        assert_eq!(all, OWN_SERIES + METRICS * (9 + 2));
        for bound in [SERIES_MIN as usize, 100, OWN_SERIES + METRICS * 9, all - 1, all] {
            let text = text(Some(&sample), bound);
            assert_eq!(series(&text).len(), bound);
            let left_out = format!("sapwood_top_series_left_out {}\n", all - bound);
            assert!(text.contains(&left_out), "{bound}");
            assert_eq!(text.contains("host="), bound > OWN_SERIES + METRICS * 9);
        }
    }

    #[test]
    fn before_the_first_wave_there_is_only_the_watch_itself() {
        let text = text(None, DEFAULT);
        assert_eq!(series(&text).len(), OWN_SERIES);
        assert!(text.contains("sapwood_top_waves 0\n") && text.ends_with("# EOF\n"));
    }

    #[test]
    fn names_are_escaped_and_numbers_are_as_the_format_wants_them() {
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
        let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.25, 4e9].map(number);
        assert_eq!(numbers, ["NaN", "+Inf", "-Inf", "0.25", "4000000000"]);
    }
}
