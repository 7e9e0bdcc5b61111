//! `sapwood trace scope` gathers figures of the hops of a group whose members are processes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use crate::cli::{assert_refused, clean_command, text};
use crate::members::{Folder, HANG, Member, group};
use sapwood_schema::assert_fits;
use serde_json::Value;

const MEMBERS: usize = 4;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood"));
    command.args(["trace", "scope"]).args(arguments).stdin(Stdio::null());
    command
}

/// All members carry out a line.
fn all(members: &mut [Member], line: &str) {
    members.iter_mut().for_each(|member| member.ask(line));
    for answer in members.iter_mut().map(Member::answer) {
        assert_eq!(answer["wrong"], 0, "{answer}");
    }
}

/// A command that follows a group; killed when dropped.
struct Following {
    child: Child,
    errors: BufReader<ChildStderr>,
    lines: Receiver<String>,
    records: Vec<Value>,
}

impl Following {
    fn start(address: &str, key: &str, scopes: &[&str]) -> Self {
        let group = ["--group", address, "--key", key, "--for", "10m", "--timeout", "10s"];
        let scopes = scopes.iter().flat_map(|scope| ["--scope", *scope]);
        let mut child = command(&group)
            .args(["--ndjson", "-"])
            .args(scopes)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert!(line.contains("following the operations of"), "{line}");
        Self { child, errors, lines, records: Vec::new() }
    }

    fn take(&mut self, line: &str) {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_fits("scope-1", &record);
        assert_eq!(record["source"], "group", "{record}");
        let counts = list(&record["groups"]).iter().map(|group| number(&group["count"]));
        assert_eq!(counts.sum::<u64>(), number(&record["events_selected"]), "{record}");
        self.records.push(record);
    }

    /// Whether a record with groups of this scope has come while it still follows.
    fn has_told(&mut self, scope: &str) -> bool {
        while let Ok(line) = self.lines.try_recv() {
            self.take(&line);
        }
        let is_told = |record: &Value| {
            record["scope"] == scope
                && record["is_last"] == false
                && !list(&record["groups"]).is_empty()
        };
        self.records.iter().any(is_told)
    }

    /// Ends it, and takes what it tells then.
    fn end(mut self) -> Vec<Value> {
        // What a shell runs in the background ignores SIGINT, this test with it.
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        while let Ok(line) = self.lines.recv_timeout(HANG) {
            self.take(&line);
        }
        let mut rest = String::new();
        self.errors.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(143), "{rest}");
        std::mem::take(&mut self.records)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn groups<'a>(records: &'a [Value], scope: &str) -> Vec<&'a Value> {
    let of = records.iter().filter(|record| record["scope"] == scope);
    of.flat_map(|record| list(&record["groups"])).collect()
}

/// Words of the groups of a scope at this key.
fn words<'a>(records: &'a [Value], scope: &str, key: &str) -> BTreeSet<&'a str> {
    groups(records, scope).iter().filter_map(|group| group[key].as_str()).collect()
}

fn numbers(records: &[Value], scope: &str, key: &str) -> BTreeSet<u64> {
    groups(records, scope).iter().filter_map(|group| group[key].as_u64()).collect()
}

const SCOPES: [&str; 7] = [
    "source=group name=waits value=wait by=edge,kind collectives=reduction every=100ms",
    "source=group name=up value=up by=edge every=end",
    "source=group name=both value=two-way by=edge,collective every=end",
    "source=group name=inside value=inside by=process,kind every=end",
    "source=group name=roots value=down by=collective,root reduce=sums every=end",
    "source=group name=some value=up by=edge ranks=1 every=end",
    "source=group name=largest value=wait by=edge reduce=top=1 every=end",
];

