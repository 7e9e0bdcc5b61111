//! What a storm over a group has shown, as lines for people and as one JSON object for programs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::oracle::Verdict;
use super::plan::GroupPlan;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.group-storm/1";

/// What is done to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    Kill,
    Stop,
    Leave,
    Join,
}

impl Deed {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Leave => "leave",
            Self::Join => "join",
        }
    }
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
    pub deeds: BTreeMap<Deed, u64>,
    pub took: Duration,
    /// What went against the rules, in words; also what is not of an operation.
    pub violations: Vec<String>,
}

impl GroupReport {
    /// Adds an operation that is over.
    pub(super) fn add(&mut self, verdict: Verdict, is_hung: bool) {
        self.operations += 1;
        self.complete += u64::from(verdict.is_complete);
        self.incomplete += u64::from(!verdict.is_complete);
        self.wrong += u64::from(!verdict.faults.is_empty());
        self.hung += u64::from(is_hung);
        self.violations.extend(verdict.faults);
    }

    /// Adds what was done to a member.
    pub(super) fn count(&mut self, deed: Deed) {
        *self.deeds.entry(deed).or_default() += 1;
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
        let named = self.deeds.iter().map(|(deed, count)| (deed.name().to_string(), json!(count)));
        let faults: Map<String, Value> = named.collect();
        let object = json!({
            "schema": SCHEMA,
            "members": plan.members,
            "seed": plan.seed,
            "seconds": self.took.as_secs_f64(),
            "faults": faults,
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
        let named = self.deeds.iter().map(|(deed, count)| format!("{} {count}", deed.name()));
        let deeds: Vec<String> = named.collect();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "storm of {:.0} s over a group of {} members, seed {}",
            self.took.as_secs_f64(),
            plan.members,
            plan.seed
        );
        let _ = writeln!(text, "  faults: {}", deeds.join(", "));
        for violation in &self.violations {
            let _ = writeln!(text, "  VIOLATION {violation}");
        }
        let _ = writeln!(text, "  {}, {} violations", self.summary(), self.violations.len());
        text
    }
}
