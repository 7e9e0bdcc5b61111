//! Aligned text: columns that fit a width, and colour only where it is asked for.

/// To which side a column's cells are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Rows of cells under named columns, of which the first is the one that may be cut.
#[derive(Debug)]
pub(crate) struct Grid {
    first_columns_min: usize,
    columns: Vec<(&'static str, Side)>,
    given_up: Vec<&'static str>,
    rows: Vec<GridRow>,
}

/// One row.
#[derive(Debug)]
struct GridRow {
    cells: Vec<String>,
    mark: Mark,
}

/// Whether colour sets a row off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Plain,
    SetOff,
}

/// Between two columns.
const GAP: &str = "  ";

impl Grid {
    /// A grid whose first column is cut to no less than this number of columns of the terminal.
    pub(crate) fn new(first_columns_min: usize) -> Self {
        Self { first_columns_min, columns: Vec::new(), given_up: Vec::new(), rows: Vec::new() }
    }

    pub(crate) fn column(&mut self, name: &'static str, side: Side) {
        self.columns.push((name, side));
    }

    /// The columns that are left out when the width is too small, in this order.
    pub(crate) fn give_up(&mut self, names: &[&'static str]) {
        self.given_up = names.to_vec();
    }

    /// Adds a row of one cell per column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(GridRow { cells, mark: Mark::Plain });
    }

    /// Adds a row that colour sets off.
    pub(crate) fn marked_row(&mut self, cells: Vec<String>) {
        self.rows.push(GridRow { cells, mark: Mark::SetOff });
    }

    /// The lines as [`Grid::render`] has them, of any width.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.render(usize::MAX, Paint::PLAIN).lines().map(str::to_owned).collect()
    }

    /// The lines of the grid, with a line of the columns' names above.
    pub(crate) fn render(&self, width: usize, paint: Paint) -> String {
        let widths = self.widths();
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut given_up = self.given_up.iter();
        let others = |shown: &[usize]| -> usize {
            shown.iter().skip(1).map(|&at| widths[at] + GAP.len()).sum()
        };
        let first_min = self.first_columns_min.min(widths[0]);
        while others(&shown) + first_min > width {
            let Some(name) = given_up.next() else { break };
            shown.retain(|&at| self.columns[at].0 != *name);
        }
        let room = width.saturating_sub(others(&shown)).max(first_min);
        let mut widths = widths;
        widths[0] = widths[0].min(room);

        let names: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_string()).collect();
        let mut text = paint.bold(&self.line(&names, &shown, &widths)) + "\n";
        for row in &self.rows {
            let line = self.line(&row.cells, &shown, &widths);
            text.push_str(&match row.mark {
                Mark::SetOff => paint.yellow(&line),
                Mark::Plain => line,
            });
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let width = |at: usize, name: &str| {
            let cells = self.rows.iter().map(|row| row.cells[at].chars().count());
            cells.chain([name.chars().count()]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(|(at, (name, _))| width(at, name)).collect()
    }

    fn line(&self, cells: &[String], shown: &[usize], widths: &[usize]) -> String {
        let mut line = String::new();
        for &at in shown {
            if at > 0 {
                line.push_str(GAP);
            }
            let (cell, width) = (cut(&cells[at], widths[at]), widths[at]);
            line.push_str(&match self.columns[at].1 {
                Side::Left => format!("{cell:<width$}"),
                Side::Right => format!("{cell:>width$}"),
            });
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The text in at most `width` characters, of which the last is a tilde if more was there.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('~');
    short
}

/// The text in lines of at most `width` characters, broken at spaces where there are any.
pub(crate) fn wrapped(text: &str, width: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let line = rest?;
        let Some((end, _)) = line.char_indices().nth(width.max(1)) else {
            rest = None;
            return Some(line);
        };
        // A line that begins with its only space would never end.
        let next_is_space = line[end..].starts_with(' ');
        let space = if next_is_space { Some(end) } else { line[..end].rfind(' ') };
        let space = space.filter(|&space| space > 0);
        let (line, after) = line.split_at(space.unwrap_or(end));
        rest = Some(if space.is_some() { after.trim_start() } else { after });
        Some(line)
    })
}

/// Whether a character steers a terminal, ends a line, turns the text around or is not seen:
/// controls, line and paragraph separators, and formats.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Text from outside without hidden characters: each is one replacement character.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if is_hidden(letter) { '\u{fffd}' } else { letter }).collect()
}

