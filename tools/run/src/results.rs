//! What is known of every host: which run, how others have ended, which are missing and why.
//!
//! Owns the classes of hosts with the same outcome and the exit code that they come to. It reads
//! answers and events and does no I/O.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use sapwood::{Answer, Classes, Error, Rank, RankSet};
use sapwood_topology::NodeSet;

use super::protocol::{Digest, Outcome, State};
use sapwood_command_line::exit::{TIMEOUT, UNREACHED};
use sapwood_hosts::absence::{Absence, by_reason};

/// After so much silence a host that has not told its outcome counts as missing.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(15);

/// The same of a host that was silent in the last command already, and has said nothing since.
pub(super) const SUSPECT_SILENCE_MAX: Duration = Duration::from_secs(2);

/// Hosts with the same outcome.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) outcome: Outcome,
    pub(super) ranks: RankSet,
    /// Standard output and then standard error, where they came with the outcome.
    pub(super) content: Option<Vec<u8>>,
}

impl Class {
    /// One of its outputs.
    pub(super) fn sheet(&self, which: usize) -> Sheet {
        let Outcome { output, errors, .. } = self.outcome;
        let (digest, ranks) = ([output, errors][which], self.ranks.clone());
        let both = self.content.as_deref();
        let both = both.and_then(|content| content.split_at_checked(output.length as usize));
        let content = both.map(|(output, errors)| [output, errors][which].to_vec());
        Sheet { which, digest, ranks, content }
    }
}

/// One output that is the same on several hosts.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    /// 0 for standard output, 1 for standard error.
    pub(super) which: usize,
    pub(super) digest: Digest,
    pub(super) ranks: RankSet,
    /// What was written, if it came with an outcome.
    pub(super) content: Option<Vec<u8>>,
}

/// The order in which classes are written; of equally large ones, that with the first host first.
fn largest_first(ranks: &RankSet) -> (std::cmp::Reverse<u64>, Option<Rank>) {
    (std::cmp::Reverse(ranks.len()), ranks.as_ref().first())
}

/// What is known so far.
pub(super) struct Results {
    /// The hosts that are meant, by rank.
    pub(super) hosts: BTreeMap<Rank, String>,
    /// By outcome.
    classes: BTreeMap<Outcome, Class>,
    ended: RankSet,
    missing: BTreeMap<Rank, String>,
    /// Hosts that are still being reached, and have not begun.
    awaited: RankSet,
    /// When each host gave its last sign of life.
    heard: BTreeMap<Rank, Instant>,
    /// The hosts that were silent in the last command, and have said nothing in this one.
    suspects: RankSet,
    /// Hosts that count as missing for their silence.
    silent: RankSet,
    /// Hosts that have counted as missing for their silence, may be there all the same, and have
    /// not told their outcome.
    doubtful: RankSet,
    /// Hosts that have given a sign of life.
    has_spoken: RankSet,
    /// Whether an output was printed of which a part was lost.
    pub(super) is_cut: bool,
}

impl Results {
    pub(super) fn new(hosts: BTreeMap<Rank, String>, now: Instant) -> Self {
        let heard = hosts.keys().map(|&rank| (rank, now)).collect();
        let (classes, missing) = (BTreeMap::new(), BTreeMap::new());
        let [ended, awaited, suspects, silent, doubtful, has_spoken] =
            std::array::from_fn(|_| RankSet::new());
        Self {
            hosts,
            classes,
            ended,
            missing,
            awaited,
            heard,
            suspects,
            silent,
            doubtful,
            has_spoken,
            is_cut: false,
        }
    }

    /// These hosts are still being reached: their silence means nothing.
    pub(super) fn await_start(&mut self, ranks: &RankSet) {
        self.awaited.union_with(ranks.as_ref());
    }

