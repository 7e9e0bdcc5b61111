//! What came of the runs, as text and as JSON, and how far they are.

use std::fmt::Write as _;

use sapwood_sim::{Class, Expect, Options, Outcome};
use serde_json::{Map, Value, json};

use sapwood_command_line::exit::one_line;
use sapwood_command_line::progress::Line;

/// Broken rules that are printed; the first ones say most.
const SHOWN_MAX: usize = 20;

/// The sum of all runs.
#[derive(Debug)]
pub(super) struct Report {
    first: u64,
    options: Options,
    schedules: u64,
    pub(super) seconds: f64,
    virtual_seconds: f64,
    happenings: u64,
    injected: [u64; Class::ALL.len()],
    answers: u64,
    contributions: u64,
    received: u64,
    /// Runs that broke a rule, by seed.
    violated: Vec<(u64, String, Vec<String>)>,
    /// The lines of the one run that was asked for.
    log: Vec<String>,
    shape: String,
}

impl Report {
    pub(super) fn new(first: u64, options: &Options) -> Self {
        Self {
            first,
            options: options.clone(),
            schedules: 0,
            seconds: 0.0,
            virtual_seconds: 0.0,
            happenings: 0,
            injected: [0; Class::ALL.len()],
            answers: 0,
            contributions: 0,
            received: 0,
            violated: Vec::new(),
            log: Vec::new(),
            shape: String::new(),
        }
    }

    /// One more run is done.
    pub(super) fn add(&mut self, outcome: Outcome) {
        self.schedules += 1;
        self.virtual_seconds += outcome.nanoseconds as f64 / 1e9;
        self.happenings += outcome.happenings;
        for (sum, count) in self.injected.iter_mut().zip(outcome.injected) {
            *sum += count;
        }
        self.answers += outcome.answers;
        self.contributions += outcome.contributions;
        self.received += outcome.received;
        self.log = outcome.log;
        if !outcome.violations.is_empty() {
            let lines = outcome.violations.iter().map(ToString::to_string).collect();
            let place = self.violated.partition_point(|(seed, ..)| *seed < outcome.seed);
            self.violated.insert(place, (outcome.seed, outcome.shape.clone(), lines));
        }
        self.shape = outcome.shape;
    }

    /// How many runs broke a rule.
    pub(super) fn violated(&self) -> usize {
        self.violated.len()
    }

    /// The command that repeats a run.
    fn command(&self, seed: u64) -> String {
        let losses = match self.options.expect {
            Expect::Losses => " --no-recovery",
            Expect::Recovery => "",
        };
        format!("sapwood sim --seed {seed} --faults {}{losses} --log", self.options.faults)
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        for line in &self.log {
            let _ = writeln!(text, "{line}");
        }
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<24} {value}");
        };
        row("schedules", self.schedules.to_string());
        if self.schedules == 1 {
            row("shape", self.shape.clone());
        }
        row("seeds from", self.first.to_string());
        let rate = self.schedules as f64 / self.seconds.max(1e-9);
        row("real time", format!("{:.1} s, {rate:.0} schedules per second", self.seconds));
        row("virtual time", format!("{:.0} s", self.virtual_seconds));
        row("events", self.happenings.to_string());
        for class in self.options.faults.classes() {
            let name = format!("faults: {}", class.name());
            row(&name, self.injected[class.index()].to_string());
        }
        row("answers checked", self.answers.to_string());
        row("contributions", self.contributions.to_string());
        row("downward packets", self.received.to_string());
        row("schedules with violations", self.violated.len().to_string());
        for (seed, shape, lines) in self.violated.iter().take(SHOWN_MAX) {
            let _ = writeln!(text, "\nseed {seed}, tree {shape}");
            for line in lines.iter().take(SHOWN_MAX) {
                let _ = writeln!(text, "    {}", one_line(line));
            }
        }
        if let Some((seed, ..)) = self.violated.first() {
            let _ = writeln!(text, "\nrepeat the first with: {}", self.command(*seed));
        }
        text
    }

    pub(super) fn to_json(&self) -> String {
        let injected: Map<String, Value> = Class::ALL
            .into_iter()
            .map(|class| (class.name().to_string(), self.injected[class.index()].into()))
            .collect();
        let violated: Vec<Value> = self
            .violated
            .iter()
            .take(SHOWN_MAX)
            .map(|(seed, shape, lines)| {
                json!({
                    "seed": seed,
                    "shape": shape,
                    "rules": lines,
                    "repeat": self.command(*seed),
                })
            })
            .collect();
        let expects = match self.options.expect {
            Expect::Losses => "losses",
            Expect::Recovery => "recovery",
        };
        let report = json!({
            "schema": "sapwood.sim/1",
            "schedules": self.schedules,
            "violations": self.violated.len(),
            "first_failing_seed": self.violated.first().map(|(seed, ..)| seed),
            "first_seed": self.first,
            "faults": self.options.faults.to_string(),
            "expects": expects,
            "seconds": self.seconds,
            "virtual_seconds": self.virtual_seconds,
            "events": self.happenings,
            "injected": injected,
            "answers": self.answers,
            "contributions": self.contributions,
            "downward_packets": self.received,
            "violated": violated,
        });
        format!("{report}\n")
    }
}

/// How far the runs are, for people who wait.
pub(super) struct Progress {
    count: u64,
    line: Line,
}

/// How many runs are between two writings of the line.
const STEP: u64 = 50;

impl Progress {
    pub(super) fn new(count: u64) -> Self {
        Self { count, line: Line::new(count > STEP) }
    }

    pub(super) fn show(&self, report: &Report) {
        if report.schedules.is_multiple_of(STEP) {
            let (done, bad) = (report.schedules, report.violated());
            let count = self.count;
            self.line.say(format_args!("{done} of {count} schedules, {bad} with violations"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_sim::{Rule, Violation};

    #[test]
    fn a_report_names_the_first_seed_that_failed_and_how_to_repeat_it() {
        let mut report = Report::new(5, &Options::default());
        let violation =
            |text: &str| Violation { rule: Rule::Twice, at: 2_500_000, text: text.into() };
        for (seed, violations) in
            [(7, vec![violation("a")]), (5, vec![]), (6, vec![violation("b")])]
        {
            report.add(Outcome { seed, violations, ..Outcome::default() });
        }
        let text = report.to_text();
        assert!(text.contains("seed 6, tree \n    twice at 2.500 ms: b\n"), "{text}");
        let command = "sapwood sim --seed 6 --faults all --log\n";
        assert!(text.ends_with(command), "{text}");
        let json: Value = serde_json::from_str(&report.to_json()).expect("an object");
        assert_eq!(json["schedules"], 3);
        assert_eq!(json["violations"], 2);
        assert_eq!(json["first_failing_seed"], 6);
    }
}
