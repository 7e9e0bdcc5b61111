//! Sums of all ranks one after another, without a monitor, with events recorded, and with all of
//! them analysed by the tree, in turn.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sapwood_command_line::exit::Failure;
use serde_json::Value;

use super::super::connect::Folder;
use super::super::facts::Facts;
use super::super::pairs::turns;
use super::super::progress::Progress;
use super::super::shim_cost::compile;
use super::super::tree::own_program;
use super::Arguments;
use super::rows::{Program, Run};

const SOURCE: &str = include_str!("gsum.c");

/// Ranks unless the command line says otherwise.
const RANKS: u16 = 2;
/// In the place of how many numbers are sorted.
const AS_LONG_AS_A_SUM: i64 = -1;

/// What watches the program.
#[derive(Clone, Copy)]
enum Watched {
    Not,
    /// Its ranks record every collective.
    Collectors,
    /// A tree reads all events and says which ranks wait for which.
    Analysis,
    /// A tree reads all events for statistics, at the moments of this word.
    Statistics(&'static str),
}

const WATCHED: [(&str, Watched); 6] = [
    ("none", Watched::Not),
    ("collectors", Watched::Collectors),
    ("analysis", Watched::Analysis),
    ("statistics", Watched::Statistics("any")),
    ("waiting", Watched::Statistics("waiting")),
    ("released", Watched::Statistics("released")),
];

/// One run, and how many numbers were sorted before each sum.
struct Timed {
    run: Run,
    sorted: u64,
}

struct Bench<'a> {
    arguments: &'a Arguments,
    program: PathBuf,
    sapwood: PathBuf,
    shim: &'a Path,
    folder: PathBuf,
}

/// Measures both programs.
pub(super) fn measure(
    arguments: &Arguments,
    shim: &Path,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let folder = Folder::create()?;
    let program = compile(&arguments.mpicc, &folder.path, "gsum", SOURCE)?;
    let sapwood = own_program()?.with_file_name("sapwood");
    let bench = Bench { arguments, program, sapwood, shim, folder: folder.path.clone() };
    facts.heading("with over without, seconds of the iterations themselves");
    let sorted = bench.run(Watched::Not, AS_LONG_AS_A_SUM)?.sorted;
    let (ranks, iterations) = (ranks(arguments).into(), arguments.iterations);
    for (name, sorted) in [("gsum", 0), ("compute_gsum", sorted)] {
        let program = Program { name, place: &arguments.place, ranks, iterations, sorted };
        let rows = bench.compare(&program, facts, progress)?;
        facts.setting(name, rows);
    }
    Ok(())
}

/// How many the program has.
pub(super) fn ranks(arguments: &Arguments) -> u16 {
    arguments.ranks.unwrap_or(RANKS)
}

