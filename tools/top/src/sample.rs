//! What one wave has brought: the table of the hosts that answered, and those that did not and why.
//!
//! Owns the settling of a wave: it is over when all that can answer have, or when silent hosts have
//! been waited for long enough. It reads answers and is told the time; it does no I/O.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use sapwood::{Answer, Rank, RankSet, Wave};
use sapwood_topology::NodeSet;

use super::reduction::table_of;
use super::table::Table;
use sapwood_command_line::exit::one_line;
use sapwood_hosts::absence::{Absence, by_reason, everyone, name_in, nodes};

/// For this time parts that come late are taken in: processes at each level of the tree wait
/// equally long, and what a lower one sends when its time is over passes an upper one whose time
/// is, too.
pub(super) const GRACE_MAX: Duration = Duration::from_millis(250);

/// The outcome of one wave.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Counted from 1.
    pub(crate) number: u64,
    /// When it was settled.
    pub(crate) time: SystemTime,
    /// From the question until then.
    pub(crate) took: Duration,
    /// The names of all hosts; back-end r is the host at place r.
    pub(crate) hosts: Rc<Vec<String>>,
    pub(crate) answered: RankSet,
    /// The hosts that have not answered, by reason, in their order.
    pub(crate) missing: Absence,
    pub(crate) table: Table,
}

impl Sample {
    /// The outcome where no host was reached, for these reasons.
    pub(super) fn of_absent(hosts: Vec<String>, absent: &Absence) -> Self {
        let missing = absent.iter().map(|(ranks, reason)| (ranks.clone(), one_line(reason)));
        Self {
            number: 1,
            time: SystemTime::now(),
            took: Duration::ZERO,
            hosts: Rc::new(hosts),
            answered: RankSet::new(),
            missing: missing.collect(),
            table: Table::new(0),
        }
    }

    /// Hosts by rank, as a nodeset.
    pub(crate) fn nodes(&self, ranks: &RankSet) -> NodeSet {
        nodes(&self.hosts, ranks)
    }

    /// A host's name.
    pub(crate) fn host(&self, rank: Rank) -> &str {
        self.hosts.get(rank as usize).map_or("?", |host| host)
    }

    /// How many hosts have not answered.
    pub(crate) fn missing_count(&self) -> u64 {
        self.missing.iter().map(|(ranks, _)| ranks.len()).sum()
    }
}

/// The waves of one watch, of which one is under way at a time.
pub(super) struct Waves {
    hosts: Rc<Vec<String>>,
    k: u32,
    timeout: Duration,
    /// Hosts that are gone, and why.
    lost: BTreeMap<Rank, String>,
    under_way: Option<UnderWay>,
    settled: u64,
}

struct UnderWay {
    wave: Wave,
    asked: Instant,
    first_answer: Option<Instant>,
    table: Table,
    answered: RankSet,
    /// What the tree said of the hosts that are not in it.
    reasons: Absence,
}

impl Waves {
    pub(super) fn new(hosts: Vec<String>, k: u32, timeout: Duration) -> Self {
        let hosts = Rc::new(hosts);
        Self { hosts, k, timeout, lost: BTreeMap::new(), under_way: None, settled: 0 }
    }

    /// These hosts are gone.
    pub(super) fn lose(&mut self, ranks: &RankSet, reason: &str) {
        for rank in ranks.iter().filter(|rank| (*rank as usize) < self.hosts.len()) {
            self.lost.entry(rank).or_insert_with(|| one_line(reason));
        }
    }

    /// These hosts are there, again.
    pub(super) fn find(&mut self, ranks: &RankSet) {
        self.lost.retain(|rank, _| !ranks.contains(*rank));
    }

    pub(super) fn all_are_lost(&self) -> bool {
        self.lost.len() >= self.hosts.len()
    }

    /// Whether the last wave is settled.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// A wave has been asked.
    pub(super) fn begin(&mut self, wave: Wave, now: Instant) {
        self.under_way = Some(UnderWay {
            wave,
            asked: now,
            first_answer: None,
            table: Table::new(self.k),
            answered: RankSet::new(),
            reasons: Vec::new(),
        });
    }

    /// Takes an answer, or a late part of one. Those of waves that are settled say nothing any more
    /// but that these hosts are there.
    ///
    /// # Errors
    /// What is wrong with it, if no process of ours has made it.
    pub(super) fn take(&mut self, answer: &Answer, now: Instant) -> Result<(), String> {
        self.find(&answer.contributors);
        let Some(wave) = self.under_way.as_mut().filter(|wave| wave.wave == answer.wave) else {
            return Ok(());
        };
        if !answer.is_late {
            wave.first_answer = Some(now);
            wave.reasons = answer
                .missing
                .iter()
                .map(|missing| (missing.ranks.clone(), missing.reason.clone()))
                .collect();
        }
        if let Some(packet) = &answer.packet {
            wave.table.merge(&table_of(packet, self.k)?)?;
            wave.answered.union_with(answer.contributors.as_ref());
        }
        Ok(())
    }

    /// When the wave under way is to be looked at next, if nothing comes.
    pub(super) fn due(&self) -> Option<Instant> {
        let wave = self.under_way.as_ref()?;
        let grace = GRACE_MAX.min(self.timeout / 2);
        Some(wave.first_answer.unwrap_or(wave.asked + self.timeout) + grace)
    }

