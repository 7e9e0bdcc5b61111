//! A process-group reaper: no process of a group outlives the holder of the reaper, even if the
//! holder is killed and cannot clean up.
//!
//! The [death signal](crate::DeathSignal) ends the started process, but not its descendants. For
//! them the holder has the only write end of a pipe, and the group inherits a read end that asks
//! the kernel for `SIGKILL` to the whole group in the place of `SIGIO` (`F_SETOWN` with a group,
//! `F_SETSIG`, `O_ASYNC`), as a [liveness pipe](crate::LivenessPipe) does for one process. When the
//! write end closes, for whatever reason, the kernel kills the group. A process that has left the
//! group, as a daemon does, is not killed.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal};

use crate::liveness_pipe::{F_SETSIG, control};

/// The variable under which a read end is handed over, in
/// [`Order::inherit`](crate::Order::inherit). The new process need not read it.
pub const GROUP_REAPER_VARIABLE: &str = "SAPWOOD_GROUP_REAPER";

/// The holder's end. Dropping it kills the group, unless it was [released](Self::release).
#[derive(Debug)]
pub struct GroupReaper {
    _writer: PipeWriter,
    reader: OwnedFd,
    has_group: bool,
}

impl GroupReaper {
    /// A reaper that has no group yet.
    ///
    /// # Errors
    /// The system's, if no descriptor is free.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { _writer: writer, reader: reader.into(), has_group: false })
    }

    /// The read end, which the first process of the group inherits under [`GROUP_REAPER_VARIABLE`];
    /// none once the reaper has a group.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        (!self.has_group).then(|| self.reader.as_fd())
    }

    /// Makes the group that this process leads the one that is killed. The leader must have
    /// inherited the read end.
    ///
    /// # Errors
    /// The system's; the group then ends with its leader only.
    pub fn hold(&mut self, leader: u32) -> io::Result<()> {
        if std::mem::replace(&mut self.has_group, true) {
            return Ok(());
        }
        let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
        let Some(leader) = leader else { return Err(rustix::io::Errno::INVAL.into()) };
        // The settings belong to the open file description, which the group shares with us.
        control(&self.reader, libc::F_SETOWN, -leader.as_raw_nonzero().get())?;
        control(&self.reader, F_SETSIG, Signal::KILL.as_raw())?;
        Ok(fcntl_setfl(&self.reader, fcntl_getfl(&self.reader)? | OFlags::ASYNC)?)
    }

    /// Leaves the group alone from here on.
    ///
    /// # Errors
    /// The system's; the group is killed then.
    pub fn release(self) -> io::Result<()> {
        Ok(fcntl_setfl(&self.reader, fcntl_getfl(&self.reader)? - OFlags::ASYNC)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::{GroupEnd, Local, Order};

    #[test]
    fn a_group_ends_with_its_reaper_down_to_the_last_descendant() {
        let mut reaper = GroupReaper::new().unwrap();
        let mut order = Order::new("/bin/sh");
        // The descendant holds standard output open until it is killed.
        order.arguments = vec!["-c".into(), "sleep 1000 & echo begun; exec sleep 1000".into()];
        order.capture_stdout = true;
        order.inherit = vec![(GROUP_REAPER_VARIABLE.to_string(), reaper.end().unwrap())];
        let mut process = Local::new().start(&order).unwrap();
        drop(order);
        reaper.hold(process.pid()).unwrap();
        assert!(reaper.end().is_none());
        drop(reaper);
        let until = Instant::now() + Duration::from_secs(20);
        let mut text = Vec::new();
        while !process.stdout_ended() && Instant::now() < until {
            process.take_stdout(&mut text).unwrap();
            process.wait(Duration::from_millis(10));
        }
        assert!(process.stdout_ended(), "a descendant is left");
        assert_eq!(process.try_wait(), Some(crate::Exit::Signal(9)));
    }

    #[test]
    fn a_group_that_is_released_goes_on_when_its_leader_ends_and_its_reaper_is_gone() {
        let mut reaper = GroupReaper::new().unwrap();
        let mut order = Order::new("/bin/sh");
        // The descendant goes on until its standard input ends, and then says so.
        let script = "exec 3<&0; { cat <&3; echo left alone; } & exit 3";
        order.arguments = vec!["-c".into(), script.into()];
        order.capture_stdout = true;
        order.pipe_stdin = true;
        order.inherit = vec![(GROUP_REAPER_VARIABLE.to_string(), reaper.end().unwrap())];
        let mut process = Local::new().start(&order).unwrap();
        drop(order);
        process.set_group_end(GroupEnd::LeftAlone);
        reaper.hold(process.pid()).unwrap();
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
    fn a_reaper_without_a_group_ends_no_process() {
        let reaper = GroupReaper::new().unwrap();
        let mut end = std::fs::File::from(reaper.end().unwrap().try_clone_to_owned().unwrap());
        drop(reaper);
        assert_eq!(end.read(&mut [0; 4]).unwrap(), 0);
    }
}
