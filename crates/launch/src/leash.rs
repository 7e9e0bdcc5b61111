//! The leash of a process group: nobody of it outlives the process that holds the leash, not even
//! where that is killed and can do nothing more itself.
//!
//! The [bond](crate::Bond) ends the process that was started, but not those that it has started in
//! turn. For them the holder has the only write end of a pipe, and the group inherits a read end
//! that asks the kernel for `SIGKILL` to the whole group in the place of `SIGIO` (`F_SETOWN` with a
//! group, `F_SETSIG`, `O_ASYNC`), as a [lifeline](crate::Lifeline) does for one process. When the
//! write end closes, however that comes, the kernel ends the group. Who has left the group, as a
//! daemon does, or has closed what it inherited, goes free.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal};

use crate::lifeline::{F_SETSIG, control};

/// The variable under which a read end is handed over, in
/// [`Order::inherit`](crate::Order::inherit). Nobody needs to read it.
pub const LEASH_VARIABLE: &str = "SAPWOOD_LEASH";

/// The holder's end. Dropping it ends the group.
#[derive(Debug)]
pub struct Leash {
    _writer: PipeWriter,
    reader: Option<PipeReader>,
}

impl Leash {
    /// A leash on nobody.
    ///
    /// # Errors
    /// The system's, if no descriptor is free.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { _writer: writer, reader: Some(reader) })
    }

    /// What the first process of the group inherits under [`LEASH_VARIABLE`]; none once the leash
    /// holds a group.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    /// Puts the group that this process leads on the leash. It must have inherited the end.
    ///
    /// # Errors
    /// The system's; the group then ends with its leader only.
    pub fn hold(&mut self, leader: u32) -> io::Result<()> {
        // The settings are of the open file, which the group shares with us until here.
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
    fn a_group_ends_with_its_leash_down_to_the_last_descendant() {
        let mut leash = Leash::new().unwrap();
        let mut order = Order::new("/bin/sh");
        // The descendant holds standard output open until it is killed.
        order.arguments = vec!["-c".into(), "sleep 1000 & echo begun; exec sleep 1000".into()];
        order.capture_stdout = true;
        order.inherit = vec![(LEASH_VARIABLE.to_string(), leash.end().unwrap())];
        let mut process = Local::new().start(&order).unwrap();
        drop(order);
        leash.hold(process.pid()).unwrap();
        assert!(leash.end().is_none());
        drop(leash);
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
    fn a_leash_on_nobody_ends_nobody() {
        let leash = Leash::new().unwrap();
        let mut end = std::fs::File::from(leash.end().unwrap().try_clone_to_owned().unwrap());
        drop(leash);
        assert_eq!(end.read(&mut [0; 4]).unwrap(), 0);
    }
}
