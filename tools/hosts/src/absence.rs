//! Hosts that are not there, and why.
//!
//! Owns how that is found out when a tree has opened, how it is gathered by reason, and the line
//! in which people are told of it. A host that was lost later is with the command that heard of it.

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
    let mut absence = with_longest_wait(absence);
    absence.sort_by_key(|(ranks, _)| ranks.as_ref().first());
    absence
}

/// What the time follows that a host was waited for.
const WAITED: &str = "no answer within ";

/// A reason that tells for how long the host was waited for.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    before: String,
    after: String,
}

impl Wait {
    /// The words around the time, and the time in milliseconds.
    fn of(reason: &str) -> Option<(Self, u64)> {
        let (before, rest) = reason.split_at(reason.find(WAITED)? + WAITED.len());
        let (number, after) = rest.split_once(' ')?;
        let is_such = after == "ms" || after.starts_with("ms:") || after.starts_with("ms,");
        let time = number.parse().ok().filter(|_| is_such)?;
        Some((Self { before: before.to_owned(), after: after.to_owned() }, time))
    }
}

/// Hosts that have not answered have one cause also where some were waited for longer than others.
/// The longest of their times stands for all.
fn with_longest_wait(absence: Absence) -> Absence {
    let mut waits: BTreeMap<Wait, (RankSet, u64)> = BTreeMap::new();
    let mut all = Absence::new();
    for (ranks, reason) in absence {
        let Some((wait, time)) = Wait::of(&reason) else {
            all.push((ranks, reason));
            continue;
        };
        let (together, longest) = waits.entry(wait).or_default();
        together.union_with(ranks.as_ref());
        *longest = time.max(*longest);
    }
    let told = |(wait, (ranks, time)): (Wait, (RankSet, u64))| {
        (ranks, format!("{}{time} {}", wait.before, wait.after))
    };
    all.extend(waits.into_iter().map(told));
    all
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

/// Why back-ends are gone, or have never come: the first reason that each has.
pub(crate) struct Reasons {
    everyone: RankSet,
    first: BTreeMap<Rank, String>,
}

impl Reasons {
    /// Of a tree with this number of back-ends, of which nothing is known yet.
    pub(crate) fn new(hosts: usize) -> Self {
        Self { everyone: everyone(hosts), first: BTreeMap::new() }
    }

    /// Takes note of an event; gives the back-ends that were lost by it, and why. `below` gives
    /// those that a process takes with it when it does not start.
    pub(crate) fn note(
        &mut self,
        event: &Event,
        below: impl FnOnce(Rank) -> RankSet,
    ) -> Option<(RankSet, String)> {
        match event {
            Event::StartFailed { rank, text } => {
                self.add(&below(*rank), &not_started(text));
                None
            }
            Event::Lost { back_ends, reason, .. } => Some(self.lose(back_ends.clone(), reason)),
            Event::Ended { reason, .. } => Some(self.lose(self.everyone.clone(), reason)),
            Event::Joined { back_ends } => {
                self.first.retain(|&rank, _| !back_ends.contains(rank));
                None
            }
            _ => None,
        }
    }

    /// The back-ends that are not there, and why, if these are.
    pub(crate) fn absence(&self, there: &RankSet, host_of: impl Fn(Rank) -> String) -> Absence {
        let absent = self.everyone.difference(there.as_ref());
        let reason = |rank| self.first.get(&rank).map_or(NOT_REACHED, String::as_str);
        by_reason(absent.iter().map(|rank| (rank, reason(rank))), host_of)
    }

    fn lose(&mut self, ranks: RankSet, reason: &str) -> (RankSet, String) {
        self.add(&ranks, reason);
        (ranks, reason.to_owned())
    }

    fn add(&mut self, ranks: &RankSet, reason: &str) {
        for rank in ranks.iter() {
            self.first.entry(rank).or_insert_with(|| reason.to_owned());
        }
    }
}

/// Which of this number of back-ends are not there in a tree that has just opened, each with the
/// first reason that there is for it.
pub fn of_new_tree(
    network: &mut Network,
    hosts: usize,
    host_of: impl Fn(Rank) -> String,
) -> Absence {
    let there = network.everyone().ranks().clone();
    if everyone(hosts).difference(there.as_ref()).is_empty() {
        return Absence::new();
    }
    let mut reasons = Reasons::new(hosts);
    let mut notices = Notices::default();
    while let Some(event) = network.next_event() {
        notices.take(&event);
        reasons.note(&event, |rank| below(network, rank, hosts));
    }
    notices.tell();
    reasons.absence(&there, host_of)
}

/// The line that says which hosts are missing, and why.
pub fn line(nodes: &NodeSet, reason: &str) -> String {
    format!("{nodes} ({}): missing: {}", nodes.len(), one_line(reason))
}

#[cfg(test)]
mod tests {
    use sapwood::Cause;

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
    fn hosts_that_gave_no_answer_stand_together_though_some_were_waited_for_longer() {
        let noisy = |rank: Rank, ms: u64, words: &str| {
            (rank, not_started(&format!("host n{rank}: no answer within {ms} ms{words}")))
        };
        let each = [
            noisy(0, 2000, ": noise"),
            noisy(1, 5001, ": noise"),
            noisy(2, 3519, ": noise"),
            noisy(3, 2000, ""),
            noisy(4, 2000, ": other"),
        ];
        let text = |words: &str| format!("could not be reached: no answer within {words}");
        let expected = [
            (RankSet::range(0, 2), text("5001 ms: noise")),
            (RankSet::range(3, 3), text("2000 ms")),
            (RankSet::range(4, 4), text("2000 ms: other")),
        ];
        assert_eq!(by_reason(each, name), expected);
        // Other words with such a beginning stay as they are.
        for reason in ["no answer within a minute", "no answer within 5 miles", "no answer within "]
        {
            assert_eq!(by_reason([(0, reason)], name)[0].1, reason.trim_end());
        }
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
    fn each_back_end_has_the_first_reason_until_it_comes() {
        let mut reasons = Reasons::new(4);
        let mut note = |event| reasons.note(&event, |_| RankSet::range(1, 2));
        let text = "ssh: No route".to_owned();
        assert_eq!(note(Event::StartFailed { rank: 9, text }), None);
        let lost = |first, last, reason: &str| Event::Lost {
            rank: first,
            back_ends: RankSet::range(first, last),
            reason: reason.to_owned(),
            cause: Cause::Died,
        };
        let told = note(lost(2, 3, "closed"));
        assert_eq!(told, Some((RankSet::range(2, 3), "closed".to_owned())));
        let both = not_started("ssh: No route");
        let expected = |ranks: &[(Rank, Rank, &str)]| -> Absence {
            let one = |&(first, last, why): &(Rank, Rank, &str)| {
                (RankSet::range(first, last), why.to_owned())
            };
            ranks.iter().map(one).collect()
        };
        let there = RankSet::range(0, 0);
        let absence = reasons.absence(&there, name);
        assert_eq!(absence, expected(&[(1, 2, both.as_str()), (3, 3, "closed")]));
        // What one has said before it came says nothing of its end.
        let back_ends = RankSet::range(1, 2);
        assert_eq!(reasons.note(&Event::Joined { back_ends }, |_| RankSet::new()), None);
        assert!(reasons.note(&lost(1, 1, "gone"), |_| RankSet::new()).is_some());
        let absence = reasons.absence(&there, name);
        assert_eq!(absence, expected(&[(1, 1, "gone"), (2, 2, NOT_REACHED), (3, 3, "closed")]));
    }

    #[test]
    fn an_end_takes_all_that_had_no_reason() {
        let mut reasons = Reasons::new(2);
        let end = Event::Ended { on_purpose: false, reason: "the front-end is gone".to_owned() };
        let told = reasons.note(&end, |_| RankSet::new());
        assert_eq!(told, Some((everyone(2), "the front-end is gone".to_owned())));
        assert_eq!(reasons.absence(&RankSet::new(), name)[0].0, everyone(2));
    }

    #[test]
    fn who_is_missing_stands_in_one_line() {
        let nodes = "n[1-3]".parse().unwrap();
        assert_eq!(line(&nodes, "no\n route"), "n[1-3] (3): missing: no route");
    }
}
