//! The frames of Python programs, by py-spy as a library, and where they belong among the
//! interpreter's own.

use py_spy::config::LockingStrategy;
use py_spy::{Config, PythonSpy, StackTrace};

use crate::unwind::Frame;

/// A function of the interpreter that runs Python code.
const EVALUATOR: &str = "_PyEval_EvalFrameDefault";
/// Names of interpreter functions between two frames, which say nothing to an author of Python.
const INTERPRETER: [&str; 4] = ["_Py", "Py", "method_", "object_"];
/// More of them, by their whole names.
const INTERPRETER_FUNCTIONS: [&str; 6] = [
    "cfunction_call",
    "cfunction_vectorcall_FASTCALL",
    "pymain_run_python",
    "run_eval_code_obj",
    "run_mod",
    "pyrun_file",
];

/// A function of a Python program that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PythonFrame {
    /// Name, file and line.
    pub(crate) name: String,
    /// Whether the interpreter's own function that runs it was called for it.
    pub(crate) is_entry: bool,
}

/// What is known of the interpreter of a process.
pub(crate) struct Python {
    spy: PythonSpy,
}

/// The stack of a Python thread, the outermost frame first.
pub(crate) struct PythonStack {
    /// How the thread library of its process knows it.
    pub(crate) thread_pointer: u64,
    pub(crate) frames: Vec<PythonFrame>,
}

impl Python {
    /// Finds the interpreter of a process.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn find(process: i32) -> Result<Self, String> {
        // Its threads are stopped by the caller.
        let config = Config { blocking: LockingStrategy::NonBlocking, ..Config::default() };
        let spy = PythonSpy::new(process, &config);
        Ok(Self { spy: spy.map_err(|error| format!("{error:#}"))? })
    }

    /// The stacks of its threads, which are stopped.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn stacks(&mut self) -> Result<Vec<PythonStack>, String> {
        let traces = self.spy.get_stack_traces().map_err(|error| format!("{error:#}"))?;
        Ok(traces.into_iter().map(PythonStack::from).collect())
    }
}

impl From<StackTrace> for PythonStack {
    fn from(trace: StackTrace) -> Self {
        let frames = trace.frames.iter().rev().map(|frame| {
            let file = frame.filename.rsplit('/').next().unwrap_or_default();
            PythonFrame {
                name: format!("{} ({file}:{})", frame.name, frame.line),
                is_entry: frame.is_entry || frame.is_shim_entry,
            }
        });
        Self { thread_pointer: trace.thread_id, frames: frames.collect() }
    }
}

/// The stack with the Python frames in the places of the interpreter's functions that run them. Of
/// the other functions of the interpreter none is left.
pub(crate) fn interleaved(native: Vec<Frame>, python: &[PythonFrame]) -> Vec<Frame> {
    let evaluators = native.iter().filter(|frame| is_evaluator(frame)).count();
    let entries = python.iter().filter(|frame| frame.is_entry).count();
    // An interpreter that marks no entries, as before 3.11, calls its function for each.
    let marks = entries > 0 && entries != python.len();
    let mut left = python.iter().peekable();
    let mut stack = Vec::new();
    let mut seen = 0;
    for frame in native {
        if !is_evaluator(&frame) {
            if !is_interpreter(&frame) {
                stack.push(frame);
            }
            continue;
        }
        seen += 1;
        // The first frame of a group is its entry; all up to the next entry are run by it.
        let mut is_first = true;
        while let Some(next) = left.peek() {
            let ends = if marks { next.is_entry } else { true };
            if !is_first && ends && (seen < evaluators) {
                break;
            }
            stack.push(Frame { names: vec![next.name.clone()], ..Frame::default() });
            is_first = false;
            left.next();
        }
    }
    // Of a stack that could not be followed to its begin, what is left is told at the end.
    stack.extend(left.map(|frame| Frame { names: vec![frame.name.clone()], ..Frame::default() }));
    stack
}

pub(crate) fn is_evaluator(frame: &Frame) -> bool {
    frame.symbol.starts_with(EVALUATOR)
}

fn is_interpreter(frame: &Frame) -> bool {
    let symbol = frame.symbol.as_str();
    // Functions of its own have no names where it was stripped.
    if frame.is_python && symbol.is_empty() {
        return true;
    }
    INTERPRETER.iter().any(|begin| symbol.starts_with(begin))
        || INTERPRETER_FUNCTIONS.contains(&symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(symbols: &str) -> Vec<Frame> {
        let frame = |symbol: &str| Frame {
            names: vec![symbol.into()],
            symbol: symbol.trim_start_matches('+').into(),
            is_python: symbol.starts_with('+'),
        };
        symbols.split(' ').map(frame).collect()
    }

    fn python(names: &str) -> Vec<PythonFrame> {
        let frame = |name: &str| PythonFrame {
            name: name.trim_start_matches('*').into(),
            is_entry: name.starts_with('*'),
        };
        names.split(' ').map(frame).collect()
    }

    fn told(frames: &[Frame]) -> String {
        frames.iter().map(|frame| frame.names.join("/")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn python_frames_stand_where_the_interpreter_runs_them() {
        let stack = native(
            "main Py_BytesMain + _PyEval_EvalFrameDefault sorted_ext _PyEval_EvalFrameDefault \
             __pyx_recv MPI_Recv",
        );
        let merged = interleaved(stack, &python("*module solve *key inner"));
        assert_eq!(told(&merged), "main module solve sorted_ext key inner __pyx_recv MPI_Recv");
    }

    #[test]
    fn an_interpreter_that_marks_no_entries_runs_one_frame_in_each_call() {
        let stack = native("main _PyEval_EvalFrameDefault _PyEval_EvalFrameDefault MPI_Recv");
        assert_eq!(
            told(&interleaved(stack, &python("module solve"))),
            "main module solve MPI_Recv"
        );
    }

    #[test]
    fn no_python_frame_is_lost_where_the_native_stack_is_cut() {
        let merged = interleaved(native("MPI_Recv"), &python("*module solve"));
        assert_eq!(told(&merged), "MPI_Recv module solve");
    }
}
