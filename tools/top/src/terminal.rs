//! The terminal: keys as they are pressed, a screen of its own, and everything as it was at the
//! end.
//!
//! A backend for `ratatui-core` in escape sequences that every terminal since the VT220 and xterm
//! knows. Ctrl-C stays a signal; Ctrl-Z is turned off, since it would leave the terminal as it is
//! here. The terminal is given back when this is dropped, after a fault of ours, too.

use std::fmt::Write as _;
use std::io::{PipeReader, Read, Stdin, Write};
use std::os::fd::OwnedFd;

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// Another screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not tell it.
const SIZE_UNKNOWN: Size = Size { width: 80, height: 24 };

/// A key, as far as the view knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Letter(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Escape,
}

/// The keys in what a terminal has sent. What is none of them is passed over.
pub(crate) fn keys(mut bytes: &[u8]) -> Vec<Key> {
    const SEQUENCES: [(&[u8], Key); 14] = [
        (b"\x1b[A", Key::Up),
        (b"\x1bOA", Key::Up),
        (b"\x1b[B", Key::Down),
        (b"\x1bOB", Key::Down),
        (b"\x1b[5~", Key::PageUp),
        (b"\x1b[6~", Key::PageDown),
        (b"\x1b[H", Key::Home),
        (b"\x1bOH", Key::Home),
        (b"\x1b[1~", Key::Home),
        (b"\x1b[F", Key::End),
        (b"\x1bOF", Key::End),
        (b"\x1b[4~", Key::End),
        (b"\x1b[7~", Key::Home),
        (b"\x1b[8~", Key::End),
    ];
    let mut keys = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        if let Some((sequence, key)) = SEQUENCES.iter().find(|(known, _)| bytes.starts_with(known))
        {
            keys.push(*key);
            bytes = &bytes[sequence.len()..];
        } else if first != 0x1b {
            if first.is_ascii_graphic() || first == b' ' {
                keys.push(Key::Letter(char::from(first)));
            }
            bytes = rest;
        } else if let Some((b'[' | b'O', parameters)) = rest.split_first() {
            // A sequence that is not known ends with the first letter or tilde.
            let is_end = |byte: &u8| (0x40..=0x7e).contains(byte);
            let end = parameters.iter().position(is_end).map_or(parameters.len(), |at| at + 1);
            bytes = &parameters[end..];
        } else {
            if rest.is_empty() {
                keys.push(Key::Escape);
            }
            bytes = rest;
        }
    }
    keys
}

/// The terminal of standard input and output, as long as it is ours.
pub(crate) struct Screen {
    before: Termios,
    resized: PipeReader,
    stdin: Stdin,
    text: String,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// The system's, if standard input is no terminal.
    pub(crate) fn open() -> std::io::Result<Self> {
        let (resized, writer) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&resized, true)?;
        signal_hook::low_level::pipe::register(
            signal_hook::consts::SIGWINCH,
            OwnedFd::from(writer),
        )?;
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &modes)?;
        let mut screen = Self { before, resized, stdin, text: ENTER.to_string() };
        screen.flush()?;
        Ok(screen)
    }

    /// What becomes readable when a key was pressed.
    pub(crate) fn input(&self) -> &Stdin {
        &self.stdin
    }

    /// What becomes readable when the size is another one.
    pub(crate) fn resized(&self) -> &PipeReader {
        &self.resized
    }

    /// The keys that were pressed since the last call; none where the terminal has gone.
    pub(crate) fn keys(&mut self) -> Option<Vec<Key>> {
        let mut bytes = [0; 256];
        // Reading gives what is there, since the terminal waits for nothing.
        let count = rustix::io::read(&self.stdin, &mut bytes).unwrap_or(0);
        let has_gone = count == 0 && tcgetattr(&self.stdin).is_err();
        (!has_gone).then(|| keys(&bytes[..count]))
    }

    /// Whether the size was changed since the last call.
    pub(crate) fn was_resized(&mut self) -> bool {
        let mut bytes = [0; 64];
        self.resized.read(&mut bytes).is_ok_and(|count| count > 0)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.text = LEAVE.to_string();
        // A terminal that has gone needs no giving back.
        let _ = self.flush();
        let _ = tcsetattr(&self.stdin, OptionalActions::Flush, &self.before);
    }
}

