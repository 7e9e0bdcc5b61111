//! Groups come to rest, or it is said that they do not; what they measure stays bounded.

use sapwood_group::message::PaperTree;
use sapwood_group::{
    Call, Config, Event, Input, MILLISECOND, Payload, SECOND, Time, TreeKind, limits,
};
use sapwood_layout::Layout;
use sapwood_sim::group::{
    Busy, Network, ObservedEvent, TimedBroadcast, Trial, Turnover, near_optimal,
};

const MEMBERS: usize = 64;

/// Round trips of 110 ms between clusters for a factor of 11, and then cards of 10 MB/s.
fn slow(hosts: usize, factor: f64) -> Network {
    let layout = Layout { hosts, spread: 0.0, ..Layout::default().slowed(factor) };
    Network::draw(&layout, 1)
}

fn patient() -> Config {
    Config { ping_timeout: SECOND, ..Config::default() }
}

/// Some members in each cluster are enough: what they tell of each other for a minute grows with
/// more than the second power of their number.
#[test]
fn members_that_are_less_patient_than_the_network_are_named_and_not_waited_for_without_end() {
    const IMPATIENT: usize = 16;
    let started = Trial::start(slow(IMPATIENT, 30.0), 1, &Config::default());
    let error = started.expect_err("they bury each other");
    let text = error.to_string();
    assert!(text.starts_with("the simulated group of 16 members is not steady after 60 s: "));
    assert_eq!((error.hosts, error.patience), (IMPATIENT, 100 * MILLISECOND));
    assert_eq!(text.lines().count(), 1);
}

