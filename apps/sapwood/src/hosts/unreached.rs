//! Hosts whose back-ends are not there when a tree has opened, and what was said of them.

use sapwood::{Event, Network, RankSet};

/// Back-ends that are not there, and what was said of processes that did not start.
pub(crate) fn unreached(network: &mut Network, hosts: usize) -> (RankSet, Vec<(RankSet, String)>) {
    let everyone = u32::try_from(hosts).unwrap_or(u32::MAX);
    let all = RankSet::range(0, everyone.saturating_sub(1));
    let unreached = all.difference(network.everyone().ranks().as_ref());
    let mut reasons = Vec::new();
    if unreached.is_empty() {
        return (unreached, reasons);
    }
    while let Some(event) = network.next_event() {
        if let Event::StartFailed { rank, text } = event {
            let below = network.topology().back_end_ranges(rank);
            let mut ranks = RankSet::new();
            for (first, last) in below {
                ranks.insert_range(first, last);
            }
            if rank < everyone {
                ranks.insert(rank);
            }
            reasons.push((ranks, text));
        }
    }
    (unreached, reasons)
}

/// Tells of the hosts that are not there, each with the first reason that there is for it.
pub(crate) fn lose_unreached(
    lose: &mut dyn FnMut(&RankSet, &str),
    unreached: &RankSet,
    reasons: &[(RankSet, String)],
) {
    for (ranks, text) in reasons {
        let mut ranks = ranks.clone();
        ranks.intersect_with(unreached.as_ref());
        lose(&ranks, &format!("could not be reached: {text}"));
    }
    lose(unreached, "could not be reached");
}
