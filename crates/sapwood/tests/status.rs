//! A network says how it is: to its own application, and to a visitor.

use std::time::{Duration, Instant};

use crate::support::{Links, back_ends, builder, network, new_mark, of_rank, tags, tree_below_us};
use sapwood::{
    Error, Health, NodeStatus, RankSet, Recovery, Role, Status, VisibleNetwork, runtime_folder,
};

const WAIT: Duration = Duration::from_secs(60);

fn name() -> String {
    format!("trial-{}", new_mark())
}

fn answered(status: &Status) -> usize {
    status.nodes.iter().filter(|node| node.record.is_some()).count()
}

fn node(status: &Status, rank: u32) -> &NodeStatus {
    status.node(rank).unwrap()
}

#[test]
fn an_application_learns_how_every_process_of_its_network_is() {
    for links in [Links::Unix, Links::EncryptedTcp] {
        let (mut network, mark) = network("2x2x2", links);
        let tree = tree_below_us(&mark);
        for _ in 0..2 {
            let status = network.status(WAIT).unwrap();
            assert_eq!(status.root().health, Health::Full, "{status:?}");
            assert_eq!((answered(&status), status.nodes.len()), (15, 15));
            for seen in &tree {
                let rank = seen.rank.unwrap();
                let record = node(&status, rank).record.as_ref().unwrap();
                assert_eq!(record.pid, seen.pid, "rank {rank}");
                assert!(node(&status, rank).round_trip().is_some(), "rank {rank}");
            }
        }
        assert!(network.next_event().is_some_and(|event| !format!("{event:?}").contains("Asked")));
        network.close().unwrap();
    }
}

#[test]
fn a_back_end_that_does_not_run_its_node_is_missing() {
    let (mut network, _) = network("2x2", Links::Unix);
    let mut stream = network.stream(&network.everyone()).open().unwrap();
    // For longer than this test takes.
    stream.broadcast(tags::SLEEP, (&[1_u32][..], 600_000_u32)).unwrap();
    network.flush().unwrap();
    let begin = Instant::now();
    let status = loop {
        let status = network.status(Duration::from_secs(1)).unwrap();
        // It may read both requests at once: then it answers, and sleeps from then on. And on a
        // busy machine others may be late, too.
        if matches!(&status.missing[..], [one] if one.ranks == RankSet::range(1, 1)) {
            break status;
        }
        assert!(begin.elapsed() < WAIT, "{:?}", status.missing);
    };
    assert_eq!(status.root().health, Health::Partial, "{status:?}");
    let silent = node(&status, 1);
    assert_eq!((silent.role, silent.health), (Role::BackEnd, Health::Lost));
    assert!(silent.link.is_some() && silent.why[0].contains("no answer"), "{silent:?}");
    assert_eq!(status.missing.len(), 1);
    assert_eq!(answered(&status), 6);
    drop(stream);
    network.close().unwrap();
}

#[test]
fn a_repaired_network_is_degraded_and_says_where() {
    let mark = new_mark();
    let mut network = builder("2x2x2", Links::Unix)
        .recovery(Recovery::default())
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    let tree = tree_below_us(&mark);
    let topology = network.topology().clone();
    let root = topology.root().rank();
    let victim = topology.children(root)[0];
    of_rank(&tree, victim).kill();
    let mut status = network.status(WAIT).unwrap();
    while node(&status, topology.children(victim)[1]).parent != Some(root) {
        network.turn(Duration::from_millis(10)).unwrap();
        status = network.status(WAIT).unwrap();
    }
    assert_eq!(status.back_ends().0.len(), 8, "{status:?}");
    assert_eq!(status.root().health, Health::Degraded);
    assert_eq!(status.root().why, ["has adopted 2 orphans"]);
    assert_eq!(node(&status, victim).health, Health::Lost);
    for &orphan in topology.children(victim) {
        let orphan = node(&status, orphan);
        assert_eq!(orphan.parent, Some(root));
        assert_eq!(orphan.planned_parent, Some(victim));
        assert_eq!(orphan.planned_host.as_deref(), Some("localhost"));
        assert_eq!(orphan.why, [format!("was planned below {victim}")]);
    }
    let other = node(&status, topology.children(root)[1]);
    assert_eq!(other.health, Health::Full);
    network.close().unwrap();
}

