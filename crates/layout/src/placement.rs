//! Which host is where.

use alloc::vec::Vec;

use sapwood_random::Random;

use crate::Layout;

/// In how many racks the hosts of a cluster are, where there are racks.
const RACKS: u64 = 4;

/// Where each host is, and how far clusters are apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The cluster of each host.
    pub clusters: Vec<usize>,
    /// The rack of each host in its cluster; not looked at where the layout has no racks.
    pub racks: Vec<u64>,
    /// The rate of each host's network card, in megabytes per second.
    pub cards: Vec<f64>,
    count: usize,
    /// Round trips between clusters in microseconds, by both.
    far_us: Vec<f64>,
    pipes: Vec<f64>,
}

impl Placement {
    /// Hosts are in clusters by chance, as evenly as their numbers allow; they have cards likewise.
    #[must_use]
    pub fn draw(layout: &Layout, chance: &mut Random) -> Self {
        let hosts = layout.hosts;
        let mut clusters: Vec<usize> = (0..hosts).map(|host| host % layout.clusters).collect();
        chance.shuffle(&mut clusters);
        let far_us = far_trips(layout, chance);
        let racks = (0..hosts).map(|_| chance.below(RACKS)).collect();
        let mut cards = cards_in_turn(layout);
        // Networks of one kind of card are drawn as they were before there were others.
        if layout.card.len() > 1 {
            chance.shuffle(&mut cards);
        }
        Self { clusters, racks, cards, count: layout.clusters, far_us, pipes: pipes(layout) }
    }

    /// Hosts are in clusters in their order, the first clusters larger, and have cards in turn.
    #[must_use]
    pub fn in_order(layout: &Layout) -> Self {
        let (hosts, count) = (layout.hosts, layout.clusters);
        let first_of = |cluster: usize| (cluster * hosts).div_ceil(count);
        let cluster_of = |host| (0..count).rfind(|at| host >= first_of(*at)).unwrap_or(0);
        let clusters = (0..hosts).map(cluster_of).collect();
        let far_us = far_trips(layout, &mut Random::new(0));
        let racks = (0..hosts as u64).map(|host| host % RACKS).collect();
        let cards = cards_in_turn(layout);
        Self { clusters, racks, cards, count, far_us, pipes: pipes(layout) }
    }

    /// How many clusters there are.
    #[must_use]
    pub fn cluster_count(&self) -> usize {
        self.count
    }

    /// The round trip between two clusters, in microseconds.
    #[must_use]
    pub fn far_us(&self, one: usize, other: usize) -> f64 {
        self.far_us[one * self.count + other]
    }

    /// The rate of all connections from one cluster to another, in megabytes per second.
    #[must_use]
    pub fn pipe(&self, from: usize, to: usize) -> f64 {
        self.pipes[from * self.count + to]
    }
}

fn cards_in_turn(layout: &Layout) -> Vec<f64> {
    (0..layout.hosts).map(|host| layout.card[host % layout.card.len()]).collect()
}

fn far_trips(layout: &Layout, chance: &mut Random) -> Vec<f64> {
    by_pair(layout.clusters, |pair| {
        let trip = layout.far_us[pair % layout.far_us.len()];
        let is_listed = pair < layout.far_us.len();
        if is_listed { trip } else { trip * (0.6 + 0.8 * chance.fraction()) }
    })
}

fn pipes(layout: &Layout) -> Vec<f64> {
    by_pair(layout.clusters, |pair| layout.pipe[pair % layout.pipe.len()])
}

/// A table of all pairs of clusters, from the number of each pair.
fn by_pair(count: usize, mut value_of: impl FnMut(usize) -> f64) -> Vec<f64> {
    let mut table = alloc::vec![0.0; count * count];
    let mut pair = 0;
    for one in 0..count {
        for other in 0..one {
            let value = value_of(pair);
            table[one * count + other] = value;
            table[other * count + one] = value;
            pair += 1;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_spread_evenly_over_the_clusters() {
        for hosts in [6, 16, 61] {
            let layout = Layout { hosts, ..Layout::default() };
            for placement in
                [Placement::in_order(&layout), Placement::draw(&layout, &mut Random::new(3))]
            {
                for cluster in 0..3 {
                    let count = placement.clusters.iter().filter(|at| **at == cluster).count();
                    assert!((hosts / 3..=hosts.div_ceil(3)).contains(&count), "{placement:?}");
                }
            }
            assert!(Placement::in_order(&layout).clusters.is_sorted());
        }
    }

    #[test]
    fn as_many_hosts_have_one_card_as_another() {
        let layout = Layout { hosts: 16, ..Layout::named("cards").unwrap() };
        let drawn = Placement::draw(&layout, &mut Random::new(3));
        for placement in [&Placement::in_order(&layout), &drawn] {
            let count = |rate: f64| placement.cards.iter().filter(|card| **card == rate).count();
            assert_eq!([110.0, 55.0, 27.5].map(count), [8, 4, 4], "{placement:?}");
        }
        assert_ne!(drawn.cards, Placement::in_order(&layout).cards);
    }

    #[test]
    fn one_kind_of_card_changes_nothing_of_what_is_drawn() {
        let one = Layout::default();
        let two = Layout { card: Vec::from([110.0, 55.0]), ..Layout::default() };
        let [one, two] = [one, two].map(|layout| Placement::draw(&layout, &mut Random::new(3)));
        assert_eq!((&one.clusters, &one.racks), (&two.clusters, &two.racks));
        assert!(one.cards.iter().all(|card| *card == 110.0));
    }

    #[test]
    fn pairs_of_clusters_are_counted_row_by_row() {
        let placement = Placement::in_order(&Layout::named("campus").unwrap());
        assert_eq!((placement.far_us(0, 1), placement.far_us(2, 1)), (5000.0, 36000.0));
        assert_eq!((placement.pipe(1, 0), placement.pipe(0, 2)), (125.0, 12.5));
    }
}
