//! Why a process cannot be read, in one line that says what to do.

use std::fs;

use nix::errno::Errno;

use crate::process::Facts;
use crate::stop::StopError;

/// Where the system says which processes may be traced.
const SCOPE_FILE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Why a process was not stopped. `facts` are those of the process, if it is there.
pub(crate) fn reason(error: StopError, facts: Option<&Facts>, own_user: u32) -> String {
    let scope = fs::read_to_string(SCOPE_FILE).ok();
    let scope = scope.and_then(|scope| scope.trim().parse().ok()).unwrap_or(0);
    reason_at(error, facts, own_user, scope)
}

fn reason_at(error: StopError, facts: Option<&Facts>, own_user: u32, scope: u32) -> String {
    let Some(facts) = facts.filter(|facts| facts.state != 'Z' && facts.state != 'X') else {
        return "its process has ended".to_owned();
    };
    match error {
        StopError::Ended => "its process has ended".to_owned(),
        StopError::Late if facts.state == 'D' => {
            "it is in a system call that cannot be interrupted (state D), such as a read from a \
             file system that does not answer"
                .to_owned()
        }
        StopError::Late => format!("it did not stop within 200 ms (state {})", facts.state),
        StopError::Refused(_) if facts.tracer != 0 => {
            let tracer = facts.tracer;
            format!("process {tracer} traces it already, as a debugger does; end that first")
        }
        StopError::Refused(_) if facts.user != own_user && own_user != 0 => {
            let user = facts.user;
            format!(
                "its process is of user {user}, not of yours ({own_user}); run this as that user"
            )
        }
        StopError::Refused(Errno::EPERM | Errno::EACCES) => refused(scope),
        StopError::Refused(errno) => format!("the system refuses to trace it: {}", errno.desc()),
    }
}

/// Why the own process may not be traced.
fn refused(scope: u32) -> String {
    match scope {
        0 => "the system refuses to trace it: its program has more rights than its user (setuid), \
              or the container lacks the capability SYS_PTRACE; give that to the container"
            .to_owned(),
        1 | 2 => format!(
            "the system forbids tracing (kernel.yama.ptrace_scope is {scope}); as root: 'sysctl \
             kernel.yama.ptrace_scope=0', or 'setcap cap_sys_ptrace+ep' on sapwood-stacks"
        ),
        _ => format!(
            "the system forbids all tracing until it is rebooted \
             (kernel.yama.ptrace_scope is {scope})"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: StopError = StopError::Refused(Errno::EPERM);

    fn said(error: StopError, state: char, tracer: i32, user: u32, scope: u32) -> String {
        reason_at(error, Some(&Facts { user, state, tracer }), 1000, scope)
    }

    #[test]
    fn each_reason_says_what_to_do() {
        assert!(said(REFUSED, 'S', 0, 1000, 1).contains("ptrace_scope=0"));
        assert!(said(REFUSED, 'S', 0, 1000, 3).contains("rebooted"));
        assert!(said(REFUSED, 'S', 0, 1000, 0).contains("SYS_PTRACE"));
        assert!(said(REFUSED, 'S', 0, 7, 1).contains("of user 7"));
        assert!(said(REFUSED, 't', 33, 1000, 0).contains("process 33 traces it"));
        assert!(said(StopError::Late, 'D', 0, 1000, 0).contains("state D"));
        assert!(said(StopError::Late, 'R', 0, 1000, 0).contains("within 200 ms"));
        assert!(said(REFUSED, 'Z', 0, 1000, 0).contains("has ended"));
        assert!(reason_at(REFUSED, None, 1000, 0).contains("has ended"));
    }
}
