//! The read end of a pipe from a process, and the last lines that were read from it.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// How much of the end of a process's standard error is kept to explain its death, in bytes.
pub const ERROR_TEXT_BYTES_MAX: usize = 4096;

/// The longest line that is forwarded whole, in bytes. A longer one is cut into several.
pub const LINE_BYTES_MAX: usize = 4096;

/// How much is taken from a process at one asking, in bytes, so that a noisy one does not keep
/// the loop from its neighbours.
pub const READ_BYTES_MAX: usize = 64 * 1024;

/// One stream of output of a process: a non-blocking pipe, its tail, and the line begun last.
#[derive(Debug)]
pub(crate) struct Captured {
    reader: PipeReader,
    ended: bool,
    tail: Vec<u8>,
    line: Vec<u8>,
}

impl Captured {
    /// Takes over the read end and makes it non-blocking.
    pub(crate) fn new(reader: PipeReader) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&reader, true)?;
        Ok(Self { reader, ended: false, tail: Vec::new(), line: Vec::new() })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Marks the stream as ended: no process will write to it.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether all writers have closed and everything was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Appends the bytes that are there, at most [`READ_BYTES_MAX`], and returns their number.
    pub(crate) fn take(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let before = into.len();
        let mut piece = [0_u8; 8192];
        // Bounded for each call, so that one process that writes without end does not keep the
        // caller from the others.
        while !self.ended && into.len() - before < READ_BYTES_MAX {
            match self.reader.read(&mut piece) {
                Ok(0) => self.ended = true,
                Ok(count) => into.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.ended = true;
                    self.remember(before, into);
                    return Err(error);
                }
            }
        }
        self.remember(before, into);
        Ok(into.len() - before)
    }

    /// Reads the bytes that are there and writes complete lines to `target`, each after `prefix`,
    /// but those that are left out. At the end of the stream a last line without line feed is
    /// completed.
    pub(crate) fn forward(
        &mut self,
        prefix: &str,
        is_left_out: impl Fn(&str) -> bool,
        target: &mut dyn Write,
    ) -> io::Result<usize> {
        let mut line = std::mem::take(&mut self.line);
        let taken = self.take(&mut line);
        let mut rest = line.as_slice();
        let mut output = Vec::with_capacity(rest.len());
        while let Some(length) = next_line(rest, self.ended) {
            let (head, tail) = rest.split_at(length);
            rest = tail;
            let head = head.strip_suffix(b"\n").unwrap_or(head);
            if is_left_out(&String::from_utf8_lossy(head)) {
                continue;
            }
            output.extend_from_slice(prefix.as_bytes());
            output.extend_from_slice(head);
            output.push(b'\n');
        }
        self.line = rest.to_vec();
        target.write_all(&output)?;
        taken
    }

    /// Takes everything that is in the pipe now, for its tail only. The pipe's own size bounds
    /// it, and so does the count of askings where a writer is still alive and quick.
    pub(crate) fn drain(&mut self) {
        const ASKINGS_MAX: usize = 32;
        let mut taken = Vec::new();
        for _ in 0..ASKINGS_MAX {
            taken.clear();
            match self.take(&mut taken) {
                Ok(0) | Err(_) => break,
                Ok(_) => self.line.clear(),
            }
        }
    }

    /// The end of the output, for display: at most [`ERROR_TEXT_BYTES_MAX`] bytes from the stream,
    /// as lines without control characters, from the start of a line if it was cut.
    pub(crate) fn stderr_tail(&self) -> String {
        let cut = self.tail.len() > ERROR_TEXT_BYTES_MAX;
        let mut bytes = &self.tail[self.tail.len().saturating_sub(ERROR_TEXT_BYTES_MAX)..];
        if cut && let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            bytes = &bytes[end + 1..];
        }
        let text = String::from_utf8_lossy(bytes);
        let printable = |&character: &char| character == '\n' || !character.is_control();
        text.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(printable).collect()
    }

    /// Keeps the end of what was just appended to `into` after `before`.
    fn remember(&mut self, before: usize, into: &[u8]) {
        let news = &into[before..];
        let news = &news[news.len().saturating_sub(ERROR_TEXT_BYTES_MAX + 1)..];
        self.tail.extend_from_slice(news);
        // One byte more than is shown, to know later whether the text was cut.
        let surplus = self.tail.len().saturating_sub(ERROR_TEXT_BYTES_MAX + 1);
        self.tail.drain(..surplus);
    }
}

/// The length of the first line with its line feed, if it is complete, overlong or the last.
fn next_line(bytes: &[u8], last: bool) -> Option<usize> {
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    match window.iter().position(|&byte| byte == b'\n') {
        Some(end) => Some(end + 1),
        None if window.len() == LINE_BYTES_MAX => Some(LINE_BYTES_MAX),
        None => (last && !bytes.is_empty()).then_some(bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_forwarded_whole_with_their_prefix() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut captured = Captured::new(reader).unwrap();
        let mut target = Vec::new();
        writer.write_all(b"one\ntw").unwrap();
        assert_eq!(captured.forward("[7] ", |line| line == "chatter", &mut target).unwrap(), 6);
        assert_eq!(target, b"[7] one\n");
        writer.write_all(b"o\nchatter\n\nthree").unwrap();
        captured.forward("[7] ", |line| line == "chatter", &mut target).unwrap();
        assert!(!captured.has_ended());
        drop(writer);
        captured.forward("[7] ", |line| line == "chatter", &mut target).unwrap();
        assert!(captured.has_ended());
        assert_eq!(target, b"[7] one\n[7] two\n[7] \n[7] three\n");
        assert_eq!(captured.stderr_tail(), "one\ntwo\nchatter\n\nthree");
    }

    #[test]
    fn an_endless_line_is_cut_and_takes_bounded_memory() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut captured = Captured::new(reader).unwrap();
        let mut target = Vec::new();
        writer.write_all(&[b'x'; 10_000]).unwrap();
        captured.forward("", |_| false, &mut target).unwrap();
        assert_eq!(target.len(), 2 * (LINE_BYTES_MAX + 1));
        assert_eq!(captured.line.len(), 10_000 - 2 * LINE_BYTES_MAX);
    }

    #[test]
    fn the_tail_is_bounded_starts_with_a_line_and_cannot_steer_a_terminal() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut captured = Captured::new(reader).unwrap();
        for number in 0..2000 {
            writeln!(writer, "\x1b[31mline {number}\x07").unwrap();
        }
        captured.drain();
        let words = captured.stderr_tail();
        assert!(words.len() <= ERROR_TEXT_BYTES_MAX);
        assert!(words.starts_with("[31mline 1"), "{words}");
        assert!(words.ends_with("line 1999\n"));
        assert!(!words.contains('\x1b') && !words.contains('\x07'));
    }
}
