//! The processes that one node started: all of them started, watched and ended together.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::{Ending, EndingStep, Exit, LaunchError, Local, Manner, Order, Process};

/// How many processes one family can have.
pub const FAMILY_MEMBERS_MAX: usize = 65_536;

/// A member that has ended and was reaped.
#[derive(Debug)]
pub struct Departed {
    /// The name under which it was started.
    pub name: u32,
    /// How it ended.
    pub exit: Exit,
    /// The process, how it ended, and the last lines of its standard error: see
    /// [`Process::exit_report`].
    pub exit_report: String,
    /// The member itself. Output that was not taken yet can still be read from it.
    pub process: Process,
}

/// The processes that one node started, by a name of the caller's choice, such as the rank.
///
/// In the poll loop: watch the two descriptors of each member; when one that ends is readable,
/// call [`take_ended`](Self::take_ended). To end all, close the links to them, call
/// [`end`](Self::end), and from then on [`step_ending`](Self::step_ending) at the times that it
/// answers. Dropping a family kills all members at once and reaps them.
#[derive(Default)]
pub struct Family {
    members: BTreeMap<u32, Process>,
    ending: Option<Ending>,
}

impl Family {
    /// A family without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a member on this machine.
    ///
    /// # Errors
    /// As [`Local::start`]; [`LaunchError::ApiMisuse`] if there is a member of that name, if
    /// there are [`FAMILY_MEMBERS_MAX`], or after [`end`](Self::end).
    pub fn start(&mut self, name: u32, order: &Order<'_>) -> Result<&mut Process, LaunchError> {
        let rule = if self.ending.is_some() {
            Some("a family that is being ended starts no process")
        } else if self.members.len() >= FAMILY_MEMBERS_MAX {
            Some("a family has at most 65536 members")
        } else if self.members.contains_key(&name) {
            Some("each member of a family has a name of its own")
        } else {
            None
        };
        match rule {
            Some(rule) => Err(LaunchError::ApiMisuse { rule }),
            None => {
                let process = Local.start(order)?;
                Ok(self.members.entry(name).or_insert(process))
            }
        }
    }

    /// How many members have not been taken as ended.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether all members have been taken as ended.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// All members, by name.
    pub fn members(&self) -> impl Iterator<Item = (u32, &Process)> {
        self.members.iter().map(|(&name, process)| (name, process))
    }

    /// One member.
    pub fn member(&mut self, name: u32) -> Option<&mut Process> {
        self.members.get_mut(&name)
    }

    /// Reaps and hands over the members that have ended, by name. Never blocks.
    pub fn take_ended(&mut self) -> Vec<Departed> {
        let has_ended = |(&name, process): (&u32, &mut Process)| process.try_wait().map(|_| name);
        let ended: Vec<u32> = self.members.iter_mut().filter_map(has_ended).collect();
        ended.into_iter().filter_map(|name| self.take_ended_member(name)).collect()
    }

    /// Reaps and hands over one member if it has ended. Never blocks.
    pub fn take_ended_member(&mut self, name: u32) -> Option<Departed> {
        let exit = self.members.get_mut(&name)?.try_wait()?;
        let mut process = self.members.remove(&name)?;
        let exit_report = process.exit_report();
        Some(Departed { name, exit, exit_report, process })
    }

    /// Begins to end all members: see [`Ending`]. A second call can only hasten it.
    ///
    /// Call [`step_ending`](Self::step_ending) next.
    pub fn end(&mut self, now: Duration, grace: Duration, manner: Manner) {
        match &mut self.ending {
            Some(ending) => ending.hasten(now, grace, manner),
            None => self.ending = Some(Ending::new(now, grace, manner)),
        }
    }

    /// Sends the signals that are due and answers when to call again at the latest; nothing if
    /// there is no more to be sent.
    pub fn step_ending(&mut self, now: Duration) -> Option<Duration> {
        if self.members.is_empty() {
            return None;
        }
        let ending = self.ending.as_mut()?;
        let mut step = ending.step(now);
        if step == EndingStep::Terminate {
            step = ending.step(now);
            self.signal_all(Signal::TERM);
        }
        match step {
            EndingStep::Wait(until) => Some(until),
            EndingStep::Terminate | EndingStep::Kill => {
                self.signal_all(Signal::KILL);
                None
            }
        }
    }

    /// Ends all members and waits for it, for callers without a poll loop, at most for `grace` and
    /// another `grace` after the kill. Returns the members that ended, as
    /// [`wait_ended`](Self::wait_ended) does.
    pub fn end_and_wait(&mut self, grace: Duration, manner: Manner) -> Vec<Departed> {
        self.end(Duration::ZERO, grace, manner);
        self.step_ending(Duration::ZERO);
        let mut departed = self.wait_ended(grace);
        if !self.members.is_empty() {
            self.signal_all(Signal::KILL);
            departed.append(&mut self.wait_ended(grace.max(Duration::from_secs(1))));
        }
        departed
    }

    /// Waits until all members have ended, at most for `limit`, and returns those that did.
    ///
    /// Blocks the caller. Meanwhile the output of captured streams is read, so that no member
    /// blocks on a full pipe; only the end of standard error is kept.
    pub fn wait_ended(&mut self, limit: Duration) -> Vec<Departed> {
        let begin = Instant::now();
        let mut departed = self.take_ended();
        while !self.members.is_empty() {
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            self.wait_for_anything(left);
            for process in self.members.values_mut() {
                process.drain();
            }
            departed.append(&mut self.take_ended());
        }
        departed
    }

    fn wait_for_anything(&self, limit: Duration) {
        let mut watched = Vec::with_capacity(3 * self.members.len());
        for process in self.members.values() {
            watched.push(PollFd::from_borrowed_fd(process.exit_descriptor(), PollFlags::IN));
            if !process.stderr_ended() {
                watched.push(PollFd::from_borrowed_fd(process.stderr(), PollFlags::IN));
            }
            if let Some(stdout) = process.stdout().filter(|_| !process.stdout_ended()) {
                watched.push(PollFd::from_borrowed_fd(stdout, PollFlags::IN));
            }
        }
        // An error or an interruption only means that the members are looked at sooner.
        let _ = poll(&mut watched, Timespec::try_from(limit).ok().as_ref());
    }

    fn signal_all(&mut self, signal: Signal) {
        for process in self.members.values_mut() {
            // A process that cannot be signalled has changed its user; dropping it waits for its
            // bounded time, and nothing else can be done.
            let _ = process.kill(signal);
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // All are killed before the first is waited for, so that they end beside each other.
        self.signal_all(Signal::KILL);
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family")
            .field("members", &self.members)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}
