//! What is where in the terminal, and what the keys do. It draws into a buffer of cells and reads
//! keys that are decoded already, so that it can be looked at without a terminal.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};
use sapwood_report::{RoundRecord, printable};
use sapwood_terminal::Key;

use super::sheets::{Cell, KINDS, Kind, Line};
use super::waits;

/// Cells of the first column at least, and of the others at most.
const FIRST_COLUMNS_MIN: usize = 14;
const COLUMNS_MAX: usize = 36;
/// Columns between two.
const GAP: usize = 2;
/// Lines that a page up or down goes.
const PAGE_LINES: isize = 10;

const KEYS: [(&str, &str); 10] = [
    ("Tab, 1-6", "events, calls in progress, ranks, classes, waits"),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    ("arrows, j, k", "down or up by a line"),
    ("up or down by a page", "ten lines"),
    ("Home, End", "to the first or the last line"),
    ("left, right", "the round before, the next one (of a replay)"),
    ("space, p", "stop at this round; play (a replay)"),
    ("?", "these keys"),
    ("q, Escape", "leave this view; the program runs on"),
];

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To be drawn anew.
    Redraw,
    /// To go a number of rounds forth, or back if it is negative.
    Step(i64),
    /// To end.
    Quit,
}

/// Which sheets have their names beside their keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    OfAll,
    OfThisOne,
}

/// What is shown, and how.
pub(crate) struct View {
    title: String,
    has_colour: bool,
    kind: usize,
    /// By which column each sheet is sorted, and whether the other way around.
    orders: [(usize, bool); KINDS.len()],
    /// The first line that is shown.
    top: usize,
    has_help: bool,
    /// Of a replay: whether it goes on by itself.
    pub(crate) is_playing: bool,
    /// Of a replay: the round that is shown, from 1, and how many there are.
    pub(crate) at: Option<(usize, usize)>,
}

impl View {
    pub(crate) fn new(title: String, has_colour: bool) -> Self {
        Self {
            title,
            has_colour,
            kind: 0,
            orders: KINDS.map(|kind| (kind.order(), false)),
            top: 0,
            has_help: false,
            is_playing: false,
            at: None,
        }
    }

    /// Whether later rounds are not to be shown.
    pub(crate) fn is_held(&self) -> bool {
        self.at.is_none() && self.is_playing
    }

    /// Does what a key asks.
    pub(crate) fn press(&mut self, key: Key) -> Option<Action> {
        let columns = KINDS[self.kind].columns().len();
        let order = &mut self.orders[self.kind];
        match key {
            Key::Escape if self.has_help => self.has_help = false,
            Key::Letter('q') | Key::Escape => return Some(Action::Quit),
            Key::Letter('?') => self.has_help = !self.has_help,
            Key::Letter('s') => *order = ((order.0 + 1) % columns, false),
            Key::Letter('r') => order.1 = !order.1,
            Key::Letter(' ' | 'p') => self.is_playing = !self.is_playing,
            Key::Tab => self.open((self.kind + 1) % KINDS.len()),
            Key::Letter(digit @ '1'..='6') => self.open(digit as usize - '1' as usize),
            Key::Up | Key::Letter('k') => self.scroll(-1),
            Key::Down | Key::Letter('j') => self.scroll(1),
            Key::PageUp => self.scroll(-PAGE_LINES),
            Key::PageDown => self.scroll(PAGE_LINES),
            Key::Home => self.top = 0,
            Key::End => self.top = usize::MAX,
            Key::Left => return Some(Action::Step(-1)),
            Key::Right => return Some(Action::Step(1)),
            Key::Letter(_) => return None,
        }
        Some(Action::Redraw)
    }

    /// Shows another sheet first.
    pub(crate) fn with_first(mut self, first: Kind) -> Self {
        self.kind = KINDS.iter().position(|&kind| kind == first).unwrap_or(0);
        self
    }

    fn open(&mut self, kind: usize) {
        (self.kind, self.top) = (kind, 0);
    }

    fn scroll(&mut self, lines: isize) {
        self.top = self.top.saturating_add_signed(lines);
    }

    /// Draws everything.
    pub(crate) fn draw(
        &mut self,
        record: Option<&RoundRecord>,
        before: Option<&RoundRecord>,
        buffer: &mut Buffer,
    ) {
        let area = buffer.area;
        let mut page = Page { buffer, line: area.y, end: area.bottom(), width: area.width };
        let Some(record) = record else {
            page.write("sapwood mpi: waiting for the first round", self.bold());
            return;
        };
        page.write(&self.head(record), self.bold());
        if let Some(fact) = facts(record) {
            page.write(&fact, Style::new());
        }
        if let Some(waits) = &record.waits {
            page.write(&waits.line(), Style::new());
        }
        if let Some(line) = waits::dropped(record) {
            page.write(&line, self.coloured(Color::Yellow));
        }
        for line in &record.standstill {
            page.write(&printable(line), self.coloured(Color::Red));
        }
        if self.has_help {
            for (keys, what) in KEYS {
                page.write(&format!("  {keys:<16} {what}"), Style::new());
            }
            return;
        }
        page.end = page.end.saturating_sub(1);
        self.draw_sheet(&mut page, record, before);
        (page.line, page.end) = (area.bottom().saturating_sub(1), area.bottom());
        let long = self.keys_line(Names::OfAll);
        let is_fitting = long.chars().count() <= page.width.into();
        page.write(&if is_fitting { long } else { self.keys_line(Names::OfThisOne) }, self.bold());
    }

