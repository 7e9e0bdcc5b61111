//! The view on a terminal: what is where, and what the keys do.
//!
//! It draws into a buffer of cells and reads keys that are decoded already, so that it can be
//! looked at without a terminal. The terminal itself is `sapwood-terminal`'s matter.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

use super::metric::{METRICS, TABLE, Unit};
use super::rows::{HEADINGS, Order, absent, bars, bins, cells, summary, worst};
use super::sample::Sample;
use sapwood::HistogramBin;
use sapwood_terminal::Key;

/// Columns of a metric's name, of a cell, of the histogram beside it.
const NAME_COLUMNS: u16 = 21;
const CELL_COLUMNS: u16 = 11;
const BAR_COLUMNS: u16 = 10;
/// Which cells are left where there is no room for all: the least wanted first.
const CELLS_TO_DROP: [usize; 7] = [4, 2, 1, 5, 3, 0, 6];
/// Lines about hosts that are missing and metrics that are absent.
const NOTES_MAX: usize = 6;
/// Lines about one metric below the table: its worst hosts and its histogram.
const DETAIL_LINES: u16 = 8;
/// A terminal of fewer lines has no such part.
const DETAIL_TERMINAL_LINES_MIN: u16 = 20;
/// From these shares on a row has a colour.
const MARKED: [(f64, Color); 2] = [(0.9, Color::Red), (0.7, Color::Yellow)];

/// What the keys do.
const KEYS: [(&str, &str); 6] = [
    ("up/down k/j", "the metric before or behind"),
    ("page up/down", "ten further; home and end: the first and the last"),
    ("s", "sort by another column"),
    ("p", "stop; again: go on"),
    ("?", "these keys"),
    ("q", "quit"),
];

/// What a key asks of the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To be drawn anew.
    Redraw,
    /// To end.
    Quit,
}

/// What is shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The metric that is looked at, by its place in the table.
    chosen: usize,
    order: Order,
    is_paused: bool,
    has_keys: bool,
    has_colour: bool,
    interval: String,
}

impl View {
    pub(crate) fn new(chosen: usize, interval: String, has_colour: bool) -> Self {
        let order = Order::default();
        Self { chosen, order, is_paused: false, has_keys: false, has_colour, interval }
    }

