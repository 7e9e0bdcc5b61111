//! What `/proc/PID/stat` says of a process, or of a thread of one, and from when on two looks at it
//! tell what it does.

use std::ops::Range;
use std::time::Duration;

/// The system tells processor time in hundredths of a second, on every architecture.
pub(crate) const TICK: Duration = Duration::from_millis(10);
/// Between two looks that are closer, processor time in ticks says too little.
pub(crate) const STRETCH_MIN: Duration = Duration::from_millis(200);
/// What computes has more than this part of the time.
pub(crate) const USED_PARTS: u64 = 10;

/// The words of one line.
pub(crate) struct Fields<'a> {
    /// Those behind the program's name, which is the second.
    words: Vec<&'a str>,
}

/// The words of a line, of which the program's name is in parentheses and may hold any characters;
/// none of a text that is no such line.
pub(crate) fn fields(stat: &str) -> Option<Fields<'_>> {
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(Fields { words: rest.split_ascii_whitespace().collect() })
}

impl Fields<'_> {
    pub(crate) fn state(&self) -> Option<char> {
        self.words.first()?.chars().next()
    }

    pub(crate) fn parent(&self) -> Option<u64> {
        self.number(4)
    }

    pub(crate) fn minor_faults(&self) -> Option<u64> {
        self.number(10)
    }

    pub(crate) fn major_faults(&self) -> Option<u64> {
        self.number(12)
    }

    /// Processor time in user mode, in ticks.
    pub(crate) fn user(&self) -> Option<u64> {
        self.number(14)
    }

    /// Processor time in system mode, in ticks.
    pub(crate) fn system(&self) -> Option<u64> {
        self.number(15)
    }

    /// When the process was started, in ticks from the system's start.
    pub(crate) fn began(&self) -> Option<u64> {
        self.number(22)
    }

    /// Where in its memory the environment is with which its program was started; nowhere to a user
    /// that may not read that.
    pub(crate) fn environment(&self) -> Option<Range<u64>> {
        Some(self.number(50)?..self.number(51)?)
    }

    /// A number by its place in the line, from 1, as proc(5) counts.
    fn number(&self, place: usize) -> Option<u64> {
        self.words.get(place - 3)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_behind_the_name_whatever_that_is() {
        let stat = "17 (a) R (b) S 1 17 17 0 -1 4194304 122 5 3 6 70 8 0 0 20 0 1 0 128838";
        let fields = fields(stat).expect("a line");
        assert_eq!((fields.state(), fields.parent()), (Some('S'), Some(1)));
        assert_eq!((fields.minor_faults(), fields.major_faults()), (Some(122), Some(3)));
        assert_eq!((fields.user(), fields.system()), (Some(70), Some(8)));
        assert_eq!(fields.began(), Some(128_838));
        assert_eq!(fields.environment(), None, "the line ends before");
    }

    #[test]
    fn the_own_environment_is_somewhere() {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("this process");
        let environment = fields(&stat).and_then(|fields| fields.environment());
        let environ = std::fs::read("/proc/self/environ").expect("this process");
        let length = environment.map(|place| place.end - place.start);
        assert_eq!(length, Some(environ.len() as u64));
    }

    #[test]
    fn a_line_may_be_short_or_none() {
        assert!(fields("").is_none());
        let fields = fields("17 (a) R").expect("a line");
        assert_eq!((fields.state(), fields.parent()), (Some('R'), None));
        assert_eq!(fields.system(), None);
    }
}