    /// The keys of the sheets.
    fn keys_line(&self, names: Names) -> String {
        let name = |(at, kind): (usize, &Kind)| {
            // A number alone would be read as how many there are.
            let key = format!("[{}]", at + 1);
            match at == self.kind {
                true => format!("{key} >{}<", kind.name()),
                false if names == Names::OfAll => format!("{key} {}", kind.name()),
                false => key,
            }
        };
        let names: Vec<String> = KINDS.iter().enumerate().map(name).collect();
        format!("keys: {}  [?] all keys", names.join("  "))
    }

    fn head(&self, record: &RoundRecord) -> String {
        let state = match self.at {
            Some((at, all)) if self.is_playing => format!("   round {at} of {all}, plays"),
            Some((at, all)) => format!("   round {at} of {all}"),
            None if self.is_playing => "   held".to_owned(),
            None => String::new(),
        };
        let missing = if record.missing.is_empty() { "" } else { "   some are missing" };
        format!(
            "{:.1} s   ranks {} of {}{missing}{state}   {}",
            record.elapsed_s,
            if record.covered.is_empty() { "none" } else { &record.covered },
            record.world_size,
            printable(&self.title)
        )
    }

    fn draw_sheet(
        &mut self,
        page: &mut Page<'_>,
        record: &RoundRecord,
        before: Option<&RoundRecord>,
    ) {
        let kind = KINDS[self.kind];
        let (by, is_reversed) = self.orders[self.kind];
        let mut lines = kind.lines(record, before);
        if lines.is_empty() {
            page.write(kind.nothing(), Style::new());
            return;
        }
        lines.sort_by(|one, two| {
            let order = one.cells[by].order(&two.cells[by]);
            if is_reversed { order.reverse() } else { order }
        });
        let room = usize::from(page.end.saturating_sub(page.line)).saturating_sub(1);
        self.top = self.top.min(lines.len().saturating_sub(room));
        let widths = widths(kind, &lines, page.width.into());
        let arrow = if is_reversed { '^' } else { 'v' };
        let heading = |(at, name): (usize, &&str)| {
            Cell::Text(if at == by { format!("{name} {arrow}") } else { (*name).to_owned() })
        };
        let heading: Vec<Cell> = kind.columns().iter().enumerate().map(heading).collect();
        let is_number = |at: usize| matches!(lines[0].cells[at], Cell::Number(..));
        page.write(&joined(&heading, &widths, is_number), self.bold());
        for line in lines.iter().skip(self.top).take(room) {
            let style = if line.is_marked { self.coloured(Color::Yellow) } else { Style::new() };
            page.write(&joined(&line.cells, &widths, is_number), style);
        }
    }

    fn bold(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn coloured(&self, colour: Color) -> Style {
        if self.has_colour { Style::new().fg(colour) } else { self.bold() }
    }
}

/// The lines about time that stand above each sheet.
fn facts(record: &RoundRecord) -> Option<String> {
    let time = record.time.as_ref()?;
    let mut text = format!("MPI {:.1} % of the time", time.mpi_ppm.mean / 1e4);
    if let Some(efficiency) = &time.efficiency {
        text.push_str(&format!(
            "   efficiency: parallel {:.1} %, load balance {:.1} %, communication {:.1} %",
            efficiency.parallel * 100.0,
            efficiency.load_balance * 100.0,
            efficiency.communication * 100.0
        ));
    }
    Some(text)
}

/// How wide columns are; those for which there is no room are left out from the right.
fn widths(kind: Kind, lines: &[Line], width: usize) -> Vec<usize> {
    let column = |at: usize| {
        // An arrow may stand behind a name.
        let name = kind.columns()[at].len() + 2;
        let cells = lines.iter().map(|line| line.cells[at].text().chars().count());
        cells.max().unwrap_or(0).max(name).min(COLUMNS_MAX)
    };
    let mut widths: Vec<usize> = (0..kind.columns().len()).map(column).collect();
    let total = |widths: &[usize]| widths.iter().map(|width| width + GAP).sum::<usize>() - GAP;
    while widths.len() > 1 && total(&widths) > width {
        let over = total(&widths) - width;
        if widths[0].saturating_sub(over) >= FIRST_COLUMNS_MIN {
            widths[0] -= over;
        } else {
            widths.pop();
        }
    }
    widths
}

fn joined(cells: &[Cell], widths: &[usize], is_number: impl Fn(usize) -> bool) -> String {
    let cell = |(at, &width): (usize, &usize)| {
        let text: String = cells[at].text().chars().take(width).collect();
        if is_number(at) { format!("{text:>width$}") } else { format!("{text:<width$}") }
    };
    widths.iter().enumerate().map(cell).collect::<Vec<_>>().join(&" ".repeat(GAP))
}

/// Lines from top to bottom.
struct Page<'a> {
    buffer: &'a mut Buffer,
    line: u16,
    end: u16,
    width: u16,
}

