//! Hosts that are not there, and why.
//!
//! Owns how that is found out when a tree has opened, how it is gathered by reason, and the line
//! in which people are told of it. Who was lost later is with the command that heard of it.

use std::collections::BTreeMap;

use sapwood::{Event, Missing, Network, Rank, RankSet};
use sapwood_topology::NodeSet;

use crate::cause::{without_address, without_name};
use crate::notices::Notices;
use sapwood_command_line::exit::one_line;

/// Hosts that are not there, and why; those with the same reason together, no host twice.
pub type Absence = Vec<(RankSet, String)>;

/// What is said of a host of which nothing else is known.
pub const NOT_REACHED: &str = "could not be reached";

/// What is missing from an answer, gathered as by [`by_reason`].
pub fn by_cause(missing: &[Missing], host_of: impl Fn(Rank) -> String) -> Absence {
    sets_by_reason(missing.iter().map(|one| (&one.ranks, one.reason.as_str())), host_of)
}

/// Of a rank of which it is not known on which host it is: no name leaves a reason then.
pub fn nameless(_: Rank) -> String {
    String::new()
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

/// The beginning of a sentence about hosts: `host n1`, `hosts n[1-3]`.
pub fn named(hosts: &NodeSet) -> String {
    match hosts.len() {
        0 | 1 => format!("host {hosts}"),
        _ => format!("hosts {hosts}"),
    }
}

/// The same with their number, where there are several: `hosts n[1-3] (3)`.
pub fn counted(hosts: &NodeSet) -> String {
    match hosts.len() {
        0 | 1 => named(hosts),
        count => format!("{} ({count})", named(hosts)),
    }
}

/// Ranks with their reasons, gathered by cause, in the order of the first rank of each. A reason
/// that several hosts have word for word stays as it is: a name in it is that of another host,
/// with which they are lost. So does an address that several have when their own names are out: it
/// is that of a host through which the way leads.
pub fn by_reason<R: AsRef<str> + Ord>(
    each: impl IntoIterator<Item = (Rank, R)>,
    host_of: impl Fn(Rank) -> String,
) -> Absence {
    let mut literally: BTreeMap<R, RankSet> = BTreeMap::new();
    for (rank, reason) in each {
        literally.entry(reason).or_default().insert(rank);
    }
    gathered(literally, host_of)
}

/// The same of sets of ranks.
pub fn sets_by_reason<'a>(
    each: impl IntoIterator<Item = (&'a RankSet, &'a str)>,
    host_of: impl Fn(Rank) -> String,
) -> Absence {
    let mut literally: BTreeMap<&str, RankSet> = BTreeMap::new();
    for (ranks, reason) in each {
        literally.entry(reason).or_default().union_with(ranks.as_ref());
    }
    // Of no rank nothing is said.
    literally.retain(|_, ranks| !ranks.is_empty());
    gathered(literally, host_of)
}

/// What ranks have word for word, gathered by cause.
fn gathered<R: AsRef<str>>(
    literally: BTreeMap<R, RankSet>,
    host_of: impl Fn(Rank) -> String,
) -> Absence {
    let mut without_names: BTreeMap<String, RankSet> = BTreeMap::new();
    for (reason, ranks) in literally {
        let reason = reason.as_ref();
        let host = only_host(&ranks, &host_of);
        let reason = host.map_or_else(|| reason.to_owned(), |host| without_name(reason, &host));
        without_names.entry(reason).or_default().union_with(ranks.as_ref());
    }
    let mut absence = Absence::new();
    let mut without_addresses: BTreeMap<String, Absence> = BTreeMap::new();
    for (reason, ranks) in without_names {
        match only_host(&ranks, &host_of).map(|host| without_address(&reason, &host)) {
            Some(bare) => without_addresses.entry(bare).or_default().push((ranks, reason)),
            None => absence.push((ranks, reason)),
        }
    }
    for (bare, alike) in without_addresses {
        match <[_; 1]>::try_from(alike) {
            Ok([alone]) => absence.push(alone),
            Err(alike) => {
                let ranks = alike.iter().flat_map(|(ranks, _)| ranks.iter()).collect();
                absence.push((ranks, bare));
            }
        }
    }
    absence.sort_by_key(|(ranks, _)| ranks.as_ref().first());
    absence
}

/// The host of these ranks, if all are of one. Of several without names that is not known.
fn only_host(ranks: &RankSet, host_of: impl Fn(Rank) -> String) -> Option<String> {
    let mut hosts = ranks.iter().map(host_of);
    let host = hosts.next()?;
    let is_known = !host.is_empty() || ranks.len() == 1;
    (is_known && hosts.all(|other| other == host)).then_some(host)
}

