//! Which tree a copy goes through.
//!
//! What is pushed leaves every host once for each host that it reaches, so that a fan-out of k
//! takes k times as long as one link needs for the data. A narrow tree is deep, and each level
//! takes a log-in before the first byte can go. The fan-out with the least sum of both is taken.
//! What is gathered all comes through the front-end's link in the end, and the tree is as broad
//! as for commands.

/// Bytes per second of a link, as it is assumed: 1 Gbit/s.
const LINK_RATE: f64 = 125e6;

/// Seconds that a level of the tree takes to start, as it is assumed: a log-in by key.
const LEVEL_SECONDS: f64 = 0.1;

/// The deepest tree that is chosen unasked; each level is a process that has to stay alive.
const LEVELS_MAX: u32 = 16;

/// Fan-outs among which is chosen.
const FAN_OUTS: [u32; 7] = [1, 2, 3, 4, 8, 16, 64];

/// The fan-out for so many bytes to so many hosts.
pub(super) fn fan_out_for(hosts: u32, bytes: u64) -> u32 {
    let allowed = FAN_OUTS.into_iter().filter(|&fan_out| levels(hosts, fan_out) <= LEVELS_MAX);
    let cost = |fan_out: u32| {
        let copies = f64::from(fan_out.min(hosts));
        copies * bytes as f64 / LINK_RATE + f64::from(levels(hosts, fan_out)) * LEVEL_SECONDS
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
        assert_eq!(fan_out_for(16, 100), 16);
        assert_eq!(fan_out_for(16, 256 << 20), 1);
        assert_eq!(fan_out_for(16, 32 << 20), 2);
        assert_eq!(fan_out_for(16, 16 << 30), 1);
        assert_eq!(fan_out_for(1000, 16 << 30), 2);
        assert_eq!(fan_out_for(1, 1 << 30), 1);
    }
}
