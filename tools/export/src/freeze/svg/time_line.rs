//! The time line: a row for each thread of each rank, with its calls as bars.

use maud::{Markup, html};
use sapwood_report::freeze::Freeze;
use sapwood_report::quantity::time;

use super::{LEFT, MARGIN, Part, RIGHT, number};
use crate::event_names::visible;
use crate::freeze::slices::{Slice, Track, slices};

/// Height of a row and of the bars in it.
const ROW: f64 = 24.0;
const BAR: f64 = 16.0;
/// Above the first row and below the last one.
const TOP: f64 = 44.0;
const BOTTOM: f64 = 26.0;
/// Threads that are drawn, at most; those of the lowest ranks.
const ROWS_MAX: usize = 64;
/// With more calls than this, each place of a row shows what took most of its time.
const TEXTS_MAX: usize = 4_000;
/// With more collectives than this, the calls that others wait for are not marked.
const MARKS_MAX: usize = 200;
/// A bar that is narrower is drawn this wide.
const NARROWEST: f64 = 0.4;
/// Places of a row, where it has too many calls to be drawn one by one.
const PLACES: usize = 1060;
/// What a call is drawn as.
const CLASSES: [&str; 4] = ["wait", "work", "message", "other"];

/// How time is spread over the width.
struct Scale {
    begin: i64,
    /// What is drawn; a wait that lasts much longer than the window goes beyond.
    end: i64,
}

impl Scale {
    fn of(freeze: &Freeze) -> Self {
        let returned = freeze.events.iter().filter(|event| !event.is_open);
        let last = returned.map(|event| event.end_ns).max().unwrap_or(freeze.end_ns);
        // Of the time before the first call nothing is known, or there was none.
        let first = freeze.events.first().map_or(freeze.begin_ns, |event| event.begin_ns);
        let begin = freeze.begin_ns.max(first);
        let last = last.max(begin);
        let calls = last.saturating_sub(begin);
        let is_open = freeze.events.iter().any(|event| event.is_open);
        let tail = if is_open { calls.max(1_000_000) } else { 0 };
        let end = freeze.end_ns.min(last.saturating_add(tail));
        Self { begin, end: end.max(begin + 1) }
    }

    fn x(&self, time: i64) -> f64 {
        let inside = time.clamp(self.begin, self.end).saturating_sub(self.begin);
        LEFT + (RIGHT - LEFT) * inside as f64 / (self.end - self.begin) as f64
    }
}

/// A piece of a row.
struct Bar {
    class: &'static str,
    from: f64,
    to: f64,
    text: String,
    is_open: bool,
}

