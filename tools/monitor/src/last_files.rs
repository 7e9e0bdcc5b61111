//! What is written at the end of a run: step after step, by one thread, so that a file system that
//! does not answer holds this command no longer than for a while.

use std::collections::VecDeque;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The time that one step may take: more than a disk takes for the files of thousands of ranks.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(300);

/// Writes; one line if that fails.
type Write<S> = Box<dyn FnOnce(&mut S) -> Option<String> + Send>;

/// One file, or several of one kind.
struct LastStep<S> {
    name: String,
    write: Write<S>,
}

/// Steps that share a state.
pub(crate) struct LastFiles<S> {
    state: S,
    steps: Vec<LastStep<S>>,
}

/// What has come of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeftFiles<S> {
    /// None if a step has not ended: its thread has the state.
    pub(crate) state: Option<S>,
    /// What has failed; also the steps that are not written since the thread has failed.
    pub(crate) lines: Vec<String>,
    /// The names of the steps that have not ended.
    pub(crate) unwritten: Vec<String>,
}

/// What the thread says.
enum Progress<S> {
    /// A step has ended; a line if it has failed.
    Step(Option<String>),
    All(S),
}

impl<S: Send + 'static> LastFiles<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { state, steps: Vec::new() }
    }

    /// Adds a step that follows the others.
    pub(crate) fn add(
        &mut self,
        name: String,
        write: impl FnOnce(&mut S) -> Option<String> + Send + 'static,
    ) {
        self.steps.push(LastStep { name, write: Box::new(write) });
    }

    /// The names of the steps.
    pub(crate) fn names(&self) -> Vec<String> {
        self.steps.iter().map(|step| step.name.clone()).collect()
    }

    /// Does the steps; gives up where one takes longer than `wait`. No step begins after that.
    pub(crate) fn write(self, wait: Duration) -> LeftFiles<S> {
        let mut unwritten = VecDeque::from(self.names());
        let (tell, told) = mpsc::channel();
        let shared = Arc::new(Mutex::new(Some(self)));
        let (files, sender) = (Arc::clone(&shared), tell.clone());
        let work = move || do_once(&files, &sender);
        if thread::Builder::new().name("last files".to_owned()).spawn(work).is_err() {
            do_once(&shared, &tell);
        }
        // A thread that panics leaves no sender behind.
        drop(tell);
        let mut lines = Vec::new();
        loop {
            match told.recv_timeout(wait) {
                Ok(Progress::Step(line)) => {
                    unwritten.pop_front();
                    lines.extend(line);
                }
                Ok(Progress::All(state)) => {
                    return LeftFiles { state: Some(state), lines, unwritten: Vec::new() };
                }
                Err(RecvTimeoutError::Timeout) => {
                    return LeftFiles { state: None, lines, unwritten: unwritten.into() };
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let names = Vec::from(unwritten).join(", ");
                    lines.push(format!("not written: {names}: the thread that writes has failed"));
                    return LeftFiles { state: None, lines, unwritten: Vec::new() };
                }
            }
        }
    }

    fn work(self, tell: &Sender<Progress<S>>) {
        let Self { mut state, steps } = self;
        for step in steps {
            let line = (step.write)(&mut state);
            if tell.send(Progress::Step(line)).is_err() {
                // It was given up, and what follows was told to be unwritten.
                return;
            }
        }
        let _ = tell.send(Progress::All(state));
    }
}

/// Does the steps, unless another thread has taken them.
fn do_once<S: Send + 'static>(files: &Mutex<Option<LastFiles<S>>>, tell: &Sender<Progress<S>>) {
    let taken = files.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(files) = taken {
        files.work(tell);
    }
}

/// One line for what was not written; none where all was.
pub(crate) fn unwritten_line(unwritten: &[String], wait: Duration) -> Option<String> {
    let names = unwritten.join(", ");
    let seconds = wait.as_secs();
    (!unwritten.is_empty())
        .then(|| format!("not written: {names}: the file system gave no answer for {seconds} s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than this computer stands still.
    const LONG: Duration = Duration::from_secs(120);

    #[test]
    fn steps_follow_each_other_and_tell_what_fails() {
        let mut files = LastFiles::new(Vec::new());
        files.add("one".to_owned(), |done| {
            done.push(1);
            Some("no room".to_owned())
        });
        files.add("two".to_owned(), |done| {
            done.push(2);
            None
        });
        let left = files.write(LONG);
        let lines = vec!["no room".to_owned()];
        assert_eq!(left, LeftFiles { state: Some(vec![1, 2]), lines, unwritten: Vec::new() });
        assert_eq!(unwritten_line(&left.unwritten, LONG), None);
    }

    #[test]
    fn a_step_that_panics_is_not_told_as_a_file_system_that_gives_no_answer() {
        let mut files = LastFiles::new(());
        files.add("one".to_owned(), |()| None);
        files.add("two".to_owned(), |()| panic!("a fault of this program"));
        files.add("three".to_owned(), |()| None);
        let lines = vec!["not written: two, three: the thread that writes has failed".to_owned()];
        assert_eq!(files.write(LONG), LeftFiles { state: None, lines, unwritten: Vec::new() });
    }

    #[test]
    fn a_step_that_does_not_end_is_given_up_and_none_follows_it() {
        let (end, ended) = mpsc::channel::<()>();
        let (follow, followed) = mpsc::channel::<()>();
        let mut files = LastFiles::new(());
        files.add("one".to_owned(), move |()| ended.recv().err().map(|error| error.to_string()));
        files.add("two".to_owned(), move |()| follow.send(()).err().map(|error| error.to_string()));
        let left = files.write(Duration::from_millis(1));
        assert_eq!(left.state, None);
        assert_eq!(
            unwritten_line(&left.unwritten, LONG).as_deref(),
            Some("not written: one, two: the file system gave no answer for 120 s")
        );
        end.send(()).expect("it waits");
        // The thread has ended once it holds its sender no more.
        assert_eq!(followed.recv(), Err(mpsc::RecvError), "what was told stays so");
    }
}
