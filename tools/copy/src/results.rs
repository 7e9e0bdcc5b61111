//! What is known of the hosts of a copy, and the exit code that it comes to. It does no I/O.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sapwood::{Answer, Classes, Error, Rank, RankSet, Wave};
use sapwood_topology::NodeSet;

use super::protocol::{Complaint, Complaints, Outcome, State};
use sapwood_command_line::exit::UNREACHED;
use sapwood_hosts::absence::{Absence, by_reason, everyone, name_in, nodes};

/// The exit code where something could not be copied.
const FAILED: u8 = 1;

/// What is known so far.
pub(super) struct Results {
    pub(super) hosts: Vec<String>,
    /// Of those for which it is over.
    outcomes: BTreeMap<Rank, Outcome>,
    /// Thousandths of the data that the others have, and a number that changes while they work
    /// alone.
    going: BTreeMap<Rank, (u32, u32)>,
    lacking: RankSet,
    /// Answers to earlier questions do not say which host is lacking something.
    lacking_since: Wave,
    missing: BTreeMap<Rank, String>,
    /// When each host gave its last sign of life.
    heard: Vec<Instant>,
}

impl Results {
    pub(super) fn new(hosts: Vec<String>, now: Instant) -> Self {
        let heard = vec![now; hosts.len()];
        Self {
            hosts,
            outcomes: BTreeMap::new(),
            going: BTreeMap::new(),
            lacking: RankSet::new(),
            lacking_since: 0,
            missing: BTreeMap::new(),
            heard,
        }
    }

    /// A host has said something.
    pub(super) fn hear(&mut self, ranks: &RankSet, now: Instant) {
        for rank in ranks.iter() {
            if let Some(heard) = self.heard.get_mut(rank as usize) {
                *heard = now;
            }
        }
    }

    /// Takes the answer of a wave.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a packet that no agent makes.
    pub(super) fn take(&mut self, answer: &Answer, now: Instant) -> Result<(), Error> {
        self.hear(&answer.contributors, now);
        let Some(packet) = &answer.packet else { return Ok(()) };
        for told in Classes::read(packet.values())?.into_classes() {
            let Some(outcome) = Outcome::decode(&told.key, &told.content) else { continue };
            for rank in told.ranks.iter().filter(|&rank| (rank as usize) < self.hosts.len()) {
                match outcome.state {
                    State::Going(there, alone) => {
                        self.going.insert(rank, (there, alone));
                    }
                    State::Lacking if answer.wave >= self.lacking_since => {
                        self.lacking.insert(rank);
                    }
                    State::Lacking => {}
                    State::Done { .. } => {
                        self.missing.remove(&rank);
                        self.outcomes.insert(rank, outcome.clone());
                    }
                }
            }
        }
        Ok(())
    }

    /// These hosts will not answer.
    pub(super) fn lose(&mut self, ranks: &RankSet, reason: &str) {
        for rank in ranks.iter().filter(|rank| !self.outcomes.contains_key(rank)) {
            if (rank as usize) < self.hosts.len() {
                self.missing
                    .entry(rank)
                    .or_insert_with(|| sapwood_command_line::exit::one_line(reason));
            }
        }
    }

    /// Hosts that have been silent for this time count as missing. Gives them.
    pub(super) fn lose_silent(&mut self, limit: Duration, now: Instant) -> RankSet {
        let is_silent =
            |rank: &Rank| now.saturating_duration_since(self.heard[*rank as usize]) >= limit;
        let silent: RankSet = self.running().iter().filter(is_silent).collect();
        self.lose(&silent, &format!("gave no answer for {} s", limit.as_secs_f64()));
        silent
    }

    /// A host for which it was over counts as missing after all.
    pub(super) fn withdraw(&mut self, rank: Rank, reason: &str) {
        if self.outcomes.remove(&rank).is_some() {
            self.missing.insert(rank, reason.to_string());
        }
    }

    fn everyone(&self) -> RankSet {
        everyone(self.hosts.len())
    }

    /// The hosts for which it is neither over nor lost.
    pub(super) fn running(&self) -> RankSet {
        let over: RankSet = self.missing.keys().chain(self.outcomes.keys()).copied().collect();
        self.everyone().difference(over.as_ref())
    }

