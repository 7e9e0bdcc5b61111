//! The cause of an absence, in words that all hosts with this cause share.
//!
//! Owns what is taken out of a reason: the names by which it tells one host from another. They
//! stand in front of the line in any case, and with them each of 1,000 hosts that are switched off
//! would have a line of its own. The words that are looked for are those of the launcher and of
//! the tree, and of OpenSSH's client. The name of another host stays: that one may be the cause.

use std::net::IpAddr;

use crate::absence::NOT_REACHED;

/// This host's reason without its name, the rank of its back-end and the number of its process, in
/// one line. Addresses stay, because no word tells whose they are.
pub fn without_name(reason: &str, host: &str) -> String {
    read(reason, host, Addresses::Stay)
}

/// The same without the addresses of those that `ssh` could not talk to.
pub(crate) fn without_address(reason: &str, host: &str) -> String {
    read(reason, host, Addresses::Go)
}

/// What becomes of the addresses of those that `ssh` could not talk to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Addresses {
    Stay,
    Go,
}

fn read(reason: &str, host: &str, addresses: Addresses) -> String {
    let words: Vec<&str> = reason.split_whitespace().collect();
    let mut left = Left { words: &words, host, addresses, kept: Vec::new() };
    while let Some((word, rest)) = left.words.split_first() {
        left.words = rest;
        if !left.has_taken(word) {
            left.kept.push((*word).to_owned());
        }
    }
    left.kept.join(" ")
}

/// A reason that is being read.
struct Left<'a> {
    /// What follows.
    words: &'a [&'a str],
    /// Whose reason it is.
    host: &'a str,
    addresses: Addresses,
    kept: Vec<String>,
}

impl Left<'_> {
    /// Whether a word tells hosts apart. It and what belongs to it are left out then.
    fn has_taken(&mut self, word: &str) -> bool {
        let next = self.words.first().copied().unwrap_or_default();
        let second = self.words.get(1).copied().unwrap_or_default();
        match word {
            // At the beginning of a sentence: the launcher's "host n1: ..." and "host n1 runs ...".
            "host" if self.is_at_beginning() && (next.ends_with(':') || tells(second)) => {
                self.is_own(next.strip_suffix(':').unwrap_or(next)) && self.skip(1)
            }
            // "back-end 7 is gone: ..."
            "back-end" if self.is_at_beginning() && is_number(next) => {
                let is_gone = second == "is" && self.words.get(2) == Some(&"gone:");
                self.skip(if is_gone { 3 } else { 1 })
            }
            "(process" if is_number(next.trim_end_matches(')')) => self.skip(1),
            // "connect to host n1 port 22". The name of another host, through which the way leads,
            // stays.
            "host" if self.kept.last().is_some_and(|last| last == "to") && second == "port" => {
                self.is_own(next) && self.skip(1)
            }
            "hostname" if next.ends_with(':') && self.is_own(next.trim_end_matches(':')) => {
                self.kept.push("hostname:".to_owned());
                self.skip(1)
            }
            // "root@n1: Permission denied"
            _ if word.ends_with(':') && next == "Permission" && word.contains('@') => {
                let (user, host) = word.trim_end_matches(':').rsplit_once('@').unwrap_or_default();
                let is_own = self.is_own(host);
                if is_own {
                    self.kept.push(format!("{user}@the host:"));
                }
                is_own
            }
            // "Connection closed by 10.0.0.1 port 22"
            _ if next == "port" && self.is_own(word) => {
                self.kept.push("the host's".to_owned());
                true
            }
            _ => self.has_replaced_name(word),
        }
    }

    /// Whether this is the host itself, by its name, its name with a domain, or an address if
    /// those are its own.
    fn is_own(&self, name: &str) -> bool {
        if name.parse::<IpAddr>().is_ok() {
            return self.addresses == Addresses::Go || name.eq_ignore_ascii_case(self.host);
        }
        let short = name.split('.').next().unwrap_or_default();
        name.eq_ignore_ascii_case(self.host) || short.eq_ignore_ascii_case(self.host)
    }

    fn is_at_beginning(&self) -> bool {
        self.kept.is_empty() || self.kept.join(" ").strip_suffix(':') == Some(NOT_REACHED)
    }

    fn skip(&mut self, count: usize) -> bool {
        self.words = self.words.get(count..).unwrap_or_default();
        true
    }

    /// Puts other words in the place of the name itself.
    fn has_replaced_name(&mut self, word: &str) -> bool {
        let bare = word.trim_end_matches([':', ',', ';', '.']);
        let marks = &word[bare.len()..];
        let name = bare.trim_matches(['\'', '"']);
        let is_name = !name.is_empty() && name.eq_ignore_ascii_case(self.host);
        if is_name {
            self.kept.push(format!("the host{marks}"));
        }
        is_name
    }
}

