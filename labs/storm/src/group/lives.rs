//! Who was alive from when to when, and who was left alone: the storm's own record of what it did.
//!
//! Owns [`Lives`]. A process has a number that is its own; a virtual node has one process after
//! another. Times count from the begin of the storm. Nothing here comes from a member.

use std::time::Duration;

use sapwood::Rank;

/// For this long after it was resumed a process still counts as disturbed: others may have taken it
/// for dead, and have to hear that it is not.
const RECOVERY: Duration = Duration::from_secs(5);
/// All members know one that has joined, or was taken for dead and is back, after this time.
const SETTLING: Duration = Duration::from_secs(20);

/// The number of a process, in the order of their starts.
pub(super) type ProcessNumber = usize;

/// A time from one moment to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub from: Duration,
    pub until: Duration,
}

/// All processes that the storm has started.
#[derive(Debug, Default)]
pub(super) struct Lives(Vec<Life>);

#[derive(Debug)]
struct Life {
    name: Rank,
    started: Duration,
    joined: Option<Duration>,
    ended: Option<Duration>,
    disturbances: Vec<Disturbance>,
}

#[derive(Debug)]
struct Disturbance {
    from: Duration,
    /// When it was resumed; never, where it was killed or told to leave.
    until: Option<Duration>,
}

impl Lives {
    /// A process is started; gives its number.
    pub(super) fn start(&mut self, name: Rank, at: Duration) -> ProcessNumber {
        let disturbances = Vec::new();
        self.0.push(Life { name, started: at, joined: None, ended: None, disturbances });
        self.0.len() - 1
    }

    /// It has said that it is a member.
    pub(super) fn join(&mut self, process: ProcessNumber, at: Duration) {
        self.0[process].joined = Some(at);
    }

    /// It is going to be stopped, killed or told to leave.
    pub(super) fn disturb(&mut self, process: ProcessNumber, at: Duration) {
        self.0[process].disturbances.push(Disturbance { from: at, until: None });
    }

    /// It was resumed.
    pub(super) fn resume(&mut self, process: ProcessNumber, at: Duration) {
        if let Some(last) = self.0[process].disturbances.last_mut() {
            last.until = Some(at);
        }
    }

    /// It has ended.
    pub(super) fn end(&mut self, process: ProcessNumber, at: Duration) {
        self.0[process].ended = Some(at);
    }

    /// The virtual node of a process.
    pub(super) fn name(&self, process: ProcessNumber) -> Rank {
        self.0[process].name
    }

    /// Whether it was a member for the whole of that time, and was left alone.
    pub(super) fn is_calm(&self, process: ProcessNumber, span: Span) -> bool {
        let life = &self.0[process];
        let is_undisturbed = |disturbance: &Disturbance| {
            let is_past = disturbance.until.is_some_and(|until| until + RECOVERY < span.from);
            is_past || disturbance.from > span.until
        };
        life.joined.is_some_and(|joined| joined <= span.from)
            && life.ended.is_none_or(|ended| ended > span.until)
            && life.disturbances.iter().all(is_undisturbed)
    }

    /// Whether it had joined, and was resumed for the last time, at least [`SETTLING`] before.
    pub(super) fn is_settled(&self, process: ProcessNumber, at: Duration) -> bool {
        let joined = self.0[process].joined;
        joined.is_some_and(|joined| self.able_since(process, joined) + SETTLING <= at)
    }

    /// Since when it can have done what it was asked, if it was asked at a moment.
    pub(super) fn able_since(&self, process: ProcessNumber, asked: Duration) -> Duration {
        let resumed = self.0[process].disturbances.iter().filter_map(|each| each.until).max();
        resumed.map_or(asked, |resumed| resumed.max(asked))
    }

    /// Whether a virtual node had a process at some moment of that time.
    pub(super) fn had(&self, name: Rank, span: Span) -> bool {
        self.0.iter().any(|life| {
            let is_over = life.ended.is_some_and(|ended| ended < span.from);
            life.name == name && life.started <= span.until && !is_over
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn span(from: u64, until: u64) -> Span {
        Span { from: second(from), until: second(until) }
    }

    #[test]
    fn a_process_is_calm_from_its_joining_to_its_end_but_while_it_is_disturbed() {
        let mut lives = Lives::default();
        let process = lives.start(4, second(1));
        assert!(!lives.is_calm(process, span(2, 3)), "it has not joined");
        lives.join(process, second(2));
        assert!(lives.is_calm(process, span(2, 3)));
        assert!(!lives.is_calm(process, span(1, 3)));
        lives.disturb(process, second(20));
        assert!(lives.is_calm(process, span(2, 19)));
        assert!(!lives.is_calm(process, span(19, 20)));
        lives.resume(process, second(22));
        assert!(!lives.is_calm(process, span(26, 27)), "others may still take it for dead");
        assert!(lives.is_calm(process, span(28, 30)));
        assert_eq!(lives.able_since(process, second(21)), second(22));
        assert_eq!(lives.able_since(process, second(30)), second(30));
        assert!(lives.is_settled(process, second(42)));
        assert!(!lives.is_settled(process, second(41)), "it was resumed 19 s before");
        lives.end(process, second(40));
        assert!(!lives.is_calm(process, span(28, 41)));
    }

    #[test]
    fn a_virtual_node_has_one_process_after_another() {
        let mut lives = Lives::default();
        let first = lives.start(4, second(1));
        lives.end(first, second(3));
        lives.start(4, second(6));
        assert!(lives.had(4, span(2, 2)) && lives.had(4, span(5, 6)));
        assert!(!lives.had(4, span(4, 5)) && !lives.had(5, span(0, 9)));
        assert_eq!(lives.name(first), 4);
    }
}