    /// The hosts for which it is over.
    pub(super) fn over(&self) -> RankSet {
        self.outcomes.keys().copied().collect()
    }

    /// Whether nothing more will come from any host.
    pub(super) fn is_complete(&self) -> bool {
        self.running().is_empty()
    }

    /// Hosts that lack something though everything was said, once all others are done.
    pub(super) fn all_lacking(&self) -> Option<RankSet> {
        let running = self.running();
        let lacking = running.difference(running.difference(self.lacking.as_ref()).as_ref());
        (!lacking.is_empty() && lacking == running).then_some(lacking)
    }

    /// All running hosts are asked once more; only answers from this wave on count.
    pub(super) fn ask_again(&mut self, from: Wave) {
        self.lacking.clear();
        self.lacking_since = from;
    }

    /// What went wrong on a host, besides what it has told.
    pub(super) fn complain(&mut self, rank: Rank, complaints: &Complaints) {
        if let Some(outcome) = self.outcomes.get_mut(&rank) {
            outcome.complaints.append(complaints);
        }
    }

    /// The outcome of a host, if it is over there.
    pub(super) fn outcome(&self, rank: Rank) -> Option<&Outcome> {
        self.outcomes.get(&rank)
    }

    /// A number that changes when something goes on at a host.
    pub(super) fn progress(&self) -> u64 {
        let going = self.going.values();
        let going: u64 = going.map(|&(there, alone)| u64::from(there) + u64::from(alone)).sum();
        going + 1000 * (self.outcomes.len() + self.missing.len()) as u64
    }

    /// The least and the most thousandths of the data that a host has which is not missing.
    pub(super) fn thousandths(&self) -> (u32, u32) {
        let each = self.everyone();
        let each = each.iter().filter(|rank| !self.missing.contains_key(rank)).map(|rank| {
            let going = self.going.get(&rank).map_or(0, |&(there, _)| there);
            if self.outcomes.contains_key(&rank) { 1000 } else { going }
        });
        each.fold((1000, 0), |(least, most), it| (least.min(it), most.max(it)))
    }

    /// Hosts by rank, as a nodeset.
    pub(super) fn nodes(&self, ranks: &RankSet) -> NodeSet {
        nodes(&self.hosts, ranks)
    }

    /// The hosts for which it is over and nothing went wrong.
    pub(super) fn whole(&self) -> RankSet {
        let is_whole = |(_, outcome): &(&Rank, &Outcome)| outcome.complaints.is_empty();
        self.outcomes.iter().filter(is_whole).map(|(&rank, _)| rank).collect()
    }

    /// The hosts on which something went wrong.
    pub(super) fn failed(&self) -> RankSet {
        self.over().difference(self.whole().as_ref())
    }

    /// The hosts that are missing, by reason.
    pub(super) fn missing(&self) -> Absence {
        let each = self.missing.iter().map(|(&rank, reason)| (rank, &**reason));
        by_reason(each, name_in(&self.hosts))
    }

    /// What went wrong, with the hosts on which it did, and how much more there was on each.
    pub(super) fn complaints(&self) -> (BTreeMap<Complaint, RankSet>, BTreeMap<u64, RankSet>) {
        let (mut told, mut untold) = (BTreeMap::new(), BTreeMap::new());
        for (&rank, outcome) in &self.outcomes {
            let complaints = &outcome.complaints;
            for complaint in &complaints.first {
                let ranks: &mut RankSet = told.entry(complaint.clone()).or_default();
                ranks.insert(rank);
            }
            let more = complaints.count.saturating_sub(complaints.first.len() as u64);
            if more > 0 {
                let ranks: &mut RankSet = untold.entry(more).or_default();
                ranks.insert(rank);
            }
        }
        (told, untold)
    }

    /// Special files that hosts left out.
    pub(super) fn left_out(&self) -> BTreeMap<String, RankSet> {
        let mut left_out: BTreeMap<String, RankSet> = BTreeMap::new();
        for (&rank, outcome) in &self.outcomes {
            for text in &outcome.complaints.left_out {
                left_out.entry(text.clone()).or_default().insert(rank);
            }
        }
        left_out
    }

