//! `sapwood group`: members that are processes of their own, over real sockets, while some are
//! killed, join and leave.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::members::{Folder, HANG, Member, group, output, sapwood};
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use sapwood_schema::assert_fits;
use serde_json::Value;

fn all(members: &mut [Member], line: &str) -> Vec<Value> {
    members.iter_mut().for_each(|member| member.ask(line));
    members.iter_mut().map(Member::answer).collect()
}

fn assert_right(answer: &Value) {
    for count in ["wrong", "without_value", "incomplete"] {
        assert_eq!(answer[count], 0, "{answer}");
    }
}

#[test]
fn every_operation_goes_by_every_tree() {
    let folder = Folder::new();
    let mut members = group(&folder, 7);
    let trees = ["adaptive", "flat", "binomial", "static", "list"];
    for tree in trees.into_iter().chain(["paper-latency", "paper-bandwidth"]) {
        for root in [0, 3, 6] {
            for (operation, bytes) in [
                ("barrier", "8"),
                ("broadcast", "0"),
                ("broadcast", "300K"),
                ("reduce", "8"),
                ("reduce", "400K"),
                ("allreduce", "40K"),
                ("gather", "3000"),
                ("allgather", "10"),
                ("scatter", "70K"),
                ("reduce-scatter", "64"),
                ("all-to-all", "20K"),
            ] {
                let line = format!("{operation} tree={tree} root={root} bytes={bytes}");
                for answer in all(&mut members, &line) {
                    assert_right(&answer);
                }
            }
        }
    }
    members.into_iter().for_each(Member::leave);
}

#[test]
fn members_of_several_virtual_nodes_take_part_in_every_operation() {
    let folder = Folder::new();
    let key = folder.key("key");
    let first = Member::start(&key, &["create", "--names", "0"]);
    let at = first.address.clone();
    let mut members = vec![first];
    for names in ["1-2", "5-7"] {
        members.push(Member::start(&key, &["join", &at, "--names", names]));
    }
    members.iter_mut().for_each(|member| member.wait_for("0-2,5-7"));
    for operation in [
        "barrier",
        "broadcast",
        "reduce",
        "allreduce",
        "gather",
        "allgather",
        "scatter",
        "reduce-scatter",
        "all-to-all",
    ] {
        for answer in all(&mut members, &format!("{operation} root=6 bytes=800 deadline=20s")) {
            assert_right(&answer);
        }
    }
    members.into_iter().for_each(Member::leave);
}

#[test]
fn lines_may_come_at_any_pace_and_one_that_is_too_long_is_an_error() {
    let folder = Folder::new();
    let mut member = Member::start(&folder.key("key"), &["create"]);
    let many = vec!["members"; 1000].join("\n");
    member.ask(&many);
    (0..1000).for_each(|_| assert_eq!(member.answer()["operation"], "members"));
    member.ask(&"x".repeat(100_000));
    assert_eq!(member.answer()["error"], "the line is longer than 4096 bytes");
    member.leave();
}

