//! Which members were alive from when to when, and which were left alone: the storm's own record of
//! what it did.
//!
//! Owns [`Lives`]. A process has a number that is its own; a virtual node has one process after
//! another. Times count from the begin of the storm. Nothing here comes from a member.

use std::time::Duration;

use sapwood::{Rank, RankSet};

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
    /// When it was told to leave to an heir.
    handed: Option<Duration>,
    disturbances: Vec<Disturbance>,
}

#[derive(Debug)]
struct Disturbance {
    from: Duration,
    /// When it was resumed; never, where it was killed or told to leave.
    until: Option<Duration>,
    /// The process that leaves to an heir, where that is what disturbs the two.
    giver: Option<ProcessNumber>,
}

impl Disturbance {
    /// Whether others may have seen it in that time.
    fn meets(&self, span: Span) -> bool {
        let is_past = self.until.is_some_and(|until| until + RECOVERY < span.from);
        !is_past && self.from <= span.until
    }
}

impl Lives {
    /// A process is started; gives its number.
    pub(super) fn start(&mut self, name: Rank, at: Duration) -> ProcessNumber {
        let (joined, ended, handed, disturbances) = (None, None, None, Vec::new());
        self.0.push(Life { name, started: at, joined, ended, handed, disturbances });
        self.0.len() - 1
    }

    /// It has said that it is a member.
    pub(super) fn join(&mut self, process: ProcessNumber, at: Duration) {
        self.0[process].joined = Some(at);
    }

    /// It is going to be stopped, killed or told to leave.
    pub(super) fn disturb(&mut self, process: ProcessNumber, at: Duration) {
        let disturbance = Disturbance { from: at, until: None, giver: None };
        self.0[process].disturbances.push(disturbance);
    }

    /// A link of it is cut for a time.
    pub(super) fn cut(&mut self, process: ProcessNumber, Span { from, until }: Span) {
        let disturbance = Disturbance { from, until: Some(until), giver: None };
        self.0[process].disturbances.push(disturbance);
    }

    /// It is going to be told to leave to an heir: until it has ended, the two are not calm.
    pub(super) fn hand_over(&mut self, giver: ProcessNumber, heir: ProcessNumber, at: Duration) {
        self.0[giver].handed = Some(at);
        for process in [giver, heir] {
            let disturbance = Disturbance { from: at, until: None, giver: Some(giver) };
            self.0[process].disturbances.push(disturbance);
        }
    }

    /// It was resumed.
    pub(super) fn resume(&mut self, process: ProcessNumber, at: Duration) {
        let is_open = |each: &&mut Disturbance| each.until.is_none() && each.giver.is_none();
        if let Some(last) = self.0[process].disturbances.iter_mut().rev().find(is_open) {
            last.until = Some(at);
        }
    }

    /// It has ended; an heir that it had is left alone from now on.
    pub(super) fn end(&mut self, process: ProcessNumber, at: Duration) {
        self.0[process].ended = Some(at);
        let all = self.0.iter_mut().flat_map(|life| &mut life.disturbances);
        all.filter(|each| each.giver == Some(process)).for_each(|each| each.until = Some(at));
    }

    /// The virtual node of a process.
    pub(super) fn name(&self, process: ProcessNumber) -> Rank {
        self.0[process].name
    }

    /// Whether it was a member for the whole of that time, and was left alone.
    pub(super) fn is_calm(&self, process: ProcessNumber, span: Span) -> bool {
        self.is_calm_but(process, span, None)
    }

    /// The same, where the leaving of `giver` to its heir does not count.
    pub(super) fn is_calm_but(
        &self,
        process: ProcessNumber,
        span: Span,
        giver: Option<ProcessNumber>,
    ) -> bool {
        let life = &self.0[process];
        let is_passed_over = |each: &Disturbance| giver.is_some() && each.giver == giver;
        life.joined.is_some_and(|joined| joined <= span.from)
            && life.ended.is_none_or(|ended| ended > span.until)
            && life.disturbances.iter().all(|each| is_passed_over(each) || !each.meets(span))
    }

    /// Whether it was told by then to leave to an heir.
    pub(super) fn has_handed(&self, process: ProcessNumber, by: Duration) -> bool {
        self.0[process].handed.is_some_and(|handed| handed <= by)
    }

    /// Whether another process may carry a virtual node by then, since the one with it was told to
    /// leave to an heir.
    pub(super) fn is_inheritable(&self, name: Rank, by: Duration) -> bool {
        self.0.iter().any(|life| life.name == name && life.handed.is_some_and(|at| at <= by))
    }

    /// The virtual nodes of which that is so.
    pub(super) fn inheritable(&self, by: Duration) -> RankSet {
        let handed = self.0.iter().filter(|life| life.handed.is_some_and(|at| at <= by));
        handed.map(|life| life.name).collect()
    }

    /// Whether some process left to an heir in that time or shortly before, so that virtual nodes
    /// have moved.
    pub(super) fn has_moves(&self, span: Span) -> bool {
        let mut all = self.0.iter().flat_map(|life| &life.disturbances);
        all.any(|each| each.giver.is_some() && each.meets(span))
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
    fn an_heir_is_calm_again_some_time_after_the_giver_has_ended() {
        let mut lives = Lives::default();
        let [giver, heir] = [3, 4].map(|name| {
            let process = lives.start(name, second(1));
            lives.join(process, second(2));
            process
        });
        lives.hand_over(giver, heir, second(10));
        // The heir is stopped and resumed meanwhile: that ends nothing of the other.
        lives.disturb(heir, second(11));
        lives.resume(heir, second(12));
        lives.end(giver, second(14));
        assert!(!lives.is_calm(heir, span(18, 19)) && lives.is_calm(heir, span(20, 21)));
        assert!(!lives.is_calm_but(heir, span(9, 13), Some(giver)), "it was stopped");
        assert!(lives.is_calm_but(heir, span(18, 19), Some(giver)));
        assert!(lives.has_moves(span(13, 14)) && !lives.has_moves(span(20, 30)));
        assert!(lives.has_handed(giver, second(10)) && !lives.has_handed(giver, second(9)));
        assert!(lives.is_inheritable(3, second(10)) && !lives.is_inheritable(4, second(10)));
        assert_eq!(lives.inheritable(second(10)).to_string(), "3");
    }

    #[test]
    fn ends_of_a_cut_link_are_not_calm_until_it_is_over() {
        let mut lives = Lives::default();
        let process = lives.start(4, second(1));
        lives.join(process, second(2));
        lives.cut(process, span(10, 12));
        assert!(lives.is_calm(process, span(3, 9)) && !lives.is_calm(process, span(11, 11)));
        assert!(!lives.is_calm(process, span(16, 17)) && lives.is_calm(process, span(18, 19)));
        lives.disturb(process, second(20));
        lives.cut(process, span(21, 22));
        lives.resume(process, second(23));
        assert!(lives.is_calm(process, span(29, 30)), "the stop has ended, not the cut");
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
