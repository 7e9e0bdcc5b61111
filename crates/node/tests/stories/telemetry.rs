//! Processes tell of themselves when they are asked, and visitors are answered.

use crate::harness::*;
use sapwood_filter::{Registry, WaveRule};
use sapwood_node::{
    Answer, Event, Input, Instant, LinkId, Node, Output, Records, Recovery, Role, Settings,
    TELEMETRY,
};
use sapwood_packet::{RankSet, Slab, StreamId};
use sapwood_wire::limits::REPLY_BYTES_MAX;
use sapwood_wire::{Claim, Control, Frame, WIRE_VERSION, decode, encode_control, frame_length};

/// When the harness begins.
const BEGIN: u64 = 1_000_000_000;

const WAIT: WaveRule = WaveRule::Timeout { milliseconds: 500 };

fn ask(tree: &mut Tree, at_ms: u64) -> StreamId {
    let members = tree.front_end().back_ends();
    let stream = tree.stream(&members, TELEMETRY, WAIT);
    let now = Instant(BEGIN + at_ms * 1_000_000);
    tree.front_end().application().ask_everyone(now, stream, None).expect("the stream is open");
    tree.settle();
    stream
}

fn records_in(answer: &Answer) -> Records {
    let packet = answer.packet.as_ref().expect("the front-end itself tells something");
    Records::from_values(packet.values()).expect("these are records")
}

#[test]
fn every_process_tells_of_itself_and_its_links() {
    for (seed, spec) in SHAPES.into_iter().chain(BUSHY).enumerate() {
        let mut tree = Tree::of(spec, seed as u64);
        ask(&mut tree, 0);
        let answer = tree.one_answer();
        assert!(answer.is_complete() && answer.contributors == tree.everyone(), "{spec}");
        let records = records_in(&answer);
        assert_eq!(records.nodes.len(), tree.topology.node_count() as usize, "{spec}");
        assert_eq!(records.links.len(), records.nodes.len() - 1, "{spec}");
        for record in &records.nodes {
            let planned = tree.topology.parent(record.rank).map(|node| node.rank());
            assert_eq!(record.parent, planned, "{spec}: {record:?}");
            let below = tree.below(record.rank).len();
            assert_eq!(u64::from(record.expected), below, "{spec}: {record:?}");
            assert_eq!(u64::from(record.connected), below, "{spec}: {record:?}");
            assert_eq!((record.lost, record.awaited, record.streams), (0, 0, 0));
        }
        for link in &records.links {
            assert_eq!(tree.topology.parent(link.child).map(|node| node.rank()), Some(link.parent));
            assert!(link.arrived.is_some() && link.round_trip > 0, "{spec}: {link:?}");
        }
    }
}

#[test]
fn the_application_of_a_back_end_sees_nothing_of_it() {
    let mut tree = Tree::of("2^2", 3);
    let stream = ask(&mut tree, 0);
    tree.one_answer();
    tree.close(stream);
    tree.run();
    for rank in tree.everyone().iter() {
        assert!(tree.process(rank).received.is_empty() && tree.process(rank).events.is_empty());
    }
    assert_eq!(tree.front_end().queued_bytes(), 0, "nothing is left of it");
}

#[test]
fn who_does_not_run_is_missing_and_everybody_else_is_there() {
    let mut tree = Tree::of("2x2x2", 5);
    let silent = RankSet::range(0, 1);
    for rank in silent.iter() {
        tree.process(rank).is_stalled = true;
    }
    ask(&mut tree, 0);
    assert!(tree.answers().is_empty(), "there is time left");
    tree.advance(501);
    let answer = tree.one_answer();
    assert_eq!(missing_ranks(&answer), silent);
    assert!(says(&answer, 0, "500 ms"));
    let records = records_in(&answer);
    let told: RankSet = records.nodes.iter().map(|record| record.rank).collect();
    let everyone = RankSet::range(0, tree.topology.node_count() - 1);
    assert_eq!(told, everyone.difference(silent.as_ref()), "also their parent has told");
    let waited = records.links.iter().filter(|link| silent.contains(link.child));
    assert!(waited.clone().count() == 2 && waited.clone().all(|link| link.arrived.is_none()));
}

#[test]
fn a_repair_is_told_of() {
    each_seed("a_repair_is_told_of", 20, |seed| {
        let terms = Recovery { silence: std::time::Duration::ZERO, ..Recovery::default() };
        let mut tree = Tree::recovering("2x2x2", seed, terms);
        let everyone = tree.everyone();
        let root = tree.topology.root().rank();
        let victim = tree.communication_ranks()[seed as usize % 2];
        let orphans = tree.topology.children(victim).to_vec();
        tree.kill(victim);
        tree.run();
        ask(&mut tree, 0);
        let answers = tree.answers();
        let answer = answers.first().expect("there is an answer");
        assert_eq!(answer.contributors, everyone);
        let records = records_in(answer);
        let of = |rank| records.nodes.iter().find(|record| record.rank == rank);
        assert!(of(victim).is_none());
        let front_end = of(root).expect("the front-end has told");
        assert_eq!((front_end.adopted, front_end.gone), (orphans.len() as u32, 1));
        for orphan in orphans {
            assert_eq!(of(orphan).expect("it has told").parent, Some(root));
        }
    });
}