/// Which of these hosts, which stand by rank, has a rank.
pub fn name_in<H: ToString>(hosts: &[H]) -> impl Fn(Rank) -> String {
    |rank| hosts.get(rank as usize).map(H::to_string).unwrap_or_default()
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

/// Which of this number of back-ends are not there in a tree that has just opened, each with the
/// first reason that there is for it.
pub fn of_new_tree(
    network: &mut Network,
    hosts: usize,
    host_of: impl Fn(Rank) -> String,
) -> Absence {
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
    let reason = |rank| reasons.get(&rank).map_or(NOT_REACHED, String::as_str);
    by_reason(absent.iter().map(|rank| (rank, reason(rank))), host_of)
}

/// The line that says which hosts are missing, and why.
pub fn line(nodes: &NodeSet, reason: &str) -> String {
    format!("{nodes} ({}): missing: {}", nodes.len(), one_line(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(rank: Rank) -> String {
        format!("n{rank}")
    }

    #[test]
    fn hosts_with_one_reason_stand_together_in_their_order() {
        let each = [(4, "asleep"), (1, "gone"), (2, "asleep"), (3, "gone")];
        let ranks = |list: [Rank; 2]| list.into_iter().collect::<RankSet>();
        let (gone, asleep) = (ranks([1, 3]), ranks([2, 4]));
        assert_eq!(by_reason(each, name), [(gone, "gone".into()), (asleep, "asleep".into())]);
        assert_eq!((everyone(0), everyone(2)), (RankSet::new(), RankSet::range(0, 1)));
    }

    #[test]
    fn hosts_with_one_cause_stand_together_whatever_they_are_called() {
        let each = (0..1000).map(|rank| {
            let text = format!("host n{rank}: ssh: connect to host n{rank} port 22: No route");
            (rank, not_started(&text))
        });
        let text = "could not be reached: ssh: connect to port 22: No route";
        assert_eq!(by_reason(each, name), [(everyone(1000), text.to_owned())]);
    }

    #[test]
    fn an_address_that_hosts_have_in_common_is_not_their_own() {
        let refused = |rank: Rank, address: &str| {
            let text = format!("connect to host {address} port 22: Connection refused");
            (rank, format!("host n{rank}: ssh: {text}"))
        };
        let through_one = (0..100).map(|rank| refused(rank, "10.0.0.254"));
        let text = "ssh: connect to host 10.0.0.254 port 22: Connection refused";
        assert_eq!(by_reason(through_one, name), [(everyone(100), text.to_owned())]);
        let own = (0..100).map(|rank| refused(rank, &format!("10.0.0.{rank}")));
        let bare = "ssh: connect to port 22: Connection refused";
        assert_eq!(by_reason(own, name), [(everyone(100), bare.to_owned())]);
        assert_eq!(by_reason([refused(7, "10.0.0.254")], name)[0].1, text);
        let closed =
            |rank| (rank, format!("host n{rank}: Connection closed by 10.0.0.254 port 22"));
        let text = "Connection closed by 10.0.0.254 port 22";
        assert_eq!(by_reason([1, 2].map(closed), name)[0].1, text);
    }

    #[test]
    fn a_host_below_another_names_it() {
        let text = "host n1: ssh: No route";
        assert_eq!(by_reason([(2, text)], name), [(RankSet::range(2, 2), text.to_owned())]);
        // Several leaves of a host are no other hosts.
        let on_one = by_reason([(2, text), (3, text)], |_| "n1".to_owned());
        assert_eq!(on_one, [(RankSet::range(2, 3), "ssh: No route".to_owned())]);
    }

    #[test]
    fn without_names_only_the_numbers_of_back_ends_leave_a_reason() {
        let each =
            (0..3).map(|rank| (rank, format!("back-end {rank} is gone: host n{rank}: : no")));
        let absence = by_reason(each, nameless);
        assert_eq!(absence.len(), 3);
        assert_eq!(absence[0].1, "host n0: : no");
        let shared = [(1, "back-end 7 is gone: closed"), (2, "back-end 7 is gone: closed")];
        assert_eq!(by_reason(shared, nameless)[0].1, "back-end 7 is gone: closed");
    }

    #[test]
    fn who_is_missing_stands_in_one_line() {
        let nodes = "n[1-3]".parse().unwrap();
        assert_eq!(line(&nodes, "no\n route"), "n[1-3] (3): missing: no route");
    }
}
