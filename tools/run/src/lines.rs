//! Output as it comes, cut into parts that end with a line, so that the lines of two hosts do not
//! run into each other.

use super::protocol::PART_BYTES_MAX;

/// The lines of one output.
#[derive(Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
}

/// Whether more will come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Open,
    Ended,
}

impl Lines {
    /// Takes what came.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.begun.len()
    }

    /// The next part: whole lines, a piece of a line that is too long, or at the end what is left.
    pub(super) fn next(&mut self, source: Source) -> Option<Vec<u8>> {
        let is_end = source == Source::Ended;
        let window = &self.begun[..self.begun.len().min(PART_BYTES_MAX)];
        let length = match window.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => last + 1,
            None if window.len() == PART_BYTES_MAX || is_end && !window.is_empty() => window.len(),
            None => return None,
        };
        let rest = self.begun.split_off(length);
        Some(std::mem::replace(&mut self.begun, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_with_lines() {
        let mut lines = Lines::default();
        lines.add(b"one\ntwo\nthr");
        assert_eq!(lines.next(Source::Open).unwrap(), b"one\ntwo\n");
        assert_eq!(lines.next(Source::Open), None);
        lines.add(b"ee\n\0");
        assert_eq!(lines.next(Source::Open).unwrap(), b"three\n");
        assert_eq!(lines.next(Source::Ended).unwrap(), b"\0");
        assert_eq!(lines.next(Source::Ended), None);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut lines = Lines::default();
        lines.add(&vec![b'x'; 2 * PART_BYTES_MAX + 1]);
        assert_eq!(lines.next(Source::Open).unwrap().len(), PART_BYTES_MAX);
        assert_eq!(lines.next(Source::Open).unwrap().len(), PART_BYTES_MAX);
        assert_eq!((lines.next(Source::Open), lines.waiting()), (None, 1));
    }
}