impl Bench<'_> {
    fn compare(
        &self,
        program: &Program<'_>,
        facts: &mut Facts,
        progress: &mut Progress,
    ) -> Result<Value, Failure> {
        let mut runs: [Vec<Run>; WATCHED.len()] = Default::default();
        for pair in 0..usize::from(self.arguments.pairs) {
            progress.say(program.name, pair, self.arguments.pairs.into());
            for which in turns(pair, WATCHED.len()) {
                let timed =
                    self.run(WATCHED[which].1, i64::try_from(program.sorted).unwrap_or(0))?;
                runs[which].push(timed.run);
            }
        }
        let [bare, with @ ..] = &runs;
        let names = WATCHED.iter().skip(1).map(|(name, _)| *name);
        let monitors: Vec<(&str, &[Run])> = names.zip(with.iter().map(Vec::as_slice)).collect();
        program.rows(bare, &monitors, facts)
    }

    fn run(&self, watched: Watched, sorted: i64) -> Result<Timed, Failure> {
        let launcher = self.arguments.mpirun.clone();
        let [report, lines] = ["report", "scope.ndjson"].map(|name| self.folder.join(name));
        std::fs::write(&lines, "").map_err(|error| Failure::own(&error))?;
        let mut command = match watched {
            Watched::Analysis => {
                let mut command = Command::new(&self.sapwood);
                command.args(["mpi", "--quiet", "--waits", "--interval", "200ms", "--out"]);
                command.arg(&report).arg("--").arg(&launcher);
                command
            }
            Watched::Statistics(when) => {
                let mut command = Command::new(&self.sapwood);
                command.args(["trace", "scope", "--scope", &scope(when), "--ndjson"]);
                command.arg(&lines).arg("--").arg(&launcher);
                command
            }
            Watched::Not | Watched::Collectors => Command::new(&launcher),
        };
        for variable in ["LD_PRELOAD", "SAPWOOD_MPI_WAITS", "SAPWOOD_MPI_DUMP_DIR"] {
            command.env_remove(variable);
        }
        command.args(self.arguments.launch.split_whitespace());
        command.args(["-np", &ranks(self.arguments).to_string()]);
        if matches!(watched, Watched::Collectors) {
            command.arg("env").arg(format!("LD_PRELOAD={}", self.shim.display()));
            command.arg(format!("SAPWOOD_MPI_DUMP_DIR={}", self.folder.display()));
            command.arg("SAPWOOD_MPI_WAITS=1");
        }
        command.arg(&self.program);
        command.args([self.arguments.iterations.to_string(), sorted.to_string()]);
        let done = command.stdin(Stdio::null()).output().map_err(|error| Failure::own(&error))?;
        let output = String::from_utf8_lossy(&done.stdout);
        let said = String::from_utf8_lossy(&done.stderr);
        let failed = || Failure::own(&format!("gsum: {}: {}", done.status, said.trim()));
        let words: Vec<&str> = output.split_whitespace().collect();
        let [seconds, sorted] = words.as_slice() else { return Err(failed()) };
        let (Ok(seconds), Ok(sorted)) = (seconds.parse(), sorted.parse()) else {
            return Err(failed());
        };
        let gathered = match watched {
            Watched::Analysis => Some(gather_rate(&report.join("profile.json"))?),
            Watched::Statistics(_) => Some(scope_gather_rate(&lines)?),
            Watched::Not | Watched::Collectors => None,
        };
        Ok(Timed { run: Run { seconds, gathered }, sorted })
    }
}

/// Of the events of a run, the part that was read before it was overwritten.
fn gather_rate(profile: &Path) -> Result<f64, Failure> {
    let failed =
        |what: &dyn std::fmt::Display| Failure::own(&format!("{}: {what}", profile.display()));
    let text = std::fs::read_to_string(profile).map_err(|error| failed(&error))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let count = |name: &str| document["waits"][name].as_f64();
    match (count("events"), count("dropped")) {
        (Some(events), Some(dropped)) if events > 0.0 => Ok(events / (events + dropped)),
        _ => Err(failed(&"no events")),
    }
}

/// The statistics monitor of EventSpace, read often enough to lose nothing.
fn scope(when: &str) -> String {
    format!(
        "name=statistics by=rank,function,communicator window=100 every=50ms cpu=100% when={when}"
    )
}

/// The same of the lines of a scope.
fn scope_gather_rate(lines: &Path) -> Result<f64, Failure> {
    let failed =
        |what: &dyn std::fmt::Display| Failure::own(&format!("{}: {what}", lines.display()));
    let text = std::fs::read_to_string(lines).map_err(|error| failed(&error))?;
    let (mut read, mut dropped) = (0.0, 0.0);
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).map_err(|error| failed(&error))?;
        let count = |name: &str| record[name].as_f64().ok_or_else(|| failed(&"no counts"));
        read += count("events_read")?;
        dropped += count("events_dropped")?;
    }
    if read > 0.0 { Ok(read / (read + dropped)) } else { Err(failed(&"no events")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_overwritten_lowers_the_gather_rate() {
        let folder = Folder::create().expect("a folder can be made");
        let profile = folder.path.join("profile.json");
        let text = r#"{"waits": {"events": 90, "dropped": 10}}"#;
        std::fs::write(&profile, text).expect("a file can be written");
        assert_eq!(gather_rate(&profile).ok(), Some(0.9));
        std::fs::write(&profile, r#"{"waits": null}"#).expect("a file can be written");
        assert!(gather_rate(&profile).is_err());
        let lines = folder.path.join("scope.ndjson");
        let text = [(0, 0), (60, 20), (10, 10)].map(|(read, dropped)| {
            format!(r#"{{"events_read": {read}, "events_dropped": {dropped}}}"#)
        });
        std::fs::write(&lines, text.join("\n")).expect("a file can be written");
        assert_eq!(scope_gather_rate(&lines).ok(), Some(0.7));
        std::fs::write(&lines, "").expect("a file can be written");
        assert!(scope_gather_rate(&lines).is_err());
    }
}