#[test]
fn each_link_and_each_member_has_its_figures() {
    let folder = Folder::new();
    let mut members = group(&folder, MEMBERS);
    let key = folder.key("key");
    let mut following = Following::start(&members[2].address, key.to_str().unwrap(), &SCOPES);
    let begun = Instant::now();
    while !following.has_told("waits") {
        for line in [
            "reduce root=0 tree=list bytes=8 rounds=5 bypass=yes skew=2ms",
            "allreduce root=0 tree=list bytes=8 rounds=5",
            "broadcast root=0 tree=list bytes=100K rounds=2",
        ] {
            all(&mut members, line);
        }
        assert!(begun.elapsed() < HANG, "no record: {:?}", following.records);
    }
    let records = following.end();
    for record in &records {
        assert_eq!((number(&record["ranks"]), &record["missing_leaves"]), (4, &Value::from(0)));
    }
    // The chain goes through the given sites, of which 0 and 3 share one.
    let chain = BTreeSet::from([(0, 3), (3, 1), (1, 2)]);
    for scope in ["waits", "up", "both"] {
        let edge = |group: &&Value| (number(&group["parent"]), number(&group["rank"]));
        let found: BTreeSet<(u64, u64)> = groups(&records, scope).iter().map(edge).collect();
        assert!(found.is_superset(&chain), "{scope}: {found:?}");
    }
    assert_eq!(words(&records, "waits", "kind"), BTreeSet::from(["leaf", "relay"]));
    assert!(words(&records, "both", "collective").contains("transfer"), "{records:?}");
    let inside = numbers(&records, "inside", "rank");
    assert_eq!(inside, BTreeSet::from([0, 1, 2, 3]));
    assert_eq!(words(&records, "inside", "kind"), BTreeSet::from(["leaf", "relay", "root"]));
    let down = words(&records, "roots", "collective");
    assert_eq!(down, BTreeSet::from(["reduction", "transfer"]), "results come down, too");
    assert!(numbers(&records, "roots", "root").contains(&0), "{records:?}");
    assert!(groups(&records, "roots").iter().all(|group| group["median_ns"].is_null()));
    assert_eq!(numbers(&records, "some", "rank"), BTreeSet::from([1]));
    let largest = groups(&records, "largest");
    let others = largest.iter().filter(|group| group["is_others"] == true).count();
    assert_eq!((largest.len(), others), (2, 1), "{largest:?}");
    members.into_iter().for_each(Member::leave);
}

#[test]
fn what_is_beyond_the_bytes_of_a_scope_is_told_as_unread_or_dropped() {
    let folder = Folder::new();
    let mut members = group(&folder, 2);
    let key = folder.key("key");
    let scope = "source=group value=up bytes=4096 every=end";
    let following = Following::start(&members[0].address, key.to_str().unwrap(), &[scope]);
    // A reading takes 10 events of each member, of which a round has several.
    all(&mut members, "allreduce root=0 tree=list bytes=8 rounds=1000");
    let records = following.end();
    let last = records.last().expect("a record");
    let lacking = number(&last["events_waiting"]) + number(&last["events_dropped"]);
    assert!(lacking > 0, "{last}");
    members.into_iter().for_each(Member::leave);
}

#[test]
fn a_member_that_does_not_answer_is_counted_in_the_table() {
    let folder = Folder::new();
    let mut members = group(&folder, 2);
    let key = folder.key("key");
    let key = key.to_str().unwrap();
    let at = members[0].address.clone();
    // One that is stopped is still a member for a while.
    let pid = rustix::process::Pid::from_child(&members[1].child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let arguments = ["--group", &at, "--key", key, "--for", "1ms", "--scope", "source=group"];
    let output = command(&arguments).output().unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("member 1 did not answer"), "{said}");
    let table = text(&output.stdout);
    assert!(table.starts_with("scope scope-1 after "), "{table}");
    assert!(table.contains("2 members; 1 member that did not answer"), "{table}");
    members[0].wait_for("0-1");
    members.into_iter().for_each(Member::leave);
}

#[test]
fn a_stopped_member_that_is_asked_is_named_with_the_ways_on() {
    let folder = Folder::new();
    let key = folder.key("key");
    let member = Member::start(&key, &["create"]);
    let at = &member.address;
    let pid = rustix::process::Pid::from_child(&member.child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let arguments = ["--group", at, "--key", key.to_str().unwrap(), "--scope", "source=group"];
    let output = command(&arguments).output().unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(124), 1), "{said}");
    assert!(said.contains(&format!("no answer from the member at {at} within 500 ms")), "{said}");
    assert!(said.contains("ask any other member") && !said.contains("front-end"), "{said}");
    member.leave();
}

#[test]
fn what_does_not_fit_a_group_is_refused_in_one_line() {
    for (arguments, what) in [
        (&["--scope", "source=group"][..], "name the address of any member by --group"),
        (&["--scope", "source=group streams=1"], "streams: a group has no streams"),
        (&["--scope", "source=group", "--scope", "source=hops"], "of several sources"),
        (&["--group", "tcp:127.0.0.1:1", "--scope", "by=rank"], "--group is for scopes with"),
        (&["--group", "tcp:127.0.0.1:1", "--scope", "source=hops"], "leave out the command, --job"),
        (&["--group", "tcp:127.0.0.1:1", "--scope", "source=group"], "a group has a key"),
        (&["--group", "at", "--for", "0s", "--scope", "source=group"], "--for"),
    ] {
        assert_refused(&command(arguments).output().unwrap(), what, arguments);
    }
}