    /// These hosts have been reached, and have begun: also those that were lost before.
    pub(super) fn has_begun(&mut self, ranks: &RankSet, now: Instant) {
        self.awaited.subtract(ranks.as_ref());
        self.missing.retain(|&rank, _| !ranks.contains(rank));
        self.heard.extend(ranks.iter().map(|rank| (rank, now)));
    }

    /// No host is reached any more: those that were to be have told nothing from now on.
    pub(super) fn await_no_more(&mut self, now: Instant) {
        let awaited = std::mem::take(&mut self.awaited);
        self.heard.extend(awaited.iter().map(|rank| (rank, now)));
    }

    /// The hosts that are still being reached.
    pub(super) fn awaited(&self) -> &RankSet {
        &self.awaited
    }

    /// These hosts were silent in the last command: they are waited for briefly.
    pub(super) fn suspect(&mut self, ranks: &RankSet) {
        self.suspects.union_with(ranks.as_ref());
    }

    /// Hosts that count as missing for their silence, and those that have given a sign of life.
    pub(super) fn silence(&self) -> (&RankSet, &RankSet) {
        (&self.silent, &self.has_spoken)
    }

    /// Takes the answer of a wave.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a packet that no agent makes.
    pub(super) fn take(&mut self, answer: &Answer, now: Instant) -> Result<(), Error> {
        self.suspects.subtract(answer.contributors.as_ref());
        self.silent.subtract(answer.contributors.as_ref());
        self.has_spoken.union_with(answer.contributors.as_ref());
        for rank in answer.contributors.iter() {
            if let Some(heard) = self.heard.get_mut(&rank) {
                *heard = now;
            }
        }
        let Some(packet) = &answer.packet else { return Ok(()) };
        for told in Classes::read(packet.values())?.into_classes() {
            let Some(outcome) = Outcome::decode(&told.key) else { continue };
            if matches!(outcome.state, State::Running | State::Told) {
                continue;
            }
            let ranks = told.ranks.difference(self.ended.as_ref());
            if ranks.is_empty() {
                continue;
            }
            self.ended.union_with(ranks.as_ref());
            self.doubtful.subtract(ranks.as_ref());
            for rank in ranks.iter() {
                self.missing.remove(&rank);
            }
            let none = || Class { outcome, ranks: RankSet::new(), content: None };
            let class = self.classes.entry(outcome).or_insert_with(none);
            class.ranks.union_with(ranks.as_ref());
            if class.content.is_none() && told.content.len() as u64 == outcome.bytes() {
                class.content = Some(told.content);
            }
        }
        Ok(())
    }

    /// These hosts will not answer.
    pub(super) fn lose(&mut self, ranks: &RankSet, reason: &str) {
        self.awaited.subtract(ranks.as_ref());
        self.doubtful.subtract(ranks.as_ref());
        for rank in ranks.difference(self.ended.as_ref()).iter() {
            if self.hosts.contains_key(&rank) {
                self.missing
                    .entry(rank)
                    .or_insert_with(|| sapwood_command_line::exit::one_line(reason));
            }
        }
    }

    /// Hosts that have been silent for too long count as missing.
    pub(super) fn lose_silent(&mut self, now: Instant) {
        for rank in self.running().difference(self.awaited.as_ref()).iter() {
            let heard = self.heard.get(&rank).copied().unwrap_or(now);
            let is_suspect = self.suspects.contains(rank);
            let limit = if is_suspect { SUSPECT_SILENCE_MAX } else { SILENCE_MAX };
            if now.saturating_duration_since(heard) >= limit {
                let before = if is_suspect { ", and none in the last command" } else { "" };
                let reason = format!("gave no answer for {} s{before}", limit.as_secs());
                self.missing.insert(rank, reason);
                self.silent.insert(rank);
                self.doubtful.insert(rank);
            }
        }
    }

    /// All hosts that are meant.
    pub(super) fn everyone(&self) -> RankSet {
        self.hosts.keys().copied().collect()
    }

    /// The hosts that have neither ended nor been lost.
    pub(super) fn running(&self) -> RankSet {
        let lost: RankSet = self.missing.keys().copied().collect();
        self.everyone().difference(self.ended.as_ref()).difference(lost.as_ref())
    }

