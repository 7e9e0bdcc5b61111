//! Where members are and how far apart: drawn from a seed.

use alloc::vec::Vec;

use sapwood_group::Time;
use sapwood_random::Random;

use crate::chance;

/// What a network is drawn from. Times are in microseconds, rates in megabytes per second.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How many hosts there are.
    pub hosts: usize,
    /// In how many clusters.
    pub clusters: usize,
    /// Round trip inside a cluster.
    pub near_us: f64,
    /// Round trips between clusters; pairs beyond the list draw around its entries.
    pub far_us: Vec<f64>,
    /// Members of different racks of a cluster are this much farther apart, if there are racks.
    pub rack_us: Option<f64>,
    /// The work of one send or receive.
    pub overhead_us: f64,
    /// How much latencies differ: the deviation of their logarithm.
    pub spread: f64,
    /// How much a probe is off: the deviation, upwards only.
    pub noise: f64,
    /// Of a network card.
    pub card: f64,
    /// Of one connection between clusters.
    pub stream: f64,
    /// Of all connections from one cluster to another.
    pub pipe: f64,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            hosts: 201,
            clusters: 3,
            near_us: 300.0,
            far_us: Vec::from([7000.0, 9000.0, 10000.0]),
            rack_us: None,
            overhead_us: 40.0,
            spread: 0.25,
            noise: 0.08,
            card: 110.0,
            stream: 1e6,
            pipe: 1e6,
        }
    }
}

impl Layout {
    /// The named scenarios: `paper-3`, `paper-4`, `racks`, `near`, `slow-link`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let base = Self::default();
        Some(match name {
            "paper-3" => base,
            "paper-4" => Self { hosts: 160, clusters: 4, ..base },
            "racks" => Self { rack_us: Some(250.0), ..base },
            "near" => Self { far_us: Vec::from([900.0, 1100.0, 1300.0]), ..base },
            "slow-link" => Self { far_us: Vec::from([7000.0, 9000.0, 60000.0]), ..base },
            _ => return None,
        })
    }
}

/// A network of hosts; times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) layout: Layout,
    pub(super) cluster: Vec<usize>,
    latency: Vec<Time>,
    /// The work of one send.
    pub overhead: Time,
}

impl Network {
    /// Draws a network.
    #[must_use]
    pub fn draw(layout: &Layout, seed: u64) -> Self {
        let mut chance = chance::of_seed(seed ^ 0x0067_726f_7570);
        let hosts = layout.hosts;
        let mut cluster: Vec<usize> = (0..hosts).map(|host| host % layout.clusters).collect();
        chance.shuffle(&mut cluster);
        let far = far_trips(layout, &mut chance);
        let racks: Vec<u64> = (0..hosts).map(|_| chance.below(4)).collect();
        let mut latency = alloc::vec![0; hosts * hosts];
        for one in 0..hosts {
            for other in 0..one {
                let jitter = libm::exp(layout.spread * gauss(&mut chance));
                let own = 4.0 * layout.overhead_us;
                let us = if cluster[one] == cluster[other] {
                    let is_far_rack = racks[one] != racks[other];
                    let rack = layout.rack_us.filter(|_| is_far_rack).unwrap_or(0.0);
                    (layout.near_us + rack - own).max(10.0) / 2.0 * jitter
                } else {
                    let trip = far[cluster[one] * layout.clusters + cluster[other]];
                    trip / 2.0 + layout.near_us / 2.0 * (jitter - 1.0)
                };
                let time = (us.max(1.0) * 1000.0) as Time;
                latency[one * hosts + other] = time;
                latency[other * hosts + one] = time;
            }
        }
        let overhead = (layout.overhead_us * 1000.0) as Time;
        Self { layout: layout.clone(), cluster, latency, overhead }
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.cluster.len()
    }

    /// The cluster of a host.
    #[must_use]
    pub fn cluster(&self, host: usize) -> usize {
        self.cluster[host]
    }

    /// The time of a byte on the wire from one host to another.
    #[must_use]
    pub fn latency(&self, from: usize, to: usize) -> Time {
        self.latency[from * self.hosts() + to]
    }

    /// Makes all links between two clusters slower, or faster, by a factor.
    pub fn scale(&mut self, one: usize, other: usize, factor: f64) {
        let hosts = self.hosts();
        for from in 0..hosts {
            for to in 0..hosts {
                let pair = (self.cluster[from], self.cluster[to]);
                if pair == (one, other) || pair == (other, one) {
                    let time = &mut self.latency[from * hosts + to];
                    *time = (*time as f64 * factor) as Time;
                }
            }
        }
    }
}

fn far_trips(layout: &Layout, chance: &mut Random) -> Vec<f64> {
    let clusters = layout.clusters;
    let mut far = alloc::vec![0.0; clusters * clusters];
    let mut count = 0;
    for one in 0..clusters {
        for other in 0..one {
            let mut trip = layout.far_us[count % layout.far_us.len()];
            if count >= layout.far_us.len() {
                trip *= 0.6 + 0.8 * chance.fraction();
            }
            far[one * clusters + other] = trip;
            far[other * clusters + one] = trip;
            count += 1;
        }
    }
    far
}

/// A number of the normal distribution (Box and Muller).
pub(super) fn gauss(chance: &mut Random) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - chance.fraction()));
    radius * libm::cos(2.0 * core::f64::consts::PI * chance.fraction())
}
