//! Liars that hold the key, as processes of their own over real sockets: each is broken off and
//! named, the tree's own streams go on with exact values, and the process that it spoke to grows by
//! little.

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use sapwood::{Event, Network, Stream};
use support::{
    HANG, Links, back_ends, builder, clean_command, kilobytes, new_mark, of_rank, tags,
    tree_below_us,
};

/// Every lie that `examples/liar.rs` knows.
const LIES: [&str; 14] = [
    "others",
    "outside",
    "rejoin",
    "wide-rejoin",
    "resume",
    "resumed",
    "superseded",
    "wide-superseded",
    "lost",
    "wide-lost",
    "reached",
    "credit",
    "stream",
    "shutdown",
];

/// How much a process may grow by all of them, in KB; one of the wide sets takes as much where it
/// is read.
const GROWTH_KB_MAX: u64 = 4 << 10;

fn whole(sum: &mut Stream) {
    sum.broadcast(tags::RANK, ()).unwrap();
    let answer = sum.recv_timeout(HANG).unwrap();
    assert!(answer.is_complete() && !answer.is_late, "{answer:?}");
    assert_eq!(answer.contributors.to_string(), "0-3");
    assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(6));
}

/// Turns until an event names a back-end that broke the protocol.
fn named(network: &mut Network) -> String {
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < HANG, "no process is named");
        while let Some(event) = network.next_event() {
            match event {
                Event::Lost { reason, .. } if reason.contains("broke the protocol: sent") => {
                    return reason;
                }
                Event::Lost { .. } | Event::Broken { .. } => panic!("an innocent one: {event:?}"),
                _ => {}
            }
        }
        network.turn(Duration::from_millis(10)).unwrap();
    }
}

/// A stream with a member that claims all ranks in its first wave: the others are in that
/// wave once, with their own values. Gives why the liar is missing.
fn forged(network: &mut Network) -> String {
    let mut all = network.stream(&network.everyone()).up("sum").open().unwrap();
    all.broadcast(tags::RANK, ()).unwrap();
    let answer = all.recv_timeout(HANG).unwrap();
    assert_eq!(answer.contributors.to_string(), "0-3", "{answer:?}");
    assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(6));
    let reason = answer.missing[0].reason.clone();
    assert!(reason.contains("for back-ends that are not below it"), "{reason}");
    named(network);
    reason
}

fn lies_to(links: Links) {
    let mark = new_mark();
    let serving = back_ends(&mark, &["serve"]);
    let mut network = builder("2x2", links).dynamic_members().back_end(serving).open().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    network.write_attach_file(&folder.path().join("attach"), &key).unwrap();
    let tree = tree_below_us(&mark);
    // The front-end is rank 4, the communication processes are 5 and 6.
    let doors = [of_rank(&tree, 5).address.clone(), of_rank(&tree, 0).address.clone()];
    let inner = of_rank(&tree, 5).clone();
    let program = support::trial().with_file_name("liar");
    let mut sum = network.stream(&network.everyone()).up("sum").open().unwrap();
    whole(&mut sum);
    let sizes = || (kilobytes("self", "VmRSS"), inner.kilobytes("VmRSS"));
    let before = sizes();
    for door in doors.iter().flatten() {
        for lie in LIES {
            let is_on = if matches!(links, Links::EncryptedTcp) { "on" } else { "off" };
            let mut command = clean_command(&program);
            command.arg(door).arg(&key).arg(is_on).arg(lie).stdin(Stdio::null());
            let mut liar = command.spawn().unwrap();
            let begin = Instant::now();
            let ending = loop {
                assert!(begin.elapsed() < HANG, "{lie}: the liar is let be");
                whole(&mut sum);
                if let Some(ending) = liar.try_wait().unwrap() {
                    break ending;
                }
            };
            assert!(ending.success(), "{lie} at {door}");
            println!("{lie}: {}", named(&mut network));
            whole(&mut sum);
        }
    }
    for door in doors.iter().flatten() {
        let is_on = if matches!(links, Links::EncryptedTcp) { "on" } else { "off" };
        let mut command = clean_command(&program);
        command.arg(door).arg(&key).arg(is_on).arg("member").stdin(Stdio::null());
        let mut liar = command.spawn().unwrap();
        network.wait_for_back_ends(5, HANG).unwrap();
        println!("member: {}", forged(&mut network));
        assert!(liar.wait().unwrap().success());
        whole(&mut sum);
    }
    let after = sizes();
    println!(
        "{links:?}: front-end {} to {} KB, process {} to {} KB",
        before.0, after.0, before.1, after.1
    );
    assert!(after.0 < before.0 + GROWTH_KB_MAX && after.1 < before.1 + GROWTH_KB_MAX);
    assert_eq!(network.everyone().ranks().to_string(), "0-3");
    drop(sum);
    network.close().unwrap();
}

#[test]
fn liars_at_unix_sockets_harm_no_other() {
    if support::is_alone("liars_at_unix_sockets_harm_no_other") {
        lies_to(Links::Unix);
    }
}

#[test]
fn liars_at_tcp_ports_harm_no_other() {
    if support::is_alone("liars_at_tcp_ports_harm_no_other") {
        lies_to(Links::EncryptedTcp);
    }
}