#[test]
fn a_signal_ends_a_member_during_an_operation() {
    let folder = Folder::new();
    let mut member = Member::start(&folder.key("key"), &["create"]);
    // No member carries this one.
    member.ask("broadcast root=77 deadline=1000s");
    let process = rustix::process::Pid::from_child(&member.child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(member.child.wait().unwrap().success());
}

/// What a member has of the values that member 0 has published.
fn received(member: &mut Member) -> Value {
    let received = member.call("received");
    assert_eq!(received["lost"], 0, "{received}");
    let sender = received["senders"]["0"].clone();
    assert_eq!((&sender["doubled"], &sender["wrong"]), (&Value::from(0), &Value::from(0)));
    sender["counts"].clone()
}

#[test]
fn members_that_are_killed_cost_no_other_a_value() {
    let folder = Folder::new();
    let mut members = group(&folder, 10);
    for (tree, bytes) in [("binomial", "2000"), ("adaptive", "500"), ("adaptive", "300K")] {
        let line = format!("publish tree={tree} bytes={bytes} rounds=40");
        let first = members.len() - 2;
        // Each answer shows that the next forty have begun.
        (0..3).for_each(|_| members[0].ask(&line));
        members[0].answer();
        members[first / 2].kill();
        members.remove(first / 2);
        members[0].answer();
        members[first].kill();
        members.remove(first);
        members[0].answer();
    }
    for member in &mut members[1..] {
        assert_eq!(received(member), "1-360");
    }
    members.into_iter().for_each(Member::leave);
}

#[test]
fn each_contributor_counts_once_while_members_are_killed() {
    let folder = Folder::new();
    let mut members = group(&folder, 10);
    let mut number = 1000;
    for (operation, tree, bytes, left) in [
        ("reduce", "binomial", "8", "0,2-4,6-9"),
        ("allreduce", "adaptive", "8", "0,3-4,7-9"),
        ("reduce", "adaptive", "300K", "0,4,8-9"),
    ] {
        for round in 0..3 {
            let line = format!(
                "{operation} tree={tree} bytes={bytes} rounds=25 number={number} deadline=20s"
            );
            number += 25;
            members.iter_mut().for_each(|member| member.ask(&line));
            if round == 1 {
                // The inner members of these trees are among the first and the middle ones.
                for at in [members.len() / 2, 1] {
                    members[at].kill();
                    members.remove(at);
                }
            }
            for (index, member) in members.iter_mut().enumerate() {
                let answer = member.answer();
                let is_due = index == 0 || operation == "allreduce";
                assert_eq!(answer["wrong"], 0, "{answer}");
                assert!(!is_due || answer["without_value"] == 0, "{answer}");
                if round != 1 {
                    assert_right(&answer);
                }
            }
            if round == 1 {
                // A member may have been killed behind its last call: no operation has missed it.
                members.iter_mut().for_each(|member| member.wait_for(left));
            }
        }
    }
    members.into_iter().for_each(Member::leave);
}

#[test]
fn members_join_and_leave_while_values_flow() {
    let folder = Folder::new();
    let mut members = group(&folder, 6);
    let line = "publish bytes=3000 rounds=60";
    (0..4).for_each(|_| members[0].ask(line));
    members[0].answer();
    let at = members[2].address.clone();
    let late = Member::start(&folder.key("key"), &["join", &at, "--names", "20-21"]);
    members.push(late);
    members[0].answer();
    members.remove(3).leave();
    members[0].answer();
    members[0].answer();
    // The newcomer is known to the sender by now, and gets all from here on.
    members[0].wait_for("0-2,4-5,20-21");
    assert_right(&members[0].call("publish bytes=10 rounds=10"));
    let last = members.len() - 1;
    for member in &mut members[1..last] {
        assert_eq!(received(member), "1-250");
    }
    let late = received(&mut members[last]);
    let late = late.as_str().unwrap();
    assert!(late.ends_with("250") && !late.contains(','), "a part without a gap: {late}");
    for answer in all(&mut members, "allreduce number=5000") {
        assert_right(&answer);
        assert_eq!(answer["contributors"], "0-2,4-5,20-21");
    }
    members.into_iter().for_each(Member::leave);
}

#[test]
fn an_heir_takes_part_in_every_operation_for_what_it_was_left() {
    let folder = Folder::new();
    let mut members = group(&folder, 3);
    members.remove(1).leave_to(2);
    members.iter_mut().for_each(|member| member.wait_for_member("1-2"));
    for root in [0, 1, 2] {
        for operation in ["barrier", "broadcast", "reduce", "gather", "scatter", "reduce-scatter"] {
            for answer in all(&mut members, &format!("{operation} root={root} bytes=48")) {
                assert_right(&answer);
            }
        }
    }
    for operation in ["allreduce", "allgather", "all-to-all"] {
        for answer in all(&mut members, &format!("{operation} bytes=48")) {
            assert_right(&answer);
        }
    }
    members.into_iter().for_each(Member::leave);
}

#[test]
fn a_member_that_joins_takes_virtual_nodes_from_one_that_stays() {
    let folder = Folder::new();
    let key = folder.key("key");
    let first = Member::start(&key, &["create", "--names", "0-3"]);
    let at = first.address.clone();
    let second = Member::start(&key, &["join", &at, "--take", "2-3"]);
    let third = Member::start(&key, &["join", &at, "--take", "1", "--names", "9"]);
    let mut members = vec![first, second, third];
    for member in &mut members {
        for names in ["0", "2-3", "1,9"] {
            member.wait_for_member(names);
        }
    }
    for answer in all(&mut members, "allreduce bytes=48") {
        assert_right(&answer);
        assert_eq!(answer["contributors"], "0-3,9");
    }
    let key = key.to_str().unwrap();
    // All of a member's, some of two members', and what none carries.
    for take in ["2-3", "0-1", "20"] {
        let (code, stdout, stderr) = output(&["join", &at, "--key", key, "--take", take]);
        assert_eq!((code, stdout.as_str()), (Some(125), ""), "{take}: {stderr}");
        assert!(stderr.contains("virtual nodes to take"), "{take}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    }
    let (code, _, stderr) = output(&["create", "--key", key, "--take", "2"]);
    assert_eq!((code, stderr.contains("--take")), (Some(2), true), "{stderr}");
    members.into_iter().for_each(Member::leave);
}

/// A port for members that listen there one after the other: a socket that is bound to it, and does
/// not listen, keeps it from all programs that take any free port.
struct KeptPort {
    _socket: OwnedFd,
    address: String,
}

impl KeptPort {
    fn new() -> Self {
        let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        // As listeners do; without it they could not have the same port.
        set_socket_reuseaddr(&socket, true).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let bound = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
        Self { _socket: socket, address: format!("tcp:{bound}") }
    }
}

#[test]
fn two_groups_with_one_key_stay_apart() {
    let folder = Folder::new();
    let key = folder.key("key");
    let kept = KeptPort::new();
    let mut one = Member::start(&key, &["create", "--names", "0"]);
    let how = ["join", &one.address, "--names", "1", "--listen", &kept.address];
    let mut gone = Member::start(&key, &how);
    one.wait_for("0-1");
    gone.wait_for("0-1");
    gone.kill();
    one.wait_for("0");
    // Another group takes connections where the dead member did, which is looked for there.
    let mut other = Member::start(&key, &["create", "--names", "5", "--listen", &gone.address]);
    let begun = Instant::now();
    loop {
        let notices = one.call("members")["notices"].to_string();
        if notices.contains("another group") {
            assert!(notices.contains(&gone.address), "{notices}");
            break;
        }
        assert!(begun.elapsed() < HANG, "they did not meet");
    }
    for (member, everyone) in [(&mut one, "0"), (&mut other, "5")] {
        assert_eq!(member.call("members")["everyone"], everyone);
        let root = format!("allreduce root={everyone}");
        assert_right(&member.call(&root));
    }
}

#[test]
fn virtual_nodes_outside_the_name_space_are_told_with_it() {
    let folder = Folder::new();
    let key = folder.key("key");
    Member::start(&key, &["create"]).leave();
    let key = key.to_str().unwrap();
    for arguments in [
        &["create", "--names", "4-5"][..],
        &["join", "tcp:127.0.0.1:1", "--names", "4-5"],
        &["join", "tcp:127.0.0.1:1", "--take", "4-5"],
    ] {
        let further = ["--space", "5", "--key", key];
        let (code, stdout, stderr) = output(&[arguments, &further].concat());
        let said = "sapwood: the virtual nodes 4-5 are not all in the name space 0 to 4\n";
        assert_eq!((code, &*stdout, &*stderr), (Some(2), "", said), "{arguments:?}");
    }
}

#[test]
fn who_is_wrong_is_told_in_one_line_and_the_others_go_on() {
    let folder = Folder::new();
    let mut members = group(&folder, 3);
    let (key, other) = (folder.key("key"), folder.key("other"));
    Member::start(&other, &["create"]).leave();
    let [key, other] = [&key, &other].map(|path| path.to_str().unwrap());
    let at = members[1].address.clone();
    for (arguments, words) in [
        (vec!["join", &at, "--key", other], "key"),
        (vec!["join", &at, "--key", key, "--names", "2-4"], "carries some of these"),
        (vec!["join", &at, "--key", key, "--names", "9", "--space", "50"], "name space"),
        (vec!["create", "--key", key, "--names", "7", "--space", "5"], "name space 0 to 4"),
        (vec!["create", "--key", key, "--names", "0", "--space", "0"], "at least one"),
        (vec!["create", "--key", key, "--space", "16777217"], "at most 16777216"),
        (vec!["join", "tcp:127.0.0.1:1", "--key", key, "--names", "9"], "127.0.0.1:1"),
        (vec!["join", &at], "--key"),
        (vec!["run", "-n", "0"], "members"),
        (vec!["run", "-n", "3", "--root", "3"], "0 to 2"),
        (vec!["run", "-n", "3", "--tree", "oak"], "adaptive"),
        (vec!["run", "-n", "3", "--root", "2", "barrier"], "--root is for broadcast"),
        (vec!["join", &at, "--key", key, "--wait", "5s"], "cannot be used with"),
        (vec!["status", &at, "--key", key, "--brief", "--json"], "cannot be used with"),
        (vec!["explain", &at, "--key", key, "--brief"], "--brief"),
        (vec!["run", "-n", "3", "--bytes", "2G"], "1073741824"),
        (vec!["status", &at, "--key", other], "key"),
    ] {
        let (code, stdout, stderr) = output(&arguments);
        assert_ne!(code, Some(0), "{arguments:?}");
        assert_eq!(stdout, "", "{arguments:?}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    }
    members[0].ask("allreduce bytes=16 number=100");
    members[1].ask("allreduce bytes=16 number=100 type=f64");
    members[2].ask("allreduce bytes=16 number=100");
    let answers: Vec<Value> = members.iter_mut().map(Member::answer).collect();
    assert!(answers[1]["missing"].to_string().contains("differs"), "{}", answers[1]);
    assert_eq!(
        (&answers[0]["contributors"], &answers[2]["contributors"]),
        (&"0,2".into(), &"0,2".into())
    );
    assert!(members[0].call("gather bytes=9M")["error"].as_str().unwrap().contains("8388608"));
    assert!(members[0].call("dance")["error"].as_str().unwrap().contains("broadcast"));
    for answer in all(&mut members, "barrier number=200") {
        assert_right(&answer);
    }
}

#[test]
fn members_on_this_host_are_started_and_nothing_is_left() {
    for arguments in [
        &["run", "-n", "5", "allreduce", "--tree", "list", "--rounds", "3"][..],
        &["run", "-n", "3", "broadcast", "--bytes", "1M", "--root", "2", "--unix"],
        &["run", "-n", "1", "barrier"],
        &["run", "-n", "2", "--sockets", "allgather"],
    ] {
        let (code, stdout, stderr) = output(arguments);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert!(stdout.contains("right   at every member"), "{stdout}");
    }
    let (_, stdout, _) = output(&["run", "-n", "4", "gather", "--json", "--plain"]);
    let answers: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&answers["right"], &answers["members"]), (&true.into(), &4.into()));
    assert_eq!(answers["answers"][0]["contributors"], "0-3");
}

#[test]
fn a_group_is_drawn_and_its_trees_are_explained() {
    let folder = Folder::new();
    let mut members = group(&folder, 4);
    let key = folder.key("key");
    let key = key.to_str().unwrap();
    let at = members[2].address.clone();
    let (_, text, _) = output(&["status", &at, "--key", key]);
    for member in &members {
        assert!(text.contains(&member.address), "{text}");
    }
    assert!(text.contains("4 members") && text.contains("tree 'adaptive'"), "{text}");
    let (_, text, _) = output(&["status", &at, "--key", key, "--json", "--root", "1"]);
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status["members"].as_array().unwrap().len(), 4);
    assert_eq!((&status["tree"]["root"], &status["tree"]["kind"]), (&1.into(), &"adaptive".into()));
    assert_eq!(status["tree"]["steps"].as_array().unwrap().len(), 3);
    let list = ["explain", &at, "--key", key, "--tree", "list", "--root", "0"];
    let (_, text, _) = output(&list);
    assert_eq!(text.matches("the member before it in the chain").count(), 3, "{text}");
    let (code, _, stderr) = output(&["explain", &at, "--key", key, "--root", "9"]);
    assert_eq!((code, stderr.contains("9 belongs to no member")), (Some(2), true), "{stderr}");
    let (_, text, _) = output(&["explain", &at, "--key", key, "--bytes", "4M"]);
    assert_eq!(text.matches("stripe 1").count(), 3, "{text}");
    members[3].kill();
    members.pop();
    members[2].wait_for("0-2");
    let (_, text, _) = output(&["status", &at, "--key", key]);
    assert!(text.contains("3 is gone: the member is dead"), "{text}");
    members.into_iter().for_each(Member::leave);
}

/// Reductions up a chain, and broadcasts down it, while a trace runs: some of each once it follows
/// them, after which the trace is ended.
fn followed(members: &mut [Member], trace: &[&str]) -> String {
    let mut trace = sapwood(trace).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(trace.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("following the operations of 4 members"), "{line}");
    let begun = Instant::now();
    let mut rounds = 0;
    while rounds < 5 || begun.elapsed() < Duration::from_secs(2) {
        assert!(trace.try_wait().unwrap().is_none(), "the trace has ended by itself");
        rounds += 1;
        for line in [
            "reduce root=0 tree=list bytes=8 rounds=5 bypass=yes skew=2ms",
            "allreduce root=0 tree=list bytes=8 rounds=5",
            "broadcast root=0 tree=list bytes=100K rounds=2",
        ] {
            for answer in all(members, line) {
                assert_eq!(answer["wrong"], 0, "{answer}");
            }
        }
    }
    // What a shell runs in the background ignores SIGINT, this test with it.
    let pid = rustix::process::Pid::from_child(&trace);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let asked = Instant::now();
    while trace.try_wait().unwrap().is_none() {
        assert!(asked.elapsed() < HANG, "the trace does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let Output { status, stdout, .. } = trace.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(143), "{rest}");
    String::from_utf8(stdout).unwrap()
}

#[test]
fn operations_are_followed_over_each_link_and_through_each_member() {
    let folder = Folder::new();
    let mut members = group(&folder, 4);
    let key = folder.key("key");
    let key = key.to_str().unwrap();
    let at = members[2].address.clone();
    let trace = ["trace", &at, "--key", key, "--for", "10m"];
    let text = followed(&mut members, &[&trace[..], &["--json"]].concat());
    let trace_of: Value = serde_json::from_str(&text).unwrap();
    assert_fits("group-trace-1", &trace_of);
    assert_eq!(trace_of["members"], serde_json::json!(["0", "1", "2", "3"]), "{trace_of}");
    assert!(trace_of["reductions"].as_u64() > Some(0), "{trace_of}");
    assert!(trace_of["transfers"].as_u64() > Some(0), "{trace_of}");
    let links = trace_of["links"].as_array().unwrap();
    // The chain goes through the given sites, of which 0 and 3 share one.
    for (parent, child) in [("0", "3"), ("3", "1"), ("1", "2")] {
        let is_it = |link: &&Value| link["parent"] == parent && link["child"] == child;
        let link = links.iter().find(is_it).unwrap_or_else(|| panic!("no {child}: {trace_of}"));
        for figure in ["up_ns", "down_ns", "two_way_ns"] {
            assert!(link[figure]["count"].as_u64() > Some(0), "{figure}: {link}");
        }
        assert_eq!(link["clock_error_ns"], 0, "one host has one clock: {link}");
    }
    for figures in trace_of["figures"].as_array().unwrap() {
        let name = figures["member"].as_str().unwrap();
        assert_eq!(figures["left_early"].as_u64() > Some(0), name != "0", "{figures}");
        let parts = figures["taken_at_call"].as_u64().zip(figures["folded_late"].as_u64());
        let (at_call, late) = parts.unwrap();
        assert_eq!(at_call + late > 0, name != "2", "{figures}");
    }
    let text = followed(&mut members, &trace);
    assert!(text.contains("4 members") && text.contains("taken at the call"), "{text}");
    members.into_iter().for_each(Member::leave);
}

#[test]
fn a_member_that_cannot_be_followed_is_named() {
    let folder = Folder::new();
    let key = folder.key("key");
    let patient = ["--silence", "60s"];
    let first = Member::start(&key, &[&["create", "--names", "0"], &patient[..]].concat());
    let at = first.address.clone();
    let second = Member::start(&key, &[&["join", &*at, "--names", "1"], &patient[..]].concat());
    let mut members = [first, second];
    members.iter_mut().for_each(|member| member.wait_for("0-1"));
    let key = key.to_str().unwrap();
    let (code, text, _) = output(&["trace", &at, "--key", key, "--for", "1ms"]);
    assert_eq!(
        (code, text.contains("no operation took place in that time")),
        (Some(0), true),
        "{text}"
    );
    let (code, _, stderr) = output(&["trace", "tcp:127.0.0.1:1", "--key", key]);
    assert_eq!((code, stderr.contains("127.0.0.1:1")), (Some(125), true), "{stderr}");
    // One that is stopped is still a member for a while.
    let pid = rustix::process::Pid::from_child(&members[1].child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let few = ["trace", &at, "--key", key, "--for", "1ms", "--timeout", "10s"];
    let (code, text, _) = output(&few);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!((code, text.contains("member 1 did not answer")), (Some(0), true), "{text}");
    members[0].wait_for("0-1");
    members.into_iter().for_each(Member::leave);
}
