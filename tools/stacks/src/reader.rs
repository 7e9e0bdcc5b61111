//! Reads the stacks of some processes: stops each for a moment, copies, and works out the rest
//! while the process runs on.
//!
//! What is learnt of files and processes is kept from one wish to the next. Each process is stopped
//! by a thread of its own: should it not stop, the end of that thread lets it go.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::time::Duration;

use sapwood_report::nanoseconds;
use sapwood_report::stacks::{Sample, Wish};

use crate::process::{Facts, Mapping, end_of, facts, threads};
use crate::refusal;
use crate::stop::{Copied, StopError, StoppedThread};
use crate::unwind::{Frame, Modules, Space};

/// The hidden argument with which this program serves a leaf of a tree.
pub(crate) const READER: &str = "reader";

/// An interpreter is looked for as often as this in one process.
#[cfg(feature = "python")]
const SEARCHES_MAX: u32 = 3;

/// A reader and what it has learnt.
#[derive(Default)]
pub(crate) struct Reader {
    modules: Modules,
    known: BTreeMap<i32, Known>,
    /// How long threads are kept when all is copied.
    hold: Duration,
}

/// What is kept of a process.
struct Known {
    space: Space,
    #[cfg(feature = "python")]
    python: Option<Result<crate::python::Python, String>>,
    /// How often the interpreter was looked for.
    #[cfg(feature = "python")]
    searches: u32,
}

/// What was copied while a process was stopped.
struct Copy {
    threads: Vec<Copied>,
    stopped: Duration,
    #[cfg(feature = "python")]
    python: Option<Result<Vec<crate::python::PythonStack>, String>>,
}

/// Carries out wishes, one in each line, until there are no more.
pub(crate) fn serve(mut reader: Reader) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(wish) = serde_json::from_str::<Wish>(&line?) else { continue };
        let samples = reader.read(&wish);
        let line = serde_json::to_string(&samples).expect("text and numbers are always JSON");
        writeln!(output, "{line}")?;
        output.flush()?;
    }
    Ok(())
}

impl Reader {
    /// A reader that keeps threads stopped for some time when all is copied, for tests.
    pub(crate) fn holding(hold: Duration) -> Self {
        Self { hold, ..Self::default() }
    }

    /// The samples of all processes of a wish.
    pub(crate) fn read(&mut self, wish: &Wish) -> Vec<Sample> {
        let processes = wish.processes.iter();
        let samples =
            processes.map(|&(rank, pid)| self.sample(rank, pid, wish.all_threads)).collect();
        self.known.retain(|pid, _| wish.processes.iter().any(|process| process.1 == *pid));
        samples
    }

    fn sample(&mut self, rank: u32, pid: i32, all_threads: bool) -> Sample {
        let mut sample = Sample { rank, pid, ..Sample::default() };
        let before = facts(pid);
        let known = self.known.remove(&pid);
        let mut known = Known::of(pid, known, &mut self.modules);
        match known.copy(pid, all_threads, self.hold) {
            Ok(copy) => {
                sample.stopped_ns = nanoseconds(copy.stopped);
                sample.note = note(before.as_ref());
                known.stacks(copy, &mut sample);
                self.known.insert(pid, known);
            }
            Err(error) => {
                let own_user = rustix::process::geteuid().as_raw();
                sample.missing = refusal::reason(error, facts(pid).as_ref(), own_user);
            }
        }
        sample
    }
}

/// What is to be said of a process that has a stack.
fn note(before: Option<&Facts>) -> String {
    match before.map(|facts| facts.state) {
        Some('T') => "stopped by a signal, and stays so until SIGCONT".to_owned(),
        _ => String::new(),
    }
}

impl Known {
    fn of(pid: i32, before: Option<Self>, modules: &mut Modules) -> Self {
        #[cfg(feature = "python")]
        {
            let (space, python, searches) =
                before.map_or((None, None, 0), |one| (Some(one.space), one.python, one.searches));
            let space = Space::of(pid, space, modules);
            // What takes long is done before the process is stopped. An interpreter that has not
            // begun yet is found the next time.
            let is_wanted = !matches!(python, Some(Ok(_))) && searches < SEARCHES_MAX;
            if !is_wanted || !space.is_python() {
                return Self { space, python, searches };
            }
            let python = Some(crate::python::Python::find(pid));
            Self { space, python, searches: searches + 1 }
        }
        #[cfg(not(feature = "python"))]
        Self { space: Space::of(pid, before.map(|one| one.space), modules) }
    }

    /// Stops the threads of a process, copies what is needed and lets them go.
    fn copy(&mut self, pid: i32, all: bool, hold: Duration) -> Result<Copy, StopError> {
        let mappings = self.space.mappings();
        #[cfg(feature = "python")]
        let python = &mut self.python;
        let copy = || {
            let (stopped, copied, failed) = stop(pid, all, mappings);
            #[cfg(feature = "python")]
            let python =
                python.as_mut().filter(|_| !stopped.is_empty()).map(|python| match python {
                    Ok(python) => python.stacks(),
                    Err(reason) => Err(reason.clone()),
                });
            if !hold.is_zero() && !stopped.is_empty() {
                std::thread::sleep(hold);
            }
            let stopped = stopped.into_iter().map(StoppedThread::let_go).max();
            let stopped = stopped.filter(|_| !copied.is_empty()).ok_or(failed)?;
            Ok(Copy {
                threads: copied,
                stopped,
                #[cfg(feature = "python")]
                python,
            })
        };
        let copied = std::thread::scope(|scope| scope.spawn(copy).join());
        copied.unwrap_or(Err(StopError::Late))
    }

    /// Puts the stacks of a copy into a sample.
    fn stacks(&self, copy: Copy, sample: &mut Sample) {
        for copied in &copy.threads {
            let frames = self.space.frames(copied);
            #[cfg(feature = "python")]
            let frames = match &copy.python {
                Some(Ok(stacks)) => with_python(frames, copied, stacks),
                Some(Err(reason)) => {
                    // A library of Python may be there and never be used.
                    if frames.iter().any(crate::python::is_evaluator) {
                        sample.note = format!("its Python frames cannot be read: {reason}");
                    }
                    frames
                }
                None => frames,
            };
            let names = frames.into_iter().flat_map(|frame: Frame| frame.names).collect();
            sample.stacks.push(names);
        }
    }
}

/// Stops threads of a process and copies what tells where they are; why others were not stopped.
fn stop(pid: i32, all: bool, mappings: &[Mapping]) -> (Vec<StoppedThread>, Vec<Copied>, StopError) {
    let mut wanted = threads(pid);
    if !all {
        wanted.truncate(1);
    }
    let (mut stopped, mut copied, mut failed) = (Vec::new(), Vec::new(), StopError::Ended);
    for thread in wanted {
        match StoppedThread::stop(thread) {
            Ok(thread) => {
                copied.extend(thread.copy(pid, |address| end_of(mappings, address)));
                stopped.push(thread);
            }
            Err(error) => failed = error,
        }
    }
    (stopped, copied, failed)
}

#[cfg(feature = "python")]
fn with_python(
    frames: Vec<Frame>,
    copied: &Copied,
    stacks: &[crate::python::PythonStack],
) -> Vec<Frame> {
    let is_same = |stack: &&crate::python::PythonStack| {
        stack.thread_pointer == copied.registers.thread_pointer
    };
    match stacks.iter().find(is_same) {
        Some(stack) => crate::python::interleaved(frames, &stack.frames),
        None => frames,
    }
}
