//! Hang-ups, which are not for the processes of a tree, and requests to end that others answer.
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

/// Has this process ignore `SIGTERM`, by which a resource manager announces the end of an
/// allocation some seconds before it kills; a process that it starts is ended by it. Only for a
/// process that is Sapwood's own, and ends when its network does.
pub fn ignore_terminations() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: The handler does nothing, which is safe at any moment. One that is a function is
    // reset when another program is executed; the disposition to ignore would be inherited.
    unsafe { libc::signal(libc::SIGTERM, nothing as *const () as libc::sighandler_t) };
}