impl Page<'_> {
    /// Writes a line, if there is room for it.
    fn write(&mut self, text: &str, style: Style) {
        if self.line < self.end {
            self.buffer.set_stringn(0, self.line, text, self.width.into(), style);
            self.line += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;
    use sapwood_profile::{Counters, EventKey, RankProfile, Round};
    use sapwood_report::record::Waits;

    use super::*;

    /// A round with events of rising time, of which the last one has a name that a terminal would
    /// obey.
    fn record(events: u64) -> RoundRecord {
        let mut round = Round::new(2);
        for rank in 0..2 {
            let mut profile = RankProfile::new(rank, 2);
            for event in 0..events {
                let name =
                    if event == 0 { "a\u{1b}[2J\n".to_owned() } else { format!("e{event:02}") };
                let counters = Counters { count: 100 - event, time_ns: 1000 * event, bytes: 0 };
                profile.events.insert(EventKey::Region(name), counters);
            }
            round.add(&profile).expect("a new rank");
        }
        RoundRecord::new(3, Duration::from_secs(4), &round, &[])
    }

    fn drawn(view: &mut View, record: &RoundRecord, size: (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a backend");
        terminal.draw(|frame| view.draw(Some(record), None, frame.buffer_mut())).expect("it draws");
        let buffer = terminal.backend().buffer();
        let line = |y: u16| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..size.1).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn names(lines: &[String]) -> Vec<&str> {
        lines.iter().filter(|line| line.starts_with('e')).map(|line| &line[..3]).skip(1).collect()
    }

    #[test]
    fn the_lines_scroll_and_stop_at_the_last_one() {
        let (mut view, record) = (View::new("run".into(), false), record(20));
        let lines = drawn(&mut view, &record, (100, 10));
        assert!(lines[0].starts_with("4.0 s   ranks 0-1 of 2"), "{lines:?}");
        assert_eq!(names(&lines)[..2], ["e19", "e18"]);
        view.press(Key::Down);
        assert_eq!(names(&drawn(&mut view, &record, (100, 10)))[0], "e18");
        view.press(Key::End);
        let lines = drawn(&mut view, &record, (100, 10));
        assert_eq!(names(&lines).last(), Some(&"e01"));
        // The last line of all has another name.
        view.press(Key::Up);
        view.press(Key::Up);
        assert_eq!(names(&drawn(&mut view, &record, (100, 10))).last(), Some(&"e02"));
    }

    #[test]
    fn events_that_were_lost_are_told_in_one_line_on_every_sheet() {
        let (mut view, mut record) = (View::new("run".into(), false), record(5));
        let told = |view: &mut View, record: &RoundRecord| {
            let lines = drawn(view, record, (130, 12));
            lines.iter().filter(|line| line.starts_with("dropped: ")).count()
        };
        record.waits = Some(Waits { events: 9, ..Waits::default() });
        assert_eq!(told(&mut view, &record), 0);
        record.waits = Some(Waits { events: 9, dropped: 1, ..Waits::default() });
        for _ in KINDS {
            assert_eq!(told(&mut view, &record), 1);
            view.press(Key::Tab);
        }
    }

    #[test]
    fn columns_are_sorted_both_ways_and_names_are_not_obeyed() {
        let (mut view, record) = (View::new("run".into(), false), record(5));
        // Behind the mean time follow the others, and the name after the last.
        for _ in 0..5 {
            view.press(Key::Letter('s'));
        }
        let lines = drawn(&mut view, &record, (100, 12));
        assert!(lines.iter().any(|line| line.starts_with("event v")), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("a\u{fffd}[2J\u{fffd}")), "{lines:?}");
        assert_eq!(names(&lines), ["e01", "e02", "e03", "e04"]);
        view.press(Key::Letter('r'));
        assert_eq!(names(&drawn(&mut view, &record, (100, 12))), ["e04", "e03", "e02", "e01"]);
    }

    #[test]
    fn a_key_lists_the_keys_and_a_small_terminal_keeps_the_names() {
        let (mut view, record) = (View::new("run".into(), false), record(5));
        assert!(drawn(&mut view, &record, (30, 8)).iter().any(|line| line.starts_with("e04")));
        view.press(Key::Letter('?'));
        let lines = drawn(&mut view, &record, (80, 20));
        for (keys, what) in KEYS {
            assert!(lines.iter().any(|line| line.contains(keys) && line.contains(what)), "{keys}");
        }
        view.press(Key::Escape);
        assert_eq!(view.press(Key::Letter('q')), Some(Action::Quit));
        for kind in 0..KINDS.len() {
            view.press(Key::Tab);
            let at = (kind + 1) % KINDS.len();
            let wanted = format!("[{}] >{}<", at + 1, KINDS[at].name());
            let lines = drawn(&mut view, &record, (100, 12));
            assert!(lines.last().is_some_and(|line| line.contains(&wanted)), "{lines:?}");
        }
    }
}