#[test]
fn counts_are_of_the_time_since_the_last_telling() {
    let mut tree = Tree::of("2^2", 7);
    let everyone = tree.everyone();
    let stream = tree.sum_of_all();
    for _ in 0..5 {
        tree.all_send(&everyone, stream);
    }
    assert_eq!(tree.answers().len(), 5);
    for (at_ms, waves) in [(0, 5), (1000, 0)] {
        tree.advance(at_ms);
        ask(&mut tree, at_ms);
        let records = records_in(&tree.one_answer());
        for record in &records.nodes {
            assert_eq!(record.waves, waves, "{record:?}");
            assert_eq!(record.packets > 0, waves > 0, "{record:?}");
            assert_eq!(record.streams, 1, "{record:?}");
        }
        if at_ms > 0 {
            assert!(records.nodes.iter().all(|record| record.interval == at_ms * 1_000_000));
        }
    }
}

/// A node with one stranger at link 0.
fn visited(role: Role) -> Node {
    let settings = Settings {
        role,
        rank: Some(4),
        is_started: true,
        pid: 1,
        address: None,
        registry: Registry::built_in(),
        recovery: Recovery::off(),
    };
    let mut node = Node::new(settings);
    node.expect(Vec::new(), RankSet::new(), 1, 0);
    node.handle_input(Instant(1), Input::ChildUp { link: LinkId(0) });
    node
}

fn say(node: &mut Node, control: &Control) {
    let mut frame = Slab::default();
    encode_control(&mut frame, control).expect("it fits");
    node.handle_input(Instant(2), Input::Bytes { link: LinkId(0), bytes: frame.as_bytes() });
}

fn hello(version: u16) -> Control {
    Control::Hello { version, claim: Claim::Visitor, pid: 7, address: None }
}

fn outputs(node: &mut Node) -> Vec<Output> {
    std::iter::from_fn(|| node.poll_output()).collect()
}

/// What the node says to the stranger.
fn said(node: &Node) -> Vec<Control> {
    let mut bytes = Slab::default();
    node.gather(LinkId(0), |part| {
        bytes.extend(part);
        true
    });
    let (mut rest, mut all) = (bytes.as_bytes(), Vec::new());
    while let Ok(Some(length)) = frame_length(rest) {
        let (frame, after) = rest.split_at(length);
        // Each frame lies at a multiple of 8 in memory of its own.
        match decode(Slab::copy_of(frame).as_bytes()) {
            Ok(Frame::Control(control)) => all.push(control),
            other => panic!("no message: {other:?}"),
        }
        rest = after;
    }
    all
}

#[test]
fn a_visitor_asks_and_is_answered_in_parts() {
    let mut node = visited(Role::FrontEnd);
    say(&mut node, &hello(WIRE_VERSION));
    say(&mut node, &Control::Question { bytes: vec![1, 2, 3] });
    let asked = outputs(&mut node).into_iter().find_map(|output| match output {
        Output::Event(Event::Asked { visitor, question }) => Some((visitor, question)),
        _ => None,
    });
    let (visitor, question) = asked.expect("the application is asked");
    assert_eq!(question, [1, 2, 3]);
    let answer: Vec<u8> = (0..REPLY_BYTES_MAX + 5).map(|index| index as u8).collect();
    node.application().reply(visitor, &answer);
    node.application().reply(visitor + 1, b"no process is there");
    let parts: Vec<(bool, Vec<u8>)> = said(&node)
        .into_iter()
        .map(|control| match control {
            Control::Reply { is_last, bytes } => (is_last, bytes),
            other => panic!("no reply: {other:?}"),
        })
        .collect();
    assert_eq!(parts.iter().map(|(is_last, _)| *is_last).collect::<Vec<_>>(), [false, true]);
    assert_eq!(parts.into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<_>>(), answer);
    let reason = String::from("gone");
    node.handle_input(Instant(3), Input::LinkDown { link: LinkId(0), reason });
    node.application().reply(visitor, b"it has gone");
    assert!(!node.has_unwritten() && !node.has_ended());
}

#[test]
fn visitors_come_to_front_ends_of_their_release_only() {
    for (role, version, what) in [
        (Role::Communication, WIRE_VERSION, "only a front-end"),
        (Role::FrontEnd, WIRE_VERSION + 1, "wire version"),
    ] {
        let mut node = visited(role);
        say(&mut node, &hello(version));
        let Some(Control::Refused { reason }) = said(&node).pop() else { panic!("{what}") };
        assert!(reason.contains(what), "{reason}");
        assert!(outputs(&mut node).contains(&Output::Hangup(LinkId(0))));
    }
}

#[test]
fn a_visitor_that_says_anything_else_is_let_go() {
    for control in [Control::Leaving, Control::Credit { stream: 1, bytes: 1 }, Control::Shutdown] {
        let mut node = visited(Role::FrontEnd);
        say(&mut node, &hello(WIRE_VERSION));
        say(&mut node, &control);
        let outputs = outputs(&mut node);
        assert!(outputs.contains(&Output::Hangup(LinkId(0))), "{control:?}: {outputs:?}");
        assert!(!node.has_ended());
    }
}
