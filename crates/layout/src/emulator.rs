//! The same network for the emulator of the test bed.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::{Layout, Placement};

/// What the emulator takes off each way, since two processes wake for each packet.
const BIAS_US: u32 = 65;
/// A rate beyond it limits nothing, in megabytes per second.
const RATE_MAX: f64 = 1e5;
/// Most sites that the emulator knows.
const SITES_MAX: usize = 32;

/// A network of the emulator: its configuration, and which of its hosts is which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// The text that the emulator reads.
    pub text: String,
    /// The emulator's host of each host of the layout. A site has consecutive hosts there.
    pub host_of: Vec<u32>,
}

/// A site: a cluster, or a rack of one.
type Site = (usize, u64);

impl Emulation {
    /// The network of a placement; none where it has more sites than the emulator knows.
    #[must_use]
    pub fn new(layout: &Layout, placement: &Placement) -> Option<Self> {
        let site_of = |host: usize| -> Site {
            let rack = layout.rack_us.map_or(0, |_| placement.racks[host]);
            (placement.clusters[host], rack)
        };
        let mut order: Vec<usize> = (0..placement.clusters.len()).collect();
        order.sort_by_key(|host| site_of(*host));
        let mut host_of = alloc::vec![0; order.len()];
        for (at, host) in (0..).zip(&order) {
            host_of[*host] = at;
        }
        let mut text = alloc::format!("bias_us {BIAS_US}\ngso 1\nmtu 1500\n");
        let queue = layout.queue_ms;
        let mut sites: Vec<Site> = Vec::new();
        let card = |host: usize| placement.cards[host];
        let runs = order.chunk_by(|one, other| site_of(*one) == site_of(*other));
        for run in runs {
            let site = site_of(run[0]);
            let (first, last) = (host_of[run[0]], host_of[run[run.len() - 1]]);
            let (delay, rate) = (layout.near_us / 2.0, megabits(card(run[0])));
            let name = name(site);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "site {name} {first} {last}");
            let _ = writeln!(text, "lan {name} {delay} {rate} {queue} 0");
            // Hosts of one site may have different cards.
            let parts = run.chunk_by(|one, other| card(*one) == card(*other));
            for part in parts.filter(|part| card(part[0]) != card(run[0])) {
                let (first, last) = (host_of[part[0]], host_of[part[part.len() - 1]]);
                let _ = writeln!(text, "card {first} {last} {}", megabits(card(part[0])));
            }
            sites.push(site);
        }
        if sites.len() > SITES_MAX {
            return None;
        }
        for (at, one) in sites.iter().enumerate() {
            for other in &sites[..at] {
                let (trip, rate) = between(layout, placement, *one, *other);
                let (one, other) = (name(*one), name(*other));
                let _ = writeln!(text, "wan {one} {other} {} {rate} {queue} 0", trip / 2.0);
            }
        }
        Some(Self { text, host_of })
    }
}

/// The round trip between two sites, and the rate of their line in megabits per second. A line
/// between clusters is shared by all of their hosts; where clusters have racks, only by two racks.
fn between(layout: &Layout, placement: &Placement, one: Site, other: Site) -> (f64, f64) {
    if one.0 == other.0 {
        return (layout.near_us + layout.rack_us.unwrap_or(0.0), 0.0);
    }
    (placement.far_us(one.0, other.0), megabits(placement.pipe(one.0, other.0)))
}

fn name((cluster, rack): Site) -> String {
    alloc::format!("cluster{cluster}rack{rack}")
}

/// 0 is no limit.
fn megabits(megabytes: f64) -> f64 {
    if megabytes >= RATE_MAX { 0.0 } else { megabytes * 8.0 }
}

#[cfg(test)]
mod tests {
    use sapwood_random::Random;

    use super::*;

    #[test]
    fn each_host_lies_in_the_site_of_its_cluster() {
        for name in ["paper-3", "paper-4", "racks", "lan", "cards"] {
            let layout = Layout { hosts: 24, ..Layout::named(name).unwrap() };
            let placement = Placement::draw(&layout, &mut Random::new(5));
            let emulation = Emulation::new(&layout, &placement).unwrap();
            let mut next = 0;
            for line in emulation.text.lines().filter_map(|line| line.strip_prefix("site ")) {
                let words: Vec<&str> = line.split(' ').collect();
                let [site, first, last] = words[..] else { panic!("{line}") };
                let (first, last): (u32, u32) = (first.parse().unwrap(), last.parse().unwrap());
                assert_eq!(first, next);
                for (host, at) in emulation.host_of.iter().enumerate() {
                    if (first..=last).contains(at) {
                        let cluster = alloc::format!("cluster{}rack", placement.clusters[host]);
                        assert!(site.starts_with(&cluster), "{site}, {cluster}");
                    }
                }
                next = last + 1;
            }
            assert_eq!(next, 24);
        }
    }

    #[test]
    fn lines_have_half_of_a_round_trip_and_rates_in_megabits() {
        let layout = Layout::named("campus").unwrap();
        let emulation = Emulation::new(&layout, &Placement::in_order(&layout)).unwrap();
        assert!(emulation.text.contains("\nlan cluster0rack0 0 0 50 0\n"), "{}", emulation.text);
        let far = "\nwan cluster2rack0 cluster1rack0 18000 100 50 0\n";
        assert!(emulation.text.contains(far), "{}", emulation.text);
    }

    #[test]
    fn each_host_has_its_own_card() {
        let layout = Layout { hosts: 16, ..Layout::named("cards").unwrap() };
        let placement = Placement::draw(&layout, &mut Random::new(5));
        let emulation = Emulation::new(&layout, &placement).unwrap();
        let mut rates = alloc::vec![0.0; 16];
        let mut range = 0..0;
        let mut before = (0, 0.0);
        for line in emulation.text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<usize>().unwrap();
            match words[0] {
                "site" => (range, before) = (number(2)..number(3) + 1, (0, 0.0)),
                "lan" => rates[range.clone()].fill(words[3].parse::<f64>().unwrap()),
                "card" => {
                    let (first, last) = (number(1), number(2));
                    assert!(range.contains(&first) && (first..range.end).contains(&last), "{line}");
                    // Hosts of one card, one after another, are in one line.
                    let rate = words[3].parse::<f64>().unwrap();
                    assert_ne!(before, (first, rate), "{}", emulation.text);
                    before = (last + 1, rate);
                    rates[first..=last].fill(rate);
                }
                _ => {}
            }
        }
        for (host, at) in emulation.host_of.iter().enumerate() {
            assert_eq!(rates[*at as usize], placement.cards[host] * 8.0, "{}", emulation.text);
        }
        let one = Placement::in_order(&Layout::default());
        assert!(!Emulation::new(&Layout::default(), &one).unwrap().text.contains("\ncard "));
    }

    #[test]
    fn more_sites_than_the_emulator_knows_are_refused() {
        let layout = Layout { hosts: 40, clusters: 40, ..Layout::default() };
        assert_eq!(Emulation::new(&layout, &Placement::in_order(&layout)), None);
    }
}
