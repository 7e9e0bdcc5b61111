//! What one event costs: the same program without the shim, with one that only counts, and with one
//! that records, in turn.
//!
//! A call that is counted reads the clock when it begins and when it returns. An event is a record
//! of these two, so that its cost is what recording adds to counting.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::Spread;

use super::super::connect::Folder;
use super::super::facts::{Bar, Facts, look};
use super::super::pairs::turns;
use super::super::progress::Progress;
use super::super::shim_cost::compile;
use super::Arguments;

const SOURCE: &str = include_str!("event_cost.c");
const CALLS: &str = "200000";
const BATCHES: &str = "5";
/// A ring of this size holds as many records of 32 bytes.
const RING_BYTES: u32 = 1 << 20;
const RECORD_BYTES: u32 = 32;

/// An event over a look at the clock, with that clock, and with the time-stamp counter.
const CLOCK_RATIO: Bar = Bar::Most(1.25);
const COUNTER_RATIO: Bar = Bar::Most(0.75);
/// What remains of both once the program has switched counting and recording off.
const OFF_RATIO: Bar = Bar::Most(0.1);
/// A recorded call with a reader over one without.
const READER_RATIO: Bar = Bar::Most(1.05);
const READ_INTERVAL: Duration = Duration::from_millis(1);
const COLD_NS: Bar = Bar::Most(500.0);
const EVENTS_PER_MIB: Bar = Bar::Least(32_000.0);