pub(super) fn part(freeze: &Freeze) -> Part {
    let scale = Scale::of(freeze);
    let tracks = slices(freeze);
    let shown: Vec<(&Track, &Vec<Slice<'_>>)> = tracks.iter().take(ROWS_MAX).collect();
    let calls: usize = shown.iter().map(|(_, slices)| slices.len()).sum();
    let bottom = TOP + shown.len() as f64 * ROW;
    let left_out = tracks.len() - shown.len();
    let markup = html! {
        text.heading x=(MARGIN) y="12" { "Time line" }
        @if calls > TEXTS_MAX {
            text.faint.small x=(LEFT) y=(TOP - 12.0) {
                "too many calls to be drawn one by one: each place shows what took most of its time"
            }
        }
        (legend())
        (axis(freeze, &scale, bottom))
        @for (at, (track, slices)) in shown.iter().enumerate() {
            @let top = TOP + at as f64 * ROW;
            text x=(MARGIN) y=(number(top + 16.0)) { (name(**track)) }
            @let known = known_from(freeze, **track, slices, &scale);
            rect.outside x=(number(known)) y=(number(top + 4.0)) width=(number(RIGHT - known))
                height=(BAR) {}
            @if calls > TEXTS_MAX {
                @let open = slices.iter().rposition(|one| !one.event.is_open).map_or(0, |at| at + 1);
                @for bar in places(&slices[..open], &scale) { (drawn(&bar, top + 4.0)) }
                @for bar in bars(freeze, &slices[open..], &scale) { (drawn(&bar, top + 4.0)) }
            } @else {
                @for bar in bars(freeze, slices, &scale) { (drawn(&bar, top + 4.0)) }
            }
        }
        (marks(freeze, &shown, &scale))
        @if left_out > 0 {
            text.warn x=(LEFT) y=(number(bottom + 38.0)) {
                "not drawn: " (left_out) " more threads of higher ranks"
            }
        }
    };
    Part { markup, height: bottom + BOTTOM + if left_out > 0 { 14.0 } else { 0.0 } }
}

fn name((rank, thread): Track) -> String {
    if thread == 0 { format!("rank {rank}") } else { format!("rank {rank}, thread {thread}") }
}

fn legend() -> Markup {
    let entries = [
        ("wait", "waits for another rank"),
        ("work", "collective, all ranks arrived or unknown"),
        ("message", "message"),
        ("other", "other call"),
        ("outside", "outside of recorded calls"),
    ];
    html! {
        @for (at, (class, text)) in entries.iter().enumerate() {
            @let x = LEFT + [0.0, 160.0, 435.0, 510.0, 602.0][at];
            rect class=(class) x=(number(x)) y="3" width="12" height="10" {}
            text.faint x=(number(x + 17.0)) y="12" { (text) }
        }
        path.last d=(format!("M{:.1} 3h8l-4 8z", LEFT + 787.0)) {}
        text.faint x=(number(LEFT + 800.0)) y="12" { "others wait for it" }
        rect.wait.open x=(number(LEFT + 914.0)) y="3" width="12" height="10" {}
        text.faint x=(number(LEFT + 931.0)) y="12" { "has not returned" }
    }
}

/// Lines at round times, as seconds before the last moment that is drawn.
fn axis(freeze: &Freeze, scale: &Scale, bottom: f64) -> Markup {
    let span = (scale.end - scale.begin) as f64 / 1e9;
    let step = step(span);
    let steps = (span / step).floor() as usize;
    let tick = |number: usize| scale.begin + (number as f64 * step * 1e9) as i64;
    let is_open = freeze.events.iter().any(|event| event.is_open);
    let beyond = if is_open { freeze.end_ns.saturating_sub(scale.end) } else { 0 };
    html! {
        @for number_of in 0..=steps {
            @let x = number(scale.x(tick(number_of)));
            line.grid x1=(x) x2=(x) y1=(TOP - 4.0) y2=(number(bottom + 4.0)) {}
            text.faint.small x=(x) y=(number(bottom + 16.0)) text-anchor="middle" {
                (label(number_of as f64 * step, step))
            }
        }
        @if beyond > 0 {
            line.break x1=(RIGHT) x2=(RIGHT) y1=(TOP - 8.0) y2=(number(bottom + 6.0)) {}
            text.warn.small x=(RIGHT) y=(TOP - 12.0) text-anchor="end" {
                "calls that are open here go on for " (time(beyond as f64))
            }
        }
    }
}

/// A round number of seconds, of which some ten make the span.
fn step(span: f64) -> f64 {
    let rough = (span / 10.0).max(1e-9);
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

fn label(seconds: f64, step: f64) -> String {
    let (unit, scale) = match step {
        step if step >= 0.1 => ("s", 1.0),
        step if step >= 1e-4 => ("ms", 1e3),
        _ => ("us", 1e6),
    };
    let decimals = if step * scale >= 1.0 { 0 } else { 1 };
    format!("{:.decimals$} {unit}", seconds * scale)
}

/// Where a row begins: before the first call of a thread that has lost some, nothing is known.
fn known_from(freeze: &Freeze, track: Track, slices: &[Slice<'_>], scale: &Scale) -> f64 {
    let process = freeze.processes.iter().find(|process| process.rank == track.0);
    let threads = process.map(|process| &process.threads[..]).unwrap_or_default();
    let thread = threads.iter().find(|thread| thread.thread == track.1);
    match (thread, slices.first()) {
        (Some(thread), Some(first)) if thread.dropped + thread.left_out > 0 => scale.x(first.begin),
        _ => LEFT,
    }
}

/// What a call is drawn as while it does not wait.
fn class(slice: &Slice<'_>) -> &'static str {
    match slice.event.kind.as_str() {
        "other" => "other",
        kind if kind.starts_with("collective") => "work",
        _ => "message",
    }
}

/// The bars of a row.
fn bars(freeze: &Freeze, slices: &[Slice<'_>], scale: &Scale) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for slice in slices {
        let text = told(freeze, slice);
        let mut add = |class, from, to| {
            let (from, to) = (scale.x(from), scale.x(to));
            bars.push(Bar { class, from, to, text: text.clone(), is_open: slice.event.is_open });
        };
        if slice.waited > slice.begin {
            add("wait", slice.begin, slice.waited);
        }
        if slice.end > slice.waited || slice.waited == slice.begin {
            add(class(slice), slice.waited, slice.end);
        }
    }
    bars
}

/// The same of a row with very many calls: each place of it has the class that took most of its
/// time, and none where that was outside of calls.
fn places(slices: &[Slice<'_>], scale: &Scale) -> Vec<Bar> {
    let width = (RIGHT - LEFT) / PLACES as f64;
    let mut times = vec![[0.0_f64; CLASSES.len()]; PLACES];
    let mut spread = |class: &str, from: f64, to: f64| {
        let number = CLASSES.iter().position(|one| *one == class).unwrap_or(0);
        let first = ((from - LEFT) / width).floor().max(0.0) as usize;
        for (at, place) in times.iter_mut().enumerate().skip(first) {
            let begin = LEFT + at as f64 * width;
            if begin >= to {
                break;
            }
            place[number] += (to.min(begin + width) - from.max(begin)).max(0.0);
        }
    };
    for slice in slices {
        spread("wait", scale.x(slice.begin), scale.x(slice.waited));
        spread(class(slice), scale.x(slice.waited), scale.x(slice.end));
    }
    let mut bars: Vec<Bar> = Vec::new();
    for (at, place) in times.iter().enumerate() {
        let most = (0..CLASSES.len()).max_by(|a, b| place[*a].total_cmp(&place[*b])).unwrap_or(0);
        let outside = width - place.iter().sum::<f64>();
        if place[most] <= 0.0 || place[most] < outside {
            continue;
        }
        let (from, class) = (LEFT + at as f64 * width, CLASSES[most]);
        let is_next = |last: &&mut Bar| last.class == class && from - last.to < width / 2.0;
        match bars.last_mut().filter(is_next) {
            Some(last) => last.to = from + width,
            None => bars.push(Bar {
                class,
                from,
                to: from + width,
                text: String::new(),
                is_open: false,
            }),
        }
    }
    bars
}

fn told(freeze: &Freeze, slice: &Slice<'_>) -> String {
    let event = slice.event;
    let mut text = event.function.clone();
    if let Some(sequence) = event.sequence {
        text += &format!(" number {sequence}");
    }
    let communicator = freeze.communicator_of(event);
    if !communicator.is_empty() {
        text += &format!(" on {}", visible(communicator));
    }
    text += &format!(", {}", time((slice.end - slice.begin) as f64));
    if slice.waited > slice.begin {
        text += &format!(", waited {}", time((slice.waited - slice.begin) as f64));
    }
    text
}

fn drawn(bar: &Bar, top: f64) -> Markup {
    let class = if bar.is_open { format!("{} open", bar.class) } else { bar.class.to_owned() };
    html! {
        rect class=(class) x=(format!("{:.2}", bar.from)) y=(number(top))
            width=(format!("{:.2}", (bar.to - bar.from).max(NARROWEST))) height=(BAR) {
            @if !bar.text.is_empty() { title { (bar.text) } }
        }
    }
}

/// A mark above the calls for which others have waited.
fn marks(freeze: &Freeze, shown: &[(&Track, &Vec<Slice<'_>>)], scale: &Scale) -> Markup {
    let late = freeze.collectives.iter().filter(|one| one.is_late);
    let last: Vec<usize> = late.filter_map(|one| one.last).collect();
    let last = if last.len() > MARKS_MAX { &[] } else { &last[..] };
    let place = |at: usize| {
        let event = &freeze.events[at];
        let row = shown.iter().position(|(track, _)| **track == (event.rank, event.thread))?;
        Some((scale.x(event.begin_ns), TOP + row as f64 * ROW))
    };
    html! {
        @for (x, y) in last.iter().filter_map(|&at| place(at)) {
            path.last d=(format!("M{:.1} {:.1}h6l-3 6z", x - 3.0, y - 1.0)) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freeze::slices::tests::freeze;

    #[test]
    fn a_wait_that_lasts_much_longer_than_the_window_goes_beyond_the_picture() {
        let mut freeze = freeze();
        freeze.end_ns = 3_600_000_000_000;
        let picture = part(&freeze).markup.into_string();
        assert!(picture.contains("go on for 3600 s"), "{picture}");
        assert_eq!(Scale::of(&freeze).x(freeze.end_ns), RIGHT);
    }

    #[test]
    fn marks_of_the_axis_are_round() {
        assert_eq!([step(10.0), step(3.0), step(0.004)], [1.0, 0.5, 0.0005]);
        assert_eq!((label(1.5, 0.5), label(0.0015, 0.0005)), ("1.5 s".into(), "1.5 ms".into()));
    }

    #[test]
    fn of_many_calls_a_place_shows_what_took_most_of_its_time() {
        let freeze = freeze();
        let tracks = slices(&freeze);
        let scale = Scale::of(&freeze);
        let classes = |bars: &[Bar]| bars.iter().map(|bar| bar.class).collect::<Vec<_>>();
        let one_by_one = bars(&freeze, &tracks[&(0, 0)], &scale);
        assert_eq!(classes(&one_by_one), ["wait", "work", "wait"]);
        let together = places(&tracks[&(0, 0)], &scale);
        assert_eq!(classes(&together), ["wait", "work", "wait"]);
        assert!((together[0].to - one_by_one[0].to).abs() <= 1.0);
    }

    #[test]
    fn before_the_first_call_of_a_thread_that_lost_some_nothing_is_drawn() {
        let mut freeze = freeze();
        let known = |freeze: &Freeze| {
            let tracks = slices(freeze);
            known_from(freeze, (1, 0), &tracks[&(1, 0)], &Scale::of(freeze))
        };
        assert_eq!(known(&freeze), LEFT);
        freeze.processes[1].threads[0].dropped = 1;
        assert!(known(&freeze) > LEFT);
    }
}