    /// Whether new samples are not to be shown.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Does what a key asks.
    pub(crate) fn press(&mut self, key: Key, sample: Option<&Sample>) -> Option<Action> {
        match key {
            Key::Letter('q') | Key::Escape => return Some(Action::Quit),
            Key::Letter('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Letter('?') => self.has_keys = !self.has_keys,
            Key::Letter('s') => self.order = self.order.next(),
            Key::Up | Key::Letter('k') => self.choose(sample, -1),
            Key::Down | Key::Letter('j') => self.choose(sample, 1),
            Key::PageUp => self.choose(sample, -10),
            Key::PageDown => self.choose(sample, 10),
            Key::Home => self.choose(sample, -(METRICS as isize)),
            Key::End => self.choose(sample, METRICS as isize),
            _ => return None,
        }
        Some(Action::Redraw)
    }

    fn choose(&mut self, sample: Option<&Sample>, steps: isize) {
        let places = self.places(sample);
        let at = places.iter().position(|&place| place == self.chosen).unwrap_or(0);
        let at = at.saturating_add_signed(steps).min(METRICS - 1);
        self.chosen = places[at];
    }

    fn places(&self, sample: Option<&Sample>) -> Vec<usize> {
        sample.map_or_else(|| (0..METRICS).collect(), |sample| self.order.places(sample))
    }

    /// Draws everything.
    pub(crate) fn draw(&self, sample: Option<&Sample>, buffer: &mut Buffer) {
        let area = buffer.area;
        let mut page = Page { buffer, line: area.y, end: area.bottom(), width: area.width };
        let state = if self.is_paused { "  stopped" } else { "" };
        let Some(sample) = sample else {
            page.write("sapwood top: waiting for the first values", self.bold());
            return;
        };
        let said = summary(sample);
        let mut notes = said.lines();
        let head = notes.next().unwrap_or_default();
        page.write(
            &format!(
                "sapwood top: {head}, every {}, by {}{state}",
                self.interval,
                self.order.name()
            ),
            self.bold(),
        );
        let absent = absent(sample);
        let notes: Vec<&str> = notes.chain(absent.iter().map(String::as_str)).collect();
        for note in notes.iter().take(NOTES_MAX) {
            let colour = if note.starts_with("missing") { Color::Red } else { Color::Yellow };
            page.write(note, self.coloured(colour));
        }
        if self.has_keys {
            for (keys, what) in KEYS {
                page.write(&format!("  {keys:<16} {what}"), Style::default());
            }
            return;
        }
        page.end = page.end.saturating_sub(1);
        let has_detail = area.height >= DETAIL_TERMINAL_LINES_MIN;
        let detail = if has_detail { DETAIL_LINES } else { 0 };
        let bottom = page.end;
        page.end = page.end.saturating_sub(detail);
        self.draw_metrics(&mut page, sample);
        if has_detail {
            (page.line, page.end) = (bottom - detail, bottom);
            self.draw_chosen(&mut page, sample);
        }
        (page.line, page.end) = (bottom, bottom + 1);
        page.write("up/down metric  s sort  p stop  ? keys  q quit", self.dim());
    }

    /// The metrics in their order, scrolled so far that the chosen one is seen.
    fn draw_metrics(&self, page: &mut Page<'_>, sample: &Sample) {
        let shown = shown_cells(page.width);
        let heading = |texts: &[String; 7]| -> String {
            shown.iter().map(|&at| format!("{:>11}", texts[at])).collect()
        };
        let names = HEADINGS.map(str::to_string);
        page.write(&row("metric", &heading(&names), "hosts", "worst"), self.reverse());
        let places = self.order.places(sample);
        let mut room = usize::from(page.end.saturating_sub(page.line));
        let is_cut = places.len() > room && room > 1;
        room -= usize::from(is_cut);
        let at = places.iter().position(|&place| place == self.chosen).unwrap_or(0);
        let first = (at + 1).saturating_sub(room);
        for &place in places.iter().skip(first).take(room) {
            let column = &sample.table.columns()[place];
            let bars = bars(&bins(place, column), usize::from(BAR_COLUMNS));
            let host = column.worst.first().map_or("", |&(_, rank)| sample.host(rank));
            let text = row(TABLE[place].name, &heading(&cells(place, column)), &bars, host);
            let mean = column.moments.mean;
            let mark = MARKED.iter().find(|(share, _)| {
                TABLE[place].unit == Unit::Ratio && column.moments.count > 0 && mean >= *share
            });
            let style = match mark {
                _ if place == self.chosen => self.reverse(),
                Some((_, colour)) => self.coloured(*colour),
                None => Style::default(),
            };
            page.write(&text, style);
        }
        if is_cut {
            page.write(&format!("{} more metrics", places.len() - room), self.dim());
        }
    }

    /// The worst hosts of the chosen metric on the left, its histogram on the right.
    fn draw_chosen(&self, page: &mut Page<'_>, sample: &Sample) {
        let metric = &TABLE[self.chosen];
        page.write(&format!("{}: {}", metric.name, metric.help), self.bold());
        let half = page.width / 2;
        let column = &sample.table.columns()[self.chosen];
        let room = usize::from(page.end.saturating_sub(page.line));
        let bins = merged(&bins(self.chosen, column), room);
        let highest = bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(1);
        let top = page.line;
        for (host, value) in worst(self.chosen, sample).into_iter().take(room) {
            page.write_at(0, half, &format!("{host:<24} {value:>11}"), Style::default());
        }
        page.line = top;
        for HistogramBin { low, high, count } in bins {
            let bar = usize::from(half.saturating_sub(36)) * count as usize / highest as usize;
            let text = format!(
                "{:>11} - {:<11} {:<bar$} {count}",
                metric.show(low),
                metric.show(high),
                "█".repeat(bar),
            );
            page.write_at(half, half, &text, Style::default());
        }
    }

    fn bold(&self) -> Style {
        Style::default().add_modifier(Modifier::BOLD)
    }

    fn dim(&self) -> Style {
        Style::default().add_modifier(Modifier::DIM)
    }

    fn reverse(&self) -> Style {
        Style::default().add_modifier(Modifier::REVERSED)
    }

    fn coloured(&self, colour: Color) -> Style {
        if self.has_colour { Style::default().fg(colour) } else { Style::default() }
    }
}

fn row(name: &str, cells: &str, bars: &str, host: &str) -> String {
    let (names, columns) = (usize::from(NAME_COLUMNS), usize::from(BAR_COLUMNS));
    format!("{name:<names$}{cells}  {bars:<columns$}  {host}")
}

/// Which cells fit beside name, histogram and a host's name.
fn shown_cells(width: u16) -> Vec<usize> {
    let room = width.saturating_sub(NAME_COLUMNS + BAR_COLUMNS + 16) / CELL_COLUMNS;
    let dropped = CELLS_TO_DROP.len().saturating_sub(usize::from(room));
    let dropped = &CELLS_TO_DROP[..dropped];
    (0..HEADINGS.len()).filter(|at| !dropped.contains(at)).collect()
}

/// Bins in at most `lines` lines: neighbours become one.
fn merged(bins: &[HistogramBin], lines: usize) -> Vec<HistogramBin> {
    let group = bins.len().div_ceil(lines.max(1)).max(1);
    let one = |bins: &[HistogramBin]| {
        let count = bins.iter().map(|bin| bin.count).sum();
        HistogramBin { low: bins[0].low, high: bins[bins.len() - 1].high, count }
    };
    bins.chunks(group).map(one).collect()
}

/// Lines that are written one below another, as long as there is room.
struct Page<'a> {
    buffer: &'a mut Buffer,
    line: u16,
    end: u16,
    width: u16,
}