/// How the program is run.
#[derive(Clone, Copy)]
enum Mode {
    Bare,
    /// Its calls are counted by this clock.
    Counted(&'static str),
    /// They are recorded, too.
    Recorded(&'static str),
    /// As recorded ones, but for the program's `MPI_Pcontrol(0)`.
    Off,
    /// As counted ones, but for that.
    OffCounted,
    /// They are recorded in a file of the folder for events.
    Kept,
    /// That file is read whole, again and again.
    Read,
}

const MODES: [Mode; 9] = [
    Mode::Bare,
    Mode::Counted("cycles"),
    Mode::Recorded("cycles"),
    Mode::Counted("monotonic"),
    Mode::Recorded("monotonic"),
    Mode::Off,
    Mode::OffCounted,
    Mode::Kept,
    Mode::Read,
];

/// Nanoseconds that one process has measured.
#[derive(Clone, Copy)]
pub(super) struct Times {
    clock: f64,
    counter: f64,
    hot: f64,
    cold: f64,
}

/// The times of every mode, run by run.
pub(super) type Runs = [Vec<Times>; MODES.len()];

/// Measures.
pub(super) fn measure(
    arguments: &Arguments,
    shim: &Path,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let folder = Folder::create()?;
    let program = compile(&arguments.mpicc, &folder.path, "event_cost", SOURCE)?;
    let mut runs = Runs::default();
    for pair in 0..usize::from(arguments.pairs) {
        progress.say("event", pair, arguments.pairs.into());
        for which in turns(pair, MODES.len()) {
            runs[which].push(run(&program, MODES[which], shim, &folder.path)?);
        }
    }
    tell(&runs, facts)
}

pub(super) fn tell(runs: &Runs, facts: &mut Facts) -> Result<(), Failure> {
    let [bare, counted, recorded, counted_by_clock, recorded_by_clock, off, plain, kept, read] =
        runs;
    let all = |of: &dyn Fn(usize) -> f64| -> Result<Spread, Failure> {
        let samples: Vec<f64> = (0..bare.len()).map(of).collect();
        Spread::of(&samples).ok_or_else(|| Failure::own(&"nothing was measured"))
    };
    let clock = |at: usize| bare[at].clock;
    let event = |at: usize| recorded[at].hot - counted[at].hot;
    let by_clock = |at: usize| recorded_by_clock[at].hot - counted_by_clock[at].hot;
    facts.heading("one event, in the same run as the clocks");
    facts.spread("event.clock_ns", look("clock_gettime", "ns", 1), &all(&clock)?, None);
    let counter = all(&|at| bare[at].counter)?;
    facts.spread("event.tsc_ns", look("the time-stamp counter", "ns", 1), &counter, None);
    let label = "a record: recorded over counted calls";
    facts.spread("event.record_ns", look(label, "ns", 1), &all(&event)?, None);
    // Counting has read the clock: a record by itself would read it once.
    let alone = all(&|at| (event(at) + bare[at].counter) / clock(at))?;
    let label = "  with one look at the counter, over the clock";
    facts.spread("event.ratio_tsc", look(label, "", 2), &alone, Some(COUNTER_RATIO));
    let alone = all(&|at| (by_clock(at) + clock(at)) / clock(at))?;
    let label = "  with one look at the clock, over the clock";
    facts.spread("event.ratio_clock", look(label, "", 2), &alone, Some(CLOCK_RATIO));
    let cold = all(&|at| recorded[at].cold - counted[at].cold)?;
    let label = "a record after other memory was used";
    facts.spread("event.cold_ns", look(label, "ns", 1), &cold, Some(COLD_NS));
    let whole = all(&|at| recorded[at].hot - bare[at].hot)?;
    let label = "counted and recorded, over a call without shim";
    facts.spread("event.whole_ns", look(label, "ns", 1), &whole, None);
    let whole = all(&|at| recorded[at].cold - bare[at].cold)?;
    let label = "  after other memory was used";
    facts.spread("event.whole_cold_ns", look(label, "ns", 1), &whole, None);
    let off = all(&|at| (off[at].hot - bare[at].hot) / clock(at))?;
    let label = "switched off: MPI_Pcontrol(0), over the clock";
    facts.spread("event.ratio_off", look(label, "", 2), &off, Some(OFF_RATIO));
    let off = all(&|at| (plain[at].hot - bare[at].hot) / clock(at))?;
    let label = "  in a run that does not record";
    facts.spread("event.ratio_off_counted", look(label, "", 2), &off, Some(OFF_RATIO));
    let read = all(&|at| read[at].hot / kept[at].hot)?;
    let label = "a recorded call while its ring is read each ms";
    facts.spread("event.reader_ratio", look(label, "", 2), &read, Some(READER_RATIO));
    let events = f64::from(RING_BYTES / RECORD_BYTES);
    let label = "events in a ring of 1 MiB";
    facts.number("memory.events_per_mib", look(label, "", 0), events, Some(EVENTS_PER_MIB));
    Ok(())
}

fn run(program: &Path, mode: Mode, shim: &Path, folder: &Path) -> Result<Times, Failure> {
    let kept = empty_folder(folder)?;
    let mut command = Command::new(program);
    command.args([CALLS, BATCHES]).stdin(Stdio::null());
    for variable in ["LD_PRELOAD", "SAPWOOD_MPI_WAITS", "SAPWOOD_MPI_CLOCK"] {
        command.env_remove(variable);
    }
    let mut observed = |clock: &str| {
        command.env("LD_PRELOAD", shim).env("SAPWOOD_MPI_DUMP_DIR", folder);
        command.env("SAPWOOD_MPI_CLOCK", clock);
    };
    match mode {
        Mode::Bare => {}
        Mode::Counted(clock) => observed(clock),
        Mode::Recorded(clock) => {
            observed(clock);
            command.env("SAPWOOD_MPI_WAITS", "1");
        }
        Mode::Off => {
            observed("cycles");
            command.env("SAPWOOD_MPI_WAITS", "1").arg("0");
        }
        Mode::OffCounted => {
            observed("cycles");
            command.arg("0");
        }
        Mode::Kept | Mode::Read => {
            observed("cycles");
            command.env("SAPWOOD_MPI_EVENTS_DIR", &kept);
        }
    }
    let reader = matches!(mode, Mode::Read).then(|| Reader::start(&kept));
    let done = command.output();
    let read = reader.map_or(Ok(()), Reader::end);
    // What is wrong with the program comes first: one that has failed may leave no file.
    let times = times_of(&done.map_err(|error| Failure::own(&error))?)?;
    read.map(|()| times)
}

/// For the events of one run, below this folder.
fn empty_folder(folder: &Path) -> Result<PathBuf, Failure> {
    let kept = folder.join("kept");
    let failed = |error: std::io::Error| Failure::own(&format!("{}: {error}", kept.display()));
    if kept.exists() {
        std::fs::remove_dir_all(&kept).map_err(failed)?;
    }
    std::fs::create_dir(&kept).map_err(failed)?;
    Ok(kept)
}

/// The quickest batch of a run: the others were disturbed.
fn times_of(done: &Output) -> Result<Times, Failure> {
    let output = String::from_utf8_lossy(&done.stdout);
    let batches: Vec<Times> = output.lines().filter_map(batch).collect();
    let said = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() || batches.is_empty() || !said.is_empty() {
        return Err(Failure::own(&format!("the timed program: {}: {}", done.status, said.trim())));
    }
    let least = |of: fn(&Times) -> f64| batches.iter().map(of).fold(f64::MAX, f64::min);
    Ok(Times {
        clock: least(|one| one.clock),
        counter: least(|one| one.counter),
        hot: least(|one| one.hot),
        cold: least(|one| one.cold),
    })
}

/// Reads the file of a rank's events, while the rank writes it.
struct Reader {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<u64>>,
}

impl Reader {
    /// Begins when there is such a file in the folder.
    fn start(folder: &Path) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (folder, stop) = (folder.to_owned(), Arc::clone(&is_over));
        let thread = spawn(move || {
            let mut reads = 0;
            while !stop.load(Ordering::Relaxed) {
                if let Some(file) = events_file(&folder)? {
                    std::fs::read(file)?;
                    reads += 1;
                }
                sleep(READ_INTERVAL);
            }
            Ok(reads)
        });
        Self { is_over, thread }
    }

    fn end(self) -> Result<(), Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let reads = self.thread.join().map_err(|_| Failure::own(&"the reader panicked"))?;
        match reads.map_err(|error| Failure::own(&format!("the file of events: {error}")))? {
            0 => Err(Failure::own(&"the timed program left no file of events")),
            _ => Ok(()),
        }
    }
}

