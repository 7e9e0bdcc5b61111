//! What the trials of one kind in one program gave, and the sum of all.

use serde_json::{Value, json};

use super::super::super::facts::{Bar, Facts, look, named};
use super::cases::{FaultKind, Target};
use super::simulated::{RANKS, SimulatedTrial};
use super::trial::TrialOutcome;

/// What part of the trials is to name the right rank.
const RIGHT_SHARE: f64 = 0.99;
/// How late after it was due an answer may come, in seconds.
const WORST_S: f64 = 1.0;

/// The trials of one kind in one program.
pub(super) struct FaultRow {
    pub(super) program: Target,
    pub(super) kind: FaultKind,
    pub(super) outcomes: Vec<TrialOutcome>,
}

impl FaultRow {
    fn right(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.is_right()).count()
    }

    /// The largest time from when an answer was due until it was there.
    fn worst_s(&self) -> Option<f64> {
        let right = self.outcomes.iter().filter(|outcome| outcome.is_right());
        right.filter_map(|outcome| outcome.late_s).reduce(f64::max)
    }

    fn json(&self) -> Value {
        let wrong = self.outcomes.iter().enumerate().filter(|(_, outcome)| !outcome.is_right());
        let wrong: Vec<Value> = wrong
            .map(|(trial, outcome)| {
                json!({"trial": trial, "rank": outcome.case.rank, "step": outcome.case.step,
                       "named": outcome.accused.text()})
            })
            .collect();
        json!({"program": named(self.program), "kind": named(self.kind),
               "trials": self.outcomes.len(), "right": self.right(), "worst_s": self.worst_s(),
               "named_wrongly": wrong})
    }

    fn line(&self) -> String {
        let late = self.worst_s().map_or_else(String::new, |late| format!("{late:6.2} s"));
        let wrong = self.outcomes.iter().filter(|outcome| !outcome.is_right());
        let wrong: Vec<String> = wrong
            .map(|outcome| format!("of {}: {}", outcome.case.rank, outcome.accused.text()))
            .collect();
        let line = format!(
            "  {:<10} {:<16} {:>3} of {:>3} {late:>9}  {}",
            named(self.program),
            named(self.kind),
            self.right(),
            self.outcomes.len(),
            wrong.join("; ")
        );
        line.trim_end().to_owned()
    }
}

/// The runs of one program without a fault.
pub(super) struct CleanRow {
    pub(super) program: Target,
    pub(super) outcomes: Vec<TrialOutcome>,
}

impl CleanRow {
    fn accusations(&self) -> Vec<&TrialOutcome> {
        self.outcomes.iter().filter(|outcome| outcome.is_false_accusation()).collect()
    }

    fn json(&self) -> Value {
        let named_of =
            |one: &&TrialOutcome| json!({"named": one.accused.text(), "verdicts": one.verdicts});
        let accusations: Vec<Value> = self.accusations().iter().map(named_of).collect();
        json!({"program": named(self.program), "runs": self.outcomes.len(),
               "accusations": accusations})
    }

    fn line(&self) -> String {
        let accused = self.accusations();
        let texts: Vec<String> = accused
            .iter()
            .map(|one| format!("{}, {} verdicts", one.accused.text(), one.verdicts))
            .collect();
        let line = format!(
            "  {:<10} {:<16} {:>3} of {:>3} accuse     {}",
            named(self.program),
            "none",
            accused.len(),
            self.outcomes.len(),
            texts.join("; ")
        );
        line.trim_end().to_owned()
    }
}

/// The trials of one kind in simulated ranks.
pub(super) struct SimulatedRow {
    pub(super) kind: FaultKind,
    pub(super) trials: Vec<SimulatedTrial>,
}

impl SimulatedRow {
    fn wrong(&self) -> impl Iterator<Item = &SimulatedTrial> {
        self.trials.iter().filter(|trial| !trial.is_right())
    }

    fn json(&self) -> Value {
        let wrong: Vec<Value> = self
            .wrong()
            .map(|one| json!({"trial": one.number, "rank": one.rank, "named": one.accused.text()}))
            .collect();
        json!({"kind": named(self.kind), "ranks": RANKS, "trials": self.trials.len(),
               "right": self.trials.len() - wrong.len(), "named_wrongly": wrong})
    }

    fn line(&self) -> String {
        let wrong: Vec<String> =
            self.wrong().map(|one| format!("of {}: {}", one.rank, one.accused.text())).collect();
        let line = format!(
            "  {:<10} {:<16} {:>3} of {:>3}            {}",
            "simulated",
            named(self.kind),
            self.trials.len() - wrong.len(),
            self.trials.len(),
            wrong.join("; ")
        );
        line.trim_end().to_owned()
    }
}

/// A program and a kind, or all kinds, that were left out.
pub(super) struct LeftOut {
    pub(super) program: Target,
    pub(super) kind: Option<FaultKind>,
    pub(super) why: String,
}

