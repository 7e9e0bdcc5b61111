//! Charts as SVG in the page: bars, gauges and lines.

use std::fmt::Write as _;

use maud::{Markup, html};
use sapwood_report::quantity::{bytes, percent, time, whole};
use sapwood_report::record::Class;

use super::series::{Line, Series};
use crate::event_names::visible;

/// The drawing's own units.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 8.0;
const COLOURS: usize = 6;

/// An efficiency as a number and a bar.
pub(super) fn gauge(name: &str, value: f64) -> Markup {
    let width = 100.0 * value.clamp(0.0, 1.0);
    html! {
        div.card {
            h3 { (name) }
            b { (percent(Some(value))) }
            svg viewBox="0 0 100 4" role="img" aria-label=(format!("{name} {}", percent(Some(value)))) {
                rect width="100" height="4" rx="1" fill="var(--line)" {}
                rect width=(format!("{width:.2}")) height="4" rx="1" fill="var(--c0)" {}
            }
        }
    }
}

/// Time by function class, as bars.
pub(super) fn classes(classes: &[Class]) -> Markup {
    let mut classes: Vec<&Class> = classes.iter().filter(|class| class.time_ns > 0).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.time_ns));
    let most = classes.first().map_or(1, |class| class.time_ns.max(1)) as f64;
    html! {
        @if !classes.is_empty() {
            h2 { "Time by class" }
            p.note { "Of all ranks, inclusive." }
            table {
                thead { tr {
                    th { "class" } th { "time" } th.number { "time" } th.number { "calls" } th.number { "bytes" }
                } }
                tbody {
                    @for class in classes {
                        tr {
                            th scope="row" { (class.name) }
                            td style="width:45%" {
                                svg viewBox="0 0 100 4" preserveAspectRatio="none" style="height:1em" aria-hidden="true" {
                                    rect width=(format!("{:.2}", 100.0 * class.time_ns as f64 / most)) height="4"
                                        fill="var(--c0)" {}
                                }
                            }
                            td.number { (time(class.time_ns as f64)) }
                            td.number { (whole(class.calls)) }
                            td.number { (bytes(class.bytes as f64)) }
                        }
                    }
                }
            }
        }
    }
}

/// Lines over time: ratios, and the events that took most.
pub(super) fn over_time(series: &Series) -> Markup {
    let ratios: Vec<&Line> = series.ratios.iter().filter(|line| line.points.len() > 1).collect();
    let events: Vec<&Line> = series.events.iter().filter(|line| line.points.len() > 1).collect();
    html! {
        @if !(ratios.is_empty() && events.is_empty()) {
            h2 { "Over time" }
            p.note { "Each point is the interval since the one before; seconds since the program's start." }
            div.charts {
                @if !ratios.is_empty() { (chart("share of MPI and load balance", &ratios, Some(1.0))) }
                @if !events.is_empty() { (chart("share of a rank's time, by event", &events, None)) }
            }
        }
    }
}

fn chart(title: &str, lines: &[&Line], top: Option<f64>) -> Markup {
    let values = || lines.iter().flat_map(|line| &line.points);
    let most = values().map(|point| point.1).fold(0.0, f64::max);
    let top = top.unwrap_or_else(|| round_up(most));
    let end = values().map(|point| point.0).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / top);
    let x = |at: f64| LEFT + (WIDTH - LEFT - 12.0) * at / end;
    let ticks = [0.0, 0.5, 1.0];
    html! {
        div.card {
            h3 { (title) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
                @for tick in ticks {
                    line.axis x1=(LEFT) x2=(WIDTH - 12.0) y1=(tenths(y(tick * top))) y2=(tenths(y(tick * top))) {}
                    text x=(LEFT - 6.0) y=(tenths(y(tick * top) + 4.0)) text-anchor="end" {
                        (percent(Some(tick * top)))
                    }
                    text x=(tenths(x(tick * end))) y=(HEIGHT - 6.0) text-anchor=(anchor(tick)) {
                        (format!("{:.1} s", tick * end))
                    }
                }
                @for (at, line) in lines.iter().enumerate() {
                    path.line stroke=(format!("var(--c{})", at % COLOURS)) d=(path(line, x, y)) {
                        title { (visible(&line.name)) }
                    }
                }
            }
            ul.legend {
                @for (at, line) in lines.iter().enumerate() {
                    li {
                        span.swatch style=(format!("background:var(--c{})", at % COLOURS)) {}
                        (visible(&line.name))
                    }
                }
            }
        }
    }
}

fn path(line: &Line, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (at, &(time, value)) in line.points.iter().enumerate() {
        let command = if at == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", x(time), y(value));
    }
    path
}

fn anchor(tick: f64) -> &'static str {
    match tick {
        0.0 => "start",
        1.0 => "end",
        _ => "middle",
    }
}

fn tenths(number: f64) -> String {
    format!("{number:.1}")
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|&top| top >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, top) in [(0.0, 1.0), (0.07, 0.1), (0.11, 0.2), (0.5, 0.5), (3.0, 5.0)] {
            assert!((round_up(value) - top).abs() < 1e-9, "{value}");
        }
    }
}
