//! One trial: a program with or without a fault under `sapwood trace why`, and its answer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use sapwood_command_line::exit::Failure;
use sapwood_report::nanoseconds;
use serde_json::Value;

use super::super::super::back_end_process::machine_nanoseconds;
use super::cases::{Case, Due, FaultKind, Targets};
use super::judgement::{Accused, accused};
use super::watch::{Ends, WatchedRun};

/// Calls that last this long are such in which ranks wait: the default of `sapwood trace why`.
pub(super) const DEADLINE: Duration = Duration::from_secs(2);
/// What a program gets to come to the step of its fault.
const START_TIME: Duration = Duration::from_secs(180);
/// When a program without a verdict is ended, after its fault.
const VERDICT_TIME: Duration = Duration::from_secs(30);
/// How long a verdict may be followed by another one.
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// How long a slow program is watched from its fault on, and one without a fault.
const SLOW_TIME: Duration = Duration::from_secs(8);

/// What a trial gave.
pub(super) struct TrialOutcome {
    pub(super) case: Case,
    pub(super) accused: Accused,
    /// Verdicts that were printed while the program ran.
    pub(super) verdicts: usize,
    /// From when the answer was due until it was there, in seconds; none without an answer.
    pub(super) late_s: Option<f64>,
    /// What was printed, and the JSON object.
    told: String,
    answer: Value,
}

impl TrialOutcome {
    /// Whether exactly the rank that had the fault is accused.
    pub(super) fn is_right(&self) -> bool {
        self.case.kind.is_some() && self.accused.is_only(self.case.rank)
    }

    /// Whether a run without a fault accuses ranks: in its answer, or in a verdict that was
    /// withdrawn.
    pub(super) fn is_false_accusation(&self) -> bool {
        self.case.kind.is_none() && (!self.accused.by.is_empty() || self.verdicts > 0)
    }

    /// Whether a run without a fault accuses no rank.
    pub(super) fn is_quiet(&self) -> bool {
        self.case.kind.is_none() && !self.is_false_accusation()
    }

    /// Writes the answer to a folder.
    pub(super) fn keep(&self, folder: &Path, name: &str) -> Result<(), Failure> {
        let folder = folder.join(name);
        let failed = |error: std::io::Error| {
            Failure::own(&format!("cannot write to {}: {error}", folder.display()))
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let text = format!("{:?}\naccused: {}\n{}", self.case, self.accused.text(), self.told);
        std::fs::write(folder.join("told"), text).map_err(failed)?;
        std::fs::write(folder.join("why.json"), format!("{:#}\n", self.answer)).map_err(failed)
    }
}

/// What trials are made with.
pub(super) struct CulpritBench<'a> {
    pub(super) programs: Targets<'a>,
    pub(super) sapwood: PathBuf,
}

/// The moments of a trial.
struct Moments {
    /// Of the fault; of a run without one, when it is watched.
    fault_ns: u64,
    /// When the program was told to end, if it was.
    told_ns: u64,
    /// Of the last verdict before that.
    verdict_ns: Option<u64>,
    ends: Ends,
}

impl CulpritBench<'_> {
    /// Makes one trial; its files are in a folder of its own, which is gone afterwards.
    pub(super) fn run(&self, case: Case) -> Result<TrialOutcome, Failure> {
        let folder = self.programs.folder.join("trial");
        let failed =
            |error: std::io::Error| Failure::own(&format!("{}: {error}", folder.display()));
        std::fs::create_dir(&folder).map_err(failed)?;
        let outcome = self.run_in(case, &folder);
        std::fs::remove_dir_all(&folder).map_err(failed)?;
        outcome
    }

    fn run_in(&self, case: Case, folder: &Path) -> Result<TrialOutcome, Failure> {
        let file = folder.join("why.json");
        let deadline = format!("{}ms", DEADLINE.as_millis());
        let mut words: Vec<OsString> = vec![self.sapwood.clone().into()];
        words.extend(["trace", "why", "--deadline"].map(OsString::from));
        words.extend([deadline.into(), "--json".into(), file.clone().into(), "--".into()]);
        words.extend(self.programs.command(&case, folder));
        let mut watch = WatchedRun::start(&words, &self.programs.settings(&case, folder), folder)?;
        let moments = moments(&mut watch, &case)?;
        let verdicts = watch.verdicts().into_iter().filter(|&at| at < moments.told_ns).count();
        let answer = read_answer(&file).map_err(|error| {
            Failure::own(&format!("sapwood trace why left no answer: {error}\n{}", watch.told()))
        })?;
        let accused = accused(&answer);
        let late_s = moments.late_s(&case).filter(|_| !accused.by.is_empty());
        Ok(TrialOutcome { case, accused, verdicts, late_s, told: watch.told(), answer })
    }
}

