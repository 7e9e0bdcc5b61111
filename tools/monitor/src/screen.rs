//! The live table on a terminal: it keeps the lowest lines, and the program's own output scrolls
//! above it.
//!
//! The terminal is told to scroll its upper lines only (DECSTBM), as package managers do for their
//! progress line. Each repaint is one write, so that it does not mix with the program's output.
//! What is in the table is `sapwood-report`'s concern.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use sapwood_command_line::colour::ColourOption;
use sapwood_report::{LiveTable, RoundRecord};

use super::Arguments;
use super::collected::Collected;
use super::live::{Kind, Live, View};

/// The table takes no more lines than this, and no more than half of the terminal.
const LINES_MAX: usize = 20;
/// Below this number of lines a terminal is left to the program.
const TERMINAL_LINES_MIN: u16 = 12;
/// The width of tables that are not for a terminal.
const PLAIN_COLUMNS: usize = 100;
/// Lines of a table above its events.
const HEAD_LINES: usize = 3;

/// Where the live table is shown.
pub(crate) enum Screen {
    /// Nowhere.
    Off,
    /// As plain text, one table after another.
    Plain { colour: bool },
    /// In the lowest lines of the terminal; `region` is what is reserved so far.
    InPlace { region: Option<Region>, colour: bool },
    /// As a view that the user works with.
    Live(Option<Box<Live>>),
}

/// The size of a terminal and how many of its lines the table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    columns: u16,
    rows: u16,
    height: u16,
}

impl Screen {
    /// The screen that suits standard error: a terminal unless it is not wanted, or plain tables if
    /// these are asked for.
    pub(crate) fn choose(arguments: &Arguments, command: &[OsString]) -> Self {
        let (is_wanted, is_forced) = (arguments.shows_rounds(), arguments.live);
        let colour = arguments.colour.is_wanted_on(&std::io::stderr());
        if is_wanted
            && is_forced
            && std::io::stderr().is_terminal()
            && let Ok(live) = Live::open(View::new(title(command), colour))
        {
            return Self::Live(Some(Box::new(live)));
        }
        match (is_wanted, std::io::stderr().is_terminal()) {
            (false, _) => Self::Off,
            (true, true) => Self::InPlace { region: None, colour },
            (true, false) if is_forced => Self::Plain { colour },
            (true, false) => Self::Off,
        }
    }

    /// A view that shows waits first.
    ///
    /// # Errors
    /// The system's, where standard error is no terminal, or none that can be drawn on.
    pub(crate) fn of_waits(command: &[OsString]) -> std::io::Result<Self> {
        if !std::io::stderr().is_terminal() {
            return Err(std::io::Error::other("standard error is none"));
        }
        // The commands that show waits have no option for it.
        let colour = ColourOption::default().is_wanted_on(&std::io::stderr());
        let view = View::new(title(command), colour).with_first(Kind::WaitRanks);
        Ok(Self::Live(Some(Box::new(Live::open(view)?))))
    }