impl Backend for Screen {
    type Error = std::io::Error;

    fn draw<'a, I>(&mut self, content: I) -> std::io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        write_cells(&mut self.text, content);
        Ok(())
    }

    fn hide_cursor(&mut self) -> std::io::Result<()> {
        self.text.push_str("\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> std::io::Result<()> {
        self.text.push_str("\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> std::io::Result<Position> {
        // No user types here.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> std::io::Result<()> {
        let Position { x, y } = position.into();
        let _ = write!(self.text, "\x1b[{};{}H", y + 1, x + 1);
        Ok(())
    }

    fn clear(&mut self) -> std::io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> std::io::Result<()> {
        self.text.push_str(match region {
            ClearType::All => "\x1b[0m\x1b[2J",
            ClearType::AfterCursor => "\x1b[0J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[0K",
        });
        Ok(())
    }

    fn size(&self) -> std::io::Result<Size> {
        let size = terminal_size::terminal_size_of(std::io::stdout());
        Ok(size.map_or(SIZE_UNKNOWN, |(width, height)| Size::new(width.0, height.0)))
    }

    fn window_size(&mut self) -> std::io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let text = std::mem::take(&mut self.text);
        let mut output = std::io::stdout().lock();
        output.write_all(text.as_bytes())?;
        output.flush()
    }
}

/// The sequences that put cells in their places. Cells beside one another need no new place.
fn write_cells<'a>(text: &mut String, content: impl Iterator<Item = (u16, u16, &'a Cell)>) {
    let mut next = None;
    let mut style = None;
    for (x, y, cell) in content {
        if next != Some((x, y)) {
            let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
        }
        let wanted = (cell.fg, cell.modifier);
        if style != Some(wanted) {
            text.push_str("\x1b[0");
            for (modifier, code) in
                [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::REVERSED, 7)]
            {
                if cell.modifier.contains(modifier) {
                    let _ = write!(text, ";{code}");
                }
            }
            if let Some(code) = colour_code(cell.fg) {
                let _ = write!(text, ";{code}");
            }
            text.push('m');
            style = Some(wanted);
        }
        text.push_str(cell.symbol());
        next = Some((x + 1, y));
    }
    text.push_str("\x1b[0m");
}

/// The colours that the view uses; the others are as if there were none.
fn colour_code(colour: Color) -> Option<u8> {
    match colour {
        Color::Red => Some(31),
        Color::Green => Some(32),
        Color::Yellow => Some(33),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_among_other_sequences() {
        assert_eq!(keys(b"jq"), [Key::Letter('j'), Key::Letter('q')]);
        assert_eq!(
            keys(b"\x1b[A\x1bOB \x1b[6~"),
            [Key::Up, Key::Down, Key::Letter(' '), Key::PageDown]
        );
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        // A mouse, a key with a modifier, a function key: not known, and no letters of theirs.
        assert_eq!(keys(b"\x1b[<0;12;7M\x1b[1;5Cx\x1b[15~"), [Key::Letter('x')]);
        assert_eq!(keys(b"\x1b[\xff\x00\n"), []);
    }

    #[test]
    fn neighbours_are_written_in_one_go() {
        let mut plain = Cell::new("a");
        let mut red = Cell::new("b");
        red.fg = Color::Red;
        red.modifier = Modifier::BOLD;
        let mut text = String::new();
        write_cells(&mut text, [(0, 0, &plain), (1, 0, &plain), (2, 0, &red)].into_iter());
        assert_eq!(text, "\x1b[1;1H\x1b[0maa\x1b[0;1;31mb\x1b[0m");
        plain.set_symbol("c");
        let mut text = String::new();
        write_cells(&mut text, [(5, 2, &plain), (7, 2, &plain)].into_iter());
        assert_eq!(text, "\x1b[3;6H\x1b[0mc\x1b[3;8Hc\x1b[0m");
    }
}