    /// Hosts that may still tell an outcome: those that run, and those that are missing for their
    /// silence alone.
    pub(super) fn asked(&self) -> RankSet {
        let mut asked = self.running();
        asked.union_with(self.doubtful.as_ref());
        asked
    }

    pub(super) fn ended(&self) -> &RankSet {
        &self.ended
    }

    /// Whether nothing more will come.
    pub(super) fn is_complete(&self) -> bool {
        self.ended.len() + self.missing.len() as u64 >= self.hosts.len() as u64
    }

    /// The classes, the largest first; of equally large ones, that with the first host first.
    pub(super) fn classes(&self) -> Vec<Class> {
        let mut classes: Vec<Class> = self.classes.values().cloned().collect();
        classes.sort_by_key(|class| largest_first(&class.ranks));
        classes
    }

    /// Each host that has told its outcome, with the bytes that its command wrote.
    pub(super) fn written(&self) -> impl Iterator<Item = (Rank, u64)> {
        self.classes.values().flat_map(|class| {
            let bytes = class.outcome.bytes();
            class.ranks.iter().map(move |rank| (rank, bytes))
        })
    }

    /// Equal outputs with their hosts, the largest first. Standard outputs (0) are equal only where
    /// the commands ended in the same way; standard error (1) is compared by itself.
    pub(super) fn sheets(&self, which: usize) -> Vec<Sheet> {
        let mut sheets: BTreeMap<(Option<State>, Digest), Sheet> = BTreeMap::new();
        for class in self.classes.values() {
            let sheet = class.sheet(which);
            let state = (which == 0).then_some(class.outcome.state);
            match sheets.entry((state, sheet.digest)) {
                Entry::Vacant(entry) => drop(entry.insert(sheet)),
                Entry::Occupied(mut entry) => {
                    let all = entry.get_mut();
                    all.ranks.union_with(sheet.ranks.as_ref());
                    all.content = all.content.take().or(sheet.content);
                }
            }
        }
        let mut sheets: Vec<Sheet> = sheets.into_values().collect();
        sheets.sort_by_key(|sheet| largest_first(&sheet.ranks));
        sheets
    }

    /// The hosts that are missing, by reason.
    pub(super) fn missing(&self) -> Absence {
        let each = self.missing.iter().map(|(&rank, reason)| (rank, &**reason));
        by_reason(each, |rank| self.hosts.get(&rank).cloned().unwrap_or_default())
    }

    /// Hosts by rank, as a nodeset.
    pub(super) fn nodes(&self, ranks: &RankSet) -> NodeSet {
        ranks.iter().filter_map(|rank| self.hosts.get(&rank).cloned()).collect()
    }

    /// The hosts whose outcome is such.
    pub(super) fn with_state(&self, is_such: impl Fn(State) -> bool) -> RankSet {
        let mut ranks = RankSet::new();
        for class in self.classes.values().filter(|class| is_such(class.outcome.state)) {
            ranks.union_with(class.ranks.as_ref());
        }
        ranks
    }

