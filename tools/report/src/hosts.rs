//! The hosts of a run and the ranks on each.

use std::fmt::Write as _;
use std::time::Duration;

use sapwood_packet::RankSet;

use crate::ranks_text;

/// The most hosts that are written out one by one.
const HOSTS_SHOWN: usize = 8;

/// One host and its ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRanks {
    /// Its name, as it was reached.
    pub host: String,
    /// The ranks that its leaves have told of.
    pub ranks: RankSet,
    /// Why its ranks are not watched, or not any more.
    pub reason: Option<String>,
}

/// Ranks of one host that ended without a word before all others that did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstLost {
    /// These ranks.
    pub ranks: RankSet,
    /// Their host.
    pub host: String,
    /// How long before the next; none if no other rank was lost.
    pub before: Option<Duration>,
}

impl FirstLost {
    /// A line for people.
    pub(crate) fn line(&self) -> String {
        let before = match self.before {
            Some(before) => format!(", {:.3} s before any other", before.as_secs_f64()),
            None => String::new(),
        };
        format!("lost first: {} on host {}{before}", ranks_text(&self.ranks.to_string()), self.host)
    }
}

/// Lines for people: where the ranks run, then every host that was lost.
pub(crate) fn lines(hosts: &[HostRanks]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut text = String::new();
    let shown = hosts.len().min(HOSTS_SHOWN);
    for host in &hosts[..shown] {
        let ranks = match host.ranks.is_empty() {
            true => "no ranks".to_owned(),
            false => host.ranks.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{}: {ranks}", if text.is_empty() { "" } else { "; " }, host.host);
    }
    if hosts.len() > shown {
        let _ = write!(text, "; and {} more", hosts.len() - shown);
    }
    if !text.is_empty() {
        lines.push(text);
    }
    for host in hosts {
        let Some(reason) = &host.reason else { continue };
        lines.push(match host.ranks.is_empty() {
            true => format!("NOT WATCHED: {}: {reason}", host.host),
            false => {
                let ranks = ranks_text(&host.ranks.to_string());
                format!("LOST: {} with {ranks}: {reason}", host.host)
            }
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: usize, reason: Option<&str>) -> HostRanks {
        let first = u32::try_from(2 * name).expect("few hosts");
        HostRanks {
            host: format!("n{name}"),
            ranks: RankSet::range(first, first + 1),
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn hosts_are_told_with_their_ranks_and_the_lost_ones_apart() {
        assert_eq!(
            lines(&[host(0, None), host(1, Some("gone"))]),
            ["n0: 0-1; n1: 2-3", "LOST: n1 with ranks 2-3: gone"]
        );
        let many: Vec<_> = (0..10).map(|number| host(number, None)).collect();
        assert!(lines(&many)[0].ends_with("n7: 14-15; and 2 more"));
        assert!(lines(&[]).is_empty());
    }
}