    /// The outcome of the wave under way, if it is over.
    pub(super) fn settle(&mut self, now: Instant) -> Option<Sample> {
        let is_due = self.due()? <= now;
        let wave = self.under_way.as_ref()?;
        let lost = self.lost.keys().filter(|rank| !wave.answered.contains(**rank)).count();
        let is_complete = wave.answered.len() + lost as u64 >= self.hosts.len() as u64;
        if !is_complete && !is_due {
            return None;
        }
        let wave = self.under_way.take()?;
        self.settled += 1;
        Some(Sample {
            number: self.settled,
            time: SystemTime::now(),
            took: now.saturating_duration_since(wave.asked),
            hosts: Rc::clone(&self.hosts),
            missing: self.missing(&wave),
            answered: wave.answered,
            table: wave.table,
        })
    }

    fn missing(&self, wave: &UnderWay) -> Absence {
        let silent = everyone(self.hosts.len()).difference(wave.answered.as_ref());
        let each = silent.iter().map(|rank| {
            let told = || wave.reasons.iter().find(|(ranks, _)| ranks.contains(rank));
            let reason = match (self.lost.get(&rank), told()) {
                (Some(reason), _) => reason.clone(),
                (None, Some((_, reason))) => reason.clone(),
                (None, None) => format!("no answer within {} ms", self.timeout.as_millis()),
            };
            (rank, one_line(&reason))
        });
        by_reason(each, name_in(&self.hosts))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use sapwood::Packet;

    use super::*;
    use crate::metric::METRICS;

    const TIMEOUT: Duration = Duration::from_millis(500);

    /// Four hosts, n0 to n3, of which some have answered with their rank for every metric.
    pub(crate) fn sample_of(answered: &[Rank]) -> Sample {
        let now = Instant::now();
        let mut waves = waves();
        waves.begin(0, now);
        for &rank in answered {
            let arrival = if rank == answered[0] { Arrival::First } else { Arrival::Late };
            waves.take(&answer(0, rank, arrival), now).expect("a host's values");
        }
        waves.settle(now + TIMEOUT * 2).expect("the time is over")
    }

    fn waves() -> Waves {
        Waves::new((0..4).map(|place| format!("n{place}")).collect(), 2, TIMEOUT)
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Arrival {
        First,
        Late,
    }

    fn answer(wave: Wave, rank: Rank, arrival: Arrival) -> Answer {
        let mut packet = Packet::new(1, 100, vec![f64::from(rank); METRICS]);
        packet.contributors = RankSet::range(rank, rank);
        let contributors = packet.contributors.clone();
        let packet = Some(packet);
        let is_late = arrival == Arrival::Late;
        Answer { stream: 1, wave, packet, contributors, missing: Vec::new(), is_late }
    }

    #[test]
    fn a_wave_is_over_when_all_who_can_have_answered() {
        let now = Instant::now();
        let mut waves = waves();
        waves.lose(&RankSet::range(3, 3), "could not\nbe reached");
        waves.begin(0, now);
        for rank in 0..3 {
            assert!(waves.settle(now).is_none());
            let arrival = if rank == 0 { Arrival::First } else { Arrival::Late };
            waves.take(&answer(0, rank, arrival), now).expect("a host's values");
        }
        let sample = waves.settle(now).expect("all have answered");
        assert_eq!(sample.answered, RankSet::range(0, 2));
        assert_eq!(sample.missing, [(RankSet::range(3, 3), "could not be reached".to_string())]);
        assert_eq!(sample.table.columns()[0].moments.count, 3);
        assert!(waves.is_idle() && waves.settle(now).is_none());
    }

    #[test]
    fn a_silent_host_is_named_when_the_grace_of_the_first_answer_is_over() {
        let now = Instant::now();
        let mut waves = waves();
        waves.begin(0, now);
        waves.take(&answer(0, 1, Arrival::First), now).expect("a host's values");
        assert!(waves.settle(now + GRACE_MAX / 2).is_none());
        // What comes late is taken in.
        waves.take(&answer(0, 0, Arrival::Late), now).expect("a host's values");
        let sample = waves.settle(now + GRACE_MAX).expect("the time is over");
        assert_eq!(sample.nodes(&sample.answered).to_string(), "n[0-1]");
        let silent = (RankSet::range(2, 3), "no answer within 500 ms".to_string());
        assert_eq!(sample.missing, [silent]);
    }

    #[test]
    fn without_any_answer_all_are_missing_in_time() {
        let now = Instant::now();
        let mut waves = waves();
        waves.begin(7, now);
        assert!(waves.settle(now + TIMEOUT).is_none());
        let sample = waves.settle(now + TIMEOUT + GRACE_MAX).expect("the time is over");
        assert_eq!((sample.missing_count(), sample.answered.len()), (4, 0));
    }

    #[test]
    fn an_old_answer_changes_nothing_but_shows_that_a_host_is_there() {
        let now = Instant::now();
        let mut waves = waves();
        waves.lose(&RankSet::range(0, 3), "gone");
        assert!(waves.all_are_lost());
        waves.begin(1, now);
        waves.take(&answer(0, 2, Arrival::Late), now).expect("a host's values");
        assert!(!waves.all_are_lost());
        let sample = waves.settle(now + TIMEOUT + GRACE_MAX).expect("the time is over");
        assert_eq!(sample.answered.len(), 0);
        assert_eq!(sample.missing[1].1, "no answer within 500 ms");
    }
}