impl LeftOut {
    fn json(&self) -> Value {
        json!({"program": named(self.program), "kind": self.kind.map(named), "why": self.why})
    }

    fn line(&self) -> String {
        let kind = self.kind.map_or_else(|| "all".to_owned(), named);
        format!("  {:<10} {kind:<16} left out: {}", named(self.program), self.why)
    }
}

/// All that was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) seed: u64,
    pub(super) ranks: u16,
    pub(super) rows: Vec<FaultRow>,
    pub(super) clean: Vec<CleanRow>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) simulated: Vec<SimulatedRow>,
}

impl Found {
    /// Adds the rows and their sums.
    pub(super) fn tell(&self, facts: &mut Facts) {
        facts.heading("right rank named, worst time after the answer was due, other ranks named");
        self.rows.iter().for_each(|row| facts.heading(&row.line()));
        self.clean.iter().for_each(|clean| facts.heading(&clean.line()));
        self.left_out.iter().for_each(|one| facts.heading(&one.line()));
        self.simulated.iter().for_each(|one| facts.heading(&one.line()));
        facts.setting("culprit.seed", self.seed);
        facts.setting("culprit.ranks", self.ranks);
        let trials: usize = self.rows.iter().map(|row| row.outcomes.len()).sum();
        let right: usize = self.rows.iter().map(FaultRow::right).sum();
        let false_accusations: usize = self.clean.iter().map(|one| one.accusations().len()).sum();
        let runs: usize = self.clean.iter().map(|one| one.outcomes.len()).sum();
        let mut count = |name: &str, label: &'static str, count: usize, bar| {
            facts.number(&format!("culprit.{name}"), look(label, "", 0), count as f64, bar);
        };
        count("trials", "trials", trials, None);
        let least = (RIGHT_SHARE * trials as f64).ceil();
        count("right", "right rank named", right, Some(Bar::Least(least)));
        count("clean_runs", "runs without a fault", runs, None);
        let none = Some(Bar::Most(0.0));
        count("false_accusations", "of these, accusations", false_accusations, none);
        match self.rows.iter().filter_map(FaultRow::worst_s).reduce(f64::max) {
            Some(worst_s) => {
                let most = Some(Bar::Most(WORST_S));
                facts.number(
                    "culprit.worst_s",
                    look("worst time after it was due", "s", 2),
                    worst_s,
                    most,
                );
            }
            None => facts.setting("culprit.worst_s", Value::Null),
        }
        let rows = |all: Vec<Value>| Value::Array(all);
        facts.setting("culprit.rows", rows(self.rows.iter().map(FaultRow::json).collect()));
        facts.setting("culprit.clean", rows(self.clean.iter().map(CleanRow::json).collect()));
        let simulated = self.simulated.iter().map(SimulatedRow::json).collect();
        facts.setting("culprit.simulated", rows(simulated));
        facts.setting("culprit.left_out", rows(self.left_out.iter().map(LeftOut::json).collect()));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::trial::tests::outcome;
    use super::*;

    /// Rows of all kinds.
    pub(in super::super) fn found() -> Found {
        let (program, kind) = (Target::Solver, FaultKind::Stopped);
        let of = |ranks: &[u32]| outcome(Some(kind), ranks);
        let simulated = |rank| SimulatedTrial { number: 1, rank, accused: of(&[3]).accused };
        Found {
            seed: 1,
            ranks: 8,
            rows: vec![
                FaultRow { program, kind, outcomes: vec![of(&[3]), of(&[]), of(&[3, 4])] },
                FaultRow { program, kind: FaultKind::Killed, outcomes: vec![of(&[])] },
            ],
            clean: vec![CleanRow {
                program,
                outcomes: vec![outcome(None, &[]), outcome(None, &[2])],
            }],
            left_out: vec![
                LeftOut { program: Target::Training, kind: None, why: "no module".into() },
                LeftOut { program, kind: Some(FaultKind::OtherRoot), why: "no root".into() },
            ],
            simulated: vec![SimulatedRow { kind, trials: vec![simulated(3), simulated(4)] }],
        }
    }

    #[test]
    fn only_trials_that_name_exactly_the_rank_with_the_fault_are_right() {
        let mut facts = Facts::new("", String::new());
        found().tell(&mut facts);
        let told: Value = serde_json::from_str(&facts.to_json()).expect("it is JSON");
        let of = |name: &str| told["culprit"][name].clone();
        assert_eq!((of("trials"), of("right")), (json!(4), json!(1)));
        assert_eq!((of("clean_runs"), of("false_accusations")), (json!(2), json!(1)));
        assert_eq!(of("worst_s"), json!(0.5));
        let named: Vec<Value> = told["culprit"]["rows"][0]["named_wrongly"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["named"].clone())
            .collect();
        assert_eq!(named, ["none", "3,4 (stuck)"]);
        assert_eq!(told["culprit"]["rows"][1]["worst_s"], Value::Null);
    }
}