    /// The code with which the command ends.
    pub(super) fn exit_code(&self, accepted: usize, own_complaints: &Complaints) -> u8 {
        let absent = self.missing.len() + self.running().len() as usize;
        match () {
            () if absent > accepted => UNREACHED,
            () if !self.failed().is_empty() || !own_complaints.is_empty() => FAILED,
            () => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood::{Packet, Values};

    use super::*;

    fn answer(wave: Wave, parts: &[(Outcome, RankSet)]) -> Answer {
        let mut ranges: Vec<u32> = Vec::new();
        let mut counts = Vec::new();
        let (mut keys, mut contents) = (Vec::new(), Vec::new());
        let mut contributors = RankSet::new();
        for (outcome, ranks) in parts {
            let list = ranks.as_ref();
            counts.push(list.ranges().len() as u32);
            for range in list.ranges() {
                ranges.extend(range);
            }
            contributors.union_with(list);
            let values = outcome.encode();
            keys.push(values.as_ref().string_bytes(0).unwrap().to_vec());
            contents.push(values.as_ref().string_bytes(1).unwrap().to_vec());
        }
        let values = Values::new().array(&counts).array(&ranges).strings(&keys).strings(&contents);
        let packet = Some(Packet::new(1, 100, values));
        Answer { stream: 1, wave, packet, contributors, missing: Vec::new(), is_late: false }
    }

    fn done(reason: Option<&str>) -> Outcome {
        let mut complaints = Complaints::default();
        if let Some(reason) = reason {
            complaints.add("/x", reason);
        }
        Outcome { state: State::Done { files: 1, bytes: 2 }, complaints }
    }

    fn hosts(count: usize) -> Vec<String> {
        (0..count).map(|place| format!("n{place}")).collect()
    }

    #[test]
    fn hosts_that_fail_and_hosts_that_are_missing_have_codes_of_their_own() {
        let now = Instant::now();
        let mut results = Results::new(hosts(4), now);
        let parts =
            [(done(None), RankSet::range(0, 1)), (done(Some("full")), RankSet::range(2, 2))];
        results.take(&answer(0, &parts), now).unwrap();
        assert_eq!(results.running(), RankSet::range(3, 3));
        results.lose(&RankSet::range(2, 3), "gone");
        assert!(results.is_complete());
        let none = Complaints::default();
        assert_eq!((results.exit_code(0, &none), results.exit_code(1, &none)), (255, 1));
        assert_eq!(
            (results.whole(), results.failed()),
            (RankSet::range(0, 1), RankSet::range(2, 2))
        );
        assert_eq!(results.complaints().0.len(), 1);
        // One says that it has sent everything, and not everything comes.
        results.withdraw(0, "lost");
        assert!(results.is_complete() && results.outcome(0).is_none());
        assert_eq!((results.whole(), results.exit_code(1, &none)), (RankSet::range(1, 1), 255));
    }

    #[test]
    fn who_lacks_something_is_asked_again_once() {
        let now = Instant::now();
        let mut results = Results::new(hosts(2), now);
        let lacking = Outcome { state: State::Lacking, complaints: Complaints::default() };
        let both = answer(3, &[(lacking.clone(), RankSet::range(0, 1))]);
        results.take(&answer(2, &[(lacking, RankSet::range(0, 0))]), now).unwrap();
        assert_eq!(results.all_lacking(), None);
        results.take(&both, now).unwrap();
        assert_eq!(results.all_lacking(), Some(RankSet::range(0, 1)));
        results.ask_again(4);
        results.take(&both, now).unwrap();
        assert_eq!(results.all_lacking(), None);
    }

    #[test]
    fn silence_makes_a_host_missing() {
        let (now, limit) = (Instant::now(), Duration::from_secs(9));
        let mut results = Results::new(hosts(2), now);
        results.hear(&RankSet::range(0, 0), now + limit);
        assert_eq!(results.lose_silent(limit, now + limit), RankSet::range(1, 1));
        assert_eq!(results.lose_silent(limit, now + limit), RankSet::new());
    }
}