/// Whether the launcher tells with this word what a host does.
fn tells(word: &str) -> bool {
    ["has", "runs"].contains(&word)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_hosts_apart_is_left_out() {
        let host = "n1";
        let table = [
            (
                "could not be reached: host n1: ssh: connect to host n1 port 22: Connection refused",
                "could not be reached: ssh: connect to port 22: Connection refused",
            ),
            (
                "host n1: ssh: Could not resolve hostname n1.site: Name or service not known",
                "ssh: Could not resolve hostname: Name or service not known",
            ),
            (
                "host n1: root@n1: Permission denied (publickey).",
                "root@the host: Permission denied (publickey).",
            ),
            (
                "host n1: Connection closed by 10.0.0.254 port 22",
                "Connection closed by 10.0.0.254 port 22",
            ),
            (
                "host n1: the machine that answers to 'n1' calls itself 'n2', which",
                "the machine that answers to the host calls itself 'n2', which",
            ),
            (
                "host n1: ssh: connect to host bastion port 22: Connection refused",
                "ssh: connect to host bastion port 22: Connection refused",
            ),
            (
                "host n1: ssh: connect to host 10.0.0.254 port 22: Connection timed out",
                "ssh: connect to host 10.0.0.254 port 22: Connection timed out",
            ),
            ("host n1 has not answered within 500 ms", "has not answered within 500 ms"),
            // Another host, below which this one was to start.
            ("host n2: ssh: No route", "host n2: ssh: No route"),
            ("host n2 has not answered within 500 ms", "host n2 has not answered within 500 ms"),
            ("host n1: srun: error: n1: task 0: Killed", "srun: error: the host: task 0: Killed"),
            ("back-end 7 is gone: closed; not back", "closed; not back"),
            ("back-end 7 has left", "has left"),
            ("'/opt/x' (process 77) exited with status 1", "'/opt/x' exited with status 1"),
        ];
        for (reason, expected) in table {
            assert_eq!(without_name(reason, host), expected);
        }
    }

    #[test]
    fn addresses_are_left_out_where_each_host_has_another_one() {
        let table = [
            (
                "root@10.0.0.1: Permission denied (publickey).",
                "root@the host: Permission denied (publickey).",
            ),
            ("Connection closed by 10.0.0.1 port 22", "Connection closed by the host's port 22"),
            (
                "ssh: connect to host 10.0.0.1 port 22: No route",
                "ssh: connect to port 22: No route",
            ),
            (
                "ssh: connect to host bastion port 22: No route",
                "ssh: connect to host bastion port 22: No route",
            ),
        ];
        for (reason, expected) in table {
            assert_eq!(without_address(reason, "n1"), expected);
        }
        // The address is the name.
        let reason = "Connection closed by 10.0.0.1 port 22";
        assert_eq!(without_name(reason, "10.0.0.1"), "Connection closed by the host's port 22");
        assert_eq!(without_name(reason, "10.0.0.2"), reason);
    }

    #[test]
    fn other_words_stay() {
        for reason in [
            "communication process 101 is gone: killed by signal 9 (KILL)",
            "no answer within 10000 ms",
            "no such host",
            "host unreachable",
            "No route to host",
            "listening at 10.0.0.1:7000 failed",
            "ssh: connect to host bastion port 22: Connection refused",
            "ssh: Could not resolve hostname bastion: Name or service not known",
            "the host",
            "",
        ] {
            assert_eq!(without_address(reason, "n1"), reason);
        }
    }
}