/// The JSON object that the command has written.
fn read_answer(file: &Path) -> std::io::Result<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

fn moments(watch: &mut WatchedRun, case: &Case) -> Result<Moments, Failure> {
    let fault_ns = fault(watch, case)?;
    let due = case.kind.map_or(Due::End, FaultKind::due);
    match due {
        Due::Verdict => {
            // One that was told before is of the start, in which ranks wait for slow ones.
            let has_verdict =
                |watch: &mut WatchedRun| watch.verdicts().last().is_some_and(|&at| at > fault_ns);
            watch.watch_until(fault_ns + nanoseconds(VERDICT_TIME), has_verdict)?;
            if has_verdict(watch) {
                watch.watch_until(machine_nanoseconds() + nanoseconds(SETTLE_TIME), |_| false)?;
            }
        }
        Due::Death => {}
        Due::End => watch.watch_until(fault_ns + nanoseconds(SLOW_TIME), |_| false)?,
    }
    let verdict_ns = watch.verdicts().last().copied().filter(|&at| at > fault_ns);
    let told_ns = machine_nanoseconds();
    if due != Due::Death {
        watch.stop()?;
    }
    let ends = watch.wait_for_end()?;
    Ok(Moments { fault_ns, told_ns, verdict_ns, ends })
}

/// Waits for the fault, or brings it about; when it was.
fn fault(watch: &mut WatchedRun, case: &Case) -> Result<u64, Failure> {
    let signal = match case.kind {
        Some(FaultKind::Stopped) => Signal::STOP,
        Some(FaultKind::Killed) => Signal::KILL,
        Some(_) => return watch.wait_for_fault(START_TIME),
        None => {
            watch.wait_for_step(case.step, START_TIME)?;
            return Ok(machine_nanoseconds());
        }
    };
    watch.wait_for_step(case.step, START_TIME)?;
    watch.watch_until(
        machine_nanoseconds() + nanoseconds(Duration::from_millis(case.delay_ms)),
        |_| false,
    )?;
    watch.signal_rank(case.rank, signal)
}

impl Moments {
    /// How long after it was due the answer came; none where no verdict did.
    fn late_s(&self, case: &Case) -> Option<f64> {
        let (due_ns, answer_ns) = match case.kind?.due() {
            Due::Verdict => (self.fault_ns + nanoseconds(DEADLINE), self.verdict_ns?),
            Due::Death | Due::End => (self.ends.program_ns, self.ends.run_ns),
        };
        Some(Duration::from_nanos(answer_ns.saturating_sub(due_ns)).as_secs_f64())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::cases::{Draw, Target};
    use super::*;

    /// An outcome that accuses these.
    pub(in super::super) fn outcome(kind: Option<FaultKind>, ranks: &[u32]) -> TrialOutcome {
        let draw = Draw { seed: 1, ranks: 8, trial: 0 };
        let case = match kind {
            Some(kind) => Case { rank: 3, ..Case::faulty(Target::Solver, kind, &draw) },
            None => Case::clean(Target::Solver, 0),
        };
        let by = if ranks.is_empty() { "" } else { "stuck" };
        let accused = Accused { ranks: ranks.iter().copied().collect(), by };
        let late_s = (!ranks.is_empty()).then_some(0.5);
        let (told, answer) = (String::new(), Value::Null);
        TrialOutcome { case, accused, verdicts: 0, late_s, told, answer }
    }

    #[test]
    fn a_withdrawn_verdict_is_a_false_accusation_too() {
        assert!(!outcome(None, &[]).is_false_accusation());
        assert!(outcome(None, &[2]).is_false_accusation());
        assert!(TrialOutcome { verdicts: 1, ..outcome(None, &[]) }.is_false_accusation());
        assert!(!outcome(Some(FaultKind::Stopped), &[2]).is_false_accusation());
    }

    #[test]
    fn an_answer_is_late_from_when_it_was_due() {
        let second = 1_000_000_000;
        let moments = Moments {
            fault_ns: second,
            told_ns: 6 * second,
            verdict_ns: Some(4 * second),
            ends: Ends { program_ns: 7 * second, run_ns: 8 * second },
        };
        let late = |kind| moments.late_s(&outcome(Some(kind), &[3]).case);
        assert_eq!(late(FaultKind::Stopped), Some(1.0), "two seconds of deadline");
        assert_eq!(late(FaultKind::Killed), Some(1.0), "the program ended before");
        assert_eq!(late(FaultKind::SlowLink), Some(1.0));
        let moments = Moments { verdict_ns: None, ..moments };
        assert_eq!(moments.late_s(&outcome(Some(FaultKind::Stopped), &[3]).case), None);
    }
}