    /// Whether the table is kept on a terminal.
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace { .. } | Self::Live(Some(_)))
    }

    /// The view that the user works with, if there is one.
    pub(crate) fn live(&self) -> Option<&Live> {
        if let Self::Live(live) = self { live.as_deref() } else { None }
    }

    /// Does what the user has pressed; gives whether the view is to be left. The program runs on.
    pub(crate) fn react(&mut self) -> bool {
        if let Self::Live(Some(live)) = self { live.react() } else { false }
    }

    /// Shows what has come. A terminal that cannot be written to is no reason to stop.
    pub(crate) fn show(
        &mut self,
        collected: &Collected,
        elapsed: Duration,
        record: impl FnOnce() -> RoundRecord,
    ) {
        let table = |rows_max| LiveTable {
            round: &collected.round,
            elapsed,
            missing: &collected.missing,
            rows_max,
            before: collected.before.as_ref(),
            waits: collected.waits.as_ref(),
        };
        match self {
            Self::Off => {}
            Self::Live(None) => {}
            Self::Live(Some(live)) => live.show(record()),
            Self::Plain { colour } => {
                put(&(table(usize::MAX).render(PLAIN_COLUMNS, *colour) + "\n"));
            }
            Self::InPlace { region, colour } => {
                let Some((columns, rows)) = size() else { return };
                if rows < TERMINAL_LINES_MIN {
                    return;
                }
                let height_max = LINES_MAX.min(usize::from(rows) / 2);
                let head_lines = HEAD_LINES + usize::from(collected.waits.is_some());
                let text = table(height_max.saturating_sub(head_lines))
                    .render(usize::from(columns), *colour);
                let lines: Vec<&str> = text.lines().take(height_max).collect();
                let height = u16::try_from(lines.len()).unwrap_or(0);
                let before = *region;
                // The table never becomes smaller, so that the program's lines do not jump.
                let kept = before.filter(|old| (old.columns, old.rows) == (columns, rows));
                let height = height.max(kept.map_or(0, |old| old.height));
                let wanted = Region { columns, rows, height };
                put(&paint(before, wanted, &lines));
                *region = Some(wanted);
            }
        }
    }

    /// Gives the terminal back.
    pub(crate) fn close(&mut self) {
        if let Self::Live(live) = self {
            *live = None;
        }
        if let Self::InPlace { region, .. } = self
            && let Some(region) = region.take()
        {
            put(&release(region));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.close();
    }
}

/// What stands above a view.
fn title(command: &[OsString]) -> String {
    command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn size() -> Option<(u16, u16)> {
    let (width, height) = terminal_size::terminal_size_of(std::io::stderr())?;
    Some((width.0, height.0))
}

fn put(text: &str) {
    // A closed standard error leaves no place to say so.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The text that paints lines into a region, which is reserved first unless it is the one before.
fn paint(before: Option<Region>, region: Region, lines: &[&str]) -> String {
    let Region { rows, height, .. } = region;
    let mut text = String::new();
    if before != Some(region) {
        text.push_str(&before.map(release).unwrap_or_default());
        // Lines are pushed up until the reserved ones are free; then the cursor goes above them.
        text.push_str(&"\n".repeat(usize::from(height)));
        let _ = write!(text, "\x1b[{height}A\x1b7\x1b[1;{}r\x1b8", rows - height);
    }
    text.push_str("\x1b7\x1b[?7l");
    for at in 0..height {
        let line = lines.get(usize::from(at)).unwrap_or(&"");
        let _ = write!(text, "\x1b[{};1H\x1b[2K{line}", rows - height + 1 + at);
    }
    text.push_str("\x1b[?7h\x1b8");
    text
}

/// The text that lets all lines scroll again and clears those of the table.
fn release(region: Region) -> String {
    let first = region.rows - region.height + 1;
    format!("\x1b7\x1b[r\x1b[{first};1H\x1b[J\x1b8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_reserved_once_and_painted_in_place() {
        let region = Region { columns: 80, rows: 24, height: 2 };
        let first = paint(None, region, &["a", "b"]);
        assert!(first.starts_with("\n\n\x1b[2A\x1b7\x1b[1;22r\x1b8"), "{first:?}");
        let second = paint(Some(region), region, &["a", "b"]);
        assert_eq!(second, "\x1b7\x1b[?7l\x1b[23;1H\x1b[2Ka\x1b[24;1H\x1b[2Kb\x1b[?7h\x1b8");
        assert!(first.ends_with(&second));
    }

    #[test]
    fn another_size_gives_the_lines_of_the_old_one_back_first() {
        let old = Region { columns: 80, rows: 24, height: 2 };
        let new = Region { height: 3, ..old };
        let text = paint(Some(old), new, &["a"]);
        assert!(text.starts_with("\x1b7\x1b[r\x1b[23;1H\x1b[J\x1b8\n\n\n"), "{text:?}");
    }
}
