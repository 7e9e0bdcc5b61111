//! What the storm has shown, as a table for people and as one JSON object for programs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::contribution::Kind;
use super::faults::Fault;
use super::front_end::Outcome;
use super::ledger::Counts;
use super::plan::Plan;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.storm/1";

/// All networks of a storm together.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub networks: u64,
    pub took: Duration,
    requests: u64,
    faults: BTreeMap<Fault, u64>,
    outage: Duration,
    counts: [Counts; Kind::ALL.len()],
    events: BTreeMap<&'static str, u64>,
    repairs: Vec<Duration>,
    back_ends_lost: u64,
    violations: Vec<String>,
}

impl Report {
    /// Adds what one network has shown.
    pub(super) fn add(&mut self, outcome: Outcome) {
        self.networks += 1;
        self.requests += outcome.requests;
        for fault in &outcome.injected {
            *self.faults.entry(fault.fault).or_default() += 1;
            self.outage += fault.outage.unwrap_or_default();
        }
        for (counts, more) in self.counts.iter_mut().zip(outcome.counts) {
            counts.add(more);
        }
        for (name, count) in outcome.events {
            *self.events.entry(name).or_default() += count;
        }
        self.repairs.extend(outcome.repairs);
        self.back_ends_lost += outcome.back_ends_lost;
        let network = self.networks;
        let told = outcome.violations.into_iter().map(|text| format!("network {network}: {text}"));
        self.violations.extend(told);
    }

    /// How often it went against the rules.
    pub(super) fn violations(&self) -> u64 {
        let of_answers: u64 = self.counts.iter().map(|counts| counts.violations).sum();
        of_answers.max(self.violations.len() as u64)
    }

    /// How long repairs took: the time that this share of them did not exceed, in milliseconds.
    fn repair_ms(&self, share: f64) -> Option<f64> {
        let mut sorted = self.repairs.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[(last as f64 * share).round() as usize].as_secs_f64() * 1e3)
    }

    /// One object in one line.
    pub(super) fn to_json(&self, plan: &Plan) -> String {
        let mut streams = Map::new();
        for (kind, counts) in Kind::ALL.iter().zip(&self.counts) {
            let Counts { answers, complete, late, contributions, violations } = counts;
            let stream = json!({
                "answers": answers, "complete": complete, "late": late,
                "contributions": contributions, "violations": violations,
            });
            streams.insert(kind.name().to_string(), stream);
        }
        let faults: Map<String, Value> =
            self.faults.iter().map(|(fault, count)| (name(*fault), json!(count))).collect();
        let object = json!({
            "schema": SCHEMA,
            "topology": plan.topology_text,
            "transport": format!("{:?}", plan.transport).to_lowercase(),
            "hosts": plan.bed.is_some(),
            "seed": plan.seed,
            "seconds": self.took.as_secs_f64(),
            "networks": self.networks,
            "requests": self.requests,
            "faults": faults,
            "outage_seconds": self.outage.as_secs_f64(),
            "events": self.events,
            "repairs": self.repairs.len(),
            "repair_ms": { "median": self.repair_ms(0.5), "max": self.repair_ms(1.0) },
            "back_ends_lost": self.back_ends_lost,
            "streams": streams,
            "violations": self.violations(),
            "violation_texts": self.violations,
        });
        format!("{object}\n")
    }

    /// For people.
    pub(super) fn to_table(&self, plan: &Plan) -> String {
        let mut text = String::new();
        let counted = |(fault, count): (&Fault, &u64)| format!("{} {count}", name(*fault));
        let faults: Vec<String> = self.faults.iter().map(counted).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "storm of {:.0} s, seed {}, {} networks of {} over {:?}{}",
            self.took.as_secs_f64(),
            plan.seed,
            self.networks,
            plan.topology_text,
            plan.transport,
            if plan.bed.is_some() { " on the hosts of a test bed" } else { "" },
        );
        let _ = writeln!(text, "  faults: {}", faults.join(", "));
        if let (Some(median), Some(max)) = (self.repair_ms(0.5), self.repair_ms(1.0)) {
            let count = self.repairs.len();
            let _ = writeln!(text, "  repairs: {count}, median {median:.1} ms, max {max:.1} ms");
        }
        let _ = writeln!(text, "  requests per stream: {}", self.requests);
        let _ = writeln!(
            text,
            "  {:<12} {:>10} {:>10} {:>10} {:>14} {:>10}",
            "stream", "answers", "complete", "late", "contributions", "violations"
        );
        for (kind, counts) in Kind::ALL.iter().zip(&self.counts) {
            let Counts { answers, complete, late, contributions, violations } = counts;
            let _ = writeln!(
                text,
                "  {:<12} {answers:>10} {complete:>10} {late:>10} {contributions:>14} \
                 {violations:>10}",
                kind.name()
            );
        }
        for violation in &self.violations {
            let _ = writeln!(text, "  VIOLATION {violation}");
        }
        let _ = writeln!(text, "  violations: {}", self.violations());
        text
    }
}

/// A fault as the command line names it.
fn name(fault: Fault) -> String {
    let value = clap::ValueEnum::to_possible_value(&fault);
    value.map_or_else(String::new, |value| value.get_name().to_string())
}
