//! Hang-ups, which are not for the processes of a tree, requests to end that others answer, and
//! writes beyond a limit on files, which fail like those on a full disk.
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

/// Has a write beyond the limit on the size of files (`ulimit -f`) fail with the system's error
/// instead of ending this process by `SIGXFSZ`. The programs that it starts have the signal's
/// default again. Only for a process that is Sapwood's own.
pub fn survive_file_limit() {
    // SAFETY: Nothing is changed by a query with a place for the answer, which is then written as
    // a whole.
    let set = unsafe {
        let mut now = std::mem::zeroed::<libc::sigaction>();
        (libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &raw mut now) == 0).then_some(now)
    };
    // Where our starter has it ignored, what we start is to have it so, too.
    if set.is_none_or(|set| set.sa_sigaction == libc::SIG_DFL) {
        // SAFETY: As in `ignore_terminations`.
        unsafe { libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t) };
    }
}

/// A handler that is a function is reset when another program is executed; the disposition to
/// ignore would be inherited.
extern "C" fn nothing(_signal: libc::c_int) {}

/// Has this process ignore `SIGTERM`, by which a resource manager announces the end of an
/// allocation some seconds before it kills; a process that it starts is ended by it. Only for a
/// process that is Sapwood's own, and ends when its network does.
pub fn ignore_terminations() {
    // SAFETY: The handler does nothing, which is safe at any moment.
    unsafe { libc::signal(libc::SIGTERM, nothing as *const () as libc::sighandler_t) };
}