impl Page<'_> {
    /// A whole line: its style goes to the edge.
    fn write(&mut self, text: &str, style: Style) {
        let width = usize::from(self.width);
        self.write_at(0, self.width, &format!("{text:<width$}"), style);
    }

    fn write_at(&mut self, left: u16, width: u16, text: &str, style: Style) {
        if self.line < self.end {
            self.buffer.set_stringn(left, self.line, text, usize::from(width), style);
            self.line += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;

    use super::*;
    use crate::metric::place;
    use crate::sample::tests::sample_of;

    fn drawn(view: &View, sample: Option<&Sample>, size: [u16; 2]) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(size[0], size[1])).expect("a backend");
        terminal.draw(|frame| view.draw(sample, frame.buffer_mut())).expect("it draws");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..size[0]).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..size[1]).map(|y| line(y).trim_end().to_string()).collect()
    }

    fn view() -> View {
        View::new(place("load.1").expect("a metric"), "1 s".to_string(), true)
    }

    #[test]
    fn the_view_has_hosts_metrics_the_chosen_one_and_the_keys() {
        let sample = sample_of(&[0, 1, 2]);
        let lines = drawn(&view(), Some(&sample), [120, 50]);
        assert!(lines[0].starts_with("sapwood top: 3 of 4 hosts in "), "{}", lines[0]);
        assert_eq!(lines[1], "missing: n3 (1): no answer within 500 ms");
        assert!(lines[2].starts_with("metric ") && lines[2].contains("deviation"), "{}", lines[2]);
        assert!(lines[3].starts_with("cpu.busy ") && lines[3].ends_with("  n2"), "{}", lines[3]);
        assert!(lines.iter().any(|line| line.starts_with("uptime ")), "all have room");
        let at =
            lines.iter().position(|line| line.starts_with("load.1: Load average")).expect("it");
        assert!(
            lines[at + 1].starts_with("n2 ") && lines[at + 1].contains('█'),
            "{}",
            lines[at + 1]
        );
        assert_eq!(lines[49], "up/down metric  s sort  p stop  ? keys  q quit");
    }

    #[test]
    fn the_chosen_metric_is_always_seen_however_small_the_terminal_is() {
        let sample = sample_of(&[0, 1, 2]);
        let mut view = view();
        for _ in 0..METRICS {
            view.press(Key::Down, Some(&sample));
        }
        for size in [[80, 24], [40, 8], [200, 60]] {
            let lines = drawn(&view, Some(&sample), size);
            assert!(lines.iter().any(|line| line.starts_with("uptime ")), "{size:?} {lines:?}");
        }
        for size in [[1, 1], [3, 2], [80, 1], [5, 30]] {
            drawn(&view, Some(&sample), size);
            drawn(&view, None, size);
        }
    }

    #[test]
    fn keys_choose_sort_stop_and_quit() {
        let sample = sample_of(&[0, 1]);
        let mut view = View::new(0, "1 s".to_string(), true);
        assert_eq!(view.press(Key::Up, Some(&sample)), Some(Action::Redraw));
        assert_eq!(view.chosen, 0);
        view.press(Key::Letter('j'), Some(&sample));
        assert_eq!(view.chosen, 1);
        view.press(Key::Letter('s'), Some(&sample));
        assert!(drawn(&view, Some(&sample), [120, 30])[0].contains("by spread"));
        view.press(Key::Letter('s'), Some(&sample));
        view.press(Key::Home, Some(&sample));
        assert_eq!(TABLE[view.chosen].name, "cpu.busy");
        view.press(Key::Letter('?'), None);
        let keys = drawn(&view, Some(&sample), [120, 30]);
        assert!(keys.iter().any(|line| line.trim_start().starts_with("s  ")), "{keys:?}");
        view.press(Key::Letter('?'), None);
        let lines = drawn(&view, Some(&sample), [120, 30]);
        let rows = TABLE
            .iter()
            .filter(|one| lines.iter().any(|line| line.starts_with(&format!("{} ", one.name))));
        let more = format!("{} more metrics", METRICS - rows.count());
        assert!(lines.contains(&more), "{more}: {lines:?}");
        view.press(Key::Letter('p'), None);
        assert!(view.is_paused());
        assert_eq!(view.press(Key::Letter('x'), None), None);
        assert_eq!(view.press(Key::Letter('q'), None), Some(Action::Quit));
    }

    #[test]
    fn without_colour_no_cell_has_one() {
        let sample = sample_of(&[0, 1]);
        for (has_colour, expected) in [(true, true), (false, false)] {
            let view = View::new(0, "1 s".to_string(), has_colour);
            let mut terminal = Terminal::new(TestBackend::new(100, 30)).expect("a backend");
            terminal.draw(|frame| view.draw(Some(&sample), frame.buffer_mut())).expect("it draws");
            let buffer = terminal.backend().buffer();
            let colours = buffer.content.iter().any(|cell| cell.fg != Color::Reset);
            assert_eq!(colours, expected);
        }
    }

    #[test]
    fn a_narrow_terminal_keeps_the_cells_that_matter_most() {
        let names =
            |width| shown_cells(width).into_iter().map(|at| HEADINGS[at]).collect::<Vec<_>>();
        assert_eq!(names(140), HEADINGS);
        assert_eq!(names(80), ["mean", "p50", "max"]);
        assert_eq!(names(60), ["max"]);
        assert!(names(10).is_empty());
    }
}
