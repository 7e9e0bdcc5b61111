//! Hosts that are not there, and why.
//!
//! Owns how that is found out when a tree has opened, how it is gathered by reason, and the line
//! in which people are told of it. Who was lost later is with the command that heard of it.

use std::collections::BTreeMap;

use sapwood::{Event, Missing, Network, Rank, RankSet};
use sapwood_topology::NodeSet;

use crate::cause::cause;
use crate::notices::Notices;
use sapwood_command_line::exit::one_line;

/// Hosts that are not there, and why; those with the same reason together, no host twice.
pub type Absence = Vec<(RankSet, String)>;

/// What is said of a host of which nothing else is known.
pub const NOT_REACHED: &str = "could not be reached";

/// What is missing from an answer, gathered by [`cause`].
pub fn by_cause(missing: &[Missing]) -> Absence {
    let each = |one: &Missing| {
        let reason = one.reason.clone();
        one.ranks.iter().map(move |rank| (rank, reason.clone())).collect::<Vec<_>>()
    };
    by_reason(missing.iter().flat_map(each))
}

/// The ranks of this number of hosts, each of which has one back-end.
pub fn everyone(hosts: usize) -> RankSet {
    match u32::try_from(hosts).unwrap_or(u32::MAX) {
        0 => RankSet::new(),
        count => RankSet::range(0, count - 1),
    }
}

/// Those of these hosts, which stand by rank, that have these ranks.
pub fn nodes<H: ToString>(hosts: &[H], ranks: &RankSet) -> NodeSet {
    ranks.iter().filter_map(|rank| hosts.get(rank as usize).map(H::to_string)).collect()
}

/// Hosts with their reasons, gathered by [`cause`], in the order of the first host of each. A
/// reason that several hosts have word for word stays as it is: a name in it is that of another
/// host, with which they are lost.
pub fn by_reason<R: Into<String>>(each: impl IntoIterator<Item = (Rank, R)>) -> Absence {
    let mut literally: BTreeMap<String, RankSet> = BTreeMap::new();
    for (rank, reason) in each {
        literally.entry(reason.into()).or_default().insert(rank);
    }
    let mut ranks_of: BTreeMap<String, RankSet> = BTreeMap::new();
    for (reason, ranks) in literally {
        let reason = if ranks.len() > 1 { reason } else { cause(&reason) };
        ranks_of.entry(reason).or_default().union_with(ranks.as_ref());
    }
    let mut absence: Absence =
        ranks_of.into_iter().map(|(reason, ranks)| (ranks, reason)).collect();
    absence.sort_by_key(|(ranks, _)| ranks.as_ref().first());
    absence
}

/// Of this number of hosts, those that a process takes with it when it does not start: its own,
/// if it is a back-end, and all below it.
pub fn below(network: &Network, rank: Rank, hosts: usize) -> RankSet {
    let mut below = RankSet::range(rank, rank);
    for (first, last) in network.topology().back_end_ranges(rank) {
        below.insert_range(first, last);
    }
    below.intersect_with(everyone(hosts).as_ref());
    below
}

/// Why a process that has said this has not started.
pub fn not_started(text: &str) -> String {
    format!("{NOT_REACHED}: {text}")
}

/// Which of this number of hosts are not there in a tree that has just opened, each with the
/// first reason that there is for it.
pub fn of_new_tree(network: &mut Network, hosts: usize) -> Absence {
    let absent = everyone(hosts).difference(network.everyone().ranks().as_ref());
    if absent.is_empty() {
        return Absence::new();
    }
    let mut reasons: BTreeMap<Rank, String> = BTreeMap::new();
    let mut notices = Notices::default();
    while let Some(event) = network.next_event() {
        notices.take(&event);
        if let Event::StartFailed { rank, text } = event {
            for rank in below(network, rank, hosts).iter() {
                reasons.entry(rank).or_insert_with(|| not_started(&text));
            }
        }
    }
    notices.tell();
    by_reason(absent.iter().map(|rank| (rank, reasons.get(&rank).map_or(NOT_REACHED, |it| it))))
}

/// The line that says which hosts are missing, and why.
pub fn line(nodes: &NodeSet, reason: &str) -> String {
    format!("{nodes} ({}): missing: {}", nodes.len(), one_line(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_one_reason_stand_together_in_their_order() {
        let each = [(4, "asleep"), (1, "gone"), (2, "asleep"), (3, "gone")];
        let ranks = |list: [Rank; 2]| list.into_iter().collect::<RankSet>();
        let (gone, asleep) = (ranks([1, 3]), ranks([2, 4]));
        assert_eq!(by_reason(each), [(gone, "gone".into()), (asleep, "asleep".into())]);
        assert_eq!((everyone(0), everyone(2)), (RankSet::new(), RankSet::range(0, 1)));
    }

    #[test]
    fn hosts_with_one_cause_stand_together_whatever_they_are_called() {
        let each = (0..1000).map(|rank| {
            let text = format!("host n{rank}: ssh: connect to host n{rank} port 22: No route");
            (rank, not_started(&text))
        });
        let text = "could not be reached: ssh: connect to port 22: No route";
        assert_eq!(by_reason(each), [(everyone(1000), text.to_owned())]);
    }

    #[test]
    fn who_is_missing_stands_in_one_line() {
        let nodes = "n[1-3]".parse().unwrap();
        assert_eq!(line(&nodes, "no\n route"), "n[1-3] (3): missing: no route");
    }
}
