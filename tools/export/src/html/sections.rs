//! Sections of the page that not every run has: distributions, rank classes, outliers, call sites,
//! communicators and messages from host to host.

use maud::{Markup, html};
use sapwood_report::analysis::{SCORE_MARKED, score_text};
use sapwood_report::quantity::{bytes, time, whole};
use sapwood_report::record::{Classification, Histogram, Outlier};
use sapwood_report::{Calls, Peers, Profile};

use crate::event_names::{full_name, visible};

/// Lines of each table; all are in `profile.json`.
const LINES_MAX: usize = 40;
/// Names of events that are written out for a class.
const NAMES_MAX: usize = 12;
/// The drawing's own units.
const BARS_HEIGHT: f64 = 24.0;
const BAR_WIDTH: f64 = 6.0;

/// All of them that the run has.
pub(super) fn all(profile: &Profile) -> Markup {
    html! {
        (histograms(&profile.histograms, profile.histograms_left_out))
        @for classification in &profile.classifications { (classes(classification)) }
        (outliers(&profile.outliers, profile.measures_left_out))
        @for (section, ranks) in &profile.analysis_missing {
            p.note { "Not in the " (section) ": " (sapwood_report::ranks_text(ranks)) "." }
        }
        @if let Some(sites) = &profile.call_sites {
            (calls("Call sites", "call site", sites))
        }
        @if let Some(communicators) = &profile.communicators {
            (calls("Communicators", "communicator", communicators))
        }
        @if let Some(peers) = &profile.peers { (messages(peers)) }
        @if profile.tallies_dropped > 0 {
            p.note { (whole(profile.tallies_dropped.into())) " calls are not listed: a table was full." }
        }
    }
}

/// A table whose first columns are text and the others numbers.
fn table(columns: &[&str], texts: usize, rows: &[Vec<Markup>], left_out: usize) -> Markup {
    html! {
        div.wide {
            table {
                thead { tr {
                    @for (at, column) in columns.iter().enumerate() {
                        @if at < texts { th { (column) } } @else { th.number { (column) } }
                    }
                } }
                tbody {
                    @for row in rows.iter() { tr {
                        @for (at, cell) in row.iter().enumerate() {
                            @if at == 0 { th scope="row" { (cell) } }
                            @else if at < texts { td { (cell) } }
                            @else { td.number { (cell) } }
                        }
                    } }
                }
            }
        }
        @if left_out > 0 { p.note { (left_out) " more are in profile.json." } }
    }
}

fn text(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}

fn by_metric(metric: &str, value: f64) -> String {
    match metric {
        "time_ns" => time(value),
        "bytes" => bytes(value),
        _ => whole(value.round() as u128),
    }
}

fn histograms(all: &[Histogram], left_out: u64) -> Markup {
    let exact = || all.iter().filter(|one| one.method == "three-phase");
    let row = |one: &Histogram| {
        vec![
            text(visible(&full_name(&one.event, one.communicator_size_class))),
            text(&one.metric),
            bars(&one.bins.counts),
            text(whole(one.bins.counts.iter().sum::<u64>().into())),
            text(by_metric(&one.metric, one.bins.low)),
            text(by_metric(&one.metric, one.bins.high)),
        ]
    };
    let rows: Vec<_> = exact().take(LINES_MAX).map(row).collect();
    let more = exact().count() - rows.len() + usize::try_from(left_out).unwrap_or(usize::MAX);
    html! {
        @if !rows.is_empty() {
            h2 { "Distribution over the ranks" }
            p.note { "Ranks in bins of equal width, from the smallest to the largest value." }
            (table(&["event", "metric", "ranks per bin", "ranks", "smallest", "largest"], 3, &rows, more))
        }
    }
}

fn bars(counts: &[u64]) -> Markup {
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let width = BAR_WIDTH * counts.len() as f64;
    let label = counts.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    html! {
        svg viewBox=(format!("0 0 {width} {BARS_HEIGHT}")) style="width:12rem;height:1.6rem"
            preserveAspectRatio="none" role="img" aria-label=(format!("ranks in each bin: {label}")) {
            @for (at, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                @let height = BARS_HEIGHT * count as f64 / most;
                rect x=(BAR_WIDTH * at as f64) width=(BAR_WIDTH - 1.0) fill="var(--c0)"
                    y=(format!("{:.1}", BARS_HEIGHT - height)) height=(format!("{height:.1}")) {}
            }
        }
    }
}

fn classes(classification: &Classification) -> Markup {
    let all = &classification.classes;
    let row = |class: &sapwood_report::record::RankClass| {
        let mut names: Vec<String> = class.names.iter().map(|name| visible(name)).collect();
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        if more > 0 {
            names.push(format!("and {more} more"));
        }
        vec![text(&class.ranks), text(names.join(", ")), text(whole(class.size.into()))]
    };
    let rows: Vec<_> = all.iter().take(LINES_MAX).map(row).collect();
    let left_out = usize::try_from(classification.left_out).unwrap_or(usize::MAX);
    html! {
        h2 { "Rank classes by " (visible(&classification.scheme)) }
        p.note { "Ranks of a class have the same events of those that the scheme chooses." }
        (table(&["ranks", "events that the scheme chooses", "number"], 2, &rows,
               (all.len() - rows.len()).saturating_add(left_out)))
    }
}

