//! The oracle of one stream: every answer is checked when it comes, and at the end that nothing is
//! missing.
//!
//! The rules are those of the simulator: an answer's value is that of its stated contributors; no
//! back-end is in a wave twice; a wave's first answer names every other member with a reason; waves
//! come in order; at the end every contribution of a surviving back-end has come exactly once.

use std::collections::BTreeMap;

use sapwood::{Answer, RankSet, Wave, WaveRule};

use super::contribution::Kind;

/// Violations that are kept in words; more are only counted.
const VIOLATIONS_KEPT_MAX: usize = 20;

/// What has come on one stream.
#[derive(Debug)]
pub(super) struct Ledger {
    kind: Kind,
    members: RankSet,
    /// All waves below this one have had their first answer.
    next: Wave,
    /// All waves below this one are complete.
    complete_until: Wave,
    /// The back-ends that have come in each wave from there on.
    entered: BTreeMap<Wave, RankSet>,
    pub(super) counts: Counts,
    /// What went against the rules, in words.
    pub(super) violations: Vec<String>,
}

/// Counted answers of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub answers: u64,
    pub complete: u64,
    pub late: u64,
    pub contributions: u64,
    pub violations: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.answers += other.answers;
        self.complete += other.complete;
        self.late += other.late;
        self.contributions += other.contributions;
        self.violations += other.violations;
    }
}

/// Contributions that have not come.
struct Lacking {
    /// The first wave that lacks some.
    wave: Wave,
    /// Which it lacks.
    ranks: RankSet,
    /// How many they are in all waves.
    count: u64,
}

impl Ledger {
    /// An empty one for a stream to these back-ends.
    pub(super) fn new(kind: Kind, members: RankSet) -> Self {
        Self {
            kind,
            members,
            next: 0,
            complete_until: 0,
            entered: BTreeMap::new(),
            counts: Counts::default(),
            violations: Vec::new(),
        }
    }

    /// Checks an answer and enters it. `has_lost` says whether a back-end has been lost so lately
    /// that large packets may have lost it in their middle; `killed` are those that lack for good.
    pub(super) fn enter(&mut self, answer: &Answer, has_lost: bool, killed: &RankSet) {
        self.counts.answers += 1;
        self.counts.contributions += answer.contributors.len();
        self.counts.late += u64::from(answer.is_late);
        if answer.packet.is_some() {
            if let Err(fault) = self.kind.check(answer) {
                self.violated(answer.wave, &format!("of {}: {fault}", answer.contributors));
            }
        } else if !answer.contributors.is_empty() {
            let text = format!("no value, but contributors {}", answer.contributors);
            self.violated(answer.wave, &text);
        }
        if self.kind.wave_rule() != WaveRule::Immediate {
            self.check_order(answer);
            if !answer.is_late {
                self.check_missing(answer);
            }
        }
        self.enter_contributors(answer);
        if self.kind == Kind::LargeSum {
            self.excuse_missing(answer, has_lost, killed);
        }
    }

    /// What comes late of a large folded packet is refused, and a wave that loses a back-end in its
    /// middle has no value: only then may a survivor be missing for good.
    fn excuse_missing(&mut self, answer: &Answer, has_lost: bool, killed: &RankSet) {
        let mut named = RankSet::new();
        answer.missing.iter().for_each(|missing| named.union_with(missing.ranks.as_ref()));
        if named.is_empty() {
            return;
        }
        let survivors = named.difference(killed.as_ref());
        if !has_lost && !survivors.is_empty() {
            let reasons: Vec<&str> = answer.missing.iter().map(|m| m.reason.as_str()).collect();
            let text =
                format!("lacks {survivors}, and no back-end is lost: {}", reasons.join("; "));
            self.violated(answer.wave, &text);
        }
        if let Some(entered) = self.entered.get_mut(&answer.wave) {
            entered.union_with(named.as_ref());
        }
    }

    /// First answers come in the order of their waves. A late part is late at the node where its
    /// wave had gone on, which may be before the wave's first answer is here.
    fn check_order(&mut self, answer: &Answer) {
        if answer.is_late {
            return;
        }
        let next = self.next;
        if answer.wave != next {
            self.violated(answer.wave, &format!("came where wave {next} was due"));
        }
        self.next = answer.wave + 1;
    }

    /// Every member of the stream is a contributor or named with a reason, and none is both.
    fn check_missing(&mut self, answer: &Answer) {
        let mut named = RankSet::new();
        for missing in &answer.missing {
            if missing.reason.trim().is_empty() {
                self.violated(answer.wave, &format!("no reason for missing {}", missing.ranks));
            }
            named.union_with(missing.ranks.as_ref());
        }
        if named.as_ref().intersects(answer.contributors.as_ref()) {
            let text = format!("{named} missing, {} contributors", answer.contributors);
            self.violated(answer.wave, &text);
        }
        named.union_with(answer.contributors.as_ref());
        let unnamed = self.members.difference(named.as_ref());
        if !unnamed.is_empty() {
            self.violated(answer.wave, &format!("nothing is said of {unnamed}"));
        }
        self.counts.complete += u64::from(answer.is_complete());
    }

    fn enter_contributors(&mut self, answer: &Answer) {
        let wave = answer.wave;
        let strangers = answer.contributors.difference(self.members.as_ref());
        if !strangers.is_empty() {
            self.violated(wave, &format!("{strangers} are no members"));
        }
        let mut again = answer.contributors.clone();
        if wave >= self.complete_until {
            let entered = self.entered.entry(wave).or_default();
            again.intersect_with(entered.as_ref());
            entered.union_with(answer.contributors.as_ref());
        }
        if !again.is_empty() {
            self.violated(wave, &format!("{again} came twice"));
        }
        while self.entered.get(&self.complete_until) == Some(&self.members) {
            self.entered.remove(&self.complete_until);
            self.complete_until += 1;
        }
    }

