//! What full knowledge of the network allows: the completion of the cluster-aware static tree, and
//! a near-optimal schedule (the best of several greedy trees, then local search).

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::layout::Network;
use crate::chance;
use sapwood_group::Time;

type Children = Vec<Vec<usize>>;

/// In which order a host sends to its children.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    AsItIs,
    /// Those first whose last descendant is the farthest.
    FarFirst,
}

/// How long a broadcast of the static tree takes by the model alone.
#[must_use]
pub fn static_completion(network: &Network, root: usize) -> Time {
    let hosts = network.hosts();
    let mut children = alloc::vec![Vec::new(); hosts];
    let mut gates = Vec::new();
    for cluster in 0..network.layout.clusters {
        let mut members: Vec<usize> =
            (0..hosts).filter(|host| network.cluster(*host) == cluster).collect();
        if let Some(at) = members.iter().position(|member| *member == root) {
            members.remove(at);
            members.insert(0, root);
        }
        let Some(&head) = members.first() else { continue };
        binomial(&members, &mut children);
        if head != root {
            gates.push(head);
        }
    }
    gates.sort_by_key(|gate| Reverse(network.latency(root, *gate)));
    children[root].splice(0..0, gates);
    heights(network, root, &mut children, Order::AsItIs)[root]
}

fn binomial(members: &[usize], children: &mut Children) {
    let mut step = members.len().next_power_of_two();
    while step > 1 {
        step /= 2;
        for at in (0..members.len()).step_by(2 * step) {
            if at + step < members.len() {
                children[members[at]].push(members[at + step]);
            }
        }
    }
}

/// The time from a host's arrival to the last one below it.
fn heights(network: &Network, root: usize, children: &mut Children, order: Order) -> Vec<Time> {
    let mut height = alloc::vec![0; network.hosts()];
    let mut hosts = Vec::from([root]);
    let mut at = 0;
    while at < hosts.len() {
        hosts.extend(&children[hosts[at]]);
        at += 1;
    }
    for &host in hosts.iter().rev() {
        if order == Order::FarFirst {
            children[host]
                .sort_by_key(|child| Reverse(network.latency(host, *child) + height[*child]));
        }
        height[host] = arrivals(network, host, &children[host], &height).max().unwrap_or(0);
    }
    height
}

fn arrivals<'a>(
    network: &'a Network,
    host: usize,
    children: &'a [usize],
    height: &'a [Time],
) -> impl Iterator<Item = Time> + 'a {
    let overhead = network.overhead;
    (1..).zip(children).map(move |(slot, &child)| {
        slot * overhead + network.latency(host, child) + overhead + height[child]
    })
}

/// The tree in which the edge that completes first is taken next.
fn greedy(network: &Network, root: usize, members: &[usize], children: &mut Children) {
    let mut left: Vec<bool> = alloc::vec![false; network.hosts()];
    members.iter().for_each(|member| left[*member] = *member != root);
    let mut rest = members.iter().filter(|member| **member != root).count();
    let mut near: Vec<Vec<usize>> = alloc::vec![Vec::new(); network.hosts()];
    let mut free = alloc::vec![0; network.hosts()];
    let mut heap = BinaryHeap::new();
    let step = 2 * network.overhead;
    let mut push = |host: usize, free: &[Time], left: &[bool], heap: &mut BinaryHeap<_>| {
        let list = &mut near[host];
        if list.is_empty() {
            list.extend(members.iter().filter(|member| **member != host));
            list.sort_by_key(|member| Reverse(network.latency(host, *member)));
        }
        while list.last().is_some_and(|member| !left[*member]) {
            list.pop();
        }
        if let Some(&next) = list.last() {
            let time: Time = free[host] + step + network.latency(host, next);
            heap.push(Reverse((time, host, next)));
        }
    };
    push(root, &free, &left, &mut heap);
    while rest > 0 {
        let Some(Reverse((time, host, next))) = heap.pop() else { return };
        let is_stale = time != free[host] + step + network.latency(host, next);
        if !left[next] || is_stale {
            push(host, &free, &left, &mut heap);
            continue;
        }
        left[next] = false;
        rest -= 1;
        children[host].push(next);
        free[host] += network.overhead;
        free[next] = time;
        push(host, &free, &left, &mut heap);
        push(next, &free, &left, &mut heap);
    }
}

/// Some members of each far cluster get it from the root; greedy trees inside.
fn gated(network: &Network, root: usize, gates: usize) -> Children {
    let hosts = network.hosts();
    let mut children = alloc::vec![Vec::new(); hosts];
    for cluster in 0..network.layout.clusters {
        let members: Vec<usize> =
            (0..hosts).filter(|host| network.cluster(*host) == cluster).collect();
        if network.cluster(root) == cluster {
            greedy(network, root, &members, &mut children);
            continue;
        }
        let mut heads = members.clone();
        heads.sort_by_key(|head| network.latency(root, *head));
        heads.truncate(gates);
        let others: Vec<usize> =
            members.into_iter().filter(|member| !heads.contains(member)).collect();
        for (at, &head) in heads.iter().enumerate() {
            let mut part = Vec::from([head]);
            part.extend(others.iter().skip(at).step_by(heads.len()));
            greedy(network, head, &part, &mut children);
            children[root].push(head);
        }
    }
    children
}

/// The completion of the best schedule that was found.
#[must_use]
pub fn near_optimal(network: &Network, root: usize, moves: usize) -> Time {
    let hosts = network.hosts();
    let mut candidates: Vec<Children> =
        [1, 2, 3, 4, 6, 8, 12, 16].iter().map(|gates| gated(network, root, *gates)).collect();
    let mut flat = alloc::vec![Vec::new(); hosts];
    let all: Vec<usize> = (0..hosts).collect();
    greedy(network, root, &all, &mut flat);
    candidates.push(flat);
    let best = candidates
        .into_iter()
        .map(|mut children| {
            (heights(network, root, &mut children, Order::FarFirst)[root], children)
        })
        .min_by_key(|entry| entry.0);
    best.map_or(0, |(_, children)| improve(network, root, children, moves))
}

/// Moves a member of the critical path below another one, if that is not slower.
fn improve(network: &Network, root: usize, mut children: Children, moves: usize) -> Time {
    let mut chance = chance::of_seed(1);
    let mut height = heights(network, root, &mut children, Order::FarFirst);
    let mut parent = alloc::vec![root; network.hosts()];
    for (host, list) in children.iter().enumerate() {
        list.iter().for_each(|child| parent[*child] = host);
    }
    for _ in 0..moves {
        let path = critical(network, root, &children, &height);
        if path.is_empty() {
            break;
        }
        let moved = *chance.choose(&path);
        let target = chance.index(network.hosts());
        let mut above = target;
        while above != root && above != moved {
            above = parent[above];
        }
        if above == moved || target == parent[moved] {
            continue;
        }
        let former = parent[moved];
        let saved = (children[former].clone(), children[target].clone());
        children[former].retain(|child| *child != moved);
        children[target].push(moved);
        parent[moved] = target;
        let next = heights(network, root, &mut children, Order::FarFirst);
        if next[root] <= height[root] {
            height = next;
        } else {
            (children[former], children[target]) = saved;
            parent[moved] = former;
        }
    }
    heights(network, root, &mut children, Order::FarFirst)[root]
}

fn critical(network: &Network, root: usize, children: &Children, height: &[Time]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut at = root;
    while !children[at].is_empty() {
        let times = arrivals(network, at, &children[at], height);
        let Some((_, next)) = times.zip(&children[at]).max_by_key(|entry| entry.0) else { break };
        path.push(*next);
        at = *next;
    }
    path
}