fn events_file(folder: &Path) -> std::io::Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "events") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn batch(line: &str) -> Option<Times> {
    let numbers: Vec<f64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    let &[clock, counter, hot, cold] = numbers.as_slice() else { return None };
    Some(Times { clock, counter, hot, cold })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn runs() -> Runs {
        let of = |hot, cold| vec![Times { clock: 22.0, counter: 11.0, hot, cold }; 3];
        [
            of(30.0, 400.0),
            of(50.0, 500.0),
            of(53.0, 530.0),
            of(75.0, 550.0),
            of(78.0, 590.0),
            of(41.0, 410.0),
            of(35.5, 405.0),
            of(53.0, 530.0),
            of(53.0, 540.0),
        ]
    }

    #[test]
    fn an_event_is_what_recording_adds_to_counting() {
        let mut facts = Facts::new("sapwood.test/1", String::new());
        tell(&runs(), &mut facts).expect("there are runs");
        let json: serde_json::Value = serde_json::from_str(&facts.to_json()).expect("it is JSON");
        assert_eq!(json["event"]["record_ns"], 3.0);
        assert_eq!(json["event"]["cold_ns"], 30.0);
        assert_eq!(json["event"]["whole_ns"], 23.0);
        assert_eq!(json["event"]["ratio_clock"], 25.0 / 22.0);
        assert_eq!(json["event"]["ratio_tsc"], 14.0 / 22.0);
        assert_eq!(json["event"]["ratio_off"], 0.5);
        assert_eq!(json["event"]["ratio_off_counted"], 0.25);
        assert_eq!(json["event"]["reader_ratio"], 1.0);
    }

    #[test]
    fn a_batch_is_four_numbers() {
        assert!(batch("22.31 11.20 80.00 512.00").is_some());
        assert!(batch("22.31 11.20 80.00").is_none());
        assert!(batch("no numbers here at").is_none());
    }
}