    /// The contributions of these back-ends that have not come, of that many waves. None if all
    /// have come.
    fn lacking(&self, survivors: &RankSet, waves: Wave) -> Option<Lacking> {
        let mut first = None;
        let mut count = 0;
        let none = RankSet::new();
        for wave in self.complete_until..waves {
            let entered = self.entered.get(&wave).unwrap_or(&none);
            let lacking = survivors.difference(entered.as_ref());
            count += lacking.len();
            if !lacking.is_empty() && first.is_none() {
                first = Some((wave, lacking));
            }
        }
        first.map(|(wave, ranks)| Lacking { wave, ranks, count })
    }

    /// Whether these back-ends' contributions to that many waves have all come.
    pub(super) fn is_whole(&self, survivors: &RankSet, waves: Wave) -> bool {
        self.complete_until >= waves || self.lacking(survivors, waves).is_none()
    }

    /// Says what the end has shown: which are missing, and waves that were not asked for.
    pub(super) fn close(&mut self, survivors: &RankSet, waves: Wave) {
        if let Some(Lacking { wave, ranks, count }) = self.lacking(survivors, waves) {
            let text = format!("{ranks} survived, but never came; {count} such in all waves");
            self.violated(wave, &text);
        }
        let last = self.entered.last_key_value().map(|(wave, _)| *wave);
        if let Some(last) = last.filter(|last| *last >= waves) {
            self.violated(last, &format!("only {waves} waves were asked for"));
        }
    }

    fn violated(&mut self, wave: Wave, what: &str) {
        self.counts.violations += 1;
        if self.violations.len() < VIOLATIONS_KEPT_MAX {
            self.violations.push(format!("{} wave {wave}: {what}", self.kind.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood::{Cause, Missing, Packet, Rank};

    use super::*;
    use crate::contribution::TAG;

    fn ledger() -> Ledger {
        Ledger::new(Kind::Concatenate, RankSet::range(0, 2))
    }

    /// An answer of these ranks that lacks the others, as the network would give it.
    fn answer(wave: Wave, ranks: &[Rank]) -> Answer {
        let contributors: RankSet = ranks.iter().copied().collect();
        let missing = RankSet::range(0, 2).difference(contributors.as_ref());
        let missing = match missing.is_empty() {
            true => Vec::new(),
            false => vec![Missing::new(missing, Cause::Died, "gone")],
        };
        let values = Kind::Concatenate.expected(&contributors, wave);
        Answer {
            stream: 1,
            wave,
            packet: Some(Packet::new(1, TAG, sapwood::Values::new().array(&values))),
            contributors,
            missing,
            is_late: false,
        }
    }

    fn violations(answers: &[Answer]) -> String {
        let mut ledger = ledger();
        answers.iter().for_each(|answer| ledger.enter(answer, true, &RankSet::new()));
        ledger.close(&RankSet::range(0, 1), 2);
        ledger.violations.join("; ")
    }

    #[test]
    fn an_honest_network_is_believed() {
        let mut late = answer(0, &[1]);
        (late.is_late, late.missing) = (true, Vec::new());
        assert_eq!(violations(&[answer(0, &[0, 2]), late, answer(1, &[0, 1, 2])]), "");
    }

    #[test]
    fn a_large_sum_may_lack_a_survivor_only_when_a_back_end_was_lost() {
        let everyone = RankSet::range(0, 2);
        for (has_lost, killed, expected) in [
            (true, RankSet::new(), 0),
            (false, RankSet::new(), 1),
            (false, everyone.clone(), 0),
            (false, RankSet::range(0, 1), 1),
        ] {
            let mut ledger = Ledger::new(Kind::LargeSum, everyone.clone());
            let mut torn = answer(0, &[]);
            torn.packet = None;
            ledger.enter(&torn, has_lost, &killed);
            ledger.close(&everyone.difference(killed.as_ref()), 1);
            assert_eq!(ledger.counts.violations, expected, "{:?}", ledger.violations);
        }
    }

    #[test]
    fn each_rule_that_is_broken_is_named() {
        let whole = || answer(1, &[0, 1, 2]);
        let mut wrong = answer(0, &[0, 1]);
        wrong.contributors.insert(2);
        wrong.missing.clear();
        assert!(violations(&[wrong, whole()]).contains("the value is"));

        let mut again = answer(0, &[1]);
        (again.is_late, again.missing) = (true, Vec::new());
        assert!(violations(&[answer(0, &[0, 1]), again, whole()]).contains("1 came twice"));

        let mut silent = answer(0, &[0, 1]);
        silent.missing.clear();
        assert!(violations(&[silent, whole()]).contains("nothing is said of 2"));

        let mut wordless = answer(0, &[0, 1]);
        wordless.missing[0].reason.clear();
        assert!(violations(&[wordless, whole()]).contains("no reason for missing 2"));

        assert!(violations(&[whole()]).contains("came where wave 0 was due"));
        let lost = violations(&[answer(0, &[0, 2]), whole()]);
        assert!(lost.contains("wave 0: 1 survived, but never came; 1 such"), "{lost}");
        let more = violations(&[answer(0, &[0, 1, 2]), whole(), answer(2, &[0, 1])]);
        assert!(more.contains("only 2 waves were asked for"), "{more}");
    }
}
