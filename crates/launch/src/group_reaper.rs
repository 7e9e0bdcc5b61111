//! A process-group reaper: no process of a group outlives the holder of the reaper, even if the
//! holder is killed and cannot clean up.
//!
//! The [death signal](crate::DeathSignal) ends the started process, but not its descendants. For
//! them the holder has the only write end of a pipe, and the group inherits a read end that asks
//! the kernel for `SIGKILL` to the whole group in the place of `SIGIO` (`F_SETOWN` with a group,
//! `F_SETSIG`, `O_ASYNC`), as a [liveness pipe](crate::LivenessPipe) does for one process. When the
//! write end closes, for whatever reason, the kernel kills the group. A process that has left the
//! group, as a daemon does, is not killed.
//!
//! The new process asks for the signal itself, between fork and exec. If its starter did so after
//! the start, a starter that is killed before it comes to it would leave the descendants: the
//! program runs by then, and the death signal ends only the leader.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Signal, getpid};

use crate::liveness_pipe::{F_SETSIG, control};

/// The holder's end. Dropping it kills the group, unless it was [released](Self::release).
///
/// It is for one process, which leads a group of its own: see
/// [`Order::group_reaper`](crate::Order::group_reaper).
#[derive(Debug)]
pub struct GroupReaper {
    _writer: PipeWriter,
    reader: OwnedFd,
}

impl GroupReaper {
    /// A reaper that has no group yet.
    ///
    /// # Errors
    /// The system's, if no descriptor is free.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { _writer: writer, reader: reader.into() })
    }

    /// The read end, which the first process of the group inherits.
    pub(crate) fn end(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Leaves the group alone from here on.
    ///
    /// # Errors
    /// The system's; the group is killed then.
    pub fn release(self) -> io::Result<()> {
        Ok(fcntl_setfl(&self.reader, fcntl_getfl(&self.reader)? - OFlags::ASYNC)?)
    }
}

/// Makes the group that this process leads the one that is killed. Where it leads none, no process
/// is.
///
/// Only system calls, which makes it safe between fork and exec.
///
/// # Errors
/// The system's; the group then ends with its leader only.
pub(crate) fn hold_own_group(end: BorrowedFd<'_>) -> io::Result<()> {
    // The settings belong to the open file description, which the group shares with the holder.
    control(end, libc::F_SETOWN, -getpid().as_raw_nonzero().get())?;
    control(end, F_SETSIG, Signal::KILL.as_raw())?;
    Ok(fcntl_setfl(end, fcntl_getfl(end)? | OFlags::ASYNC)?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::{DeathSignal, GroupEnd, Local, Order};

    #[test]
    fn a_group_ends_with_its_reaper_though_its_starter_does_nothing_after_the_start() {
        for death_signal in [DeathSignal::BeforeExec, DeathSignal::ByProgram, DeathSignal::Off] {
            let reaper = GroupReaper::new().unwrap();
            let mut order = Order::new("/bin/sh");
            // The descendant holds standard output open until it is killed.
            let script = "sleep 1000 & echo begun; exec sleep 1000";
            order.arguments = vec!["-c".into(), script.into()];
            order.capture_stdout = true;
            order.death_signal = death_signal;
            order.group_reaper = Some(&reaper);
            let mut process = Local::new().start(&order).unwrap();
            drop(order);
            let until = Instant::now() + Duration::from_secs(20);
            let mut text = Vec::new();
            while text != b"begun\n" && Instant::now() < until {
                process.take_stdout(&mut text).unwrap();
                process.wait(Duration::from_millis(1));
            }
            drop(reaper);
            while !process.stdout_ended() && Instant::now() < until {
                process.take_stdout(&mut text).unwrap();
                process.wait(Duration::from_millis(10));
            }
            assert!(process.stdout_ended(), "{death_signal:?}: a descendant is left");
            // Its output ends a moment before it can be waited for.
            assert_eq!(process.wait(Duration::from_secs(20)), Some(crate::Exit::Signal(9)));
        }
    }

    #[test]
    fn a_group_that_is_released_goes_on_when_its_leader_ends_and_its_reaper_is_gone() {
        let reaper = GroupReaper::new().unwrap();
        let mut order = Order::new("/bin/sh");
        // The descendant goes on until its standard input ends, and then says so.
        let script = "exec 3<&0; { cat <&3; echo left alone; } & exit 3";
        order.arguments = vec!["-c".into(), script.into()];
        order.capture_stdout = true;
        order.pipe_stdin = true;
        order.group_reaper = Some(&reaper);
        let mut process = Local::new().start(&order).unwrap();
        drop(order);
        process.set_group_end(GroupEnd::LeftAlone);
        assert_eq!(process.wait(Duration::from_secs(20)), Some(crate::Exit::Status(3)));
        reaper.release().unwrap();
        process.close_stdin();
        let limit = Timespec::try_from(Duration::from_secs(20)).unwrap();
        let mut text = Vec::new();
        while !process.stdout_ended() {
            let mut readable = [PollFd::from_borrowed_fd(process.stdout().unwrap(), PollFlags::IN)];
            assert_eq!(poll(&mut readable, Some(&limit)), Ok(1), "waited for the descendant's end");
            process.take_stdout(&mut text).unwrap();
        }
        assert_eq!(String::from_utf8_lossy(&text), "left alone\n");
    }

    #[test]
    fn a_process_that_leads_no_group_is_not_ended_by_a_reaper() {
        let reaper = GroupReaper::new().unwrap();
        let mut order = Order::new("/bin/sh");
        order.arguments = vec!["-c".into(), "cat; exit 3".into()];
        order.own_group = false;
        order.pipe_stdin = true;
        order.group_reaper = Some(&reaper);
        let mut process = Local::new().start(&order).unwrap();
        drop(order);
        drop(reaper);
        process.close_stdin();
        assert_eq!(process.wait(Duration::from_secs(20)), Some(crate::Exit::Status(3)));
    }
}
