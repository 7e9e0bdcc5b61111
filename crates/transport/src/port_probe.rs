//! Port probes: whether a process listens at an address, without sending a byte.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::dial::{more_telling, start_tcp};
use crate::listener::tcp_peer;
use crate::{Address, Error, Result};

/// Checks that a process takes connections at a TCP address, within `deadline`. All addresses are
/// tried side by side, and each connection is closed at once. Blocks the caller.
///
/// # Errors
/// [`Error::Refused`] if no process listens at any of them, [`Error::TimedOut`] if one did not
/// answer, [`Error::UnresolvableHost`]; [`Error::ApiMisuse`] for a Unix address.
pub fn probe_port(address: &Address, deadline: Duration) -> Result<()> {
    if address.is_unix() {
        return Err(Error::ApiMisuse { rule: "only TCP ports can be probed" });
    }
    let begun = Instant::now();
    let mut failure = None;
    let failed = |cause: rustix::io::Errno| match cause {
        rustix::io::Errno::CONNREFUSED => Error::Refused { address: address.clone() },
        cause => Error::io(format!("connect to {address}"), cause),
    };
    let mut sockets = Vec::new();
    for place in address.resolve()? {
        match start_tcp(&place) {
            Ok(socket) => sockets.push(socket),
            Err(cause) => failure = more_telling(failure, failed(cause)),
        }
    }
    while !sockets.is_empty() {
        let left = deadline.saturating_sub(begun.elapsed());
        if left.is_zero() {
            let after_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            return Err(Error::TimedOut { address: address.clone(), after_ms });
        }
        let mut polled: Vec<PollFd<'_>> =
            sockets.iter().map(|socket| PollFd::new(socket, PollFlags::OUT)).collect();
        // Its result does not matter: each socket's own error is read below.
        let _ = rustix::event::poll(&mut polled, Timespec::try_from(left).ok().as_ref());
        let mut waiting = Vec::new();
        for socket in sockets {
            match rustix::net::sockopt::socket_error(&socket).and_then(|outcome| outcome) {
                Ok(()) if tcp_peer(&socket).is_some() => return Ok(()),
                Ok(()) => waiting.push(socket),
                Err(cause) => failure = more_telling(failure, failed(cause)),
            }
        }
        sockets = waiting;
    }
    Err(failure.unwrap_or_else(|| Error::Refused { address: address.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Listener;

    #[test]
    fn a_listener_takes_connections_until_it_is_closed() {
        let listener = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        let port = listener.address().port().unwrap();
        let both: Address = format!("tcp:127.0.0.9,127.0.0.1:{port}").parse().unwrap();
        let limit = Duration::from_secs(10);
        probe_port(&both, limit).unwrap();
        drop(listener);
        assert!(matches!(probe_port(&both, limit), Err(Error::Refused { .. })));
    }
}
