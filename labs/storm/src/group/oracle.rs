//! The oracle of the group storm: judges an operation by what the storm did itself.
//!
//! Owns [`Operation`] and its verdict. It uses no code of a member: what members contribute is of
//! `value`, the members that were there of `lives`. These are the rules, for the answers of all
//! members that were asked:
//!
//! 1. No virtual node is in the contributors and in the missing, or in two sets of the missing.
//!    None is named that no process had, and only those that were asked contribute to a reduction
//!    or an all-to-all. A member carries the virtual node of its own and those that others have
//!    left to an heir.
//! 2. A value is right in each byte: the root's, or what the operation makes of exactly the named
//!    contributors (`values`). Only those have one to which it goes.
//! 3. If the root was calm, it has its value, and its answer names each virtual node whose member
//!    it knew and that was calm when it called.
//! 4. If the root was calm, each calm member that it knew contributes, whatever happened to others:
//!    the tree is repaired around them, and broken links are connected anew.
//! 5. What the calm root sent in good time is there at each calm contributor. A root answers a
//!    broadcast when the others have confirmed the value; it has its own answer of a sum first, so
//!    that it must have been left alone until the other member has answered.
//! 6. All members get one result with the same contributors and missing. What is sent to a virtual
//!    node comes to one member.
//! 7. In an all-to-all a calm member has the values of each calm one, if both knew each other.
//!
//! A member is calm in a time if it had joined before, and was neither stopped, killed nor told to
//! leave from shortly before that time to its end, was no heir and had no link cut for long
//! ([`Lives::is_calm`]). A link that was reset once excuses nothing.
//!
//! Contributions belong to processes. A virtual node that was left to an heir stands for what the
//! giver has contributed, or for nothing, since the heir contributes one value for all that it
//! carries: of such an answer both are right.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sapwood::{Rank, RankSet};

use super::collective::{Collective, Flow};
use super::lives::{Lives, ProcessNumber, Span};
use super::value::{Ask, Given};

mod values;

use values::Expected;

/// The deadline that members give each operation.
pub(super) const DEADLINE: Duration = Duration::from_secs(12);
/// A root that has answered within this time leaves the others enough to get what it sent.
const GOOD_TIME: Duration = Duration::from_secs(6);
/// A member that is disturbed this soon after a call may be gone before the call is begun.
const CALL_MARGIN: Duration = Duration::from_millis(500);

/// What one member has said of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    /// When the storm read it.
    pub at: Duration,
    /// How long the member's call took.
    pub took: Duration,
    /// The virtual nodes that the member knew before its call.
    pub known: RankSet,
    /// Those that it carried then.
    pub names: RankSet,
    pub contributors: RankSet,
    /// Those that have not contributed, and why.
    pub missing: Vec<(RankSet, String)>,
    pub value: Option<Given>,
    /// The call failed.
    pub error: Option<String>,
}

/// One operation: what was asked of which processes, and what they said.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub ask: Ask,
    pub issued: Duration,
    pub asked: BTreeSet<ProcessNumber>,
    pub answers: BTreeMap<ProcessNumber, Reported>,
    /// Something was done to a member that had not answered yet.
    pub is_struck: bool,
}

/// What came of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The root was there to the end and misses no virtual node.
    pub is_complete: bool,
    /// What went against the rules, in words.
    pub faults: Vec<String>,
}

impl Operation {
    /// Judges it, when there will be no more answers.
    pub(super) fn judge(&self, lives: &Lives) -> Verdict {
        let names = self.asked.iter().map(|process| lives.name(*process)).collect();
        let mut judge =
            Judge { operation: self, lives, names, expected: Vec::new(), faults: Vec::new() };
        for (process, answer) in &self.answers {
            judge.answer(*process, answer);
        }
        let root = self.answers.iter().find(|(process, answer)| {
            lives.name(**process) == self.ask.root && answer.error.is_none()
        });
        match (self.ask.collective.flow(), root) {
            (Flow::BetweenAll, _) => judge.exchange(),
            (_, Some((process, answer))) => judge.root(*process, answer),
            (_, None) => {}
        }
        judge.agreement();
        let is_complete = root.is_some_and(|(_, answer)| answer.missing.is_empty());
        Verdict { is_complete, faults: judge.faults }
    }

