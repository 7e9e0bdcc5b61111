//! Which tree a copy goes through.
//!
//! What is pushed leaves every host once for each host that it reaches, so that a fan-out of k
//! takes k times as long as one link needs for the data. A narrow tree is deep, and each level
//! takes a log-in before the first byte can go. The fan-out with the least sum of both is taken.
//! What is gathered all comes through the front-end's link in the end, and the tree is as broad
//! as for commands.

use sapwood_hosts::measured::Measured;

/// Bytes per second of a link, if it was not measured: 1 Gbit/s.
const LINK_RATE: f64 = 125e6;

/// Seconds that a process takes to start, once it is logged in, and to reach its parent.
const START_SECONDS: f64 = 0.02;

/// What a copy's time depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Seconds that a byte takes on a link.
    byte: f64,
    /// Seconds that a level of the tree takes to start.
    level: f64,
}

impl Costs {
    /// As the doctor has measured them, or guesses.
    pub(super) fn of(links: &Measured) -> Self {
        let (message, log_in) = (links.message(), links.log_in(1));
        let measured = links.is_there().then(|| message.gap_per_byte_us() / 1e6);
        let level = log_in.message_us(1) / 1e6 + START_SECONDS;
        Self { byte: measured.unwrap_or(1.0 / LINK_RATE), level }
    }
}

/// The deepest tree that is chosen unasked; each level is a process that has to stay alive.
const LEVELS_MAX: u32 = 16;

/// Fan-outs among which is chosen.
const FAN_OUTS: [u32; 7] = [1, 2, 3, 4, 8, 16, 64];

/// The fan-out for this number of bytes to this number of hosts.
pub(super) fn fan_out_for(hosts: u32, bytes: u64, costs: Costs) -> u32 {
    let allowed = FAN_OUTS.into_iter().filter(|&fan_out| levels(hosts, fan_out) <= LEVELS_MAX);
    let cost = |fan_out: u32| {
        let copies = f64::from(fan_out.min(hosts));
        copies * bytes as f64 * costs.byte + f64::from(levels(hosts, fan_out)) * costs.level
    };
    allowed.min_by(|&one, &other| cost(one).total_cmp(&cost(other))).unwrap_or(64)
}

/// How many hosts stand one behind another in a tree of this fan-out, each of which is on one
/// host with the first of those below it.
fn levels(hosts: u32, fan_out: u32) -> u32 {
    let (mut left, mut levels) = (hosts, 0);
    // The largest part of each level: the first host of it stands at its head.
    while left > 0 {
        left = left.div_ceil(fan_out.min(left)) - 1;
        levels += 1;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_data_goes_through_a_chain_and_little_through_a_broad_tree() {
        assert_eq!((levels(16, 1), levels(16, 2), levels(16, 16)), (16, 4, 1));
        let gigabit = Costs { byte: 1.0 / LINK_RATE, level: 0.19 };
        let fan_out = |hosts, bytes| fan_out_for(hosts, bytes, gigabit);
        assert_eq!(fan_out(16, 100), 16);
        assert_eq!(fan_out(16, 32 << 20), 2);
        assert_eq!(fan_out(16, 256 << 20), 2);
        assert_eq!(fan_out(16, 1 << 30), 1);
        assert_eq!(fan_out(16, 16 << 30), 1);
        assert_eq!(fan_out(1000, 16 << 30), 2);
        assert_eq!(fan_out(1, 1 << 30), 1);
    }

    #[test]
    fn where_log_ins_are_dear_or_links_are_fast_fewer_levels_are_taken() {
        let with = |byte, level| fan_out_for(16, 256 << 20, Costs { byte, level });
        assert_eq!(with(1.0 / LINK_RATE, 0.05), 1);
        assert!(with(1.0 / LINK_RATE, 4.0) > with(1.0 / LINK_RATE, 0.19));
        assert!(with(1e-10, 0.19) > with(1.0 / LINK_RATE, 0.19));
    }
}
