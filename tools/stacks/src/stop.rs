//! Stopping threads of another process for as long as it takes to copy their registers and stacks.
//!
//! Threads are seized, which does not stop them, and then interrupted; no signal is sent, so that
//! the program cannot notice it but for system calls that a stop makes return early (`epoll_wait`
//! and a few more, see signal(7)). The kernel lets all threads go when the thread that has seized
//! them ends, however it ends.

use std::io::IoSliceMut;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A thread that does not stop within this time is left alone.
const STOP_TIMEOUT: Duration = Duration::from_millis(200);
/// Looks at a thread that has been interrupted, and the pause between two looks after these.
const EAGER_LOOKS: u32 = 100;
const LOOK_PAUSE: Duration = Duration::from_micros(100);
/// Of a stack, this much is copied.
const STACK_BYTES_MAX: u64 = 1 << 20;

/// The registers that tell where a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) instruction: u64,
    pub(crate) stack: u64,
    pub(crate) frame: u64,
    /// What tells threads of one process apart for its thread library.
    pub(crate) thread_pointer: u64,
}

/// What is copied of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copied {
    pub(crate) registers: Registers,
    /// The stack from its pointer on.
    pub(crate) stack: Vec<u8>,
}

/// A thread that is stopped.
pub(crate) struct StoppedThread {
    thread: Pid,
    since: Instant,
    /// A signal that was about to reach it.
    signal: Option<Signal>,
}

/// Why a thread cannot be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopError {
    /// The system refused.
    Refused(Errno),
    /// It did not stop in time.
    Late,
    /// It has ended.
    Ended,
}

impl StoppedThread {
    /// Stops a thread.
    ///
    /// # Errors
    /// [`StopError`]. A thread that is late stays seized until this thread ends.
    pub(crate) fn stop(thread: i32) -> Result<Self, StopError> {
        let thread = Pid::from_raw(thread);
        let refused = |errno| match errno {
            Errno::ESRCH => StopError::Ended,
            errno => StopError::Refused(errno),
        };
        ptrace::seize(thread, ptrace::Options::empty()).map_err(refused)?;
        let since = Instant::now();
        ptrace::interrupt(thread).map_err(refused)?;
        for look in 0_u32.. {
            match waitpid(thread, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
                Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
                Ok(WaitStatus::PtraceEvent(..)) => return Ok(Self { thread, since, signal: None }),
                Ok(WaitStatus::Stopped(_, signal)) => {
                    return Ok(Self { thread, since, signal: Some(signal) });
                }
                Ok(_) | Err(_) => return Err(StopError::Ended),
            }
            if since.elapsed() > STOP_TIMEOUT {
                return Err(StopError::Late);
            }
            match look {
                0..EAGER_LOOKS => std::thread::yield_now(),
                _ => std::thread::sleep(LOOK_PAUSE),
            }
        }
        Err(StopError::Late)
    }

    /// Copies its registers and its stack, up to the end of the mapping that the stack is in.
    pub(crate) fn copy(&self, process: i32, stack_end: impl Fn(u64) -> u64) -> Option<Copied> {
        let registers = registers(self.thread)?;
        let end = stack_end(registers.stack).min(registers.stack.saturating_add(STACK_BYTES_MAX));
        let length = usize::try_from(end.saturating_sub(registers.stack)).ok()?;
        Some(Copied { registers, stack: memory(process, registers.stack, length) })
    }

    /// Lets it go; for how long it was stopped.
    pub(crate) fn let_go(self) -> Duration {
        // A thread that was killed meanwhile is gone as well.
        let _ = ptrace::detach(self.thread, self.signal);
        self.since.elapsed()
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(thread: Pid) -> Option<Registers> {
    let all = ptrace::getregs(thread).ok()?;
    Some(Registers {
        instruction: all.rip,
        stack: all.rsp,
        frame: all.rbp,
        thread_pointer: all.fs_base,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn registers(_: Pid) -> Option<Registers> {
    None
}

/// Memory of a process; less than asked for where not all of it can be read.
pub(crate) fn memory(process: i32, begin: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let Ok(base) = usize::try_from(begin) else { return Vec::new() };
    let read = process_vm_readv(
        Pid::from_raw(process),
        &mut [IoSliceMut::new(&mut bytes)],
        &[RemoteIoVec { base, len: length }],
    );
    bytes.truncate(read.unwrap_or(0));
    bytes
}
