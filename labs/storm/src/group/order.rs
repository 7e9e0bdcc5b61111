//! What a member is told to do besides the operations, as a line of its input.

use std::net::SocketAddr;
use std::time::Duration;

use sapwood::Rank;

/// The first words of the lines.
const RESET: &str = "reset";
const CUT: &str = "cut";
const LEAVE: &str = "leave";
/// What addresses of members on TCP begin with.
const TCP: &str = "tcp:";

/// To break some of its links, or to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Break one of its links, chosen by this number.
    Reset { choice: u64 },
    /// Break those that lead to where a member listens, also new ones, for this time.
    Cut { peer: SocketAddr, time: Duration },
    /// Leave; to the member that carries this virtual node, if one is named.
    Leave { heir: Option<Rank> },
}

impl Order {
    /// As a line of a member's input.
    pub(super) fn line(self) -> String {
        match self {
            Self::Reset { choice } => format!("{RESET} {choice}\n"),
            Self::Cut { peer, time } => format!("{CUT} {} {peer}\n", time.as_millis()),
            Self::Leave { heir: None } => format!("{LEAVE}\n"),
            Self::Leave { heir: Some(heir) } => format!("{LEAVE} {heir}\n"),
        }
    }

    /// Reads such a line.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        match words.next()? {
            RESET => Some(Self::Reset { choice: words.next()?.parse().ok()? }),
            CUT => {
                let time = Duration::from_millis(words.next()?.parse().ok()?);
                Some(Self::Cut { peer: words.next()?.parse().ok()?, time })
            }
            LEAVE => {
                let heir = words.next().map(str::parse).transpose().ok()?;
                Some(Self::Leave { heir })
            }
            _ => None,
        }
    }
}

/// Where a member listens, of its address.
pub(super) fn socket_address(address: &str) -> Option<SocketAddr> {
    address.strip_prefix(TCP)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let peer = socket_address("tcp:127.0.0.1:4711").unwrap();
        let orders = [
            Order::Reset { choice: u64::MAX },
            Order::Cut { peer, time: Duration::from_millis(30) },
            Order::Leave { heir: None },
            Order::Leave { heir: Some(3) },
        ];
        for order in orders {
            assert_eq!(Order::read(&order.line()), Some(order));
        }
        assert_eq!(Order::read("reset"), None);
        assert_eq!(Order::read("cut 3 nowhere"), None);
        assert_eq!(Order::read("leave x"), None, "it would leave to any");
        assert_eq!(socket_address("unix:/tmp/member"), None);
    }
}
