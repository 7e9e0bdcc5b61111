//! Whether the host at the other end of a TCP connection still acknowledges what is sent to it.
//!
//! The system's own limit on bytes under way (`TCP_USER_TIMEOUT`) counts the time for which a
//! process does not read, too: it ends the connection of a process that is stopped, although its
//! host answers every probe of the closed window. So the last acknowledgement's age is looked at,
//! and whether something was sent again since and got none.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Hosts limit answers to retransmissions and probes to about one per half second, so a shorter
/// silence proves nothing.
const SILENCE_MIN: Duration = Duration::from_secs(2);

/// An acknowledgement may be under way for this long.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(1);

/// Repetitions, or probes of a closed window, of which none may have been answered. One of them
/// may be lost on a network that works.
const REPETITIONS_MIN: u8 = 2;

/// What the system knows of a connection's acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
struct Hearing {
    /// How long ago the last acknowledgement came.
    acknowledged: Duration,
    /// How long ago bytes were sent, for the first time or again.
    sent: Duration,
    /// Whether bytes are under way.
    has_bytes_out: bool,
    /// How often they were sent again without any news of them.
    repetitions: u8,
    /// Probes of a closed window since the last acknowledgement.
    probes: u8,
}

impl Hearing {
    fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        // SAFETY: All fields are numbers, for which zero is a value.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
        // SAFETY: The call writes `length` bytes at most to `info`, which is as long.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        (result == 0).then(|| Self {
            acknowledged: Duration::from_millis(info.tcpi_last_ack_recv.into()),
            sent: Duration::from_millis(info.tcpi_last_data_sent.into()),
            has_bytes_out: info.tcpi_unacked > 0,
            repetitions: info.tcpi_retransmits,
            probes: info.tcpi_probes,
        })
    }

    fn is_unacknowledged_for(self, silence: Duration) -> bool {
        let is_repeated = self.has_bytes_out
            && self.repetitions >= REPETITIONS_MIN
            && self.sent >= ROUND_TRIP_MAX
            && self.acknowledged > self.sent + ROUND_TRIP_MAX;
        self.acknowledged >= silence.max(SILENCE_MIN)
            && (is_repeated || self.probes >= REPETITIONS_MIN)
    }
}

/// Whether bytes are under way of which the other end's host has acknowledged nothing for this
/// long. False where the system does not tell, and while nothing is under way.
pub(crate) fn is_unacknowledged_for(socket: impl AsFd, silence: Duration) -> bool {
    Hearing::of(socket.as_fd()).is_some_and(|hearing| hearing.is_unacknowledged_for(silence))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    const SILENCE: Duration = Duration::from_secs(5);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_host_is_deaf_that_answers_no_repetition() {
        let cut = Hearing {
            acknowledged: seconds(6),
            sent: seconds(2),
            has_bytes_out: true,
            repetitions: 4,
            ..Hearing::default()
        };
        assert!(cut.is_unacknowledged_for(SILENCE));
        let spared = [
            Hearing { acknowledged: seconds(4), ..cut },
            Hearing { has_bytes_out: false, ..cut },
            Hearing { repetitions: 1, ..cut },
            // The answer may be on the way.
            Hearing { sent: Duration::from_millis(100), ..cut },
            // The last repetition was answered.
            Hearing { sent: seconds(6), ..cut },
        ];
        for hearing in spared {
            assert!(!hearing.is_unacknowledged_for(SILENCE), "{hearing:?}");
        }
    }

    #[test]
    fn a_closed_window_is_no_death_while_its_probes_are_answered() {
        let stopped =
            Hearing { acknowledged: seconds(60), sent: seconds(90), ..Hearing::default() };
        assert!(!stopped.is_unacknowledged_for(SILENCE));
        assert!(
            !Hearing { probes: 1, ..stopped }.is_unacknowledged_for(SILENCE),
            "it is on its way"
        );
        assert!(Hearing { probes: 2, ..stopped }.is_unacknowledged_for(SILENCE));
    }

    #[test]
    fn the_system_answers_for_a_process_that_does_not_read() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_unread, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 1 << 16]).is_ok() {}
        // Each probe is sent after twice the wait of the one before.
        let until = Instant::now() + seconds(60);
        while Hearing::of(socket.as_fd()).unwrap().acknowledged < SILENCE_MIN + ROUND_TRIP_MAX {
            assert!(Instant::now() < until, "{:?}", Hearing::of(socket.as_fd()));
            assert!(!is_unacknowledged_for(&socket, Duration::ZERO));
            std::thread::sleep(Duration::from_millis(5));
        }
        // The next one is answered as well.
        while Hearing::of(socket.as_fd()).unwrap().acknowledged > SILENCE_MIN {
            assert!(Instant::now() < until, "{:?}", Hearing::of(socket.as_fd()));
            assert!(!is_unacknowledged_for(&socket, Duration::ZERO));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_system_tells_of_tcp_only() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(Hearing::of(socket.as_fd()).is_some());
        assert!(!is_unacknowledged_for(&socket, Duration::ZERO));
        let (local, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Hearing::of(local.as_fd()).is_none());
    }
}