    /// What each member has said, a line for each, to find out why a rule was broken.
    pub(super) fn lines(&self, lives: &Lives) -> Vec<String> {
        let said = |process: &ProcessNumber| match self.answers.get(process) {
            None => "has not answered".to_string(),
            Some(Reported { error: Some(error), .. }) => error.clone(),
            Some(answer) => {
                let missing = answer.missing.iter().map(|(names, why)| format!(", {names}: {why}"));
                format!(
                    "answered at {} ms after {} ms, knew {}, carried {}, has {}{}",
                    answer.at.as_millis(),
                    answer.took.as_millis(),
                    answer.known,
                    answer.names,
                    answer.contributors,
                    missing.collect::<String>()
                )
            }
        };
        let line = |process: &ProcessNumber| {
            let (name, issued) = (lives.name(*process), self.issued.as_millis());
            format!("{} asked at {issued} ms: member {name}: {}", self.ask, said(process))
        };
        self.asked.iter().map(line).collect()
    }

    /// The time from the question to an answer.
    fn span(&self, answer: &Reported) -> Span {
        Span { from: self.issued, until: answer.at }
    }
}

struct Judge<'a> {
    operation: &'a Operation,
    lives: &'a Lives,
    /// The virtual nodes that were asked.
    names: RankSet,
    /// What results must be.
    expected: Vec<Expected>,
    faults: Vec<String>,
}