/// Members once sent their probes by the clock, answered or not: 128 KiB each, through cards that
/// could not carry them.
#[test]
fn at_most_one_long_probe_of_each_member_is_under_way() {
    let mut trial = Trial::start(slow(MEMBERS, 11.0), 1, &patient()).expect("steady");
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

/// Round trips of 0.9 ms inside of clusters and of 21 to 30 ms between them. Each process gets a
/// processor every 40 ms until all have joined and measured, so that near looks like far.
#[test]
fn members_that_were_late_when_they_measured_first_find_the_clusters_when_idle() {
    for seed in 1..=6 {
        let layout = Layout { hosts: 16, spread: 0.0, ..Layout::default().slowed(3.0) };
        let mut network = Network::draw(&layout, seed);
        network.busy = Some(Busy { period: 40 * MILLISECOND, until: SECOND });
        let mut trial = Trial::start(network, seed, &patient()).expect("steady");
        let end = trial.world.now() + 20 * SECOND;
        trial.world.run_until(end);
        for host in 0..16 {
            let clusters = trial.world.member(host).expect("it runs").clusters();
            let label = |host: usize| clusters.label(trial.world.id_of(host));
            for other in 0..host {
                let network = &trial.world.network;
                let is_near = network.cluster(host) == network.cluster(other);
                let is_one = label(host) == label(other);
                assert_eq!(is_one, is_near, "seed {seed}: {other} and {host} of {clusters:?}");
            }
        }
        // Signs of life come once a second, and representatives probe by every other one.
        let probes = (0..16).filter_map(|host| trial.world.member(host)).map(|m| m.probes());
        assert!(probes.sum::<u64>() <= 16 * (3 * 11 + 12), "seed {seed}");
    }
}

#[test]
fn a_group_in_which_nothing_changes_grows_quiet_and_wakes_at_a_change() {
    let network = Network::draw(&Layout { hosts: 16, ..Layout::default() }, 1);
    let mut trial = Trial::start(network, 1, &Config::default()).expect("steady");
    let count = |trial: &mut Trial, span: u64| {
        let (before, now) = (trial.world.messages, trial.world.now());
        trial.world.run_until(now + span);
        trial.world.messages - before
    };
    count(&mut trial, 120 * SECOND);
    // A ping and its answer, of each member each fourth second, or a fifth sooner.
    let quiet = count(&mut trial, 60 * SECOND);
    assert!((16 * 20..=16 * 40).contains(&quiet), "{quiet} messages in an idle minute");
    trial.world.crash(5);
    count(&mut trial, 6 * SECOND);
    let awake = count(&mut trial, 10 * SECOND);
    assert!(awake >= 15 * 2 * 7, "{awake} messages in ten seconds after a change");
}

/// The link from the cluster of host 0 to another one becomes four times slower, so that the third
/// is the better way: `drift` of `sapwood sim group --scenario paper-3`.
#[test]
fn a_link_that_grows_slow_is_noticed_and_gone_round_within_two_seconds() {
    let layout = Layout::default();
    let mut trial = Trial::start(Network::draw(&layout, 0), 0, &Config::default()).expect("steady");
    let here = trial.world.network.cluster(0);
    let there = (0..layout.clusters).find(|cluster| *cluster != here).expect("three clusters");
    trial.world.network.scale(here, there, 4.0);
    let best = near_optimal(&trial.world.network, 0, 100) as f64;
    let end = trial.world.now() + 2 * SECOND;
    let mut ratios = Vec::new();
    while trial.world.now() < end {
        let begin = trial.world.now();
        let time = trial.broadcast(0, TreeKind::Adaptive, 1).expect("all get it");
        ratios.push(time as f64 / best);
        trial.world.run_until(begin + SECOND / 5);
    }
    let (first, last) = (ratios[0], ratios[ratios.len() - 1]);
    assert!(first > 1.2 && last <= 1.2, "beside the new optimum: {ratios:?}");
}

/// When each of six hosts has a value of host 0 after that was called, and how much has waited on
/// one link at most. Hosts are in two clusters; a connection between these has `stream` MB/s.
fn when_each_has_a_value(stream: f64) -> (Network, Vec<Time>, usize) {
    const BYTES: usize = 16 << 20;
    let layout = Layout { hosts: 6, clusters: 2, stream, ..Layout::default() };
    let mut trial = Trial::start(Network::draw(&layout, 1), 1, &patient()).expect("steady");
    let begin = trial.world.now();
    let call = Call::Broadcast { targets: None, value: Payload::from(vec![7; BYTES]), tag: 0 };
    trial.world.call(0, 1, TreeKind::Flat, begin + 60 * SECOND, call);
    let answer = trial.wait(0, 1).expect("an answer");
    assert_eq!(answer.missing, [], "of {}", answer.contributors);
    let mut times = vec![0; 6];
    let mut got = [0; 6];
    for seen in &trial.world.seen {
        if let Event::Delivery { data, .. } = &seen.event {
            got[seen.host] += data.len();
            times[seen.host] = seen.time - begin;
        }
    }
    assert_eq!(got, [0, BYTES, BYTES, BYTES, BYTES, BYTES]);
    assert_eq!(trial.world.overfull(), []);
    (trial.world.network.clone(), times, trial.world.fullest_link())
}

#[test]
fn children_behind_a_slow_connection_delay_no_other_and_pile_nothing_up_at_the_root() {
    let (network, even, _) = when_each_has_a_value(1e6);
    let (_, times, fullest) = when_each_has_a_value(4.0);
    for host in 1..6 {
        if network.cluster(host) == network.cluster(0) {
            assert!(times[host] <= even[host], "host {host}: {} and {}", times[host], even[host]);
        } else {
            assert!(times[host] > 4 * SECOND, "16 MiB at 4 MB/s: {}", times[host]);
        }
    }
    let most = limits::LINK_BYTES + limits::SEGMENT_BYTES_MAX as usize;
    assert!((limits::LINK_BYTES..most).contains(&fullest), "{fullest} bytes on a link");
}

/// A sign of life between two clusters waited for all that host 0 had queued for its card, also
/// where other hosts sent it, which took each other for dead; and for all that waited for a line
/// between clusters that is slower than a card.
#[test]
fn no_member_is_taken_for_dead_while_segments_wait_for_the_card_of_their_sender_or_for_a_line() {
    let figure = Layout { hosts: 4, overhead_us: 5.0, ..Layout::default() };
    let larger = Layout { hosts: 8, ..figure.clone() };
    let slow_line = Layout { hosts: 6, clusters: 2, pipe: vec![12.5], ..figure.clone() };
    let lengths = [32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20, 32 << 20, 64 << 20];
    for (layout, tree, lengths) in [
        (&figure, TreeKind::Static, &lengths[..]),
        (&larger, TreeKind::Static, &lengths[..]),
        (&larger, TreeKind::Binomial, &lengths[..]),
        (&slow_line, TreeKind::Flat, &[16 << 20][..]),
    ] {
        let network = Network::draw(layout, 0);
        let mut trial = Trial::start(network, 0, &Config::default()).expect("steady");
        for (request, bytes) in (1..).zip(lengths) {
            let call =
                Call::Broadcast { targets: None, value: Payload::from(vec![7; *bytes]), tag: 0 };
            let deadline = trial.world.now() + 60 * SECOND;
            trial.world.call(0, request, tree, deadline, call);
            let answer = trial.wait(0, request).expect("an answer");
            assert_eq!(answer.missing, [], "{tree:?} of {}: {bytes} bytes", layout.hosts);
        }
        let is_burial = |seen: &&ObservedEvent| matches!(seen.event, Event::MemberGone(..));
        let burials: Vec<&ObservedEvent> = trial.world.seen.iter().filter(is_burial).collect();
        assert!(burials.is_empty(), "{tree:?} of {}: {burials:?}", layout.hosts);
    }
}

#[test]
fn members_that_stay_get_each_broadcast_while_others_leave_and_return() {
    let layout = Layout { hosts: 8, overhead_us: 5.0, ..Layout::default() };
    let mut trial = Trial::start(Network::draw(&layout, 1), 1, &Config::default()).expect("steady");
    let found = Turnover::run(&mut trial, TreeKind::Adaptive, 256 << 10, &Config::default());
    let Turnover { broadcasts, leave, come } = found.expect("each broadcast has an answer");
    let has = |cast: &TimedBroadcast, hosts: &[u32]| {
        hosts.iter().all(|host| cast.answer.contributors.contains(*host))
    };
    assert!(broadcasts.iter().all(|cast| has(cast, &[2, 4, 6])));
    let while_away = |cast: &&TimedBroadcast| cast.begin > leave && cast.end < come;
    assert!(broadcasts.iter().filter(while_away).any(|cast| !has(cast, &[1])));
    for (cast, when) in [(broadcasts.first(), "before"), (broadcasts.last(), "after")] {
        let cast = cast.expect("a broadcast");
        assert!(has(cast, &[1, 2, 3, 4, 5, 6, 7]), "{when}: {:?}", cast.answer.missing);
        let with_bytes = cast.took.iter().flatten().count();
        assert_eq!(with_bytes, 7, "{when}: {:?}", cast.took);
    }
}
