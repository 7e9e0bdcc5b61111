//! Groups come to rest, or it is said that they do not; what they measure stays bounded.

use sapwood_group::message::PaperTree;
use sapwood_group::{Config, Input, MILLISECOND, SECOND, limits};
use sapwood_layout::Layout;
use sapwood_sim::group::{Network, Trial};

const MEMBERS: usize = 64;

/// Round trips of 110 ms between clusters, and cards of 10 MB/s.
fn slow() -> Network {
    let layout = Layout { hosts: MEMBERS, spread: 0.0, ..Layout::default().slowed(11.0) };
    Network::draw(&layout, 1)
}

fn patient() -> Config {
    Config { ping_timeout: SECOND, ..Config::default() }
}

#[test]
fn members_that_are_less_patient_than_the_network_are_named_and_not_waited_for_without_end() {
    let error = Trial::start(slow(), 1, &Config::default()).expect_err("they bury each other");
    let text = error.to_string();
    assert!(text.starts_with("the simulated group of 64 members is not steady after 60 s: "));
    assert_eq!((error.hosts, error.patience), (MEMBERS, 100 * MILLISECOND));
    assert_eq!(text.lines().count(), 1);
}

/// Members once sent their probes by the clock, answered or not: 128 KiB each, through cards that
/// could not carry them.
#[test]
fn at_most_one_long_probe_of_each_member_is_under_way() {
    let mut trial = Trial::start(slow(), 1, &patient()).expect("steady");
    let tree = PaperTree { root: trial.world.id_of(0), bulk: true };
    for host in 0..MEMBERS {
        trial.world.give(host, Input::Track { tree });
    }
    let others = 64 << 10;
    let end = trial.world.now() + 8 * SECOND;
    let mut most = 0;
    while trial.world.now() < end {
        let next = trial.world.now() + 10 * MILLISECOND;
        trial.world.run_until(next);
        most = most.max(trial.world.bytes_under_way());
    }
    assert!(most > limits::PROBE_BYTES, "members probe");
    assert!(most < MEMBERS * (limits::PROBE_BYTES + 64) + others, "{most} bytes under way");
}
