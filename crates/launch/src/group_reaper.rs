//! A process-group reaper: no process of a group outlives the holder of the reaper, even if the
//! holder is killed and cannot clean up.
//!
//! The [death signal](crate::DeathSignal) ends the started process, but not its descendants. For
//! them the holder has the only write end of a pipe, and the group inherits a read end that asks
//! the kernel for `SIGKILL` to the whole group in the place of `SIGIO` (`F_SETOWN` with a group,
//! `F_SETSIG`, `O_ASYNC`), as a [liveness pipe](crate::LivenessPipe) does for one process. When the
//! write end closes, for whatever reason, the kernel kills the group. A process that has left the
//! group, as a daemon does, is not killed.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal};

use crate::liveness_pipe::{F_SETSIG, control};

/// The variable under which a read end is handed over, in
/// [`Order::inherit`](crate::Order::inherit). The new process need not read it.
pub const GROUP_REAPER_VARIABLE: &str = "SAPWOOD_GROUP_REAPER";

/// The holder's end. Dropping it kills the group.
#[derive(Debug)]
pub struct GroupReaper {
    _writer: PipeWriter,
    reader: Option<PipeReader>,
}

impl GroupReaper {
    /// A reaper that has no group yet.
    ///
    /// # Errors
    /// The system's, if no descriptor is free.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { _writer: writer, reader: Some(reader) })
    }

    /// The read end, which the first process of the group inherits under [`GROUP_REAPER_VARIABLE`];
    /// none once the reaper has a group.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    /// Makes the group that this process leads the one that is killed. The leader must have
    /// inherited the read end.
    ///
    /// # Errors
    /// The system's; the group then ends with its leader only.
    pub fn hold(&mut self, leader: u32) -> io::Result<()> {
        // The settings belong to the open file description, which the group shares with us until
        // here.
        let Some(reader) = self.reader.take() else { return Ok(()) };
        let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
        let Some(leader) = leader else { return Err(rustix::io::Errno::INVAL.into()) };
        let reader = reader.into();
        control(&reader, libc::F_SETOWN, -leader.as_raw_nonzero().get())?;
        control(&reader, F_SETSIG, Signal::KILL.as_raw())?;
        Ok(fcntl_setfl(&reader, fcntl_getfl(&reader)? | OFlags::ASYNC)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{Local, Order};

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
    fn a_reaper_without_a_group_ends_no_process() {
        let reaper = GroupReaper::new().unwrap();
        let mut end = std::fs::File::from(reaper.end().unwrap().try_clone_to_owned().unwrap());
        drop(reaper);
        assert_eq!(end.read(&mut [0; 4]).unwrap(), 0);
    }
}