#[test]
fn without_repair_what_is_below_a_dead_process_is_lost() {
    let mark = new_mark();
    let mut network = builder("2x2", Links::Unix)
        .recovery(Recovery::off())
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    let victim = network.topology().children(network.topology().root().rank())[1];
    of_rank(&tree_below_us(&mark), victim).kill();
    let mut status = network.status(WAIT).unwrap();
    while status.back_ends().0.len() == 4 {
        status = network.status(WAIT).unwrap();
    }
    assert_eq!(status.root().health, Health::Partial, "{status:?}");
    assert_eq!(node(&status, victim).health, Health::Lost);
    assert_eq!(node(&status, victim).children.len(), 2);
    network.close().unwrap();
}

#[test]
fn a_visible_network_answers_visitors_while_its_application_waits() {
    for links in [Links::Unix, Links::EncryptedTcp] {
        let name = name();
        let mark = new_mark();
        let mut network = builder("2x2", links)
            .visible(&name)
            .back_end(back_ends(&mark, &["serve"]))
            .open()
            .unwrap();
        let asked = name.clone();
        let visitor = std::thread::spawn(move || {
            let all = VisibleNetwork::all().unwrap();
            let found = all.iter().find(|one| one.name == asked).unwrap().clone();
            assert_eq!(found.pid, std::process::id());
            (found.status(WAIT).unwrap(), found)
        });
        while !visitor.is_finished() {
            network.turn(Duration::from_millis(10)).unwrap();
        }
        let (seen, found) = visitor.join().unwrap();
        assert_eq!((answered(&seen), seen.root().health), (7, Health::Full));
        assert!(matches!(network.publish("no name/"), Err(Error::File { .. })));
        network.publish(&name).unwrap();
        network.close().unwrap();
        assert!(VisibleNetwork::all().unwrap().iter().all(|one| one.name != name));
        assert!(found.status(WAIT).is_err(), "the network has ended");
    }
}

#[test]
fn two_networks_cannot_have_one_name_and_busy_ones_do_not_answer() {
    let name = name();
    let (mut first, _) = network("2", Links::Unix);
    first.publish(&name).unwrap();
    let (mut second, _) = network("2", Links::Unix);
    let refused = second.publish(&name).unwrap_err().to_string();
    assert!(refused.contains("already"), "{refused}");
    first.unpublish();
    second.publish(&name).unwrap();
    second.publish(&format!("{name}-b")).unwrap();
    first.publish(&name).unwrap();
    let all = VisibleNetwork::all().unwrap();
    let mine: Vec<_> = all.iter().filter(|one| one.name.starts_with(&name)).collect();
    assert_eq!(mine.len(), 2);
    // The application does not turn the loop meanwhile.
    let busy = mine[0].status(Duration::from_millis(1)).unwrap_err();
    assert!(matches!(busy, Error::Timeout { .. }), "{busy}");
    drop((first, second));
    let all = VisibleNetwork::all().unwrap();
    assert!(all.iter().all(|one| !one.name.starts_with(&name)));
}

#[test]
fn a_name_passes_from_one_network_to_another_and_is_never_missing() {
    let name = name();
    let beginning = format!("{name}.");
    let files = || {
        let entries = std::fs::read_dir(runtime_folder().unwrap()).unwrap().flatten();
        entries.filter(|one| one.file_name().to_string_lossy().starts_with(&beginning)).count()
    };
    let found = || VisibleNetwork::all().unwrap().into_iter().find(|one| one.name == name);
    let (mut first, _) = network("2", Links::Unix);
    let (mut second, _) = network("2", Links::Unix);
    let mut prepared = second.name().prepare(&name).unwrap();
    assert_eq!(found(), None, "nothing is seen of it yet");
    assert!(!first.name().leave_to(&mut prepared).unwrap(), "it has none");
    first.publish(&name).unwrap();
    let before = found().expect("it is published");
    assert!(first.name().leave_to(&mut prepared).unwrap());
    let after = found().expect("one of the two has it");
    assert_ne!(after, before);
    // A visitor that has found the first one just before is still answered.
    let visitor = std::thread::spawn(move || before.status(WAIT).unwrap());
    while !visitor.is_finished() {
        first.turn(Duration::from_millis(10)).unwrap();
    }
    assert_eq!(answered(&visitor.join().unwrap()), 3);
    second.name().keep(prepared);
    first.close().unwrap();
    assert_eq!(found(), Some(after), "the end of the first one takes nothing from the second");
    drop(second.name().prepare(&name).unwrap());
    assert_eq!(files(), 2, "the network's file and its key");
    second.close().unwrap();
    assert_eq!(files(), 0);
}