    /// The code with which the command ends: the largest of all hosts', where a time-out counts as
    /// 124 and, if more are missing than are accepted, those as 255.
    pub(super) fn exit_code(&self, accepted: usize) -> u8 {
        let code = |state: State| match state {
            State::Running | State::Told => 0,
            State::Exited(status) | State::NotStarted(status) => status.clamp(0, 255) as u8,
            State::Killed(signal) => (128 + signal).clamp(0, 255) as u8,
            State::TimedOut => TIMEOUT,
        };
        let worst = self.classes.values().map(|class| code(class.outcome.state)).max().unwrap_or(0);
        let absent = self.missing.len() + self.running().len() as usize;
        if absent > accepted { UNREACHED } else { worst }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use sapwood::{Packet, Values};

    use super::*;
    use crate::protocol::Digest;

    pub(crate) fn answer(parts: &[(Outcome, &[u8], RankSet)]) -> Answer {
        let mut ranges: Vec<u32> = Vec::new();
        let mut counts = Vec::new();
        let mut contributors = RankSet::new();
        for (_, _, ranks) in parts {
            let list = ranks.as_ref();
            counts.push(list.ranges().len() as u32);
            for rank in list.ranges() {
                ranges.extend(rank);
            }
            contributors.union_with(list);
        }
        let keys: Vec<_> = parts.iter().map(|(outcome, _, _)| outcome.encode()).collect();
        let contents: Vec<_> = parts.iter().map(|(_, content, _)| content).collect();
        let values = Values::new().array(&counts).array(&ranges).strings(&keys).strings(&contents);
        let packet = Some(Packet::new(1, 100, values));
        Answer { stream: 1, wave: 0, packet, contributors, missing: Vec::new(), is_late: false }
    }

    pub(crate) fn exited(status: i32, output: &[u8]) -> Outcome {
        let digest = Digest { length: output.len() as u64, hash: [0; 32] };
        Outcome { state: State::Exited(status), output: digest, errors: Digest::default() }
    }

    pub(crate) fn hosts(count: u32) -> BTreeMap<Rank, String> {
        (0..count).map(|rank| (rank, format!("n{rank}"))).collect()
    }

    #[test]
    fn outcomes_add_up_over_waves_and_count_once() {
        let now = Instant::now();
        let mut results = Results::new(hosts(4), now);
        let yes = (exited(0, b"yes"), &b"yes"[..], RankSet::range(0, 1));
        let running = (Outcome::bare(State::Running), &b""[..], RankSet::range(2, 3));
        results.take(&answer(&[yes.clone(), running]), now).unwrap();
        assert_eq!(results.running(), RankSet::range(2, 3));
        let late = (exited(0, b"yes"), &b"yes"[..], RankSet::range(1, 2));
        results.take(&answer(&[late]), now).unwrap();
        results.lose(&RankSet::range(2, 3), "gone");
        assert!(results.is_complete());
        let classes = results.classes();
        assert_eq!((classes.len(), classes[0].ranks.len()), (1, 3));
        assert_eq!(classes[0].sheet(0).content.as_deref(), Some(&b"yes"[..]));
        assert_eq!(classes[0].sheet(1).content.as_deref(), Some(&b""[..]));
        assert_eq!(results.missing(), [(RankSet::range(3, 3), "gone".to_string())]);
        assert_eq!((results.exit_code(0), results.exit_code(1)), (255, 0));
    }

    #[test]
    fn outputs_are_folded_each_on_its_own() {
        let now = Instant::now();
        let mut results = Results::new(hosts(4), now);
        let digest = |byte: u8| Digest { length: 1, hash: [byte; 32] };
        let part = |rank, status, errors| {
            let outcome = Outcome {
                state: State::Exited(status),
                output: digest(b'o'),
                errors: digest(errors),
            };
            (outcome, if rank == 3 { &b"oe"[..] } else { b"" }, RankSet::range(rank, rank))
        };
        // The same output everywhere, but one other status and one other word of error.
        let parts = [part(0, 0, b'e'), part(1, 1, b'e'), part(2, 0, b'f'), part(3, 0, b'e')];
        results.take(&answer(&parts), now).unwrap();
        let ranks = |which| {
            let sheets = results.sheets(which);
            sheets.iter().map(|sheet| sheet.ranks.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            (ranks(0), ranks(1)),
            (vec!["0,2-3".into(), "1".into()], vec!["0-1,3".into(), "2".into()])
        );
        assert_eq!(results.sheets(0)[0].content.as_deref(), Some(&b"o"[..]));
        assert_eq!(results.sheets(1)[0].content.as_deref(), Some(&b"e"[..]));
    }

    #[test]
    fn the_worst_outcome_decides_the_exit_code() {
        let now = Instant::now();
        let code = |outcomes: &[State]| {
            let mut results = Results::new(hosts(outcomes.len() as u32), now);
            for (rank, &state) in (0..).zip(outcomes) {
                let part = (Outcome::bare(state), &b""[..], RankSet::range(rank, rank));
                results.take(&answer(&[part]), now).unwrap();
            }
            results.exit_code(0)
        };
        assert_eq!(code(&[State::Exited(0), State::Exited(3)]), 3);
        assert_eq!(code(&[State::Exited(1), State::TimedOut]), 124);
        assert_eq!(code(&[State::Exited(127), State::TimedOut]), 127);
        assert_eq!(code(&[State::Killed(9)]), 137);
        assert_eq!(code(&[State::NotStarted(126)]), 126);
    }

    #[test]
    fn silence_makes_a_host_missing_until_it_speaks() {
        let now = Instant::now();
        let mut results = Results::new(hosts(1), now);
        results.lose_silent(now + SILENCE_MAX);
        assert!(results.is_complete());
        let part = (exited(0, b""), &b""[..], RankSet::range(0, 0));
        results.take(&answer(&[part]), now).unwrap();
        assert!(results.is_complete() && results.missing().is_empty());
    }

    #[test]
    fn a_silent_host_is_asked_until_it_tells_its_outcome_or_is_lost() {
        let now = Instant::now();
        let mut results = Results::new(hosts(2), now);
        let (first, both) = (RankSet::range(0, 0), RankSet::range(0, 1));
        results.lose_silent(now + SILENCE_MAX);
        assert_eq!((results.running(), results.asked()), (RankSet::new(), both.clone()));
        let running = (Outcome::bare(State::Running), &b""[..], first.clone());
        results.take(&answer(&[running]), now).unwrap();
        assert_eq!(results.asked(), both, "it has said something, and not how it ended");
        results.lose(&RankSet::range(1, 1), "closed");
        assert_eq!(results.asked(), first);
        results.take(&answer(&[(exited(0, b""), &b""[..], first)]), now).unwrap();
        assert_eq!(results.asked(), RankSet::new());
    }

    #[test]
    fn hosts_that_are_still_being_reached_are_not_silent() {
        let now = Instant::now();
        let mut results = Results::new(hosts(3), now);
        let others = RankSet::range(1, 2);
        results.await_start(&others);
        results.lose_silent(now + SILENCE_MAX);
        assert_eq!((results.running(), results.awaited()), (others.clone(), &others));
        let begun = now + SILENCE_MAX;
        results.has_begun(&RankSet::range(1, 1), begun);
        results.lose(&RankSet::range(2, 2), "closed");
        assert!(results.awaited().is_empty());
        results.lose_silent(begun + SILENCE_MAX / 2);
        assert_eq!(results.running(), RankSet::range(1, 1));
        results.lose_silent(begun + SILENCE_MAX);
        let silent: RankSet = [0, 1].into_iter().collect();
        assert_eq!((results.is_complete(), results.silence().0), (true, &silent));
    }

    #[test]
    fn who_was_silent_in_the_last_command_is_waited_for_briefly_and_taken_back() {
        let now = Instant::now();
        let mut results = Results::new(hosts(2), now);
        let (first, second) = (RankSet::range(0, 0), RankSet::range(1, 1));
        results.suspect(&first);
        results.lose_silent(now + SUSPECT_SILENCE_MAX);
        assert_eq!(results.running(), second, "the other one has its usual time");
        let said = results.missing();
        assert!(said[0].1.contains("2 s, and none in the last command"), "{said:?}");
        assert_eq!(results.silence(), (&first, &RankSet::new()));
        let part = (exited(0, b""), &b""[..], first.clone());
        results.take(&answer(&[part]), now + SUSPECT_SILENCE_MAX).unwrap();
        assert!(results.missing().is_empty());
        assert_eq!(results.silence(), (&RankSet::new(), &first));
    }
}
