//! Hang-ups, which are not for the processes of a tree.
//!
//! When a process ends, the kernel looks at the process groups of its children. A group that
//! becomes orphaned (no member has a parent outside the group in its session) while a member is
//! stopped is sent `SIGHUP`, since no shell could resume it. In a tree that repairs itself a
//! stopped process is not a dead one, and its starter may end before it is resumed.

/// Has this process and those that it will start ignore `SIGHUP`, as `nohup` does. Only for a
/// process that is Sapwood's own: what it starts can still ask for the signal by itself.
pub fn ignore_hangups() {
    // SAFETY: The disposition of a signal is set to a constant that is valid for it; no handler is
    // installed, so nothing runs at its arrival. It fails for no valid signal other than SIGKILL
    // and SIGSTOP.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}
