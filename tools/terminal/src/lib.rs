//! The terminal: keys as they are pressed, a screen of its own, and everything as it was at the
//! end.
//!
//! A backend for `ratatui-core` in escape sequences that every terminal since the VT220 and xterm
//! knows. Ctrl-C stays a signal; Ctrl-Z is turned off, since it would leave the terminal as it is
//! here. The terminal is given back when this is dropped, after a fault of ours, too.
//!
//! A view may have the lower lines only ([`Place::Below`]): then the terminal scrolls the upper
//! ones (DECSTBM), into which a program goes on to write.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::fmt::Write as _;
use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// Another screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not tell it.
const SIZE_UNKNOWN: Size = Size { width: 80, height: 24 };

/// Lines above ours at least.
const ABOVE_MIN: u16 = 4;

/// A key, as far as views know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A printed letter, or a blank.
    Letter(char),
    /// The key for tabulators.
    Tab,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// To the begin.
    Home,
    /// To the end.
    End,
    /// Away from here.
    Escape,
}

/// The keys in what a terminal has sent. What is none of them is passed over.
pub fn keys(mut bytes: &[u8]) -> Vec<Key> {
    const SEQUENCES: [(&[u8], Key); 19] = [
        (b"\x1b[A", Key::Up),
        (b"\x1bOA", Key::Up),
        (b"\x1b[B", Key::Down),
        (b"\x1bOB", Key::Down),
        (b"\x1b[C", Key::Right),
        (b"\x1bOC", Key::Right),
        (b"\x1b[D", Key::Left),
        (b"\x1bOD", Key::Left),
        (b"\t", Key::Tab),
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

/// Which lines of the terminal are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// All of them, on a screen of their own.
    Whole,
    /// The lower two thirds: what others write scrolls above.
    Below,
}

/// A terminal, as long as it is ours.
pub struct Screen {
    before: Termios,
    resized: PipeReader,
    input: File,
    output: File,
    place: Place,
    /// Columns and lines of the terminal when the lower ones were reserved.
    reserved: Option<Size>,
    text: String,
}

impl Screen {
    /// Takes over the terminal of standard input and output.
    ///
    /// # Errors
    /// The system's, if standard input is no terminal.
    pub fn of_streams() -> std::io::Result<Self> {
        let input = std::io::stdin().as_fd().try_clone_to_owned()?;
        let output = std::io::stdout().as_fd().try_clone_to_owned()?;
        Self::open(input.into(), output.into(), Place::Whole)
    }

    /// Takes over the terminal that this process is started from, whatever its streams are.
    ///
    /// # Errors
    /// The system's, if there is none.
    pub fn of_terminal(place: Place) -> std::io::Result<Self> {
        let file = File::options().read(true).write(true).open("/dev/tty")?;
        let output = file.try_clone()?;
        Self::open(file, output, place)
    }

    fn open(input: File, output: File, place: Place) -> std::io::Result<Self> {
        let (resized, writer) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&resized, true)?;
        signal_hook::low_level::pipe::register(
            signal_hook::consts::SIGWINCH,
            OwnedFd::from(writer),
        )?;
        let before = tcgetattr(&input)?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&input, OptionalActions::Now, &modes)?;
        let enter = if place == Place::Whole { ENTER } else { "" };
        let text = enter.to_string();
        let mut screen = Self { before, resized, input, output, place, reserved: None, text };
        screen.flush()?;
        Ok(screen)
    }

    /// What becomes readable when a key was pressed.
    pub fn input(&self) -> &File {
        &self.input
    }

    /// What becomes readable when the size is another one.
    pub fn resized(&self) -> &PipeReader {
        &self.resized
    }

    /// Waits until a key is pressed, the size is another one, or the time has passed.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&self, timeout: Duration) -> std::io::Result<()> {
        let mut both =
            [PollFd::new(&self.input, PollFlags::IN), PollFd::new(&self.resized, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).map_err(std::io::Error::other)?;
        match rustix::event::poll(&mut both, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The keys that were pressed since the last call; none where the terminal has gone.
    pub fn keys(&mut self) -> Option<Vec<Key>> {
        let mut bytes = [0; 256];
        // Reading gives what is there, since the terminal waits for nothing.
        let count = rustix::io::read(&self.input, &mut bytes).unwrap_or(0);
        let has_gone = count == 0 && tcgetattr(&self.input).is_err();
        (!has_gone).then(|| keys(&bytes[..count]))
    }

    /// Whether the size was changed since the last call.
    pub fn was_resized(&mut self) -> bool {
        let mut bytes = [0; 64];
        self.resized.read(&mut bytes).is_ok_and(|count| count > 0)
    }

    fn terminal_size(&self) -> Size {
        let size = terminal_size::terminal_size_of(&self.output);
        size.map_or(SIZE_UNKNOWN, |(width, height)| Size::new(width.0, height.0))
    }

    /// The lines above ours.
    fn above(&self, size: Size) -> u16 {
        match self.place {
            Place::Whole => 0,
            Place::Below => (size.height / 3).max(ABOVE_MIN).min(size.height.saturating_sub(1)),
        }
    }

    /// Lets only the upper lines scroll, once the lower ones are free.
    fn reserve(&mut self) -> String {
        let size = self.terminal_size();
        if self.place == Place::Whole || self.reserved == Some(size) {
            return String::new();
        }
        let mut text = self.release();
        let above = self.above(size);
        let height = size.height - above;
        text.push_str(&"\n".repeat(usize::from(height)));
        let _ = write!(text, "\x1b[{height}A\x1b7\x1b[1;{above}r\x1b8");
        self.reserved = Some(size);
        text
    }

    /// The text that lets all lines scroll again, and clears ours.
    fn release(&mut self) -> String {
        let Some(size) = self.reserved.take() else { return String::new() };
        format!("\x1b7\x1b[r\x1b[{};1H\x1b[J\x1b8", self.above(size) + 1)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let text = match self.place {
            Place::Whole => LEAVE.to_string(),
            Place::Below => self.release(),
        };
        // A terminal that has gone needs no giving back.
        let _ = self.output.write_all(text.as_bytes());
        let _ = tcsetattr(&self.input, OptionalActions::Flush, &self.before);
    }
}

impl Backend for Screen {
    type Error = std::io::Error;

    fn draw<'a, I>(&mut self, content: I) -> std::io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let above = self.above(self.terminal_size());
        write_cells(&mut self.text, content, above);
        Ok(())
    }

    fn hide_cursor(&mut self) -> std::io::Result<()> {
        if self.place == Place::Whole {
            self.text.push_str("\x1b[?25l");
        }
        Ok(())
    }

    fn show_cursor(&mut self) -> std::io::Result<()> {
        if self.place == Place::Whole {
            self.text.push_str("\x1b[?25h");
        }
        Ok(())
    }

    fn get_cursor_position(&mut self) -> std::io::Result<Position> {
        // No user types here.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> std::io::Result<()> {
        let Position { x, y } = position.into();
        if self.place == Place::Whole {
            let _ = write!(self.text, "\x1b[{};{}H", y + 1, x + 1);
        }
        Ok(())
    }

    fn clear(&mut self) -> std::io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> std::io::Result<()> {
        if self.place == Place::Below {
            // What is above is not ours, and there is no cursor of ours.
            let first = self.above(self.terminal_size()) + 1;
            let _ = write!(self.text, "\x1b[0m\x1b[{first};1H\x1b[J");
            return Ok(());
        }
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
        let size = self.terminal_size();
        Ok(Size::new(size.width, size.height - self.above(size)))
    }

    fn window_size(&mut self) -> std::io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        if self.place == Place::Below {
            if text.is_empty() {
                return Ok(());
            }
            // One write, after which the cursor is where the program has left it.
            text = format!("{}\x1b7\x1b[?7l{text}\x1b[0m\x1b[?7h\x1b8", self.reserve());
        }
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }
}

/// The sequences that put cells in their places. Cells beside one another need no new place.
fn write_cells<'a>(
    text: &mut String,
    content: impl Iterator<Item = (u16, u16, &'a Cell)>,
    above: u16,
) {
    let mut next = None;
    let mut style = None;
    for (x, y, cell) in content {
        if next != Some((x, y)) {
            let _ = write!(text, "\x1b[{};{}H", above + y + 1, x + 1);
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
        write_cells(&mut text, [(0, 0, &plain), (1, 0, &plain), (2, 0, &red)].into_iter(), 0);
        assert_eq!(text, "\x1b[1;1H\x1b[0maa\x1b[0;1;31mb\x1b[0m");
        plain.set_symbol("c");
        let mut text = String::new();
        write_cells(&mut text, [(5, 2, &plain), (7, 2, &plain)].into_iter(), 0);
        assert_eq!(text, "\x1b[3;6H\x1b[0mc\x1b[3;8Hc\x1b[0m");
    }
}
