//! Where members are and how far apart: drawn from a seed.

use alloc::vec::Vec;

use sapwood_group::Time;
use sapwood_layout::{Layout, Placement};
use sapwood_random::Random;

use crate::chance;

/// Hosts get a processor only once in a while, as processes do that start together on few.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    /// How often.
    pub period: Time,
    /// Until when; the turn of each host is another.
    pub until: Time,
}

/// A network of hosts; times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) layout: Layout,
    /// Where each host is.
    pub placement: Placement,
    latency: Vec<Time>,
    /// The work of one send.
    pub overhead: Time,
    /// How members are served at first, if not at once.
    pub busy: Option<Busy>,
}

impl Network {
    /// Draws a network.
    #[must_use]
    pub fn draw(layout: &Layout, seed: u64) -> Self {
        let mut chance = chance::of_seed(seed ^ 0x0067_726f_7570);
        let hosts = layout.hosts;
        let placement = Placement::draw(layout, &mut chance);
        let Placement { clusters: cluster, racks, .. } = &placement;
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
                    let trip = placement.far_us(cluster[one], cluster[other]);
                    trip / 2.0 + layout.near_us / 2.0 * (jitter - 1.0)
                };
                let time = (us.max(1.0) * 1000.0) as Time;
                latency[one * hosts + other] = time;
                latency[other * hosts + one] = time;
            }
        }
        let overhead = (layout.overhead_us * 1000.0) as Time;
        Self { layout: layout.clone(), placement, latency, overhead, busy: None }
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.placement.clusters.len()
    }

    /// The cluster of a host.
    #[must_use]
    pub fn cluster(&self, host: usize) -> usize {
        self.placement.clusters[host]
    }

    /// When a host that has something to do does it.
    #[must_use]
    pub fn turn(&self, host: usize, time: Time) -> Time {
        let Some(Busy { period, until }) = self.busy.filter(|busy| time < busy.until) else {
            return time;
        };
        let own = host as Time * period / self.hosts() as Time;
        let after = (time + period - own) % period;
        let next = if after == 0 { time } else { time + period - after };
        next.min(until)
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
                let pair = (self.placement.clusters[from], self.placement.clusters[to]);
                if pair == (one, other) || pair == (other, one) {
                    let time = &mut self.latency[from * hosts + to];
                    *time = (*time as f64 * factor) as Time;
                }
            }
        }
    }
}

/// A number of the normal distribution (Box and Muller).
pub(super) fn gauss(chance: &mut Random) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - chance.fraction()));
    radius * libm::cos(2.0 * core::f64::consts::PI * chance.fraction())
}
