//! Sums of all ranks one after another, without a monitor, with events recorded, and with all of
//! them analysed by the tree, in turn.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::median_interval;
use serde_json::Value;

use super::super::connect::Folder;
use super::super::facts::Facts;
use super::super::pairs::turns;
use super::super::progress::Progress;
use super::super::shim_cost::compile;
use super::super::tree::own_program;
use super::Arguments;
use super::rows::Pairing;

const SOURCE: &str = include_str!("gsum.c");

/// What watches the program.
#[derive(Clone, Copy)]
enum Watched {
    Not,
    /// Its ranks record every collective.
    Collectors,
    /// A tree reads all events and says who waits for whom.
    Analysis,
}

const WATCHED: [Watched; 3] = [Watched::Not, Watched::Collectors, Watched::Analysis];

/// One run.
struct Run {
    seconds: f64,
    /// Numbers that are sorted before each sum.
    sorted: u32,
    /// Of the events that were written, the part that was read.
    gathered: Option<f64>,
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
    let sorted = bench.run(Watched::Not, -1)?.sorted;
    for (name, sorted) in [("gsum", 0), ("compute_gsum", i64::from(sorted))] {
        let rows = bench.compare(name, sorted, facts, progress)?;
        facts.setting(name, rows);
    }
    Ok(())
}

impl Bench<'_> {
    fn compare(
        &self,
        name: &str,
        sorted: i64,
        facts: &mut Facts,
        progress: &mut Progress,
    ) -> Result<Value, Failure> {
        let mut runs: [Vec<Run>; WATCHED.len()] = Default::default();
        for pair in 0..usize::from(self.arguments.pairs) {
            progress.say(name, pair, self.arguments.pairs.into());
            for which in turns(pair, WATCHED.len()) {
                runs[which].push(self.run(WATCHED[which], sorted)?);
            }
        }
        let [bare, collectors, analysis] = runs;
        let mut rows = Vec::new();
        for (monitor, runs) in [("collectors", &collectors), ("analysis", &analysis)] {
            let pairs = runs.iter().zip(&bare);
            let ratios: Vec<f64> = pairs.map(|(with, bare)| with.seconds / bare.seconds).collect();
            let interval =
                median_interval(&ratios).ok_or_else(|| Failure::own(&"nothing was measured"))?;
            let gathered = runs.iter().filter_map(|run| run.gathered).reduce(f64::min);
            let pairing = Pairing { place: "one host", monitor, interval, gathered };
            facts.heading(&pairing.line(name));
            let quickest = bare.iter().map(|run| run.seconds).fold(f64::MAX, f64::min);
            let mut one = pairing.row();
            one.extend([
                ("ranks".to_owned(), self.arguments.ranks.into()),
                ("iterations".to_owned(), self.arguments.iterations.into()),
                ("sorted".to_owned(), sorted.into()),
                ("seconds".to_owned(), quickest.into()),
            ]);
            rows.push(Value::Object(one));
        }
        Ok(Value::Array(rows))
    }

    fn run(&self, watched: Watched, sorted: i64) -> Result<Run, Failure> {
        let launcher = self.arguments.mpirun.clone();
        let report = self.folder.join("report");
        let mut command = match watched {
            Watched::Analysis => {
                let mut command = Command::new(&self.sapwood);
                command.args(["mpi", "--quiet", "--waits", "--interval", "200ms", "--out"]);
                command.arg(&report).arg("--").arg(&launcher);
                command
            }
            Watched::Not | Watched::Collectors => Command::new(&launcher),
        };
        for variable in ["LD_PRELOAD", "SAPWOOD_MPI_WAITS", "SAPWOOD_MPI_DUMP_DIR"] {
            command.env_remove(variable);
        }
        command.args(["-np", &self.arguments.ranks.to_string()]);
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
            Watched::Not | Watched::Collectors => None,
        };
        Ok(Run { seconds, sorted, gathered })
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn rows() -> Value {
        let interval = median_interval(&[1.0, 1.01, 1.02]).expect("there are samples");
        let rows = [("collectors", None), ("analysis", Some(1.0))].map(|(monitor, gathered)| {
            let mut one = Pairing { place: "one host", monitor, interval, gathered }.row();
            for (name, number) in [("ranks", 2), ("iterations", 20_000), ("sorted", 0)] {
                one.insert(name.to_owned(), number.into());
            }
            one.insert("seconds".to_owned(), 0.5.into());
            Value::Object(one)
        });
        rows.to_vec().into()
    }

    #[test]
    fn what_was_overwritten_lowers_the_gather_rate() {
        let folder = Folder::create().expect("a folder can be made");
        let profile = folder.path.join("profile.json");
        let text = r#"{"waits": {"events": 90, "dropped": 10}}"#;
        std::fs::write(&profile, text).expect("a file can be written");
        assert_eq!(gather_rate(&profile).ok(), Some(0.9));
        std::fs::write(&profile, r#"{"waits": null}"#).expect("a file can be written");
        assert!(gather_rate(&profile).is_err());
    }
}