/// A set of ranks with its noun: `rank 2`, `ranks 0-1`.
#[must_use]
pub fn ranks_text(ranks: &str) -> String {
    format!("{} {ranks}", agreeing(ranks, "rank", "ranks"))
}

/// Of two words the one that agrees with a set of ranks: that for one rank, or for several.
pub(crate) fn agreeing(ranks: &str, one: &'static str, several: &'static str) -> &'static str {
    if ranks.contains([',', '-']) { several } else { one }
}

/// What a communicator without a name is called: by a part of its identity, which tells it from
/// others.
pub(crate) fn unnamed(identity: u64) -> String {
    format!("communicator #{:04x}", identity & 0xffff)
}

/// A text in at most `width` characters: where it is longer, a tilde stands for its middle, so that
/// names that differ in their ends remain different.
pub(crate) fn cut_in_the_middle(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let head = kept / 2;
    let tail = letters.len() - (kept - head);
    letters[..head].iter().chain(&['~']).chain(&letters[tail..]).collect()
}

/// Whether and how text is marked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    colour: bool,
}

impl Paint {
    /// Nothing is marked.
    pub(crate) const PLAIN: Self = Self::new(false);

    pub(crate) const fn new(colour: bool) -> Self {
        Self { colour }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.marked("1", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.marked("31", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.marked("33", text)
    }

    fn marked(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(5);
        grid.column("name", Side::Left);
        grid.column("one", Side::Right);
        grid.column("two", Side::Right);
        grid.give_up(&["one", "two"]);
        grid.row(vec!["a long name".into(), "1".into(), "22222".into()]);
        grid.marked_row(vec!["b".into(), "1111".into(), "2".into()]);
        grid
    }

    #[test]
    fn columns_are_aligned() {
        let expected =
            "name          one    two\na long name     1  22222\nb            1111      2\n";
        assert_eq!(grid().render(80, Paint::PLAIN), expected);
    }

    #[test]
    fn a_small_width_cuts_the_name_and_then_gives_up_columns() {
        let lines = |width| grid().render(width, Paint::PLAIN);
        assert_eq!(lines(18), "name    one    two\na lo~     1  22222\nb      1111      2\n");
        assert_eq!(lines(17), "name          two\na long na~  22222\nb               2\n");
        assert_eq!(lines(6), "name\na lon~\nb\n");
        assert_eq!(lines(0), "name\na lo~\nb\n");
    }

    #[test]
    fn colour_is_there_only_when_asked_for() {
        assert!(!grid().render(80, Paint::PLAIN).contains('\x1b'));
        let text = grid().render(80, Paint::new(true));
        assert!(text.contains("\x1b[33mb            1111      2\x1b[0m\n"), "{text}");
    }

    #[test]
    fn a_long_line_goes_on_in_the_next() {
        let lines = |text, width| wrapped(text, width).collect::<Vec<_>>();
        assert_eq!(lines("missing ranks 1,3", 17), ["missing ranks 1,3"]);
        assert_eq!(lines("missing ranks 1,3", 13), ["missing ranks", "1,3"]);
        assert_eq!(lines("missing ranks 1,3", 12), ["missing", "ranks 1,3"]);
        assert_eq!(lines("1,3,5,ä", 3), ["1,3", ",5,", "ä"]);
        assert_eq!(lines(" ää", 1), [" ", "ä", "ä"]);
        assert_eq!(lines("", 0), [""]);
    }

    #[test]
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(
            printable("a\u{202e}b\u{2028}c\u{200b}d\u{9b}"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}"
        );
        assert_eq!(printable("r\u{e9}gion \u{4e00}"), "r\u{e9}gion \u{4e00}");
    }

    #[test]
    fn one_rank_is_no_plural() {
        assert_eq!(["2", "2-3", "0,2"].map(ranks_text), ["rank 2", "ranks 2-3", "ranks 0,2"]);
    }

    #[test]
    fn a_long_text_keeps_both_of_its_ends() {
        assert_eq!(cut_in_the_middle("one.so", 6), "one.so");
        assert_eq!(cut_in_the_middle("abcdefghij.so", 8), "abc~j.so");
        assert_eq!(cut_in_the_middle("abc", 1), "~");
    }
}
