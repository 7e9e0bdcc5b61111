//! What a storm over a group has shown, as lines for people and as one JSON object for programs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::collective::Collective;
use super::oracle::{Operation, Verdict};
use super::plan::GroupPlan;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.group-storm/1";

/// What is done to a member or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    Kill,
    Stop,
    Leave,
    /// Leave to an heir.
    LeaveTo,
    Join,
    /// Break a link once.
    Reset,
    /// Break the links of two members, also new ones, for a time.
    Cut,
}

impl Deed {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Leave => "leave",
            Self::LeaveTo => "leave-to",
            Self::Join => "join",
            Self::Reset => "reset",
            Self::Cut => "cut",
        }
    }
}

/// The counts of one kind of operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub operations: u64,
    pub complete: u64,
    /// Those with values of several segments during which something was done to a member that had
    /// not answered yet.
    pub struck: u64,
}

/// The counts of a storm.
#[derive(Debug, Default)]
pub(super) struct GroupReport {
    pub operations: u64,
    pub complete: u64,
    pub incomplete: u64,
    /// Operations with an answer against the rules.
    pub wrong: u64,
    /// Operations that a member did not answer in time.
    pub hung: u64,
    pub collectives: BTreeMap<Collective, Tally>,
    pub deeds: BTreeMap<Deed, u64>,
    /// Of these, those that were done while values of several segments were under way.
    pub deeds_amid: BTreeMap<Deed, u64>,
    /// Connections that were broken.
    pub links_broken: u64,
    /// Virtual nodes that an heir has taken over.
    pub inherited: u64,
    pub took: Duration,
    /// What went against the rules, in words; also what is not of an operation.
    pub violations: Vec<String>,
}

impl GroupReport {
    /// Adds an operation that is over.
    pub(super) fn add(&mut self, operation: &Operation, verdict: Verdict, is_hung: bool) {
        let tally = self.collectives.entry(operation.ask.collective).or_default();
        tally.operations += 1;
        tally.complete += u64::from(verdict.is_complete);
        tally.struck += u64::from(operation.is_struck && operation.ask.has_several_segments());
        self.operations += 1;
        self.complete += u64::from(verdict.is_complete);
        self.incomplete += u64::from(!verdict.is_complete);
        self.wrong += u64::from(!verdict.faults.is_empty());
        self.hung += u64::from(is_hung);
        self.violations.extend(verdict.faults);
    }

    /// Adds what was done, whether or not values of several segments were under way.
    pub(super) fn count(&mut self, deed: Deed, is_amid: bool) {
        *self.deeds.entry(deed).or_default() += 1;
        if is_amid {
            *self.deeds_amid.entry(deed).or_default() += 1;
        }
    }

    /// The counts in a line.
    pub(super) fn summary(&self) -> String {
        let Self { operations, complete, incomplete, wrong, hung, .. } = self;
        format!(
            "{operations} operations, {complete} complete, {incomplete} incomplete, {wrong} wrong, \
             {hung} hung"
        )
    }

    /// One object in one line.
    pub(super) fn to_json(&self, plan: &GroupPlan) -> String {
        let by_kind = |(collective, tally): (&Collective, &Tally)| {
            let Tally { operations, complete, struck } = *tally;
            let counts =
                json!({ "operations": operations, "complete": complete, "struck": struck });
            (collective.name().to_string(), counts)
        };
        let collectives: Map<String, Value> = self.collectives.iter().map(by_kind).collect();
        let object = json!({
            "schema": SCHEMA,
            "members": plan.members,
            "seed": plan.seed,
            "seconds": self.took.as_secs_f64(),
            "faults": object_of(&self.deeds),
            "faults_amid_segments": object_of(&self.deeds_amid),
            "links_broken": self.links_broken,
            "inherited": self.inherited,
            "collectives": collectives,
            "operations": self.operations,
            "complete": self.complete,
            "incomplete": self.incomplete,
            "wrong": self.wrong,
            "hung": self.hung,
            "violations": self.violations.len(),
            "violation_texts": self.violations,
        });
        format!("{object}\n")
    }

    /// For people.
    pub(super) fn to_text(&self, plan: &GroupPlan) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "storm of {:.0} s over a group of {} members, seed {}",
            self.took.as_secs_f64(),
            plan.members,
            plan.seed
        );
        for (collective, tally) in &self.collectives {
            let Tally { operations, complete, struck } = tally;
            let name = collective.name();
            let _ = writeln!(
                text,
                "  {name}: {operations}, {complete} complete, {struck} of several segments under \
                 faults"
            );
        }
        let (deeds, amid) = (line_of(&self.deeds), line_of(&self.deeds_amid));
        let _ = writeln!(text, "  faults: {deeds}");
        let _ = writeln!(text, "  of these amid values of several segments: {amid}");
        let (links, inherited) = (self.links_broken, self.inherited);
        let _ = writeln!(text, "  {links} links broken, {inherited} virtual nodes inherited");
        for violation in &self.violations {
            let _ = writeln!(text, "  VIOLATION {violation}");
        }
        let _ = writeln!(text, "  {}, {} violations", self.summary(), self.violations.len());
        text
    }
}

fn object_of(deeds: &BTreeMap<Deed, u64>) -> Map<String, Value> {
    deeds.iter().map(|(deed, count)| (deed.name().to_string(), json!(count))).collect()
}

fn line_of(deeds: &BTreeMap<Deed, u64>) -> String {
    let named: Vec<String> =
        deeds.iter().map(|(deed, count)| format!("{} {count}", deed.name())).collect();
    if named.is_empty() { "none".to_string() } else { named.join(", ") }
}