impl Judge<'_> {
    fn fault(&mut self, name: Rank, text: &str) {
        self.faults.push(format!("{}: member {name}: {text}", self.operation.ask));
    }

    /// Rules 1 and 2.
    fn answer(&mut self, process: ProcessNumber, answer: &Reported) {
        let (lives, name) = (self.lives, self.lives.name(process));
        let span = self.operation.span(answer);
        if let Some(error) = &answer.error {
            if lives.is_calm(process, span) {
                self.fault(name, &format!("the call failed: {error}"));
            }
            return;
        }
        let mut named = answer.contributors.clone();
        for (names, _) in &answer.missing {
            if names.as_ref().intersects(named.as_ref()) {
                let text = format!("{names} is in two sets, the second among the missing: {named}");
                self.fault(name, &text);
            }
            named.union_with(names.as_ref());
        }
        for contributor in answer.contributors.iter() {
            if !lives.had(contributor, span) && !lives.is_inheritable(contributor, answer.at) {
                self.fault(name, &format!("{contributor} contributes, and had no process"));
            }
        }
        let ever = Span { from: Duration::ZERO, until: answer.at };
        if let Some(unknown) = named.iter().find(|named| !lives.had(*named, ever)) {
            self.fault(name, &format!("names {unknown}, which never had a process"));
        }
        if self.operation.ask.collective.flow() != Flow::FromRoot {
            self.strangers(name, answer);
        }
        let is_strange = |each: &Rank| *each != name && !lives.is_inheritable(*each, answer.at);
        if let Some(strange) = answer.names.iter().find(is_strange) {
            self.fault(name, &format!("carries {strange}, which no member has left to another"));
        }
        self.value(process, answer);
    }

    /// Only those that were asked contribute, and those that were left to heirs.
    fn strangers(&mut self, name: Rank, answer: &Reported) {
        let mut strange = answer.contributors.difference(self.names.as_ref());
        strange.subtract(self.lives.inheritable(answer.at).as_ref());
        if !strange.is_empty() {
            let text =
                format!("{} contribute, where {} were asked", answer.contributors, self.names);
            self.fault(name, &text);
        }
    }

    /// Rules 3 to 5.
    fn root(&mut self, root: ProcessNumber, answer: &Reported) {
        let (operation, lives) = (self.operation, self.lives);
        let (ask, issued) = (operation.ask, operation.issued);
        let span = operation.span(answer);
        if !lives.is_calm(root, span) {
            return;
        }
        if answer.value.is_none() && ask.collective != Collective::Send {
            self.fault(ask.root, "the root has no value");
        }
        let mut named = answer.contributors.clone();
        answer.missing.iter().for_each(|(names, _)| named.union_with(names.as_ref()));
        let called = answer.at.saturating_sub(answer.took);
        let to_call = Span { from: issued, until: called.max(issued) + CALL_MARGIN };
        // To itself a root sends only what goes to all.
        let is_sent_to = |process: &&ProcessNumber| {
            **process != root || !matches!(ask.collective, Collective::Send | Collective::Scatter)
        };
        for process in operation.asked.iter().filter(is_sent_to) {
            let name = lives.name(*process);
            let is_known = answer.known.contains(name) || lives.is_settled(*process, issued);
            if is_known && lives.is_calm(*process, to_call) && !named.contains(name) {
                self.fault(ask.root, &format!("its answer does not name {name}"));
            } else if is_known
                && lives.is_calm(*process, span)
                && !answer.contributors.contains(name)
            {
                self.missing(ask.root, answer, name);
            }
        }
        if answer.at <= issued + GOOD_TIME && ask.collective.flow() != Flow::ToRoot {
            self.receivers(root, answer);
        }
    }

    fn missing(&mut self, name: Rank, answer: &Reported, missing: Rank) {
        let why = answer.missing.iter().find(|(names, _)| names.contains(missing));
        let why = why.map_or("not named", |(_, why)| why.as_str());
        self.fault(name, &format!("{missing} was calm, and is missing: {why}"));
    }

    /// Rule 5.
    fn receivers(&mut self, root: ProcessNumber, of_root: &Reported) {
        let (operation, lives) = (self.operation, self.lives);
        // A member waits for what is for each virtual node that it carries.
        let is_by_name = operation.ask.collective == Collective::Scatter;
        let is_all_sent =
            |answer: &Reported| answer.names.as_ref().is_within(of_root.contributors.as_ref());
        for (process, answer) in &operation.answers {
            let name = lives.name(*process);
            let span = operation.span(answer);
            let is_sent =
                operation.ask.collective.flow() == Flow::FromRoot || lives.is_calm(root, span);
            let is_due = *process != root
                && is_sent
                && of_root.contributors.contains(name)
                && (!is_by_name || is_all_sent(answer))
                && lives.is_calm(*process, span);
            if is_due && answer.value.is_none() && answer.error.is_none() {
                self.fault(name, "contributes, and has no value");
            }
        }
    }

    /// Rule 6.
    fn agreement(&mut self) {
        let (operation, lives) = (self.operation, self.lives);
        let ask = operation.ask;
        let mut answers = operation.answers.iter().filter(|(_, answer)| answer.value.is_some());
        let Some((first, of_first)) = answers.next() else { return };
        let first = lives.name(*first);
        if ask.collective == Collective::Send {
            let others: Vec<Rank> = answers.map(|(process, _)| lives.name(*process)).collect();
            for name in others {
                self.fault(name, &format!("has the value, as member {first} has"));
            }
            return;
        }
        // An heir may be a second root.
        let last = operation.answers.values().map(|answer| answer.at).max().unwrap_or_default();
        let is_moved_root = |process: &ProcessNumber| {
            lives.name(*process) == ask.root && lives.has_handed(*process, last)
        };
        let is_root_moved = operation.asked.iter().any(is_moved_root);
        if ask.collective.flow() != Flow::ThroughRoot || is_root_moved {
            return;
        }
        let differing: Vec<Rank> = answers
            .filter(|(_, answer)| {
                answer.contributors != of_first.contributors || answer.missing != of_first.missing
            })
            .map(|(process, _)| lives.name(*process))
            .collect();
        for name in differing {
            self.fault(name, &format!("has another result than member {first}"));
        }
    }

    /// Rule 7.
    fn exchange(&mut self) {
        let (operation, lives) = (self.operation, self.lives);
        let answered = || operation.answers.iter().filter(|(_, answer)| answer.error.is_none());
        for (process, answer) in answered() {
            let span = operation.span(answer);
            if !lives.is_calm(*process, span) {
                continue;
            }
            for (other, of_other) in answered() {
                let name = lives.name(*other);
                let is_due = lives.is_calm(*other, span)
                    && answer.known.contains(name)
                    && answer.names.as_ref().is_within(of_other.known.as_ref());
                if is_due && !answer.contributors.contains(name) {
                    self.missing(lives.name(*process), answer, name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