fn outliers(all: &[Outlier], measures_left_out: u64) -> Markup {
    let far = || all.iter().filter(|one| one.score.abs() >= SCORE_MARKED);
    let row = |one: &Outlier| {
        let host = visible(&one.host);
        let whose = one.rank.map_or_else(|| format!("host {host}"), |rank| format!("rank {rank}"));
        vec![
            text(visible(&full_name(&one.event, one.communicator_size_class))),
            text(whose),
            text(host),
            text(&one.metric),
            text(by_metric(&one.metric, one.value)),
            text(by_metric(&one.metric, one.median)),
            text(score_text(one.score)),
        ]
    };
    let rows: Vec<_> = far().take(LINES_MAX).map(row).collect();
    html! {
        @if !rows.is_empty() {
            h2 { "Outliers" }
            p.note {
                "Ranks and hosts that are " (SCORE_MARKED) " or more robust standard deviations from the median."
                @if measures_left_out > 0 { " " (measures_left_out) " more measures were not searched." }
            }
            (table(&["event", "rank or host", "host", "metric", "value", "median", "score"], 4, &rows,
                   far().count() - rows.len()))
        }
    }
}

fn calls(title: &str, first: &str, all: &[Calls]) -> Markup {
    let row = |one: &Calls| {
        vec![
            text(visible(&one.told())),
            text(&one.function),
            text(whole(one.calls.sum)),
            text(time(one.time_ns.mean)),
            text(format!("{} @ {}", time(one.time_ns.max as f64), one.time_ns.max_rank)),
            text(bytes(one.bytes.sum as f64)),
            text(one.ranks.to_string()),
        ]
    };
    let rows: Vec<_> = all.iter().take(LINES_MAX).map(row).collect();
    let columns = [first, "function", "calls", "time per rank, mean", "max", "bytes", "ranks"];
    html! {
        h2 { (title) }
        @if rows.is_empty() { p { "none" } }
        @else { (table(&columns, 2, &rows, all.len() - rows.len())) }
    }
}

fn messages(peers: &Peers) -> Markup {
    let row = |pair: &sapwood_report::Pair<String>| {
        let each = pair.bytes as f64 / pair.messages.max(1) as f64;
        vec![
            text(visible(&pair.from)),
            text(visible(&pair.to)),
            text(whole(pair.messages.into())),
            text(bytes(pair.bytes as f64)),
            text(bytes(each)),
        ]
    };
    let rows: Vec<_> = peers.hosts.iter().take(LINES_MAX).map(row).collect();
    html! {
        h2 { "Messages from host to host" }
        @if rows.is_empty() { p { "none" } }
        @else {
            (table(&["from", "to", "messages", "bytes", "mean size"], 2, &rows,
                   peers.hosts.len() - rows.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_report::Pair;
    use sapwood_report::record::{Bins, Metric, RankClass};

    use super::*;

    fn metric(sum: u128) -> Metric {
        Metric {
            sum,
            mean: sum as f64,
            standard_deviation: None,
            min: 0,
            min_rank: 0,
            max: 7_000_000,
            max_rank: 3,
        }
    }

    fn call(name: &str, address: u64, place: &str) -> Calls {
        Calls {
            function: "MPI_Send".into(),
            communicator_size_class: Some(2),
            name: name.into(),
            address,
            place: place.into(),
            ranks: 4,
            calls: metric(12),
            time_ns: metric(5_000_000),
            bytes: metric(4096),
        }
    }

    #[test]
    fn every_section_that_a_profile_has_is_shown() {
        assert_eq!(all(&Profile::default()).into_string(), "");
        let mut profile = Profile::default();
        let bins = Bins { low: 1e6, high: 3e6, counts: vec![3, 0, 1] };
        profile.histograms = vec![Histogram {
            event: "solve<".into(),
            metric: "time_ns".into(),
            method: "three-phase".into(),
            bins,
            ..Histogram::default()
        }];
        let class = RankClass {
            ranks: "0,2".into(),
            size: 2,
            names: vec!["MPI_Reduce_local".into()],
            ..RankClass::default()
        };
        profile.classifications = vec![Classification {
            scheme: "mpi".into(),
            classes: vec![class],
            left_out: 4,
            ..Classification::default()
        }];
        let outlier = |event: &str, score| Outlier {
            event: event.into(),
            metric: "bytes".into(),
            rank: Some(3),
            score,
            ..Outlier::default()
        };
        profile.outliers = vec![outlier("far away", -99_987.3), outlier("nearby", 1.0)];
        profile.call_sites = Some(vec![call("/bin/solver", 0x1234, "solver.c:7 main")]);
        profile.communicators = Some(vec![call("halo exchange 0-3", 0, "")]);
        let pair = Pair { from: "n0".into(), to: "n1".into(), messages: 3, bytes: 3000 };
        profile.peers = Some(Peers { hosts: vec![pair], ..Peers::default() });
        let page = crate::html::page(&profile, std::iter::empty()).expect("no rounds");
        for wanted in [
            "solve&lt;",
            "ranks in each bin: 3, 0, 1",
            "3.00 ms",
            "Rank classes by mpi",
            "MPI_Reduce_local",
            "4 more are in profile.json",
            "Outliers",
            "&lt;-1000",
            "far away",
            "solver.c:7 main",
            "halo exchange 0-3",
            "<th scope=\"row\">n0</th><td>n1</td>",
        ] {
            assert!(page.contains(wanted), "{wanted} is not in {page}");
        }
        assert!(!page.contains("nearby"), "it does not deviate");
    }
}
